"""Nothing in a table acts on a terminal, and a reader who leaves early loses no output."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SCRIPT = Path(sys.executable).with_name("dcem")
SOURCE = Path(__file__).resolve().parents[2] / "src" / "dcem"
TITLE = "\x1b]0;pwned\x07\x1b[2J"
ODD = re.compile(
    rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]"
)
OF_COLOURS = re.compile(rb"\x1b\[[0-9;]*m|\r|\x1b\[\d*[AK]|\x1b\[\?25[lh]|\x1b\[1A|\x1b\[2K")
TABLE = "t\x1b[31m[link=http:x]a[!b].csv"
NAMES = {name: f"{name}{TITLE}" for name in ("lab", "tested", "g", "id")}
ROLES = ("--label", NAMES["lab"], "--tested", NAMES["tested"], "--group", NAMES["g"])
ROLES += ("--id", NAMES["id"])


def run(folder, *words, **how):
    return subprocess.run(
        [SCRIPT, *map(os.fsencode, words)], capture_output=True, cwd=folder, timeout=120, **how
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table whose names, values and groups are commands of a terminal, and a model of it."""
    folder, rng, rows = tmp_path_factory.mktemp("odd"), np.random.default_rng(0), 1200
    x, tested = rng.normal(size=rows), rng.random(rows) < 0.5
    flu = np.where(tested, rng.random(rows) < 1 / (1 + np.exp(-x)), np.nan)
    columns = {
        f"x{TITLE}": x,
        f"z[bold]{TITLE}": rng.normal(size=rows),
        f"kind{TITLE}": rng.choice([f"u{TITLE}", "v", "w\x07"], rows),
        f"same{TITLE}": 1,
        NAMES["tested"]: tested.astype(int),
        NAMES["lab"]: flu,
        NAMES["g"]: rng.choice([f"A{TITLE}", "B\x9b31m", "C\u202e[/b]"], rows),
        NAMES["id"]: [f"{row}{TITLE}" for row in range(rows)],
    }
    pd.DataFrame(columns).to_csv(folder / TABLE, index=False)
    fitted = run(folder, "fit", TABLE, *ROLES, *["--method", "tested-only", "--learner", "linear"],
                 "--out", "m\x1b[2J")  # fmt: skip
    assert fitted.returncode == 0, fitted.stderr
    assert not ODD.search(fitted.stdout + fitted.stderr)
    audited = run(folder, "audit", TABLE, *ROLES, "--json", "a.json", "--report", "a\x1b[2J.html")
    assert audited.returncode == 0, audited.stderr
    assert not ODD.search(audited.stdout + audited.stderr)
    return folder


MODEL = "m\x1b[2J"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("init", TABLE, *ROLES, "--out", "x\x1b[2J.toml"), None),
        (("check", TABLE, *ROLES), 0),
        (("check", TABLE), None),
        (("audit", TABLE, "--label", "lab\x1b[31m"), 2),
        (("compare", TABLE, *ROLES, "--method", "tested-only:linear", "--folds", "2",
          "--planted", "0", "--members", "1", "--out", "."), 0),
        (("predict", MODEL, TABLE, "--out", "s\x1b[2J.csv", "--capacity", ".1"), 0),
        (("predict", MODEL, TABLE, "--out", "s.csv", "--keep", f"no{TITLE}"), 2),
        (("predict", f"no{TITLE}", TABLE, "--out", "s.csv"), 2),
        (("next-tests", MODEL, TABLE, "--budget", "30", "--out", "n\x1b[2J.csv"), 0),
        (("monitor", MODEL, TABLE), 0),
        (("report", "a.json", "--out", "b\x1b[2J.html"), 0),
        (("audit", f"gone{TITLE}.csv", "--label", "x"), 2),
        (("audit", "gone\udcff.csv", "--label", "x"), 2),
        (("audit", TABLE, f"--{TITLE}"), 2),
        (("methods", f"no{TITLE}"), 2),
        (("simulate", "-n", "1000", "-o", "q\x1b[2J.csv"), 0),
        (("audit", TABLE, *ROLES, "--remember", "--config", "c\x1b[2J.toml"), 0),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_no_command_prints_a_control_character(folder, words, status):
    done = run(folder, *words)
    assert b"Traceback" not in done.stderr, done.stderr
    assert status is None or done.returncode == status, done.stderr
    assert done.stdout + done.stderr
    assert not ODD.findall(done.stdout + done.stderr)


