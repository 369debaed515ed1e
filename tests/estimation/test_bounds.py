"""Bounds against brute force over everything that a stated strength allows."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from dcem.estimation import bounds, measures
from dcem.estimation.influence import People
from dcem.estimation.outcomes import Masses, Unseen
from dcem.estimation.ranking import RankedScore, least_lead
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError

E = np.array([0.5, 0.2, 0.8, 0.4])  # P(tested | cell)
M = np.array([0.1, 0.3, 0.5, 0.7])  # P(positive | cell, tested)
SHARE = np.array([0.4, 0.3, 0.2, 0.1])
SCORE = np.array([0.1, 0.2, 0.3, 0.4])
OTHER = np.array([0.2, 0.1, 0.4, 0.3])
GAMMA = 2.0


def untested_risks(gamma, points=9):
    """Every combination of what the untested of the four cells may be, on a grid [worlds, 4]."""
    factor = np.exp(np.linspace(-np.log(gamma), np.log(gamma), points))
    odds = (M / (1 - M))[:, None] * factor  # [cells, points]
    risk = odds / (1 + odds)
    return np.array(
        [[risk[c, k] for c, k in enumerate(ks)] for ks in product(range(points), repeat=4)]
    )


def area(score, risk):
    """AUC of a score over cells of the whole population [worlds]."""
    p, q = SHARE * risk, SHARE * (1 - risk)
    better = (score[:, None] > score) + 0.5 * (score[:, None] == score)
    return np.einsum("wi,ij,wj->w", p, better, q) / (p.sum(axis=1) * q.sum(axis=1))


@pytest.fixture(scope="module")
def world():
    """A population of 5,000 in which every cell is exactly as stated."""
    cell = np.repeat(np.arange(4), (SHARE * 5000).astype(int))
    tested, y = np.zeros(len(cell), bool), np.zeros(len(cell))
    for one in range(4):
        rows = np.flatnonzero(cell == one)
        seen = rows[: round(E[one] * len(rows))]
        tested[seen] = True
        y[seen[: round(M[one] * len(seen))]] = 1
    problem = SelectiveLabels.from_arrays(cell[:, None].astype(float), y, tested=tested)
    return cell, problem, Unseen.of(problem, M[cell], E[cell])


def test_risks_reach_exactly_what_the_strength_allows():
    possible = E * M + (1 - E) * untested_risks(GAMMA)
    low, high = bounds.risk_interval(E, M, GAMMA)
    np.testing.assert_allclose(low, possible.min(axis=0), atol=1e-12)
    np.testing.assert_allclose(high, possible.max(axis=0), atol=1e-12)


def test_no_limit_and_no_doubt():
    np.testing.assert_allclose(bounds.risk_interval(E, M, np.inf), [E * M, E * M + 1 - E])
    np.testing.assert_allclose(bounds.risk_interval(E, M, 1.0), [M, M])


@pytest.mark.parametrize("gamma", [1.3, 2.0, 5.0])
def test_areas_and_their_difference_against_brute_force(world, gamma):
    cell, problem, unseen = world
    possible = E * M + (1 - E) * untested_risks(gamma)
    people = People.of(problem)
    first, second = (RankedScore(s[cell], people.weight) for s in (SCORE, OTHER))
    areas = area(SCORE, possible)
    found = bounds.auc_range(first, unseen, gamma)
    assert found == pytest.approx((areas.min(), areas.max()), abs=1e-3)
    difference = areas - area(OTHER, possible)
    least = bounds.lead(first, second, unseen, people, gamma)
    assert least.value == pytest.approx(difference.min(), abs=1e-3)
    assert least.low < least.value


def test_net_benefit_against_brute_force(world):
    cell, problem, unseen = world
    acted, cut = (SCORE >= 0.3), 0.25
    possible = E * M + (1 - E) * untested_risks(GAMMA)
    each = (possible - (1 - possible) * cut / (1 - cut)) @ (SHARE * acted)
    people = People.of(problem)
    low, high = bounds.net_benefit_limits(acted[cell], cut, unseen, people, GAMMA)
    ends = [
        people.mean(acted[cell] * (unseen.outcomes(one) - cut) / (1 - cut))
        for one in (1 / GAMMA, GAMMA)
    ]
    reach = [norm.ppf(0.975) * people.error(one) for one in ends]
    assert (low, high) == pytest.approx((each.min() - reach[0], each.max() + reach[1]), abs=1e-9)


def test_limits_hold_where_the_unmeasured_is_as_strong_as_stated():
    """In half of the tables the ends alone miss: each is an estimate."""
    rng, held, ends = np.random.default_rng(0), [], []
    n, gamma = 400, 2.0
    for _ in range(200):
        score = np.repeat([0.2, 0.8], n // 2)
        tested = rng.random(n) < 0.5
        m = np.where(score > 0.5, 0.5, 0.2)
        odds = np.where(score > 0.5, 1 / gamma, gamma)  # what an adversary would choose
        hidden = m * odds / (1 - m + m * odds)
        y = rng.random(n) < np.where(tested, m, hidden)
        problem = SelectiveLabels.from_arrays(score[:, None], np.where(tested, y, np.nan))
        unseen, people = Unseen.of(problem, m, np.full(n, 0.5)), People.of(problem)
        ranked = RankedScore(score, people.weight)
        risk = (m + hidden) / 2
        truth = measures.auc(score, Masses(risk, 1 - risk)).value
        low, high = bounds.auc_limits(ranked, unseen, people, gamma)
        held.append(low < truth < high)
        ends.append(bounds.auc_range(ranked, unseen, gamma)[0] < truth)
    assert np.mean(ends) < 0.7
    assert np.mean(held) > 0.93


def test_who_is_decided(world):
    cell, problem, _ = world
    low, high = bounds.risk_interval(E[cell], M[cell], GAMMA)
    decided = bounds.decide(low, high, 0.3)
    np.testing.assert_array_equal(decided[[0, 2000, 3500, 4500]], [-1, 0, 1, 1])
    found = bounds.shares(problem, [decided])["everybody"]
    assert [found.act[0], found.leave[0], found.open[0]] == pytest.approx([0.3, 0.4, 0.3])


def test_people_with_rows_on_both_sides_are_not_counted_twice():
    rng = np.random.default_rng(0)
    id_, weight = np.arange(400) // 4, np.where(np.arange(400) % 4 < 2, 3.0, 1.0)
    problem = SelectiveLabels.from_arrays(
        rng.normal(size=(400, 1)), np.tile([1.0, 0.0, np.nan, np.nan], 100), id=id_, weight=weight
    )
    decided = np.tile([1, -1, 0, 0], 100)
    found = bounds.shares(problem, [decided])["everybody"]
    assert [found.act[0], found.leave[0], found.open[0]] == pytest.approx([0.375, 0.375, 0.25])


def test_a_row_of_weight_two_decides_as_two_rows_do():
    rng = np.random.default_rng(0)
    risk, y = rng.random(1200), np.tile([1.0, 0.0, np.nan], 400)
    twice = np.repeat(np.arange(1200), 1 + (risk > 0.5))
    told = []
    for rows, weight in ((np.arange(1200), 1.0 + (risk > 0.5)), (twice, None)):
        problem = SelectiveLabels.from_arrays(risk[rows, None], y[rows], weight=weight)
        ends = risk[rows] / 2, (1 + risk[rows]) / 2
        told.append(bounds.bound_decisions(problem, risk[rows], lambda _, ends=ends: ends, 2.0))
    assert told[0].cut == pytest.approx(told[1].cut, abs=0.01)
    assert told[0].bands[2.0].risk == pytest.approx(told[1].bands[2.0].risk, abs=0.005)


@pytest.mark.parametrize("gamma", [0.5, 0, np.inf, np.nan, 11, -2])
def test_what_is_not_a_strength(gamma):
    with pytest.raises(InputError, match="odds ratio from 1"):
        bounds.check_strength(gamma)


def test_a_hidden_column_is_as_strong_as_said():
    """Linear log-odds in normal columns: the odds ratio that hiding one leaves is known."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 2))
    e = 1 / (1 + np.exp(-0.8 * X[:, 0] - 0.3 * X[:, 1]))
    m = 1 / (1 + np.exp(2 - 0.7 * X[:, 0]))
    found = bounds.strengths_of_columns(X, ["a", "b"], e, m)
    tested = rng.random(len(X)) < e
    log_odds = -2 + 0.7 * X[:, 0]
    seen = log_odds[tested].mean() - log_odds[~tested].mean()  # b is independent of a
    assert np.log(found["a"]) == pytest.approx(0.56, abs=0.02)
    assert np.log(found["a"]) == pytest.approx(seen, rel=0.25)
    assert found["b"] == pytest.approx(1, abs=0.02)


