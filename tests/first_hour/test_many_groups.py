"""Many groups neither hang nor give a small count away."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.support.reader import EVERYBODY, Reader

import dcem
from dcem.table.labels import SelectiveLabels

CELLS = ("rows", "tested", "positive")


def clinics(sizes: list[int], share: float = 0.5, seed: int = 0, visits: int = 1):
    """Clinics of these numbers of people, and how many of each are tested and positive."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), np.array(sizes) * visits)
    n = len(group)
    x = rng.normal(size=(n, 2))
    tested = rng.random(n) < share
    y = (rng.random(n) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SelectiveLabels.from_arrays(
            x,
            np.where(tested, y, np.nan),
            group=np.array([f"c{code:04d}" for code in group]),
            id=np.arange(n) // visits if visits > 1 else None,
        )


SHAPES = {
    "one small among large": [*[90] * 59, 3],
    "two small among large": [*[90] * 58, 3, 1],
    "all small": [4] * 70,
    "every size": list(range(1, 71)),
    "one person each": [1] * 60,
    "mostly large": [*[200] * 50, *[12] * 5],
}


@pytest.mark.parametrize("visits", [1, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_reader_of_the_counts_learns_no_small_one(shape, visits) -> None:
    problem = clinics(SHAPES[shape], seed=len(shape), visits=visits)
    shown = problem.counts(small_cells=False)
    exact = problem.counts(small_cells=True)
    reader = Reader(problem.group_names, inverts=visits == 1)
    for name, row in shown.iterrows():
        for cell in CELLS:
            reader.hears_count(name, cell, row[cell])
    together = problem.summary(0, small_cells=False).splitlines()[-1]
    totals = re.findall(r"[\d,]+(?= |$)(?! %)", re.sub(r"\(.*?\)", "", together))
    for cell, value in zip(CELLS, totals, strict=False):
        reader.hears_count(EVERYBODY, cell, int(value.replace(",", "")))
    some = np.random.default_rng(0).permutation(problem.n_groups)[:25]
    for code in some:
        name, mine = problem.group_names[code], problem.group == code
        masks = {
            "rows": mine,
            "tested": mine & problem.tested,
            "untested": mine & ~problem.tested,
            "positive": mine & (problem.y_obs == 1),
            "negative": mine & (problem.y_obs == 0),
        }
        for cell, rows in masks.items():
            if 0 < len(np.unique(problem.person[rows])) < 10:
                low, high = reader.learns(name, cell)
                assert low < high, (name, cell, low)
    # what is shown is true, and something is shown where there is much
    for name in shown.index:
        for cell in CELLS:
            value = shown.loc[name, cell]
            assert isinstance(value, str) or value == exact.loc[name, cell]
    if shape == "one small among large":
        assert sum(not isinstance(v, str) for v in shown["rows"]) > 50


def test_a_thousand_groups_take_seconds() -> None:
    problem = clinics([5] * 1_000)
    begun = time.process_time()
    problem.counts(small_cells=False)
    assert time.process_time() - begun < 3
    few = clinics([500] * 10)
    seconds = []
    for labels in (few, problem):
        begun = time.process_time()
        found = dcem.audit_labels(labels)
        found = dcem.audit.without_small_cells(found)
        seconds.append(time.process_time() - begun)
    assert seconds[1] < seconds[0] + 20
    assert len(found.counts) == 1_000
    assert not any(rate.difference.estimable for rate in found.testing)


def test_large_groups_among_many_small_ones_are_still_compared() -> None:
    rng = np.random.default_rng(3)
    sizes = [1_200, 1_200, *[6] * 80]
    problem = clinics(sizes, seed=3)
    less = (problem.group == 1) & (rng.random(len(problem)) < 0.5)
    y = np.where(less, np.nan, problem.y_obs)
    names = np.array(problem.group_names)[problem.group]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = dcem.audit_labels(SelectiveLabels.from_arrays(problem.X, y, group=names))
    by_name = {rate.group: rate.difference for rate in found.testing}
    assert by_name["c0001"].high < 0 < by_name["c0000"].low
    assert by_name["c0001"].value == pytest.approx(-0.25, abs=0.08)
    assert sum(one.estimable for one in by_name.values()) == 2


def test_a_group_of_the_crowd_has_no_number_that_tells_its_size(tmp_path) -> None:
    """The width of an interval tells of how many people it is; the totals then tell the rest."""
    rng = np.random.default_rng(201)
    sizes = [*rng.integers(60, 91, 54), 5]
    clinic = np.repeat([f"k{i:02d}" for i in range(len(sizes))], sizes)
    n = len(clinic)
    x = rng.normal(size=(n, 2))
    ill = (rng.random(n) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(
        clinic=clinic, ill=np.where(rng.random(n) < 0.5, ill, np.nan)
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    command = ["audit", "t.csv", "--label", "ill", "--group", "clinic", "--json", "t.json"]
    done = subprocess.run(
        [Path(sys.executable).with_name("dcem"), *command], cwd=tmp_path, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "t.json").read_text())
    withheld = {one["group"] for one in told["counts"] if not isinstance(one["rows"], int)}
    withheld |= {one["group"] for one in told["counts"] if one["rows"] == -1}
    assert 3 <= len(withheld) < 20
    for part in ("testing", "yields", "prevalence"):
        for one in told[part]:
            if one["group"] in withheld:
                numbers = [v for v in _leaves(one) if isinstance(v, float) and not np.isnan(v)]
                assert not numbers, (part, one["group"])


def _leaves(thing):
    if isinstance(thing, dict):
        thing = list(thing.values())
    if isinstance(thing, list):
        for item in thing:
            yield from _leaves(item)
    else:
        yield thing


def test_a_comparison_of_many_groups_ends() -> None:
    problem = clinics([5] * 300)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = dcem.compare_methods(
            problem, ["tested-only:linear"], n_folds=2, planted=0, n_resamples=20
        )
    assert time.process_time() - begun < 60
    assert isinstance(found.to_frame(), pd.DataFrame)


def _many(path, groups: int, n: int = 4_000):
    rng = np.random.default_rng(groups)
    x = rng.normal(size=(n, 3))
    tested = rng.random(n) < 1 / (1 + np.exp(-x[:, 0]))
    y = rng.random(n) < 1 / (1 + np.exp(-x[:, 1]))
    frame = pd.DataFrame(x.round(3), columns=list("abc"))
    frame["site"] = [f"s{code:04d}" for code in rng.integers(0, groups, n)]
    frame.assign(res=np.where(tested, np.where(y, "1", "0"), "")).to_csv(path, index=False)
    return path


def _drawn(groups: int, path) -> tuple[float, str]:
    """The seconds in which the page of a comparison is written, and its text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = dcem.read_table(_many(path, groups), dcem.Roles(label="res", group=("site",)))
        found = dcem.compare_methods(
            made.problem,
            ["tested-only:linear", "y-obs:linear"],
            n_folds=2,
            planted=0,
            n_resamples=5,
        )
        begun = time.process_time()
        page = found.to_markdown()
    return time.process_time() - begun, page


def test_the_page_of_a_comparison_grows_with_the_groups_not_with_their_square(tmp_path) -> None:
    few, _ = _drawn(10, tmp_path / "few.csv")
    many, page = _drawn(600, tmp_path / "many.csv")
    assert many < 20 * few + 3
    unknown = page.partition("What cannot be determined")[2].partition("\n## ")[0]
    assert unknown.count("\n- ") <= 50
    assert re.search(r"And \d+ more", unknown)


def test_a_terminal_does_not_name_every_group(tmp_path) -> None:
    path = _many(tmp_path / "t.csv", 400)
    dcem = [sys.executable, "-m", "dcem"]
    run = {"cwd": tmp_path, "capture_output": True, "text": True, "check": True}
    roles = ["--label", "res", "--group", "site", "--method", "tested-only:linear"]
    subprocess.run([*dcem, "fit", path, *roles, "--out", "model"], **run)
    said = subprocess.run([*dcem, "monitor", "model", path], **run).stdout
    assert re.search(r"and \d+ more", said)
    assert len(set(re.findall(r"s\d{4}", said))) < 100
