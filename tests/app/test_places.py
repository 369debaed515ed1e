"""Tables that are not one file of their own: databases, workbooks, folders; and earlier models."""

import ast
import importlib
import inspect
import json
import re
import sqlite3
import zipfile
from html import unescape
from io import BytesIO

import pandas as pd
import pytest
from tables import write_stops, write_survey
from typer.testing import CliRunner

from dcem.app import commands
from dcem.app.forms import Posted
from dcem.app.places import Place
from dcem.app.roles_form import recorded_values
from dcem.app.runs import Run
from dcem.app.steps import options as offered
from dcem.app.steps import recipe
from dcem.cli import app as cli
from dcem.table.messages import InputError
from dcem.table.read import read_whole

ROLES = {"label": "contraband_found", "tested": ["searched"], "group": ["subject_race"]}
MORE = {"missing": ["NA"], "exclude": ["stop_id", "arrest_made"]}


def database(app, name: str = "police.sqlite"):
    """Stops and a survey in one file."""
    path = app.tables / name
    with sqlite3.connect(path) as opened:
        for table, write in {"stops": write_stops, "a survey": write_survey}.items():
            rows = pd.read_csv(write(app.tables.parent / "rows.csv", 300), keep_default_na=False)
            rows.to_sql(table, opened, index=False)
    opened.close()
    return path


