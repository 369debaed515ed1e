"""How much of a positive, and how much of a negative, each row stands for.

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
may be uncertain: masses are kept at one standard error more and less of it, too, and `uncertain`
turns the difference that this makes to a number into one more influence on it.

*If untested people differ from tested ones with the same features*: let their odds be gamma times
those of the tested. gamma = 1 is the assumption of `dr`; gamma = 0 and infinity are the limits
without any assumption (Manski 1989). Given gamma the outcomes are identified, and only gamma is
unknown (Robins, Rotnitzky and Scharfstein 2000: exponential tilting). `Unseen` gives each row

    q = y, or gamma odds / (1 + gamma odds) if untested,
        + (c/e - 1) dq/dm (y - m) if tested,

whose average is the one-step estimate at gamma. At gamma = 1 it is the doubly robust mass: one
right model is enough. At any other gamma the model of the outcome must be right, because the odds
of the untested are gamma times *its* odds; the correction makes small errors of it second order,
and no more.

References: J. Robins, A. Rotnitzky and L. Zhao, "Estimation of regression coefficients when some
regressors are not always observed", JASA 1994 (the doubly robust mass); V. Chernozhukov et al.,
"Double/debiased machine learning", Econometrics Journal 2018 (why e and m are fitted on other
rows).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isinf
from typing import Any

import numpy as np

from dcem.estimation.influence import Statistic
from dcem.estimation.results import Target
from dcem.table.imperfect import unbiased
from dcem.table.labels import SelectiveLabels

POPULATION = ("ipw", "dr")  # targets that let the tested stand for others
ASSUMED = "features and group explain who is tested, and everybody had a real chance of a test"
TARGETS = {
    "tested": Target(
        "tested",
        "among the tested",
        "Right for the people who were tested, and for nobody else.",
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


@dataclass(frozen=True)
class Masses:
    """Positive and negative mass of each row [n]."""

    positive: np.ndarray
    negative: np.ndarray
    moved: tuple[tuple[Masses, Masses], ...] = ()  # at more and less of each stated rate of a test

    @property
    def total(self) -> np.ndarray:
        """Mass of each row on either side [n]."""
        return self.positive + self.negative

    def among(self, chosen: np.ndarray, negatives: np.ndarray | None = None) -> Masses:
        """The same rows, those not chosen without mass; negatives may be chosen otherwise."""
        others = chosen if negatives is None else negatives
        moved = tuple(
            (up.among(chosen, negatives), down.among(chosen, negatives)) for up, down in self.moved
        )
        return Masses(self.positive * chosen, self.negative * others, moved)


def uncertain(number: Callable[[Any], Statistic], of: Masses | Unseen) -> Statistic:
    """A number of masses or outcomes that knows how uncertain the stated rates of a test are."""
    found = number(of)
    if not of.moved:
        return found
    ends = [[number(one).value for one in both] for both in of.moved]
    return found.plus([(up - down) / 2 for up, down in ends])


def at_other_rates(problem: SelectiveLabels, at: Callable[[SelectiveLabels], Any]) -> Any:
    """What `at` makes of the problem at more and at less of each uncertain rate of its test."""
    test = problem.imperfect_test
    return tuple(
        tuple(at(replace(problem, imperfect_test=one)) for one in both)
        for both in (test.moved() if test is not None else ())
    )


def _weight(problem: SelectiveLabels) -> np.ndarray:
    return np.ones(len(problem)) if problem.weight is None else problem.weight


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
    test = problem.imperfect_test
    if test is None:
        return shown
    rates = np.empty((problem.n_groups, 2))
    for code in range(problem.n_groups):
        mine = problem.tested & (problem.group == code)
        rates[code] = test.rates[mine if mine.any() else problem.tested].mean(axis=0)
    rates = np.broadcast_to(rates[problem.group if group is None else group], (len(shown), 2))
    return np.clip(unbiased(shown, rates), 1e-4, 1 - 1e-4)


def stand_for(problem: SelectiveLabels, testing: np.ndarray) -> np.ndarray:
    """How many people each tested row stands for, 1 / `testing` [n]; the untested for nobody.

    Where nobody was tested the model knows no chance of a test, and nothing is divided by it.
    """
    nobody = np.zeros(len(problem))
    inverse: np.ndarray = np.divide(1.0, testing, out=nobody, where=problem.tested)
    return inverse


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
        weight = _weight(problem)
        return Masses(weight * truth, weight * (1 - truth))

    def at(problem: SelectiveLabels) -> Masses:
        return _masses(target, problem, testing, outcome, within)

    return replace(at(problem), moved=at_other_rates(problem, at))


def _masses(
    target: str,
    problem: SelectiveLabels,
    testing: np.ndarray | None,
    outcome: np.ndarray | None,
    within: np.ndarray | None,
) -> Masses:
    """At the rates that are stated of a test."""
    weight = _weight(problem)
    y, tested = seen_outcomes(problem), problem.tested.astype(float)
    if target == "tested":
        return Masses(weight * y, weight * (tested - y))
    assert testing is not None
    if within is not None:
        weight = weight * within
    if target == "ipw":
        weight = weight * stand_for(problem, testing)
        return Masses(weight * y, weight * (tested - y))
    assert outcome is not None
    positive = _unseen(problem, outcome, testing, within).outcomes(1.0)
    return Masses(weight * positive, weight * (1 - positive))


@dataclass(frozen=True)
class Unseen:
    """Outcomes of everybody, as they would be at a given odds ratio (see the module)."""

    tested: np.ndarray  # [n]
    y: np.ndarray  # [n] 0 where untested
    risk: np.ndarray  # [n] P(positive | x, tested), out of fold
    inverse: np.ndarray  # [n] how many people each tested row stands for; 0 if untested
    moved: tuple[tuple[Unseen, Unseen], ...] = ()  # as of `Masses`

    @classmethod
    def of(
        cls,
        problem: SelectiveLabels,
        shown: np.ndarray,
        testing: np.ndarray,
        within: np.ndarray | None = None,
    ) -> Unseen:
        """From a table and its two models; `testing` [n] stays away from 0.

        `shown` [n] is the probability that a test is positive. The tested `within` reach [n] stand
        for the others within it, and for nobody beyond.
        """

        def at(problem: SelectiveLabels) -> Unseen:
            return _unseen(problem, shown, testing, within)

        return replace(at(problem), moved=at_other_rates(problem, at))

    def outcomes(self, gamma: float) -> np.ndarray:
        """Pseudo-outcomes [n]; their mean is the prevalence at `gamma`."""
        if gamma == 0 or isinf(gamma):
            return np.where(self.tested, self.y, 0.0 if gamma == 0 else 1.0)
        denominator = 1 + (gamma - 1) * self.risk
        filled = np.where(self.tested, self.y, gamma * self.risk / denominator)
        others = np.where(self.tested, self.inverse - 1, 0.0)  # the untested it stands for
        return filled + others * (self.y - self.risk) * gamma / denominator**2


def _unseen(
    problem: SelectiveLabels, shown: np.ndarray, testing: np.ndarray, within: np.ndarray | None
) -> Unseen:
    """At the rates that are stated of a test."""
    weight = _weight(problem)
    if within is not None:
        weight = weight * within
    inverse = stand_for(problem, testing)
    size, stood_for = (
        np.bincount(problem.group, weight * one, minlength=problem.n_groups)
        for one in (np.ones(len(problem)), inverse)
    )
    inverse = inverse * (size / np.where(stood_for > 0, stood_for, 1))[problem.group]
    risk = np.clip(true_risk(problem, shown), 1e-6, 1 - 1e-6)
    return Unseen(problem.tested, seen_outcomes(problem), risk, inverse)
