"""The smooth model is what it says: a ridge regression on a line and bumps, written down again."""

import numpy as np
import pytest
from scipy.special import expit

from dcem.learners import Sample, make_learner
from dcem.learners.preprocess import SPREAD
from dcem.learners.smooth import BUMPS, OVERLAP, PENALTIES, PENALTY, WIDTH, WIDTHS


def kernel(z, centers, width):
    apart = ((z[:, None] - centers) ** 2).sum(axis=2)
    return np.exp(-apart / (z.shape[1] * (SPREAD * width) ** 2))


def ridge(model, X, y, weight, width, penalty):
    """Predictions for any rows, by Newton's method on the coefficients themselves."""
    z, centers = model.scaling(X).astype(float), model.centers
    middle = kernel(z, centers, width).mean(axis=0)

    def columns(rows):
        rows = model.scaling(rows).astype(float)
        return np.column_stack([np.ones(len(rows)), rows, kernel(rows, centers, width) - middle])

    B, share = columns(X), weight / weight.sum()
    d = z.shape[1]
    pulls = np.zeros((B.shape[1], B.shape[1]))
    pulls[0, 0] = 1e-6
    pulls[1 : d + 1, 1 : d + 1] = penalty * d * SPREAD**2 * np.eye(d)
    rough = kernel(centers, centers, width) + OVERLAP * np.eye(len(centers))
    pulls[d + 1 :, d + 1 :] = penalty * rough
    at = np.zeros(B.shape[1])
    for _ in range(1 if model.squared else 30):
        p = B @ at if model.squared else expit(B @ at)
        bend = share if model.squared else share * p * (1 - p)
        at -= np.linalg.solve((B.T * bend) @ B + pulls, B.T @ (share * (p - y)) + pulls @ at)
    return lambda rows: columns(rows) @ at


def said(model, X):
    z = model.scaling(X).astype(float)
    return np.hstack([z, kernel(z, model.centers, model.width)]) @ model.coefficients + (
        model.intercept
    )


def world(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ np.array([[1.0, 0.5], [0.0, 0.8]]) + [3, -1]
    y = rng.random(n) < expit(1.5 * np.sin(3 * X[:, 0]) + X[:, 1])
    return X, y.astype(float), rng.uniform(0.5, 2, n)


@pytest.mark.parametrize("squared", [False, True])
def test_it_is_a_penalised_regression_on_a_line_and_bumps(squared):
    X, y, weight = world(400)
    model = make_learner("smooth", 3, squared=squared).fit(Sample(X, y, weight))
    assert (model.width, model.penalty) == (WIDTH, PENALTY)
    expected = ridge(model, X, y, weight, WIDTH, PENALTY)
    far = np.array([[9.0, -1.0], [-4.0, 3.0]])
    for rows in (X, far):
        np.testing.assert_allclose(said(model, rows), expected(rows), atol=4e-3)


def test_bumps_lie_as_the_features_do():
    X, y, weight = world(400)
    model = make_learner("smooth", 3).fit(Sample(X, y, weight))
    z = model.scaling(X).astype(float)
    drawn = np.random.default_rng(3).normal(size=(BUMPS, 2))
    root = np.linalg.cholesky(np.cov(z.T) + 1e-3 * SPREAD**2 * np.eye(2))
    np.testing.assert_allclose(model.centers, z.mean(axis=0) + drawn @ root.T, atol=1e-6)


@pytest.mark.parametrize("seed", [0, 1])
def test_width_and_penalty_are_those_that_predict_held_out_rows_best(seed):
    X, y, weight = world(900, seed)
    learns, held = (
        Sample(X[rows], y[rows], weight[rows]) for rows in (slice(600), slice(600, 900))
    )
    model = make_learner("smooth", 0, squared=True).fit(learns, held)

    def loss(width, penalty):
        off = ridge(model, *learns[:3], width, penalty)(held.X) - held.y
        return np.average(off**2, weights=held.weight)

    width = min(WIDTHS, key=lambda width: loss(width, PENALTY))
    assert model.width == width
    assert model.penalty == min(PENALTIES, key=lambda penalty: loss(width, penalty))
