"""Tables that lie elsewhere: fetched from an address, or what a database says when it is asked.

What is fetched lies in a folder that goes when the program ends. A database on a server is not
fetched: a file in that folder holds its address, password and all, and stands for it from then on.
What is shown of an address has no password (`masked_address`). Databases are opened read-only.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from dcem.extras import extra_needed
from dcem.files import stamp
from dcem.table.messages import InputError, quoted
from dcem.table.values import spell

POSTGRES = ("postgresql://", "postgres://")
SERVER = ".postgresql"  # the ending of a file that holds the address of a database
DATABASES = (".duckdb", ".sqlite", ".sqlite3", ".db", SERVER)
ROWS_PER_READ = 1 << 20  # that are read at once
ONLY_READS = "a query may only read this database: one SELECT statement."
ALONE: dict[str, Any] = {  # settings of DuckDB: this file is read, and nothing else anywhere
    "enable_external_access": False,
    "python_enable_replacements": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "lock_configuration": True,
}
READS = (
    sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE
)  # fmt: skip
HARMFUL = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"}  # functions
_addresses: dict[Path, str] = {}  # of what was fetched

_QUERY = re.compile(r"([?&][^?&=]*=)([^&#]*)")  # the names and values behind a question mark
_SECRET = re.compile(r"(?i)(password|secret|token|key)=$")

RecordBatches = Iterator[pa.RecordBatch]


def located(source: str | Path) -> Path:
    """The path of a table; one with an address such as `s3://bucket/visits.parquet` is fetched.

    Which addresses are known is up to fsspec and the packages beside it (s3fs, gcsfs, adlfs, ...).
    """
    address = str(source)
    if isinstance(source, Path) or "://" not in address:
        return Path(source)
    path = _fetched(address)
    _addresses[path] = address
    return path


def as_named(path: Path) -> str:
    """A table as it was named: its path, or its address without the password."""
    return masked_address(_addresses[path]) if path in _addresses else str(path)


def is_fetched(path: Path) -> bool:
    """Whether it lies where fetched tables do, which is nowhere to keep anything."""
    return bool(_scratch.cache_info().currsize) and path.is_relative_to(_scratch().name)


@cache  # an address is fetched once
def _fetched(address: str) -> Path:
    here = Path(_scratch().name) / hashlib.sha256(address.encode()).hexdigest()[:16]
    here.mkdir(exist_ok=True)
    if address.startswith(POSTGRES):
        database = address.partition("?")[0].rpartition("@")[2].rpartition("/")[2]
        name = re.sub(r"\W", "_", database) or "database"
        file = here / f"{name}{SERVER}"
        file.touch(0o600)
        file.write_text(address, encoding="utf-8")
        return file
    with extra_needed(masked_address(address)):
        import fsspec
    try:
        system, path = fsspec.url_to_fs(address)
        name = path.partition("?")[0].rstrip("/").rpartition("/")[2]  # without a signature
        if address.startswith("http") or not system.isdir(path):  # a page may list others
            system.get_file(path, str(here / name))  # not `get`, to which ? is a wildcard
        else:
            system.get(path, str(here / name), recursive=True)
    except (OSError, ValueError, ImportError) as error:
        missing = isinstance(error, FileNotFoundError)
        reason = "there is no such file" if missing else str(error) or type(error).__name__
        why = without_password(reason, address)
        raise InputError(f"{masked_address(address)} cannot be fetched: {why}") from None
    return here / name


def masked_address(address: str) -> str:
    """An address as it may be shown.

    >>> masked_address("postgresql://ann:secret@db/visits?password=secret")
    'postgresql://ann:***@db/visits?password=***'
    """
    kind, _, rest = address.partition("://")
    if not address.startswith(POSTGRES):  # an @ in what follows a question mark ends no password
        rest = _QUERY.sub(r"\1***", rest)
    user, at, place = rest.rpartition("@")
    name, colon, _ = user.partition(":")
    place = _QUERY.sub(r"\1***", place)
    return f"{kind}://{name}{colon}{'***' if colon else ''}{at}{place}"


def without_password(text: str, address: str) -> str:
    """What a driver says of an address, without the address and any piece of its password.

    A password with an unescaped `@` or `/` is cut in pieces by drivers, which then name one as the
    host.
    """
    text = text.replace(address, masked_address(address))
    secret = address.partition("://")[2].rpartition("@")[0].partition(":")[2]
    asked = _QUERY.findall(address)
    secrets = [secret, *(text for name, text in asked if len(text) > 7 or _SECRET.search(name))]
    for one in sorted({p for s in secrets for p in (s, *re.split(r"[@/:?#]", s))}, key=len)[::-1]:
        text = text.replace(one, "***") if one else text
    return text


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for this process alone, readable by its owner alone."""
    return tempfile.TemporaryDirectory(prefix="dcem-")


def tables_in(path: Path) -> dict[str, str]:
    """The tables in a database, each with the query that reads it."""
    ask, listing = _engine(path)
    names = [name for batch in ask(path, listing, 1000) for name in batch.column(0).to_pylist()]
    quoted = {name: name.replace('"', '""') for name in names}
    return {name: f'SELECT * FROM "{inside}"' for name, inside in quoted.items()}


