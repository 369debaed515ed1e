"""The file behind a benchmark: opening it, also where it is old or damaged.

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
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dcem.benchmark.machine import birth, machine
from dcem.table.messages import InputError

STORE = "store.sqlite"
_MIGRATIONS = resources.files("dcem.benchmark") / "migrations"
VERSION = sum(file.name.endswith(".sql") for file in _MIGRATIONS.iterdir())
WAIT = 60  # seconds for another process to let go of the file
# How SQLite fails on a damaged file; its own message may be no text.
DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)
# What the checksum of a result is taken of, with the worker that computed it.
CHECKED = "cells.id, config, metrics, about, finished, versions"
WORKER = "LEFT JOIN workers ON workers.id = cells.owner"


def checksum_of(*values: Any) -> str:
    """The checksum of the columns `CHECKED`; SQLite calls it too."""
    return hashlib.sha256(json.dumps(values, default=repr).encode()).hexdigest()[:32]


# -- opening ---------------------------------------------------------------------------------------


def open_database(path: Path, *, create: bool) -> sqlite3.Connection:
    """Open a store to work on it, bringing an older one up to date."""
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
    elif not path.exists():
        raise InputError(f"No store at {path}. 'dcem benchmark run' makes one.")
    try:  # autocommit mode: every statement is its own transaction unless BEGIN says otherwise
        db = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
    except sqlite3.OperationalError as error:
        raise InputError(f"{path} cannot be opened: {error}.") from None
    try:
        _version(path, db, may_be_new=create)
        _write_ahead(db)
        db.execute("PRAGMA synchronous = NORMAL")  # safe against a killed process
        _migrate(db)
    except DAMAGE as error:
        db.close()
        raise InputError(f"{path} cannot be written to: {error}.") from None
    except BaseException:
        db.close()
        raise
    db.text_factory = _tolerant
    return db


@contextmanager
def reading(path: Path) -> Iterator[tuple[Path, sqlite3.Connection]]:
    """A store (or the folder that `run` made) that is read and not changed, and its file.

    Also where nothing may be written (an archive). An older store is read as it would be once
    brought up to date: a copy in memory is.
    """
    path = Path(path)
    path = path / STORE if path.is_dir() else path
    if not path.exists():
        raise InputError(f"No store at {path}. 'dcem benchmark run' makes one.")
    # Where the folder is read-only, SQLite cannot make the files by which it would see writers, nor
    # read the log, which has what a killed process wrote last.
    archived = not os.access(path.parent, os.W_OK)
    log = path.with_name(f"{path.name}-wal")
    if archived and log.exists():
        with TemporaryDirectory() as aside:
            for file in (path, log):
                shutil.copy(file, aside)
            with reading(Path(aside) / path.name) as (_, db):
                yield path, db
        return
    place = f"{path.absolute().as_uri()}?{'immutable=1' if archived else 'mode=ro'}"
    try:
        with (
            closing(sqlite3.connect(place, uri=True, timeout=10)) as db,
            closing(sqlite3.connect(":memory:", isolation_level=None)) as copy,
        ):
            if _version(path, db, may_be_new=False) < VERSION:
                db.backup(copy)
                _migrate(copy)
                db = copy
            db.text_factory = _tolerant
            yield path, db
    except DAMAGE as error:
        raise InputError(f"{path} cannot be read: {error}.") from None


def _tolerant(text: bytes) -> str:
    """Damaged text is read as something else, for the checksum to notice."""
    return text.decode(errors="replace")


def _version(path: Path, db: sqlite3.Connection, *, may_be_new: bool) -> int:
    """The schema version of a store: 0 where it is about to be made. Other files are refused, and
    left as they are: a database of somebody else must not get our tables."""
    try:
        db.execute("BEGIN")  # one snapshot: another process may be making the tables just now
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
        db.execute("COMMIT")
    except DAMAGE as error:
        raise InputError(f"{path} is not a benchmark store: {error}.") from None
    if version > VERSION:
        raise InputError(
            f"{path} has schema version {version}; this dcem knows {VERSION}. Use a newer dcem."
        )
    if version == 0 and not tables and may_be_new:
        return 0
    if version == 0 or not {"cells", "plan"} <= tables:
        raise InputError(f"{path} is not a benchmark store, and is left as it is.")
    return version


def _write_ahead(db: sqlite3.Connection) -> None:
    """Switch to write-ahead mode. SQLite's own timeout does not cover this statement: where several
    processes open a new store at once, all but one are told that it is locked."""
    give_up = time.monotonic() + WAIT
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.01)


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


# -- what may be wrong -----------------------------------------------------------------------------


def damaged(db: sqlite3.Connection) -> list[str]:
    """Results whose checksum does not hold."""
    rows = db.execute(f"SELECT checksum, {CHECKED} FROM cells {WORKER} WHERE status = 'done'")
    return [cell for checksum, cell, *values in rows if checksum != checksum_of(cell, *values)]


def refuse_damage(path: Path, db: sqlite3.Connection) -> None:
    """Raise where the file is damaged beyond single results."""
    damage = broken(db)
    if damage:
        raise InputError(
            f"{path} is damaged ({damage}). Write what is sound to a table with 'dcem benchmark "
            "export', and begin again in another folder."
        )


def broken(db: sqlite3.Connection) -> str:
    """What SQLite finds first where pages and indices do not fit each other; "" where they do."""
    try:
        answer = str(db.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except DAMAGE as error:
        answer = str(error)
    return "" if answer == "ok" else answer.splitlines()[-1]


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
