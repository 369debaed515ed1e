"""The ROC gap's chance and limits, where rows carry masses instead of labels."""

import numpy as np
import pytest
from scipy.special import expit

from dcem import metrics
from dcem.metrics.absolute import debiased
from dcem.metrics.gap import GRID, Ranking, compare_curves


def world(seed, sizes=(300, 300), steep=1.5, noise=(0.0, 0.0)):
    """Groups with one ROC curve (but for `noise` in the score), the last tested the least.

    Inverse-propensity masses with the true probabilities: weights differ between groups.
    """
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    x = rng.normal(size=len(group))
    y = rng.random(len(group)) < expit(1.5 * x - 0.8)
    place = group / (len(sizes) - 1)
    testing = expit(0.8 - 1.6 * place + steep * place * x)
    inverse = (rng.random(len(group)) < testing) / testing
    score = x + np.asarray(noise)[group] * rng.normal(size=len(group))
    return score, inverse * y, inverse * ~y, group


def judged(seed, n_resamples=80, **settings):
    return compare_curves(
        *world(seed, **settings),
        n_resamples=n_resamples,
        level=0.95,
        rng=np.random.default_rng(seed),
    )


def test_of_complete_labels_is_the_metric():
    rng = np.random.default_rng(0)
    y, group = rng.integers(2, size=300), np.arange(300) % 3
    score = rng.normal(size=300) + y
    found = compare_curves(score, y * 1.0, 1.0 - y, group, n_resamples=3, level=0.9, rng=rng)
    known = metrics.roc_gaps(y, score, group)
    assert found.value == pytest.approx([known[pair] for pair in found.pairs], abs=0.01)
    assert known[found.pair] == max(known.values())


def test_a_curve_of_masses_that_step_back_rises():
    rng = np.random.default_rng(0)
    positive = rng.normal(0.3, 0.5, 200)
    curve = Ranking(rng.normal(size=200), positive, 1 - positive, np.arange(200)).curve()
    assert positive.min() < 0
    assert np.all(np.diff(curve) >= 0)
    assert len(curve) == len(GRID)


@pytest.mark.parametrize("decimals", [0, 17])
def test_moved_people_have_the_curve_they_are_moved_to(decimals):
    score, positive, negative, _ = world(0, sizes=(2000, 1))
    ranking = Ranking(score.round(decimals), positive, negative, np.arange(2001))
    wanted = GRID**0.3
    moved = ranking.moved_to(wanted)
    assert moved.curve() == pytest.approx(wanted, abs=0.02)
    assert np.sort(moved.positive[moved.positive > 0]) == pytest.approx(
        np.sort(positive[positive > 0])
    )


def test_few_rows_that_carry_the_weight_call_for_caution():
    rng = np.random.default_rng(0)
    y, score, person = rng.integers(2, size=400), rng.normal(size=400), np.arange(400)
    even = Ranking(score, y * 1.0, 1.0 - y, person).caution
    heavy = np.where(person < 8, 50.0, 1.0)
    uneven = Ranking(score, heavy * y, heavy * (1 - y), person).caution
    assert 1 <= even < 1.02
    assert uneven > 1.1


def test_equal_curves_are_seldom_called_different_although_weights_differ():
    """Permuting groups instead calls them different in a third of such tables."""
    called = [judged(seed).p_value[0] < 0.05 for seed in range(60)]
    assert np.mean(called) <= 0.12


@pytest.mark.parametrize("noise", [(3.0, 0.0), (0.0, 3.0)], ids=["first", "second"])
def test_either_group_may_be_the_worse_one(noise):
    """Permuted groups had no power where the group tested less is the better one."""
    called = [judged(seed, sizes=(600, 600), noise=noise).p_value[0] < 0.05 for seed in range(12)]
    assert np.mean(called) >= 0.75


def test_limits_hold_zero_exactly_where_chance_explains_the_gap():
    for seed in range(12):
        found = judged(seed, sizes=(100, 200, 300), noise=(0.5, 0.0, 0.0))
        clear = found.p_value.min() < 0.05
        assert (found.largest[0] > 0) == clear
        assert found.largest[0] <= found.value.max() <= found.largest[1]
        assert np.all(found.low <= found.value)
        assert np.all(found.value <= found.high)


def test_rows_of_one_person_count_together():
    score, positive, negative, group = world(3)
    repeated = [np.tile(column, 4) for column in (score, positive, negative, group)]
    settings = {"n_resamples": 60, "level": 0.95}
    alone, honest, naive = (
        compare_curves(*rows, person, **settings, rng=np.random.default_rng(0))
        for rows, person in (
            ((score, positive, negative, group), None),
            (repeated, np.tile(np.arange(len(score)), 4)),
            (repeated, None),
        )
    )
    assert honest.by_chance.mean() == pytest.approx(alone.by_chance.mean(), rel=0.05)
    assert naive.by_chance.mean() < 0.7 * alone.by_chance.mean()


def test_a_difference_no_larger_than_its_noise_is_none() -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, size=(400, 20))
    assert debiased(np.full(20, 1e-4), noise, 0.95).value == 0
    assert debiased(np.full(20, 0.2), noise, 0.95).value == pytest.approx(0.2, rel=0.05)
