"""Networks in NumPy: the gradient, what they can learn, and their way into a file and back."""

import numpy as np
import pytest
from scipy.special import expit

from dcem.learners import Sample, dump_learner, load_learner, make_learner
from dcem.learners.perceptron import HIDDEN, Perceptron, Schedule, Stack, shuffled, train
from dcem.learners.preprocess import Scaling


def test_the_gradient_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    stack = Stack.initial((3, 5, 4, 1), [1, 2])
    stack = Stack(stack.sizes, stack.flat.astype(np.float64))
    x, y = rng.normal(size=(2, 7, 3)), rng.integers(0, 2, (2, 7))

    def loss(flat):
        z = Stack(stack.sizes, flat).log_odds(x)
        return (np.logaddexp(0, z) - y * z).sum(axis=1)

    layers, gradient = stack.forward(x), np.empty_like(stack.flat)
    stack.gradient(layers, expit(layers[-1][..., 0]) - y, gradient)
    for p in range(stack.flat.shape[1]):
        step = np.zeros_like(stack.flat)
        step[:, p] = 1e-6
        slope = (loss(stack.flat + step) - loss(stack.flat - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, p], slope, atol=1e-6)


def test_each_network_walks_through_its_own_rows():
    batches = shuffled([np.arange(10), np.arange(20, 25)], 5, [0, 1])
    drawn = [next(batches) for _ in range(4)]
    assert sorted(np.concatenate([drawn[0][0], drawn[1][0]])) == list(range(10))
    assert all(sorted(one[1]) == list(range(20, 25)) for one in drawn)


@pytest.mark.parametrize("steps", [5, 30, 70])
def test_few_steps_train_too(steps):
    """Fewer than between two checks, or with less patience than that."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2)).astype(np.float32)
    y = (x[:, 0] > 0).astype(float)
    stack = Stack.initial((2, 8, 1), [0])

    def slope(step, rows, z):
        return expit(z) - y[rows]

    def loss(network, z):
        return float(np.mean(np.logaddexp(0, z) - y * z))

    before = loss(0, stack.log_odds(x[None])[0])
    schedule = Schedule(steps=steps, learning_rate=0.01, patience=steps // 6)
    train(stack, x, shuffled([np.arange(300)], 64, [0]), slope, [x], loss, schedule)
    assert loss(0, stack.log_odds(x[None])[0]) < before


def test_extreme_values_are_drawn_in_and_gaps_filled():
    X = np.random.default_rng(0).normal(size=(200, 2))
    X[0, 0], X[1, 1] = 1e9, np.nan
    inputs = Scaling.fit(X)(X)
    assert inputs.shape == (200, 3)  # an indicator of the gap
    assert np.abs(inputs[:, :2]).max() <= 1.5
    assert inputs[:, 0].std() > 0.3


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(float)  # nothing that a linear model could learn
    sample, rows = Sample(X, y, np.ones(3000)), np.arange(3000)
    model = make_learner("perceptron", 0)
    return X, y, model.fit(sample.take(rows[:2000]), sample.take(rows[2000:]))


def test_it_learns_what_is_not_linear(fitted):
    X, y, learner = fitted
    assert ((learner.predict_logit(X[2000:]) > 0) == y[2000:]).mean() > 0.9


def test_plain_arrays_and_back(fitted):
    X, _, learner = fitted
    name, arrays = dump_learner(learner)
    again = load_learner(name, arrays, 2)
    np.testing.assert_array_equal(again.predict_logit(X[:50]), learner.predict_logit(X[:50]))
    for broken in ({"flat": arrays["flat"][:, :-1]}, {"sizes": arrays["sizes"][:-1]}):
        with pytest.raises(ValueError, match="network"):
            load_learner(name, arrays | broken, 2)


def test_networks_scored_together_score_as_alone_and_whatever_their_company():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    scaling = Scaling.fit(X)
    stack = Stack.initial((6, *HIDDEN, 1), [1, 2, 3])
    networks = Perceptron.of(scaling, stack, 6)
    alone = np.stack([one.predict_logit(X) for one in networks])
    assert np.array_equal(Perceptron.predict_logits(networks, X, exact=True), alone)
    quick = Perceptron.predict_logits(networks, X, exact=False)
    assert 0 < np.abs(quick - alone).max() < 1e-6
    for first, n_rows in ((0, 1), (7, 13), (700, 800)):
        rows = X[first : first + n_rows]
        parts = Perceptron.predict_logits(networks, rows, exact=False)
        # on some processors the place within a block decides about the last digit of float32
        np.testing.assert_allclose(parts, quick[:, first : first + n_rows], rtol=0, atol=1e-6)
    networks[0] = Perceptron.of(Scaling.fit(3 * X), stack, 6)[0]  # a scale of its own
    assert not np.array_equal(Perceptron.predict_logits(networks, X, exact=True)[0], alone[0])
