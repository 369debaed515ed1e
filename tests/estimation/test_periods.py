"""Rows along time: blocks to judge in, results that are late, what models see."""

from itertools import pairwise

import numpy as np
import pytest

from dcem.estimation.cross_fitting import Features
from dcem.estimation.folds import time_blocks
from dcem.estimation.periods import late_results, latest_rows, periods
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError


def rows(n: int = 2000, *, late: bool = False, seed: int = 0, times: int = 500) -> SelectiveLabels:
    rng = np.random.default_rng(seed)
    time = rng.integers(0, times, n).astype(float)
    chance = np.where(late & (time >= 0.93 * times), 0.1, 0.5)
    y = np.where(rng.random(n) < chance, rng.random(n) < 0.4, np.nan)
    return SelectiveLabels.from_arrays(
        rng.normal(size=(n, 2)), y, tested=~np.isnan(y), time=time, id=rng.integers(0, n // 2, n)
    )


def test_blocks_follow_time_and_hold_each_time_once():
    problem = rows()
    block = time_blocks(problem, 5)
    ends = [(problem.time[block == k].min(), problem.time[block == k].max()) for k in range(6)]
    assert all(last < first for (_, last), (first, _) in pairwise(ends))
    assert 0.45 < (block == 0).mean() < 0.55


def test_too_few_times_make_fewer_blocks_or_none():
    assert time_blocks(rows(times=3), 5).max() == 2
    with pytest.raises(InputError, match="different times"):
        time_blocks(rows(times=1), 5)


def test_a_past_without_both_classes_is_refused():
    problem = rows()
    y = np.where(problem.time < 300, np.where(problem.tested, 0.0, np.nan), problem.y_obs)
    past = SelectiveLabels.from_arrays(problem.X, y, tested=problem.tested, time=problem.time)
    with pytest.raises(InputError, match="both classes"):
        time_blocks(past, 5)


def test_late_results_are_found_where_they_begin_and_seldom_elsewhere():
    found = late_results(rows(late=True))
    assert 440 <= found.at <= 480
    assert found.after.value < 0.2 < found.before.value
    assert not any(late_results(rows(600, seed=seed)) for seed in range(60))


def test_how_few_are_tested_since_is_not_told():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(1000) < 0.4, rng.random(1000) < 0.4, np.nan)
    y[900:] = np.nan
    y[[905, 930, 960]] = 1
    problem = SelectiveLabels.from_arrays(rng.normal(size=(1000, 1)), y, time=np.arange(1000))
    found = late_results(problem)
    assert found.at == 900
    assert not found.after.estimable
    assert not found.before.estimable  # the total less these
    assert "%" not in found.words
    y[900:] = np.nan
    problem = SelectiveLabels.from_arrays(problem.X, y, time=problem.time)
    assert late_results(problem).words.endswith("until then were tested, 0 % since.")


def test_periods_are_about_equal_and_the_latest_tests_are_late():
    problem = rows()
    code, starts = periods(problem, 4)
    assert np.bincount(code).min() > 450
    assert len(starts) == 4
    chosen = latest_rows(problem, 0.25)
    assert problem.time[chosen].min() > problem.time[~chosen].max()
    assert chosen[problem.tested].mean() == pytest.approx(0.25, abs=0.01)


def test_nuisance_models_see_the_time():
    problem = rows(50)
    features = Features.of(problem)
    np.testing.assert_array_equal(features.take(np.arange(50))[:, 2], problem.time)
    assert features.width == 3
