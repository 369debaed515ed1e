"""Whatever a person brings, as pandas: frames, columns, files."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dcem.checks._wording import InputError, require_columns, require_unique


def as_frame(table: Any) -> pd.DataFrame:
    """A pandas frame from pandas, polars, or whatever else speaks Arrow's stream protocol."""
    if isinstance(table, pd.DataFrame):
        return table
    if hasattr(table, "__arrow_c_stream__"):
        import pyarrow

        return pyarrow.table(table).to_pandas()
    lazy = " Call .collect() on it first." if hasattr(table, "collect") else ""
    raise InputError(
        f"Expected a pandas or polars frame, got {type(table).__name__}.{lazy} "
        "For arrays there is SelectiveLabels.from_arrays, for files SelectiveLabels.from_file."
    )


def shape_of(values: Any) -> tuple[int, ...]:
    """The shape of anything array-like, lists included."""
    return tuple(values.shape if hasattr(values, "shape") else np.asarray(values).shape)


def as_series(values: Any, name: str) -> pd.Series:
    """One column as a pandas series; `name` is what an error calls it."""
    if isinstance(values, pd.Series):
        return values
    if isinstance(values, pd.DataFrame) and values.shape[1] == 1:
        return values.iloc[:, 0]
    if hasattr(values, "__arrow_c_stream__") and not isinstance(values, pd.DataFrame):
        import pyarrow

        values = pyarrow.chunked_array(values).to_pandas()
    # A masked array goes to pandas as it is: np.asarray would show what the mask hides.
    column = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise InputError(
            f"{name!r} should be a 1d array, one value per row; it has shape {column.shape}."
        )
    return pd.Series(column)


def read_table(
    path: str | Path, columns: Sequence[str] | None = None, *, text: str | None = None
) -> pd.DataFrame:
    """Read a .csv, .csv.gz or .parquet file; only `columns`, if given.

    Column names are checked before anything else is read. `text` names a column that a CSV reader
    must not turn into numbers.
    """
    path = Path(path)
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        import pyarrow.parquet

        with pyarrow.parquet.ParquetFile(path) as file:
            header = file.schema_arrow.names
    elif name.endswith((".csv", ".csv.gz")):
        try:
            # As data, not as header: pandas renames duplicates in a header without a word.
            first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False)
        except pd.errors.EmptyDataError:
            raise InputError("The file is empty: not even a header.") from None
        header = list(first.iloc[0])
    else:
        raise InputError(f"Unknown kind of file {path.name!r}. Allowed: .csv, .csv.gz, .parquet.")
    require_unique(header)
    if columns is not None:
        if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
            raise InputError(f"The header has no comma: {header[0]!r}. Save it comma-separated.")
        require_columns(header, columns)
    if name.endswith((".parquet", ".pq")):
        return pd.read_parquet(path, columns=None if columns is None else list(columns))
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(
                path,
                usecols=None if columns is None else list(columns),
                dtype=None if text is None else {text: str},
                index_col=False,
                low_memory=False,
            )
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            raise InputError(f"Not a well-formed CSV: {error}") from None
