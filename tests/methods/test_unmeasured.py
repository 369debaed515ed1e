"""An unmeasured cause held by a known prevalence, against a plain likelihood and the truth."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import ndtr

import dcem
from dcem import methods
from dcem.methods.heckman import Likelihood
from dcem.methods.unmeasured import known_means, posterior
from dcem.table.labels import SelectiveLabels


def world(r=0.6, n=4000, seed=0):
    """Features (the third drives testing alone), result, truth and risk."""
    rng = np.random.default_rng(seed)
    X, u = rng.normal(size=(n, 3)), rng.normal(size=n)
    v = r * u + np.sqrt(1 - r * r) * rng.normal(size=n)
    line = -1 + 0.8 * X[:, 0] + 0.4 * X[:, 1]
    y = (line + v > 0).astype(float)
    tested = -0.3 + 0.5 * X[:, 0] + 0.6 * X[:, 2] + u > 0
    return X, np.where(tested, y, np.nan), y, ndtr(line)


def fitted(X, result, **given):
    return methods.make("unmeasured-cause").fit(X, result, tested=~np.isnan(result), **given)


def test_its_posterior_is_a_plain_sum_over_the_unmeasured_cause():
    X, result, *_ = world(n=50)
    problem = SelectiveLabels.from_arrays(X, result, prevalence=".35-.45")
    rows, seen = np.column_stack([np.ones(50), X]), problem.tested
    share, spread = np.full(50, 1 / 50), np.array([np.inf, 2, 2, 2, np.inf, 2, 2, 2, 1.0])
    known = known_means(problem, rows, share)
    loss = posterior(Likelihood(rows, rows[seen], result[seen], seen, share), known, spread, 50)
    at = np.array([-0.5, 0.9, 0.2, 0.1, 0.1, -0.6, 0.2, 0.8, np.arctanh(0.4)])
    # the cause z moves both equations by sqrt(.4); what is left of either is independent
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    left, load = np.sqrt(1 - 0.4), np.sqrt(0.4)
    outcome, testing = (
        ndtr((rows @ line)[:, None] / left + load / left * nodes) for line in (at[:4], at[4:8])
    )
    of_y = np.where((result == 1)[:, None], outcome, 1 - outcome)
    p = np.where(seen[:, None], of_y * testing, 1 - testing) @ (weights / weights.sum())
    (stated,) = problem.known_prevalence
    error = np.sqrt(stated.error**2 + stated.value * (1 - stated.value) / 50)
    prior = -(at[[1, 2, 3, 5, 6, 7]] ** 2).sum() / 8 - at[8] ** 2 / 2
    prior -= ((ndtr(rows @ at[:4]).mean() - stated.value) / error) ** 2 / 2
    assert loss(at)[0] == pytest.approx(-(np.log(p).sum() + prior) / 50, abs=1e-7)
    slope = approx_fprime(at, lambda one: loss(one)[0], 1e-7)
    assert loss(at)[1] == pytest.approx(slope, abs=1e-5)


@pytest.mark.filterwarnings("ignore::dcem.table.messages.DataWarning")
def test_a_known_prevalence_and_an_exclusion_find_the_cause():
    X, result, y, risk = world()
    plain, told = fitted(X, result), fitted(X, result, prevalence=float(y.mean()))
    low, high = told.correlation_interval_
    assert low < 0.6 < high
    assert high - low < 0.5 * np.ptp(plain.correlation_interval_)
    named = methods.make("unmeasured-cause", testing_only=[2], outcome_only=[1])
    named.fit(X, result, tested=~np.isnan(result))
    assert named.coefficients_[3] == 0
    assert np.ptp(named.correlation_interval_) < np.ptp(plain.correlation_interval_)
    score = told.predict_proba(X)[:, 1]
    tested_only = methods.make("tested-only:linear").fit(X, result, tested=~np.isnan(result))
    assert np.abs(score - risk).mean() < 0.04
    assert (
        np.abs(score - risk).mean() < 0.3 * np.abs(tested_only.predict_proba(X)[:, 1] - risk).mean()
    )


def test_laplace_intervals_are_as_wide_as_estimates_scatter():
    ends = []
    for seed in range(8):
        X, result, _, _ = world(n=600, seed=seed)
        model = fitted(X, result, prevalence=0.226)
        ends.append(
            (np.arctanh(model.correlation_), np.ptp(np.arctanh(model.correlation_interval_)))
        )
    value, width = np.array(ends).T
    assert np.std(value) == pytest.approx(width.mean() / 3.92, rel=0.7)


def test_risks_have_intervals_and_are_saved(tmp_path):
    X, result, y, _ = world(n=800)
    model = fitted(X, result, prevalence=float(y.mean()))
    low, high = model.risk_interval(X)
    score = model.members(X, model.standardized(X))[0]
    assert (low < score).all()
    assert (score < high).all()
    model.save(tmp_path / "model")
    again = dcem.load_model(tmp_path / "model")
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert again.risk_interval(X)[0] == pytest.approx(low)


def test_nothing_known_is_said():
    X, result, *_ = world(n=400)
    with pytest.warns(match="State one"):
        fitted(X, result)


def test_rows_of_a_person_tell_no_more_than_the_person():
    """Each row twice: without people the intervals shrink, with them they stay."""
    X, result, y, _ = world(n=900)
    twice = np.r_[: len(X), : len(X)]

    def widths(rows, **given):
        problem = SelectiveLabels.from_arrays(
            X[rows], result[rows], prevalence=float(y.mean()), **given
        )
        model = methods.make("unmeasured-cause", cause_prior=100, prior=100).fit_problem(problem)
        low, high = model.risk_interval(X)
        return np.ptp(np.arctanh(model.correlation_interval_)), np.mean(high - low)

    once = widths(slice(None))
    assert widths(twice, id=twice) == pytest.approx(once, rel=0.05)
    assert max(np.divide(widths(twice), once)) < 0.8
