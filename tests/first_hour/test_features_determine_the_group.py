"""Where the features determine the group there is no difference at equal features, and none shown.

The answer is *not estimable*, with the columns by name; and no difference between two rates is
beyond what rates allow, in any output.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dcem
from dcem.table import Roles, read_table

N = 1_500


def made(kind: str, n: int = N, seed: int = 0) -> pd.DataFrame:
    """A table under neutral names, in which the columns tell who is in which group."""
    rng = np.random.default_rng(seed)
    k1, k2, k3 = rng.normal(size=n), rng.normal(size=n), rng.uniform(20, 90, n).round()
    site = rng.choice(list("PQRS"), n)
    group = rng.choice(["a", "b"], n)
    if kind == "cut-off":
        group = np.where(k3 >= 52, "a", "b")
    elif kind == "95 per cent":
        follows = rng.random(n) < 0.95
        own = np.where(group == "a", rng.choice(["P", "Q"], n), rng.choice(["R", "S"], n))
        site = np.where(follows, own, site)
    elif kind == "two columns together":
        group = np.where((k1 > 0) ^ (k2 > 0), "a", "b")
    elif kind == "another name":
        site = np.where(group == "a", "P", "Q")
    elif kind == "one of three":
        group = rng.choice(["a", "b", "c"], n)
        site = np.where(group == "c", "P", rng.choice(["Q", "R", "S"], n))
    elif kind == "twelve bands":
        group = np.array([f"band {i:02d}" for i in range(12)])[((k3 - 20) // 6).astype(int)]
    elif kind == "gaps":
        k2 = np.where(group == "a", np.nan, k2)
    push = np.isin(group, ["a", "band 03"]) * 0.8
    tested = rng.random(n) < 1 / (1 + np.exp(-(0.5 * k1 + push - 0.4)))
    result = (rng.random(n) < 1 / (1 + np.exp(-(k1 - 0.6)))).astype(int).astype(str)
    return pd.DataFrame(
        {"k1": k1, "k2": k2, "k3": k3, "site": site, "g": group, "r": np.where(tested, result, "")}
    )


TELLS = {
    "cut-off": {"k3"},
    "95 per cent": {"site"},
    "two columns together": {"k1", "k2"},
    "another name": {"site"},
    "twelve bands": {"k3"},
    "gaps": {"k2"},
}


def audited(frame: pd.DataFrame, folder: Path) -> dcem.audit.Audit:
    frame.to_csv(folder / "table.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        roles = Roles(label="r", positive=("1",), group=("g",))
        table = read_table(folder / "table.csv", roles)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # an overflow is a number nobody can mean
        return dcem.audit_labels(table.problem, sources=table.encoder.sources)


def beyond_rates(told: object, path: str = "") -> list[str]:
    """Where a JSON output has a difference of two rates beyond -1 or 1."""
    if isinstance(told, list):
        return [one for item in told for one in beyond_rates(item, path)]
    if not isinstance(told, dict):
        return []
    if {"value", "low", "high"} <= told.keys() and re.search("differ|equal|others|gain", path):
        ends = np.hstack([told[key] for key in ("value", "low", "high")])  # of a curve, many
        return [path] * any(end is not None and abs(end) > 1 for end in ends)
    return [one for key, value in told.items() for one in beyond_rates(value, f"{path}.{key}")]


@pytest.mark.parametrize("kind", TELLS)
def test_not_estimable_and_the_columns_are_named(kind, tmp_path) -> None:
    found = audited(made(kind), tmp_path)
    assert {rate.difference.estimable for rate in found.testing} == {False}
    for rate in found.testing:
        assert "not estimable, the features determine the group" in rate.difference.reason
        named = set(re.findall(r"k1|k2|k3|site", rate.difference.reason))
        assert named == TELLS[kind], rate.difference.reason
    finding = next(one for one in found.findings if one.key == "features-determine-group")
    assert all(column in finding.text for column in TELLS[kind])
    assert not {"tested-alike", "tested-less", "tested-more"} & {one.key for one in found.findings}


def test_of_three_groups_the_two_others_are_still_compared(tmp_path) -> None:
    found = audited(made("one of three"), tmp_path)
    by_name = {rate.group: rate.difference for rate in found.testing}
    assert "site" in by_name["c"].reason
    assert by_name["a"].low > 0 > by_name["b"].high
    assert 0.05 < by_name["a"].value < 0.35  # the truth is about .18


@pytest.mark.parametrize("share", [0.3, 0.6, 0.8])
def test_a_column_that_tells_something_of_the_group_stops_nothing(share, tmp_path) -> None:
    frame, rng = made("free"), np.random.default_rng(1)
    own = np.where(frame["g"] == "a", "P", "Q")
    frame["site"] = np.where(rng.random(len(frame)) < share, own, frame["site"])
    found = audited(frame, tmp_path)
    assert all(rate.difference.estimable for rate in found.testing)
    assert not any(one.key == "features-determine-group" for one in found.findings)


@pytest.mark.parametrize("kind", ["cut-off", "two columns together", "one of three"])
def test_no_output_has_a_difference_beyond_what_rates_allow(kind, tmp_path) -> None:
    made(kind).to_csv(tmp_path / "t.csv", index=False)
    said = subprocess.run(
        [sys.executable, "-m", "dcem", "audit", "t.csv", "--label", "r", "--group", "g",
         "--json", "a.json", "--report", "a.html"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    texts = said.stdout, (tmp_path / "a.html").read_text()
    for text in texts:
        numbers = re.findall(r"([\d,]+\.\d+)[ \n]+(?:percentage[ \n]+)?points", text)
        assert all(float(number.replace(",", "")) <= 100 for number in numbers), numbers
    assert "features determine the group" in " ".join(said.stdout.split())
    assert not beyond_rates(json.loads((tmp_path / "a.json").read_text()))


def test_the_reader_of_differences_finds_one() -> None:
    made_up = {"testing": [{"difference": {"value": 2.345, "low": -7.75, "high": 12.44}}]}
    assert beyond_rates(made_up) == [".testing.difference"]
