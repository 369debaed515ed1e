"""One column, or the block of features, at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dcem.table.checks.reading import as_frame, as_series, is_arrow, shape_of
from dcem.table.messages import (
    InputError,
    InputTypeError,
    listed,
    require_unique,
    rows_text,
    values_text,
)


def to_numbers(series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Values as float64 with NaN where missing, and a mask of those that are no number.

    Text that reads as a number is one. Blank text and the text 'nan' are missing.
    """
    dtype, types = series.dtype, pd.api.types
    if isinstance(dtype, pd.CategoricalDtype):
        array, bad = to_numbers(pd.Series(dtype.categories))
        codes = series.cat.codes.to_numpy()  # -1 where missing, hence the extra last entry
        return np.append(array, np.nan)[codes], np.append(bad, False)[codes]
    if types.is_bool_dtype(dtype) or (types.is_numeric_dtype(dtype) and dtype.kind != "c"):
        missing = {} if isinstance(dtype, np.dtype) else {"na_value": np.nan}
        return series.to_numpy(np.float64, copy=True, **missing), np.zeros(len(series), bool)
    readable = types.is_string_dtype(dtype) or types.is_object_dtype(dtype)
    numbers = pd.to_numeric(series, errors="coerce") if readable else series
    if not readable or numbers.dtype.kind == "c":  # dates, periods, intervals, complex numbers
        return np.full(len(series), np.nan), series.notna().to_numpy()
    array = numbers.to_numpy(np.float64, na_value=np.nan)
    suspects = np.flatnonzero(np.isnan(array) & series.notna().to_numpy())
    text = series.iloc[suspects].astype(str).str.strip().str.lower()
    bad = np.zeros(len(series), bool)
    bad[suspects[~text.isin(["", "nan"]).to_numpy()]] = True
    return array, bad


def check_binary(
    values: Any, name: str, *, labels: pd.Index | None = None, missing: str | None = None
) -> np.ndarray:
    """A column of 0 and 1 (or booleans) as float64.

    `missing` says what a missing value means where it is allowed; None refuses it.
    """
    whole = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "bui"
    if whole and ((values == 0) | (values == 1)).all():  # the usual case, without pandas
        return np.asarray(values, dtype=np.float64)
    series = as_series(values, name)
    array, bad = to_numbers(series)
    bad = bad | ~((array == 0) | (array == 1) | np.isnan(array))
    allowed = f"0 and 1, or False and True{f'; {missing}' if missing else ''}"
    if bad.any():
        foreign = not np.isin(array, (0, 1)).any()
        remedy = "Recode it: 1 for yes, 0 for no." if foreign else "Correct or drop these rows."
        raise InputError(
            f"Column {name!r} holds something other than 0 and 1 in {rows_text(bad, labels)}, "
            f"such as {values_text(series[bad].iloc[:50])}. Allowed: {allowed}. {remedy}"
        )
    absent = np.isnan(array)
    if missing is None and absent.any():
        raise InputError(
            f"Column {name!r} is missing in {rows_text(absent, labels)}. Allowed: {allowed}, in "
            "every row. Fill in what is known, or drop these rows."
        )
    return array


