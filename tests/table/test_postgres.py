"""A database on a server: a real PostgreSQL where there is one, and passwords that stay unseen."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcem.cli import app
from dcem.table import Roles, propose_roles, read_table
from dcem.table.messages import InputError
from dcem.table.remote import as_named, located, masked_address, without_password

PASSWORD = "s3cr/et@home"
QUOTED = "s3cr%2Fet%40home"
ROWS = """
CREATE TYPE ward AS ENUM ('ICU', 'ER');
CREATE TABLE visits AS SELECT
    i AS id, 18 + (i * 37) % 70 AS age, ((i * 53) % 400) / 100.0 AS lactate,
    (array['ICU', 'ER'])[1 + i % 2]::ward AS ward, date '2020-01-01' + i AS seen,
    i % 7 < 3 AS smoker, CASE WHEN i % 3 > 0 THEN (i * 7) % 10 < 4 END AS ill
FROM generate_series(1, 500) i;
CREATE TABLE other AS SELECT 1 AS x;
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a database with two tables."""
    pytest.importorskip("adbc_driver_postgresql", reason="the extra 'formats' is not installed")
    debian = [str(folder) for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"))]
    places = os.pathsep.join([os.environ["PATH"], *debian])
    programs = {name: shutil.which(name, path=places) for name in ("initdb", "pg_ctl", "psql")}
    if None in programs.values():
        pytest.skip("no PostgreSQL here")
    folder = Path("/tmp") / tmp_path_factory.mktemp("postgres").name  # its user must reach it
    folder.mkdir()
    who = {}
    if os.geteuid() == 0:  # which it refuses
        shutil.chown(folder, "postgres")
        who = {"user": "postgres", "cwd": folder}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def run(program, *given, **more):
        command = [programs[program], *given]
        subprocess.run(command, check=True, capture_output=True, text=True, **who, **more)

    (folder / "password").write_text(PASSWORD)
    secret = ["-A", "scram-sha-256", "-U", "ann", f"--pwfile={folder / 'password'}"]
    run("initdb", "-D", str(folder / "data"), *secret)
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
    control = ["-D", str(folder / "data"), "-l", str(folder / "log"), "-w"]
    try:
        run("pg_ctl", *control, "-o", options, "start")
        place = f"127.0.0.1:{port}/postgres"
        run("psql", f"postgresql://ann:{QUOTED}@{place}", "-q", "-c", ROWS)
        yield f"postgresql://ann:{QUOTED}@{place}"
    finally:
        run("pg_ctl", *control, "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.mark.slow
def test_a_query_is_a_table(server, tmp_path) -> None:
    sql = "SELECT * FROM visits WHERE age > 20 ORDER BY id;"
    table = read_table(server, Roles(label="ill", id="id"), sql)
    kinds = {one.name: one.kind for one in table.columns if one.role == "feature"}
    assert kinds == {
        "age": "number", "lactate": "number", "ward": "category", "seen": "date",
        "smoker": "boolean",
    }  # fmt: skip
    assert table.source.name == "postgres.postgresql"
    assert table.source.sha256 == read_table(server, Roles(label="ill", id="id"), sql).source.sha256
    with pytest.raises(InputError, match="2 tables"):
        propose_roles(server)
    for wrong in ("DELETE FROM visits RETURNING *", "SELECT * FROM visit"):
        with pytest.raises(InputError, match="ERROR"):
            read_table(server, Roles(label="ill"), wrong)
    told = CliRunner().invoke(
        app, ["init", server, "--query", sql, "--out", str(tmp_path / "dcem.toml")]
    )
    assert told.exit_code == 0, told.output
    assert "ann:***@" in told.output
    secrets = (PASSWORD, QUOTED, "s3cr")
    assert not any(one in told.output + (tmp_path / "dcem.toml").read_text() for one in secrets)


@pytest.mark.slow
def test_errors_do_not_tell_the_password(server) -> None:
    place = server.rpartition("@")[2]
    for address in (
        f"postgresql://ann:{PASSWORD}@{place}",  # not escaped
        f"postgresql://ann:wr0ng@{place}",
        f"postgresql://ann:{QUOTED}@{place}x",
        f"postgresql://ann@{place}?password=wr0ng",
    ):
        with pytest.raises(InputError) as raised:
            read_table(address, Roles(label="ill"), "SELECT 1")
        assert not any(one in str(raised.value) for one in ("s3cr", "et@home", "wr0ng"))


def test_what_is_shown_of_an_address() -> None:
    address = f"postgresql://ann:{PASSWORD}@db.org/visits?sslpassword=abc&x=1"
    assert masked_address(address) == "postgresql://ann:***@db.org/visits?sslpassword=***&x=***"
    assert masked_address("s3://bucket/a.csv") == "s3://bucket/a.csv"
    assert masked_address("s3://key:sec/ret@bucket/a.csv") == "s3://key:***@bucket/a.csv"
    signed = "https://db.org/a.csv?X-Amz-Signature=f00:baa7&sig=f00&by=ann@db.org"
    assert masked_address(signed) == "https://db.org/a.csv?X-Amz-Signature=***&sig=***&by=***"
    assert "f00:baa7" not in without_password("403 of a.csv, f00:baa7", signed)
    said = without_password(f"{address}: no host et@home, port s3cr, abc", address)
    assert "s3cr" not in said
    assert "home" not in said
    path = located(address)
    assert path.name == "visits.postgresql"
    assert path.stat().st_mode & 0o077 == 0
    assert as_named(path) == masked_address(address)


def test_without_the_driver_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    told = CliRunner().invoke(app, ["check", f"postgresql://ann:{QUOTED}@db.org/x"])
    assert told.exit_code == 2
    assert "pip install 'dcem[formats]'" in told.output
    assert "s3cr" not in told.output


def test_a_file_that_only_looks_like_one_is_not_opened(tmp_path) -> None:
    (tmp_path / "a.postgresql").write_text("postgresql://db.org/visits")
    with pytest.raises(InputError, match="neither a DuckDB nor an SQLite"):
        read_table(tmp_path / "a.postgresql", Roles(label="ill"))
