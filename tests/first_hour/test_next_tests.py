"""Whom to test next: those who were tested less get their share, and small groups no more."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dcem.scoring import allocate

# World: name of each group -> people, shift in the log-odds of being tested, and of the outcome.
# Those tested less have few positives, so that their scores are more certain than others'.
WORLDS = {
    "two": {"A": (900, 0.6, 0.0), "B": (600, -0.8, -2.5)},
    "five": {
        "A": (700, 0.3, 0.0),
        "B": (400, -1.0, -2.5),
        "C": (250, 0.9, 0.0),
        "D": (120, 0.3, 0.5),
        "E": (100, 0.0, 0.5),
    },
    "small": {"A": (900, 0.6, 0.0), "B": (570, -0.8, -2.5), "C": (30, 0.0, 0.0)},
    "more": {"A": (1000, 0.0, 0.0), "B": (500, 1.5, 0.0)},
}


def dcem(*arguments: object) -> str:
    command = [sys.executable, "-m", "dcem", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def people(world: dict, seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    group = np.repeat([*world], [size for size, _, _ in world.values()])
    tested, sick = (np.array([world[name][place] for name in group]) for place in (1, 2))
    frame = pd.DataFrame({"age": rng.normal(60, 12, len(group)).round(1), "group": group})
    x = (frame["age"].to_numpy() - 60) / 12
    positive = rng.random(len(group)) < 1 / (1 + np.exp(-(x + sick)))
    done = rng.random(len(group)) < 1 / (1 + np.exp(-(0.5 * x + tested)))
    return frame.assign(result=np.where(done, np.where(positive, "yes", "no"), ""))


class Found:
    """The list, and the printed summary, of a table and its model."""

    def __init__(self, folder: Path, frame: pd.DataFrame, budget: float, *, name: str = "next"):
        frame.to_csv(folder / f"{name}.csv", index=False)
        out = folder / f"{name}-list.csv"
        self.printed = dcem(
            "next-tests", folder / "model", folder / f"{name}.csv", "--budget", budget, "--out", out
        )
        self.table = pd.read_csv(out)
        self.frame = frame
        self.untested = frame[frame["result"] == ""]
        self.budget = min(budget, len(self.untested))

    def mean(self, group: str) -> float:
        return float(self.table.loc[self.table["group"] == group, "probability"].mean())

    @property
    def overall(self) -> float:
        return self.budget / len(self.untested)

    def check_probabilities(self) -> None:
        probability = self.table["probability"]
        assert len(probability) == len(self.untested)
        assert probability.sum() == pytest.approx(self.budget, rel=1e-6)
        assert (probability >= 0.099 * self.overall).all()
        assert (probability <= 1 + 1e-9).all()


def fitted(folder: Path, world: str, *, group: bool = True) -> Path:
    people(WORLDS[world]).to_csv(folder / "past.csv", index=False)
    roles = ["--group", "group"] if group else ["--exclude", "group"]
    dcem("fit", folder / "past.csv", "--label", "result", *roles, "--out", folder / "model")
    return folder


@pytest.fixture(scope="module", params=WORLDS)
def world(request, tmp_path_factory) -> tuple[str, Path]:
    return request.param, fitted(tmp_path_factory.mktemp(request.param), request.param)


@pytest.mark.parametrize("budget", [1, 60, 300])
def test_a_group_that_is_tested_less_gets_its_share(world, budget) -> None:
    name, folder = world
    found = Found(folder, people(WORLDS[name]), budget)
    found.check_probabilities()
    less = "A" if name == "more" else "B"
    assert found.mean(less) >= 0.999 * found.overall
    assert re.search(rf"[Tt]ested less .*\b{less}\b", " ".join(found.printed.split()))


def test_a_small_group_gets_no_more_than_its_estimate_needs(tmp_path) -> None:
    """Fifteen untested people, of whom nobody, or as many again, were tested before."""
    fitted(tmp_path, "small")
    rest = people(WORLDS["small"])
    small = rest[rest["group"] == "C"].iloc[:15].assign(result="")
    rest = rest[rest["group"] != "C"]
    for tested_before, most in ((0, 15 / 4), (15, None)):
        known = small.iloc[:tested_before].assign(result="no")
        found = Found(tmp_path, pd.concat([rest, small, known]), 60, name=f"c{tested_before}")
        found.check_probabilities()
        assert 15 * found.mean("C") <= 1.001 * (most or 15 * found.overall)


def test_rates_by_group_before_and_after(world) -> None:
    name, folder = world
    found = Found(folder, people(WORLDS[name]), 60)
    groups = found.frame.groupby("group")["result"]
    expected = found.table.groupby("group")["probability"].sum()
    shown = {line.split()[0]: line for line in found.printed.splitlines() if "%" in line}
    for group, results in groups:
        if group in shown:  # counts of a few people are withheld
            before = (results != "").mean()
            after = before + expected[group] / len(results)
            rates = [float(rate) for rate in re.findall(r"([\d.]+) %", shown[group])]
            for rate in (before, after):
                assert min(abs(100 * rate - each) for each in rates) <= 0.51
    assert {"A", "B"} <= set(shown)


def test_a_budget_for_everybody_and_a_table_that_says_nothing_of_tests(tmp_path) -> None:
    fitted(tmp_path, "two")
    found = Found(tmp_path, people(WORLDS["two"]), 5000)
    assert (found.table["probability"] == 1).all()
    assert "100 %" in found.printed
    people(WORLDS["two"]).drop(columns="result").to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "new-list.csv"
    printed = dcem("next-tests", tmp_path / "model", tmp_path / "new.csv", "-o", out, "--budget", 9)
    assert pd.read_csv(out)["probability"].sum() == pytest.approx(9)
    assert "tested after" not in printed  # nothing is known of before


def test_without_a_group(tmp_path) -> None:
    found = Found(fitted(tmp_path, "two", group=False), people(WORLDS["two"]), 60)
    found.check_probabilities()
    assert "ested less than" not in found.printed


@pytest.mark.parametrize("seed", range(40))
def test_any_groups_any_budget(seed) -> None:
    rng = np.random.default_rng(seed)
    sizes = np.where(rng.random(5) < 0.4, rng.integers(1, 20, 5), rng.integers(20, 3000, 5))
    group = rng.permutation(np.repeat(np.arange(5), sizes))
    gain = rng.random(len(group)) ** rng.choice([1, 20]) * rng.random(5)[group]
    tested, less = rng.integers(0, 300, 5) * (rng.random(5) < 0.7), rng.random(5) < 0.5
    for share in (1e-4, 0.05, 0.5, 0.999):
        budget = share * len(group)
        probability = allocate(gain, group, budget, tested=tested[group], tested_less=less[group])
        assert probability.sum() == pytest.approx(budget, rel=1e-9)
        assert (probability >= 0.1 * share * (1 - 1e-9)).all()
        assert (probability <= 1 + 1e-9).all()
        totals = np.bincount(group, probability)
        assert (totals >= (share * sizes - 1e-9) * less).all()
        need = np.clip(np.minimum(96, (sizes + tested) / 4) - tested, 0, sizes)
        small = sizes < 100
        assert (totals <= np.maximum(share * sizes, need) + 1e-6)[small].all()
        minimum = np.minimum(need, 0.1 * share * sizes + 0.1 * budget / 5)
        if not less.any():
            assert (totals >= minimum * (1 - 1e-9)).all()
