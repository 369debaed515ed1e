"""Files and frames as Arrow columns: the only reader, whole or batch by batch in bounded memory.

CSV and Parquet files are read here, all others by `dcem.table.formats`.

Every cell of a CSV is read as text. Guessing types while reading would turn a "None" that means
"never ordered" into a missing value, and "007" into 7, before anybody could say otherwise. How the
text is laid out (encoding, delimiter, names) is told by `dcem.table.layout`.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import sys
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dcem.table import folders, formats
from dcem.table.frames import as_table
from dcem.table.layout import Layout, layout_of, numbered, several
from dcem.table.messages import InputError, require_columns

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".txt", ".parquet", *formats.SUFFIXES)
BLOCK_BYTES = 8 << 20  # of CSV text per batch
BATCH_ROWS = 32_768
MOST_ROWS = 1 << 20  # of a Parquet file at once
INDEX = re.compile(r"__index_level_\d+__")  # the row names of a pandas frame, in Parquet
DECIMAL_COMMA = r"^(\s*[-+]?\d+),(\d+\s*)$"
POINTS = r"^\s*[-+]?\d{1,3}(\.\d{3})+,\d+\s*$"  # of thousands


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
    path: Path, columns: Sequence[str] | None = None, *, query: str | None = None
) -> pa.Table:
    """All rows of a file; only `columns`, if given."""
    header = read_header(path, query)
    batches = list(read_batches(path, columns, verbatim=header, rows=sys.maxsize, query=query))
    if batches:
        return pa.Table.from_batches(batches)
    names = header if columns is None else list(columns)
    return pa.table({name: pa.array([], pa.string()) for name in names})


def read_batches(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    verbatim: Collection[str] = (),
    rows: int = BATCH_ROWS,
    query: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows in order, a batch at a time; memory does not grow with the file.

    Text in a Parquet file comes as codes into its distinct values, as it is stored, except for the
    columns in `verbatim`. `query` is SQL for a database, the name of a sheet of a
    workbook, or a file of a folder.
    """
    header = read_header(path, query)
    with readable(path):
        require_columns(header, columns or ())
        wanted = header if columns is None else list(columns)
        if formats.is_other(path):
            batches = _other(path, wanted, query, rows)
        else:
            batches = (_parquet if is_parquet(path) else _csv)(path, wanted, verbatim, rows)
        for batch in batches:
            yield plain_types(batch)


def _other(
    path: Path, columns: list[str], query: str | None, rows: int
) -> Iterator[pa.RecordBatch]:
    stored = formats.stored(path, query)
    names = numbered(stored.names)
    few = columns if names == stored.names else None  # a repeated name is found by its place
    for batch in stored.batches(few, rows):
        if batch.num_columns == len(names):
            batch = batch.rename_columns(names)
        yield batch.select(columns)


def _parquet(
    path: Path, columns: list[str], verbatim: Collection[str], rows: int
) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(path)
    text = [f.name for f in schema if pa.types.is_string(f.type) and f.name not in verbatim]
    stored = numbered(schema.names)
    if stored != schema.names:  # of a repeated name, Parquet finds both columns or none
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(
            batch_size=min(rows, MOST_ROWS)
        ):
            yield batch.rename_columns(stored).select(columns)
        return
    file = pyarrow.parquet.ParquetFile(
        path, read_dictionary=text, pre_buffer=False, buffer_size=folders.BUFFER
    )
    for batch in file.iter_batches(batch_size=min(rows, MOST_ROWS), columns=columns):
        yield batch.select(columns)


