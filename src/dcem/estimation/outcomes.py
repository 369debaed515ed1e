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

References: J. Robins, A. Rotnitzky and L. Zhao, "Estimation of regression coefficients when some
regressors are not always observed", JASA 1994 (the doubly robust mass); V. Chernozhukov et al.,
"Double/debiased machine learning", Econometrics Journal 2018 (why e and m are fitted on other
rows).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcem.estimation.results import Target
from dcem.table.labels import SelectiveLabels

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


def masses(
    target: str,
    problem: SelectiveLabels,
    *,
    testing: np.ndarray | None = None,
    outcome: np.ndarray | None = None,
    truth: np.ndarray | None = None,
) -> Masses:
    """The masses of a target (see the table above).

    Args:
        target: "tested", "ipw" (needs `testing`), "dr" (both) or "truth" (needs `truth`).
        problem: the rows.
        testing: P(tested | features, group) of each row [n], away from 0, from a model that did
            not see the row.
        outcome: P(positive | features, group, tested) of each row [n], likewise.
        truth: 0 or 1 for each row [n].
    """
    weight = np.ones(len(problem)) if problem.weight is None else problem.weight
    if target == "truth":
        assert truth is not None
        return Masses(weight * truth, weight * (1 - truth))
    y, tested = problem.y_imputed, problem.tested.astype(float)
    if target == "tested":
        return Masses(weight * y, weight * (tested - y))
    assert testing is not None
    if target == "ipw":
        return Masses(weight * y / testing, weight * (tested - y) / testing)
    assert outcome is not None
    inverse = tested / testing
    size, stood_for = (
        np.bincount(problem.group, weight * one, minlength=problem.n_groups)
        for one in (np.ones(len(problem)), inverse)
    )
    inverse *= (size / np.where(stood_for > 0, stood_for, 1))[problem.group]
    positive = outcome + inverse * (y - outcome)
    return Masses(weight * positive, weight * (1 - positive))
