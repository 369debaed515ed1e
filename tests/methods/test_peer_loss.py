"""Peer losses: what the released code amounts to, and what they are meant to be."""

import numpy as np
import pytest
import torch

from dcem.methods import fit_many
from dcem.methods.peer_loss import FLOOR, GroupPeerLossClassifier, PeerLossClassifier
from dcem.methods.supervised import ObservedLabelsClassifier
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError

SMALL = {"hidden": (8,), "steps": 40, "learning_rate": 1e-2, "random_state": 0, "patience": None}


def problem(n: int, seed: int = 0, share_tested=(0.8, 0.3)) -> tuple[SelectiveLabels, np.ndarray]:
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    X = rng.normal(size=(n, 3))
    truth = (X[:, 0] + 0.3 * rng.normal(size=n) > 0.7).astype(int)
    tested = rng.random(n) < np.array(share_tested)[group]
    y = np.where(tested, truth.astype(float), np.nan)
    return SelectiveLabels.from_arrays(X, y, group=group), truth


def test_published_peer_loss_is_y_obs():
    rows, truth = problem(200)
    published = PeerLossClassifier(**SMALL, variant="published").fit_problem(rows, truth=truth)
    assert torch.equal(
        published.fleet_.flat, ObservedLabelsClassifier(**SMALL).fit_problem(rows).fleet_.flat
    )
    missed = 1 - rows.y_imputed[truth == 1].mean()
    assert published.noise_rate_ == pytest.approx(missed, abs=1e-6)
    assert published.alpha_ == 0


def test_published_group_peer_loss_is_weighted_cross_entropy():
    """A plain PyTorch loop with weights 1 / P(observed | positive, group) from the truth."""
    rows, truth = problem(200)
    settings = SMALL | {"preprocess": None}
    fitted = GroupPeerLossClassifier(**settings, variant="published").fit_problem(rows, truth=truth)
    weight = np.empty(200)
    for g in (0, 1):
        weight[rows.group == g] = 1 / rows.y_imputed[(rows.group == g) & (truth == 1)].mean()
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    X, y = torch.tensor(rows.X).float(), torch.tensor(rows.y_imputed).long()
    for _ in range(40):
        optimizer.zero_grad()
        losses = torch.nn.functional.cross_entropy(network(X), y, reduction="none")
        (losses * torch.from_numpy(weight).float()).mean().backward()
        optimizer.step()
    plain = torch.cat([p.detach().reshape(-1) for p in network.parameters()])
    torch.testing.assert_close(fitted.fleet_.flat[0], plain, atol=1e-5, rtol=0, check_dtype=False)


def peer_columns(method, rows: SelectiveLabels):
    """The loss of one network's log-odds, as `_train` sets it up."""
    seen = {}

    class Spy(type(method)):
        def _loss(self, logits, part):
            seen["rows"] = part
            return super()._loss(logits, part)

    Spy(**method.get_params()).fit_problem(rows)
    return seen["rows"]


def test_corrected_loss_is_the_mean_over_all_pairs_of_peers():
    rows, _ = problem(60)
    method = PeerLossClassifier(**SMALL | {"steps": 1}, noise_rate=0.4, dtype="float64")
    part = peer_columns(method, rows)
    z = np.random.default_rng(3).normal(size=60) * 2
    logits = torch.from_numpy(np.stack([np.zeros(60), z], -1))[None]
    p = 1 / (1 + np.exp(-z))
    loss = -np.log(np.stack([1 - p, p]) + FLOOR)  # [label, row]
    y = rows.y_imputed.astype(int)
    all_pairs = np.mean([[loss[y[k], j] for k in range(60)] for j in range(60)])
    alpha = 0.4 / (1 - 2 * y.mean())
    expected = loss[y, np.arange(60)].mean() - alpha * all_pairs
    assert method._loss(logits, part).item() == pytest.approx(expected, rel=1e-9)