def _csv(
    path: Path, columns: list[str], verbatim: Collection[str], rows: int
) -> Iterator[pa.RecordBatch]:
    import pyarrow.csv as arrow

    layout = layout_of(path)
    # A quote that is never closed can swallow rows in any column, also in one nobody asked for.
    wanted = list(layout.fields) if layout.has_long_cells else [*columns, *layout.must_be_empty]
    reader = arrow.open_csv(
        path,
        read_options=arrow.ReadOptions(
            block_size=BLOCK_BYTES,
            column_names=list(layout.fields),
            skip_rows=layout.skip,
            encoding=layout.encoding,
        ),
        parse_options=arrow.ParseOptions(
            delimiter=layout.delimiter, newlines_in_values=layout.has_long_cells
        ),
        convert_options=arrow.ConvertOptions(
            column_types=dict.fromkeys(layout.fields, pa.string()),
            strings_can_be_null=False,
            include_columns=wanted,
        ),
    )
    for batch in reader:
        _refuse_swallowed(batch, layout)
        for start in range(0, batch.num_rows, rows):
            part = batch.slice(start, rows).select(columns)
            yield _with_decimal_points(part) if layout.has_decimal_commas else part


def _refuse_swallowed(batch: pa.RecordBatch, layout: Layout) -> None:
    """No cell may hold whole rows, and nothing may stand where the header has no name."""
    for name in layout.must_be_empty:
        if pc.any(pc.not_equal(batch.column(name), "")).as_py():
            raise InputError(
                "the rows end with a delimiter as if a column without a name followed, and some "
                "have a value there. Give that column a name."
            )
    if not layout.has_long_cells:
        return
    between = len(layout.fields) - 1
    for name in batch.schema.names:
        column = batch.column(name)
        long = column.filter(pc.match_substring(column, "\n")).to_pylist()
        for cell in long:
            breaks, marks = cell.count("\n"), cell.count(layout.delimiter)
            if between and marks >= breaks * between:
                shown = name or "(no name)"
                raise InputError(
                    f"a cell of column {shown!r} holds {breaks} line breaks and as many delimiters "
                    "as whole rows have: a quote that is never closed seems to have swallowed "
                    "them. Remove single quotation marks, or double them."
                )


