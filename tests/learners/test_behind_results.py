"""Learning the truth behind results of an imperfect test, for every learner."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dcem.learners import Sample, make_learner
from dcem.learners.learner import losses
from dcem.learners.smooth import _newton
from dcem.metrics import auc

S, C = np.array([0.4, 0.6]), 0.97  # two kinds of test


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    risk = expit(-1 + 1.2 * X[:, 0] - 0.6 * X[:, 1])
    truth = rng.random(3000) < risk
    rates = np.stack([S[(X[:, 0] > 0).astype(int)], np.full(3000, C)], axis=1)
    result = (rng.random(3000) < np.where(truth, rates[:, 0], 1 - C)).astype(float)
    return X, result, rates, truth.astype(float), risk


def plain_likelihood(X, result, rates, penalty):
    """Written down again: -log P(result | x) and a ridge penalty, by any optimiser."""
    s, c = rates.T

    def loss(at):
        f = expit(X @ at[1:] + at[0])
        positive = s * f + (1 - c) * (1 - f)
        seen = np.where(result == 1, positive, 1 - positive)
        return -np.log(seen).mean() + penalty / 2 * at[1:] @ at[1:]

    return minimize(loss, np.zeros(X.shape[1] + 1), tol=1e-10).x


def test_linear_is_maximum_likelihood(world):
    X, result, rates, *_ = world
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = make_learner("linear", 0).fit(Sample(X, result, np.ones(len(X)), rates=rates))
    expected = plain_likelihood(X, result, rates, model.penalty)
    assert model.coefficients == pytest.approx(expected[1:], abs=2e-3)
    assert model.intercept == pytest.approx(expected[0], abs=2e-3)


def test_newton_goes_on_where_results_tell_little(world):
    X, *_, truth, _ = world
    rng = np.random.default_rng(1)
    result = np.where(rng.random(len(X)) < 0.6, truth, 1 - truth)
    rates = np.full((len(X), 2), 0.6)
    columns = np.column_stack([np.ones(len(X)), X]).astype(np.float32)
    sample = Sample(X, result, np.ones(len(X)), None, rates)
    found = _newton(columns, sample, 1e-3, False, None)
    assert found == pytest.approx(plain_likelihood(X, result, rates, 1e-3), abs=0.03)


@pytest.mark.parametrize(
    "learner", ["linear", "boost", "forest", "smooth", "perceptron", "sklearn"]
)
def test_every_learner_learns_the_truth(learner, world):
    X, result, rates, truth, risk = world
    made = LogisticRegression() if learner == "sklearn" else learner
    train, fitted = np.arange(3000) < 2400, []
    for of_test in (None, rates):
        sample = Sample(X, result, np.ones(len(X)), rates=of_test)
        # a quarter of the steps will do for a network
        held = None if learner == "perceptron" else sample.take(~train)
        fitted.append(make_learner(made, 0).fit(sample.take(train), held))
    plain, told = (model.predict_proba(X)[:, 1] for model in fitted)
    assert np.abs(told - risk).mean() < np.abs(plain - risk).mean()
    assert told.mean() == pytest.approx(truth.mean(), abs=0.03)
    assert abs(plain.mean() - truth.mean()) > 0.05
    assert auc(truth, told) > auc(truth, plain) - 0.02


@pytest.mark.parametrize("learner", ["linear", "boost", "forest", "smooth", "perceptron"])
def test_only_negative_results_still_say_something(learner):
    X = np.random.default_rng(0).normal(size=(60, 2))
    rates = np.tile([0.5, 0.9], (60, 1))
    model = make_learner(learner, 0).fit(Sample(X, np.zeros(60), np.ones(60), rates=rates))
    assert (model.predict_proba(X)[:, 1] < 0.05).all()


def test_the_loss_of_a_result_has_the_slope_of_bayes_rule():
    z, told = np.linspace(-3, 3, 7), np.array([-30, -1, -0.2, 0.5, 1, 2, 30.0])
    step = 1e-5
    slope = (losses(z + step, z, told) - losses(z - step, z, told)) / (2 * step)
    assert slope == pytest.approx(expit(z) - expit(z + told), abs=1e-8)
    sure = np.array([30.0, -30.0])
    assert losses(z[:2], None, sure) == pytest.approx(losses(z[:2], np.array([1.0, 0.0])), abs=1e-6)


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize(("n", "spread"), [(30, 1.0), (500, 0.0)])  # few rows; a constant
def test_trees_say_the_same_of_everybody_where_no_column_can_be_split(n, spread, quick):
    rng = np.random.default_rng(0)
    X, y = spread * rng.normal(size=(n, 2)), np.arange(n) % 3 == 0
    sample = Sample(X, y.astype(float), np.ones(n), None, np.full((n, 2), 0.9))
    fitted = make_learner("boost", 0, quick=quick).fit(sample, sample)
    np.testing.assert_allclose(fitted.predict_logit(X), sample.base_rate)
