"""The tables of the store, their version, and the way from older versions."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

# Each entry brings a store from version i to i + 1. A released entry is never edited: a new one is
# added, so that every store that ever existed can be opened.
MIGRATIONS = (
    """
    CREATE TABLE benchmarks (name TEXT PRIMARY KEY, about TEXT, metrics TEXT);
    CREATE TABLE cells (
        id TEXT PRIMARY KEY,          -- hash of the configuration
        kind TEXT NOT NULL,           -- cells of one kind can train as one fleet
        config TEXT NOT NULL,         -- JSON: task, method, seed
        status TEXT NOT NULL DEFAULT 'pending'
            CHECK (status IN ('pending', 'running', 'done', 'failed')),
        owner TEXT,                   -- the worker that runs or ran it
        fleet TEXT,                   -- the cells it trained with, or will go on with
        fleet_place INTEGER,
        attempts INTEGER NOT NULL DEFAULT 0,
        error TEXT,
        metrics TEXT,                 -- JSON: name -> value
        about TEXT,                   -- JSON: seconds, memory, device, size of its fleet
        finished REAL                 -- seconds since 1970
    );
    CREATE INDEX cells_by_status ON cells (status, kind);
    CREATE INDEX cells_by_fleet ON cells (fleet);
    CREATE TABLE plan (
        benchmark TEXT NOT NULL REFERENCES benchmarks (name),
        label TEXT NOT NULL,
        cell TEXT NOT NULL REFERENCES cells (id),
        position INTEGER NOT NULL,
        PRIMARY KEY (benchmark, label, cell)
    );
    CREATE TABLE workers (
        id TEXT PRIMARY KEY, machine TEXT, pid INTEGER, birth TEXT, lease REAL, started REAL,
        device TEXT, versions TEXT
    );
    CREATE TABLE speeds (kind TEXT, device TEXT, cells INTEGER, seconds REAL, whole INTEGER);
    CREATE INDEX speeds_by_kind ON speeds (kind, device);
    """,
)
VERSION = len(MIGRATIONS)


def refusal(message: str) -> Exception:
    """An error that the user can mend. Looked up late: it costs more than reading a store."""
    from dcem.table.checks import InputError

    return InputError(message)


def open_database(path: Path, *, create: bool) -> sqlite3.Connection:
    """Open a store, bringing an older one up to date; refuse a newer one and other files."""
    if not create and not path.exists():
        raise refusal(f"There is no store {path}. 'dcem benchmark run' makes one.")
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
    try:  # autocommit mode: every statement is its own transaction unless BEGIN says otherwise
        connection = sqlite3.connect(
            path, timeout=60, isolation_level=None, check_same_thread=False
        )
    except sqlite3.OperationalError as error:
        raise refusal(f"{path} cannot be opened: {error}.") from None
    try:
        _version(path, connection, may_be_new=create)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # safe against a killed process
        _migrate(connection)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise refusal(f"{path} cannot be written to: {error}.") from None
    except BaseException:
        connection.close()
        raise
    return connection


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a store without changing it, also where nothing may be written (a mounted archive)."""
    if not path.exists():
        raise refusal(f"There is no store {path}. 'dcem benchmark run' makes one.")
    # Where the folder is read-only, SQLite cannot make the files by which it would see writers.
    mode = "mode=ro" if os.access(path.parent, os.W_OK) else "immutable=1"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=10)
    try:
        version = _version(path, connection, may_be_new=False)
    except BaseException:
        connection.close()
        raise
    if version < VERSION:
        connection.close()
        open_database(path, create=False).close()
        return open_to_read(path)
    return connection


def _version(path: Path, connection: sqlite3.Connection, *, may_be_new: bool) -> int:
    """The schema version of a store: 0 where it is about to be made. Other files are refused, and
    left as they are: a database of somebody else must not get our tables."""
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    except sqlite3.DatabaseError as error:
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


def _migrate(connection: sqlite3.Connection) -> None:
    """Step by step, alone and whole: two processes that open a store at once do it once.

    The version is written also where nothing changes: a store that is read-only says so here, and
    not in the middle of a run.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        for step in MIGRATIONS[version:]:
            for statement in step.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
