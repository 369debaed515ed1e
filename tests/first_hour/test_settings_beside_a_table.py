"""A `dcem.toml` that came with a table writes in its own folder, over nothing but dcem's own."""

import json
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dcem.cli import app

ROLES = '[roles]\nlabel = "flu"\ntested = "swabbed"\n'


def table(rows=600):
    rng = np.random.default_rng(0)
    age, swabbed = rng.normal(size=rows), rng.random(rows) < 0.5
    flu = np.where(swabbed, rng.random(rows) < 1 / (1 + np.exp(-age)), np.nan)
    return pd.DataFrame({"age": age, "bmi": rng.normal(size=rows), "swabbed": swabbed, "flu": flu})


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "downloads"
    inside.mkdir()
    table().to_csv(inside / "t.csv", index=False)
    for name in ("notes.html", "notes.md", "other.csv", "package.json"):
        (inside / name).write_text('{"mine": 1}')
    (tmp_path / "mine.html").write_text("mine")
    (inside / "link.html").symlink_to("../mine.html")
    (inside / "loop.html").symlink_to("loop.html")
    (inside / "kept").mkdir()
    (inside / "kept" / "comparison.csv").write_text("mine")
    (inside / "parts").mkdir()
    table(50).to_parquet(inside / "parts" / "a.parquet")
    return inside


def run(folder, *words, settings=None):
    if settings is not None:
        (folder / "dcem.toml").write_text(settings)
    with chdir(folder):
        return CliRunner().invoke(app, [*map(str, words)])


def contents(folder: Path):
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.name not in ("dcem.toml", "loop.html") and path.is_file()
    }


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("audit", 'report = "notes.html"'),
        ("audit", 'markdown = "notes.md"'),
        ("audit", 'json = "package.json"'),
        ("audit", 'json = "t.csv"'),
        ("audit", 'markdown = ".profile"'),
        ("audit", 'report = "../mine.html"'),
        ("audit", 'report = "/tmp/not-yours.html"'),
        ("audit", 'report = "new/../../mine.html"'),
        ("audit", 'report = "link.html"'),
        ("audit", 'report = "loop.html"'),
        ("audit", 'report = "a\\u0000.html"'),
        ("compare", 'out = "kept"'),
        ("compare", 'out = ".."'),
        ("compare", 'report = "notes.html"'),
        ("compare", 'address = "elsewhere:6379"'),
        ("fit", 'out = "../model"'),
        ("fit", 'out = "kept"'),
        ("predict", 'out = "other.csv"'),
        ("predict", 'out = "t.csv"'),
        ("predict", 'out = "parts"'),
        ("predict", 'out = "../scores.csv"'),
    ],
)
def test_it_is_refused(folder, command, line):
    before = contents(folder.parent)
    words = [
        command,
        *(["nowhere", "parts" if "parts" in line else "t.csv"] * (command == "predict")),
    ]
    done = run(folder, *words, settings=f'table = "t.csv"\n{ROLES}[{command}]\n{line}\n')
    assert done.exit_code == 2, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert "holds no saved model" not in done.stderr
    assert contents(folder.parent) == before


def test_its_own_pages_are_written_and_written_again(folder):
    settings = f'table = "t.csv"\n{ROLES}[audit]\nreport = "a.html"\njson = "a.json"\n'
    for _ in range(2):
        assert run(folder, "audit", settings=settings).exit_code == 0
    assert json.loads((folder / "a.json").read_text())["title"]
    with chdir(folder.parent):  # beside the file, from wherever it is run
        (folder / "a.html").unlink()
        assert CliRunner().invoke(app, ["audit", "downloads/t.csv"]).exit_code == 0
    assert (folder / "a.html").exists()
    assert not (folder.parent / "a.html").exists()


def test_what_a_person_types_may_lie_anywhere(folder):
    settings = f'table = "t.csv"\n{ROLES}[audit]\nreport = "notes.html"\n'
    done = run(folder, "audit", "--report", "../mine.html", settings=settings)
    assert done.exit_code == 0
    assert (folder.parent / "mine.html").read_text() != "mine"


def test_only_places_in_the_folder_are_remembered(folder):
    roles = ("--label", "flu", "--tested", "swabbed", "--remember")
    assert run(folder, "audit", "t.csv", *roles, "--report", "../mine.html").exit_code == 0
    assert "mine.html" not in (folder / "dcem.toml").read_text()
    assert run(folder, "audit", "t.csv", *roles, "--report", "own.html").exit_code == 0
    assert 'report = "own.html"' in (folder / "dcem.toml").read_text()


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 3000 + "]" * 3000,
        "a = " + "{b = " * 3000 + "1" + "}" * 3000,
        "a" + ".a" * 3000 + " = 1",
        "[" + ".".join(["a"] * 3000) + "]",
        "a = " + "9" * 5000,
        "a = 0x" + "f" * 5000,
        "[audit]\nseed = " + "9" * 4000,
        "[audit]\nmax_rows = -" + "9" * 4000,
        "[roles]\nprevalence = 1e5000",
        "[audit]\nseed = 1979-05-27",
        'label = "\x00"',
        "a = 1\na = 2",
    ],
    ids=range(12),
)
def test_a_file_that_makes_no_sense_is_told_in_a_line(folder, text):
    done = run(folder, "audit", "t.csv", "--label", "flu", settings=text)
    assert done.exit_code == 2, done.output
    assert isinstance(done.exception, SystemExit)


@pytest.mark.parametrize("kind", ["pipe", "device", "huge"])
def test_no_settings_are_read_from_what_never_ends(folder, kind):
    import os

    place = folder / "odd.toml"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "device":
        place.symlink_to("/dev/zero")
    else:
        place.touch()
        os.truncate(place, 20 << 30)
    done = run(folder, "audit", "t.csv", "--config", "odd.toml")
    assert done.exit_code == 2
    assert "odd.toml" in done.stderr
