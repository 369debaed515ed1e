"""Three ways to the same logits and gradients, and the initial weights of PyTorch itself."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from dcem.engine import MLP, fused
from dcem.engine.architectures import BLOCK_ROWS, _Blocked


def plain_module(sizes: tuple[int, ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def test_initial_weights_are_those_of_torch_under_the_same_seed():
    mlp = MLP(5, (7, 3))
    torch.manual_seed(11)
    module = plain_module(mlp.sizes)
    expected = torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])
    assert torch.equal(mlp.initial(11), expected)


def test_logits_are_those_of_a_torch_module():
    mlp = MLP(5, (7, 3))
    torch.manual_seed(11)
    module = plain_module(mlp.sizes).double()
    X = torch.randn(20, 5, dtype=torch.float64)
    flat = mlp.initial(11).double().unsqueeze(0)
    torch.testing.assert_close(mlp.logits(flat, X)[0], module(X), rtol=0, atol=1e-12)


def random_case(n_rows: int, own_rows: bool, hidden: tuple[int, ...], networks: int = 3):
    mlp = MLP(6, hidden)
    generator = torch.Generator().manual_seed(2)
    flat = torch.stack([mlp.initial(seed) for seed in range(networks)]).double()
    shape = (networks, n_rows, 6) if own_rows else (n_rows, 6)
    X = torch.randn(*shape, generator=generator, dtype=torch.float64)
    upstream = torch.randn(networks, n_rows, 2, generator=generator, dtype=torch.float64)
    return mlp, flat, X, upstream


@pytest.mark.parametrize("own_rows", [False, True])
@pytest.mark.parametrize("hidden", [(), (9,), (9, 5), (9, 5, 4)])
def test_blocked_equals_stacked(own_rows, hidden):
    # more than one block, the last one ragged
    mlp, flat, X, upstream = random_case(BLOCK_ROWS + 17, own_rows, hidden)
    results = []
    for way in (lambda f: mlp.stacked(f, X), lambda f: _Blocked.apply(f, X, mlp)):
        parameters = flat.clone().requires_grad_()
        logits = way(parameters)
        (gradient,) = torch.autograd.grad(logits, parameters, upstream)
        results.append((logits.detach(), gradient))
    (stacked, g_stacked), (blocked, g_blocked) = results
    torch.testing.assert_close(blocked, stacked, rtol=0, atol=1e-12)
    torch.testing.assert_close(g_blocked, g_stacked, rtol=1e-10, atol=1e-10)


def test_blocked_gradient_by_differences():
    mlp, flat, X, upstream = random_case(5, False, (4, 3), networks=2)
    assert torch.autograd.gradcheck(
        lambda f: (_Blocked.apply(f, X, mlp) * upstream).sum(), (flat.requires_grad_(),)
    )


def test_gradients_in_the_inputs_take_the_stacked_path():
    mlp, flat, X, _ = random_case(2000, False, (4,))
    X.requires_grad_()
    (gradient,) = torch.autograd.grad(mlp.logits(flat, X).sum(), X)
    assert gradient.abs().sum() > 0


@pytest.mark.cuda
@pytest.mark.parametrize("own_rows", [False, True])
@pytest.mark.parametrize(("hidden", "n_inputs"), [((64, 64), 2), ((17, 33), 5), ((128, 96), 40)])
def test_the_fused_kernel_equals_stacked_in_double_precision(own_rows, hidden, n_inputs):
    networks, n_rows = 5, 1000 + 13
    mlp = MLP(n_inputs, hidden)
    generator = torch.Generator().manual_seed(2)
    shape = (networks, n_rows, n_inputs) if own_rows else (n_rows, n_inputs)
    X = torch.randn(*shape, generator=generator).cuda()
    flat = torch.stack([mlp.initial(seed) for seed in range(networks)]).cuda()
    upstream = torch.randn(networks, n_rows, 2, generator=generator).cuda()
    # the widest needs more shared memory than most cards have, and then takes the stacked path
    assert fused.supports(mlp, flat, X) or max(hidden) > 64
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        results = []
        for _ in range(2):  # twice: the sum over slots has a fixed order
            parameters = flat.clone().requires_grad_()
            logits = mlp.logits(parameters, X)
            (gradient,) = torch.autograd.grad(logits, parameters, upstream)
            results.append((logits.detach(), gradient))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
    parameters = flat.double().requires_grad_()
    expected = mlp.stacked(parameters, X.double())
    (expected_gradient,) = torch.autograd.grad(expected, parameters, upstream.double())
    torch.testing.assert_close(results[0][0].double(), expected.detach(), rtol=0, atol=2e-5)
    scale = float(expected_gradient.abs().max())
    torch.testing.assert_close(results[0][1].double(), expected_gradient, rtol=0, atol=2e-5 * scale)