def answer(path: Path, query: str | None) -> tuple[list[str], Callable[[int], RecordBatches]]:
    """The names of the columns that a query gives, or those of the only table, and its rows."""
    ask, _ = _engine(path)
    if query is None:
        tables = tables_in(path)
        if len(tables) != 1:
            raise InputError(
                f"{path} has {len(tables)} tables ({quoted(list(tables))}). Choose the rows with "
                "SQL, as `query`."
            )
        [query] = tables.values()
    sql = query.strip().rstrip(";")
    if ask is _postgres:  # which does all the work before it answers
        names = next(ask(path, f"SELECT * FROM ({sql}\n) AS asked LIMIT 0", 1)).schema.names
    else:
        names = list(_names(path, sql, stamp(path)))
    return names, lambda rows: (batch for batch in ask(path, sql, rows) if batch.num_rows)


@lru_cache(maxsize=64)
def _names(path: Path, sql: str, about: tuple[int, ...]) -> tuple[str, ...]:
    """The columns that a query gives: in brackets, those that a join has twice are renamed."""
    return tuple(next(_engine(path)[0](path, sql, 1)).schema.names)


def _engine(path: Path) -> tuple[Callable[[Path, str, int], RecordBatches], str]:
    """What runs SQL on a database, and the SQL that lists its tables."""
    schema = "SELECT table_name FROM information_schema.tables WHERE table_schema "
    if path.suffix == SERVER and is_fetched(path):
        return _postgres, f"{schema} NOT IN ('pg_catalog', 'information_schema')"
    with path.open("rb") as file:
        begins = file.read(16)
    if begins[8:12] == b"DUCK":
        return _duckdb, f"{schema} = 'main'"
    if begins.startswith(b"SQLite format 3"):
        names = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        return _sqlite, f"{names} AND name NOT LIKE 'sqlite_%'"
    raise InputError(f"{path} is neither a DuckDB nor an SQLite file.")


def _duckdb(path: Path, sql: str, rows: int) -> RecordBatches:
    """The result in batches, after one without rows that has the names; of this file alone."""
    with extra_needed(path.name):
        import duckdb
    try:
        with closing(duckdb.connect(str(path), read_only=True, config=ALONE)) as database:
            statements = database.extract_statements(sql)
            if [one.type.name for one in statements] != ["SELECT"]:
                raise InputError(f"{path}: {ONLY_READS}")
            reader = database.sql(statements[0]).to_arrow_reader(min(rows, ROWS_PER_READ))
            yield pa.RecordBatch.from_pylist([], reader.schema)
            yield from reader
    except duckdb.Error as error:
        raise InputError(f"{path}: {_first_line(error)}") from None


def _sqlite(path: Path, sql: str, rows: int) -> RecordBatches:
    """The same; types are those of all cells, since SQLite's columns have none."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            database.set_authorizer(_reading_alone)
            found = database.execute(sql)
            names = [column[0] for column in found.description or ()]
            yield pa.RecordBatch.from_arrays([pa.array([], pa.null())] * len(names), names=names)
            columns = [f"c{i}" for i in range(len(names))]
            asked = f"WITH asked({', '.join(columns)}) AS ({sql}\n)"
            each = ", ".join(f"group_concat(DISTINCT typeof({one}))" for one in columns)
            kinds = database.execute(f"{asked} SELECT {each} FROM asked").fetchone()
            while cells := found.fetchmany(min(rows, ROWS_PER_READ)):
                pairs = zip(zip(*cells, strict=True), kinds, strict=True)
                arrays = [_sqlite_column(*pair) for pair in pairs]
                yield pa.RecordBatch.from_arrays(arrays, names=names)
    except (sqlite3.Error, sqlite3.Warning) as error:  # a warning, of several statements
        refused = "authoriz" in str(error) or "one statement" in str(error)
        why = ONLY_READS if refused or "prohibited" in str(error) else _first_line(error)
        raise InputError(f"{path}: {why}") from None


def _reading_alone(action: int, name: str | None, *more: str | None) -> int:
    """Whether SQLite may do what a query asks for: read tables, and call harmless functions."""
    is_harmless = action in READS and not {name, *more} & HARMFUL
    return sqlite3.SQLITE_OK if is_harmless else sqlite3.SQLITE_DENY


def _sqlite_column(cells: Sequence[Any], kinds: str) -> pa.Array:
    """Cells in the type that holds all of their column, of these `kinds`; mixed ones as text."""
    own = {*kinds.split(",")} - {"null"}
    if own == {"integer"}:
        return pa.array(cells, pa.int64())
    if own == {"blob"}:
        return pa.array(cells, pa.binary())
    if own and own <= {"integer", "real"}:
        return pa.array([None if c is None else float(c) for c in cells], pa.float64())
    return pa.array([c if isinstance(c, str | None) else spell(c) for c in cells], pa.string())


def _postgres(path: Path, sql: str, rows: int) -> RecordBatches:
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
            yield from reader
    except dbapi.Error as error:
        raise InputError(f"{path}: {without_password(_first_line(error), address)}") from None


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
