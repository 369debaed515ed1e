"""Swap sets, KS and kickout without the truth: by hand, and covering a known truth."""

import numpy as np
import pytest
from scipy.special import expit

from dcem import metrics
from dcem.estimation import measures
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.nuisances import Nuisances
from dcem.estimation.outcomes import Masses
from dcem.estimation.swap_sets import safest, swap_set, untested_masses
from dcem.table.labels import SelectiveLabels


def lender(seed: int = 0, n: int = 1500, **more: object) -> tuple:
    """Loans to those at low risk: the table as its models have it exactly, truth, risk, score."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    risk = expit(-1 + 1.2 * X[:, 0] + 0.5 * X[:, 1])
    chance = expit(0.3 - 1.0 * X[:, 0])
    y = (rng.random(n) < risk).astype(float)
    approved = rng.random(n) < chance
    problem = SelectiveLabels.from_arrays(X, np.where(approved, y, np.nan), **more)
    judge = Evaluator(problem, truth=y, nuisances=Nuisances(chance, risk))
    return judge, y, risk, X[:, 0] + 0.3 * X[:, 1]


def test_as_many_as_wanted_are_chosen_and_ties_go_together():
    rank, one = np.array([3.0, 1.0, 2.0, 2.0, 5.0]), np.ones(5)
    assert safest(rank, one, 0.2).tolist() == [False, True, False, False, False]
    assert safest(rank, one, 0.6).tolist() == [False, True, True, True, False]
    assert safest(rank, one, 0.5).tolist() == [False, True, True, True, False]
    assert safest(rank, one, 1.0).all()
    assert safest(rank, np.array([1, 1, 1, 1, 6.0]), 0.1).tolist() == [0, 1, 0, 0, 0]


def test_what_was_not_seen_is_everything_less_what_was():
    judge, *_ = lender()
    tested, y = judge.problem.tested, judge.problem.y_imputed
    e, m = judge.nuisances.truncated_testing, judge.nuisances.outcome
    c = len(tested) / (tested / e).sum()
    plain = np.where(tested, (c / e - 1) * (y - m), m)
    found = untested_masses(judge)
    assert found.positive == pytest.approx(plain)
    assert found.total == pytest.approx((~tested).astype(float))


def test_rates_of_a_swap_set_are_counts_and_cover_the_truth():
    held = dict.fromkeys(("swapped in", "left out", "then", "change"), 0)
    for seed in range(60):
        judge, y, _, score = lender(seed)
        found = swap_set(judge, score)
        tested = judge.problem.tested
        chosen = safest(score, np.ones(len(y)), tested.mean())
        assert found.rate["kept"].value == pytest.approx(y[tested & chosen].mean())
        assert found.rate["swapped out"].value == pytest.approx(y[tested & ~chosen].mean())
        assert sum(found.share.values()) == pytest.approx(1)
        assert found.doubled.value > found.rate["swapped in"].high
        truths = {
            "swapped in": (found.rate["swapped in"], y[~tested & chosen].mean()),
            "left out": (found.rate["left out"], y[~tested & ~chosen].mean()),
            "then": (found.then, y[chosen].mean()),
            "change": (found.change, y[chosen].mean() - y[tested].mean()),
        }
        for name, (told, truth) in truths.items():
            held[name] += told.low <= truth <= told.high
    assert all(times >= 51 for times in held.values()), held


def test_ks_and_kickout_of_complete_labels():
    judge, y, _, score = lender(3)
    of = judge.masses["truth"]
    half = np.arange(len(y)) % 2 == 0
    found = measures.ks(score, of, half)
    assert found.value == pytest.approx(metrics.ks(y, score), abs=0.03)
    assert found.value < metrics.ks(y, score)  # picked by looking
    first, second = safest(score, np.ones(len(y)), 0.5), safest(-score, np.ones(len(y)), 0.5)
    told = judge.kickout("truth", first, second)
    assert told.value == pytest.approx(metrics.kickout(y, first, second))
    left = measures.false_positive_rate(~second, of.among(first))
    moved = []
    for i in (0, 1, 2):  # an influence is what a row moves when it counts a little more
        weight = np.ones(len(y))
        weight[i] += 1e-4
        other = Masses(of.positive * weight, of.negative * weight).among(first)
        moved.append(measures.false_positive_rate(~second, other).value - left.value)
    assert left.influence[:3] == pytest.approx(np.array(moved) / 1e-4, abs=1e-5)


def chosen_by_both(judge: Evaluator, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The safest third by another score, and by this one."""
    weight, other = np.ones(len(score)), judge.problem.X @ np.array([0.5, -0.6])
    return safest(other, weight, 0.3), safest(score, weight, 0.3)