def _with_decimal_points(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`3,5` as `3.5`, and `1.234,5` as `1234.5`."""
    arrays = []
    for column in batch.columns:
        grouped = pc.match_substring_regex(column, POINTS)
        if pc.any(grouped).as_py():
            column = pc.if_else(grouped, pc.replace_substring(column, ".", ""), column)
        arrays.append(pc.replace_substring_regex(column, DECIMAL_COMMA, r"\1.\2"))
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


_TEXT = (
    pa.types.is_string_view,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
)


def plain_types(batch: Any) -> Any:
    """A table or batch without Arrow's newer spellings of the same: views of text, extensions."""
    columns, changed = [], False
    for field, column in zip(batch.schema, batch.columns, strict=True):
        kind = field.type.storage_type if hasattr(field.type, "storage_type") else field.type
        if hasattr(field.type, "storage_type"):
            column = column.cast(kind)
        target: Any = kind
        if any(is_kind(kind) for is_kind in _TEXT):
            target = pa.string()
        elif pa.types.is_dictionary(kind) and any(is_kind(kind.value_type) for is_kind in _TEXT):
            target = pa.dictionary(pa.int32(), pa.string())
        elif pa.types.is_float16(kind):
            target = pa.float32()
        if target != field.type:
            changed = True
            try:
                column = column.cast(target)
            except pa.ArrowException:  # bytes that are not text stay what they are
                changed = changed and kind != field.type
        columns.append(column)
    if not changed:
        return batch
    return type(batch).from_arrays(columns, names=batch.schema.names)


def read_header(path: Path, query: str | None = None) -> list[str]:
    """The names of the columns; a repeated one is numbered: "x", "x (2)"."""
    names = numbered(stored_names(path, query))
    return [name for name in names if not INDEX.fullmatch(name)]


def stored_names(path: Path, query: str | None = None) -> list[str]:
    """The names of the columns as the file has them, repeated ones included."""
    if not path.is_dir() and not path.name.lower().endswith(SUFFIXES):
        raise InputError(
            f"{path}: unknown kind of file. Allowed: {', '.join(SUFFIXES[:-1])}; or a folder of "
            "Parquet files."
        )
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    with readable(path):
        if formats.is_other(path):
            return formats.stored(path, query).names
        formats.refuse_query(path, query)
        if not is_parquet(path):
            return list(layout_of(path).header)
        import pyarrow.parquet

        names: list[str] = pyarrow.parquet.read_schema(path).names
        return names


def notes(path: Path, query: str | None = None) -> tuple[str, ...]:
    """What a person should know about how the file is laid out."""
    found: tuple[str, ...] = ()
    if formats.is_other(path):
        found = formats.stored(path, query).notes
    elif not is_parquet(path):
        found = layout_of(path).notes
    if twins := several(stored_names(path, query)):
        shown = ", ".join(repr(name) for name in twins[:5])
        found += (
            f"{path.name} has several columns called {shown}. The later ones are called "
            f"'{twins[0]} (2)' and so on.",
        )
    return found


def repeated(source: Any, query: str | None = None) -> tuple[str, ...]:
    """Column names that occur several times in a file or frame."""
    if isinstance(source, Path):
        return several(stored_names(source, query))
    names = getattr(source, "column_names", getattr(source, "columns", ()))
    return several([str(name) for name in names])


def as_arrow(frame: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """Columns of whatever frame as an Arrow table; one that is not there is an error."""
    if not isinstance(frame, pd.DataFrame):
        table = as_table(frame)
        table = table.rename_columns(numbered(table.column_names))
        require_columns(table.column_names, columns or ())
        return plain_types(table if columns is None else table.select(list(columns)))
    names = numbered([str(name) for name in frame.columns])
    require_columns(names, columns or ())
    place = {name: i for i, name in enumerate(names)}
    wanted = names if columns is None else list(columns)
    arrays = [_arrow_column(frame.iloc[:, place[name]]) for name in wanted]
    return plain_types(pa.Table.from_arrays(arrays, names=wanted))


def _arrow_column(series: pd.Series) -> pa.Array:
    try:
        return pa.Array.from_pandas(series)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        # text and numbers in one column, or integers beyond 64 bits
        return pa.Array.from_pandas(series.astype(str).where(series.notna(), None))


def file_hash(path: Path, query: str | None = None) -> str:
    """SHA-256 of the file's bytes, and of the query; of a folder, of its files in order."""
    digest = sha256()
    for part in folders.parquet_files(path) if path.is_dir() else [path]:
        with part.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    digest.update((query or "").encode())
    return digest.hexdigest()


def frame_hash(table: pa.Table) -> str:
    """SHA-256 of the cells of a table that came from no file."""
    digest = sha256(repr(table.schema.names).encode())
    for batch in table.to_batches():
        digest.update(batch.serialize())
    return digest.hexdigest()


def is_parquet(path: Path) -> bool:
    """Whether the name says so."""
    return path.name.lower().endswith(".parquet")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Say of a file that cannot be read which file, and what is wrong with it.

    A parser quotes the line it stumbled over. That line is somebody's record, so its place is told
    and not its content.
    """
    is_csv = not is_parquet(path) and not formats.is_other(path)
    kind = "CSV" if is_csv else "Parquet" if is_parquet(path) or path.is_dir() else path.suffix
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: not a complete gzip file: {error}. Copy it again.") from None
    except InputError as error:
        known = str(error).startswith(str(path))
        raise error if known else InputError(f"{path}: {error}") from None
    except pa.ArrowException as error:
        why = _parse_failure(str(error)) if is_csv else _first_sentence(error)
        raise InputError(f"{path}: not a readable {kind} file: {why}") from None
    except OSError as error:
        if error.filename is not None:
            raise
        raise InputError(f"{path}: not a readable {kind} file: {_first_sentence(error)}") from None


def _parse_failure(message: str) -> str:
    """What Arrow says of a CSV, without the line that it quotes."""
    found = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", message)
    if found is None:
        return "it cannot be split into rows. Look for a quote that is never closed."
    row, expected, got = (int(number or 0) for number in found.groups())
    where = f"row {row:,} (the header is row 1)" if row else "a row"
    hint = (
        "The file may be truncated."
        if got < expected
        else "A value that holds the delimiter must be quoted."
    )
    return f"{where} has {got} columns, the header {expected}. {hint}"


def _first_sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) < 200 else text[:200] + " ..."
