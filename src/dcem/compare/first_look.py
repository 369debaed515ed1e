"""What can be known of a table quickly: overlap by quick models, and how long the rest takes.

The models of who is tested, and of who belongs to which group, are fitted to a few thousand rows.
That says whether the tested represent the others, as far as few rows can say; and how long an
audit of the table will take on this machine. A small network, trained meanwhile, says the same of
fit and comparison (`dcem.compare.times`). Other programs slow a machine down, so a time is told as
a range.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dcem.compare.times import pace, seconds
from dcem.estimation import overlap
from dcem.estimation.folds import person_folds, within_budget
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
        seconds(problem, unit / max(len(some), LEAST), pace()) if found.reports else {},
        _too_few(problem, some),
    )


def _too_few(problem: SelectiveLabels, some: SelectiveLabels) -> tuple[str, ...]:
    here, there = (
        np.bincount(one.group[one.tested], minlength=one.n_groups) for one in (problem, some)
    )
    few = (there < FEWEST_PEOPLE) & (here >= FEWEST_PEOPLE)
    return tuple(problem.group_names[code] for code in np.flatnonzero(few))
