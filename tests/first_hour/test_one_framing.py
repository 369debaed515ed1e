"""A page compares every group with the same people: everybody else, or the reference group."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


def one_group_stands_out(seed: int, names: tuple[str, ...], shares: tuple[float, ...]):
    """The second group is tested less than all others, who are treated alike."""
    rng = np.random.default_rng(seed)
    n = 4_000
    group = rng.choice(names, p=shares, size=n)
    x = rng.normal(size=(n, 4))
    tested = rng.random(n) < 1 / (1 + np.exp(-(-0.3 + x[:, 0] - 0.9 * (group == names[1]))))
    y = rng.random(n) < 1 / (1 + np.exp(-(-1 + 1.2 * x[:, 0] + x[:, 1])))
    frame = pd.DataFrame(x.round(3), columns=list("abcd")).assign(who=group)
    return frame.assign(res=np.where(tested, np.where(y, "pos", "neg"), ""))


def page(frame: pd.DataFrame, folder: Path, *more: str) -> str:
    frame.to_csv(folder / "t.csv", index=False)
    subprocess.run(
        [sys.executable, "-m", "dcem", "audit", "t.csv", "--label", "res", "--group", "who",
         "--report", "a.html", *more],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return (folder / "a.md").read_text()


TABLES = [
    (3, ("White", "Black", "Asian"), (0.62, 0.30, 0.08)),
    (5, ("North", "South", "East"), (0.60, 0.30, 0.10)),
    (8, ("alpha", "beta", "gamma", "delta"), (0.50, 0.30, 0.10, 0.10)),
]


@pytest.mark.parametrize(("seed", "names", "shares"), TABLES)
def test_the_majority_is_not_told_twice(seed, names, shares, tmp_path) -> None:
    """What it differs by is the group that stands out, of which both findings are told."""
    told = page(one_group_stands_out(seed, names, shares), tmp_path)
    heads = re.findall(r"- \*\*\w+: (.*?)\*\*", told.partition("## Findings")[2])
    yields = [head for head in heads if "equal testing probability" in head]
    assert [head for head in yields if names[1] in head]
    assert not [head for head in yields if names[0] in head]


@pytest.mark.parametrize(("seed", "names", "shares"), TABLES)
def test_with_a_reference_nothing_is_against_others(seed, names, shares, tmp_path) -> None:
    told = page(one_group_stands_out(seed, names, shares), tmp_path, "--reference-group", names[0])
    assert "than in others" not in told
    assert not re.search(r"against (the )?others", told)
    odds = told.partition("### Odds ratios by group")[2].partition("\n## ")[0]
    assert f"against group {names[0]}" in odds
    assert re.search(rf"\| {names[0]} \| not estimable", odds)
    assert re.search(rf"\| {names[1]} \| \d\.\d+ \[", odds)
