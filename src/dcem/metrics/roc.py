"""The ROC curve of one set of people, and the area under it.

The curve shows, for every threshold, the share of positives caught (true positive rate) against
the share of negatives alarmed (false positive rate). The area under it is the probability that a
random positive scores higher than a random negative, a tie counting one half. Both depend on the
*order* of the scores alone, so they say nothing about calibration, and neither depends on how
common positives are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dcem.metrics._inputs import Rows, read_rows
from dcem.metrics._staircase import rank, roc_treads
from dcem.table.checks import notice


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


def auc_of(rows: Rows) -> float:
    """The same of rows that have been read."""
    lacking = rows.absent()
    if lacking:
        notice(f"The AUC is not estimable: 'y' has {lacking}. The result is NaN.")
        return float("nan")
    return area_under(rows)


def roc_curve(y: Any, score: Any, *, weight: Any = None) -> RocCurve:
    """The ROC curve as `RocCurve`; the rate of a class that has no rows is NaN, with a warning."""
    rows = read_rows(y, score, weight)
    lacking = rows.absent()
    if lacking:
        notice(f"The ROC curve is not estimable: 'y' has {lacking}. The missing rate is NaN.")
    return corners(rows)


def area_under(rows: Rows) -> float:
    """The AUC of checked rows with both classes."""
    sides = (rows.take(chosen) for chosen in (rows.positive, ~rows.positive))
    positives, negatives = (rank(side.score, side.weight) for side in sides)
    return float(roc_treads(positives, negatives).area())


def corners(rows: Rows) -> RocCurve:
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
