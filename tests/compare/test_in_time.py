"""Methods judged in the future: nobody's later rows teach, and drift is not flattered."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from dcem.compare.fitting import later_parts
from dcem.compare.run import compare_methods
from dcem.estimation.folds import time_blocks
from dcem.methods import make
from dcem.methods.training_table import hold_out
from dcem.table.labels import SelectiveLabels

NAMES = ["ensemble"]
HOW = {"planted": 0, "n_folds": 3, "n_resamples": 20, "params": {"parts": ("linear",)}}


def drifting(n: int = 2500, drift: float = 2.0, seed: int = 0) -> SelectiveLabels:
    rng = np.random.default_rng(seed)
    x, time = rng.normal(size=(n, 2)), rng.random(n)
    y = rng.random(n) < expit(-1 + x[:, 0] + drift * (time - 0.5))
    tested = rng.random(n) < expit(0.5 * x[:, 0])
    return SelectiveLabels.from_arrays(
        x,
        np.where(tested, y, np.nan),
        tested=tested,
        time=time,
        id=rng.integers(0, n // 2, n),
        group=rng.choice(["a", "b"], n),
    )


def test_models_learn_from_earlier_rows_alone():
    problem = drifting()
    for part in later_parts(problem, time_blocks(problem, 4)):
        assert part.train.time.max() < part.rows.time.min()


def test_a_drift_is_seen_in_time_and_flattered_by_folds():
    problem = drifting()
    in_time = compare_methods(problem, NAMES, **HOW)
    in_folds = compare_methods(replace(problem, time=None), NAMES, **HOW)
    off = [
        one.methods[0].judgements["dr"].calibration_in_the_large["everybody"]
        for one in (in_time, in_folds)
    ]
    assert off[0].high < 0 < off[1].high
    assert [finding.key for finding in in_time.warnings] == ["reach", "judged-later"]
    assert sum(group.people for group in in_time.groups) == pytest.approx(1250, abs=5)
    assert "later than all" in in_time.to_markdown()


def test_the_default_gives_the_risks_of_the_latest_rows():
    problem = drifting()
    late = SelectiveLabels.subset(drifting(seed=1), drifting(seed=1).time > 0.8)
    risks = {}
    for name, rows in (("in time", problem), ("at once", replace(problem, time=None))):
        model = make("ensemble", parts=("linear",), random_state=0).fit_problem(rows)
        risks[name] = model.predict_proba(late.X)[:, 1].mean()
    truth = expit(-1 + late.X[:, 0] + 2 * (late.time - 0.5)).mean()
    assert abs(risks["in time"] - truth) < abs(risks["at once"] - truth) / 2


def test_rows_to_stop_by_are_the_latest():
    problem = drifting()
    learns, held = hold_out(problem, 0.2, 0)
    assert problem.time[learns].max() < problem.time[held].min()
