"""Saved results and models that were edited, and files that never end: a sentence, no traceback."""

import copy
import hashlib
import json
import os
import random
import shutil
from contextlib import chdir

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dcem
from dcem.cli import app

ROLES = ("--label", "flu", "--tested", "swabbed", "--group", "sex")
GONE = object()
VALUES = (
    None, True, 0, -1, 1.5, 1e308, 10**30, "x", "", [], {}, [1], {"a": 1}, "infinity", [None], [[]],
    GONE, -5.5, "\x1b[2J<b>", {"value": None, "low": None, "high": None, "reason": ""},
)  # fmt: skip


def run(*words):
    return CliRunner().invoke(app, [*map(str, words)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng, rows = tmp_path_factory.mktemp("made"), np.random.default_rng(0), 600
    age, swabbed = rng.normal(size=rows), rng.random(rows) < 0.5
    flu = np.where(swabbed, rng.random(rows) < 1 / (1 + np.exp(-age)), np.nan)
    sex = rng.choice(["F", "M"], rows)
    table = pd.DataFrame({"age": age, "swabbed": swabbed, "flu": flu, "sex": sex})
    table.to_csv(folder / "t.csv", index=False)
    with chdir(folder):
        fit = ("--method", "tested-only", "--learner", "linear", "--out", "m")
        compare = ("--method", "tested-only:linear,y-obs", "--folds", "2", "--planted", "0")
        for words in (
            ("audit", "t.csv", *ROLES, "--json", "audit.json"),
            ("compare", "t.csv", *ROLES, *compare, "--members", "1", "--out", "."),
            ("fit", "t.csv", *ROLES, *fit),
            ("monitor", "m", "t.csv", "--json", "monitor.json"),
        ):
            done = run(*words)
            assert done.exit_code == 0, done.output
    return folder


def places(thing, path=()):
    yield path
    if isinstance(thing, dict):
        for name, inside in thing.items():
            yield from places(inside, (*path, name))
    if isinstance(thing, list):
        for number, inside in enumerate(thing[:3]):
            yield from places(inside, (*path, number))


def edited(whole, path, value):
    """A copy with another value at a place, or without it."""
    changed = copy.deepcopy(whole)
    inside = changed
    for name in path[:-1]:
        inside = inside[name]
    if value is GONE:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return changed


def edits(whole, number, seed):
    chance, found = random.Random(seed), [path for path in places(whole) if path]
    for _ in range(number):
        path, value = chance.choice(found), chance.choice(VALUES)
        yield path, value, edited(whole, path, value)


@pytest.mark.parametrize("name", ["audit", "comparison", "monitor"])
def test_an_edited_result(folder, tmp_path, name):
    """Either it can still be shown, or a sentence says that it cannot."""
    whole, refused = json.loads((folder / f"{name}.json").read_text()), 0
    place = tmp_path / f"{name}.json"
    for path, value, changed in edits(whole, 25, name):
        place.write_text(json.dumps(changed))
        done = run("report", place, "--out", tmp_path / "page.md")
        assert done.exit_code in (0, 2), (path, value, done.exception)
        refused += done.exit_code == 2
    assert refused > 5


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "[" * 100_000, '{"a": ' * 5000, "9" * 5000, '{"title": ' + "9" * 5000 + "}",
     "\xff", '"x"', "{}"],
    ids=range(10),
)  # fmt: skip
def test_what_is_no_result(tmp_path, text):
    (tmp_path / "comparison.json").write_bytes(text.encode("latin-1"))
    done = run("report", tmp_path / "comparison.json")
    assert done.exit_code == 2, done.exception


def test_a_fit_by_an_edited_comparison(folder, tmp_path):
    whole = json.loads((folder / "comparison.json").read_text())
    place = tmp_path / "comparison.json"
    with chdir(folder):
        for path, value, changed in edits(whole, 4, "fit"):
            place.write_text(json.dumps(changed))
            how = ("--method", "tested-only", "--learner", "linear", "--comparison", place)
            done = run("fit", "t.csv", *ROLES, *how, "--out", tmp_path / "m")
            assert done.exit_code in (0, 2), (path, value, done.exception)


