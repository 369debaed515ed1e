"""Files that are not CSV, as Arrow columns: Parquet, Arrow, workbooks, statistics, databases.

What a CSV says in text, these say in types, and the table that comes out is the same. Workbooks and
files of statistics packages are read whole: no such file is larger than memory for long. All others
are read batch by batch.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from dcem.extras import extra_needed
from dcem.files import stamp
from dcem.table.messages import InputError, did_you_mean, quoted
from dcem.table.remote import DATABASES, ROWS_PER_READ, answer, tables_in
from dcem.table.values import array_of, is_text_type, spell

PARQUET = ".parquet"
ARROW = (".arrow", ".feather", ".ipc")
BOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
STATISTICS = {  # suffix -> function of pyreadstat
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
SUFFIXES = (PARQUET, *ARROW, *BOOKS, *STATISTICS, *DATABASES)
BUFFER = 1 << 18  # bytes of a column of a Parquet file that are read ahead
NO_KEY = "__HIVE_DEFAULT_PARTITION__"  # a subfolder `ward=...` of rows without a ward

Names = Collection[str | None]
ReadBatches = Callable[[list[str] | None, int, Names, Names], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Stored:
    """A file: the names of its columns as stored, a way to its rows, what a person should know.

    `batches(columns, rows, verbatim, names)` yields at least the columns asked for (None: all),
    about `rows` at a time where the format can; text may come as codes, but for columns in
    `verbatim`, and decimal commas as points, but for columns in `names`.
    """

    names: list[str]
    batches: ReadBatches
    notes: tuple[str, ...] = ()


def several(names: Sequence[str]) -> tuple[str, ...]:
    """The names that occur more than once."""
    return tuple(name for name, number in Counter(names).items() if number > 1)


def unique_names(names: Sequence[str]) -> list[str]:
    """Names that occur once: the second "x" is "x (2)".

    >>> unique_names(["x", "y", "x"])
    ['x', 'y', 'x (2)']
    """
    found: dict[str, None] = {}  # in their order
    given, again = set(names), Counter[str]()
    for name in names:
        new = name
        while new in found or (new != name and new in given):
            again[name] += 1
            new = f"{name} ({again[name] + 1})"
        found[new] = None
    return list(found)


def stored(path: Path, query: str | None = None) -> Stored:
    """What is in a file; a whole one is kept for as long as it does not change.

    `query` is SQL for a database, the name of a sheet of a workbook, or a file of a folder.
    """
    suffix = path.suffix.lower()
    if path.is_dir():
        files = tuple(parquet_files(path))
        return _folder(path, query, files, tuple(map(stamp, files)))
    if suffix in DATABASES:
        names, ask = answer(path, query)
        return Stored(names, lambda _columns, rows, *_: ask(rows))
    if suffix in (*BOOKS, *STATISTICS):
        return _whole(path, query, stamp(path))
    refuse_query(path, query)
    return _arrow(path) if suffix in ARROW else _parquet(path)


@lru_cache(maxsize=2)
def _whole(path: Path, query: str | None, about: tuple[int, ...]) -> Stored:
    if path.suffix.lower() in BOOKS:
        return _workbook(path, query)
    refuse_query(path, query)
    return _statistics(path)


def tables_within(path: Path) -> dict[str, str]:
    """The tables in a database, or the sheets of a workbook, each with the query that reads it.

    Empty for a file that is a table by itself.
    """
    suffix = path.suffix.lower()
    if path.is_file() and suffix in DATABASES:
        return tables_in(path)
    if path.is_file() and suffix in BOOKS:
        return {name: name for name in _book(path).sheet_names}
    return {}


def refuse_query(path: Path, query: str | None) -> None:
    """Say of a file that is a table by itself that there is nothing to ask."""
    if query is not None:
        raise InputError(f"{path} is not a database or a workbook, so `query` does not apply.")


def _in_memory(table: pa.Table, notes: Sequence[str] = ()) -> Stored:
    whole = table.combine_chunks()
    return Stored(whole.column_names, lambda *_: iter(whole.to_batches()), tuple(notes))


# -- Parquet ---------------------------------------------------------------------------------------


def _parquet(path: Path) -> Stored:
    """One file; text comes as codes into its distinct values, as it is stored."""
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(path)

    def batches(
        columns: list[str] | None, rows: int, verbatim: Names, *_: object
    ) -> Iterator[pa.RecordBatch]:
        # Of a repeated name, Parquet finds both columns or none: then all are read, as they are.
        text = [f.name for f in schema if pa.types.is_string(f.type) and f.name not in verbatim]
        file = pyarrow.parquet.ParquetFile(
            path, read_dictionary=text if columns else [], pre_buffer=False, buffer_size=BUFFER
        )
        yield from file.iter_batches(batch_size=min(rows, ROWS_PER_READ), columns=columns)

    return Stored(schema.names, batches)


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files under a folder in order; names that begin with `_` or `.` do not count."""
    return sorted(
        path
        for path in folder.rglob("*.parquet")
        if path.is_file()
        and not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)
    )


