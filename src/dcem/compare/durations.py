"""How long a comparison will take, step by step, and how long a fit.

All seconds are those of one core of the machine on which the parts of a comparison were measured,
table by table; `pace` is how many times as long this machine takes, as busy as it is.
`speed/bench_steps.py` holds both against what it then took.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache

import numpy as np
from joblib import cpu_count

from dcem.compare.fitting import at_once, cost_of, fit_steps, step_names
from dcem.compare.planted import FAMILIES, PLANTED_ROWS, PLANTING, TRAIN_SHARE
from dcem.compare.run import DOING, JUDGING, MAX_ROWS
from dcem.estimation.cross_fitting import modelling
from dcem.estimation.effects import ASKED, ASKED_PEOPLE, EXPLAINED_ROWS, TESTING_ROWS
from dcem.learners import Sample, make_learner
from dcem.methods.choosing import DEFAULT
from dcem.methods.registry import entry_of
from dcem.parallel import one_thread
from dcem.table.labels import SelectiveLabels

START = 2.5  # of a process, which imports
AS_MEASURED = 0.125  # seconds of the work that tells the pace


@cache
def pace() -> float:
    """How many times as long this machine takes, from a small network trained a few times."""
    rng = np.random.default_rng(0)
    X, label = rng.normal(size=(2000, 5)), rng.integers(0, 2, 2000).astype(float)
    took = []
    with one_thread():
        for _ in range(7):
            begun = time.perf_counter()
            make_learner("perceptron", 0).fit(Sample(X, label, np.ones(len(X))))
            took.append(time.perf_counter() - begun)
    # the first one may have imported; in a mean, the turns of other programs count
    return float(np.mean(took[1:])) / AS_MEASURED


def fit_seconds(problem: SelectiveLabels, method: str = DEFAULT) -> tuple[float, float]:
    """What the fit of a saved model takes, and asking what drives its score, and testing."""
    n, width = problem.X.shape
    fit = 1.5 + 1e-4 * float(problem.tested.sum()) + 7e-7 * n * width  # with two cores
    fit += 3e-6 * min(n, 10_000) * width  # trees and networks of many features
    fit *= 2 / min(cpu_count(), 2) * cost_of(method) / cost_of(DEFAULT)
    if problem.positives_only:
        return fit, 0.0
    asking = 0.3 + asked_rows(n, width) * (7e-6 + 1.6e-7 * width)
    learnt, remembered = min(n, 2 * TESTING_ROWS), min(n, EXPLAINED_ROWS)
    return fit, asking + width * (1.7e-6 * learnt + 8e-7 * remembered)


def asked_rows(rows: int, width: int) -> int:
    """How many rows a model is asked about, to tell what drives it."""
    return min(3 * width * min(rows, ASKED_PEOPLE), ASKED)


def compare_steps(
    problem: SelectiveLabels,
    methods: Sequence[str],
    *,
    max_rows: int | None = MAX_ROWS,
    n_folds: int = 5,
    split: bool = False,
    planted: int = 3,
) -> dict[str, float]:
    """What a comparison will tell its `progress`, in order, and the seconds of each step.

    `split`: whether people to judge by are given. Where there are cores for it, fits go on in
    other processes while the two models are cross-fitted and scores judged: these steps then take
    longer, and less is left of the fits when it is their turn.
    """
    most = len(problem) if split or max_rows is None else max_rows
    rows, width = min(len(problem), most), problem.X.shape[1]
    if problem.positives_only:  # no models of who is tested, nothing planted
        steps = fit_steps(DOING, methods, n_folds, rows, width)
        return {step: cost / at_once(steps) for step, cost in steps.items()} | {JUDGING: 1.0}
    parts, learnt = (1, rows) if split else (n_folds, rows * (n_folds - 1) // n_folds)
    batches = [fit_steps(DOING, methods, parts, learnt, width)]
    if planted:
        usable = [name for name in methods if not entry_of(name).needs_truth]
        few = round(TRAIN_SHARE * min(rows, PLANTED_ROWS))
        tables = planted * len(FAMILIES)
        batches.append(fit_steps(PLANTING, usable, tables, few, width, single=True))
    cores, waiting = cpu_count(), [0.0] * len(batches)  # what processes have before them

    def here(cost: float) -> float:
        """The time of work in this process, beside which others go on with the fits."""
        if not any(waiting):
            return cost
        done = cores * cost
        for place, left in enumerate(waiting):
            waiting[place], done = max(0.0, left - done), max(0.0, done - left)
        return cost * (cores + 1) / cores

    def begin(place: int) -> None:
        if at_once(batches[place]) > 1:
            start = 0.0 if any(at_once(one) > 1 for one in batches[:place]) else START * cores
            waiting[place] = sum(batches[place].values()) + start

    begin(0)
    cells = rows * (width + problem.n_groups)
    found = {
        modelling(name, number, n_folds): here(cost)
        for name, cost in (
            ("who is tested", 0.05 + 7e-7 * cells),
            ("what a test would show", 0.05 + 5e-7 * cells * float(problem.tested.mean())),
        )
        for number in range(1, n_folds + 1)
    }
    if planted:
        begin(1)
    for place, steps in enumerate(batches):
        if at_once(steps) > 1:  # some are done: the longest, which are told first
            done, waiting[place] = sum(steps.values()) - waiting[place], 0.0
            for step, cost in steps.items():
                before = min(cost, done)
                found[step], done = (cost - before) / cores, done - before
        else:
            found |= {step: here(cost) for step, cost in steps.items()}
        if place == 0:
            each = rows * (6.5e-5 + 1e-5 * problem.n_groups)
            costs = [each] * len(methods)
            costs[0] += 5e-6 * asked_rows(rows, width)
            found |= zip(step_names(JUDGING, len(methods)), map(here, costs), strict=True)
    return found


def drawing_seconds(n_methods: int) -> float:
    """The seconds in which the page of a comparison is drawn, which come after it."""
    return 1.5 + 0.4 * n_methods
