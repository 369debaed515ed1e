"""The file behind a benchmark: opening and reading it, also where it is old or damaged.

A store is one SQLite file in write-ahead mode: readers never wait, and what was committed outlives
any crash of the process. Network file systems do not lock reliably; keep a store on a local disk.

`migrations/2.sql` brings a store from version 1 to version 2. A released migration is never edited:
another is added, so that every store that ever existed can be opened.

Every result carries a checksum of all that is exported of it. What a failing disk has changed is
noticed: it is left out when the store is read, and computed again by the next run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any

from dcem.benchmark.machine import birth, machine

STORE = "store.sqlite"
_MIGRATIONS = resources.files("dcem.benchmark") / "migrations"
VERSION = sum(file.name.endswith(".sql") for file in _MIGRATIONS.iterdir())
# How SQLite fails on a damaged file; its own message may be no text.
DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)
# What the checksum of a result is taken of, with the worker that computed it.
_CHECKED = "cells.id, config, metrics, about, finished, versions"
_WORKER = "LEFT JOIN workers ON workers.id = cells.owner"


def refusal(message: str) -> Exception:
    """An error that the user can mend. Looked up late: it costs more than reading a store."""
    from dcem.table.checks import InputError

    return InputError(message)


def checksum_of(*values: Any) -> str:
    """The checksum of the columns `_CHECKED`; SQLite calls it too."""
    return hashlib.sha256(json.dumps(values, default=repr).encode()).hexdigest()[:32]


def find_store(path: Path) -> Path:
    """The store file for a folder that `run` made, or for the file itself."""
    path = Path(path)
    return path / STORE if path.is_dir() else path


# -- opening ---------------------------------------------------------------------------------------


def open_database(path: Path, *, create: bool) -> sqlite3.Connection:
    """Open a store to work on it, bringing an older one up to date."""
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
    elif not path.exists():
        raise refusal(f"No store at {path}. 'dcem benchmark run' makes one.")
    try:  # autocommit mode: every statement is its own transaction unless BEGIN says otherwise
        db = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
    except sqlite3.OperationalError as error:
        raise refusal(f"{path} cannot be opened: {error}.") from None
    try:
        _version(path, db, may_be_new=create)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")  # safe against a killed process
        _migrate(db)
    except DAMAGE as error:
        db.close()
        raise refusal(f"{path} cannot be written to: {error}.") from None
    except BaseException:
        db.close()
        raise
    db.text_factory = _tolerant
    return db


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A store that is read and not changed, also where nothing may be written (an archive).

    An older store is read as it would be once brought up to date: a copy in memory is.
    """
    if not path.exists():
        raise refusal(f"No store at {path}. 'dcem benchmark run' makes one.")
    # Where the folder is read-only, SQLite cannot make the files by which it would see writers.
    mode = "mode=ro" if os.access(path.parent, os.W_OK) else "immutable=1"
    db = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=10)
    try:
        if _version(path, db, may_be_new=False) < VERSION:
            old, db = db, sqlite3.connect(":memory:", isolation_level=None)
            with closing(old):
                old.backup(db)
            _migrate(db)
        db.text_factory = _tolerant
        yield db
    except DAMAGE as error:
        raise refusal(f"{path} cannot be read: {error}.") from None
    finally:
        db.close()


def _tolerant(text: bytes) -> str:
    """Damaged text is read as something else, for the checksum to notice."""
    return text.decode(errors="replace")


def _version(path: Path, db: sqlite3.Connection, *, may_be_new: bool) -> int:
    """The schema version of a store: 0 where it is about to be made. Other files are refused, and
    left as they are: a database of somebody else must not get our tables."""
    try:
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
    except DAMAGE as error:
        raise refusal(f"{path} is not a benchmark store: {error}.") from None
    if version > VERSION:
        raise refusal(
            f"{path} has schema version {version}; this dcem knows {VERSION}. Use a newer dcem."
        )
    if version == 0 and not tables and may_be_new:
        return 0
    if version == 0 or not {"cells", "plan"} <= tables:
        raise refusal(f"{path} is not a benchmark store, and is left as it is.")
    return version


