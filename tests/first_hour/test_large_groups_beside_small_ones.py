"""Beside tiny groups the numbers of a large one may be withheld; that it is tested less is told."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

LARGE = {"A": (900, 0.6, 0.0), "B": (570, -0.8, -2.5)}
TINY = {
    "one": {"tiny": 14},
    "two": {"tiny": 12, "trio": 4},
    "three": {"tiny": 5, "trio": 3, "pair": 2},
}


def people(tiny: dict[str, int]) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    # the tiny groups are tested less, too: that must not be told
    world = LARGE | {name: (size, -3.0, 0.0) for name, size in tiny.items()}
    group = np.repeat([*world], [size for size, _, _ in world.values()])
    tested, sick = (np.array([world[name][place] for name in group]) for place in (1, 2))
    x = rng.normal(size=len(group))
    positive = rng.random(len(group)) < 1 / (1 + np.exp(-(x + sick)))
    done = rng.random(len(group)) < 1 / (1 + np.exp(-(0.5 * x + tested)))
    result = np.where(done, np.where(positive, "yes", "no"), "")
    return pd.DataFrame({"age": (60 + 12 * x).round(1), "group": group, "result": result})


def dcem(*arguments: object) -> str:
    command = [sys.executable, "-m", "dcem", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def next_tests(folder: Path, tiny: dict[str, int], method: str) -> str:
    table, model = folder / "table.csv", folder / "model"
    people(tiny).to_csv(table, index=False)
    how = ["--label", "result", "--group", "group", "--method", method, "--out", model]
    dcem("fit", table, *how)
    return dcem("next-tests", model, table, "--budget", 100, "--out", folder / "list.csv")


@pytest.mark.parametrize("case", TINY)
def test_a_large_group_is_told_and_a_tiny_one_is_not(tmp_path: Path, case: str) -> None:
    said = next_tests(tmp_path, TINY[case], "ensemble")
    line = re.search(r"Tested less than average[^.]*", said)
    assert line is not None
    assert re.search(r"\bB \(\d+ % fewer\)", " ".join(line[0].split()))
    assert not any(name in line[0] for name in TINY[case])


def test_a_shortfall_that_is_made_of_counts_is_not_told(tmp_path: Path) -> None:
    said = next_tests(tmp_path, TINY["one"], "tested-only")
    assert re.search(r"^B +withheld", said, re.MULTILINE)
    assert "Tested less" not in said
