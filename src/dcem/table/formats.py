"""Files that are neither CSV nor a single Parquet file, as Arrow columns.

A workbook, a file of a statistics package, a database or a folder of Parquet files becomes batches
of typed columns; what a CSV says in text, these say in types, and the table that comes out is the
same. Folders, Arrow files and DuckDB's databases are read batch by batch. Workbooks and files of
statistics packages are read whole: no such file is larger than memory for long.
"""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from dcem.extras import extra_needed
from dcem.table.addresses import SERVER, is_fetched, without_password
from dcem.table.folders import Batches, parquet_files, read_folder
from dcem.table.messages import InputError, did_you_mean, listed
from dcem.table.values import spell

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
DATABASES = (".duckdb", ".sqlite", ".sqlite3", ".db", SERVER)
SUFFIXES = (*ARROW, *BOOKS, *STATISTICS, *DATABASES)


@dataclass(frozen=True)
class Stored:
    """A file: the names of its columns as stored, a way to its rows, what a person should know.

    `batches(columns, rows)` yields at least the columns asked for (None: all), `rows` at a time.
    """

    names: list[str]
    batches: Batches
    notes: tuple[str, ...] = ()


def is_other(path: Path) -> bool:
    """Whether a file is one of these."""
    return path.is_dir() or path.name.lower().endswith(SUFFIXES)


def in_batches(path: Path) -> bool:
    """Whether a file is read batch by batch; SQLite tells the types of columns at its end alone."""
    suffix = path.suffix.lower()
    whole = suffix in (*BOOKS, *STATISTICS) or (suffix in DATABASES and not _is_duckdb(path))
    return path.is_dir() or not whole


def stored(path: Path, query: str | None = None) -> Stored:
    """What is in a file; a whole one is kept for as long as it does not change.

    `query` is SQL for a database, the name of a sheet of a workbook, or a file of a folder.
    """
    suffix = path.suffix.lower()
    if path.is_dir():
        files = tuple(parquet_files(path))
        changed = max((file.stat().st_mtime_ns for file in files), default=0)
        return Stored(*read_folder(path, query, files, changed))
    if suffix in ARROW:
        refuse_query(path, query)
        return _arrow(path)
    if suffix in DATABASES:
        return _database(path, query)
    about = path.stat()
    return _whole(path, query, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=2)
def _whole(path: Path, query: str | None, changed: int, size: int) -> Stored:
    if path.suffix.lower() in BOOKS:
        return _workbook(path, query)
    refuse_query(path, query)
    return _statistics(path)


def contents(path: Path) -> dict[str, str]:
    """The tables in a database, or the sheets of a workbook, each with the query that reads it.

    Empty for a file that is a table by itself.
    """
    suffix = path.suffix.lower()
    if path.is_file() and suffix in DATABASES:
        run, kind = _engine(path)
        found = [n for batch in run(path, TABLES[kind], 1000) for n in batch.column(0).to_pylist()]
        return {name: _all_of(name) for name in found}
    if path.is_file() and suffix in BOOKS:
        return {name: name for name in _book(path).sheet_names}
    return {}


def refuse_query(path: Path, query: str | None) -> None:
    """Say of a file that is a table by itself that there is nothing to ask."""
    if query is not None:
        raise InputError(f"{path} is not a database or a workbook: it takes no `query`.")


def _in_memory(table: pa.Table, notes: Sequence[str] = ()) -> Stored:
    def batches(columns: list[str] | None, rows: int) -> Iterator[pa.RecordBatch]:
        yield from table.combine_chunks().to_batches(max_chunksize=min(rows, max(len(table), 1)))

    return Stored(table.column_names, batches, tuple(notes))


# -- Arrow files -----------------------------------------------------------------------------------


def _arrow(path: Path) -> Stored:
    """An Arrow file (Feather included) or stream."""
    try:
        names = pa.ipc.open_file(path).schema.names
        is_file = True
    except pa.ArrowInvalid:
        names = pa.ipc.open_stream(path).schema.names
        is_file = False

    def batches(columns: list[str] | None, rows: int) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(path)) as source:
            opened = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source)
            read = (
                (opened.get_batch(i) for i in range(opened.num_record_batches))
                if is_file
                else opened
            )
            for batch in read:
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)

    return Stored(names, batches)


# -- workbooks -------------------------------------------------------------------------------------


def _workbook(path: Path, sheet: str | None) -> Stored:
    """A sheet of a workbook, the first one with cells unless it is named."""
    book = _book(path)
    sheets = book.sheet_names
    if sheet is not None and sheet not in sheets:
        hint = did_you_mean(sheet, sheets)
        raise InputError(f"{path} has no sheet {sheet!r}.{hint} It has: {listed(sheets)}.")
    filled = {}
    for name in sheets if sheet is None else [sheet]:
        with _readable(path):
            rows = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
        if any(cell != "" for row in rows for cell in row):
            filled[name] = rows
    if not filled:
        raise InputError(f"{path}: the workbook is empty.")
    taken, rows = next(iter(filled.items()))
    notes = []
    if len(filled) > 1:
        notes.append(
            f"{path.name} has several sheets; {taken!r} is read. Another one: name it with `query`."
        )
    header, *cells = [row for row in rows if any(cell != "" for cell in row)]
    names = [spell(name) for name in header]
    columns = [
        (name, objects([None if cell == "" else cell for cell in column]))
        for name, column in zip(
            names, zip(*cells, strict=True) if cells else [()] * len(names), strict=True
        )
    ]
    kept = [(name, column) for name, column in columns if name or column.null_count < len(column)]
    table = pa.Table.from_arrays([column for _, column in kept], names=[name for name, _ in kept])
    return _in_memory(table, notes)


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