def _migrate(db: sqlite3.Connection) -> None:
    """Step by step, alone and whole: two processes that open a store at once do it once.

    The version is written also where nothing changes: a store that is read-only says so here, and
    not in the middle of a run.
    """
    db.create_function("checksum_of", -1, checksum_of)
    with transaction(db):
        version = db.execute("PRAGMA user_version").fetchone()[0]
        for step in range(version + 1, VERSION + 1):
            text = (_MIGRATIONS / f"{step}.sql").read_text(encoding="utf-8")
            for statement in text.split(";\n"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Read and write as one step, alone."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


# -- reading ---------------------------------------------------------------------------------------


def read_counts(path: Path) -> list[tuple[Any, ...]]:
    """Benchmark, label, done, running, pending, failed, damaged, and an error; as planned.

    Cells of workers that are gone, and damaged results, count as pending: a run computes them.
    """
    path = find_store(path)
    with reading(path) as db:
        refuse_damage(path, db)
        return db.execute(
            "WITH gone AS (SELECT value FROM json_each(?1)), "
            "damaged AS (SELECT value FROM json_each(?2)) "
            "SELECT benchmark, label, "
            "sum(status = 'done' AND id NOT IN damaged), "
            "sum(status = 'running' AND owner NOT IN gone), "
            "sum(status = 'pending' OR (status = 'running' AND owner IN gone) OR id IN damaged), "
            "sum(status = 'failed'), sum(id IN damaged), max(error) "
            "FROM plan JOIN cells ON plan.cell = cells.id "
            "GROUP BY benchmark, label ORDER BY benchmark, min(position)",
            (json.dumps(gone(db)), json.dumps(damaged(db))),
        ).fetchall()


def read_purposes(path: Path) -> dict[str, str]:
    """What each benchmark is for, in its own words."""
    with reading(find_store(path)) as db:
        return dict(db.execute("SELECT name, coalesce(about, '') FROM benchmarks").fetchall())


def read_cells(path: Path) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Every planned cell that can be read, and what is damaged, in words.

    A row says whether there is a result, benchmark, label, and the columns of `_CHECKED`.
    """
    path = find_store(path)
    with reading(path) as db:
        if _broken(db):
            rows, told = _salvaged(db, path), [f"{path} is damaged: what can be read of it is used"]
        else:
            told = []
            rows = db.execute(
                f"SELECT status = 'done', benchmark, label, checksum, {_CHECKED} "
                f"FROM plan JOIN cells ON plan.cell = cells.id {_WORKER} "
                "ORDER BY benchmark, position"
            ).fetchall()
    sound = [row for row in rows if not row[0] or row[3] == checksum_of(*row[4:])]
    if len(sound) < len(rows):
        told.append(f"{len(rows) - len(sound)} results in {path} are damaged, and left out")
    return [row[:3] + row[4:] for row in sound], told


def _salvaged(db: sqlite3.Connection, path: Path) -> list[tuple[Any, ...]]:
    """The rows of `read_cells` from a file whose pages are damaged: each by its number, alone."""

    def each(table: str, columns: str) -> Iterator[tuple[Any, ...]]:
        bound = path.stat().st_size  # there cannot be more rows than bytes
        with suppress(*DAMAGE):
            bound = min(bound, db.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0] or 0)
        for number in range(1, bound + 1):
            with suppress(*DAMAGE):
                query = f"SELECT {columns} FROM {table} WHERE rowid = ?"
                yield from db.execute(query, (number,)).fetchall()

    def is_planned(benchmark: str, label: str, cell: str) -> bool:
        """Whether the index says so too: names have no checksum, but are written twice."""
        query = "SELECT 1 FROM plan WHERE benchmark = ? AND label = ? AND cell = ?"
        with suppress(*DAMAGE):
            return bool(db.execute(query, (benchmark, label, cell)).fetchall())
        return False

    versions = dict(each("workers", "id, versions"))
    columns = "id, config, metrics, about, finished, owner, checksum, status = 'done'"
    cells = {row[0]: row[1:] for row in each("cells", columns)}
    rows = []
    plan = list(each("plan", "benchmark, label, cell, position"))
    for benchmark, label, cell, _ in sorted(plan, key=lambda row: (str(row[0]), *_whole(row[3:]))):
        if cell in cells and is_planned(benchmark, label, cell):
            *values, owner, checksum, done = cells[cell]
            rows.append((done, benchmark, label, checksum, cell, *values, versions.get(owner)))
    return rows


def _whole(values: tuple[Any, ...]) -> list[int]:
    """Numbers to sort by, where damage may have made something else of them."""
    return [value if isinstance(value, int) else -1 for value in values]


def damaged(db: sqlite3.Connection) -> list[str]:
    """Results whose checksum does not hold."""
    rows = db.execute(f"SELECT checksum, {_CHECKED} FROM cells {_WORKER} WHERE status = 'done'")
    return [cell for checksum, cell, *values in rows if checksum != checksum_of(cell, *values)]


def refuse_damage(path: Path, db: sqlite3.Connection) -> None:
    """Raise where the file is damaged beyond single results."""
    told = _broken(db)
    if told:
        raise refusal(
            f"{path} is damaged ({told}). Write what is sound to a table with 'dcem benchmark "
            "export', and begin again in another folder."
        )


def _broken(db: sqlite3.Connection) -> str:
    """What SQLite finds first where pages and indices do not fit each other; "" where they do."""
    try:
        told = str(db.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except DAMAGE as error:
        told = str(error)
    return "" if told == "ok" else told.splitlines()[-1]


def gone(db: sqlite3.Connection) -> list[str]:
    """Workers that hold cells and will not finish them: silent for too long, or seen to be dead."""
    workers = db.execute(
        "SELECT DISTINCT workers.id, machine, pid, birth, lease FROM workers "
        "JOIN cells ON cells.owner = workers.id WHERE status = 'running'"
    )
    return [
        worker
        for worker, where, pid, born, lease in workers.fetchall()
        if lease < time.time() or (where == machine() and birth(pid) != born)
    ]