def test_nor_on_a_terminal_which_has_colours(folder):
    """`script` gives the command a terminal, on which it writes colours of its own."""
    pty = pytest.importorskip("pty")
    seen = bytearray()

    def read(number):
        data = os.read(number, 1024)
        seen.extend(data)
        return data

    code = "import os, sys; sys.argv[0] = 'dcem'; from dcem.cli import main; main()"
    here = os.getcwd()
    os.chdir(folder)
    try:
        for words in (("check", TABLE, *ROLES), ("audit", TABLE, "--label", "lab\x1b[31m")):
            pty.spawn([sys.executable, "-c", code, *words], read, lambda number: b"")
    finally:
        os.chdir(here)
    assert b"\x1b[" in seen
    assert not ODD.findall(OF_COLOURS.sub(b"", bytes(seen)))


def test_pages_as_text_are_safe_to_print_too(folder):
    assert not ODD.findall((folder / "a\x1b[2J.md").read_bytes())


def test_commands_print_through_one_console():
    others = [
        path.name
        for path in (SOURCE / "cli").glob("*.py")
        if "rich.console" in path.read_text() and path.name != "_console.py"
    ]
    assert others == []


ROWS = ("--label", "flu", "--tested", "swabbed")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("plain"), np.random.default_rng(1)
    age, swabbed = rng.normal(size=600), rng.random(600) < 0.5
    flu = np.where(swabbed, rng.random(600) < 1 / (1 + np.exp(-age)), np.nan)
    pd.DataFrame({"age": age, "swabbed": swabbed, "flu": flu}).to_csv(folder / "t.csv", index=False)
    return folder


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (("audit", "t.csv", *ROWS, "--report", "a.html", "--json", "a.json"),
         ["a.html", "a.md", "a.json"]),
        (("compare", "t.csv", *ROWS, "--method", "tested-only:linear", "--folds", "2",
          "--planted", "0", "--members", "1", "--out", "."), ["comparison.csv", "comparison.json"]),
        (("fit", "t.csv", *ROWS, "--method", "tested-only", "--learner", "linear", "--out", "m"),
         ["m/model.json", "m/MODEL_CARD.md"]),
        (("simulate", "-n", "1000", "-o", "s.csv"), ["s.csv"]),
    ],
    ids=lambda value: value[0],
)  # fmt: skip
@pytest.mark.parametrize("how", ["left", "closed"])
def test_outputs_are_written_though_nobody_reads(plain, words, written, how):
    for name in written:
        (plain / name).unlink(missing_ok=True)
    shutil.rmtree(plain / "m", ignore_errors=True)
    if how == "closed":  # no standard output at all: `>&-`
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" >&-', "sh", SCRIPT, *words],
            cwd=plain, capture_output=True, timeout=120,
        )  # fmt: skip
        status, said = done.returncode, done.stderr
    else:  # a reader that is gone before the first line
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            [SCRIPT, *words], stdout=write, stderr=subprocess.PIPE, cwd=plain, timeout=120
        )
        os.close(write)
        status, said = done.returncode, done.stderr
    assert status == 0, said
    assert b"BrokenPipe" not in said
    assert [name for name in written if not (plain / name).is_file()] == []


def test_models_that_scored_are_written_though_nobody_reads(plain):
    fit = ("fit", "t.csv", *ROWS, "--method", "tested-only", "--learner", "linear", "--out", "n")
    assert run(plain, *fit).returncode == 0
    read, write = os.pipe()
    os.close(read)
    for words in (("predict", "n", "t.csv", "--out", "scores.csv"),
                  ("next-tests", "n", "t.csv", "--budget", "20", "--out", "list.csv"),
                  ("monitor", "n", "t.csv", "--json", "now.json")):  # fmt: skip
        done = subprocess.run([SCRIPT, *words], stdout=write, stderr=subprocess.PIPE, cwd=plain)
        assert done.returncode == 0, done.stderr
        assert (plain / words[-1]).is_file()
    os.close(write)
