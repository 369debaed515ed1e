"""The optimisers are torch's, network by network."""

import pytest
import torch

from dcem.engine import SGD, Adam

STEPS = 60


def walk(optimizer, start: torch.Tensor) -> torch.Tensor:
    """Minimise a quartic with a curved valley, all rows of `start` at once."""
    flat = start.clone()
    optimizer.bind(flat)
    for _ in range(STEPS):
        x = flat.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(objective(x), x)
        optimizer.update(flat, gradient)
    return flat


def objective(x: torch.Tensor) -> torch.Tensor:
    return ((x[..., 0] - 1) ** 2 + 5 * (x[..., 1] - x[..., 0] ** 2) ** 2).sum()


def torch_walk(make, start: torch.Tensor) -> torch.Tensor:
    parameter = torch.nn.Parameter(start.clone())
    optimizer = make([parameter])
    for _ in range(STEPS):
        optimizer.zero_grad()
        objective(parameter).backward()
        optimizer.step()
    return parameter.detach()


START = torch.tensor([[-0.5, 0.3], [0.2, -0.4], [1.5, 2.0]], dtype=torch.float64)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_is_torch_adam(decay):
    ours = walk(Adam(0.02, weight_decay=decay), START)
    theirs = torch_walk(lambda p: torch.optim.Adam(p, lr=0.02, weight_decay=decay), START)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize(("momentum", "nesterov"), [(0.0, False), (0.9, False), (0.9, True)])
def test_sgd_is_torch_sgd(decay, momentum, nesterov):
    kw = {"weight_decay": decay, "momentum": momentum, "nesterov": nesterov}
    ours = walk(SGD(0.005, **kw), START)
    theirs = torch_walk(lambda p: torch.optim.SGD(p, lr=0.005, **kw), START)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("make", [Adam, lambda lr: SGD(lr, momentum=0.9)])
def test_reset_forgets_the_past_in_place(make):
    optimizer = make(0.01)
    walk(optimizer, START)
    tensors = dict(optimizer.state)
    optimizer.reset()
    assert all(optimizer.state[name] is tensor for name, tensor in tensors.items())
    flat, fresh = START.clone(), START.clone()
    optimizer.update(flat, torch.ones_like(flat))
    new = make(0.01)
    new.bind(fresh)
    new.update(fresh, torch.ones_like(fresh))
    assert torch.equal(flat, fresh)
