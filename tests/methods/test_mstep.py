"""The M-step loss in log space: against probabilities, against differences, at the extremes."""

import numpy as np
import pytest
import torch

from dcem.engine import Rows
from dcem.methods.em_networks import mstep_loss, mstep_rows
from dcem.paper.theory import m_step_optimum, m_step_row_loss

N = 200


def random_rows(seed=0, scale=2.0):
    rng = np.random.default_rng(seed)
    z, u = scale * rng.normal(size=(2, 1, N))
    tested = rng.random((1, N)) < 0.5
    y = np.where(tested, rng.integers(0, 2, (1, N)), 0).astype(float)
    q = np.where(tested, y, rng.random((1, N)))
    return [torch.from_numpy(np.asarray(v, dtype=float)) for v in (z, q, y, u, tested)]


def sigmoid(values):
    return 1 / (1 + np.exp(-np.asarray(values)))


@pytest.mark.parametrize("strength", [0.0, 1.0, 2.5])
def test_the_loss_is_the_one_of_the_theory(strength):
    z, q, y, u, _ = random_rows()
    ours = mstep_rows(z, q, y, u, strength=strength).numpy()
    theirs = m_step_row_loss(sigmoid(z), q, sigmoid(u), y, strength)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("strength", [0.0, 1.0, 2.5])
def test_the_gradient_by_differences(strength):
    z, q, y, u, _ = random_rows()
    assert torch.autograd.gradcheck(
        lambda at: mstep_rows(at, q, y, u, strength=strength), (z.requires_grad_(),)
    )


def test_the_gradient_of_the_hard_variant_by_differences():
    z, q, y, u, tested = random_rows()
    assert torch.autograd.gradcheck(
        lambda at: mstep_rows(at, q, y, u, tested=tested), (z.requires_grad_(),)
    )


def test_hard_t_regularises_tested_rows_alone():
    z, q, y, u, tested = random_rows()
    soft_none = mstep_rows(z, q, y, u, strength=0.0)
    hard = mstep_rows(z, q, y, u, tested=tested, strength=1.0)
    known = tested > 0
    torch.testing.assert_close(hard[~known], soft_none[~known])
    # with t = 1 and y known the two terms are the same cross-entropy, the second times Q
    torch.testing.assert_close(hard[known], (soft_none * (1 + q))[known])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_log_odds_stay_finite_and_right(dtype):
    grid = torch.tensor([-1e4, -300.0, -50.0, 0.0, 50.0, 300.0, 1e4], dtype=dtype)
    z, u, q, y = (v.reshape(1, -1) for v in torch.meshgrid(
        grid, grid, torch.tensor([0.0, 0.3, 1.0], dtype=dtype),
        torch.tensor([0.0, 1.0], dtype=dtype), indexing="ij",
    ))  # fmt: skip
    z = z.clone().requires_grad_()
    loss = mstep_rows(z, q, y, u)
    (gradient,) = torch.autograd.grad(loss.sum(), z)
    assert bool(torch.isfinite(loss).all())
    assert bool(torch.isfinite(gradient).all())
    assert bool((gradient.abs() <= 2 + 1e-6).all())  # |f - Q| + lambda Q, nothing more
    assert bool((loss >= -1e-4).all())


def test_digits_survive_where_probabilities_lose_them():
    """log(1 - f t) at f and t within 1e-20 of one, where 1 - f t is zero as a product."""
    z = torch.tensor([[46.0]], dtype=torch.float64)
    u = torch.tensor([[46.0]], dtype=torch.float64)
    one, zero = torch.ones_like(z), torch.zeros_like(z)
    assert 1 - sigmoid(46.0) * sigmoid(46.0) == 0
    loss = mstep_rows(z, one, zero, u) - mstep_rows(z, one, zero, u, strength=0.0)
    # 1 - f t = (1 - f) + (1 - t) - ... = 2 exp(-46) up to exp(-92)
    np.testing.assert_allclose(loss.item(), 46 - np.log(2), rtol=1e-12)


def test_the_minimum_over_z_is_the_closed_form():
    rng = np.random.default_rng(1)
    q, t = rng.uniform(0.05, 0.95, (2, 50))
    z = torch.zeros(1, 50, dtype=torch.float64, requires_grad=True)
    target, u = (torch.from_numpy(v).reshape(1, -1) for v in (q, np.log(t / (1 - t))))
    optimizer = torch.optim.LBFGS([z], max_iter=500, tolerance_grad=1e-13, tolerance_change=0,
                                  line_search_fn="strong_wolfe")  # fmt: skip

    def closure():
        optimizer.zero_grad()
        loss = mstep_rows(z, target, torch.zeros_like(z), u).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    np.testing.assert_allclose(sigmoid(z.detach())[0], m_step_optimum(q, t), atol=1e-7)


def test_the_mean_is_weighted_and_takes_two_logits():
    z, q, y, u, tested = random_rows()
    weight = torch.rand(1, N, dtype=torch.float64)
    rows = Rows(torch.zeros(N, 1), {"y": y, "u": u, "tested": tested, "weight": weight})
    logits = torch.stack([0.7 * torch.ones_like(z), z + 0.7], dim=-1)
    expected = (mstep_rows(z, q, y, u) * weight).sum() / weight.sum()
    torch.testing.assert_close(mstep_loss(logits, q, rows)[0], expected)
