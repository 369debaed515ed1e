"""Sets of outcomes that hold the true one with a stated probability, whatever the model is worth.

A person's set holds a label if its predicted probability is not among the lowest that people with
that label had (Vovk, Gammerman and Shafer 2005; for each label by itself, so that a rare outcome is
not simply left out of every set). "positive", "negative", "either"; "neither" where the person is
unlike those of both labels.

Among the *tested* that needs no assumption but that people are exchangeable. For *everybody* the
tested represent others: a person with features x and label y counts

    w(x, y) = P(x, y) / P(x, y | tested)  ~  (e + (1 - e) r) / e

with r = P(y | x, untested) / P(y | x, tested), which is 1 if features explain testing (Tibshirani,
Barber, Candès and Ramdas 2019). If what is unmeasured has the strength gamma, r lies between limits
that follow from m(x), and the sets are made for the worst weights within them: the smallest below
the cut, the largest above (Jin, Ren and Candès 2023). Where tests err, each result counts for both
labels, by its unbiased stand-in of the truth (Sesia, Wang and Tong 2024).

Sets that hold the outcome of nine in ten people may do so of six in ten in a group. Where groups
are known, cuts are made within each (Mondrian), and coverage is that of every group; where a group
has too few tests of a label, its people keep it. Probabilities e and m are estimated by models
that have not seen the person, and so is the coverage, on people whose labels did not make the cut.

V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World", 2005. R. Tibshirani
et al., "Conformal prediction under covariate shift", NeurIPS 2019. Y. Jin, Z. Ren and E. Candès,
"Sensitivity analysis of individual treatment effects: a robust conformal inference approach", PNAS
2023. M. Sesia, Y. Wang and X. Tong, "Adaptive conformal classification with noisy labels", Journal
of the Royal Statistical Society B 2024.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from dcem.estimation.influence import FEWEST_PEOPLE, People
from dcem.estimation.outcomes import Unseen, tilted
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import tellable_shares
from dcem.table.labels import SelectiveLabels

SET_LEVEL = 0.9
SETS = ("neither", "negative", "positive", "either")  # by 1 * negative + 2 * positive


def weight_limits(
    label: int,
    testing: np.ndarray,
    risk: np.ndarray,
    gamma: float,
    tilt: np.ndarray | float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest w(x, y) of people with this label [n].

    `tilt` is the odds ratio that gamma counts from, where a prevalence is known.
    """
    untested = (tilted(risk, tilt / gamma), tilted(risk, tilt * gamma))
    ratios = (
        [one / risk for one in untested]
        if label
        else [(1 - one) / (1 - risk) for one in reversed(untested)]
    )
    low, high = ((testing + (1 - testing) * one) / testing for one in ratios)
    return low, high


def cut(
    strange: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    level: float = SET_LEVEL,
    people: float | None = None,
) -> float:
    """The strangeness up to which a label is kept, so that `level` of those who have it keep it.

    `strange` [n] is 1 minus the probability that people with the label were given; they count from
    `low` to `high`. A new person counts as much as the mean of the `people` who have it does (None:
    all n). 1, and everybody keeps the label, where there are too few. Those whose test errs may
    count less than nothing: the cut is where enough keep the label from there on.
    """
    people = len(strange) if people is None else people
    if people <= 0:
        return 1.0
    order = np.argsort(strange, kind="stable")
    below = np.cumsum(low[order])
    above = high.sum() - np.cumsum(high[order])
    too_few = np.flatnonzero(below < level * (below + above + high.sum() / people))
    first = too_few[-1] + 1 if len(too_few) else 0
    return float(strange[order[first]]) if first < len(strange) else 1.0


