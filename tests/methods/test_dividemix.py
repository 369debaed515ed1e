"""DivideMix: every step recomputed with plain modules, and what the repairs change."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, softmax

from dcem.methods import fit_many
from dcem.methods.dividemix import MIXTURES, DivideMixClassifier, _low_loss
from dcem.methods.mixture import fit_two_normals
from dcem.methods.noise import Noise, partners, slots_of
from dcem.table.labels import SelectiveLabels

SMALL = {
    "hidden": (8,),
    "steps": 30,
    "learning_rate": 1e-2,
    "warm_up": 10,
    "ramp": 5,
    "random_state": 3,
    "preprocess": None,
}


def problem(n: int, seed: int = 0) -> SelectiveLabels:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    truth = (X[:, 0] + 0.5 * rng.normal(size=n) > 0.5).astype(float)
    tested = rng.random(n) < 0.6
    return SelectiveLabels.from_arrays(
        X, np.where(tested, truth, np.nan), group=rng.integers(0, 2, n)
    )


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)).double()


def clean_labels(losses: torch.Tensor, variant: str) -> torch.Tensor:
    scaled = (losses - losses.min()) / (losses.max() - losses.min())
    mixture = fit_two_normals(
        scaled[None], torch.ones(1, len(losses)).double(), **MIXTURES[variant]
    )
    return mixture.probability_of_lower(scaled[None])[0]


def sharpen(p: torch.Tensor) -> torch.Tensor:
    return p**2 / (p**2).sum(1, keepdim=True)


def plain_dividemix(rows: SelectiveLabels, variant: str, weight: float) -> torch.Tensor:
    """One pair of networks, one step an epoch, in two-class probabilities and boolean masks."""
    n = len(rows)
    nets = [network(3), network(4)]
    optimizers = [torch.optim.Adam(net.parameters(), 1e-2, weight_decay=5e-4) for net in nets]
    X = torch.tensor(rows.X).float().double()
    y = torch.tensor(rows.y_imputed).long()
    noise = Noise([3, 4], torch.device("cpu"), torch.float64)
    ones = torch.ones(2, n)
    draws = [np.random.default_rng(seed).beta(4, 4, 20) for seed in (3, 4)]
    for epoch in range(30):
        if epoch < 10:
            for net, optimizer in zip(nets, optimizers, strict=True):
                out = net(X)
                entropy = -(softmax(out, 1) * out.log_softmax(1)).sum(1).mean()
                optimizer.zero_grad()
                (cross_entropy(out, y) - entropy).backward()
                optimizer.step()
            continue
        with torch.no_grad():
            outs = [net(X) for net in nets]
        if variant == "published":
            clean = [clean_labels(cross_entropy(sum(outs), y, reduction="none"), variant)] * 2
        else:
            clean = [clean_labels(cross_entropy(o, y, reduction="none"), variant) for o in outs]
        noise.advance()
        partner = partners(noise, ones, slots_of(ones))
        for m in (0, 1):
            with torch.no_grad():
                outs = [net(X) for net in nets]  # the second sees what the first has learnt
            both = sum(softmax(o, 1) for o in outs) / 2
            w = clean[1 - m]
            target = both
            if variant == "corrected":
                one_hot = nn.functional.one_hot(y, 2).double()
                refined = w[:, None] * one_hot + (1 - w)[:, None] * softmax(outs[m], 1)
                target = torch.where((w > 0.5)[:, None], refined, both)
            target = sharpen(target)
            b = draws[m][epoch - 10]
            share = max(b, 1 - b)
            mixed = share * X + (1 - share) * X[partner[m]]
            target = share * target + (1 - share) * target[partner[m]]
            out = nets[m](mixed)
            p = softmax(out, 1)
            trusted = w > 0.5
            loss = -(target * out.log_softmax(1)).sum(1)[trusted].mean()
            ramp = min(1, (epoch - 10) / 5)
            loss = loss + weight * ramp * (p - target)[~trusted].square().mean()
            loss = loss + (0.5 * torch.log(0.5 / p.mean(0))).sum()
            optimizers[m].zero_grad()
            loss.backward()
            optimizers[m].step()
    return torch.stack(
        [torch.cat([p.detach().reshape(-1) for p in net.parameters()]) for net in nets]
    )


@pytest.mark.parametrize(("variant", "weight"), [("published", 50.0), ("corrected", 25.0)])
def test_every_step_is_that_of_a_plain_loop(variant, weight):
    rows = problem(160)
    fitted = DivideMixClassifier(
        **SMALL, variant=variant, unlabelled_weight=weight, dtype="float64"
    ).fit_problem(rows)
    expected = plain_dividemix(rows, variant, weight)
    start = (
        DivideMixClassifier(**SMALL | {"steps": 0}, dtype="float64").fit_problem(rows).fleet_.flat
    )
    assert (fitted.fleet_.flat - start).abs().max() > 0.05
    torch.testing.assert_close(fitted.fleet_.flat, expected, atol=1e-6, rtol=0)


def test_the_score_is_the_mean_of_both_networks():
    rows = problem(100)
    fitted = DivideMixClassifier(**SMALL).fit_problem(rows)
    members = fitted.fleet_.predict(torch.tensor(rows.X).float())
    assert members.shape == (2, 100)
    np.testing.assert_allclose(fitted.predict_proba(rows.X)[:, 1], members.mean(0), atol=1e-6)
    assert fitted.clean_.shape == (100,)


def test_protected_positives_are_never_doubted():
    """Rare positives have the high losses: unprotected, they are taken for the mistakes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    truth = (rng.random(600) < 0.5 * (X[:, 0] > 0.7)).astype(float)
    rows = SelectiveLabels.from_arrays(X, np.where(rng.random(600) < 0.6, truth, np.nan))
    settings = SMALL | {"steps": 60}
    positive = rows.y_imputed == 1
    plain = DivideMixClassifier(**settings).fit_problem(rows)
    protected = DivideMixClassifier(**settings, protect_positives=True).fit_problem(rows)
    assert plain.clean_[positive].mean() < 0.2 < plain.clean_[~positive].mean()
    assert (protected.clean_[positive] == 1).all()
    gain = [
        one.predict_proba(X)[positive, 1].mean() - one.predict_proba(X)[~positive, 1].mean()
        for one in (plain, protected)
    ]
    assert gain[1] > gain[0] + 0.1


