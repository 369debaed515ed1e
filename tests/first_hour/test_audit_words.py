"""Smaller sentences of an audit that misled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


def audit(frame: pd.DataFrame, folder: Path, *roles: str) -> str:
    frame.to_csv(folder / "t.csv", index=False)
    said = subprocess.run(
        [sys.executable, "-m", "dcem", "audit", "t.csv", *roles],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return " ".join(said.stdout.split())


def stops(label: str, n: int = 1_500, pull: float = 0.9) -> pd.DataFrame:
    """A score that decides who is searched."""
    rng = np.random.default_rng(4)
    score, age = rng.integers(1, 11, n), rng.integers(18, 70, n)
    hour, miles = rng.integers(0, 24, n), rng.exponential(size=n)
    looked = rng.random(n) < 1 / (1 + np.exp(-pull * (score - 5.5)))
    result = (rng.random(n) < 1 / (1 + np.exp(-(0.3 * score - 3)))).astype(int)
    frame = pd.DataFrame({"decile_score": score, "age": age, "hour": hour, "miles": miles})
    frame["race"] = rng.choice(["Black", "White"], n)
    frame[label] = np.where(looked, result.astype(str), "")
    return frame


@pytest.mark.parametrize("pull", [0.4, 0.9])
def test_nobody_is_told_to_drop_the_ground_of_the_decision(pull, tmp_path) -> None:
    said = audit(stops("rearrest", pull=pull), tmp_path, "--label", "rearrest", "--group", "race")
    assert "decile_score" in said.partition("Findings")[2]
    assert "known before the decision" in said
    assert "keep it: it is a ground of the decision" in said
    assert "Audit again without it" not in said
    assert "Audit without them" not in said


@pytest.mark.parametrize("label", ["arrest_made", "citation", "outcome_7"])
def test_what_a_search_finds_is_not_contraband_whatever_the_label(label, tmp_path) -> None:
    roles = ["--label", label, "--group", "race", "--words", "policing"]
    said = audit(stops(label), tmp_path, *roles)
    assert "searched" in said
    assert "contraband" not in said
    assert "carry" not in said


def test_a_search_for_contraband_keeps_its_words(tmp_path) -> None:
    roles = ["--label", "contraband_found", "--group", "race", "--words", "policing"]
    assert "contraband" in audit(stops("contraband_found"), tmp_path, *roles)


@pytest.mark.parametrize("groups", [["a", "b"], ["a"]])
def test_no_reason_is_a_lone_dot(groups, tmp_path) -> None:
    rng = np.random.default_rng(2)
    for n in (40, 90, 300):
        frame = pd.DataFrame({"k": rng.normal(size=n), "g": rng.choice(groups, n)})
        frame["r"] = np.where(rng.random(n) < 0.5, rng.choice(["0", "1"], n), "")
        said = audit(frame, tmp_path, "--label", "r", "--group", "g")
        assert " . " not in said
        assert ": ." not in said


def test_a_suspicious_column_may_be_the_ground_of_the_decision(tmp_path) -> None:
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.normal(size=(900, 3)).round(2), columns=list("abc"))
    tested = rng.random(900) < 0.4
    frame["seen"] = np.where(tested & (rng.random(900) < 0.95), rng.normal(size=900).round(2), "")
    frame["r"] = np.where(tested, rng.choice(["0", "1"], 900), "")
    frame.to_csv(tmp_path / "t.csv", index=False)
    said = subprocess.run(
        [sys.executable, "-m", "dcem", "check", "t.csv", "--label", "r"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    words = " ".join(said.stdout.split())
    assert "may have been recorded after the decision" in words
    assert "keep it" in words.partition("may have been recorded after the decision")[2]
