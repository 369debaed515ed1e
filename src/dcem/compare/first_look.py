"""What can be known of a table quickly: overlap, by quick models.

The models of who is tested, and of who belongs to which group, are fitted to a few thousand rows.
That says whether the tested represent the others, as far as few rows can say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dcem.estimation import overlap
from dcem.estimation.folds import person_folds, within_budget
from dcem.estimation.influence import FEWEST_PEOPLE
from dcem.estimation.nuisances import fit_nuisances
from dcem.estimation.results import Overlap
from dcem.table.disclosure import people_of
from dcem.table.labels import SelectiveLabels

ROWS = 4000
FOLDS = 2


@dataclass(frozen=True)
class FirstLook:
    """Overlap, from a few thousand rows."""

    rows: int  # that were looked at
    overlap: Mapping[str, Overlap]  # EVERYBODY, then groups; empty where all or none are tested
    predictable: float  # AUC of who is tested; near 1 the untested resemble nobody tested
    too_few: tuple[str, ...] = ()  # groups with enough tests in the table, not among these rows


def first_look(problem: SelectiveLabels) -> FirstLook:
    """Look at a few thousand rows of a table."""
    some = problem.subset(within_budget(problem, ROWS, 0))
    fold = person_folds(some, FOLDS, 0)
    found = fit_nuisances(some, fold, 0, groups=True, outcomes=False)
    reach = None
    if some.extent == "some":
        reach = overlap.assess(some, found.testing, found.testing_each.values(), known=found.known)
    testing = [report.auc for report in found.reports if report.name == "who is tested"]
    return FirstLook(
        len(some),
        reach.overlap if reach else {},
        testing[0] if testing else float("nan"),
        _too_few(problem, some),
    )


def _too_few(problem: SelectiveLabels, some: SelectiveLabels) -> tuple[str, ...]:
    here, there = (
        people_of(one.group[one.tested], one.person[one.tested], one.n_groups)
        for one in (problem, some)
    )
    few = (there < FEWEST_PEOPLE) & (here >= FEWEST_PEOPLE)
    return tuple(problem.group_names[code] for code in np.flatnonzero(few))
