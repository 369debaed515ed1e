"""A model that goes on from an earlier one: better for it, judged honestly, and as repeatable."""

import time

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score

import dcem
from dcem.methods import make
from dcem.scoring import allocate, draw
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError

N = 3000


def people(n, seed):
    """What raises the risk of most lowers it where the second feature is high."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = rng.random(n) < expit(1.5 * X[:, 0] * np.where(X[:, 1] > 0.3, -1.5, 1) - 0.5)
    tested = (rng.random(n) < expit(X[:, 2] - 0.5)) & (X[:, 1] < 0.3)  # nobody there
    return X, y.astype(float), tested


def problem_of(X, y, tested, chance=None):
    group = np.where(X[:, 3] > 0, "a", "b")
    return SelectiveLabels.from_arrays(
        X, np.where(tested, y, np.nan), group=group, testing_probability=chance
    )


def once_round(n, budget, **params):
    """The first model, and the table after the draw."""
    X, y, tested = people(n, 0)
    made = make("ensemble", random_state=0, n_jobs=1, **params)
    first = made.fit_problem(problem_of(X, y, tested))
    chance = np.ones(n)
    doubt = first.support(X)["distance"].to_numpy()[~tested]
    chance[~tested] = allocate(doubt, np.zeros(len(doubt), int), budget)
    drawn = ~tested
    drawn[~tested] = draw(chance[~tested], 0)
    return first, problem_of(X, y, tested | drawn, chance)


@pytest.fixture(scope="module")
def loop():
    return once_round(N, 400, steps=400)


def test_it_learns_what_the_first_model_could_not(loop):
    first, problem = loop
    X, y, _ = people(6000, 1)
    began = time.process_time()
    scratch = make("ensemble", steps=400, random_state=0, n_jobs=1).fit_problem(problem)
    middle = time.process_time()
    again = first.refit(problem)
    cost, cost_scratch = time.process_time() - middle, middle - began
    score = {
        name: model.predict_proba(X)[:, 1]
        for name, model in (("first", first), ("scratch", scratch), ("again", again))
    }
    auc = {name: roc_auc_score(y, one) for name, one in score.items()}
    loss = {name: log_loss(y, one) for name, one in score.items()}
    assert auc["again"] > auc["first"] + 0.05
    assert auc["again"] > auc["scratch"] - 0.02
    assert loss["again"] < min(loss["first"], loss["scratch"] + 0.015)
    assert abs(score["again"].mean() - y.mean()) < 0.03
    assert cost < 1.5 * cost_scratch  # clocks of busy machines


def test_only_new_tests_judge(loop):
    """Losses and risks are those of the new tests, weighted by one over their probability."""
    first, problem = loop
    again = first.refit(problem)
    new = problem.tested & (problem.testing_probability < 1)
    rate = np.average(problem.y_obs[new], weights=1 / problem.testing_probability[new])
    entropy = -rate * np.log(rate) - (1 - rate) * np.log(1 - rate)
    assert again.losses_["linear"] < entropy + 0.01  # of these tests, not of others
    assert again.calibration_["weighted"]
    untested = ~problem.tested | new
    risk = again.predict_proba(problem.X[untested])[:, 1].mean()
    assert risk == pytest.approx(rate, abs=0.02)  # they stand for all who were untested


def test_networks_begin_where_they_were(loop):
    _, problem = loop
    made = make("ensemble", parts=("network",), steps=20, random_state=0)
    short = made.fit_problem(problem)  # too few steps to get far from random weights
    made = make("ensemble", parts=("network",), steps=400, random_state=0)
    first_net = made.fit_problem(problem)
    again = first_net.set_params(steps=20).refit(problem)
    X = problem.X

    def apart(one, other):
        return np.abs(one.models_[0].predict_logit(X) - other.models_[0].predict_logit(X)).mean()

    assert apart(again, first_net) < apart(again, short) / 2
    assert again.models_[0].scaling is first_net.models_[0].scaling


def test_the_same_again_and_after_saving(tmp_path):
    first, problem = once_round(600, 150, steps=50, n_folds=2)
    first.save(tmp_path / "first")
    once, loaded = first.refit(problem), dcem.load_model(tmp_path / "first").refit(problem)
    expected = once.predict_proba(problem.X)
    np.testing.assert_array_equal(loaded.predict_proba(problem.X), expected)
    once.save(tmp_path / "second")
    np.testing.assert_array_equal(
        dcem.load_model(tmp_path / "second").predict_proba(problem.X), expected
    )
    other = first.refit(problem, random_state=1)
    assert np.abs(other.predict_proba(problem.X) - expected).max() > 0


@pytest.mark.parametrize("value", [0, 1])
def test_a_handful_of_new_results_does_not_say_how_common_the_outcome_is(value):
    X, y, tested = people(N, 0)
    short = make("ensemble", parts=("linear",), random_state=0, n_jobs=1)
    first = short.fit_problem(problem_of(X, y, tested))
    rarer, other = (np.flatnonzero(~tested & (y == one)) for one in (value, 1 - value))

    def again(number):
        new = np.isin(np.arange(N), [*rarer[:number], *other[:60]])
        return first.refit(problem_of(X, y, tested | new, np.where(tested, 1.0, 0.05)))

    with pytest.raises(InputError, match="Fit from scratch"):
        again(9)
    assert again(10).calibrated


def test_what_it_cannot_start_from(loop):
    first, problem = loop
    X, y, tested = people(N, 0)
    with pytest.raises(InputError, match="testing_probability"):
        first.refit(problem_of(X, y, tested))
    with pytest.raises(InputError, match="at least 30"):
        first.refit(problem_of(X, y, tested, np.where(tested, 1.0, 0.2)))
    with pytest.raises(ValueError, match="4 features"):
        first.refit(
            SelectiveLabels.from_arrays(X[:, :3], np.where(tested, y, np.nan), tested=tested)
        )
    other = make("tested-only", learner="linear").fit_problem(problem)
    with pytest.raises(InputError, match="cannot start"):
        other.refit(problem)