def test_kickout_knows_how_few_are_positive():
    """Of ten to twenty who are known positive, intervals hold; of fewer there are none."""
    many, _, risk, score = lender(10**6, 200_000)
    first, second = chosen_by_both(many, score)
    left = first & ~second
    truth = risk[left].sum() / risk[first].sum() - (1 - risk)[left].sum() / (1 - risk)[first].sum()
    held = []
    for seed in range(300):
        judge, _, _, score = lender(seed, 300)
        first, second = chosen_by_both(judge, score)
        told = judge.kickout("dr", first, second)
        if (judge.problem.y_obs[first] == 1).sum() < 10:
            assert "known to be positive" in told.reason
        else:
            held.append(told.low <= truth <= told.high)
    assert 100 < len(held) < 290
    assert np.mean(held) > 0.92


def test_doubly_robust_ks_covers():
    large = lender(10**6, 200_000)
    truth = metrics.ks(large[2] > np.random.default_rng(0).random(200_000), large[3])
    held = 0
    for seed in range(60):
        judge, y, _, score = lender(seed)
        half = np.random.default_rng(seed).random(len(y)) < 0.5
        told = judge.estimated(measures.ks(score, judge.masses["dr"], half))
        held += told.low <= truth <= told.high
    assert held >= 52


def test_few_people_are_not_told():
    judge, *_ = lender(0, 200)
    nearly = np.where(judge.problem.tested, 0.0, 1.0)
    nearly[np.flatnonzero(judge.problem.tested)[:3]] = 2.0
    assert "fewer than 10" in swap_set(judge, nearly).reason


def test_groups_and_weights():
    rng = np.random.default_rng(0)
    judge, _, _, score = lender(
        1, group=np.where(rng.random(1500) < 0.3, "<65", "other"), weight=rng.random(1500) + 0.5
    )
    found = swap_set(judge, score)
    assert set(found.groups) == {"everybody", "<65", "other"}
    assert found.groups["everybody"][0] == pytest.approx(found.groups["everybody"][1], abs=0.01)


def test_how_few_of_a_group_would_be_chosen_does_not_follow_from_the_others():
    """All forty of a group are tested, and four would be chosen."""
    rng = np.random.default_rng(0)
    small = np.arange(1000) < 40
    x = np.where(small, 1 + rng.random(1000), rng.random(1000))
    x[:4] = 0
    y = np.where(small | (rng.random(1000) < 0.5), rng.random(1000) < 0.3, np.nan)
    problem = SelectiveLabels.from_arrays(x[:, None], y, group=np.where(small, "b", "a"))
    nuisances = Nuisances(np.where(small, 0.95, 0.5), np.full(1000, 0.3))
    found = swap_set(Evaluator(problem, fold=np.arange(1000) % 5, nuisances=nuisances), x).groups
    assert np.isfinite(found["everybody"]).all()
    assert np.isnan([found["a"], found["b"]]).all()


def test_something_unrecorded_that_doubles_the_odds():
    """Of the declined, whose odds are twice those of the approved at equal features."""
    rng = np.random.default_rng(0)
    judge, _, risk, score = lender(0, 6000)
    tested = judge.problem.tested
    worse = 2 * risk / (1 + risk)
    y = np.where(tested, judge.problem.y_imputed, rng.random(6000) < worse)
    found = swap_set(judge, score)
    chosen = safest(score, np.ones(6000), tested.mean())
    assert found.doubled.low < y[~tested & chosen].mean() < found.doubled.high
    assert found.rate["swapped in"].high < y[~tested & chosen].mean()


def test_nothing_is_told_of_those_out_of_reach():
    """Nobody above a bar was approved, and a score that turns people round takes them in."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 1))
    chance = np.where(X[:, 0] < 0.2, 0.9, 1e-6)
    y = (rng.random(1000) < expit(X[:, 0])).astype(float)
    problem = SelectiveLabels.from_arrays(X, np.where(rng.random(1000) < chance, y, np.nan))
    judge = Evaluator(problem, nuisances=Nuisances(chance, expit(X[:, 0])))
    found = swap_set(judge, -X[:, 0])
    assert found.reach < 0.5
    for told in (found.rate["swapped in"], found.then, found.change, found.doubled):
        assert "within reach" in told.reason
    assert found.rate["kept"].estimable or found.rate["swapped out"].estimable
