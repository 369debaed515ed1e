"""Every input check and the wording of every error.

A message says what is wrong, where (column, number of rows, the first few), what is allowed, and
what to do. Mistakes raise `InputError`; what is legal but changes what can be learnt warns with
`DataWarning`.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dcem.problem import SelectiveLabels

MISSING_LEVEL = "(missing)"
_PACKAGE = str(Path(__file__).parent)


class InputError(ValueError):
    """The input cannot be used as it is; the message says where it is wrong and what to do."""


class DataWarning(UserWarning):
    """The input is legal, but limits what can be learnt from it."""


def notice(message: str) -> None:
    """Warn with `DataWarning`, pointing at the caller's line outside this package."""
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, DataWarning, stacklevel=depth - 1)


def nearest(name: object, allowed: Iterable[object]) -> str | None:
    """The name in `allowed` closest to `name`, or None when nothing resembles it."""
    names = {str(a).lower(): str(a) for a in allowed}
    found = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=0.5)
    return names[found[0]] if found else None


def require_columns(
    available: Iterable[object], wanted: Iterable[object], where: str = "table"
) -> None:
    """Raise, with the nearest match, unless every wanted column is there."""
    have = list(available)
    for name in wanted:
        if name not in have:
            guess = nearest(name, have)
            hint = f" Did you mean {guess!r}?" if guess else ""
            shown = ", ".join(map(repr, have[:12])) + (", ..." if len(have) > 12 else "")
            raise InputError(f"The {where} has no column {name!r}.{hint} Its columns are: {shown}.")


def rows_text(bad: np.ndarray, labels: Sequence[Any] | None = None) -> str:
    """'3 of 100 rows (first: 4, 17, 22)' for a boolean mask of offending rows."""
    where = np.flatnonzero(bad)
    first = [labels[i] if labels is not None else int(i) for i in where[:5]]
    dots = ", ..." if len(where) > 5 else ""
    noun = "row" if len(where) == 1 else "rows"
    return f"{len(where)} of {len(bad)} {noun} (first: {', '.join(map(str, first))}{dots})"


def resolve_tested(
    y: np.ndarray, tested: np.ndarray | None = None, *, label: str = "y", role: str = "tested"
) -> tuple[np.ndarray, np.ndarray]:
    """Labels with NaN where nobody looked, and who was tested."""
    y = np.asarray(y, dtype=float)
    if tested is None:
        looked = ~np.isnan(y)
        if looked.all():
            notice(
                f"{label!r} has no missing value and no {role!r} was given, so every row counts "
                f"as tested. If zeros were imputed for untested rows, pass {role!r}."
            )
        return y, looked
    tested = np.asarray(tested).astype(bool)
    bad = ~tested & (y == 1)
    if bad.any():
        raise InputError(f"{label!r} is 1 on untested rows: {rows_text(bad)}.")
    bad = tested & np.isnan(y)
    if bad.any():
        raise InputError(f"{label!r} is missing on tested rows: {rows_text(bad)}.")
    return np.where(tested, y, np.nan), tested


def check_fit_input(
    X: Any,
    y: Any,
    tested: Any = None,
    sensitive_features: Any = None,
    sample_weight: Any = None,
) -> SelectiveLabels:
    """The arguments of a scikit-learn style `fit`, checked and put into their roles."""
    from dcem.problem import SelectiveLabels

    return SelectiveLabels.from_arrays(
        X, y, tested=tested, group=sensitive_features, weight=sample_weight
    )
