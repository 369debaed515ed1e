"""Limits of a person's risk, and what they decide, beside a model's scores.

Where the model was fitted with bounds, each row gets the least and the largest risk that a stated
strength of the unmeasured allows (`dcem.estimation.bounds`), and the set of outcomes that holds the
true one nine times in ten (`dcem.estimation.conformal`). A risk that is calibrated lies within its
own limits. Of people unlike anybody tested nothing is known: from 0 to 1, either outcome.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from dcem.estimation import bounds, conformal
from dcem.estimation.risk_limits import learn_ends
from dcem.scoring.model import Read, Scores, TableModel
from dcem.table import UserTable, group_codes
from dcem.table.messages import InputError

LOW, HIGH, SET = BOUNDS_COLUMNS = ("risk_low", "risk_high", "outcome_set")


def with_bounds(
    model: TableModel, table: UserTable, gamma: float, random_state: int = 0
) -> TableModel:
    """The same model, with limits of the risk learnt from its table.

    Limits can be computed at any strength; the card shows them at `gamma`.
    """
    ends, seen = learn_ends(table.problem, random_state)
    decisions = bounds.bound_decisions(
        seen.problem,
        seen.predicted,
        lambda strength: ends.interval(seen.problem.X, strength),
        gamma,
        known=bounds.counts_from_known(seen.unseen),
    )
    return replace(model, ends=ends, bounds=decisions, coverage=conformal.measure_coverage(seen))


def require_bounds(model: TableModel, gamma: float, *, decide: bool = False) -> None:
    """Refuse what a model cannot give: limits, or decisions by them if its scores are not risks."""
    if model.ends is None:
        raise InputError(
            "This model was fitted without `bounds`, so it has no limits for risks. Fit it again "
            "with `bounds`."
        )
    bounds.check_strength(gamma)
    if decide and not model.estimator.calibrated:
        raise InputError(
            f"The scores of {model.name} are not risks, so a threshold on them cannot be compared "
            "with the limits of the risk. Fit the default method, or leave out the threshold."
        )


def risk_limits(
    model: TableModel, rows: Read, scores: Scores, gamma: float, group: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Least and largest risk, and the place of the set in `conformal.SETS`; each [n]."""
    assert model.ends is not None
    with np.errstate(over="ignore", invalid="ignore"):
        low, high, found = model.ends.limits(rows.X, gamma, group)
    if model.estimator.calibrated:
        low, high = np.fmin(low, scores.score), np.fmax(high, scores.score)
    known = scores.like_tested & np.isfinite(scores.score)
    return np.where(known, low, 0.0), np.where(known, high, 1.0), np.where(known, found, 3)


def bound_columns(
    model: TableModel, batch: pa.RecordBatch, rows: Read, scores: Scores, gamma: float
) -> dict[str, pa.Array]:
    """The columns that bounds add to scores; sets are those of a group where `batch` says it."""
    assert model.ends is not None
    group, groups = None, group_codes(batch, model.roles)
    if groups is not None and model.ends.group_names:
        place = {name: i for i, name in enumerate(model.ends.group_names)}
        group = np.array([place.get(name, -1) for name in groups[1]], np.int64)[groups[0]]
    low, high, found = risk_limits(model, rows, scores, gamma, group)
    return {
        LOW: pa.array(low.astype(np.float32)),
        HIGH: pa.array(high.astype(np.float32)),
        SET: pa.array(np.array(conformal.SETS)[found]),
    }