def saved_again(folder, plain):
    """The description of a model, with the hash that belongs to it."""
    plain.pop("sha256", None)
    text = json.dumps(plain, sort_keys=True).encode()
    plain["sha256"] = hashlib.sha256(text).hexdigest()
    (folder / "model.json").write_text(json.dumps(plain))


@pytest.mark.parametrize("baseline", [[], {}, "", 0, False, [1], "x", {"rows": 5}, 1.5, [[]]])
def test_an_edited_baseline(folder, tmp_path, baseline):
    shutil.copytree(folder / "m", tmp_path / "m")
    plain = json.loads((tmp_path / "m" / "model.json").read_text())
    plain["table"]["baseline"] = baseline
    saved_again(tmp_path / "m", plain)
    for words in (("monitor",), ("predict", "--out", tmp_path / "s.csv")):
        done = run(words[0], tmp_path / "m", folder / "t.csv", *words[1:])
        assert done.exit_code == 2, done.exception
        assert "cannot be used as a model" in done.stderr


def test_edited_descriptions(folder, tmp_path):
    shutil.copytree(folder / "m", tmp_path / "m")
    whole, table = json.loads((folder / "m" / "model.json").read_text()), folder / "t.csv"
    refused = 0
    for path, value, changed in edits({"baseline": whole["table"]["baseline"]}, 30, "model"):
        saved_again(tmp_path / "m", {**whole, "table": {**whole["table"], **changed}})
        done = run("monitor", tmp_path / "m", table)
        assert done.exit_code in (0, 2), (path, value, done.exception)
        refused += done.exit_code == 2
    assert refused > 8


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
@pytest.mark.parametrize("kind", ["pipe", "zeros", "endless", "folder", "loop", "socket"])
def test_files_of_a_model_that_never_end(folder, tmp_path, name, kind):
    import socket

    place = tmp_path / "m" / name
    shutil.copytree(folder / "m", tmp_path / "m")
    place.unlink()
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "zeros":
        place.touch()
        os.truncate(place, 20 << 30)
    elif kind == "endless":
        place.symlink_to("/dev/zero")
    elif kind == "folder":
        place.mkdir()
    elif kind == "loop":
        place.symlink_to(name)
    else:
        with chdir(tmp_path / "m"), socket.socket(socket.AF_UNIX) as door:
            door.bind(name)
    with pytest.raises(dcem.InputError, match="model"):
        dcem.load_model(tmp_path / "m")
    done = run("predict", tmp_path / "m", folder / "t.csv", "--out", tmp_path / "s.csv")
    assert done.exit_code == 2, done.exception
    if name == "model.json":
        with pytest.raises(dcem.InputError):  # nor is anything of somebody else replaced
            dcem.load_model(folder / "m").save(tmp_path / "m")


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "t.csv", *ROLES, "--report", "loop.html"),
        ("audit", "t.csv", *ROLES, "--json", "one"),
        ("audit", "t.csv", *ROLES, "--report", "/dev/null"),
        ("compare", "t.csv", *ROLES, "--out", "one"),
        ("fit", "t.csv", *ROLES, "--out", "one"),
        ("predict", "m", "t.csv", "--out", "loop.csv"),
        ("next-tests", "m", "t.csv", "--budget", "5", "--out", "loop.csv"),
        ("monitor", "m", "t.csv", "--json", "loop.html"),
        ("report", "audit.json", "--out", "loop.html"),
        ("simulate", "-n", "1000", "-o", "loop.csv"),
        ("predict", "one", "t.csv", "--out", "s.csv"),
        ("audit", "loop.csv", "--label", "x"),
        ("audit", "t.csv", "--config", "one"),
        ("init", "t.csv", "--out", "loop.html"),
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
def test_a_link_that_leads_back_to_itself(folder, words):
    with chdir(folder):
        for name, to in {"one": "two", "two": "one", "loop.html": "loop.html",
                         "loop.csv": "loop.csv"}.items():  # fmt: skip
            if not os.path.lexists(name):
                os.symlink(to, name)
        done = run(*words)
    assert done.exit_code == 2, done.exception
    assert isinstance(done.exception, SystemExit)
