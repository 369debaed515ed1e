"""The demo: what was put in is found, the truth beside it, and one's own table comes next."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

NUMBER = r"([+-]?[\d.]+)"
ESTIMATE = re.compile(rf"{NUMBER} ?(?:points|%)?\s+\[{NUMBER}, {NUMBER}\]\s+{NUMBER}")


def dcem(*arguments: object) -> str:
    command = [sys.executable, "-m", "dcem", *map(str, arguments)]
    at_80 = os.environ | {"COLUMNS": "80"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=at_80)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("demo") / "out"
    return dcem("demo", "--quick", "--out", folder), folder


def test_what_was_put_in_is_found_and_the_truth_lies_in_the_intervals(demo) -> None:
    printed, _ = demo
    rows = [tuple(map(float, found)) for found in ESTIMATE.findall(printed)]
    assert len(rows) == 8  # testing, three prevalences, four methods
    assert all(low <= value <= high for value, low, high, _ in rows)
    assert all(low <= truth <= high for _, low, high, truth in rows)
    _, low, high, truth = rows[0]
    assert low < truth < high < 0
    assert "Group B is tested less" in " ".join(printed.split())


def test_the_default_the_trees_and_the_naive_row_are_compared(demo) -> None:
    printed, _ = demo
    of_methods = [line for line in printed.splitlines() if re.search(r" \.\d{3}$", line)]
    naive, linear, trees, default = (float(line.split()[-1]) for line in of_methods)
    assert "as negative" in of_methods[0]
    assert "logistic regression on the tested" in of_methods[1]
    assert "trees on the tested" in of_methods[2]
    assert of_methods[3].startswith("ensemble")
    assert max(naive, linear) < min(trees, default)


def test_the_gain_that_is_told_holds_over_the_best_simple_rival(tmp_path) -> None:
    printed = dcem("demo", "--out", tmp_path / "out")
    assert "Use ensemble" in printed.replace("`", "")
    roles = ["--label", "infection", "--group", "group", "--seed", "1"]
    methods = "y-obs:boost,tested-only:linear,tested-only:boost,ensemble"
    table = tmp_path / "out" / "patients.csv"
    own = dcem("compare", table, *roles, "--method", methods, "--members", "1")
    first = own.split("Methods compared on")[1]
    assert "Use ensemble" in first.split("How sure?")[0]
    assert "rank as well" not in first.split("In numbers")[0]


def test_what_the_quick_demo_says_is_on_its_page(demo) -> None:
    printed, folder = demo
    page = (folder / "comparison.html").read_text()
    told = "rank as well" in " ".join(printed.split())
    assert told is ("rank as well" in page.split("In numbers")[0])


def test_nothing_is_repeated_or_called_serious_and_all_fits_a_terminal(demo) -> None:
    printed, folder = demo
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    assert len(lines) == len(set(lines)) < 40
    assert "serious" not in printed
    assert all(len(line) <= 80 for line in printed.splitlines() if str(folder) not in line)


def test_it_ends_with_the_commands_for_ones_own_table(demo) -> None:
    printed, _ = demo
    commands = re.findall(r"^\s+dcem ([a-z]+) visits\.csv", printed, re.MULTILINE)
    assert commands == ["init", "audit", "compare", "fit"]
    assert printed.rstrip().splitlines()[-1].strip().startswith("dcem fit")


def test_pages_and_a_table_without_the_truth(demo) -> None:
    _, folder = demo
    assert {path.name for path in folder.iterdir()} == {
        "audit.html",
        "comparison.html",
        "patients.csv",
    }
    for name in ("audit.html", "comparison.html"):
        assert "test group B less" in (folder / name).read_text()  # that it was put in
    patients = pd.read_csv(folder / "patients.csv")
    assert patients["infection"].isna().mean() > 0.3
    assert not [column for column in patients if "true" in column or "truth" in column]


def test_the_commands_find_the_same_in_the_table(demo) -> None:
    _, folder = demo
    roles = ["--label", "infection", "--group", "group"]
    printed = dcem("audit", folder / "patients.csv", *roles)
    assert "Group B is tested less" in " ".join(printed.split())
