"""Methods that learn the truth behind an imperfect test."""

import numpy as np
import pytest
from scipy.special import expit

from dcem import load_model, methods
from dcem.methods.registry import PropensitySettings
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import DataWarning


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    n = 3000
    X, group = rng.normal(size=(n, 2)), rng.integers(2, size=n)
    risk = expit(-1 + X[:, 0] + 0.5 * X[:, 1])
    truth = rng.random(n) < risk
    found = np.where(truth, np.array([0.5, 0.9])[group], 0.03)
    result = (rng.random(n) < found).astype(float)
    tested = rng.random(n) < expit(0.5 * X[:, 0])
    return X, np.where(tested, result, np.nan), np.array(["a", "b"])[group], truth


RATES = {"test_sensitivity": {"a": 0.5, "b": 0.9}, "test_specificity": 0.97}
BRIEF = {"max_iter": 2, "steps": 5, "propensity_settings": PropensitySettings(steps=5)}
QUICK = {"ensemble": {"parts": ("boost", "linear"), "n_folds": 2}}


@pytest.mark.parametrize(
    "name", ["tested-only:linear", "ipw:linear", "dr-learner:linear", "ensemble"]
)
def test_risks_are_those_of_the_truth(name, people):
    X, y, group, truth = people
    made = [methods.make(name, random_state=0, **QUICK.get(name, {})) for _ in range(2)]
    plain, told = (
        model.fit(X, y, sensitive_features=group, **rates).predict_proba(X)[:, 1].mean()
        for model, rates in zip(made, ({}, RATES), strict=True)
    )
    assert abs(told - truth.mean()) < 0.04
    assert plain < truth.mean() - 0.05


@pytest.mark.parametrize("name", ["tested-only:linear", "ensemble", "dcem"])
def test_a_test_that_never_errs_changes_no_bit(name, people):
    X, y, group, _ = people
    few = BRIEF if name == "dcem" else QUICK.get(name, {})
    some = slice(0, 400)
    first, second = (
        methods.make(name, random_state=0, **few)
        .fit(X[some], y[some], sensitive_features=group[some], **rates)
        .predict_proba(X)
        for rates in ({}, {"test_sensitivity": 1.0, "test_specificity": {"a": 1, "b": 1}})
    )
    assert np.array_equal(first, second)


def test_networks_learn_it_too(people):
    pytest.importorskip("torch")
    X, y, group, truth = people
    model = methods.make("tested-only", random_state=0, steps=300).fit(
        X, y, sensitive_features=group, **RATES
    )
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(truth.mean(), abs=0.05)


def test_the_e_step_of_dcem_weighs_results(people):
    pytest.importorskip("torch")
    X, y, group, _ = (part[:1000] for part in people)
    problem = SelectiveLabels.from_arrays(X, y, group=group, **RATES)
    model = methods.make("dcem", random_state=0, **BRIEF | {"max_iter": 60})
    model.fit_problem(problem)
    rows = problem.subset(model.train_rows_)
    labels = model.pseudo_labels_
    positive, negative = rows.y_obs == 1, rows.y_obs == 0
    assert labels[positive].mean() > 0.8
    a, b = (labels[negative & (rows.group == code)].mean() for code in (0, 1))
    assert 0 < b < a < 0.4  # a negative result says less where the test misses more
    assert not np.isin(labels[negative], (0, 1)).any()


def test_a_method_that_knows_no_such_test_says_so(people):
    pytest.importorskip("torch")
    X, y, group, _ = people
    model = methods.make("peer-loss", steps=10)
    with pytest.warns(DataWarning, match="test results as they are"):
        model.fit(X[:400], y[:400], sensitive_features=group[:400], **RATES)


def test_saved_and_loaded(people, tmp_path):
    X, y, group, _ = people
    model = methods.make("ensemble", random_state=0, **QUICK["ensemble"])
    model.fit(X, y, sensitive_features=group, **RATES).save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.learnt_from_ == model.learnt_from_
    assert "sensitivity .50 in group a, .90 in group b" in again.learnt_from_
    assert model.learnt_from_[1:] in (tmp_path / "model" / "MODEL_CARD.md").read_text()