def test_group_loss_takes_peers_and_rates_of_the_own_group():
    rows, _ = problem(60)
    rates = (0.2, 0.6)
    method = GroupPeerLossClassifier(**SMALL | {"steps": 1}, noise_rates=rates, dtype="float64")
    part = peer_columns(method, rows)
    z = np.random.default_rng(3).normal(size=60)
    p = 1 / (1 + np.exp(-z))
    loss = -np.log(np.stack([1 - p, p]) + FLOOR)
    y = rows.y_imputed.astype(int)
    expected = 0.0
    for g, rate in enumerate(rates):
        members = np.flatnonzero(rows.group == g)
        alpha = rate / (1 - 2 * y[members].mean())
        for j in members:
            peers = np.mean([loss[y[k], j] for k in members])
            expected += (loss[y[j], j] - alpha * peers) / (1 - rate) / 60
    logits = torch.from_numpy(np.stack([np.zeros(60), z], -1))[None]
    assert method._loss(logits, part).item() == pytest.approx(expected, rel=1e-9)


def test_alpha_is_that_of_the_paper_and_recovers_the_loss_of_the_truth():
    """For a loss with l(x, 0) + l(x, 1) constant, noisy minus alpha times peer is proportional to
    the clean risk, up to a constant; both sides in exact expectation over labels."""
    rng = np.random.default_rng(0)
    eta, rate = rng.uniform(0, 0.7, 500), 0.45  # P(y | x), missed at random
    prevalence, seen = eta.mean(), (1 - rate) * eta.mean()
    alpha = rate / (1 - 2 * seen)
    of_paper = 1 - (1 - rate) * (2 * prevalence - 1) / (2 * seen - 1)
    assert alpha == pytest.approx(of_paper, rel=1e-12)

    def risk(chance, guess):  # expected absolute error of guesses in [0, 1]
        return np.mean(chance * (1 - guess) + (1 - chance) * guess)

    differences = []
    for _ in range(5):
        guess = rng.random(500)
        peer = risk(np.full(500, seen), guess)
        differences.append(
            risk((1 - rate) * eta, guess) - alpha * peer - (1 - rate) * risk(eta, guess)
        )
    assert np.ptp(differences) < 1e-12


def test_gradients_flow_through_the_peer_term_and_without_noise_it_vanishes():
    rows, _ = problem(300)
    plain = ObservedLabelsClassifier(**SMALL).fit_problem(rows).fleet_.flat
    clean = PeerLossClassifier(**SMALL, noise_rate=0.0).fit_problem(rows)
    noisy = PeerLossClassifier(**SMALL, noise_rate=0.5).fit_problem(rows)
    torch.testing.assert_close(clean.fleet_.flat, plain, atol=1e-4, rtol=0)
    assert (noisy.fleet_.flat - plain).abs().max() > 1e-2


def test_noise_rates_are_estimated_without_truth_where_features_explain_testing():
    rows, truth = problem(3000)
    fitted = GroupPeerLossClassifier(**SMALL | {"steps": 300, "patience": 10}).fit_problem(rows)
    assert not fitted.uses_truth
    for g, missed in enumerate((0.2, 0.7)):
        assert fitted.noise_rate_[g] == pytest.approx(missed, abs=0.08)
    overall = PeerLossClassifier(**SMALL | {"steps": 300}).fit_problem(rows)
    actual = 1 - rows.y_imputed[truth == 1].mean()
    assert overall.noise_rate_ == pytest.approx(actual, abs=0.08)


@pytest.mark.filterwarnings("ignore::dcem.table.messages.DataWarning")
def test_everybody_tested_means_no_noise():
    rows, _ = problem(200, share_tested=(1.0, 1.0))
    fitted = GroupPeerLossClassifier(**SMALL).fit_problem(rows)
    assert fitted.noise_rate_.tolist() == [0, 0]
    assert fitted.alpha_.tolist() == [0, 0]


