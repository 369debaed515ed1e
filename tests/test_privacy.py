"""Everything that is written about one table, put together, tells nothing of under ten people."""

from __future__ import annotations

import json
import warnings
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from safetensors.numpy import load_file
from tests.support.reader import EVERYBODY, Reader
from typer.testing import CliRunner

from dcem.audit import audit_labels
from dcem.cli import app
from dcem.compare import compare_methods
from dcem.report.audit import audit_document
from dcem.report.compare import compare_document
from dcem.report.to_html import to_html
from dcem.report.to_json import to_json
from dcem.report.to_markdown import to_markdown
from dcem.report.to_terminal import to_terminal
from dcem.scoring import fit_table
from dcem.table import Roles, UserTable, read_table

pytestmark = pytest.mark.usefixtures("linear_models")

CELLS = ("rows", "tested", "untested", "positive", "negative")
# group -> rows, tested, positive; each table has counts under ten, alone or beside others
TABLES = {
    "a group of five": {"A": (220, 101, 34), "B": (150, 54, 17), "C": (5, 2, 1)},
    "a group of one": {"A": (300, 120, 41), "B": (211, 83, 29), "C": (1, 1, 0)},
    "two groups, one small": {"A": (320, 130, 40), "B": (12, 7, 3)},
    "few positives": {"A": (420, 160, 60), "B": (250, 90, 31), "C": (150, 50, 4)},
    "few tested": {"A": (420, 160, 60), "B": (250, 90, 31), "C": (150, 7, 3)},
    "few untested": {"A": (420, 160, 60), "B": (250, 90, 31), "C": (150, 146, 40)},
    "two small ones": {"A": (320, 130, 40), "B": (180, 80, 30), "C": (9, 5, 2), "D": (8, 3, 3)},
    "one group": {"A": (420, 160, 8)},
    "all of a few": {"A": (420, 160, 60), "B": (250, 90, 31), "C": (49, 12, 12)},
    "none of a few": {"A": (420, 160, 60), "B": (250, 90, 31), "C": (49, 12, 0)},
    "many groups": {
        **{f"L{i:02d}": (60 + i, 28 + i, 13) for i in range(48)},
        **{f"S{i}": (4 + 3 * i, 2 + i, i % 2) for i in range(6)},
    },
    "repeated visits": {"A": (600, 240, 80), "B": (320, 120, 40), "C": (48, 24, 12)},
}
QUICK = ("few positives", "all of a few", "repeated visits")


