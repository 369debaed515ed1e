"""How often conformal sets hold the outcome, by group: measured on people who did not make them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import nan

import numpy as np

from dcem.estimation import conformal
from dcem.estimation.ends import OutOfPart, cuts_of
from dcem.estimation.influence import FEWEST_PEOPLE, FEWEST_TESTED, People
from dcem.estimation.overlap import parts
from dcem.metrics.estimate import Estimate


@dataclass(frozen=True)
class Coverage:
    """Shares of people whose set holds their outcome, and of sets that say nothing."""

    group: str
    tested: Estimate  # sets made for the tested, among the tested
    everybody: Estimate  # sets made for everybody, tested people standing for others
    positives: Estimate  # the same among those with the outcome
    either: float  # sets for everybody that hold both outcomes


def measure_coverage(seen: OutOfPart) -> tuple[Coverage, ...]:
    """Coverage at a strength of 1, of everybody and of each group.

    The sets of one part of the people are made from the tested of the others.
    """
    problem = seen.problem
    people, y, tested = People.of(problem), seen.unseen.y, problem.tested
    found = np.zeros((2, len(problem)), np.int64)
    for number in np.unique(seen.part):
        here = seen.part == number
        at = cuts_of(seen, tested & ~here, people.weight)
        own = problem.group[here] + 1 if len(at) > 1 else np.zeros(here.sum(), np.int64)
        for row in (0, 1):
            found[row, here] = conformal.sets(seen.predicted[here], at[own, row].T)
    # a result of a test that errs is so much of a positive, and the rest of a negative
    among_tested = y * conformal.covered(1, found[0]) + (1 - y) * conformal.covered(0, found[0])
    positive, negative = replace(seen.unseen, inverse=tested / seen.testing).weighted()
    with_it = positive * conformal.covered(1, found[1])
    without = negative * conformal.covered(0, found[1])

    def share(kept: np.ndarray, of: np.ndarray, plain: bool = False) -> Estimate:
        behind = people.count(of > 0)
        missed = people.count((of > 0) & (kept < 0.5))
        if behind < FEWEST_PEOPLE:
            return Estimate(nan, reason=f"fewer than {FEWEST_PEOPLE} people stand behind it")
        if plain and 0 < missed < FEWEST_TESTED:
            return Estimate(nan, reason="withheld: it would show a small count")
        found = people.quotient(kept, of)
        return found.estimate(people.person, share=True, behind=behind)

    told = []
    for name, mine in parts(problem).items():
        told.append(
            Coverage(
                name,
                share(among_tested * (tested & mine), (tested & mine) * 1.0, plain=True),
                share((with_it + without) * mine, (positive + negative) * mine),
                share(with_it * mine, positive * mine),
                float(np.mean(found[1][mine] == 3)) if mine.sum() >= FEWEST_PEOPLE else nan,
            )
        )
    return tuple(told)