@lru_cache(maxsize=64)
def _folder(
    folder: Path, only: str | None, files: tuple[Path, ...], about: tuple[tuple[int, ...], ...]
) -> Stored:
    """Parquet files as one table; a subfolder called `ward=A` is a column `ward`.

    `only` is the one whose rows are read; it has the columns and types of all.
    """
    if not files:
        raise InputError(f"{folder}: the folder has no .parquet files.")
    if only is not None and folder / only not in files:
        raise InputError(f"{folder} has no file {only!r}.")
    # All files are asked: a number that is whole in one of them may not be in the next.
    schemas = [_schema(file) for file in files]
    keys = {file: _keys(file.relative_to(folder)) for file in files}
    stored = {name for schema in schemas for name in schema.names}
    told = {name: pa.string() for own in keys.values() for name in own if name not in stored}
    schema = _common([*schemas, pa.schema(told)])

    def batches(columns: list[str] | None, rows: int, *_: object) -> Iterator[pa.RecordBatch]:
        wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        for file in files:
            if only is None or file == folder / only:
                yield from _part(file, wanted, keys[file], rows)

    return Stored(schema.names, batches)


def _keys(path: Path) -> dict[str, str | None]:
    """What the subfolders on the way to a file tell, as text: `site=007` is not `site=7`."""
    pairs = (part.partition("=") for part in path.parts[:-1] if "=" in part)
    return {name: None if text == NO_KEY else unquote(text) for name, _, text in pairs}


def _schema(file: Path) -> pa.Schema:
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_schema(file)
    except pa.ArrowException as error:
        raise InputError(f"{file}: not a readable Parquet file: {error}") from None


