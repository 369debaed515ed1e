"""Whatever a person brings, as pandas: frames, columns, files."""

from __future__ import annotations

import errno
import os
import warnings
import zlib
from collections.abc import Sequence
from gzip import BadGzipFile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dcem.table.messages import InputError, require_columns, require_unique

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
    return pd.Series(column)


def read_table(
    path: str | Path, columns: Sequence[str] | None = None, *, text: str | None = None
) -> pd.DataFrame:
    """Read a .csv, .csv.gz or .parquet file; only `columns`, if given.

    Column names are checked before anything else is read. `text` names a column that must stay
    text in a CSV.
    """
    path = Path(path)
    name = path.name.lower()
    if not name.endswith((".csv", ".csv.gz", ".parquet")):
        raise InputError(f"Unknown kind of file {path.name!r}. Allowed: .csv, .csv.gz, .parquet.")
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if name.endswith(".parquet"):
        return _read_parquet(path, columns)
    return _read_csv(path, columns, text)


def _read_parquet(path: Path, columns: Sequence[str] | None) -> pd.DataFrame:
    import pyarrow
    import pyarrow.parquet

    try:
        header = pyarrow.parquet.read_schema(path).names
        require_unique(header)
        require_columns(header, columns or ())
        return pd.read_parquet(path, columns=None if columns is None else list(columns))
    except pyarrow.ArrowException as error:
        raise InputError(f"Not a readable Parquet file: {error}") from None


def _read_csv(path: Path, columns: Sequence[str] | None, text: str | None) -> pd.DataFrame:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # As data, not as header: pandas renames duplicates in a header without a word.
            first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False)
            header = list(first.iloc[0])
            if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
                raise InputError(
                    f"The header has no comma: {header[0]!r}. Save the table comma-separated."
                )
            require_unique(header)
            require_columns(header, columns or ())
            # No `usecols`: with it pandas cuts lines that are too long without a word.
            table = pd.read_csv(
                path,
                dtype=None if text is None else {text: str},
                index_col=False,
                low_memory=False,
            )
    except pd.errors.EmptyDataError:
        raise InputError("The file is empty: not even a header.") from None
    except pd.errors.ParserWarning:
        raise InputError(
            "The lines have more fields than the header has names. Give every column a name, also "
            "the row names that some programs write first."
        ) from None
    except pd.errors.ParserError as error:
        where = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        raise InputError(f"Not a table, its lines differ in length: {where}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"Not UTF-8 text ({error}). Save the file as UTF-8.") from None
    except (EOFError, BadGzipFile, zlib.error) as error:
        raise InputError(f"Not a complete gzip file: {error}. Copy it again.") from None
    return table if columns is None else table[list(columns)]