def cuts(
    y: np.ndarray,
    predicted: np.ndarray,
    testing: np.ndarray,
    risk: np.ndarray,
    gamma: float,
    weight: np.ndarray,
    tilt: np.ndarray,
) -> np.ndarray:
    """The cuts of a negative and of a positive [2], from tested people [n] with labels `y`.

    Where tests err, `y` are unbiased stand-ins of the truth.
    """
    found = []
    for label, has in enumerate((1 - y, y)):
        own = has != 0
        strange = 1 - predicted[own] if label else predicted[own]
        limits = weight_limits(label, testing[own], risk[own], gamma, tilt[own])
        ends = [(weight * has)[own] * limit for limit in limits]
        found.append(cut(strange, np.minimum(*ends), np.maximum(*ends), people=has.sum()))
    return np.array(found)


def sets(predicted: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Which set each person has [n], as a place in `SETS`; `at` are the two cuts [2] or [2, n]."""
    return np.asarray(1 * (predicted <= at[0]) + 2 * (1 - predicted <= at[1]))


def covered(y: np.ndarray | int, found: np.ndarray) -> np.ndarray:
    """Whether a set holds the label [n], or this one."""
    return np.asarray(found & np.where(np.equal(y, 1), 2, 1) > 0)


# -- on a table --------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutOfPart:
    """What models that have not seen them say of the people learnt from; all arrays are [n]."""

    problem: SelectiveLabels
    part: np.ndarray
    testing: np.ndarray  # P(tested), kept away from 0 where it is divided by
    outcome: np.ndarray  # P(outcome | tested)
    predicted: np.ndarray  # risk at a strength of 1, corrected
    unseen: Unseen  # outcomes, as stated rates have them


def cuts_of(seen: OutOfPart, among: np.ndarray, strengths: Iterable[float]) -> np.ndarray:
    """The cuts of sets from these tested rows (a mask) [1 + groups, 1 + strengths, 2].

    Of all people together, then of each group, where there are several; for the tested, then for
    everybody at each strength.
    """
    problem = seen.problem
    gammas = [float(one) for one in strengths]
    groups = range(problem.n_groups if problem.n_groups > 1 else 0)
    tilt = seen.unseen.tilt + np.zeros(len(problem))
    columns = seen.unseen.y, seen.predicted, seen.testing, seen.outcome, problem.weights, tilt
    found = []
    for mine in (among, *(among & (problem.group == code) for code in groups)):
        y, predicted, e, m, w, own = (one[mine] for one in columns)
        rows = [cuts(y, predicted, np.ones(len(y)), m, 1.0, w, own)]
        rows += [cuts(y, predicted, e, m, gamma, w, own) for gamma in gammas]
        found.append(np.stack(rows))
    # rounded outwards: no person's probability is kept
    return np.minimum(np.ceil(1000 * np.stack(found)) / 1000, 1.0)


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
        at = cuts_of(seen, tested & ~here, (1.0,))
        own = problem.group[here] + 1 if len(at) > 1 else np.zeros(here.sum(), np.int64)
        for row in (0, 1):
            found[row, here] = sets(seen.predicted[here], at[own, row].T)
    # a result of an imperfect test is so much of a positive, and the rest of a negative
    among_tested = y * covered(1, found[0]) + (1 - y) * covered(0, found[0])
    positive, negative = replace(seen.unseen, inverse=tested / seen.testing).weighted()
    with_it = positive * covered(1, found[1])
    without = negative * covered(0, found[1])

    told = tellable_shares(problem, among_tested < 0.5, tested)  # by how many are missed

    def share(kept: np.ndarray, of: np.ndarray, may_be_told: bool = True) -> Estimate:
        behind = people.count(of > 0)
        if behind < FEWEST_PEOPLE:
            return Estimate(nan, reason=f"it rests on fewer than {FEWEST_PEOPLE} people")
        if not may_be_told:
            return Estimate(nan, reason="withheld: it would show a small count")
        found = people.quotient(kept, of)
        return found.estimate(people.person, share=True, behind=behind)

    return tuple(
        Coverage(
            name,
            share(among_tested * (tested & mine), (tested & mine) * 1.0, told[name]),
            share((with_it + without) * mine, (positive + negative) * mine),
            share(with_it * mine, positive * mine),
            people.mean(found[1] == 3, mine).value if mine.sum() >= FEWEST_PEOPLE else nan,
        )
        for name, mine in problem.parts().items()
    )