def make(name: str, folder: Path) -> UserTable:
    """A table with exactly these counts, a rare level, a rare flag and, if wanted, visits."""
    rng = np.random.default_rng(len(name))
    parts = []
    for group, (rows, tested, positive) in TABLES[name].items():
        result = ["pos"] * positive + ["neg"] * (tested - positive) + [None] * (rows - tested)
        parts.append(pd.DataFrame({"group": group, "result": result}))
    frame = pd.concat(parts, ignore_index=True)
    n = len(frame)
    ill = (frame["result"] == "pos").to_numpy()
    frame["pain"] = (rng.normal(size=n) + ill).round(2)
    frame["ward"] = np.where(rng.random(n) < 0.5, "north", "south")
    frame["flag"] = "no"
    frame.loc[rng.choice(n, 8, replace=False), "flag"] = "yes"
    frame.loc[rng.choice(n, 7, replace=False), "ward"] = "west"
    if name == "repeated visits":  # everybody comes eight times
        frame["person"] = [f"P{i // 8:04d}" for i in range(n)]
    frame = frame.sample(frac=1, random_state=0)
    frame.to_csv(folder / "table.csv", index=False)
    roles = Roles(
        label="result",
        positive=("pos",),
        group=("group",),
        id="person" if "person" in frame else None,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_table(folder / "table.csv", roles)


def small_counts(table: UserTable) -> dict[tuple[str, str], int]:
    """(group, cell) -> rows, where 1 to 9 people stand behind it, or nobody of a few tested."""
    problem = table.problem
    masks = {
        "rows": np.ones(len(problem), bool),
        "tested": problem.tested,
        "untested": ~problem.tested,
        "positive": problem.y_obs == 1,
        "negative": problem.y_obs == 0,
    }
    groups = {name: problem.group == code for code, name in enumerate(problem.group_names)}
    found = {}
    for group, mine in (groups | {EVERYBODY: np.ones(len(problem), bool)}).items():
        people = {cell: len(np.unique(problem.person[mine & mask])) for cell, mask in masks.items()}
        for cell, mask in masks.items():
            nobody = cell in ("positive", "negative") and 10 <= people["tested"] < 30
            if (0 if nobody else 1) <= people[cell] < 10:
                found[group, cell] = int((mine & mask).sum())
    return found


def read_audit(reader: Reader, told: dict) -> None:
    for item in (*told["counts"], told["total"]):
        for cell in ("rows", "tested", "positive"):
            reader.hears_count(item["group"], cell, item[cell])
    for item in told["testing"]:
        reader.hears_rate(item["group"], "tested", "rows", item["crude"])
    for item in told["yields"]:
        reader.hears_rate(item["group"], "positive", "tested", item["rate"])
        rate, gap = item["rate"]["value"], item["difference"]["value"]
        if rate is not None and gap is not None:  # the rate of all others follows
            one, all_tests = reader.of(item["group"], "positive"), reader.of(EVERYBODY, "tested")
            others = reader.of(EVERYBODY, "positive") - one
            tests = all_tests - reader.of(item["group"], "tested")
            for side in (-1e-5, 1e-5):
                bound = (-np.inf, 0) if side > 0 else (0, np.inf)
                reader.hears(others - (rate - gap + side) * tests, *bound)
    for item in told["prevalence"]:
        group = item["group"]
        reader.hears_rate(group, "positive", "rows", item["recorded"])
        reader.hears_rate(group, "positive", "tested", item["tested_only"])
        low, high = item["bounds"]
        reader.hears_share(group, "positive", "rows", low)
        if high is not None:
            reader.hears_share(group, "negative", "rows", 1 - high)
    for group, item in told["overlap"].items():
        reader.hears_count(group, "tested", item["tested"])
    for item in told["needed"]:
        reader.hears_count(item["group"], "tested", item["tests"])


def read_comparison(reader: Reader, told: dict) -> None:
    names = {"people": "rows", "tested": "tested", "positives_seen": "positive"}
    for item in told["groups"]:
        group = EVERYBODY if item["name"] == "all together" else item["name"]
        for name, cell in names.items():
            reader.hears_count(group, cell, item[name])
    open_counts = {item["name"]: item["positives_seen"] for item in told["groups"]}
    for finding in told["findings"]:
        if finding["key"] == "tested":
            for group, rate in finding["values"].items():
                reader.hears_share(group, "tested", "rows", rate)
    for method in told["methods"]:
        seen = method["judgements"]["tested"]
        for group, points in seen["calibration_curves"].items():
            shares, observed = points["share"], points["observed"]
            if shares and abs(sum(shares) - 1) < 1e-4:  # the bins add up to everybody tested
                rate = sum(a * b for a, b in zip(shares, observed, strict=True))
                reader.hears_rate(
                    group, "positive", "tested", {"value": rate, "low": None, "high": None}
                )
        # the steps of a curve are people: there is none of a group that has something to hide
        curves = {*seen["roc_curves"], *seen["decision_curves"], *seen["calibration_curves"]}
        assert all(isinstance(open_counts[group], int) for group in curves - {EVERYBODY})


def read_model(reader: Reader, folder: Path) -> None:
    told = json.loads((folder / "model.json").read_text())
    counts = told["model"]["training_counts"]
    for cell in ("rows", "tested", "positive"):
        for group, value in zip(counts["group"], counts[cell], strict=True):
            reader.hears_count(group, cell, value)
    rows = told["table"]["source"]["rows"]
    reader.hears_count(EVERYBODY, "rows", rows)
    arrays = load_file(folder / "model.safetensors")
    shares = arrays["support_.group_shares"]
    # any multiple of the smallest share that makes whole numbers of all of them
    for times in range(1, rows):
        sizes = shares * times
        if abs(sizes.sum() - rows) < 0.5 and np.allclose(sizes, np.round(sizes), atol=1e-6):
            for group, size in zip(counts["group"], sizes, strict=True):
                reader.hears_count(group, "rows", float(round(size)))


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in TABLES]
)
def test_a_reader_of_everything_recovers_nothing_under_ten(name, tmp_path) -> None:
    table = make(name, tmp_path)
    problem = table.problem
    secrets = small_counts(table)
    assert secrets
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audit = audit_document(audit_labels(problem, sources=table.encoder.sources))
        compared = None
        if not {(EVERYBODY, "positive"), (EVERYBODY, "tested")} & secrets.keys():
            found = compare_methods(
                problem,
                ["tested-only"],
                n_folds=2,
                planted=0,
                n_resamples=20,
                n_members=1,
                params={"steps": 20, "hidden": (4,)},
            )
            compared = compare_document(found)
        model = fit_table(table, "ipw", learner="linear", n_members=1)
    model = model.explained(table)
    told = {one.column: one.at for one in (*model.effects, *model.testing_effects)}
    assert "west" not in told["ward"]  # seven people
    assert told.get("flag", ()) == ()  # all but eight are alike
    model.save(tmp_path / "model")
    reader = Reader(problem.group_names, inverts=problem.id is None)
    read_audit(reader, json.loads(to_json(audit)))
    if compared is not None:
        read_comparison(reader, json.loads(to_json(compared)))
    read_model(reader, tmp_path / "model")
    learnt = {key: reader.learns(*key) for key in secrets}
    assert not [key for key, (low, high) in learnt.items() if low == high], (secrets, learnt)

    # and no line of any text says it in words
    texts = [(tmp_path / "model" / "MODEL_CARD.md").read_text()]
    for document in filter(None, (audit, compared)):
        console = Console(file=StringIO(), width=200)
        to_terminal(document, console)
        texts += [to_markdown(document), console.file.getvalue()]
        texts += [to_html(document)] if name == QUICK[0] else []
    for line in "\n".join(texts).splitlines():
        for (group, cell), value in secrets.items():
            if group in line.split() and group != EVERYBODY:
                assert f" {value} of" not in line, (group, cell)
                assert f"| {value} |" not in line, (group, cell)
    means = load_file(tmp_path / "model" / "model.safetensors")["preprocessor_.mean"]
    for feature, mean in zip(table.encoder.feature_names, means, strict=True):
        if feature in {"flag"} | {f for f in table.encoder.feature_names if "=" in f}:
            few = min(mean, 1 - mean) * len(problem)
            assert few < 1e-9 or few >= 10, feature


