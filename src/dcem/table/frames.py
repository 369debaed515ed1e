"""Whatever frame or column a person holds, as pandas or as Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dcem.table.messages import InputError

_PANDAS = (pd.DataFrame, pd.Series)


def as_frame(table: Any) -> pd.DataFrame:
    """A pandas frame from pandas, polars, or whatever else speaks Arrow's stream protocol."""
    if isinstance(table, pd.DataFrame):
        return table
    if is_arrow(table):
        import pyarrow

        return pyarrow.table(table).to_pandas()
    lazy = " Call .collect() on it first." if hasattr(table, "collect") else ""
    raise InputError(
        f"Expected a pandas or polars frame, got {type(table).__name__}.{lazy} "
        "For arrays there is SelectiveLabels.from_arrays, for files SelectiveLabels.from_file."
    )


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
        import pyarrow

        if hasattr(values, "columns"):
            return as_series(as_frame(values), name)
        return pyarrow.chunked_array(values).to_pandas()
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
