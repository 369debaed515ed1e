"""Files and frames as Arrow columns: the only reader, whole or batch by batch in bounded memory.

What each kind of file needs is in `dcem.table.csv_files` and `dcem.table.formats`.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dcem.table import csv_files, formats, values
from dcem.table.formats import Stored, several, unique_names
from dcem.table.frames import as_table
from dcem.table.messages import InputError, naming, quoted, require_columns

READ_SUFFIXES = (*csv_files.SUFFIXES, *formats.SUFFIXES)
BATCH_ROWS = 32_768
TOTAL = re.compile(
    r"((grand )?totals?|sums?|summe|gesamt(summe)?|somme|totale?|suma)[\s:=\d.,]*", re.I
)
NO_NAME = re.compile(r"\s*(Unnamed: \d+)?")
FIRST_ROWS = 100  # by which it is told whether the header is the header
_TEXT = ("string_view", "large_string", "binary", "large_binary", "binary_view")  # of Arrow
INDEX = re.compile(r"__index_level_\d+__")  # the row names of a pandas frame, in Parquet


@dataclass(frozen=True)
class Source:
    """Where a table came from: enough to know it again, nothing about a person."""

    name: str  # of the file, without its folders
    rows: int
    columns: int
    sha256: str
    drawn_from: int = 0  # rows of the file, where only some were read
    all_rows: bool = False  # whether a model learnt from the others too


def read_whole(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    names: Collection[str | None] = (),
    query: str | None = None,
) -> pa.Table:
    """All rows of a file; only `columns`, if given; `names` as for `read_batches`."""
    header = read_header(path, query)
    how: dict[str, Any] = {"verbatim": header, "names": names, "query": query}
    batches = list(read_batches(path, columns, rows=sys.maxsize, **how))
    if batches:
        return pa.Table.from_batches(batches)
    names = header if columns is None else list(columns)
    return pa.table({name: pa.array([], pa.string()) for name in names})


def read_batches(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    verbatim: Collection[str] = (),
    names: Collection[str | None] = (),
    rows: int = BATCH_ROWS,
    query: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows in order, a batch at a time; memory does not grow with the file.

    Text in a Parquet file comes as codes into its distinct values, as it is stored, except for the
    columns in `verbatim`. Columns in `names` hold no numbers: what a CSV says in them stays as it
    is written, `1.234` and `1,5` too. `query` is SQL for a database, the name of a sheet of a
    workbook, or a file of a folder.
    """
    stored = _opened(path, query)
    header = unique_names(stored.names)
    wanted = _columns_of(stored) if columns is None else list(columns)
    with _readable(path):
        require_columns(_columns_of(stored), wanted)
        few = wanted if header == stored.names else None  # a repeated name is found by its place
        for batch in stored.batches(few, rows, verbatim, names):
            named = batch.rename_columns(header) if few is None else batch
            for start in range(0, batch.num_rows, rows):
                yield plain_types(named.slice(start, rows).select(wanted))


def plain_types(batch: Any) -> Any:
    """A table or batch without Arrow's newer spellings of the same: views of text, extensions."""
    stored = batch.columns
    columns = [_usual_type(column) for column in stored]
    if all(new is old for new, old in zip(columns, stored, strict=True)):
        return batch
    return type(batch).from_arrays(columns, names=batch.schema.names)


def _usual_type(column: Any) -> Any:
    if getattr(column.type, "extension_name", "") == "arrow.uuid":
        return pa.array([one and str(one) for one in column.to_pylist()], pa.string())
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if hasattr(column.type, "storage_type"):
        column = column.cast(column.type.storage_type)
    kind = target = column.type
    is_coded = pa.types.is_dictionary(kind)
    if values.is_any(kind.value_type if is_coded else kind, *_TEXT):
        target = pa.dictionary(pa.int32(), pa.string()) if is_coded else pa.string()
    elif pa.types.is_float16(kind):
        target = pa.float32()
    try:
        return column if target == kind else column.cast(target)
    except pa.ArrowException:  # bytes that are not text stay what they are
        return column


