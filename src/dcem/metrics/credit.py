"""What credit scoring asks of a score: KS, Gini, and who is kicked out by another score.

A high score means a high risk of the outcome (a default, a "bad"); loans go to low scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dcem.metrics._inputs import as_numbers, read_rows, require_same_index
from dcem.metrics.roc import auc, corners
from dcem.table.messages import InputError, notice


def gini(y: Any, score: Any, *, weight: Any = None) -> float:
    """Twice the AUC minus 1 (Somers' D, the accuracy ratio): 0 for a blind score, 1 for a perfect.

    >>> gini([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    0.75
    """
    return 2 * auc(y, score, weight=weight) - 1


def ks(y: Any, score: Any, *, weight: Any = None) -> float:
    """Kolmogorov and Smirnov's distance between the scores of positives and of negatives.

    The largest difference, over all cut-offs, between the share of positives and the share of
    negatives at or above it.

        >>> ks([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
        0.5
    """
    rows = read_rows(y, score, weight)
    lacking = rows.absent()
    if lacking:
        notice(f"KS is not estimable: 'y' has {lacking}. The result is NaN.")
        return float("nan")
    curve = corners(rows)
    return float((curve.tpr - curve.fpr).max())


def kickout(y: Any, first: Any, second: Any) -> float:
    """How much better those are whom another score keeps, of those whom a first one selected.

    Of the people in `first` (selected by the first score, their outcome `y` known), those who are
    not in `second` were kicked out. Kozodoi et al. (2019) define

        (K_B / p(B) - K_G / p(G)) / (S_B / p(B))

    with K_B and K_G bads and goods kicked out, S_B bads in `first` and p their shares there; which
    is the share of its bads that is kicked out, minus that of its goods: from -1 (all goods and no
    bad) to 1 (all bads and no good), 0 where people are replaced regardless of their outcome.

    Parameters
    ----------
    y
        Outcome, 1 for a bad; it may be missing outside `first`.
    first, second
        Who is selected by either score (booleans).

        >>> kickout([1, 1, 0, 0, 0], [1, 1, 1, 1, 0], [0, 1, 1, 1, 1])
        0.5
    """
    given = {"y": y, "first": first, "second": second}
    require_same_index(**given)
    bad, chosen, kept = (as_numbers(column, name) for name, column in given.items())
    if not len(chosen) == len(kept) == len(bad):
        raise InputError(
            f"y, first and second must be of the same people; got {len(bad)}, {len(chosen)} and "
            f"{len(kept)} rows."
        )
    if not np.isin([*chosen, *kept], (0, 1)).all():
        raise InputError("`first` and `second` must be 0 or 1, or boolean, for everybody.")
    chosen, kept = chosen == 1, kept == 1
    if not np.isin(bad[chosen], (0, 1)).all():
        raise InputError("y must be 0 or 1 for everybody in `first`.")
    sides = [chosen & (bad == value) for value in (1, 0)]
    if not all(side.any() for side in sides):
        notice("Kickout is not estimable: `first` lacks a class. The result is NaN.")
        return float("nan")
    bads, goods = ((side & ~kept).sum() / side.sum() for side in sides)
    return float(bads - goods)
