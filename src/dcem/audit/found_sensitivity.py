"""What if features bear on being found? The range of a ratio of prevalences.

Let positives of group g with features x be found at the rate c_g k(x), with k between 1 / factor
and factor, and the same in all groups. The record, c_g f(x), is then that of a risk f(x) / k(x),
and nothing in the table can tell: it is explained as well as before. The ratio of the means of
f / k in two groups is largest where k is as low as it may be for people who look like the first,
and as high for those who look like the second. So the largest and the smallest ratio are reached by
a cut in P(first | x) / P(second | x), and all cuts are tried. (If k may differ between groups, the
ratio may be off by the square of the factor; but the table may show that: `FoundCheck`.)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from dcem.audit.found_results import FoundSensitivity
from dcem.audit.sensitivity import Breakdown
from dcem.estimation.found import FoundModel, Ratios
from dcem.estimation.influence import People, Z
from dcem.estimation.nuisances import Nuisances
from dcem.table.labels import SelectiveLabels

FACTORS = np.array([1.0, 1.25, 1.5, 2.0, 3.0, 5.0])
SEARCHED = np.geomspace(1, 50, 200)  # factors among which the breakdown is looked for


class Cuts:
    """People in order of how much they look like the first of two groups, and every cut of them.

    Parameters
    ----------
    risk
        f(x) of each row [n].
    first, second
        The weight of each row of the two groups [n], 0 in the others.
    odds
        P(first | x) / P(second | x) [n].
    """

    def __init__(
        self, risk: np.ndarray, first: np.ndarray, second: np.ndarray, odds: np.ndarray
    ) -> None:
        order = np.argsort(-odds, kind="stable")
        self._sums = [
            np.append(0.0, np.cumsum((risk * side)[order])) / side.sum() for side in (first, second)
        ]

    def ends(self, factor: float) -> tuple[float, float]:
        """The smallest and the largest logarithm of the ratio of mean risks."""
        return float(self._at(1 / factor).min()), float(self._at(factor).max())

    def _at(self, up: float) -> np.ndarray:
        """At each cut [n + 1], risks above it times `up` and below it divided by it."""
        first, second = (np.log(up * s + (s[-1] - s) / up) for s in self._sums)
        return np.asarray(first - second)


def found_sensitivity(
    problem: SelectiveLabels,
    people: People,
    model: FoundModel,
    nuisances: Nuisances,
    against: Ratios,
    groups: Sequence[int],
) -> FoundSensitivity:
    """The range of each group's ratio, sampling included, and where it first holds 1."""
    assert problem.reference_group is not None
    assert nuisances.membership is not None
    reference = problem.group_names.index(problem.reference_group)
    risk, member = model.risk(problem.X), np.maximum(nuisances.membership, 1e-9)
    low, high, breakdown = {}, {}, {}
    for code in groups:
        name = problem.group_names[code]
        reach = Z * people.error(against.prevalence[code])
        cuts = Cuts(
            risk,
            people.weight * (problem.group == code),
            people.weight * (problem.group == reference),
            member[:, code] / member[:, reference],
        )
        ends = np.array([cuts.ends(factor) for factor in FACTORS])
        low[name], high[name] = np.exp(ends[:, 0] - reach), np.exp(ends[:, 1] + reach)
        alone = sampled = inf
        for factor in SEARCHED[::-1]:
            down, up = cuts.ends(factor)
            alone = float(factor) if down <= 0 <= up else alone
            sampled = float(factor) if down - reach <= 0 <= up + reach else sampled
        breakdown[name] = Breakdown(
            f"the outcome is not equally common in {name} and {problem.reference_group}",
            alone,
            sampled,
            "factor",
        )
    return FoundSensitivity(FACTORS, low, high, breakdown)