@pytest.mark.filterwarnings("ignore::dcem.table.messages.DataWarning")
def test_frequent_labels_switch_the_peer_term_off_and_alpha_never_exceeds_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    often = SelectiveLabels.from_arrays(
        X, (np.arange(100) % 4 > 0).astype(float), tested=np.ones(100)
    )
    assert PeerLossClassifier(**SMALL, noise_rate=0.3).fit_problem(often).alpha_ == 0
    half = SelectiveLabels.from_arrays(
        X, (np.arange(100) % 20 < 9).astype(float), tested=np.ones(100)
    )
    assert PeerLossClassifier(**SMALL, noise_rate=0.5).fit_problem(half).alpha_ == 1


@pytest.mark.parametrize("rate", [1.0, -0.1])
def test_impossible_rates_are_refused(rate):
    rows, _ = problem(60)
    with pytest.raises(InputError, match="share of positives"):
        PeerLossClassifier(**SMALL, noise_rate=rate).fit_problem(rows)


def test_one_rate_a_group():
    rows, _ = problem(60)
    with pytest.raises(InputError, match="3 values for 2 groups"):
        GroupPeerLossClassifier(**SMALL, noise_rates=(0.1, 0.2, 0.3)).fit_problem(rows)


def test_the_published_variants_refuse_the_rates_that_they_would_not_use():
    rows, truth = problem(60)
    for method in (
        PeerLossClassifier(**SMALL, noise_rate=0.3),
        GroupPeerLossClassifier(**SMALL, noise_rates=(0.1, 0.2)),
    ):
        with pytest.raises(ValueError, match="computes its noise rates from the truth"):
            method.set_params(variant="published").fit_problem(rows, truth=truth)


def test_truth_is_for_the_published_variant_alone():
    rows, truth = problem(60)
    with pytest.raises(InputError, match="truth"):
        PeerLossClassifier(**SMALL).fit_problem(rows, truth=truth)
    with pytest.raises(InputError, match="truth"):
        GroupPeerLossClassifier(**SMALL, variant="published").fit_problem(rows)


@pytest.mark.parametrize("cls", [PeerLossClassifier, GroupPeerLossClassifier])
@pytest.mark.parametrize("patience", [None, 2])
def test_a_fleet_gives_single_fits(cls, patience):
    settings = SMALL | {"patience": patience}
    problems = [problem(n, seed)[0] for n, seed in ((120, 1), (90, 2), (120, 3))]
    for part, one in zip(problems, fit_many(cls(**settings), problems), strict=True):
        alone = cls(**settings).fit_problem(part)
        np.testing.assert_allclose(one.alpha_, alone.alpha_, atol=1e-5)
        np.testing.assert_allclose(
            one.predict_proba(part.X), alone.predict_proba(part.X), atol=1e-4
        )


@pytest.mark.parametrize("variant", ["corrected", "published"])
@pytest.mark.filterwarnings("ignore:Nobody is tested in group:dcem.DataWarning")
def test_a_group_without_a_seen_positive_is_refused_unless_its_rate_is_given(variant):
    """The weight 1 / (1 - e) would be infinite, and every score NaN."""
    rows, truth = problem(200, share_tested=(0.8, 0.0))
    known = {"truth": truth} if variant == "published" else {}
    with pytest.raises(InputError, match="group 1"):
        GroupPeerLossClassifier(**SMALL, variant=variant).fit_problem(rows, **known)
    given = GroupPeerLossClassifier(**SMALL, noise_rates=[0.2, 0.9]).fit_problem(rows)
    assert np.isfinite(given.predict_proba(rows.X)).all()
    # a level that no row has is no reason
    kept = rows.group == 0
    empty = rows.subset(kept)
    known = {"truth": truth[kept]} if known else {}
    fitted = GroupPeerLossClassifier(**SMALL, variant=variant).fit_problem(empty, **known)
    assert np.isfinite(fitted.predict_proba(rows.X)).all()
