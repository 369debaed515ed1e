"""What a known prevalence says of the people nobody tested.

One number per part of the people (everybody, or a group) identifies one unknown: gamma, the odds
ratio between untested and tested people with the same features, if it is one for all of the part.
The prevalence at gamma is the mean of the pseudo-outcomes q(gamma) of `outcomes.Unseen`, which
rises with gamma; gamma is where it meets the stated rate p.

    mean over the part of  q_i(gamma) = p

To first order log gamma moves with row i by -(q_i - p) / (n D), and with the error of the stated
rate by 1 / D, where D is the derivative of the mean by log gamma: the delta method. `Moved` carries
both into every number that is computed at gamma.

People out of reach of the tests have outcomes too, and no test represents them: they are as the
model extrapolates, and count as unsure by as much as that, from none of them to twice as many (a
95 % interval), beside the error of the stated rate. Where they are more than `MOST_BEYOND` of a
part, nothing is solved for. Of groups whose rate is not stated, where others' are, gamma stays at
1: features and group explain who is tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, log, nan
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

from dcem.estimation.influence import Statistic
from dcem.estimation.results import EVERYBODY
from dcem.table.known_rates import Stated, Z, concerned
from dcem.table.labels import SelectiveLabels

if TYPE_CHECKING:
    from dcem.estimation.outcomes import Unseen

LARGEST = log(1000)  # no log odds ratio is looked for beyond
OUT_OF_REACH = "too many people are out of reach of the tests"
_COLUMNS = ("tested", "y", "risk", "inverse")
STRIDE = 0.25  # of a log odds ratio, in looking for it
STEP = 0.05  # of a log odds ratio, for derivatives
MOST_BEYOND = 0.25  # share of a part that may be out of reach of the tests


@dataclass(frozen=True, eq=False)
class Tilts:
    """The odds ratios of untested against tested people at which stated rates are met."""

    stated: tuple[Stated, ...]
    log_ratio: np.ndarray  # [rates] NaN where it is not known
    influence: np.ndarray  # [rates, n] of each row on it
    slope: np.ndarray  # [rates] what one more unit of it adds to the prevalence
    source: np.ndarray  # [n] which rate each row falls under; -1: none that could be met
    errors: np.ndarray  # [rates] of what is met: of the stated rate, and of people out of reach
    reasons: tuple[str, ...]  # [rates] why a ratio cannot be determined, or an empty text

    @property
    def met(self) -> frozenset[str]:
        """The parts of the people whose stated rate is met: everybody, or groups."""
        met = np.isfinite(self.log_ratio)
        return frozenset(
            one.group or EVERYBODY for one, there in zip(self.stated, met, strict=True) if there
        )

    def of_rows(self) -> np.ndarray:
        """The odds ratio of each row [n]; 1 where none is known."""
        return np.append(np.exp(self.log_ratio), 1.0)[self.source]

    def statistic(self, place: int, start: int = 0) -> Statistic:
        """A log odds ratio with its influences; those of stated rates `start` behind the rows."""
        errors = np.zeros(start + len(self.stated))
        errors[start + place] = self.errors[place] / self.slope[place]
        return Statistic(float(self.log_ratio[place]), self.influence[place]).plus(errors)

    def moved(self, start: int) -> Iterator[tuple[Tilts, Tilts, np.ndarray]]:
        """Each ratio a step higher and lower, and what moves it, in steps."""
        for place in np.flatnonzero(np.isfinite(self.log_ratio)):
            step = STEP * (np.arange(len(self.log_ratio)) == place)
            up, down = (replace(self, log_ratio=self.log_ratio + s * step) for s in (1, -1))
            yield up, down, self.statistic(int(place), start).influence / STEP


def find_tilts(problem: SelectiveLabels, unseen: Unseen, within: np.ndarray | None) -> Tilts:
    """The odds ratios that a table's known rates ask for, given outcomes at a ratio of 1."""
    stated, n = problem.known_prevalence, len(problem)
    log_ratio, slope, errors = np.full((3, len(stated)), nan)
    influence, source, reasons = np.zeros((len(stated), n)), np.full(n, -1), []
    weight = problem.weights
    if within is not None:
        unseen = alone_beyond(unseen, within)
    for place, one in enumerate(stated):
        rows = np.flatnonzero(concerned(one, problem.group, problem.group_names))
        share = weight[rows] / weight[rows].sum()
        part = replace(unseen, **{name: getattr(unseen, name)[rows] for name in _COLUMNS})
        beyond = 0.0 if within is None else share @ ~within[rows]
        found, why = None, "no odds ratio up to 1,000 matches the stated rate"
        if beyond > MOST_BEYOND:
            why = OUT_OF_REACH
        elif problem.tested[rows].all():
            why = "everybody is tested"
        else:
            found = meet(part, share, one.value)
        if found is not None:
            why, (log_ratio[place], slope[place]) = "", found
            outcome = part.outcomes(exp(found[0]))
            unsure = beyond_error(outcome, share, None if within is None else within[rows])
            errors[place] = np.hypot(one.error, unsure)
            influence[place, rows] = -share * (outcome - one.value) / found[1]
            source[rows] = place
        reasons.append(why)
    return Tilts(stated, log_ratio, influence, slope, source, errors, tuple(reasons))


def alone_beyond(unseen: Unseen, within: np.ndarray) -> Unseen:
    """Tested people out of reach, where tests are too few, stand for themselves alone."""
    return replace(
        unseen,
        inverse=np.where(within, unseen.inverse, 1.0),
        moved=tuple(one.map(lambda end: alone_beyond(end, within)) for one in unseen.moved),
    )


def beyond_error(outcome: np.ndarray, share: np.ndarray, within: np.ndarray | None) -> float:
    """Standard error of a mean outcome [n] that is owed to people out of reach."""
    return 0.0 if within is None else abs(float((share * ~within) @ outcome)) / Z


def meet(unseen: Unseen, share: np.ndarray, rate: float) -> tuple[float, float] | None:
    """The log odds ratio at which the mean outcome is a rate, and the slope there; or None.

    `share` [n] is how much each row counts, 1 in all.
    """

    def above(log_ratio: float) -> float:
        return float(share @ unseen.outcomes(exp(log_ratio))) - rate

    # The nearest to 0: far away, risks near 0 and 1 make the mean erratic.
    side = 1 if above(0.0) < 0 else -1
    steps = side * np.append(np.arange(0.0, LARGEST, STRIDE), LARGEST)
    ends = next((pair for pair in pairwise(steps) if side * above(pair[1]) >= 0), None)
    if ends is None:
        return None
    found = float(brentq(above, *ends, xtol=1e-10))
    slope = (above(found + STEP) - above(found - STEP)) / (2 * STEP)
    return (found, slope) if slope > 0 else None
