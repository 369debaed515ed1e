"""Whether a predicted 30 % happens 30 % of the time, overall and in each group.

Ranking well is not enough to act on a number. People are put into bins by their predicted
probability; in each bin the mean prediction is compared with the share that turned out positive.
The *calibration error* is the mean absolute difference of the two, each bin counting as many
people as it holds (the expected calibration error, ECE).

Bins of equal mass (``strategy="quantile"``, the default) give every point of the curve the same
precision; bins of equal width show the whole range but may hold three people. People with the same
prediction always share a bin, so the result does not depend on the order of the rows.

Two cautions. The error is a sum of absolute values: with few people per bin it is above 0 even for
a perfectly calibrated model. And it can be low overall while two groups err in opposite
directions, so look at `group_calibration_error` before you are content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dcem.metrics._inputs import Checked, Label, read_groups, read_rows
from dcem.table.messages import InputError, notice, require_one_of, rows_text

Strategy = Literal["quantile", "uniform"]


@dataclass(frozen=True)
class CalibrationCurve:
    """One point for each bin that holds people, in increasing order of prediction."""

    predicted: np.ndarray  # [bins] mean predicted probability
    observed: np.ndarray  # [bins] share of positives
    share: np.ndarray  # [bins] share of the total weight; sums to 1
    count: np.ndarray  # [bins] number of rows

    @property
    def error(self) -> float:
        """Mean absolute difference of prediction and observation, weighted by `share`."""
        if not len(self.share):
            return float("nan")
        return float(np.sum(self.share * np.abs(self.predicted - self.observed)))

    def __repr__(self) -> str:
        return f"CalibrationCurve({len(self.share)} bins, error {self.error:.3f})"


def calibration_curve(
    y: Any,
    score: Any,
    *,
    weight: Any = None,
    n_bins: int = 10,
    strategy: Strategy = "quantile",
) -> CalibrationCurve:
    """Mean prediction against observed rate, bin by bin; `score` must be a probability."""
    return curve_of(read_probabilities(y, score, weight), n_bins, strategy)


def calibration_error(
    y: Any,
    score: Any,
    *,
    weight: Any = None,
    n_bins: int = 10,
    strategy: Strategy = "quantile",
) -> float:
    """Mean absolute difference between predicted and observed risk over the bins; 0 is best.

    >>> calibration_error([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5])
    0.0
    """
    return calibration_curve(y, score, weight=weight, n_bins=n_bins, strategy=strategy).error


def group_calibration_curves(
    y: Any,
    score: Any,
    group: Any,
    *,
    weight: Any = None,
    n_bins: int = 10,
    strategy: Strategy = "quantile",
) -> dict[Label, CalibrationCurve]:
    """The calibration curve of each group, with bins of its own."""
    rows = read_probabilities(y, score, weight, group=group)
    curves = {}
    for label, members in read_groups(group, rows).split(rows):
        curves[label] = curve_of(members, n_bins, strategy)
        if not len(curves[label].share):
            notice(f"Calibration is not estimable for group {label!r}: all its weights are 0.")
    return curves


def group_calibration_error(
    y: Any,
    score: Any,
    group: Any,
    *,
    weight: Any = None,
    n_bins: int = 10,
    strategy: Strategy = "quantile",
) -> dict[Label, float]:
    """The calibration error of each group, with bins of its own."""
    curves = group_calibration_curves(
        y, score, group, weight=weight, n_bins=n_bins, strategy=strategy
    )
    return {label: curve.error for label, curve in curves.items()}


def worst_group_calibration_error(
    y: Any,
    score: Any,
    group: Any,
    *,
    weight: Any = None,
    n_bins: int = 10,
    strategy: Strategy = "quantile",
) -> float:
    """The largest calibration error of any group."""
    errors = group_calibration_error(
        y, score, group, weight=weight, n_bins=n_bins, strategy=strategy
    )
    return float(np.max(list(errors.values())))


def read_probabilities(y: Any, score: Any, weight: Any, **others: Any) -> Checked:
    """Checked rows whose scores are probabilities."""
    rows = read_rows(y, score, weight, **others)
    outside = (rows.score < 0) | (rows.score > 1)
    if outside.any():
        raise InputError(
            f"'score' must be a probability for calibration, but lies outside [0, 1] in "
            f"{rows_text(outside)}. Pass predict_proba(X)[:, 1], not a decision function."
        )
    return rows


def bin_of(rows: Checked, n_bins: int, strategy: Strategy) -> np.ndarray:
    """The bin (0..n_bins-1) of each row; some bins may hold nobody."""
    if not (isinstance(n_bins, int | np.integer) and n_bins >= 1):
        raise InputError(f"n_bins must be a whole number of at least 1, not {n_bins!r}.")
    require_one_of("strategy", strategy, ("quantile", "uniform"))
    if strategy == "uniform":
        return np.minimum((rows.score * n_bins).astype(np.intp), n_bins - 1)
    return equal_mass(rows.score, rows.weight, n_bins)


def equal_mass(score: np.ndarray, mass: np.ndarray | None, n_bins: int) -> np.ndarray:
    """The bin of each row [n], 0 to `n_bins` - 1, so that all hold about as much mass [n].

    Everybody with the same score goes where the middle of their mass falls.
    """
    values, place = np.unique(score, return_inverse=True)
    at = np.bincount(place, mass, minlength=len(values))
    middle = np.cumsum(at) - at / 2
    found = (n_bins * middle / max(at.sum(), np.finfo(float).tiny)).astype(np.intp)
    return np.clip(found, 0, n_bins - 1)[place]


def curve_of(rows: Checked, n_bins: int, strategy: Strategy) -> CalibrationCurve:
    """The calibration curve of checked rows."""
    bins = bin_of(rows, n_bins, strategy)
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    mass = np.bincount(bins, weight, minlength=n_bins)
    held = mass > 0
    predicted = np.bincount(bins, weight * rows.score, minlength=n_bins)
    observed = np.bincount(bins, weight * rows.positive, minlength=n_bins)
    return CalibrationCurve(
        predicted=predicted[held] / mass[held],
        observed=observed[held] / mass[held],
        share=mass[held] / mass.sum(),
        count=np.bincount(bins, minlength=n_bins)[held],
    )
