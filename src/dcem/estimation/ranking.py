"""A score against outcomes that are known in part: its AUC, and what an adversary could make of it.

For an AUC the adversary's best choice is a threshold: the largest outcomes to everybody who scores
above it and the smallest to everybody below, or the reverse.
"""

from __future__ import annotations

from math import inf

import numpy as np

from dcem.estimation.influence import Statistic
from dcem.estimation.measures import auc_of_places
from dcem.estimation.outcomes import Masses

STEPS = 200  # scores are ranked in so many steps; the error is far below that of sampling


class RankedScore:
    """A score in steps of about equal size, ready to be judged against any pseudo-outcomes."""

    def __init__(self, score: np.ndarray, weight: np.ndarray) -> None:
        edges = np.unique(score)  # few values: exactly these steps
        if len(edges) > STEPS:
            edges = np.unique(np.quantile(score, np.linspace(0, 1, STEPS + 1)[1:-1]))
        self.step = np.searchsorted(edges, score, side="left")
        self.n_steps = len(edges) + 1
        self.weight = weight

    def outranked(self) -> np.ndarray:
        """The weight of those whom each row scores higher than; ties count half [n]."""
        return _outranked(np.bincount(self.step, self.weight, minlength=self.n_steps))[self.step]

    def auc(self, outcome: np.ndarray, mine: np.ndarray) -> Statistic:
        """The AUC among some rows against pseudo-outcomes [n], which may leave 0 and 1."""
        weight = self.weight * mine
        masses = Masses(weight * outcome, weight * (1 - outcome))
        return auc_of_places(self.step, self.n_steps, masses)

    def adversary(
        self,
        low: np.ndarray,
        high: np.ndarray,
        mine: np.ndarray,
        up: bool,
        same_sum: np.ndarray | None = None,
    ) -> np.ndarray:
        """Outcomes between `low` and `high` [n] that make the AUC largest (`up`) or smallest.

        A higher outcome helps the AUC the more, the higher the score. So the best choice is a
        threshold, and all of them are tried. Where the sum of outcomes is known, that of
        `same_sum` [n], only one threshold gives it; at that step outcomes lie between.
        """
        least, most, total = (
            np.bincount(self.step, self.weight * mine * amount, minlength=self.n_steps)
            for amount in (low, high, np.ones(len(low)))
        )
        if same_sum is not None:
            room = float((self.weight * mine) @ same_sum) - least.sum()
            more = (most - least)[::-1] if up else most - least  # from where outcomes are high
            filled = np.clip((room - np.cumsum(more) + more) / np.where(more > 0, more, 1), 0, 1)
            part = (filled[::-1] if up else filled)[self.step]
            return low + part * (high - low)
        # Positives and negatives [steps] as they are under the cut and as they are over it; sums of
        # either at all cuts at once.
        under, over = (least, most) if up else (most, least)
        under_not, over_not = total - under, total - over
        shift = _before(under_not) - _before(over_not)  # what the steps under a cut change
        outrank = _before(under * _outranked(under_not)) + _after(over * _outranked(over_not))
        positive, negative = (
            _before(one) + _after(other) for one, other in ((under, over), (under_not, over_not))
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            area = (outrank + shift * _after(over)) / (positive * negative)
        area = np.where(np.isfinite(area), area, -inf if up else inf)
        cut = int(np.argmax(area) if up else np.argmin(area))
        return np.where((self.step >= cut) == up, high, low)


def _outranked(mass: np.ndarray) -> np.ndarray:
    """The mass [steps] under each step, and half of its own."""
    return np.asarray(np.cumsum(mass) - mass / 2)


def _before(mass: np.ndarray) -> np.ndarray:
    """The mass [steps] under each cut [steps + 1]."""
    return np.append(0.0, np.cumsum(mass))


def _after(mass: np.ndarray) -> np.ndarray:
    """The mass [steps] over each cut [steps + 1]."""
    return _before(mass[::-1])[::-1]


def least_lead(
    first: RankedScore, second: RankedScore, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Outcomes between `low` and `high` [n] that make AUC(first) - AUC(second) smallest.

    With r_i the weight of those whom person i outranks, a score's AUC is (sum of w_i y_i r_i -
    P²/2) / (P N), where P and N are the masses of positives and negatives: so the difference of two
    is the sum of w_i y_i (r_i - r'_i) over P N. For a given P the adversary gives the largest
    outcomes to those whom the first score ranks lowest against the second; all such thresholds
    are tried.
    """
    weight = first.weight
    gain = first.outranked() - second.outranked()
    places, place = np.unique(gain, return_inverse=True)
    least, most = (np.bincount(place, weight * one, minlength=len(places)) for one in (low, high))
    positives = least.sum() + np.append(0.0, np.cumsum(most - least))  # [cuts]
    won = least @ places + np.append(0.0, np.cumsum((most - least) * places))
    pairs = positives * (weight.sum() - positives)
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.where(pairs > 0, won / pairs, inf)
    return np.where(place < int(np.argmin(difference)), high, low)
