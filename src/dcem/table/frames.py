"""Whatever frame or column a person holds, as pandas or as Arrow; and whether rows belong together.

Arrow's stream protocol is the short way; what does not speak it goes through narwhals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dcem.table.messages import InputError, readable, rows_text
from dcem.table.values import Coded

_PANDAS = (pd.DataFrame, pd.Series)


def as_frame(table: Any) -> pd.DataFrame:
    """A pandas frame from whatever frame it is."""
    return table if isinstance(table, pd.DataFrame) else as_table(table).to_pandas()


def as_table(frame: Any) -> pa.Table:
    """An Arrow table of a frame that is not pandas: polars (lazy ones too), Arrow, DuckDB, ..."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    import narwhals as nw

    try:
        if is_arrow(frame):
            return pa.table(frame)
        known = nw.from_native(frame)
        return (known.collect("pyarrow") if isinstance(known, nw.LazyFrame) else known).to_arrow()
    except (TypeError, pa.ArrowException) as error:
        if hasattr(type(frame), "columns"):
            raise InputError(
                f"A column of the frame has a type that Arrow does not know ({error}). Cast it, "
                "for example to text."
            ) from None
        raise InputError(
            "Expected a frame with named columns (pandas, polars, Arrow, DuckDB or another one "
            f"that narwhals knows), got {type(frame).__name__}. Make one, for example with "
            "pandas.DataFrame."
        ) from None


def is_arrow(values: Any) -> bool:
    """Whether it comes from polars or another library that hands its columns over as Arrow."""
    return hasattr(values, "__arrow_c_stream__") and not isinstance(values, _PANDAS)


def shape_of(values: Any) -> tuple[int, ...]:
    """The shape of anything array-like, lists included."""
    return tuple(values.shape if hasattr(values, "shape") else np.asarray(values).shape)


def as_series(values: Any, name: str) -> pd.Series:
    """One column as a pandas series; `name` is what an error calls it."""
    if isinstance(values, pd.Series):
        return values
    if isinstance(values, pd.DataFrame) and values.shape[1] == 1:
        return values.iloc[:, 0]
    if is_arrow(values):
        if hasattr(values, "columns"):
            return as_series(as_frame(values), name)
        return pa.chunked_array(values).to_pandas()
    if isinstance(values, pd.Index | pd.api.extensions.ExtensionArray):
        return pd.Series(values)
    # A masked array goes to pandas as it is: np.asarray would show what the mask hides.
    column = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise InputError(
            f"{name!r} should be a 1d array, one value per row; it has shape {column.shape}."
        )
    if column.dtype.kind == "U" and isinstance(values, list | tuple):
        return pd.Series(list(values), dtype=object)  # NumPy makes the text 'nan' of a NaN
    return pd.Series(column)


def check_aligned(parts: Mapping[str, Any]) -> pd.Index | None:
    """All parts (None is skipped) have the same rows; returns their labels, if they have any.

    pandas objects carry an index, and it must be the same in all of them: a table sorted after
    its label was taken out would otherwise be paired with other people's labels in silence. Each
    column of a dictionary is a part; what is `Coded` comes from the same table already.
    """
    each: dict[str, Any] = {}
    for name, part in parts.items():
        is_several = isinstance(part, Mapping) and not hasattr(part, "shape")  # nor a sparse matrix
        each |= {f"{name}[{c!r}]": one for c, one in part.items()} if is_several else {name: part}
    each = {name: one for name, one in each.items() if not isinstance(one, Coded | None)}
    sizes = {}
    for name, part in each.items():
        if not (shape := shape_of(part)):
            raise InputError(
                f"{name!r} should be a 1d array, one value per row; it is a single "
                f"{type(part).__name__}."
            )
        sizes[name] = shape[0]
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name!r} has {size}" for name, size in sizes.items())
        raise InputError(
            f"Different numbers of rows: {shown}. Every part needs one entry per row of the table; "
            "take them all from the same rows."
        )
    indexed = {name: part.index for name, part in each.items() if isinstance(part, _PANDAS)}
    if not indexed:
        return None
    (first, index), *others = indexed.items()
    for name, other in others:
        if not index.equals(other):
            _refuse_disagreement(first, index, name, other)
    counted = isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1
    return None if counted else index


def _refuse_disagreement(first: str, index: pd.Index, name: str, other: pd.Index) -> None:
    codes = pd.factorize(index.append(other), use_na_sentinel=False)[0]
    mine, theirs = codes[: len(index)], codes[len(index) :]
    differ = mine != theirs
    if not differ.any():  # the same labels, stored in another type
        return
    i = int(np.flatnonzero(differ)[0])
    if np.array_equal(np.sort(mine), np.sort(theirs)):
        remedy = (
            "They have the same labels in a different order; use the same order, for example "
            f"{name}.loc[{first}.index]."
        )
    else:
        remedy = (
            "Take both from the same frame; if their order is known to be the same, drop the "
            "labels with .reset_index(drop=True)."
        )
    raise InputError(
        f"The pandas indices of {first!r} and {name!r} disagree in {rows_text(differ)}: at "
        f"position {i}, {first!r} has {readable(index[i])} and {name!r} has {readable(other[i])}. "
        f"Rows whose labels disagree are not matched by position. {remedy}"
    )
