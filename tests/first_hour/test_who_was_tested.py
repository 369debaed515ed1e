"""Everybody counts as tested although a column may say who was: commands name that column."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

N = 1_500
KINDS = {  # how another column tells who was tested
    "waived": lambda tested, rng: (~tested).astype(int),
    "date": lambda tested, rng: np.where(tested, "2024-03-11", ""),
    "number of tests": lambda tested, rng: tested * rng.integers(1, 4, N),
    "three levels": lambda tested, rng: np.where(tested, rng.choice(["a", "b"], N), "no"),
}


def made(kind: str | None) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    x = rng.normal(size=N)
    tested = rng.random(N) < 1 / (1 + np.exp(-0.5 * x))
    sick = rng.random(N) < 1 / (1 + np.exp(0.5 - x))
    frame = pd.DataFrame({"x": x.round(2), "k3": rng.choice(["A", "B"], N)})
    if kind is None:
        return frame.assign(q7=rng.choice(["u", "v"], N), r=sick.astype(int))
    return frame.assign(q7=KINDS[kind](tested, rng), r=(tested & sick).astype(int))


def told(folder: Path, frame: pd.DataFrame, command: str, *more: str) -> str:
    frame.to_csv(folder / "table.csv", index=False)
    call = [sys.executable, "-m", "dcem", command, str(folder / "table.csv"), "--label", "r"]
    done = subprocess.run([*call, *more], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("kind", KINDS)
def test_check_names_the_column(tmp_path: Path, kind: str) -> None:
    said = told(tmp_path, made(kind), "check", "--group", "k3")
    assert "may say who was tested" in said
    assert "'q7'" in said


@pytest.mark.parametrize(
    "command",
    [
        ("audit",),
        ("compare", "--method", "tested-only"),
        ("fit", "--method", "tested-only", "--out", "model"),
    ],
    ids=lambda command: command[0],
)
def test_the_other_commands_name_it_too(tmp_path: Path, command: tuple[str, ...]) -> None:
    said = told(tmp_path, made("waived"), *command, "--group", "k3")
    assert "may say who was tested" in said
    assert "'q7'" in said


@pytest.mark.parametrize(
    ("kind", "more"),
    [(None, ()), ("waived", ("--exclude", "q7")), ("number of tests", ("--tested", "q7"))],
)
def test_nothing_is_said_where_no_column_may_tell(
    tmp_path: Path, kind: str | None, more: tuple[str, ...]
) -> None:
    frame = made(kind)
    if "--tested" in more:
        frame["q7"] = (frame["q7"] > 0).astype(int)
    assert "may say who was tested" not in told(tmp_path, frame, "check", *more)
