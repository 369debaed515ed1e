"""The pseudo-synthetic task: split, policy, both signs, both conventions for missing values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dcem.table.messages import InputError
from dcem.tasks import load_sepsis, sepsis_settings
from dcem.tasks.sepsis.cohort import CohortBuild
from dcem.tasks.sepsis.features import FEATURE_NAMES
from dcem.tasks.sepsis.task import BETAS

SPLITS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def cohort(cohort_build: CohortBuild) -> Path:
    return cohort_build.out


def published(cohort: Path, thresholds: tuple[float, float], beta: float) -> list:
    """Rows and tests of each split, drawn the way the released code draws them."""
    frame = pd.read_parquet(cohort).sort_values("icustay_id")
    X = frame[list(FEATURE_NAMES)].fillna(-9999).to_numpy()
    group = frame["a"].to_numpy()
    stream = np.random.RandomState(42)
    order = stream.permutation(len(frame))
    bounds = np.append([0], (np.cumsum([0.6, 0.2, 0.2]) * len(frame)).astype(int))
    answer = []
    for i in range(3):
        rows = order[bounds[i] : bounds[i + 1]]
        score = (X[rows, 8] - 22) / 9.807072379603103 * beta
        score += (100 - X[rows, 10]) / 21.76634883880265 * (1 - beta)
        drawn = []
        for threshold in thresholds:
            z = np.clip(30 * (score - threshold), -700, None)
            drawn.append(stream.rand(len(rows)) < 1 / (1 + np.exp(-z)))
        answer.append((rows, np.where(group[rows] == 0, *drawn)))
    return answer


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("k", "q_t"), [(4, 1.5), (1, 0.5)])
def test_the_published_stream(cohort: Path, k: float, q_t: float, beta: float) -> None:
    task = load_sepsis(cohort, k, q_t, beta)
    drawn = published(cohort, task.params["thresholds"], beta)
    for name, (rows, tested) in zip(SPLITS, drawn, strict=True):
        part = task.split(name)
        assert np.array_equal(part.row, rows)
        assert np.array_equal(part.tested, tested)


def test_rates_are_met_on_the_training_split(cohort: Path) -> None:
    task = load_sepsis(cohort, k=2, q_t=2, beta=0.5)
    for code, target in enumerate(task.params["target_rates"]):
        group = task.train.group == code
        assert task.train.tested[group].mean() == pytest.approx(target, abs=1.01 / group.sum())
    frame = pd.read_parquet(cohort)
    low, high = task.params["target_rates"][1], task.params["target_rates"][0]
    assert high == pytest.approx(2 * low)
    share = 1 - frame["a"].mean()
    assert share * high + (1 - share) * low == pytest.approx(2 * frame["y"].mean())


def test_labels_are_absent_where_nobody_tested_and_truth_is_apart(cohort: Path) -> None:
    task = load_sepsis(cohort, k=1, q_t=1.5)
    frame = pd.read_parquet(cohort)
    for name in SPLITS:
        part, truth = task.split(name), task.truth[name]
        assert np.isnan(part.y_obs[~part.tested]).all()
        assert np.array_equal(part.y_obs[part.tested], truth[part.tested])
        assert np.array_equal(truth, frame["y"].to_numpy()[part.row])
        assert np.array_equal(part.group, frame["a"].to_numpy()[part.row])
        assert np.array_equal(part.id, frame["subject_id"].to_numpy()[part.row])
    assert task.train.group_names == ("Black", "white")
    assert task.train.feature_names == FEATURE_NAMES
    assert task.kind == "sepsis"


def test_row_order_of_the_file_does_not_matter(cohort: Path) -> None:
    frame = pd.read_parquet(cohort)
    mixed = load_sepsis(frame.sample(frac=1, random_state=0), 2, 1.5)
    assert np.array_equal(mixed.train.X, load_sepsis(cohort, 2, 1.5).train.X)


def test_the_two_signs_test_opposite_pressures(cohort: Path) -> None:
    frame = pd.read_parquet(cohort)
    pressure = frame["min_sbp"].to_numpy()
    means = {}
    for sign in ("as-released", "as-printed"):
        part = load_sepsis(cohort, k=2, q_t=1, beta=0, sign=sign).train
        seen = pressure[part.row]
        means[sign] = np.nanmean(seen[part.tested]), np.nanmean(seen[~part.tested])
    assert means["as-released"][0] < means["as-released"][1]
    assert means["as-printed"][0] > means["as-printed"][1]


def test_missing_values(cohort: Path) -> None:
    frame = pd.read_parquet(cohort)
    rng = np.random.default_rng(0)
    frame.loc[rng.random(len(frame)) < 0.1, "min_sbp"] = np.nan
    frame.loc[rng.random(len(frame)) < 0.1, "max_rr"] = np.nan
    filled = load_sepsis(frame, 2, 1.5, 0.5).train
    kept = load_sepsis(frame, 2, 1.5, 0.5, missing="absent").train
    gone = np.isnan(kept.X)
    assert gone.any()
    assert not np.isnan(filled.X).any()
    assert (filled.X[gone] == -9999).all()
    assert np.array_equal(filled.X[~gone], kept.X[~gone])
    no_pressure, no_rate = gone[:, 10] & ~gone[:, 8], gone[:, 8] & ~gone[:, 10]
    assert filled.tested[no_pressure].all()  # -9999 looks like the lowest of pressures
    assert not filled.tested[no_rate].any()  # and like the slowest of breathing
    assert 0 < kept.tested[no_pressure].mean() < 1
    assert 0 < kept.tested[no_rate].mean() < 1


def test_the_45_settings(cohort: Path) -> None:
    settings = sepsis_settings()
    assert len(set(settings)) == 45
    assert len(BETAS) == 11
    frame = pd.read_parquet(cohort)
    prevalence, share = frame["y"].mean(), 1 - frame["a"].mean()
    infeasible = 0
    for k, q_t in settings:
        everybody = k * prevalence >= 1
        needed = k * prevalence / (share * q_t + 1 - share) * max(q_t, 1)
        if needed > 1 and not everybody:
            infeasible += 1
            with pytest.raises(InputError, match="more than 1"):
                load_sepsis(cohort, k, q_t)
        else:
            assert load_sepsis(cohort, k, q_t).train.tested.all() == everybody
    assert infeasible > 0


def test_at_k_10_everybody_is_tested(cohort: Path) -> None:
    task = load_sepsis(cohort, k=10, q_t=2)
    assert task.params["thresholds"] == (-np.inf, -np.inf)
    assert all(task.split(name).tested.all() for name in SPLITS)


def test_the_task_knows_that_its_cohort_is_artificial(cohort: Path) -> None:
    params = load_sepsis(cohort).params
    assert params["artificial"] is True
    assert params["cohort"]["suspicion"] == "corr24"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sign": "released"}, "`sign` must be one of"),
        ({"missing": "nan"}, "`missing` must be one of"),
        ({"beta": 1.5}, "beta"),
        ({"k": 0}, "k "),
    ],
)
def test_bad_options(cohort: Path, options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_sepsis(cohort, **options)


def test_bad_cohorts(cohort: Path, tmp_path: Path) -> None:
    frame = pd.read_parquet(cohort)
    with pytest.raises(InputError, match="min_sbp"):
        load_sepsis(frame.drop(columns="min_sbp"))
    with pytest.raises(InputError, match="'a' of the cohort must be 0 or 1"):
        load_sepsis(frame.assign(a=2))
    with pytest.raises(InputError, match="both outcomes and both groups"):
        load_sepsis(frame.assign(y=0))
    with pytest.raises(InputError, match="cannot be read as a cohort"):
        load_sepsis(tmp_path / "nowhere.parquet")
