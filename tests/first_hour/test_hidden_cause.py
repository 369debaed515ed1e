"""Beside each estimate for everybody stands what hidden cause would move it by a tenth."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import dcem
from dcem.table.labels import SelectiveLabels


def chance(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def hidden_world(on_outcome: float, on_test: float, n: int = 12_000, seed: int = 1):
    """Two recorded columns, and one cause of test and outcome that is not recorded."""
    rng = np.random.default_rng(seed)
    x, u = rng.normal(size=(n, 2)), rng.normal(size=n)
    tested = rng.random(n) < chance(-0.3 + 0.7 * x[:, 0] + on_test * u)
    risk = chance(-1.2 + 0.8 * x[:, 0] - 0.4 * x[:, 1] + on_outcome * u)
    truth = (rng.random(n) < risk).astype(float)
    return x, tested, truth


@pytest.mark.parametrize(
    ("on_outcome", "on_test"), [(0.9, 0.8), (0.9, -0.8), (-0.8, 0.9), (1.2, 0.5)]
)
def test_a_hidden_cause_of_known_strength_moves_the_estimate_as_far_as_said(
    on_outcome, on_test
) -> None:
    x, tested, truth = hidden_world(on_outcome, on_test)
    labels = SelectiveLabels.from_arrays(
        x, np.where(tested, truth, np.nan), feature_names=["k", "l"]
    )
    found = dcem.audit_labels(labels)
    estimate, cause = found.prevalence[0].doubly_robust.value, found.hidden_cause
    off = (estimate - truth.mean()) / estimate
    assert (off > 0) == (on_outcome * on_test > 0)
    ten = cause.down if off > 0 else cause.up  # where the truth lies
    said = 0.1 * abs(true_factor(x, on_outcome, on_test)) / np.log(ten)
    assert abs(off) == pytest.approx(said, rel=0.25)


def true_factor(x: np.ndarray, on_outcome: float, on_test: float) -> float:
    """Mean log-odds of the outcome, untested minus tested people with the same columns."""
    u, weight = np.polynomial.hermite_e.hermegauss(40)
    tested = chance(-0.3 + 0.7 * x[:, :1] + on_test * u)
    risk = chance(-1.2 + 0.8 * x[:, :1] - 0.4 * x[:, 1:] + on_outcome * u)
    among = [(side * risk) @ weight / (side @ weight) for side in (tested, 1 - tested)]
    odds = [np.log(one / (1 - one)) for one in among]
    return float((odds[1] - odds[0]).mean())


def test_the_strongest_column_is_as_strong_as_it_is() -> None:
    x, tested, truth = hidden_world(0.0, 0.0, 20_000)
    labels = SelectiveLabels.from_arrays(
        x, np.where(tested, truth, np.nan), feature_names=["k", "l"]
    )
    cause = dcem.audit_labels(labels).hidden_cause
    assert cause.column == "k"
    assert np.log(cause.strongest) == pytest.approx(0.7 * 0.8, rel=0.15)  # in log-odds


def test_both_directions_are_there_and_the_weaker_cause_is_told() -> None:
    x, tested, truth = hidden_world(0.5, 0.0)
    labels = SelectiveLabels.from_arrays(x, np.where(tested, truth, np.nan))
    found = dcem.audit_labels(labels)
    for cause in (found.hidden_cause, found.hidden_cause_of_auc):
        assert cause.up > 1
        assert cause.down > 1
        assert min(cause.up, cause.down) == pytest.approx(cause.strongest**cause.times, rel=1e-6)


def test_on_the_first_screen_in_json_and_on_the_page(tmp_path) -> None:
    x, tested, truth = hidden_world(0.0, 0.0, 1_200)
    frame = pd.DataFrame({"k": x[:, 0], "l": x[:, 1], "m": x.sum(axis=1) ** 2})
    frame["r"] = np.where(tested, truth.astype(int).astype(str), "")
    frame.to_csv(tmp_path / "t.csv", index=False)

    def run(*command: str) -> str:
        said = subprocess.run(
            [sys.executable, "-m", "dcem", *command], cwd=tmp_path, capture_output=True,
            text=True, check=True,
        ).stdout  # fmt: skip
        return " ".join(said.split())

    told = run("audit", "t.csv", "--label", "r", "--json", "a.json", "--report", "a.html")
    first, _, _ = told.partition("Findings")
    assert "as k, the strongest recorded column" in first
    assert "hidden" in first
    assert "strongest recorded column" in (tmp_path / "a.html").read_text()
    assert json.loads((tmp_path / "a.json").read_text())["hidden_cause"]["times"] > 0

    quick = ["--method", "tested-only:linear,ipw", "--planted", "0", "--folds", "2"]
    told = run("compare", "t.csv", "--label", "r", "--out", "c", *quick, "--report", "c.html")
    first = told.partition("Findings")[0]
    assert "as k, the strongest recorded column" in first
    assert "strongest recorded column" in (tmp_path / "c.html").read_text()
    for method in json.loads((tmp_path / "c/comparison.json").read_text())["methods"]:
        cause = method["judgements"]["dr"]["hidden_cause"]
        assert cause["up"] is None or cause["up"] > 1
        assert cause["column"] == "k"


def test_a_stated_prevalence_is_not_said_to_be_moved() -> None:
    x, tested, truth = hidden_world(0.5, 0.5, 3_000)
    labels = SelectiveLabels.from_arrays(
        x, np.where(tested, truth, np.nan), prevalence=float(truth.mean())
    )
    assert dcem.audit_labels(labels).hidden_cause is None