def check_features(
    X: Any, names: Sequence[str] | None = None, *, labels: pd.Index | None = None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The features as a C-ordered float64 array [n, d], NaN where missing, and their names."""
    if hasattr(X, "toarray"):
        raise InputError("X is a sparse matrix; sparse data is not supported. Pass X.toarray().")
    shape = shape_of(X)
    if len(shape) != 2:
        raise InputError(
            "X must be a table with one row per person and one column per feature; its shape is "
            f"{shape}. Reshape your data: X.reshape(-1, 1) for a single feature."
        )
    n, d = shape
    if n == 0:
        raise InputError(
            f"The table has no rows: 0 sample(s), shape={shape}. Check the file or the filter it "
            "comes from."
        )
    if d == 0:
        raise InputError(f"X has 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required.")
    if isinstance(X, pd.DataFrame) or is_arrow(X):
        X = as_frame(X)
        names = [str(c) for c in X.columns] if names is None else names
    elif names is None:
        names = [f"x{j}" for j in range(d)]
    if len(names) != d:
        raise InputError(f"X has {d} columns, but {len(names)} feature names were given.")
    require_unique(names, "X")
    array = _feature_array(X, names, labels)
    # One pass finds both extremes, NaN ignored; an infinity is always an extreme.
    low, high = np.fmin.reduce(array, axis=0), np.fmax.reduce(array, axis=0)
    infinite = np.flatnonzero(np.isinf(low) | np.isinf(high))
    if len(infinite):
        bad = np.isinf(array[:, infinite[0]])
        raise InputError(
            f"Feature {names[infinite[0]]!r} is infinite (inf) in {rows_text(bad, labels)}."
            f"{_also(infinite[1:], names)} Allowed: finite numbers, and NaN where missing. "
            "Replace infinities by NaN if they mean 'missing', or by the largest sensible value."
        )
    return array, tuple(str(name) for name in names)


def _feature_array(X: Any, names: Sequence[str], labels: pd.Index | None) -> np.ndarray:
    # A masked array goes through pandas: np.asarray would show what the mask hides.
    if not isinstance(X, pd.DataFrame | np.ma.MaskedArray):
        X = np.asarray(X)
        if X.dtype.kind == "c":
            raise InputError("X holds complex numbers. Complex data not supported.")
        if X.dtype.kind in "biuf":
            return np.ascontiguousarray(X, dtype=np.float64)
    table = pd.DataFrame(X)
    if all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in table.dtypes):
        return np.ascontiguousarray(table.to_numpy(np.float64))
    array = np.empty(table.shape)
    wrong: list[tuple[int, np.ndarray]] = []
    for j in range(table.shape[1]):
        array[:, j], bad = to_numbers(table.iloc[:, j])
        if bad.any():
            wrong.append((j, bad))
    if wrong:
        j, bad = wrong[0]
        offending = table.iloc[:, j][bad].iloc[:50]
        examples = values_text(offending)
        if any(isinstance(value, dict | list | set | tuple) for value in offending):
            raise InputTypeError(
                f"Feature {names[j]!r} holds objects such as {examples} in "
                f"{rows_text(bad, labels)}; the argument must be a string or a number."
            )
        raise InputError(
            f"Feature {names[j]!r} cannot be read as a number in {rows_text(bad, labels)}, such as "
            f"{examples}.{_also([k for k, _ in wrong[1:]], names)} Allowed: numbers, booleans, and "
            "NaN or blank where missing. Correct single entries (pandas.to_numeric with "
            "errors='coerce' makes them missing); leave a column of text out of the features, or "
            "encode it (categories: pandas.get_dummies; dates: days since a fixed day). "
            "dcem.table.load_table reads a file and encodes its categories and dates itself."
        )
    return array


def _also(columns: Sequence[int] | np.ndarray, names: Sequence[str]) -> str:
    return f" The same holds for {listed([names[j] for j in columns])}." if len(columns) else ""


def check_id(values: Any, name: str, *, labels: pd.Index | None = None) -> np.ndarray:
    """Who each row belongs to: any values, none missing."""
    series = as_series(values, name)
    absent = series.isna().to_numpy()
    if absent.any():
        raise InputError(
            f"Column {name!r}, which says whose row it is, is missing in "
            f"{rows_text(absent, labels)}. Rows of one person must stay together in splits and "
            "resamples; give each of these rows its person, or an identifier of its own."
        )
    array = series.to_numpy()
    if array.dtype.kind == "f" and (array == np.floor(array)).all():
        return array.astype(np.int64)
    return array


def check_weight(values: Any, name: str, *, labels: pd.Index | None = None) -> np.ndarray:
    """Row weights: finite, not negative, not all zero."""
    series = as_series(values, name)
    array, bad = to_numbers(series)
    bad = bad | ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        raise InputError(
            f"Weight {name!r} is unusable in {rows_text(bad, labels)}, such as "
            f"{values_text(series[bad].iloc[:50])}. Allowed: finite numbers of 0 or more. "
            "Give a row that should not count the weight 0."
        )
    if not array.any():
        raise InputError(f"Weight {name!r} is zero in all {len(array)} rows: no row would count.")
    return array