def read_header(path: Path, query: str | None = None) -> list[str]:
    """The names of the columns; a repeated one is numbered: "x", "x (2)"."""
    names = _columns_of(_opened(path, query))
    if not names:
        raise InputError(f"{path}: the table has no columns.")
    return names


def _columns_of(stored: Stored) -> list[str]:
    return [name for name in unique_names(stored.names) if not INDEX.fullmatch(name)]


def _opened(path: Path, query: str | None = None) -> Stored:
    if not (path.is_dir() or path.name.lower().endswith(READ_SUFFIXES)):
        unpack = " Unpack it first." if path.suffix.lower() in (".zip", ".7z", ".rar") else ""
        raise InputError(
            f"{path}: unknown type of file.{unpack} Allowed: {', '.join(READ_SUFFIXES[:-1])}; or a "
            "folder of Parquet files."
        )
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    with _readable(path):
        if not csv_files.is_csv(path):
            return formats.stored(path, query)
        formats.refuse_query(path, query)
        return csv_files.stored_csv(path)


def notes(path: Path, query: str | None = None) -> tuple[str, ...]:
    """What a person should know about how the file is laid out."""
    stored = _opened(path, query)
    found = stored.notes
    if (unnamed := sum(NO_NAME.fullmatch(name) is not None for name in stored.names)) > 1:
        found += (
            f"{unnamed} of {len(stored.names)} columns of {path.name} have no name in the first "
            "row. If the names are in a later row, remove the rows above it.",
        )
    if twins := [name for name in several(stored.names) if not NO_NAME.fullmatch(name)]:
        found += (
            f"{path.name} has several columns called {quoted(twins, 5)}. The later ones become "
            f"'{twins[0]} (2)' and so on.",
        )
    return found


def strange_rows(table: pa.Table) -> Iterator[str]:
    """What a person should know: names that are data, data that are names, and totals.

    A table without rows is refused.
    """
    if table.num_rows == 0:
        raise InputError("The table has a header but no rows.")
    data: list[str] = []
    below: dict[str, str] = {}
    total: dict[str, str] = {}
    last = table.slice(table.num_rows - 1)
    for name, column in zip(table.column_names, table.slice(0, FIRST_ROWS).columns, strict=True):
        if not values.is_text(column):
            continue
        cells = [cell.strip() if cell else "" for cell in column.to_pylist()]
        data += [name] if name in cells and len(set(cells)) > 2 else []
        later = [cell for cell in cells[3:] if cell]  # there may be several rows of names
        words = cells[0].casefold() not in values.NOT_A_NUMBER | {""}
        if words and values.all_numbers(later) and not values.all_numbers(cells[:1]):
            below[name] = cells[0]
        end = (last.column(name)[0].as_py() or "").strip()
        total |= {name: end} if TOTAL.fullmatch(end) else {}
    empty, again = _rows_of(table, _is_empty), _rows_of(table, _is_name)
    if empty:
        yield f"Rows without any value, counted as people: {empty:,}. Remove them."
    if again:
        yield f"Rows that repeat the header, counted as people: {again:,}. Remove them."
    elif len(data) > 1:
        yield (
            f"{data[0]!r} and {data[1]!r} are names of columns and also values in them. If the "
            "first row is data, put a row of names above it."
        )
    if len(below) > 1:
        name, cell = next(iter(below.items()))
        yield (
            f"The first row below the header looks like names or units ({name!r} is {cell!r}) but "
            "counts as a person. Keep only one row of names above the data."
        )
    for name, cell in list(total.items())[:1]:
        yield (
            f"The last row looks like a total ({name!r} is {cell!r}) but counts as a person. "
            "Remove it if it is a total."
        )


def _is_empty(name: str, column: pa.ChunkedArray) -> np.ndarray:
    if not values.is_known(column):
        return np.asarray(column.is_null())
    return values.coded(column).codes < 0