def opened(client, app, **fields: str) -> str:
    """The address that opening leads to."""
    answer = client.post("/open", data=app.form(**fields))
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def test_what_stands_for_missing_is_not_offered_as_a_group(tmp_path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("race,y\na,1\nb,0\na,?\n?,\n?,\n?,1\n")
    place = Place(path)
    assert recorded_values(place, "race", {"missing": ["?"]}) == [("a", 2), ("b", 1)]
    assert recorded_values(place, "race", {})[0] == ("?", 3)  # nobody said that it means that
    assert recorded_values(place, "gone", {}) == []


def test_a_table_of_a_database_is_chosen_by_a_click_or_by_sql(app, monkeypatch) -> None:
    database(app)
    with app.client() as client:
        which = opened(client, app, path="police.sqlite")
        assert which.startswith("/which?")
        page = client.get(which)
        asked = re.findall(r'name="query" value="([^"]*)"', page.text)
        queries = [unescape(query) for query in asked]
        assert queries == ['SELECT * FROM "stops"', 'SELECT * FROM "a survey"']
        address = opened(client, app, path="police.sqlite", query=queries[1])
        assert "RIDRETH1" in client.get(address).text
        sql = "SELECT * FROM stops WHERE hour < 12"
        address = opened(client, app, path="police.sqlite", query=sql)
        assert opened(client, app, path="police.sqlite", query=sql) == address
        wrong = client.post("/open", data=app.form(path="police.sqlite", query="SELECT * FROM x"))
        assert wrong.status_code == 422
        study = app.work.study(address.removeprefix("/t/"))
        study.say({**ROLES, **MORE})
        assert client.get(f"{address}/check").status_code == 200
        study = app.work.study(study.name)
        assert study.place == Place(app.tables / "police.sqlite", sql)
        monkeypatch.chdir(app.tables)
        names: dict = {}
        exec(commands.checked(study).python, names)
        assert len(names["table"].problem) == len(read_whole(study.table, query=sql))


def test_the_shown_commands_run_on_a_database(app, monkeypatch) -> None:
    """As they stand: the query comes from the settings of the study, or is an option."""
    database(app)
    study = app.work.open(Place(app.tables / "police.sqlite", 'SELECT * FROM "stops"'))
    study.say({**ROLES, **MORE})
    study = app.work.study(study.name)
    run = Run(study.folder / "fit-1")
    fit = commands.fitted(study, run.folder, "ipw")
    words = [word for word in fit.words if word not in ("--method", "ipw")]
    run.folder.mkdir()
    (run.folder / "dcem.toml").write_text((study.folder / "dcem.toml").read_text())
    monkeypatch.chdir(app.tables)
    quick = ("--method", "tested-only", "--learner", "linear")
    assert CliRunner().invoke(cli, [*words, *quick]).exit_code == 0
    scored = commands.scored(study, run.folder / "model", study.people, run.folder, capacity=0.1)
    assert CliRunner().invoke(cli, scored.words).exit_code == 0
    scores = read_whole(run.folder / "scores.csv").to_pandas()
    assert len(scores) == 300
    assert (scores["flagged"].str.lower() == "true").sum() == 30


def test_sheets_are_chosen_among(app) -> None:
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter(app.tables / "book.xlsx") as book:
        for sheet in ("<b>Read me", "2024"):
            pd.DataFrame({"x": [1, 2], sheet: [0, 1]}).to_excel(book, sheet_name=sheet, index=False)
    with app.client() as client:
        page = client.get(opened(client, app, path="book.xlsx"))
        assert page.text.count('name="query"') == 2
        assert "<b>Read" not in page.text
        assert "2024" in client.get(opened(client, app, path="book.xlsx", query="2024")).text


def test_a_folder_of_parquet_files_is_a_table(app) -> None:
    frame = pd.read_csv(write_stops(app.tables.parent / "stops.csv", 200))
    for year in (2023, 2024):
        folder = app.tables / "stops" / f"year={year}"
        folder.mkdir(parents=True)
        frame.to_parquet(folder / "part.parquet")
    with app.client() as client:
        assert 'value="' + str(app.tables / "stops") in client.get("/").text
        address = opened(client, app, path="stops")
        assert "400 rows" in client.get(address).text
        columns = re.search(r'name="columns" value="(\w+)"', client.get(f"{address}/roles").text)[1]
        header = app.work.study("stops").place.header()
        role = {"contraband_found": "label", "searched": "tested", "subject_race": "group"}
        clicks = {f"role-{i}": role[name] for i, name in enumerate(header) if name in role}
        form = app.form(columns=columns, sample_rows="1000", **clicks)
        assert client.post(f"{address}/roles", data=form).headers["location"] == f"{address}/check"
        study = app.work.study("stops")
        assert study.reading == {"sample_rows": 1000}
        assert "sample_rows=1000" in commands.checked(study).python


def test_links_lead_nowhere(app) -> None:
    """Neither out of a folder, now or later, nor from a run into a bundle."""
    secret = app.tables.parent / "secret.parquet"
    pd.DataFrame({"x": [1]}).to_parquet(secret)
    (app.tables / "parts").mkdir()
    (app.tables / "parts" / "one.parquet").symlink_to(secret)
    write_stops(app.tables / "stops.csv", 60)
    with app.client() as client:
        assert client.post("/open", data=app.form(path="parts")).status_code == 422
        address = opened(client, app, path="stops.csv")
        people = app.tables / "people.parquet"
        pd.DataFrame({"x": [1]}).to_parquet(people)
        opened(client, app, path=people.name, study="stops", step="score")
        assert app.work.study("stops").people == Place(people)
        people.unlink()
        people.symlink_to(secret)
        assert app.work.study("stops").people == Place(app.tables / "stops.csv")
        run = app.work.study("stops").folder / "audit-1"
        run.mkdir()
        (run / "job.json").write_text(
            '{"step": "audit", "result": "audit.json", "command": [], "time": 0}'
        )
        (run / "process").touch()
        for name in ("audit.json", "mine.txt"):
            (run / name).write_text("{}")
        (run / "theirs.parquet").symlink_to(secret)
        (run / "more").symlink_to(app.tables.parent)
        assert client.get(f"{address}/runs/audit-1/mine.txt").status_code == 200
        assert client.get(f"{address}/runs/audit-1/theirs.parquet").status_code == 404
        assert client.get(f"{address}/runs/audit-1/more/secret.parquet").status_code == 404
        with zipfile.ZipFile(BytesIO(client.get(f"{address}/bundle.zip").content)) as bundle:
            names = bundle.namelist()
    assert "stops/audit-1/mine.txt" in names
    assert not any("secret" in name or "theirs" in name for name in names)
    assert not any(name.startswith("/") or ".." in name for name in names)


def test_a_fit_can_go_on_from_an_earlier_model_once_tests_were_drawn(app) -> None:
    write_stops(app.tables / "stops.csv", 60)
    study = app.work.open(Place(app.tables / "stops.csv"))
    for step, result in {"fit": "model", "next-tests": "next-tests.csv"}.items():
        run = study.folder / f"{step}-1"
        run.mkdir()
        (run / "job.json").write_text(
            f'{{"step": "{step}", "result": "{result}", "command": [], "time": 0}}'
        )
        (run / "process").touch()
        (run / result).touch()
    with app.client() as client:
        address = f"/t/{study.name}"
        study.say({**ROLES, **MORE})
        assert 'name="start"' not in client.get(f"{address}/fit").text
        drawn = study.folder / "next-tests-1" / "next-tests.csv"
        assert str(drawn) in client.get(f"{address}/roles").text
        study.say({**ROLES, **MORE, "testing_probability": str(drawn)})
        again = app.work.study(study.name)
        form = Posted({"start": [f"{study.name}/fit-1"], "method": ["ipw"]})
        made = recipe(again, "fit", form)
        place = made.words.index("--start-from")
        assert made.words[place + 1].endswith("fit-1/model")
        assert "--method" not in made.words
        assert "start=start" in made.python
        compile(made.python, "shown", "exec")


def test_a_strength_of_the_unmeasured_goes_with_every_step_that_takes_one(app) -> None:
    write_stops(app.tables / "stops.csv", 60)
    study = app.work.open(Place(app.tables / "stops.csv"))
    study.say({**ROLES, **MORE})
    study = app.work.study(study.name)
    for step in ("audit", "compare", "fit"):
        form = Posted({"bounds": ["1.5"], "method": ["auto" if step == "fit" else "ipw"]})
        made = recipe(study, step, form)
        assert made.words[made.words.index("--bounds") + 1] == "1.5"
        assert "1.5" in made.python
        compile(made.python, "shown", "exec")
        assert (
            "--bounds" not in recipe(study, step, Posted({"method": form.fields["method"]})).words
        )
    for wrong in ("0.5", "many"):
        with pytest.raises(InputError, match="bounds"):
            recipe(study, "audit", Posted({"bounds": [wrong]}))


def test_a_comparison_made_with_these_roles_is_gone_by_whatever_is_fitted(app) -> None:
    write_stops(app.tables / "stops.csv", 60)
    study = app.work.open(Place(app.tables / "stops.csv"))
    study.say({**ROLES, **MORE}, words="policing")
    run = Run(study.folder / "compare-1")
    run.folder.mkdir()
    (run.folder / "dcem.toml").write_text((study.folder / "dcem.toml").read_text())
    (run.folder / "job.json").write_text(
        json.dumps({"step": "compare", "result": "comparison.json", "command": [], "time": 0})
    )
    (run.folder / "ended.json").write_text('{"code": 0}')
    (run.folder / "comparison.json").write_text("{}")
    study = app.work.study(study.name)
    for method in ("auto", "ipw"):
        made = recipe(study, "fit", Posted({"method": [method]}))
        assert "--comparison" in made.words
        assert f"read_comparison({str(run.result)!r})" in made.python
        assert "words='policing'" in made.python
        compile(made.python, "shown", "exec")
    scored = commands.scored(study, run.folder / "model", study.people, run.folder)
    assert scored.words[-2:] == ("--words", "policing")
    study.say(ROLES)  # what is compared is another question now
    study = app.work.study(study.name)
    assert not offered(study, "fit")["compared"]
    assert "--comparison" not in recipe(study, "fit", Posted({"method": ["auto"]})).words


def test_what_is_ticked_is_what_is_compared_where_deciders_are_known(app) -> None:
    write_stops(app.tables / "stops.csv", 60)
    study = app.work.open(Place(app.tables / "stops.csv"))
    study.say({**ROLES, **MORE, "decider": "precinct"})
    ticked = offered(app.work.study(study.name), "compare")["methods"]
    assert ticked["instrument"]


def test_python_that_is_shown_calls_functions_by_the_names_of_their_parameters(app) -> None:
    write_stops(app.tables / "stops.csv", 60)
    study = app.work.open(Place(app.tables / "stops.csv"))
    study.say({**ROLES, **MORE}, sample_rows=2000)
    study = app.work.study(study.name)
    chosen = {"compare": {"folds": "3", "max_rows": "500", "planted": "2", "method": "ipw"}}
    asked = set()
    for step in ("times", "audit", "compare", "fit"):
        form = Posted({name: [value] for name, value in chosen.get(step, {}).items()})
        for node in ast.walk(ast.parse(recipe(study, step, form).python)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("dcem."):
                module, _, name = ast.unparse(node.func).rpartition(".")
                known = inspect.signature(getattr(importlib.import_module(module), name)).parameters
                given = {one.arg for one in node.keywords}
                assert given <= set(known), name
                asked |= given
    assert {"n_folds", "max_rows", "planted", "sample_rows", "sources"} <= asked


def test_a_table_without_a_record_of_testing_gets_steps_that_need_none(app) -> None:
    write_stops(app.tables / "stops.csv", 60)
    study = app.work.open(Place(app.tables / "stops.csv"))
    study.say({"label": "contraband_found", "group": ["subject_race"], "positives_only": True})
    study = app.work.study(study.name)
    for step, words in {"audit": "dcem.audit_found(", "compare": "dcem.compare_found("}.items():
        made = recipe(study, step, Posted({}))
        assert words in made.python
        compile(made.python, "shown", "exec")
    assert "purple" in offered(study, "fit")["methods"]
    assert "dcem" not in offered(study, "fit")["methods"]
    with app.client() as client:
        page = client.get(f"/t/{study.name}/roles").text
    assert re.search(r'name="positives_only"[^>]* checked', page)
