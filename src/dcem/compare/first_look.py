"""What can be known of a table in seconds: overlap by quick models, and how long the rest takes.

The models of who is tested, and of who belongs to which group, are fitted to a few thousand rows.
That says whether the tested can speak for the others, as far as few rows can say; and how fast this
machine is with this table, from which the time of each command follows by proportions that were
measured (`speed/bench_steps.py`). Other programs on the machine slow it down, so a time is told as
a range.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dcem.compare.run import MAX_ROWS, within_budget
from dcem.estimation import overlap
from dcem.estimation.cross_fitting import CELLS, ROW_BUDGET
from dcem.estimation.folds import person_folds, usual_folds
from dcem.estimation.influence import FEWEST_PEOPLE
from dcem.estimation.nuisances import fit_nuisances
from dcem.estimation.results import Overlap
from dcem.table.labels import SelectiveLabels

ROWS = 4000
LEAST = 1000  # with fewer rows the time is that of starting
FOLDS = 2
UNSURE = 2.0


@dataclass(frozen=True)
class FirstLook:
    """Overlap and times, from a few thousand rows."""

    rows: int  # that were looked at
    overlap: Mapping[str, Overlap]  # EVERYBODY, then groups; empty where all or none are tested
    predictable: float  # AUC of who is tested; near 1 the untested resemble nobody tested
    seconds: Mapping[str, float]  # of audit, compare and fit, about; empty if none could be timed
    too_few: tuple[str, ...] = ()  # groups with enough tests in the table, not among these rows
    unsure: float = UNSURE  # a time may be so many times as long, or as short


def first_look(problem: SelectiveLabels, random_state: int = 0) -> FirstLook:
    """Look at a few thousand rows of a table."""
    some = problem.subset(within_budget(problem, ROWS, random_state))
    fold = person_folds(some, FOLDS, random_state)
    warm = some.subset(np.arange(min(len(some), 300)))
    fit_nuisances(warm, person_folds(warm, FOLDS, 0), outcomes=False)  # libraries are loaded
    begun = time.perf_counter()
    found = fit_nuisances(some, fold, random_state, groups=True, outcomes=False)
    unit = time.perf_counter() - begun
    varies = bool(some.tested.any() and not some.tested.all())
    reach = None
    if varies:
        reach = overlap.assess(some, found.testing, found.testing_each.values(), known=found.known)
    testing = [report.auc for report in found.reports if report.name == "who is tested"]
    return FirstLook(
        len(some),
        reach.overlap if reach else {},
        testing[0] if testing else float("nan"),
        seconds(problem, unit / max(len(some), LEAST)) if found.reports else {},
        _too_few(problem, some),
    )


def _too_few(problem: SelectiveLabels, some: SelectiveLabels) -> tuple[str, ...]:
    here, there = (
        np.bincount(one.group[one.tested], minlength=one.n_groups) for one in (problem, some)
    )
    few = (there < FEWEST_PEOPLE) & (here >= FEWEST_PEOPLE)
    return tuple(problem.group_names[code] for code in np.flatnonzero(few))


def seconds(problem: SelectiveLabels, unit: float) -> dict[str, float]:
    """What each command takes, from the seconds per row that the quick models took."""
    n, width = problem.X.shape
    most = min(ROW_BUDGET, CELLS // max(width, 1))
    folds = usual_folds(problem)
    fitted = folds * min(n * (folds - 1) / folds, most)  # rows that models are fitted to, in all
    speed = ROWS * unit / (0.15 + 0.017 * width)  # 1: as fast as the machine of these proportions
    return {
        "audit": 1.6 * unit * fitted + 1.2 * ROWS * unit,
        "compare": speed * (20 + 0.01 * min(n, MAX_ROWS)),
        "fit": speed * (1.3 + 0.00021 * n),
    }
