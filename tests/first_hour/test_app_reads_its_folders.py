"""The app reads what lies in its folders, and no folder that somebody crafted stops it."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

if not (find_spec("starlette") and find_spec("httpx")):
    pytest.skip("needs the app", allow_module_level=True)

SECRET = "hiv_status_of_the_minister"
LISTED = pd.DataFrame({"row": [0, 1], "probability": [0.5, 0.5], SECRET: [1, 0]})


@pytest.fixture
def app(tmp_path):
    from running_app import running_app

    rng, rows = np.random.default_rng(0), 400
    swabbed = rng.random(rows) < 0.5
    table = pd.DataFrame({"age": rng.normal(size=rows), "bmi": rng.normal(size=rows)})
    table = table.assign(swabbed=swabbed * 1, flu=np.where(swabbed, rng.random(rows) < 0.3, np.nan))
    LISTED.to_csv(tmp_path / "secret.csv", index=False)
    with running_app(tmp_path) as running:
        table.to_csv(running.tables / "t.csv", index=False)
        yield running


def opened(app, client):
    answer = client.post("/open", data=app.form(path="t.csv"))
    assert answer.status_code == 303
    return answer.headers["location"]


def with_roles(app, client, address, **more):
    """What the page says once these roles were chosen."""
    page = client.get(f"{address}/roles").text
    digest = page.partition('name="columns" value="')[2].partition('"')[0]
    roles = {"role-3": "label", "role-2": "tested", "values_of": "flu", **more}
    values = {f"value-{number}": meant for number, meant in enumerate(("no", "yes"))}
    client.post(f"{address}/roles", data=app.form(columns=digest, **roles, **values))
    return "".join(client.get(f"{address}/{page}").text for page in ("roles", "check", "audit"))


@pytest.mark.parametrize(
    "given",
    ["../secret.csv", "{top}/secret.csv", "tables/../../secret.csv", "./../secret.csv",
     "link.csv", "inside/secret.csv", "loop.csv", "/dev/zero", "a\x00b", "~/../../etc/passwd"],
)  # fmt: skip
def test_no_role_reads_a_file_elsewhere(app, tmp_path, given):
    (app.tables / "link.csv").symlink_to(tmp_path / "secret.csv")
    (app.tables / "inside").symlink_to(tmp_path)
    (app.tables / "loop.csv").symlink_to("loop.csv")
    with app.client() as client:
        address = opened(app, client)
        given = given.format(top=tmp_path)
        text = with_roles(app, client, address, testing_probability=given)
        assert SECRET not in text
        assert "the list" not in text
        study = app.work.study("t")
        assert "testing_probability" not in (study.settings.roles or {})


def test_nor_does_a_file_beside_the_table_or_in_the_work_folder(app, tmp_path):
    settings = '[roles]\nlabel = "flu"\ntested = ["swabbed"]\n'
    settings += f"testing_probability = {json.dumps(str(tmp_path / 'secret.csv'))}\n"
    (app.tables / "dcem.toml").write_text(settings)
    with app.client() as client:
        address = opened(app, client)
        (app.work.study("t").folder / "dcem.toml").write_text(settings)
        for page in ("roles", "check", "audit", "compare", "fit"):
            text = client.get(f"{address}/{page}").text
            assert SECRET not in text
            if page not in ("roles",):
                assert "may read" in text
        answer = client.post(f"{address}/audit", data=app.form())
        assert answer.status_code == 422
        assert app.runs() == []


def test_a_list_of_its_own_runs_may_be_named(app):
    with app.client() as client:
        address = opened(app, client)
        listed = app.tables / "list.csv"
        LISTED.to_csv(listed, index=False)
        text = with_roles(app, client, address, testing_probability="list.csv")
    assert "list.csv" in text
    assert "may read" not in text


def test_a_link_called_dcem_toml_is_neither_read_nor_written(app, tmp_path):
    outside = tmp_path / "outside.toml"
    outside.write_text(f'[roles]\nlabel = "{SECRET}"\n')
    (app.tables / "dcem.toml").symlink_to(outside)
    with app.client() as client:
        address = opened(app, client)
        assert SECRET not in with_roles(app, client, address)
        client.post(f"{address}/keep", data=app.form())
    assert outside.read_text() == f'[roles]\nlabel = "{SECRET}"\n'


@pytest.mark.parametrize("query", ["VACUUM INTO 'new.db'", "ATTACH 'new.db' AS x", "DELETE FROM t"])
def test_no_query_writes(app, query):
    with sqlite3.connect(app.tables / "t.sqlite") as database:
        database.execute("CREATE TABLE t (x, y)")
        database.execute("CREATE TABLE s (x, y)")
    database.close()
    before = (app.tables / "t.sqlite").read_bytes()
    with app.client() as client:
        answer = client.post("/open", data=app.form(path="t.sqlite", query=query))
        assert answer.status_code == 422
        assert "only read" in answer.text
    assert (app.tables / "t.sqlite").read_bytes() == before
    assert not list(app.tables.glob("new*"))
    assert not os.path.exists("new.db")


CRAFTED = {
    "a study that is a pipe": lambda out: os.mkfifo(new(out, "odd") / "study.json"),
    "a broken link": lambda out: (new(out, "odd") / "study.json").symlink_to("nowhere"),
    "a study of another kind": lambda out: (new(out, "odd") / "study.json").write_text("[]"),
    "deep": lambda out: (new(out, "odd") / "study.json").write_text("[" * 100_000),
    "digits": lambda out: (new(out, "odd") / "study.json").write_text("9" * 5000),
    "people of no kind": lambda out: (new(out, "odd") / "study.json").write_text(
        json.dumps({"table": "t.csv", "people": 5})
    ),
    "a draft of no kind": lambda out: (new(out, "odd") / "study.json").write_text(
        json.dumps({"table": "t.csv", "draft": 5})
    ),
    "settings of no kind": lambda out: (out / "t" / "dcem.toml").write_text("a = " + "[" * 3000),
    "a run with an odd number": lambda out: job(out / "t" / "audit-²"),
    "a run without a number": lambda out: job(out / "t" / "audit-x"),
    "a run of no kind": lambda out: job(out / "t" / "audit-7", {"step": 5}),
    "a run that is a list": lambda out: job(out / "t" / "audit-7", []),
    "a job that is a pipe": lambda out: os.mkfifo(new(out / "t", "audit-8") / "job.json"),
    "a log that is a pipe": lambda out: os.mkfifo(job(out / "t" / "audit-9") / "log.txt"),
    "a process that is a pipe": lambda out: os.mkfifo(job(out / "t" / "audit-9") / "process"),
}


def new(out, name):
    (out / name).mkdir()
    return out / name


def job(folder, content=None):
    folder.mkdir()
    whole = {"step": "audit", "command": ["audit"], "result": "audit.json", "time": 0.0}
    (folder / "job.json").write_text(json.dumps(whole if content is None else content))
    return folder


@pytest.mark.parametrize("what", CRAFTED)
def test_no_crafted_folder_stops_the_app(app, what):
    with app.client() as client:
        address = opened(app, client)
        with_roles(app, client, address)
        CRAFTED[what](app.work.out)
        assert client.get("/").status_code == 200
        for page in ("", "/audit"):
            assert client.get(f"{address}{page}").status_code in (200, 404, 422)
        assert client.get("/").status_code == 200


@pytest.mark.parametrize("result", ["../../../secret.csv", "{top}/secret.csv", "link.csv", ".."])
def test_a_run_shows_nothing_from_elsewhere(app, tmp_path, result):
    with app.client() as client:
        address = opened(app, client)
        with_roles(app, client, address)
        made = {"step": "score", "command": [], "result": result.format(top=tmp_path), "time": 0.0}
        folder = job(app.work.out / "t" / "score-1", made)
        (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
        (folder / "ended.json").write_text('{"code": 0}')
        assert SECRET not in client.get(f"{address}/score").text


def test_odd_folders_in_the_temporary_folder_do_not_stop_a_start(tmp_path):
    """Whatever their names are; those of living apps and of others stay."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    names = ["dcem-app-²", "dcem-app-²-x", "dcem-app-", "dcem-app-1", "dcem-app-٣-x",
             f"dcem-app-{'9' * 5000}"[:200], "dcem-app-mine", "dcem-app--1-x"]  # fmt: skip
    for name in names:
        (temporary / name).mkdir()
    (temporary / "dcem-app-1234").symlink_to("nowhere")
    (temporary / "tables").mkdir()
    command = [sys.executable, "-u", "-m", "dcem", "app", "--no-browser", str(temporary / "tables")]
    surroundings = {**os.environ, "TMPDIR": str(temporary)}
    apps = []
    try:
        for _ in range(2):  # the second leaves the folder of the first alone
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=surroundings)
            apps.append(process)
            assert "127.0.0.1" in process.stdout.readline()
        made = [path for path in temporary.glob("dcem-app-*") if path.name not in names]
        assert len([path for path in made if path.is_dir()]) == 2
    finally:
        for process in apps:
            process.kill()
            process.wait()
    time.sleep(0.1)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=surroundings)
    assert "127.0.0.1" in process.stdout.readline()
    process.terminate()
    process.wait(30)
    assert {path.name for path in temporary.iterdir()} == {*names, "dcem-app-1234", "tables"}
