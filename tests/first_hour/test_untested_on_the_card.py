"""The card shows the risk of the untested as an extrapolation, by group, with its limits."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SCRIPT = Path(sys.executable).with_name("dcem")


def run(*args, cwd):
    """Run the installed `dcem` script, as a shell would."""
    done = subprocess.run(
        [SCRIPT, *map(str, args)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"COLUMNS": "100", "TERM": "dumb"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def people(n=3000, seed=0, hidden=0.0):
    """Two groups, and who is tested; a `hidden` cause raises the odds of the untested."""
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(n, 5)), rng.choice(["north", "south"], n)
    frame = pd.DataFrame(X.round(3), columns=[f"v{i}" for i in range(5)]).assign(region=group)
    tested = rng.random(n) < 1 / (1 + np.exp(-0.8 * X[:, 0]))
    risk = 1 / (1 + np.exp(-(0.8 * X[:, 0] + 0.6 * X[:, 1] - 1 + hidden * ~tested)))
    return frame, (rng.random(n) < risk).astype(int), tested


def card(frame, y, tested, folder, *options, method="tested-only:linear"):
    """The Markdown of the card, and its rows about the untested as cells."""
    frame.assign(out=pd.Series(y).where(tested).astype("Int64")).to_csv(
        folder / "t.csv", index=False
    )
    how = ("--label", "out", "--group", "region", "--method", method, "--out", "model")
    run("fit", "t.csv", *how, *options, cwd=folder)
    text = (folder / "model" / "MODEL_CARD.md").read_text()
    if "## Risk of the untested" not in text:
        return text, {}
    section = text.split("## Risk of the untested")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return text, {row[0].removeprefix("group "): row[1:] for row in cells}


def limits(cell):
    return tuple(float(end) / 100 for end in re.findall(r"([\d.]+) %", cell))


def test_each_group_has_limits_that_hold_its_truth(tmp_path):
    """Even where a hidden cause raises the odds of the untested by half."""
    frame, y, tested = people(hidden=np.log(1.5))
    text, rows = card(frame, y, tested, tmp_path)
    assert set(rows) == {"everybody", "north", "south"}
    for name, (*_, possible, beyond) in rows.items():
        mine = ~tested & ((frame.region == name) | (name == "everybody"))
        low, high = limits(possible)
        assert low < y[mine].mean() < high
        assert high - low < 0.5
        assert beyond == "none"
    assert "extrapolation" in text


def test_limits_are_wider_than_the_interval_that_assumes_no_hidden_cause(tmp_path):
    _, rows = card(*people(), tmp_path)
    assert len(rows) == 3
    for *_, borrowed, possible, _ in rows.values():
        inner = [float(end) / 100 for end in re.search(r"\[(.*), (.*)\]", borrowed).groups()]
        low, high = limits(possible)
        assert low < inner[0]
        assert inner[1] < high


def test_a_group_that_nobody_like_is_tested_in_has_no_limits(tmp_path):
    frame, y, tested = people()
    tested &= ~((frame.region == "south") & (np.arange(len(y)) % 60 > 0)).to_numpy()
    text, rows = card(frame, y, tested, tmp_path)
    assert "no limits" in rows["south"][-2]
    assert "Overlap fails" in text
    assert "south" in text.split("Overlap fails")[1].split("\n")[0]


def test_people_out_of_reach_are_counted(tmp_path):
    """Nobody is tested whose first value is high: of them nothing is known."""
    frame, y, tested = people()
    tested &= (frame.v0 < 0.4).to_numpy()
    text, rows = card(frame, y, tested, tmp_path)
    assert float(rows["everybody"][-1].removesuffix(" %")) > 10
    assert "out of reach" in text.split("Overlap fails")[1]


def test_where_everybody_is_tested_there_is_nothing_to_extrapolate(tmp_path):
    frame, y, tested = people(n=800)
    text, rows = card(frame, y, tested | True, tmp_path)
    assert rows == {}
    assert "Risk of the untested" not in text


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judged")
    frame, y, tested = people(n=1200)
    text, rows = card(frame, y, tested, folder, "--judge", method="ensemble")
    return text, rows, tested, y


def test_the_first_screen_says_that_it_is_an_extrapolation(judged):
    text, *_ = judged
    first = text.split("\n## ")[1]
    sentence = re.search(r"risk of the untested is an extrapolation:.*possible", first)
    assert sentence
    assert "mean score" in sentence[0]


def test_the_rows_behind_the_auc_are_told(judged):
    text, _, tested, y = judged
    first = text.split("\n## ")[1]
    assert f"{tested.sum():,} tested rows, {y[tested].sum():,} of them positive" in first


def test_the_weights_of_the_parts_are_on_the_card(judged):
    text, *_ = judged
    shares = re.search(r"shares of its parts[^\n]*", text)[0]
    assert {"network", "boost", "forest", "linear", "smooth"} <= set(re.findall(r"[a-z]+", shares))
    assert 97 <= sum(int(one) for one in re.findall(r"(\d+) %", shares)) <= 103
