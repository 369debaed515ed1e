"""The reference is itself checked: derivatives by differences, Adam and losses by PyTorch."""

from itertools import pairwise

import numpy as np
import pytest

from dcem.paper.theory import m_step_row_loss

from . import plain_dcem as plain

N, D, HIDDEN = 40, 3, (7, 5)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def make_network(rng, n_in, scale=1.0):
    widths = (n_in, *HIDDEN, 2)
    return [
        (scale * rng.normal(size=(i, o)) / np.sqrt(i), scale * 0.1 * rng.normal(size=o))
        for i, o in pairwise(widths)
    ]


def make_rows(rng, n=N, n_groups=2):
    X = rng.normal(size=(n, D))
    group = rng.integers(0, n_groups, n)
    tested = rng.random(n) < 0.5
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(float)
    return X, np.where(tested, y, np.nan), tested, group


def central_difference(function, at, step=1e-6):
    gradient = np.zeros_like(at)
    for i in np.ndindex(at.shape):
        ahead, behind = at.copy(), at.copy()
        ahead[i] += step
        behind[i] -= step
        gradient[i] = (function(ahead) - function(behind)) / (2 * step)
    return gradient


# ------------------------------------------------------------------------------ losses


def random_rows_of_the_loss(rng, scale=2.0):
    o, u = scale * rng.normal(size=(2, N, 2))
    tested = rng.random(N) < 0.5
    y = np.where(tested, rng.integers(0, 2, N), 0).astype(float)
    return o, u, np.where(tested, y, rng.random(N)), y


@pytest.mark.parametrize("reg", [0.0, 1.0, 2.5])
def test_derivatives_of_the_losses(rng, reg):
    o, u, q, y = random_rows_of_the_loss(rng)
    _, d_logits = plain.m_step_loss(o, u, q, y, reg)
    numerical = central_difference(lambda z: plain.m_step_loss(z, u, q, y, reg)[0].sum(), o)
    np.testing.assert_allclose(d_logits, numerical, atol=1e-8)
    _, d_logits = plain.cross_entropy(o, q)
    numerical = central_difference(lambda z: plain.cross_entropy(z, q)[0].sum(), o)
    np.testing.assert_allclose(d_logits, numerical, atol=1e-8)


def test_m_step_loss_is_the_loss_of_the_theory(rng):
    o, u, q, y = random_rows_of_the_loss(rng)
    f, t = (np.exp(plain.log_softmax(z))[:, 1] for z in (o, u))
    expected = m_step_row_loss(f, q, t, y, reg=1.5)
    np.testing.assert_allclose(plain.m_step_loss(o, u, q, y, 1.5)[0], expected, rtol=1e-12)


def test_m_step_loss_is_finite_and_right_at_extreme_logits():
    big = 5000.0
    o = np.array([[-big, big], [big, -big], [-big, big], [0.0, 0.0]])
    u = np.array([[-big, big], [-big, big], [big, -big], [-big, big]])
    q, y = np.array([0.5, 0.5, 1.0, 1.0]), np.array([0.0, 0.0, 1.0, 1.0])
    loss, d_logits = plain.m_step_loss(o, u, q, y)
    # Rows: −½log(1−f) − ½log(1−f·t̂) with both log(1−·) near −2·big; −½log f; −log t̂; −2·log ½.
    np.testing.assert_allclose(loss, [2 * big, big, 2 * big, 2 * np.log(2)], rtol=1e-3)
    # f → 1 under Q = ½: pulled down by ½ and again by ½·f·t̂ (1−f)/(1−f·t̂) → ½·½ (t̂ as near 1).
    np.testing.assert_allclose(d_logits[:, 1], [0.75, -0.5, 0.0, -1.0], atol=1e-12)
    np.testing.assert_allclose(d_logits[:, 0], -d_logits[:, 1])


# ------------------------------------------------------------------------------ network


