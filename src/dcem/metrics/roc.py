"""The ROC curve of one set of people, and the area under it.

The curve shows, for every threshold, the share of positives caught (true positive rate) against
the share of negatives alarmed (false positive rate). The area under it is the probability that a
random positive scores higher than a random negative, a tie counting one half. Both depend on the
*order* of the scores alone, so they say nothing about calibration, and neither depends on how
common positives are.

Walk through the rows from the highest score down. Each positive lifts the ROC curve, each negative
moves it to the right, and rows with the same score do both at once, on a diagonal. What matters
for an area are the parts with some width, the *treads*: one for each run of negatives with no
positive between them (flat), and one for each tied score that holds both classes (sloped). The
risers between treads have no width and need no special case: a tread simply starts higher than the
one before ended.

Which rows make which tread depends on the order of the scores alone. A `Staircase` finds this
once; the curve for any weights (of persons, of a bootstrap resample, of a whole batch of
resamples) is then three look-ups in cumulative sums, without sorting again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dcem.metrics._inputs import Checked, read_rows
from dcem.table.messages import notice


@dataclass(frozen=True)
class RocCurve:
    """The corners of a ROC curve, from (0, 0) to (1, 1); straight lines connect them.

    `threshold[i]` is the smallest score counted as positive at corner i (infinity at the first).
    Points in the middle of a straight stretch are left out, as scikit-learn does.
    """

    fpr: np.ndarray
    tpr: np.ndarray
    threshold: np.ndarray

    def __repr__(self) -> str:
        return f"RocCurve({len(self.fpr)} corners, AUC {np.trapezoid(self.tpr, self.fpr):.3f})"


def auc(y: Any, score: Any, *, weight: Any = None) -> float:
    """Probability that a random positive scores higher than a random negative; ties count half.

    `y` holds the true labels (0/1 or boolean), `score` anything that ranks people, `weight` how
    much each row counts. With one class only there is nothing to compare: NaN and a warning.

        >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
        0.875
    """
    return auc_of(read_rows(y, score, weight))


def auc_of(rows: Checked) -> float:
    """The same of rows that have been read."""
    lacking = rows.absent()
    if lacking:
        notice(f"The AUC is not estimable: 'y' has {lacking}. The result is NaN.")
        return float("nan")
    sides = (rows.take(chosen) for chosen in (rows.positive, ~rows.positive))
    positives, negatives = (rank(side.score, side.weight) for side in sides)
    return float(roc_treads(positives, negatives).area())


def roc_curve(y: Any, score: Any, *, weight: Any = None) -> RocCurve:
    """The ROC curve as `RocCurve`; the rate of a class that has no rows is NaN, with a warning."""
    rows = read_rows(y, score, weight)
    lacking = rows.absent()
    if lacking:
        notice(f"The ROC curve is not estimable: 'y' has {lacking}. The missing rate is NaN.")
    return corners(rows)


def corners(rows: Checked) -> RocCurve:
    """The ROC curve of checked rows, corner by corner."""
    order = np.argsort(-rows.score, kind="stable")
    score, positive = rows.score[order], rows.positive[order]
    last_of_tie = np.append(np.flatnonzero(score[1:] != score[:-1]), len(score) - 1)
    weight = np.ones(len(score)) if rows.weight is None else rows.weight[order]
    true_positives = np.cumsum(weight * positive)[last_of_tie]
    false_positives = np.cumsum(weight * ~positive)[last_of_tie]
    # A point between two equal steps lies on their line. Unequal collinear steps are kept.
    corner = np.ones(len(last_of_tie), dtype=bool)
    corner[1:-1] = (np.diff(false_positives, 2) != 0) | (np.diff(true_positives, 2) != 0)
    with np.errstate(invalid="ignore"):
        return RocCurve(
            np.append(0.0, false_positives[corner]) / false_positives[-1],
            np.append(0.0, true_positives[corner]) / true_positives[-1],
            np.append(np.inf, score[last_of_tie][corner]),
        )


# -- staircases: sorted once, drawn for any weights, compared exactly -----------------------------


class Ranked(NamedTuple):
    """Rows of one class, highest score first."""

    key: np.ndarray  # [n] minus the score, ascending
    passed: np.ndarray  # [n + 1] weight of the first 0, 1, ..., n rows


class Treads(NamedTuple):
    """The treads of one curve, or of a batch of curves along the leading axis, left to right."""

    edge: np.ndarray  # [..., m + 1] where treads begin and end: weight of negatives passed
    start: np.ndarray  # [..., m] height at the left end: weight of positives passed
    end: np.ndarray  # [..., m] height at the right end; the same object as `start` if all are flat

    def area(self) -> np.ndarray:
        """The area below. In raw weights: of concordant pairs, a tie counting one half."""
        height = self.start if self.end is self.start else (self.start + self.end) / 2
        return np.einsum("...i,...i->...", np.diff(self.edge), height)


class Staircase:
    """How positives and negatives of fixed scores interleave, whatever the rows weigh."""

    def __init__(self, positive_key: np.ndarray, negative_key: np.ndarray) -> None:
        """From the sorted keys (minus the score, ascending) of both classes."""
        above = np.searchsorted(positive_key, negative_key, side="left")
        reached = np.searchsorted(positive_key, negative_key, side="right")
        starts_tread = np.ones(len(negative_key), dtype=bool)
        starts_tread[1:] = above[1:] != above[:-1]
        starts_tread[1:] |= reached[1:] != reached[:-1]
        first = np.flatnonzero(starts_tread)
        self._edge = np.append(first, len(negative_key))
        self._start, self._end = above[first], reached[first]
        self._all_flat = bool((self._start == self._end).all())

    def draw(self, positives: np.ndarray, negatives: np.ndarray) -> Treads:
        """The treads, given the cumulative weights ([..., rows + 1], from 0) of both classes."""
        start = positives.take(self._start, axis=-1)
        end = start if self._all_flat else positives.take(self._end, axis=-1)
        return Treads(negatives.take(self._edge, axis=-1), start, end)

    def roc(self, positives: np.ndarray, negatives: np.ndarray) -> Treads:
        """The treads scaled to rates in [0, 1]; NaN where a class has no weight."""
        edge, start, end = self.draw(positives, negatives)
        with np.errstate(invalid="ignore", divide="ignore"):
            low = start / positives[..., -1:]
            high = low if end is start else end / positives[..., -1:]
            return Treads(edge / negatives[..., -1:], low, high)


def rank(score: np.ndarray, weight: np.ndarray | None = None) -> Ranked:
    """Sort the rows of one class, highest score first."""
    if weight is None:
        return Ranked(np.sort(-score), np.arange(len(score) + 1, dtype=np.float64))
    order = np.argsort(-score)
    return Ranked(-score[order], np.concatenate([[0.0], np.cumsum(weight[order])]))


def roc_treads(positives: Ranked, negatives: Ranked) -> Treads:
    """The ROC curve of these two classes as treads."""
    return Staircase(positives.key, negatives.key).roc(positives.passed, negatives.passed)


def area_between(one: Treads, other: Treads) -> np.ndarray:
    """Integral over the false positive rate of the absolute difference of two ROC curves.

    Exact up to rounding: between two neighbouring edges of either curve both are straight, so
    their difference is a straight line too, and is split where it crosses zero. NaN where one of
    the curves does not exist.
    """
    n_one = one.start.shape[-1]
    if not (n_one and other.start.shape[-1]):
        return np.full(one.edge.shape[:-1], np.nan)
    left = np.concatenate([one.edge[..., :-1], other.edge[..., :-1]], axis=-1)
    order = np.argsort(left, axis=-1, kind="stable")  # two sorted runs: a merge, not a sort
    left = np.take_along_axis(left, order, axis=-1)
    right = np.concatenate([left[..., 1:], np.ones_like(left[..., :1])], axis=-1)
    # The tread of each curve above [left, right]: the last one begun. Of equal edges only the last
    # has width behind it, so the (arbitrary) choice at the others is multiplied by zero.
    of_one = np.cumsum(order < n_one, axis=-1) - 1
    of_other = np.arange(order.shape[-1]) - of_one - 1
    one_left, one_right = _heights(one, of_one, left, right)
    other_left, other_right = _heights(other, of_other, left, right)
    at_left = one_left - other_left
    width = right - left
    if one_left is one_right and other_left is other_right:
        area = np.einsum("...i,...i->...", width, np.abs(at_left))
    else:
        at_right = one_right - other_right
        total = np.abs(at_left) + np.abs(at_right)
        crosses = at_left * at_right < 0
        with np.errstate(invalid="ignore", divide="ignore"):
            two_triangles = (at_left**2 + at_right**2) / total
        area = np.einsum("...i,...i->...", width, np.where(crosses, two_triangles, total)) / 2
    return np.minimum(area, 1.0)


def _heights(
    treads: Treads, which: np.ndarray, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Heights of a curve at both ends of each interval, which lies on the tread `which`."""
    start = np.take_along_axis(treads.start, which, axis=-1)
    if treads.end is treads.start:
        return start, start
    width = np.diff(treads.edge)
    rise = treads.end - treads.start
    slope = np.divide(rise, width, out=np.zeros_like(rise), where=width > 0)
    slope = np.take_along_axis(slope, which, axis=-1)
    begin = np.take_along_axis(treads.edge, which, axis=-1)
    return start + slope * (left - begin), start + slope * (right - begin)