def test_the_least_lead_of_a_score_with_ties_over_another():
    """Seven people, and every way of giving each the lowest or the highest outcome."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        scores = rng.integers(0, 3, (2, 7)).astype(float)
        weight, low = rng.uniform(0.5, 2, 7), rng.uniform(0.05, 0.4, 7)
        high = low + rng.uniform(0.1, 0.5, 7)
        first, second = (
            (one[:, None] > one) + 0.5 * (one[:, None] == one) for one in scores
        )  # [7, 7]

        def lead(risk, wins=first - second, weight=weight):
            p, q = weight * risk, weight * (1 - risk)
            return p @ wins @ q / (p.sum() * q.sum())

        found = least_lead(*(RankedScore(one, weight) for one in scores), low, high)
        every = (np.where(choice, high, low) for choice in product([False, True], repeat=7))
        assert lead(found) == pytest.approx(min(map(lead, every)))
    ranked = RankedScore(np.array([1.0, 3.0, 3.0, 7.0]), np.array([1.0, 2.0, 4.0, 8.0]))
    assert ranked.outranked().tolist() == [0.5, 4.0, 4.0, 11.0]


def test_constant_columns_do_not_blow_up_rounding() -> None:
    draw = np.random.default_rng(0)
    X = np.stack([draw.normal(5, 2, 500), np.full(500, 2.7), np.full(500, np.nan)], axis=1)
    X[draw.random(X.shape) < 0.1] = np.nan
    found = bounds.standardized(X)
    assert not found[:, 1:].any()
    assert found[:, 0].std() == pytest.approx(1)
    assert found[:, 0][~np.isnan(X[:, 0])].mean() == pytest.approx(0, abs=1e-12)