def _is_name(name: str, column: pa.ChunkedArray) -> np.ndarray:
    if not values.is_text(column):
        return np.zeros(len(column), bool)
    return np.asarray(pc.equal(column.cast(pa.string()), name).fill_null(False))


def _rows_of(table: pa.Table, is_such: Callable[[str, pa.ChunkedArray], np.ndarray]) -> int:
    """In how many rows every cell is such; most tables are known by their first columns."""
    rows = np.ones(table.num_rows, bool)
    for name, column in zip(table.column_names, table.columns, strict=True):
        rows &= is_such(name, column)
        if not rows.any():
            break
    return int(rows.sum())


def repeated(source: Any, query: str | None = None) -> tuple[str, ...]:
    """Column names that occur several times in a file or frame."""
    if isinstance(source, Path):
        return several(_opened(source, query).names)
    names = getattr(source, "column_names", getattr(source, "columns", ()))
    return several([str(name) for name in names])


def as_arrow(frame: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """Columns of whatever frame as an Arrow table; one that is not there is an error."""
    if not isinstance(frame, pd.DataFrame):
        table = as_table(frame)
        table = table.rename_columns(unique_names(table.column_names))
        names = [name for name in table.column_names if not INDEX.fullmatch(name)]
        require_columns(names, columns or ())
        return plain_types(table.select(names if columns is None else list(columns)))
    names = unique_names([str(name) for name in frame.columns])
    require_columns(names, columns or ())
    place = {name: i for i, name in enumerate(names)}
    wanted = list(names if columns is None else columns)
    arrays = [_arrow_column(frame.iloc[:, place[name]]) for name in wanted]
    return plain_types(pa.Table.from_arrays(arrays, names=wanted))


def _arrow_column(series: pd.Series) -> pa.Array:
    dtype = getattr(series.dtype, "categories", series).dtype
    try:
        if not isinstance(dtype, pd.IntervalDtype | pd.PeriodDtype):  # 2020Q1 is not number 200
            return pa.Array.from_pandas(series)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        pass  # text and numbers in one column, or integers beyond 64 bits
    return pa.Array.from_pandas(series.astype(object).astype(str).where(series.notna(), None))


def file_hash(path: Path, query: str | None = None) -> str:
    """SHA-256 of the file's bytes, and of the query; of a folder, of its files in order."""
    digest = sha256()
    for part in formats.parquet_files(path) if path.is_dir() else [path]:
        with part.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    digest.update((query or "").encode())
    return digest.hexdigest()


def frame_hash(table: pa.Table) -> str:
    """SHA-256 of the cells of a table that came from no file."""
    digest = sha256(repr(table.schema.names).encode())
    for batch in table.to_batches():
        columns = [  # the names of categories are not part of a batch
            one.dictionary_decode() if pa.types.is_dictionary(one.type) else one
            for one in batch.columns
        ]
        digest.update(pa.RecordBatch.from_arrays(columns, names=table.column_names).serialize())
    return digest.hexdigest()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Say of a file that cannot be read which file, and what is wrong with it.

    A parser quotes the line it stumbled over. That line is somebody's record, so its place is told
    and not its content.
    """
    parquet = path.is_dir() or path.suffix.lower() == formats.PARQUET
    kind = "CSV" if csv_files.is_csv(path) else "Parquet" if parquet else path.suffix
    with naming(path):
        try:
            yield
        except pa.ArrowException as error:
            is_csv = kind == "CSV"
            why = csv_files.parse_failure(path, str(error)) if is_csv else _first_sentence(error)
            raise InputError(f"{path}: not a readable {kind} file: {why}") from None
        except OSError as error:
            if error.filename is not None:
                raise
            kind, why = f"readable {kind}", _first_sentence(error)
            if packed := csv_files.PACKED.get(path.suffix.lower()):
                kind, why = f"complete {packed}", f"{why}. Copy it again, or rename it."
            raise InputError(f"{path}: not a {kind} file: {why}") from None


def _first_sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) < 200 else text[:200] + " ..."
