"""Groups through the propensity network: three ways to the same numbers."""

import numpy as np
import pytest
import torch

from dcem.engine import MLP, Fleet
from dcem.methods.propensity import for_group, logits_by_group, with_group
from dcem.methods.support import Support

GROUPS, FEATURES, ROWS, NETWORKS = 4, 7, 3000, 3


@pytest.fixture
def networks():
    architecture = MLP(GROUPS * FEATURES + GROUPS - 1, (16, 8))
    flat = torch.stack([architecture.initial(seed) for seed in range(NETWORKS)]).double()
    return architecture, flat.requires_grad_()


@pytest.mark.parametrize("own_rows", [False, True])
@pytest.mark.parametrize("empty_group", [False, True])
def test_by_group_gives_the_logits_and_gradients_of_the_interactions(
    networks, own_rows, empty_group
):
    architecture, flat = networks
    generator = torch.Generator().manual_seed(0)
    shape = (NETWORKS, ROWS) if own_rows else (ROWS,)
    X = torch.randn(*shape, FEATURES, generator=generator, dtype=torch.float64)
    group = torch.randint(0, GROUPS - empty_group, shape, generator=generator)
    plain = architecture.logits(flat, with_group(X, group, GROUPS))
    sorted_ = logits_by_group(architecture, flat, X, group, GROUPS)
    torch.testing.assert_close(sorted_, plain, rtol=1e-12, atol=1e-12)
    upstream = torch.randn(plain.shape, generator=generator, dtype=torch.float64)
    gradients = [
        torch.autograd.grad((logits * upstream).sum(), flat)[0] for logits in (plain, sorted_)
    ]
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-9)


def test_one_group_from_the_features_alone(networks):
    architecture, flat = networks
    X = torch.randn(50, FEATURES, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for code in range(GROUPS):
        small, own = for_group(architecture, flat, code, GROUPS)
        expected = architecture.logits(flat, with_group(X, torch.full((50,), code), GROUPS))
        torch.testing.assert_close(small.logits(own, X), expected)


def test_testing_probability_of_each_group(networks):
    architecture, flat = networks
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    support = Support(np.zeros((1, FEATURES), np.float32), 1.0, shares)
    X = np.random.default_rng(0).standard_normal((200, FEATURES))
    propensity = Fleet(architecture, flat.detach())
    each = support.testing_probability(X, propensity)
    for code in range(GROUPS):
        inputs = with_group(torch.from_numpy(X), torch.full((200,), code), GROUPS)
        np.testing.assert_allclose(each[:, code], propensity.predict(inputs).mean(0), rtol=1e-9)
    averaged = support.of(X, propensity)["testing_probability"]
    np.testing.assert_allclose(averaged, each @ shares)