@pytest.mark.parametrize("variant", ["published", "corrected"])
@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_an_empty_part_costs_nothing_and_stays_finite(variant, probability, monkeypatch):
    """All labels clean, or none: the mean over no rows must not become NaN."""
    monkeypatch.setattr(
        DivideMixClassifier,
        "_split",
        lambda self, one, two: torch.full((2, *one.rows["clean"].shape), probability),
    )
    fitted = DivideMixClassifier(**SMALL, variant=variant).fit_problem(problem(60))
    assert torch.isfinite(fitted.fleet_.flat).all()


def test_equal_losses_cannot_be_split():
    loss, weight = torch.full((2, 10), 0.3), torch.ones(2, 10)
    for settings in MIXTURES.values():
        assert torch.isfinite(_low_loss(loss, weight, settings)).all()


@pytest.mark.parametrize("variant", ["published", "corrected"])
def test_a_fleet_gives_single_fits(variant):
    problems = [problem(n, seed) for n, seed in ((120, 1), (90, 2), (120, 3))]
    settings = SMALL | {"variant": variant, "dtype": "float64"}
    together = fit_many(DivideMixClassifier(**settings), problems, random_states=[3, 4, 3])
    for part, one, state in zip(problems, together, [3, 4, 3], strict=True):
        alone = DivideMixClassifier(**settings | {"random_state": state}).fit_problem(part)
        torch.testing.assert_close(one.fleet_.flat, alone.fleet_.flat, atol=1e-6, rtol=0)
        np.testing.assert_allclose(one.clean_, alone.clean_, atol=1e-5)


def test_members_are_pairs_of_their_own():
    fitted = DivideMixClassifier(**SMALL, n_members=2).fit_problem(problem(100))
    assert len(fitted.fleet_) == 4
    assert len(torch.unique(fitted.fleet_.flat, dim=0)) == 4


def test_minibatches_split_once_in_a_pass():
    fitted = DivideMixClassifier(**SMALL, batch_size=32).fit_problem(problem(150))
    assert np.isfinite(fitted.predict_proba(problem(150).X)).all()


def test_a_budget_within_the_warm_up():
    fitted = DivideMixClassifier(**SMALL | {"steps": 5}).fit_problem(problem(60))
    assert np.isfinite(fitted.predict_proba(problem(60).X)).all()


@pytest.mark.parametrize("settings", [{"prior": 1.0}, {"temperature": 0.0}, {"variant": "other"}])
def test_impossible_parameters_are_refused(settings):
    with pytest.raises(ValueError, match="must"):
        DivideMixClassifier(**SMALL, **settings).fit_problem(problem(60))