def _common(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The columns of all files; one that is text in some and not in others is text."""
    kinds: dict[str, set[pa.DataType]] = {}
    for field in (field for schema in schemas for field in schema):
        kinds.setdefault(field.name, set()).add(field.type)
    text = {
        name
        for name, found in kinds.items()
        if len(found) > 1
        and any(map(is_text_type, found))
        and not any(map(pa.types.is_nested, found))
    }
    plain = [
        pa.schema([pa.field(f.name, pa.string()) if f.name in text else f for f in schema])
        for schema in schemas
    ]
    return pa.unify_schemas(plain, promote_options="permissive")


def _part(
    path: Path, wanted: pa.Schema, keys: dict[str, str | None], rows: int
) -> Iterator[pa.RecordBatch]:
    """The rows of one file of a folder, with the columns of all and those its path tells (`keys`).

    Through a small buffer for each column: a file may be one row group, larger than memory.
    """
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER) as file:
        own = file.schema_arrow.names
        stored = [name for name in wanted.names if name in own]
        for batch in file.iter_batches(min(rows, ROWS_PER_READ), columns=stored or own[:1]):
            n = batch.num_rows
            arrays = [
                batch.column(field.name).cast(field.type)
                if field.name in stored
                else pa.nulls(n, field.type)
                if (key := keys.get(field.name)) is None
                else pa.repeat(pa.scalar(key).cast(field.type), n)
                for field in wanted
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted)


# -- Arrow files -----------------------------------------------------------------------------------


def _arrow(path: Path) -> Stored:
    """An Arrow file (Feather included) or stream."""
    try:
        names, is_file = pa.ipc.open_file(path).schema.names, True
    except pa.ArrowInvalid:
        names, is_file = pa.ipc.open_stream(path).schema.names, False

    def batches(*_: object) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(path)) as source:
            opened = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source)
            if is_file:
                yield from map(opened.get_batch, range(opened.num_record_batches))
            else:
                yield from opened

    return Stored(names, batches)


# -- workbooks -------------------------------------------------------------------------------------


def _workbook(path: Path, sheet: str | None) -> Stored:
    """A sheet of a workbook, the first one with cells unless it is named."""
    book = _book(path)
    sheets = book.sheet_names
    if sheet is not None and sheet not in sheets:
        hint = did_you_mean(sheet, sheets)
        raise InputError(f"{path} has no sheet {sheet!r}.{hint} It has: {quoted(sheets)}.")
    filled = {}
    for name in sheets if sheet is None else [sheet]:
        with _readable(path):
            rows, is_merged = _filled_rows(book.get_sheet_by_name(name))
        if rows:
            filled[name] = rows, is_merged
    if not filled:
        raise InputError(f"{path}: the workbook is empty.")
    taken, (rows, is_merged) = next(iter(filled.items()))
    notes = []
    if is_merged:
        notes.append(f"Cells of {path.name} that are merged over several rows count in each row.")
    if len(filled) > 1:
        notes.append(
            f"{path.name} has several sheets; {taken!r} is read. To read another, name it as "
            "`query`."
        )
    arrays, names = [], []
    for header, *cells in zip(*rows, strict=True):
        name, array = spell(header), array_of([None if cell == "" else cell for cell in cells])
        if name or array.null_count < len(array):
            arrays.append(array)
            names.append(name)
    return _in_memory(pa.Table.from_arrays(arrays, names=names), notes)


def _filled_rows(sheet: Any) -> tuple[list[list[Any]], bool]:
    """Rows of a sheet, and whether cells are merged downwards: these are in each of their rows.

    Other sheets show a merged cell in its first row and leave the others empty.
    """
    rows = sheet.to_python(skip_empty_area=True)
    top, left = sheet.start or (0, 0)
    is_merged = False
    for (first, column), (last, _) in sheet.merged_cell_ranges or ():
        below = [row for row in rows[first - top + 1 : last - top + 1] if _is_filled(row)]
        if below and first >= top and column >= left and first - top > 0:
            is_merged = True
            for row in below:
                row[column - left] = rows[first - top][column - left]
    return [row for row in rows if _is_filled(row)], is_merged


def _is_filled(row: list[Any]) -> bool:
    return any(cell != "" for cell in row)


def _book(path: Path) -> Any:
    with extra_needed(path.name), _readable(path):
        import python_calamine

        return python_calamine.CalamineWorkbook.from_path(str(path))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    import python_calamine

    try:
        yield
    except python_calamine.CalamineError as error:
        raise InputError(f"{path}: not a readable workbook: {error}.") from None


# -- statistics packages ---------------------------------------------------------------------------


def _statistics(path: Path) -> Stored:
    """A file of Stata, SPSS or SAS; labels of values take the place of their codes."""
    with extra_needed(path.name):
        import pyreadstat
    read = getattr(pyreadstat, STATISTICS[path.suffix.lower()])
    try:
        try:
            frame, about = read(str(path))
        except UnicodeDecodeError:
            frame, about = read(str(path), encoding="LATIN1")
    except (pyreadstat.PyreadstatError, pyreadstat.ReadstatError) as error:
        raise InputError(f"{path}: not a readable {path.suffix} file: {error}.") from None
    notes, arrays = [*_cut_notes(path, about)], []
    for place, name in enumerate(frame.columns):
        cells = frame.iloc[:, place].astype(object)
        values = [None if cell is None or cell != cell else cell for cell in cells]
        labels = about.variable_value_labels.get(name, {})
        found = set(values) - {None}
        labelled = found & labels.keys()
        if labelled and 2 * len(labelled) >= len(found):
            values = [labels.get(cell, cell) for cell in values]
        elif labelled:
            shown = ", ".join(
                f"{spell(code)} ({text})" for code, text in sorted(labels.items())[:3]
            )
            notes.append(
                f"Column {name!r} of {path.name} is read as numbers, because few of its values "
                f"have labels ({shown}). If these mean missing, list them under `missing`."
            )
        arrays.append(array_of(values))
    return _in_memory(pa.Table.from_arrays(arrays, names=list(frame.columns)), notes)


def _cut_notes(path: Path, about: Any) -> Iterator[str]:
    """A sentence for each column of text that goes on behind a NUL, at which pyreadstat cuts it.

    What stands there is text of other programs, or was left in memory: that cannot be told. Rows
    are all of one length, so that their cells can be found.
    """
    suffix, kinds = path.suffix.lower(), about.readstat_variable_types
    if suffix not in (".dta", ".xpt") or "string" not in kinds.values():
        return
    content = path.read_bytes()
    start = _first_row(suffix, content, len(about.column_names))
    more = suffix == ".dta"  # of text, where a byte is counted that the file does not have
    widths = [
        about.variable_storage_width[name] - (more and kinds[name] == "string")
        for name in about.column_names
    ]
    shape = about.number_rows or 0, sum(widths)
    if start is None or start + shape[0] * shape[1] > len(content):
        return
    rows = np.frombuffer(content, np.uint8, shape[0] * shape[1], start).reshape(shape)
    for name, width, end in zip(about.column_names, widths, np.cumsum(widths), strict=True):
        cells = rows[:, end - width : end]
        if kinds[name] == "string" and (cells == 0).any():
            goes_on = (cells[:, 1:] != 0) & (cells[:, 1:] != ord(" "))
            behind = np.maximum.accumulate(cells == 0, axis=1)[:, :-1]
            if cut := int((behind & goes_on).any(axis=1).sum()):
                yield (
                    f"Column {name!r} of {path.name} holds NUL characters, at which its text is "
                    f"cut in {cut:,} of {len(rows):,} rows: different values may have become one. "
                    "Export the table as CSV or Parquet."
                )


def _first_row(suffix: str, content: bytes, columns: int) -> int | None:
    """Where the rows begin in a file of Stata or of SAS transport, if that is known."""
    if suffix == ".xpt":
        place = re.search(rb"HEADER RECORD\*{7}OBS(V8)? +HEADER RECORD!{7}", content)
        return None if place is None else place.start() + 80
    if content[:11] == b"<stata_dta>":
        place = re.search(b"<data>", content)
        return None if place is None else place.end()
    if content[0] not in (114, 115):
        return None
    place_of_notes = 109 + columns * (1 + 33 + 49 + 33 + 81) + 2 * (columns + 1)
    order: Any = "big" if content[1] == 1 else "little"
    while (kind := content[place_of_notes : place_of_notes + 5]) and kind != bytes(5):
        place_of_notes += 5 + int.from_bytes(kind[1:], order)
    return place_of_notes + 5
