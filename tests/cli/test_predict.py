"""`dcem predict` with a rule: decisions, shares by group, and a record of both."""

import json

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from dcem.cli.predict import show_decisions
from dcem.scoring.decisions import Decisions


def test_decisions_are_written_printed_and_recorded(tmp_path, inside) -> None:
    draw = np.random.default_rng(0)
    n = 600
    tested = draw.random(n) < 0.5
    x = draw.normal(size=n)
    y = pd.Series((draw.random(n) < 1 / (1 + np.exp(-2 * x))) * 1.0).where(tested)
    race = draw.choice(["north", "south"], n)
    pd.DataFrame({"x": x, "race": race, "y": y}).to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "dcem.toml").write_text(
        '[roles]\nlabel = "y"\ngroup = "race"\n[predict]\ncapacity = 0.25\n'
    )
    fit = ("fit", "a.csv", "--out", "m", "--method", "tested-only:linear", "--bounds", "2")
    assert inside(*fit, cwd=tmp_path).returncode == 0
    done = inside("predict", "m", "a.csv", "--out", "s.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Flagged: 150 of 600 rows (25 %)" in done.stdout
    told = json.loads((tmp_path / "s.csv.decisions.json").read_text())
    flagged = pd.read_csv(tmp_path / "s.csv")["flagged"]
    assert told["flagged"] == flagged.sum() == 150
    for group, found in told["by_group"].items():
        assert found["flagged"] == flagged[race == group].sum()
    assert (
        inside(
            *("predict", "m", "a.csv", "--out", "k.csv", "--keep", "r*,x"), cwd=tmp_path
        ).returncode
        == 0
    )
    assert list(pd.read_csv(tmp_path / "k.csv"))[:2] == ["race", "x"]
    other = ("predict", "m", "a.csv", "--out", "t.csv", "--threshold", "0.5")
    assert inside(*other, cwd=tmp_path).returncode == 0  # counts more than the file's capacity
    scores = pd.read_csv(tmp_path / "t.csv")
    assert (scores["flagged"] == (scores.iloc[:, 1] >= 0.5)).all()
    assert inside(*other, "--capacity", "0.5", cwd=tmp_path).returncode == 2
    refused = inside("predict", "m", "a.csv", "--out", "b.csv", "--bounds", "2", cwd=tmp_path)
    assert refused.returncode == 2  # a capacity of scores that are not risks
    assert "are not risks" in " ".join(refused.stderr.split())
    (tmp_path / "dcem.toml").unlink()
    limits = inside("predict", "m", "a.csv", "--out", "b.csv", "--bounds", "2", cwd=tmp_path)
    assert limits.returncode == 0, limits.stderr
    pd.DataFrame({"x": [99.0]}).to_csv(tmp_path / "one.csv", index=False)
    none = inside("predict", "m", "one.csv", "--out", "0.csv", "--capacity", "0.5", cwd=tmp_path)
    assert "inf" not in none.stdout  # half of one is nobody, and no score is the least
    lone = inside("predict", "m", "one.csv", "--out", "1.csv", "--words", "credit", cwd=tmp_path)
    said = " ".join(lone.stdout.split())
    assert "Scored 1 row in" in said
    assert "It is unlike anybody approved (`like_tested` is false)" in said
    assert {"risk_low", "risk_high", "outcome_set"} <= set(pd.read_csv(tmp_path / "b.csv"))


@pytest.mark.parametrize("rows_each", [1, 2])
def test_scores_of_people_with_several_rows_say_how_rows_are_told_apart(
    tmp_path, inside, rows_each
) -> None:
    draw = np.random.default_rng(0)
    x, sex = draw.normal(size=400), draw.choice(["f", "m"], 400)
    y = pd.Series((draw.random(400) < 1 / (1 + np.exp(-x))) * 1.0).where(draw.random(400) < 0.5)
    who = [f"{number // rows_each:05d}" for number in range(400)]
    table = pd.DataFrame({"who": who, "x": x, "sex": sex, "y": y})
    table.to_csv(tmp_path / "a.csv", index=False)
    roles = ("--label", "y", "--group", "sex", "--id", "who")
    fit = ("fit", "a.csv", "--out", "m", "--method", "tested-only:linear", *roles)
    assert inside(*fit, cwd=tmp_path).returncode == 0
    told = inside("predict", "m", "a.csv", "--out", "s.csv", cwd=tmp_path).stdout
    assert ("--keep" in told) == (rows_each > 1)
    kept = ("predict", "m", "a.csv", "--out", "k.csv", "--keep", "who,x")
    assert "--keep" not in inside(*kept, cwd=tmp_path).stdout
    assert pd.read_csv(tmp_path / "k.csv", dtype=str)["who"].tolist() == who


def test_what_limits_decide_sums_to_all_rows(capsys) -> None:
    groups = {"north": (100, 18, 282), "south": (50, 20, 530)}
    rows = {name: (sum(one), 0) for name, one in groups.items()}
    found = Decisions(0.2, 1000, 759, rows, decided=(150, 38, 812), decided_by_group=groups)
    show_decisions(found, "risk", Console(width=300))
    said = capsys.readouterr().out
    assert "Flagged by the score alone: 759 of 1,000 rows" in said
    assert "act, 150 (15 %); do not act, 38 (3.8 %); cannot say, 812 (81.2 %)" in said
    grid = said[said.index("group") :].splitlines()
    assert grid[0].split("  ")[-1].strip() == "cannot say"
    assert "flagged" not in grid[0]  # it would not sum to the rows with the others
    assert grid[1].split() == ["north", "400", "100", "(25", "%)", "18", "(4.5", "%)", "282",
                               "(70.5", "%)"]  # fmt: skip