def test_the_reader_finds_what_is_given_away() -> None:
    """The test above can fail: a total, a rate of everybody, or a share is enough."""
    for give in (
        lambda r: r.hears_count(EVERYBODY, "rows", 375),
        lambda r: r.hears_count("C", "rows", 5),
    ):
        reader = Reader("ABC")
        for group, rows in (("A", 220), ("B", 150)):
            reader.hears_count(group, "rows", rows)
        give(reader)
        assert reader.learns("C", "rows") == (5, 5)
    reader = Reader("AB")
    reader.hears_count("A", "tested", 101)
    reader.hears_count("A", "positive", 34)
    rate = {"value": 0.339806, "low": 0.255602, "high": 0.435589}  # 35 of 103, by Wilson
    reader.hears_rate(EVERYBODY, "positive", "tested", rate)
    assert reader.learns("B", "tested") == (2, 2)
    assert reader.learns("B", "positive") == (1, 1)


@pytest.mark.parametrize("command", ["fit", "check"])
def test_terminals_show_no_small_count(command, tmp_path) -> None:
    make("a group of five", tmp_path)
    roles = ["--label", "result", "--positive", "pos", "--group", "group"]
    more = ["--method", "tested-only", "--learner", "linear", "--out", str(tmp_path / "m")]
    told = CliRunner().invoke(
        app, [command, str(tmp_path / "table.csv"), *roles, *more * (command == "fit")]
    )
    assert told.exit_code == 0, told.output
    counts = {line.split()[0]: line.split()[1:] for line in told.output.splitlines() if line}
    assert counts["all"][:2] == ["375", "157"]
    assert counts["A"][:2] == ["220", "101"]
    assert counts["B"] == ["withheld"] * 3
    assert counts["C"] == ["<10"] * 3
