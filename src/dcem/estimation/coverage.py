"""How often conformal sets hold the outcome, by group: measured on people who did not make them."""

from __future__ import annotations

from dataclasses import dataclass
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
    everybody: Estimate  # sets made for everybody, each tested person standing for 1/e people
    positives: Estimate  # the same among those with the outcome
    either: float  # sets for everybody that hold both outcomes


def measure_coverage(seen: OutOfPart) -> tuple[Coverage, ...]:
    """Coverage at an odds ratio of 1, of everybody and of each group.

    The sets of one part of the people are made from the tested of the others.
    """
    problem = seen.problem
    people, y, tested = People.of(problem), problem.y_imputed, problem.tested
    found = np.zeros((2, len(problem)), np.int64)
    for number in np.unique(seen.part):
        here = seen.part == number
        at = cuts_of(seen, tested & ~here, people.weight)
        own = problem.group[here] + 1 if len(at) > 1 else np.zeros(here.sum(), np.int64)
        for row in (0, 1):
            found[row, here] = conformal.sets(seen.predicted[here], at[own, row].T)
    held = [conformal.covered(y, one).astype(float) for one in found]
    stands = tested / seen.testing

    def share(of: np.ndarray, among: np.ndarray, plain: bool = False) -> Estimate:
        rows = among > 0
        behind = people.count(rows)
        missed = people.count(rows & (of == 0))
        if behind < FEWEST_PEOPLE:
            return Estimate(nan, reason=f"fewer than {FEWEST_PEOPLE} people stand behind it")
        if plain and 0 < missed < FEWEST_TESTED:
            return Estimate(nan, reason="withheld: it would show a small count")
        found = people.mean(of, among)
        return found.estimate(people.person, share=True, behind=behind)

    told = []
    for name, mine in parts(problem).items():
        told.append(
            Coverage(
                name,
                share(held[0], (tested & mine).astype(float), plain=True),
                share(held[1], stands * mine),
                share(held[1], stands * mine * (y == 1)),
                float(np.mean(found[1][mine] == 3)) if mine.sum() >= FEWEST_PEOPLE else nan,
            )
        )
    return tuple(told)