def test_backward_by_finite_differences(rng):
    X, y_obs, tested, _ = make_rows(rng)
    y = np.where(tested, y_obs, 0.0)
    network, u = make_network(rng, D), rng.normal(size=(N, 2))
    q = np.where(tested, y, rng.random(N))
    logits, inputs = plain.forward(network, X)
    gradient = plain.backward(network, inputs, plain.m_step_loss(logits, u, q, y)[1])
    for layer, pair in enumerate(network):
        for part, parameter in enumerate(pair):

            def total(value, layer=layer, part=part):
                changed = [list(p) for p in network]
                changed[layer][part] = value
                return plain.m_step_loss(plain.forward(changed, X)[0], u, q, y)[0].sum()

            numerical = central_difference(total, parameter)
            np.testing.assert_allclose(gradient[layer][part], numerical, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_training_is_that_of_pytorch(rng, weight_decay):
    torch = pytest.importorskip("torch")
    X, y_obs, tested, _ = make_rows(rng)
    y = np.where(tested, y_obs, 0.0)
    network, u = make_network(rng, D), rng.normal(size=(N, 2))
    q = np.where(tested, y, rng.random(N))
    ours, curve = plain.train(
        network, X, lambda o: plain.m_step_loss(o, u, q, y), 50, 1e-2, weight_decay
    )

    theta = [torch.tensor(p, requires_grad=True) for layer in network for p in layer]
    adam = torch.optim.Adam(theta, lr=1e-2, weight_decay=weight_decay)
    t_hat, q_, y_ = (torch.tensor(v) for v in (np.exp(plain.log_softmax(u))[:, 1], q, y))
    theirs = []
    for _ in range(51):
        h = torch.tensor(X)
        for i in range(0, len(theta), 2):
            h = h @ theta[i] + theta[i + 1]
            h = h.relu() if i + 2 < len(theta) else h
        f = h.softmax(1)[:, 1]
        both = f * t_hat
        fit = -(q_ * f.log() + (1 - q_) * (1 - f).log())
        loss = (fit - q_ * (y_ * both.log() + (1 - y_) * (1 - both).log())).mean()
        theirs.append(loss.item())
        if len(theirs) <= 50:
            adam.zero_grad()
            loss.backward()
            adam.step()
    np.testing.assert_allclose(curve, theirs, rtol=1e-11)
    flat = [p for layer in ours for p in layer]
    for mine, other in zip(flat, theta, strict=True):
        np.testing.assert_allclose(mine, other.detach().numpy(), atol=1e-10)


# ------------------------------------------------------------------------------ the EM loop


def fit(rng_seed=3, corrupt=False, **changes):
    rng = np.random.default_rng(rng_seed)
    X, y_obs, tested, group = make_rows(rng, n=200)
    outcome, propensity = make_network(rng, D), make_network(rng, 2 * D + 1)
    if corrupt:
        y_obs = np.where(tested, y_obs, 1.0)
    settings = {"propensity_steps": 100, "steps": 30, "iterations": 4, "lr": 1e-2} | changes
    result = plain.plain_dcem(outcome, propensity, X, y_obs, tested, group, **settings)
    return result, (outcome, X, y_obs, tested)


def test_the_loop_alternates_as_stated():
    result, (outcome, X, y_obs, tested) = fit()
    assert result.pseudo_labels.shape == (4, 200)
    assert result.losses.shape == (4, 31)
    for q in result.pseudo_labels:
        np.testing.assert_array_equal(q[tested], y_obs[tested])
    untrained = plain.probability(outcome, X)
    np.testing.assert_array_equal(result.pseudo_labels[0][~tested], untrained[~tested])
    assert np.all(result.losses[:, -1] < result.losses[:, 0])  # each M-step lowers its own loss
    # One iteration fewer ends in the network that gave the last pseudo-labels.
    shorter, _ = fit(iterations=3)
    np.testing.assert_array_equal(
        result.pseudo_labels[3][~tested], plain.probability(shorter.network, X)[~tested]
    )


def test_starts_and_options_do_what_they_say():
    base, (outcome, X, _, tested) = fit()
    literal, _ = fit(start="algorithm-1")
    untrained = plain.probability(outcome, X)
    assert np.abs(literal.pseudo_labels[0] - untrained)[~tested].max() > 0.05
    cold, _ = fit(warm_start=False)
    np.testing.assert_array_equal(cold.losses[0], base.losses[0])
    assert cold.losses[1, 0] > base.losses[1, 0]
    flat, _ = fit(temperature=2.0)
    np.testing.assert_allclose(flat.propensity_logits, base.propensity_logits / 2)


def test_the_propensity_reaches_the_fit_through_the_regulariser_alone():
    few, many = (fit(reg=0.0, propensity_steps=s)[0].pseudo_labels for s in (1, 100))
    np.testing.assert_array_equal(few, many)
    few, many = (fit(reg=1.0, propensity_steps=s)[0].pseudo_labels for s in (1, 100))
    assert np.abs(few - many).max() > 1e-3


def test_labels_of_untested_rows_are_never_read():
    clean, _ = fit()
    dirty, _ = fit(corrupt=True)
    np.testing.assert_array_equal(clean.pseudo_labels, dirty.pseudo_labels)
    np.testing.assert_array_equal(clean.losses, dirty.losses)


def test_propensity_inputs_for_two_and_three_groups():
    X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_array_equal(
        plain.propensity_inputs(X[:2], np.array([0, 1])), [[1, 2, 0, 0, 0], [3, 4, 3, 4, 1]]
    )
    np.testing.assert_array_equal(
        plain.propensity_inputs(X, np.array([0, 1, 2])),
        [[1, 2, 0, 0, 0, 0, 0, 0], [3, 4, 3, 4, 0, 0, 1, 0], [5, 6, 0, 0, 5, 6, 0, 1]],
    )
