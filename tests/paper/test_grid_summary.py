"""The grid's paired intervals hold what they promise, in worlds whose truth is known."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.fixture(scope="module")
def summary():
    sys.path.append(str(EXPERIMENTS))
    spec = importlib.util.spec_from_file_location("grid_summary", EXPERIMENTS / "grid_summary.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def covered(interval, worlds, truth):
    return np.mean([low <= truth <= high for _, low, high in map(interval, worlds)])


def test_recurring_boundaries_are_one_observation_each(summary):
    """Forty settings that share their boundaries: counting each would cover far too seldom."""
    rng = np.random.default_rng(0)
    shape = (400, 40, 12)
    worlds = 0.1 + rng.normal(size=(400, 1, 12)) + 0.5 * rng.normal(size=shape)
    assert 0.92 < covered(summary.over_boundaries, worlds, 0.1) < 0.98
    naive = worlds.std(axis=(1, 2)) / np.sqrt(480) * 1.96
    assert np.mean(np.abs(worlds.mean(axis=(1, 2)) - 0.1) < naive) < 0.6


@pytest.mark.parametrize(("draw", "boundary"), [(0.0, 1.0), (1.0, 0.0), (0.7, 0.7), (0.0, 0.0)])
def test_boundaries_and_draws_both_recur(summary, draw, boundary):
    rng = np.random.default_rng(1)
    worlds = 0.1 + draw * rng.normal(size=(400, 5, 1)) + boundary * rng.normal(size=(400, 1, 12))
    worlds = worlds + 0.5 * rng.normal(size=(400, 5, 12))
    assert covered(summary.over_boundaries_and_draws, worlds, 0.1) > 0.92


def test_equal_methods_are_rarely_told_apart_and_clear_ones_always(summary):
    rng = np.random.default_rng(2)
    false = sum(sum(summary.clearly(rng.normal(size=(100, 12)))) > 0 for _ in range(200))
    assert false / 200 < 0.09
    table = rng.normal(size=(100, 12)) * 0.01
    table[:30] += 0.1
    table[30:40] -= 0.1
    table[99] = 0.0  # no difference anywhere
    better, worse = summary.clearly(table)
    assert (better, worse) == (30, 10)


def test_differences_are_those_of_one_data_set(summary):
    rows = [
        {"q_y": 0.5, "k": k, "q_t": 2.0, "phase": phase, "seed": 0, "method": method}
        | {"auc": k + phase / 1000 + (method == "dcem") * 0.1, "roc_gap": 0.1}
        for k in (1.0, 2.0)
        for phase in (0, 30, 60)
        for method in ("dcem", "tested-only")
    ]
    table = summary.paired(pd.DataFrame(rows).sample(frac=1, random_state=0), "auc")
    assert table.shape == (2, 3)
    np.testing.assert_allclose(table, 0.1)
