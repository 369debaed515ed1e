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

from dataclasses import dataclass
from math import isinf

import numpy as np

from dcem.estimation.results import Target
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

    @property
    def total(self) -> np.ndarray:
        """Mass of each row on either side [n]."""
        return self.positive + self.negative

    def among(self, chosen: np.ndarray) -> Masses:
        """The same rows, those not chosen without mass."""
        return Masses(self.positive * chosen, self.negative * chosen)


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
    weight = np.ones(len(problem)) if problem.weight is None else problem.weight
    if target == "truth":
        assert truth is not None
        return Masses(weight * truth, weight * (1 - truth))
    y, tested = problem.y_imputed, problem.tested.astype(float)
    if target == "tested":
        return Masses(weight * y, weight * (tested - y))
    assert testing is not None
    if within is not None:
        weight = weight * within
    if target == "ipw":
        weight = weight * stand_for(problem, testing)
        return Masses(weight * y, weight * (tested - y))
    assert outcome is not None
    positive = Unseen.of(problem, outcome, testing, within).outcomes(1.0)
    return Masses(weight * positive, weight * (1 - positive))


@dataclass(frozen=True)
class Unseen:
    """Outcomes of everybody, as they would be at a given odds ratio (see the module)."""

    tested: np.ndarray  # [n]
    y: np.ndarray  # [n] 0 where untested
    risk: np.ndarray  # [n] P(positive | x, tested), out of fold
    inverse: np.ndarray  # [n] how many people each tested row stands for; 0 if untested

    @classmethod
    def of(
        cls,
        problem: SelectiveLabels,
        risk: np.ndarray,
        testing: np.ndarray,
        within: np.ndarray | None = None,
    ) -> Unseen:
        """From a table and its two models; `testing` [n] stays away from 0.

        The tested `within` reach [n] stand for the others within it, and for nobody beyond.
        """
        weight = np.ones(len(problem)) if problem.weight is None else problem.weight
        if within is not None:
            weight = weight * within
        inverse = stand_for(problem, testing)
        size, stood_for = (
            np.bincount(problem.group, weight * one, minlength=problem.n_groups)
            for one in (np.ones(len(problem)), inverse)
        )
        inverse = inverse * (size / np.where(stood_for > 0, stood_for, 1))[problem.group]
        return cls(problem.tested, problem.y_imputed, np.clip(risk, 1e-6, 1 - 1e-6), inverse)

    def outcomes(self, gamma: float) -> np.ndarray:
        """Pseudo-outcomes [n]; their mean is the prevalence at `gamma`."""
        if gamma == 0 or isinf(gamma):
            return np.where(self.tested, self.y, 0.0 if gamma == 0 else 1.0)
        denominator = 1 + (gamma - 1) * self.risk
        filled = np.where(self.tested, self.y, gamma * self.risk / denominator)
        others = np.where(self.tested, self.inverse - 1, 0.0)  # the untested it stands for
        return filled + others * (self.y - self.risk) * gamma / denominator**2
