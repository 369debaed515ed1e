"""The two bounded losses, recomputed from their definitions."""

import numpy as np
import pytest
import torch

from dcem.engine import Rows
from dcem.methods import fit_many
from dcem.methods.robust_losses import (
    GeneralizedJensenShannonClassifier,
    TruncatedLqClassifier,
    jensen_shannon,
)
from dcem.table.labels import SelectiveLabels

SMALL = {"hidden": (8,), "steps": 30, "learning_rate": 1e-2, "random_state": 0, "patience": None}


def problem(n: int, seed: int = 0) -> SelectiveLabels:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    tested = rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 1]))
    y = np.where(tested, (X[:, 0] + rng.normal(size=n) > 0).astype(float), np.nan)
    return SelectiveLabels.from_arrays(X, y, group=rng.integers(0, 2, n))


def rows(y: list[float], weight: list[float] | None = None) -> Rows:
    target = torch.tensor(y, dtype=torch.float64)
    w = torch.ones_like(target) if weight is None else torch.tensor(weight, dtype=torch.float64)
    return Rows(torch.zeros(len(y), 1), {"target": target, "weight": w})


def logits(z: list[float]) -> torch.Tensor:
    margins = torch.tensor([z], dtype=torch.float64)
    return torch.stack([torch.zeros_like(margins), margins], -1).requires_grad_()


def test_truncated_lq_is_its_definition():
    q, k = 0.3, 0.2
    z, y = [-3.0, -1.0, 0.5, 2.0, 4.0], [1, 1, 0, 1, 0]
    p = 1 / (1 + np.exp(-np.array(z)))
    p = np.where(y, p, 1 - p)
    l_q, l_k = (1 - p**q) / q, (1 - k**q) / q
    expected = ((l_q - l_k) * (l_k >= l_q)).mean()
    found = TruncatedLqClassifier(q=q, k=k)._loss(logits(z), rows(y))
    assert found.item() == pytest.approx(expected, rel=1e-12)
    assert (p < k).any()


def test_rows_below_the_threshold_have_no_gradient():
    out = logits([-3.0, -2.0, -0.5])  # probabilities of class 1: .047, .119, .378
    TruncatedLqClassifier(q=0.5, k=0.1)._loss(out, rows([1, 1, 1])).sum().backward()
    gradient = out.grad[0, :, 1]
    assert gradient[0] == 0
    assert (gradient[1:] < 0).all()


@pytest.mark.parametrize("q", [0.1, 1.0])
def test_with_everybody_left_out_nothing_is_learnt(q):
    fitted = TruncatedLqClassifier(**SMALL, q=q, k=1.0).fit_problem(problem(60))
    initial = fitted.fleet_.architecture.initial(0)
    assert torch.equal(fitted.fleet_.flat[0], initial)


@pytest.mark.parametrize("settings", [{"q": 0.0}, {"q": 1.5}, {"k": 1.1}, {"k": -0.1}])
def test_impossible_parameters_are_refused(settings):
    with pytest.raises(ValueError, match="q must lie"):
        TruncatedLqClassifier(**SMALL, **settings).fit_problem(problem(60))


def kl(p: np.ndarray, q: np.ndarray) -> float:
    inside = p > 0
    return float((p[inside] * np.log(p[inside] / q[inside])).sum())


@pytest.mark.parametrize("copies", [1, 2, 4])
@pytest.mark.parametrize("label_weight", [0.5, 0.2])
def test_divergence_is_the_weighted_sum_of_divergences_from_the_mixture(copies, label_weight):
    rng = np.random.default_rng(copies)
    z = rng.normal(size=(copies, 1, 6)) * 3
    y = np.array([0, 1, 0, 1, 1, 0])
    found = jensen_shannon(torch.from_numpy(z), torch.from_numpy(y).double(), label_weight)
    for n in range(6):
        parts = [np.eye(2)[y[n]]]
        positive = 1 / (1 + np.exp(-z[:, 0, n]))
        parts += [np.array([1 - p, p]) for p in positive]
        weights = [label_weight] + [(1 - label_weight) / copies] * copies
        mixture = sum(w * p for w, p in zip(weights, parts, strict=True))
        divergence = sum(w * kl(p, mixture) for w, p in zip(weights, parts, strict=True))
        scale = -(1 - label_weight) * np.log(1 - label_weight)
        assert found[0, n].item() == pytest.approx(divergence / scale, rel=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_divergence_is_bounded_and_smooth_for_extreme_logits(dtype):
    z = torch.tensor([[[-500.0, -50, 0, 50, 500]]], dtype=dtype, requires_grad=True)
    for label in (0.0, 1.0):
        loss = jensen_shannon(z, torch.full((5,), label, dtype=dtype), 0.5)
        (gradient,) = torch.autograd.grad(loss.sum(), z)
        assert torch.isfinite(gradient).all()
        assert (loss > -1e-6).all()
        assert (loss <= 2 + 1e-6).all()  # log 2 over the scale, one half of log 2


def test_without_noise_more_copies_change_nothing():
    two = GeneralizedJensenShannonClassifier(**SMALL).fit_problem(problem(200))
    four = GeneralizedJensenShannonClassifier(**SMALL, n_distributions=4, noise=0.0).fit_problem(
        problem(200)
    )
    noisy = GeneralizedJensenShannonClassifier(**SMALL, n_distributions=4).fit_problem(problem(200))
    torch.testing.assert_close(two.fleet_.flat, four.fleet_.flat, atol=1e-5, rtol=0)
    assert (two.fleet_.flat - noisy.fleet_.flat).abs().max() > 1e-3


def test_noise_makes_predictions_agree_between_neighbours():
    """With strong noise the consistency term flattens the model."""
    calm, loud = (
        GeneralizedJensenShannonClassifier(**SMALL | {"steps": 200}, n_distributions=3, noise=noise)
        .fit_problem(problem(300))
        .predict_proba(problem(300).X)[:, 1]
        .std()
        for noise in (0.01, 3.0)
    )
    assert loud < 0.7 * calm


@pytest.mark.parametrize("patience", [None, 2])
def test_a_fleet_with_noise_gives_single_fits(patience):
    problems = [problem(120, 1), problem(90, 2), problem(120, 3)]
    settings = SMALL | {"patience": patience}
    method = GeneralizedJensenShannonClassifier(**settings, n_distributions=3)
    together = fit_many(method, problems, random_states=[0, 1, 0])
    for one, part, state in zip(together, problems, [0, 1, 0], strict=True):
        alone = GeneralizedJensenShannonClassifier(
            **settings | {"random_state": state}, n_distributions=3
        )
        alone.fit_problem(part)
        np.testing.assert_allclose(
            one.predict_proba(part.X), alone.predict_proba(part.X), atol=1e-4
        )


def test_noise_in_minibatches():
    fitted = GeneralizedJensenShannonClassifier(**SMALL, n_distributions=3, batch_size=32)
    assert np.isfinite(fitted.fit_problem(problem(200)).predict_proba(problem(200).X)).all()


@pytest.mark.parametrize("settings", [{"n_distributions": 1}, {"label_weight": 1.0}])
def test_impossible_mixtures_are_refused(settings):
    with pytest.raises(ValueError, match="n_distributions must"):
        GeneralizedJensenShannonClassifier(**SMALL, **settings).fit_problem(problem(60))
