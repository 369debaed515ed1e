"""Sample selection against plain second implementations and worlds with a known answer."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import ndtr
from scipy.stats import multivariate_normal, norm

import dcem
from dcem import methods
from dcem.methods.heckman import Likelihood, bivariate
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError

OUTCOME, TESTING = np.array([-0.8, 1.0, 0.5, 0.0]), np.array([0.3, -0.8, 0.0, 1.0])


def world(r: float, n: int = 4000, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Features (the third drives testing alone), truth, and what is seen of it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    u = rng.normal(size=n)
    v = r * u + np.sqrt(1 - r * r) * rng.normal(size=n)
    rows = np.column_stack([np.ones(n), X])
    y = rows @ OUTCOME + v > 0
    return X, y, np.where(rows @ TESTING + u > 0, y, np.nan)


def standardised(X: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(X)), (X - X.mean(axis=0)) / X.std(axis=0)])


@pytest.mark.parametrize("r", [-0.97, -0.5, 0.0, 0.3, 0.9])
def test_the_bivariate_normal_is_scipys_and_its_slopes_are_right(r):
    rng = np.random.default_rng(1)
    h, k = 2 * rng.normal(size=(2, 20))
    found, *slopes = bivariate(h, k, r)
    plain = multivariate_normal([0, 0], [[1, r], [r, 1]])
    expected = [plain.cdf([a, b]) for a, b in zip(h, k, strict=True)]
    assert found == pytest.approx(np.array(expected), abs=1e-6)
    for i, slope in enumerate(slopes):
        ends = []
        for side in (1e-5, -1e-5):
            at = [h, k, r]
            at[i] = at[i] + side
            ends.append(bivariate(*at)[0])
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-6)


@pytest.mark.parametrize("rates", [None, (0.7, 0.95)])
def test_the_likelihood_is_an_integral_over_the_unrecorded_cause(rates):
    """P(tested, y) as a sum over u of a fine grid; no bivariate normal in it."""
    X, _, y_obs = world(-0.5, 60)
    rows, seen = np.column_stack([np.ones(60), X]), ~np.isnan(y_obs)
    y, share = y_obs[seen], np.random.default_rng(0).random(60)
    share /= share.sum()
    given = None if rates is None else np.tile(rates, (len(y), 1))
    loss = Likelihood(rows, rows[seen][:, :3], y, seen, share, given)
    at = np.array([-0.5, 0.9, 0.2, 0.1, -0.6, 0.2, 0.8, np.arctanh(-0.4)])
    u = np.linspace(-9, 9, 40_001)
    mass = norm.pdf(u) * (u[1] - u[0])
    expected = 0.0
    for i in range(60):
        k = rows[i] @ at[3:7]
        if not seen[i]:
            expected -= share[i] * np.log(mass[u < -k].sum())
            continue
        risk = ndtr((rows[i, :3] @ at[:3] - 0.4 * u) / np.sqrt(1 - 0.16))
        s, c = rates or (1.0, 1.0)
        shown = s * risk + (1 - c) * (1 - risk)
        p = mass[u > -k] @ (shown if y_obs[i] else 1 - shown)[u > -k]
        expected -= share[i] * np.log(p)
    value, slope = loss(at)
    assert value == pytest.approx(expected, abs=1e-4)  # the grid cuts u at -k to a cell
    assert slope == pytest.approx(approx_fprime(at, lambda x: loss(x)[0], 1e-7), abs=1e-5)


@pytest.mark.parametrize("r", [-0.6, 0.0, 0.6])
def test_a_valid_excluded_variable_finds_the_unrecorded_cause(r):
    X, y, y_obs = world(r)
    fitted = methods.make("heckman", excluded=[2], random_state=0).fit(X, y_obs)
    assert fitted.correlation_ == pytest.approx(r, abs=0.12)
    assert (fitted.p_value_ < 0.01) == (r != 0)
    assert fitted.strength_ > 500
    assert "unrecorded cause" in fitted.learnt_from_
    assert fitted.coefficients_[0] == pytest.approx(OUTCOME, abs=0.12)
    assert fitted.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.03)


def test_two_steps_by_hand():
    X, _, y_obs = world(-0.5)
    rows, seen = standardised(X), ~np.isnan(y_obs)

    def probit(Z, y, ridge):
        def loss(at):
            return -norm.logcdf(np.where(y > 0, 1, -1) * (Z @ at)).mean() + ridge @ at**2 / 2

        return minimize(loss, np.zeros(Z.shape[1]), method="BFGS", options={"gtol": 1e-8}).x

    penalty = np.append(0, np.full(3, 1e-4))
    k = rows[seen] @ probit(rows, seen, penalty)
    mills = norm.pdf(k) / norm.cdf(k)
    by_hand = probit(np.column_stack([rows[seen][:, :3], mills]), y_obs[seen], penalty)
    fitted = methods.make("heckman", excluded=[2], estimation="two-step").fit(X, y_obs)
    assert fitted.coefficients_[0, :3] == pytest.approx(by_hand[:3], abs=1e-4)
    assert fitted.correlation_ == pytest.approx(by_hand[3], abs=1e-4)


def test_results_of_a_test_that_errs():
    X, y, y_obs = world(-0.5)
    rng = np.random.default_rng(3)
    result = np.where(np.isnan(y_obs), np.nan, y_obs * (rng.random(len(y)) < 0.6))
    told, untold = (
        methods.make("heckman", excluded=[2]).fit(X, result, **given).predict_proba(X)[:, 1].mean()
        for given in ({"test_sensitivity": 0.6}, {})
    )
    assert told == pytest.approx(y.mean(), abs=0.05)
    assert untold < y.mean() - 0.08


def test_without_an_excluded_variable_or_with_a_weak_one_it_is_said():
    X, _, y_obs = world(-0.5, 600)
    with pytest.warns(dcem.DataWarning, match="no excluded variable"):
        assert np.isnan(methods.make("heckman").fit(X, y_obs).strength_)
    with pytest.warns(dcem.DataWarning, match="hardly affect testing"):
        methods.make("heckman", excluded=[1]).fit(X, y_obs)


def test_copies_of_a_person_and_rows_without_weight_do_not_make_it_stronger():
    X, _, y_obs = world(-0.5, 600)
    make = partial(methods.make, "heckman", excluded=[1, 2])
    once = make().fit(X, y_obs).strength_
    copied = SelectiveLabels.from_arrays(
        np.tile(X, (5, 1)), np.tile(y_obs, 5), id=np.tile(np.arange(600), 5)
    )
    weighted = SelectiveLabels.from_arrays(
        np.tile(X, (2, 1)), np.tile(y_obs, 2), weight=np.repeat([1.0, 0.0], 600)
    )
    for problem in (copied, weighted):
        assert make().fit_problem(problem).strength_ == pytest.approx(once, rel=0.02)


def test_excluded_by_name_of_a_frame_and_what_is_refused(tmp_path):
    X, _, y_obs = world(-0.5, 800)
    frame = pd.DataFrame(X, columns=["income", "age", "queue"])
    frame["branch"] = np.where(X[:, 2] > 0.5, "north", np.where(X[:, 2] < -0.5, "south", "west"))
    fitted = methods.make("heckman", excluded=["branch", "queue"], random_state=0, n_members=2)
    fitted.fit(frame, y_obs)
    score = fitted.predict_proba(frame)
    moved = frame.assign(branch="north", queue=9.0)
    assert np.array_equal(fitted.predict_proba(moved), score)  # testing only: no score has it
    fitted.save(tmp_path / "model")
    again = dcem.load_model(tmp_path / "model")
    assert np.array_equal(again.predict_proba(frame), score)
    assert again.correlation_ == fitted.correlation_
    with pytest.raises(InputError, match="Did you mean 'queue'"):
        methods.make("heckman", excluded="quue").fit(frame, y_obs)
    by_place = [list(frame).index(name) for name in ("branch", "queue")]
    by_place = methods.make("heckman", excluded=by_place, random_state=0, n_members=2)
    np.testing.assert_array_equal(by_place.fit(frame, y_obs).coefficients_, fitted.coefficients_)
    with pytest.raises(InputError, match="penalty must be 0 or more"):
        methods.make("heckman", penalty=-1).fit(X, y_obs)
    with pytest.raises(InputError, match="every feature is excluded"):
        methods.make("heckman", excluded=[0]).fit(X[:, :1], y_obs)
    with pytest.raises(InputError, match="two-step"):
        methods.make("heckman", estimation="three-step").fit(X, y_obs)


def test_onnx_gives_the_same_probabilities(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    X, _, y_obs = world(-0.5, 500)
    X[::9, 1] = np.nan
    fitted = methods.make("heckman", excluded=[2], n_members=2, random_state=0).fit(X, y_obs)
    fitted.export_onnx(tmp_path / "model.onnx")
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"))
    found = session.run(["probabilities"], {"X": X})[0]
    assert np.allclose(found, fitted.predict_proba(X), atol=1e-5)


def test_roles_of_a_problem_are_excluded_variables():
    """A feature that drives testing alone, or who decided: both find the unrecorded cause."""
    X, _, y_obs = world(-0.6)
    named = SelectiveLabels.from_arrays(
        X, y_obs, feature_names=["income", "age", "queue"], testing_only=["queue"]
    )
    by_role = methods.make("heckman").fit_problem(named)
    by_parameter = methods.make("heckman", excluded=["queue"]).fit_problem(named)
    assert np.array_equal(by_role.coefficients_, by_parameter.coefficients_)
    officer = np.array(["a", "b", "c"])[np.digitize(X[:, 2], [-0.5, 0.5])]
    decided = SelectiveLabels.from_arrays(X[:, :2], y_obs, decider=officer)
    found = methods.make("heckman").fit_problem(decided)
    assert found.correlation_ == pytest.approx(-0.6, abs=0.15)
    assert found.coefficients_.shape == (1, 3)
    with pytest.raises(InputError, match="Did you mean 'queue'"):
        SelectiveLabels.from_arrays(
            X, y_obs, feature_names=["income", "age", "queue"], testing_only=["quue"]
        )


def test_repeated_rows_tell_nothing_new():
    X, _, y_obs = world(-0.3, 800)
    twice = np.r_[: len(X), : len(X)]

    def fitted(rows, **given):
        problem = SelectiveLabels.from_arrays(
            X[rows], y_obs[rows], feature_names=list("abq"), testing_only=["q"], **given
        )
        return methods.make("heckman", random_state=0, penalty=0.0).fit_problem(problem)

    once, again = fitted(slice(None)), fitted(twice, id=twice)
    assert again.p_value_ == pytest.approx(once.p_value_, rel=0.02)
    assert fitted(twice).p_value_ < 0.5 * once.p_value_
    counted = fitted(slice(None), weight=np.full(len(X), 3.0))
    assert counted.p_value_ == pytest.approx(once.p_value_, rel=1e-3)