def objects(cells: Sequence[Any]) -> pa.Array:
    """Cells of Python's types as one Arrow column; of mixed kinds, as text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int, float} or len(kinds) == 1:
        try:
            array = pa.array(cells)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # integers beyond 64 bits
            pass
        else:
            if pa.types.is_timestamp(array.type) and _all_midnight(cells):
                return array.cast(pa.date32())
            return array
    if kinds <= {datetime.date, datetime.datetime}:
        return pa.array(cells, pa.timestamp("us"))
    return pa.array([None if cell is None else spell(cell) for cell in cells], pa.string())


def _all_midnight(cells: Sequence[Any]) -> bool:
    return all(cell is None or cell.time() == datetime.time() for cell in cells)


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
    except pyreadstat.PyreadstatError as error:
        raise InputError(f"{path}: not a readable {path.suffix} file: {error}.") from None
    notes, arrays = [], []
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
                f"Column {name!r} of {path.name} is read as numbers: labels stand for few of its "
                f"values ({shown}). If these mean a missing value, list them under `missing`."
            )
        arrays.append(objects(values))
    return _in_memory(pa.Table.from_arrays(arrays, names=list(frame.columns)), notes)


# -- databases -------------------------------------------------------------------------------------

TABLES = {
    "duckdb": "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'",
    "sqlite": "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
    "AND name NOT LIKE 'sqlite_%'",
    "postgres": "SELECT table_name FROM information_schema.tables "
    "WHERE table_schema NOT IN ('pg_catalog', 'information_schema')",
}


def _database(path: Path, query: str | None) -> Stored:
    """What a query says, or the only table; the database is opened for reading alone."""
    run, _ = _engine(path)
    if query is None:
        tables = contents(path)
        if len(tables) != 1:
            raise InputError(
                f"{path} has {len(tables)} tables ({listed(list(tables))}): say which rows, as "
                "SQL, with `query`."
            )
        [query] = tables.values()
    sql = query.strip().rstrip(";")
    names = next(iter(run(path, f"SELECT * FROM ({sql}) AS asked LIMIT 0", 1))).schema.names
    return Stored(
        names, lambda columns, rows: (batch for batch in run(path, sql, rows) if batch.num_rows)
    )


def _begins(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(16)


def _is_duckdb(path: Path) -> bool:
    return _begins(path)[8:12] == b"DUCK"


def _engine(path: Path) -> tuple[Callable[[Path, str, int], Iterator[pa.RecordBatch]], str]:
    """What runs SQL on a database, and its kind."""
    if path.suffix == SERVER and is_fetched(path):
        return _postgres, "postgres"
    if _is_duckdb(path):
        return _duckdb, "duckdb"
    if _begins(path).startswith(b"SQLite format 3"):
        return _sqlite, "sqlite"
    raise InputError(f"{path}: neither a DuckDB nor an SQLite file.")


def _all_of(table: str) -> str:
    name = table.replace('"', '""')
    return f'SELECT * FROM "{name}"'


def _duckdb(path: Path, sql: str, rows: int) -> Iterator[pa.RecordBatch]:
    """The result in batches, after one without rows that has the names; of this file alone."""
    with extra_needed(path.name):
        import duckdb
    alone: dict[str, Any] = {"enable_external_access": False}
    try:
        with closing(duckdb.connect(str(path), read_only=True, config=alone)) as database:
            reader = database.sql(sql).to_arrow_reader(min(rows, 1 << 20))
            yield pa.RecordBatch.from_pylist([], reader.schema)
            yield from reader
    except duckdb.Error as error:
        raise InputError(f"{path}: {_first_line(error)}") from None


def _sqlite(path: Path, sql: str, rows: int) -> Iterator[pa.RecordBatch]:
    """The same; types are those of the cells, since SQLite's columns have none."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            found = database.execute(sql)
            names = [column[0] for column in found.description or ()]
            yield pa.RecordBatch.from_arrays([pa.array([], pa.null())] * len(names), names=names)
            while cells := found.fetchmany(min(rows, 1 << 30)):
                arrays = [objects(column) for column in zip(*cells, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, names=names)
    except sqlite3.Error as error:
        raise InputError(f"{path}: {_first_line(error)}") from None


def _postgres(path: Path, sql: str, rows: int) -> Iterator[pa.RecordBatch]:
    """The same of a server, whose address is in the file."""
    with extra_needed("PostgreSQL"):
        from adbc_driver_postgresql import dbapi
    address = path.read_text(encoding="utf-8")
    try:
        with dbapi.connect(address) as database, database.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
            cursor.execute(sql)
            reader = cursor.fetch_record_batch()
            yield pa.RecordBatch.from_pylist([], reader.schema)
            for batch in reader:
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)
    except dbapi.Error as error:
        raise InputError(f"{path}: {without_password(_first_line(error), address)}") from None


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
