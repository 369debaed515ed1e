"""How much of a positive, and how much of a negative, each row represents.

Every metric of a ranking is a sum over rows of the mass they carry on either side: with complete
labels a row is wholly positive or wholly negative. Where labels are missing, a row can still be
given masses whose expectation, at its features, is the right one, and the same formulas then
estimate the same quantities. With t = tested, y = label, w = weight of the row, e = its probability
of being tested and m = its risk given a test:

========== ======================= ========== =================================================
target     positive                total      right if
========== ======================= ========== =================================================
tested     w t y                   w t        the tested are the people one asks about
ipw        w t y / e               w t / e    features and group explain testing; e is right
dr         w (m + c t (y - m) / e) w          the same, and e *or* m is right
truth      w y                     w          the truth is the truth
========== ======================= ========== =================================================

The negative mass is the rest of the total. The factor c, near 1, makes the weights t / e of each
group sum to its size (Hajek), which steadies the correction. The doubly robust mass may be negative
or exceed w for a single row: it is a prediction plus a correction, and right on average only.

*If tests err* (`dcem.table.imperfect`), y is the unbiased stand-in of the truth that a result
gives, and m the risk of the truth, both by the stated rates; nothing else changes. A stated rate
may be uncertain: masses are kept at one standard error more and less of it, too (`Moved`), and
`uncertain` turns the difference that this makes to a number into one more influence on it.

*If untested people differ from tested ones with the same features*: let their odds be gamma times
those of the tested. gamma = 1 is the assumption of `dr`; gamma = 0 and infinity are the limits
without any assumption (Manski 1989). Given gamma the outcomes are identified, and only gamma is
unknown (Robins, Rotnitzky and Scharfstein 2000: exponential tilting). `Unseen` gives each row

    q = y, or gamma odds / (1 + gamma odds) if untested,
        + (c/e - 1) dq/dm (y - m) if tested,

whose average is the one-step estimate at gamma. At gamma = 1 it is the doubly robust mass: one
right model is enough. At any other gamma the model of the outcome must be right, because the odds
of the untested are gamma times *its* odds; the correction makes small errors of it second order,
and no more. (It is Robins, Rotnitzky and Scharfstein's own: the derivative of q is what their
weights of tested positives and negatives come to.) A tested positive stands, besides itself, for
(1/e - 1) gamma / (1 + (gamma - 1) m) untested people, a negative for (1/e - 1) / (1 + (gamma - 1)
m): the weights of `ipw` at gamma.

*If a prevalence is known* (`dcem.estimation.known_rates`), gamma is not free: it is the one at
which the mean of q is the stated rate, of everybody or of each group. `ipw` and `dr` are then those
at that gamma, and what is uncertain about it moves every number.

References: J. Robins, A. Rotnitzky and L. Zhao, "Estimation of regression coefficients when some
regressors are not always observed", JASA 1994 (the doubly robust mass); V. Chernozhukov et al.,
"Double/debiased machine learning", Econometrics Journal 2018 (why e and m are fitted on other
rows).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isinf
from typing import Any, NamedTuple, Protocol

import numpy as np

from dcem.estimation.influence import Statistic
from dcem.estimation.known_rates import Tilts, find_tilts
from dcem.estimation.results import Target
from dcem.table.imperfect import unbiased
from dcem.table.known_rates import PREVALENCE_ASSUMPTION
from dcem.table.labels import SelectiveLabels

POPULATION = ("ipw", "dr")  # targets that let the tested represent others
ASSUMED = "features and group explain who is tested, and everybody had a real chance of a test"
TARGETS = {
    "tested": Target(
        "tested",
        "among the tested",
        "Right only for the people who were tested.",
    ),
    "ipw": Target(
        "ipw",
        "everybody, inverse propensity",
        f"Right for everybody if {ASSUMED}, and the model of who is tested is right.",
    ),
    "dr": Target(
        "dr",
        "everybody, doubly robust",
        f"Right for everybody if {ASSUMED}, and either the model of who is tested or the model of "
        "what a test would show is right.",
    ),
    "truth": Target(
        "truth",
        "against the truth",
        "Right for everybody if the truth column is the truth.",
    ),
}
KNOWN = (
    "Right for everybody if everybody had a real chance of a test, and the models of who is tested "
    f"and of what a test would show are right. {PREVALENCE_ASSUMPTION}"
)


class Moved(NamedTuple):
    """What something uncertain does: masses or outcomes at one step more and at one step less.

    `influence` is that of each row on it [n], in steps, and behind them those of people nobody met
    (a stated rate's own error).
    """

    up: Any
    down: Any
    influence: np.ndarray

    def map(self, change: Callable[[Any], Any]) -> Moved:
        """The same with both ends changed."""
        return Moved(change(self.up), change(self.down), self.influence)


@dataclass(frozen=True)
class Masses:
    """Positive and negative mass of each row [n]."""

    positive: np.ndarray
    negative: np.ndarray
    moved: tuple[Moved, ...] = ()  # by the stated rates of a test, and by known prevalence

    @property
    def total(self) -> np.ndarray:
        """Mass of each row on either side [n]."""
        return self.positive + self.negative

    @staticmethod
    def both_ends(moved: Moved, rows: np.ndarray) -> tuple[Any, Any, np.ndarray]:
        """Both masses of some rows (positions) at either end, and what moves them."""
        n = len(moved.up.positive)
        ends = moved.map(lambda end: (end.positive[rows], end.negative[rows]))
        return ends.up, ends.down, np.append(moved.influence[rows], moved.influence[n:])

    def among(self, chosen: np.ndarray, negatives: np.ndarray | None = None) -> Masses:
        """The same rows, those not chosen without mass; negatives may be chosen otherwise."""
        others = chosen if negatives is None else negatives
        moved = tuple(one.map(lambda end: end.among(chosen, negatives)) for one in self.moved)
        return Masses(self.positive * chosen, self.negative * others, moved)


class Movable(Protocol):
    """What stated rates that are uncertain move."""

    @property
    def moved(self) -> tuple[Moved, ...]:
        """By each of them."""


def uncertain(number: Callable[[Any], Statistic], of: Movable) -> Statistic:
    """A number, of masses or outcomes say, that knows how uncertain the stated rates are."""
    found = number(of)
    for one in of.moved:
        step = (number(one.up).value - number(one.down).value) / 2
        found = found + Statistic(0.0, step * one.influence)
    return found


def at_other_rates(
    problem: SelectiveLabels, at: Callable[[SelectiveLabels], Any]
) -> tuple[Moved, ...]:
    """What `at` makes of the problem at more and at less of each uncertain rate of its test."""
    test = problem.imperfect_test
    ends = test.moved() if test is not None else []
    return tuple(
        Moved(up, down, behind(problem, place)).map(
            lambda test: at(replace(problem, imperfect_test=test))
        )
        for place, (up, down) in enumerate(ends)
    )


def behind(problem: SelectiveLabels, place: int) -> np.ndarray:
    """The influence of a person nobody met [n + place + 1], at their place behind the rows."""
    influence = np.zeros(len(problem) + place + 1)
    influence[-1] = 1.0
    return influence


def seen_outcomes(problem: SelectiveLabels) -> np.ndarray:
    """The outcome of each tested row [n], 0 of the untested: unbiased where tests err."""
    y = problem.y_imputed
    if problem.imperfect_test is None:
        return y
    return np.where(problem.tested, unbiased(y, problem.imperfect_test.rates), 0.0)


def true_risk(
    problem: SelectiveLabels, shown: np.ndarray, group: np.ndarray | int | None = None
) -> np.ndarray:
    """The probability of the outcome, from that of a positive test [n]; the same if none errs.

    The model of `shown` does not know which test a row had, but may know its group: so it is
    turned back by the mean rates of a group's tests. `group` is whose test it is, if not the row's.
    """
    if problem.imperfect_test is None:
        return shown
    rates = np.broadcast_to(mean_rates(problem, group), (len(shown), 2))
    return np.clip(unbiased(shown, rates), 1e-4, 1 - 1e-4)


def mean_rates(problem: SelectiveLabels, group: np.ndarray | int | None = None) -> np.ndarray:
    """The mean rates of the tests of each row's group [n, 2], or of one group [2]."""
    test = problem.imperfect_test
    assert test is not None
    rates = np.empty((problem.n_groups, 2))
    for code in range(problem.n_groups):
        mine = problem.tested & (problem.group == code)
        rates[code] = test.rates[mine if mine.any() else problem.tested].mean(axis=0)
    return np.asarray(rates[problem.group if group is None else group])


def stand_for(problem: SelectiveLabels, testing: np.ndarray) -> np.ndarray:
    """How many people each tested row represents, 1 / `testing` [n]; the untested nobody.

    Where nobody was tested the model knows no chance of a test, and nothing is divided by it.
    """
    nobody = np.zeros(len(problem))
    return np.divide(1.0, testing, out=nobody, where=problem.tested)


def masses(
    target: str,
    problem: SelectiveLabels,
    *,
    testing: np.ndarray | None = None,
    outcome: np.ndarray | None = None,
    truth: np.ndarray | None = None,
    within: np.ndarray | None = None,
) -> Masses:
    """The masses of a target (see the table above).

    Parameters
    ----------
    target
        "tested", "ipw" (needs `testing`), "dr" (both) or "truth" (needs `truth`).
    problem
        The rows.
    testing
        P(tested | features, group) of each row [n], away from 0, from a model that did not see the
        row.
    outcome
        P(positive | features, group, tested) of each row [n], likewise.
    truth
        0 or 1 for each row [n].
    within
        Rows within reach of the tests [n], for "ipw" and "dr"; the others get no mass.
    """
    if target == "truth":
        assert truth is not None
        weight = problem.weights
        return Masses(weight * truth, weight * (1 - truth))
    if target == "tested":

        def tested(problem: SelectiveLabels) -> Masses:
            y, weight = seen_outcomes(problem), problem.weights
            return Masses(weight * y, weight * (problem.tested - y))

        return replace(tested(problem), moved=at_other_rates(problem, tested))
    assert testing is not None
    if outcome is None:
        assert target == "ipw"
        outcome = np.full(len(problem), 0.5)  # of no consequence, unless a prevalence is known
    weight = problem.weights * (1 if within is None else within)
    unseen = Unseen.of(problem, outcome, testing, within, steady=target == "dr")

    def at(one: Unseen) -> Masses:
        if target == "ipw":
            return Masses(*(weight * side for side in one.weighted()))
        positive = one.outcomes(1.0)
        return Masses(weight * positive, weight * (1 - positive))

    return replace(at(unseen), moved=tuple(one.map(at) for one in unseen.moved))


@dataclass(frozen=True)
class Unseen:
    """Outcomes of everybody, as they would be at a given odds ratio (see the module)."""

    tested: np.ndarray  # [n]
    y: np.ndarray  # [n] 0 where untested
    risk: np.ndarray  # [n] P(positive | x, tested), out of fold
    inverse: np.ndarray  # [n] how many people each tested row represents; 0 if untested
    # [n] or 1: the odds ratio at which a known prevalence is met; a gamma counts from there
    tilt: np.ndarray | float = 1.0
    moved: tuple[Moved, ...] = ()  # as of `Masses`
    known: Tilts | None = None  # what is known of `tilt`

    @classmethod
    def of(
        cls,
        problem: SelectiveLabels,
        shown: np.ndarray,
        testing: np.ndarray,
        within: np.ndarray | None = None,
        *,
        steady: bool = True,
    ) -> Unseen:
        """From a table and its two models; `testing` [n] stays away from 0.

        `shown` [n] is the probability that a test is positive. The tested `within` reach [n] stand
        for the others within it, and for nobody beyond. `steady`: as many as there are in their
        group (the factor c above).
        """

        def at(problem: SelectiveLabels) -> Unseen:
            plain = _unseen(problem, shown, testing, within, steady)
            if not problem.known_prevalence:
                return plain
            return plain.at(find_tilts(problem, _unseen(problem, shown, testing, within), within))

        found, moved = at(problem), at_other_rates(problem, at)
        if found.known is not None:
            moved += tuple(
                Moved(found.at(up), found.at(down), influence)
                for up, down, influence in found.known.moved(len(moved))
            )
        return replace(found, moved=moved)

    def at(self, known: Tilts) -> Unseen:
        """The same where untested people are as a known prevalence has them."""
        return replace(self, tilt=known.of_rows(), known=known)

    def outcomes(self, gamma: float) -> np.ndarray:
        """Pseudo-outcomes [n]; their mean is the prevalence at `gamma`."""
        if gamma == 0 or isinf(gamma):
            return np.where(self.tested, self.y, 0.0 if gamma == 0 else 1.0)
        ratio = gamma * self.tilt
        denominator = 1 + (ratio - 1) * self.risk
        filled = np.where(self.tested, self.y, ratio * self.risk / denominator)
        return filled + self.others * (self.y - self.risk) * ratio / denominator**2

    def weighted(self) -> tuple[np.ndarray, np.ndarray]:
        """How many positive, and how many negative people each tested row represents [n]."""
        denominator = 1 + (self.tilt - 1) * self.risk
        positive = self.y * (1 + self.others * self.tilt / denominator)
        return positive, (self.tested - self.y) * (1 + self.others / denominator)

    @property
    def others(self) -> np.ndarray:
        """How many untested people each tested row represents [n]."""
        return np.where(self.tested, self.inverse - 1, 0.0)


def tilted(risk: np.ndarray, ratio: np.ndarray | float) -> np.ndarray:
    """The probability [n] whose odds are `ratio` times those of `risk` [n]."""
    return np.asarray(ratio * risk / (1 + (ratio - 1) * risk))


def _unseen(
    problem: SelectiveLabels,
    shown: np.ndarray,
    testing: np.ndarray,
    within: np.ndarray | None,
    steady: bool = True,
) -> Unseen:
    """At the rates that are stated of a test, and an odds ratio of 1."""
    inverse = stand_for(problem, testing)
    if steady:
        weight = problem.weights * (1 if within is None else within)
        size, stood_for = (
            np.bincount(problem.group, weight * one, minlength=problem.n_groups)
            for one in (np.ones(len(problem)), inverse)
        )
        inverse = inverse * (size / np.where(stood_for > 0, stood_for, 1))[problem.group]
    risk = np.clip(true_risk(problem, shown), 1e-6, 1 - 1e-6)
    return Unseen(problem.tested, seen_outcomes(problem), risk, inverse)
