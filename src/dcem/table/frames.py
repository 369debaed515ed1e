"""Whatever frame or column a person holds, as pandas or as Arrow.

Arrow's stream protocol is the short way; what does not speak it goes through narwhals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dcem.table.messages import InputError

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
    except (TypeError, pa.ArrowInvalid):  # the second of a single column
        raise InputError(
            f"Expected a frame (pandas, polars, Arrow, DuckDB or another one that narwhals knows), "
            f"got {type(frame).__name__}. For arrays there is SelectiveLabels.from_arrays, for "
            "files read_table."
        ) from None
    return (known.collect("pyarrow") if isinstance(known, nw.LazyFrame) else known).to_arrow()


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
