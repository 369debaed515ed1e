"""The readmission task on the real table: the cohort, its features, the policy."""

import numpy as np
import pytest

from dcem import InputError
from dcem.tasks import load_diabetes_readmission


@pytest.fixture(scope="module")
def path(shared):
    file = shared / "real" / "diabetes130.csv.gz"
    if not file.is_file():
        pytest.skip(f"the diabetes table is not here: {file.name} expected in shared/real")
    return file


@pytest.fixture(scope="module")
def task(path):
    return load_diabetes_readmission(path, beta=0.3)


def whole(task, what):
    return np.concatenate([what(task.split(s)) for s in ("train", "validation", "test")])


def test_the_cohort(task):
    assert (len(task.train), len(task.validation), len(task.test)) == (16_000, 8_000, 42_378)
    assert len(np.unique(whole(task, lambda p: p.id))) == 66_378  # one row a person
    assert task.train.group_names == ("AfricanAmerican", "Caucasian")
    counts = np.bincount(whole(task, lambda p: p.group))
    assert counts.tolist() == [12_887, 53_491]
    truth = np.concatenate([task.truth[s] for s in ("train", "validation", "test")])
    assert truth.sum() == 66_378 - 39_495  # everybody but "NO"


def test_39_standardised_features_without_gaps(task):
    X = whole(task, lambda p: p.X)
    assert X.shape == (66_378, 39)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(X.std(axis=0), 1, atol=1e-9)
    assert np.linalg.matrix_rank(np.cov(X.T)) == 39  # no feature follows from the others


def test_the_policy_weighs_two_columns_and_meets_k_and_q_t(task):
    train, names = task.train, task.train.feature_names
    stay = train.X[:, names.index("time_in_hospital")]
    medications = train.X[:, names.index("num_medications")]
    score = 0.3 * stay + 0.7 * medications
    p = 1 / (1 + np.exp(-5 * (score - np.array(task.process.thresholds)[train.group])))
    np.testing.assert_allclose(task.process.testing_probability(train.X, train.group), p)
    assert p.mean() == pytest.approx(0.5 * task.truth["train"].mean(), abs=1e-9)
    ratio = p[train.group == 0].mean() / p[train.group == 1].mean()
    assert ratio == pytest.approx(2.0, abs=1e-9)


def test_betas_share_their_splits(task, path):
    other = load_diabetes_readmission(path, beta=1.0)
    np.testing.assert_array_equal(other.train.row, task.train.row)
    assert not np.array_equal(other.train.tested, task.train.tested)


def test_arguments_without_sense(path):
    with pytest.raises(InputError, match="beta"):
        load_diabetes_readmission(path, beta=1.1)
    with pytest.raises(InputError, match="leave some of the 66378 rows"):
        load_diabetes_readmission(path, n_train=66_000, n_validation=378)


def test_another_table_is_refused_by_its_columns(tmp_path):
    wrong = tmp_path / "other.csv"
    wrong.write_text("encounter_id,patient\n1,2\n")
    with pytest.raises(InputError, match="none of the columns 'time_in_hospital'"):
        load_diabetes_readmission(wrong)
