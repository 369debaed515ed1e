"""Groups: one or several columns of any values become codes and level names."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from dcem.table.checks.reading import as_frame, as_series, is_arrow, shape_of
from dcem.table.messages import InputError, did_you_mean, listed, notice, rows_text

MISSING_LEVEL = "(missing)"
"""The level of rows whose group is not recorded: people too, and rarely missing at random."""


def check_groups(
    values: Any,
    name: str,
    *,
    labels: pd.Index | None = None,
    levels: Sequence[str] | None = None,
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Codes [n] and level names, in order.

    Several columns (a frame, or an array [n, k]) are crossed: 'F & Black'. The levels are those
    that occur, categories in their own order, numbers by size, all else by name; or `levels`, for
    a table that must agree with another one even if a level is absent from it.
    """
    coded = [_encode(series, column, labels) for column, series in _columns(values, name)]
    codes, names = coded[0]
    for more, more_names in coded[1:]:
        crossed = codes * len(more_names) + more
        present, codes = np.unique(crossed, return_inverse=True)
        names = [
            f"{names[p // len(more_names)]} & {more_names[p % len(more_names)]}" for p in present
        ]
    if len(set(names)) < len(names):
        raise InputError(
            f"Crossing the columns of {name!r} gives two levels the same name, because a value "
            "itself contains ' & '. Rename such values first."
        )
    if levels is not None:
        codes, names = _match(codes, names, tuple(map(str, levels)), name, labels)
    return codes.astype(np.int64), tuple(names)


def _columns(values: Any, name: str) -> list[tuple[str, pd.Series]]:
    if not isinstance(values, pd.DataFrame):
        if is_arrow(values) and hasattr(values, "columns"):
            values = as_frame(values)
        elif len(shape_of(values)) == 2:
            values = pd.DataFrame(np.asarray(values))
            values.columns = [f"{name}[{j}]" for j in range(values.shape[1])]
        else:
            return [(name, as_series(values, name))]
    if values.shape[1] == 0:
        raise InputError(f"{name!r} has no columns. Leave it out if there are no groups.")
    return [(str(c), values.iloc[:, j]) for j, c in enumerate(values.columns)]


def _encode(
    series: pd.Series, column: str, labels: pd.Index | None
) -> tuple[np.ndarray, list[str]]:
    """Codes and sorted level names of one column; the missing level comes last."""
    raw, found = pd.factorize(series)  # raw is -1 where missing
    _refuse_continuous(series, column, found, labels)
    spelled = [_level_name(level) for level in found]
    if isinstance(series.dtype, pd.CategoricalDtype):
        position = {c: i for i, c in enumerate(series.dtype.categories)}
        order = sorted(range(len(found)), key=lambda i: position[found[i]])
    elif all(isinstance(level, Real) for level in found):
        order = sorted(range(len(found)), key=lambda i: found[i])
    else:
        order = sorted(range(len(found)), key=lambda i: spelled[i])
    # dict: 1 and "1" in one column of mixed values are the same level
    names = list(dict.fromkeys(spelled[i] for i in order if spelled[i] != MISSING_LEVEL))
    _mention_spellings(names, column)
    index = {level: code for code, level in enumerate([*names, MISSING_LEVEL])}
    lookup = np.array([index[s] for s in spelled] + [len(names)], dtype=np.int64)
    codes = lookup[raw]
    absent = codes == len(names)
    if absent.any():
        names.append(MISSING_LEVEL)
        notice(
            f"Group column {column!r} is missing in {rows_text(absent, labels)}. These rows form "
            f"a level of their own, {MISSING_LEVEL!r}, with its own results; fill the values in "
            "or drop the rows if that is not what you want."
        )
    return codes, names


def _mention_spellings(names: Sequence[str], column: str) -> None:
    """Warn of 'White' beside 'white': two levels here, presumably one group of people."""
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(name.casefold(), []).append(name)
    several = [name for spellings in alike.values() if len(spellings) > 1 for name in spellings]
    if several:
        notice(
            f"Group column {column!r} has levels that differ in upper and lower case alone: "
            f"{listed(several)}. They count as different groups; spell them alike if they are one."
        )


def _level_name(level: object) -> str:
    if isinstance(level, float | np.floating) and float(level).is_integer():
        return str(int(level))  # integers beside missing values are stored as floats
    text = str(level).strip()
    return MISSING_LEVEL if text in ("", "nan") else text  # numpy writes NaN as 'nan' among text


def _refuse_continuous(series: pd.Series, column: str, found: Any, labels: pd.Index | None) -> None:
    if pd.api.types.is_float_dtype(series.dtype):
        array = series.to_numpy(np.float64, na_value=np.nan)
        bad = ~np.isnan(array) & ~(np.isfinite(array) & (array == np.floor(array)))
        if bad.any():
            raise InputError(
                f"Group column {column!r} holds fractions or infinities in "
                f"{rows_text(bad, labels)}, {len(found)} different values in all. Allowed: text, "
                "integers, booleans, categories. Cut a continuous attribute into bands first, for "
                "example with pandas.cut."
            )


def _match(
    codes: np.ndarray,
    names: list[str],
    levels: tuple[str, ...],
    column: str,
    labels: pd.Index | None,
) -> tuple[np.ndarray, list[str]]:
    """Recode to the given levels, all of which stay, in their order."""
    index = {level: code for code, level in enumerate(levels)}
    for code, name in enumerate(names):
        if name not in index:
            raise InputError(
                f"Group column {column!r} has the level {name!r} in "
                f"{rows_text(codes == code, labels)}, which is not among the given group names: "
                f"{listed(levels)}.{did_you_mean(name, levels)} Correct the value or add the "
                "level."
            )
    return np.array([index[name] for name in names], dtype=np.int64)[codes], list(levels)
