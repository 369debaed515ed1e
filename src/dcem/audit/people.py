"""Averages over weighted rows with intervals that know which rows belong to one person.

Every estimate of the audit is, to first order, an average over people of an *influence*: how much
the estimate moves when that row counts a little more. Influences of the rows of one person add up,
and the variance of the estimate is the sum of their squares. Differences and ratios of estimates
need nothing new, because their influences are differences of influences. The rows may be
correlated within a person in any way; people are taken as independent.

The nuisance models are cross-fitted and the estimates built on them are, where possible, orthogonal
to small errors in them, so that the influence of fitting them may be left out (Chernozhukov et al.,
"Double/debiased machine learning", Econometrics Journal 2018).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels

LEVEL = 0.95
Z = float(norm.ppf(0.5 + LEVEL / 2))
FEWEST_PEOPLE = 30  # a model-based number about fewer people is not estimable
FEWEST_TESTED = 10


@dataclass(frozen=True)
class Moving:
    """An estimate and how it moves with each row: `influence` [n]."""

    value: float
    influence: np.ndarray

    def __sub__(self, other: Moving) -> Moving:
        return Moving(self.value - other.value, self.influence - other.influence)

    def __add__(self, other: Moving) -> Moving:
        return Moving(self.value + other.value, self.influence + other.influence)

    def log(self) -> Moving:
        """The logarithm, by the delta method."""
        return Moving(float(np.log(self.value)), self.influence / self.value)


@dataclass(frozen=True)
class People:
    """Who the rows belong to and how much each counts."""

    weight: np.ndarray  # [n]
    person: np.ndarray | None  # [n] codes, None if every row is a person
    n_people: int

    @classmethod
    def of(cls, problem: SelectiveLabels) -> People:
        """The people of a table."""
        weight = np.ones(len(problem)) if problem.weight is None else problem.weight
        if problem.id is None:
            return cls(weight, None, len(problem))
        person = problem.person
        return cls(weight, person, int(person.max()) + 1 if len(person) else 0)

    def count(self, among: np.ndarray) -> int:
        """Number of different people among these rows (a mask)."""
        if self.person is None:
            return int(among.sum())
        return int(np.bincount(self.person[among], minlength=1).astype(bool).sum())

    def mean(self, values: np.ndarray, among: np.ndarray | None = None) -> Moving:
        """The weighted mean of `values`, each row counting `among` (a mask or more weights)."""
        weight = self.weight if among is None else self.weight * among
        total = weight.sum()
        if total == 0:
            return Moving(np.nan, np.zeros(len(values)))
        value = float(weight @ values / total)
        return Moving(value, weight * (values - value) / total)

    def quotient(self, above: np.ndarray, below: np.ndarray) -> Moving:
        """The weighted sum of `above` over that of `below`, both [n]."""
        total = float(self.weight @ below)
        if total == 0:
            return Moving(np.nan, np.zeros(len(above)))
        value = float(self.weight @ above) / total
        return Moving(value, self.weight * (above - value * below) / total)

    def error(self, influence: np.ndarray) -> float:
        """The standard error that goes with an influence."""
        if self.person is not None:
            influence = np.bincount(self.person, influence, minlength=self.n_people)
        return float(np.sqrt(influence @ influence * self.n_people / max(self.n_people - 1, 1)))

    def interval(self, moving: Moving) -> Estimate:
        """Estimate with a normal interval."""
        if np.isnan(moving.value):
            return Estimate(np.nan, reason="nobody to estimate it from")
        reach = Z * self.error(moving.influence)
        return Estimate(moving.value, moving.value - reach, moving.value + reach)

    def ratio(self, above: Moving, below: Moving) -> Estimate:
        """The ratio of two positive estimates, its interval made on the logarithmic scale."""
        if not (above.value > 0 and below.value > 0):
            return Estimate(np.nan, reason="a rate of zero has no ratio")
        inner = self.interval(above.log() - below.log())
        value, low, high = (float(np.exp(v)) for v in (inner.value, inner.low, inner.high))
        return Estimate(value, low, high)

    def proportion(self, yes: np.ndarray, among: np.ndarray) -> Estimate:
        """A share with Wilson's interval, at the number of independent people it is worth.

        That number is what an unclustered sample would need for the same variance (Korn and
        Graubard 1998). Unlike the normal interval it stays inside 0 and 1, and is no point at 0.
        """
        moving = self.mean(yes.astype(float), among)
        if np.isnan(moving.value):
            return Estimate(np.nan, reason="nobody to estimate it from")
        p = moving.value
        variance = self.error(moving.influence) ** 2
        worth = p * (1 - p) / variance if variance > 0 else kish(self.weight[among.astype(bool)])
        worth = max(worth, 1.0)
        middle = (p + Z**2 / (2 * worth)) / (1 + Z**2 / worth)
        reach = Z / (1 + Z**2 / worth) * np.sqrt(p * (1 - p) / worth + Z**2 / (4 * worth**2))
        low, high = max(middle - reach, 0.0), min(middle + reach, 1.0)
        return Estimate(p, float(min(low, p)), float(max(high, p)))


def kish(weights: np.ndarray) -> float:
    """Kish's effective sample size: how many equally weighted rows the weighted ones are worth."""
    square = float(weights @ weights)
    return float(weights.sum()) ** 2 / square if square > 0 else 0.0


def two_sided(z: float) -> float:
    """The p-value of a standard normal statistic."""
    return float(2 * norm.sf(abs(z)))
