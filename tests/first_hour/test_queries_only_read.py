"""A query of a database reads that database, and does nothing else."""

import hashlib
import sqlite3

import pytest
from typer.testing import CliRunner

from dcem import InputError
from dcem.cli import app
from dcem.table.read import read_whole

SQLITE = (
    "VACUUM INTO 'other.db'",
    "/* */ vacuum main into 'other.db'",
    "ATTACH 'other.db' AS x",
    "ATTACH 'other.db' AS x; CREATE TABLE x.t (a)",
    "SELECT 1; VACUUM INTO 'other.db'",
    "SELECT load_extension('other')",
    "SELECT writefile('other.db', 'x')",
    "PRAGMA journal_mode = wal",
    "PRAGMA writable_schema = on",
    "SELECT * FROM pragma_database_list",
    "CREATE TABLE z (a)",
    "CREATE TEMP TABLE z AS SELECT 1",
    "INSERT INTO t VALUES (1, 2)",
    "INSERT INTO t VALUES (1, 2) RETURNING x",
    "WITH d AS (SELECT 1) DELETE FROM t",
    "UPDATE t SET x = 3",
    "REINDEX",
    "BEGIN IMMEDIATE",
)
DUCKDB = (
    "COPY t TO 'other.csv'",
    "COPY (SELECT 1) TO 'other.csv'",
    "EXPORT DATABASE 'other'",
    "IMPORT DATABASE 'other'",
    "ATTACH 'other.duckdb' AS x",
    "INSTALL httpfs",
    "LOAD 'other.so'",
    "FROM 'secret.csv'",
    "SELECT * FROM read_csv('secret.csv')",
    "SELECT * FROM read_text('secret.csv')",
    "SELECT * FROM glob('*')",
    "SET enable_external_access = true",
    "SET temp_directory = 'other'",
    "SELECT 1; COPY t TO 'other.csv'",
    "SELECT 1; SELECT 2",
    "EXPLAIN ANALYZE COPY t TO 'other.csv'",
    "CREATE TEMP TABLE z AS SELECT 1",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "PREPARE p AS COPY t TO 'other.csv'",
    "SELECT * FROM query('COPY t TO ''other.csv''')",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    with sqlite3.connect("t.sqlite") as database:
        database.execute("CREATE TABLE t (x, y)")
        database.execute("INSERT INTO t VALUES (1, 2), (3, 4)")
    database.close()
    return tmp_path


def state(folder):
    return {p: p.is_file() and hashlib.md5(p.read_bytes()).hexdigest() for p in folder.rglob("*")}


@pytest.mark.parametrize("query", SQLITE)
def test_sqlite(folder, query):
    before = state(folder)
    with pytest.raises(InputError, match=r"t\.sqlite"):
        read_whole(folder / "t.sqlite", query=query)
    assert state(folder) == before


@pytest.mark.parametrize("query", DUCKDB)
def test_duckdb(folder, query):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect("t.duckdb") as database:
        database.execute("CREATE TABLE t AS SELECT 1 AS x, 2 AS y")
    before = state(folder)
    with pytest.raises(InputError, match=r"t\.duckdb"):
        read_whole(folder / "t.duckdb", query=query)
    assert state(folder) == before


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t;",
        "SELECT x, sum(y) OVER () AS s FROM t",
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION SELECT x + 1 FROM c WHERE x < 2) SELECT x FROM c",
        "VALUES (1), (2)",
        "SELECT max(x) AS m FROM t GROUP BY y",
    ],
)
def test_what_reads_is_answered(folder, query):
    assert read_whole(folder / "t.sqlite", query=query).num_rows == 2


def test_nor_does_a_query_in_a_settings_file(folder):
    (folder / "dcem.toml").write_text(
        'table = "t.sqlite"\nquery = "VACUUM INTO \'other.db\'"\n[roles]\nlabel = "y"\n'
    )
    done = CliRunner().invoke(app, ["audit", "t.sqlite"])
    assert done.exit_code == 2
    assert "only read" in done.stderr
    assert not (folder / "other.db").exists()
