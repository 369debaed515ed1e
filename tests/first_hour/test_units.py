"""A model names numbers and dates in another unit than it learnt, and reads none of them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from clinic import clinic, command

import dcem

ROLES = ("--label", "flu", "--tested", "ordered", "--group", "sex", "--id", "patient")


def fitted(folder: Path, visits: pd.DataFrame) -> None:
    """A small model of these visits."""
    visits.to_csv(folder / "visits.csv", index=False)
    how = ("--method", "tested-only:linear", "--members", "1", "--out", "model")
    ended = command("fit", "visits.csv", *ROLES, *how, cwd=folder)
    assert ended.status == 0, ended.text


def scored(folder: Path, later: pd.DataFrame) -> tuple[str, np.ndarray]:
    """All that `predict` says, on one line, and the scores."""
    later.to_csv(folder / "later.csv", index=False)
    ended = command("predict", "model", "later.csv", "--out", "scores.csv", cwd=folder)
    assert ended.status == 0, ended.text
    return ended.text, pd.read_csv(folder / "scores.csv")["score"].to_numpy()


def money(sign: str, visits: pd.DataFrame) -> pd.Series:
    return sign + (1000 * visits["lactate"]).round().astype(int).astype(str)


LEARNT = {  # what the model learnt, what comes later in every third row
    "percent for a share": (
        lambda v: (v["lactate"] / 10).round(4).astype(str),
        lambda v: (10 * v["lactate"]).round(2).astype(str) + "%",
        "percent",
    ),
    "a share for percent": (
        lambda v: (10 * v["lactate"]).round(2).astype(str) + "%",
        lambda v: (v["lactate"] / 10 + 0.01).round(4).astype(str),
        "percent",
    ),
    "euro for dollar": (lambda v: money("$", v), lambda v: money("€", v), "€"),
    "yen for pound": (lambda v: money("£ ", v), lambda v: money("¥ ", v), "¥"),
    "a sign for none": (lambda v: money("", v), lambda v: money("$", v), "$"),
    "a decimal comma": (
        lambda v: v["lactate"].astype(str),
        lambda v: (v["lactate"] + 0.01).round(2).astype(str).str.replace(".", ",", regex=False),
        "decimal",
    ),
    "a comma of three digits": (
        lambda v: (v["lactate"] + 1.001).round(3).astype(str),
        lambda v: pd.Series([f"{1 + i % 8},{250 + i % 700:03d}" for i in range(len(v))]),
        "decimal",
    ),
}


@pytest.mark.parametrize("case", LEARNT)
def test_another_unit_is_named_with_column_and_rows(case, tmp_path) -> None:
    learnt, foreign, word = LEARNT[case]
    visits, later = clinic(), clinic(300, seed=1)
    fitted(tmp_path, visits.assign(lactate=learnt(visits)))
    same, odd = learnt(later).astype(object), foreign(later).astype(object)
    rows = np.arange(300) % 3 == 1
    said, scores = scored(tmp_path, later.assign(lactate=odd.where(rows, same)))
    assert "lactate: 100 cells" in said
    assert "rows 1, 4, 7, 10, 13, ..." in said
    assert word in said
    _, without = scored(tmp_path, later.assign(lactate=same.where(~rows, "")))
    np.testing.assert_allclose(scores, without)  # missing, not another number


def test_the_same_unit_is_read_in_silence(tmp_path) -> None:
    visits, later = clinic(), clinic(300, seed=1)
    fitted(tmp_path, visits.assign(lactate=money("$", visits)))
    said, scores = scored(tmp_path, later.assign(lactate=money("$", later)))
    assert "lactate" not in said
    bare, again = scored(tmp_path, later.assign(lactate=money("", later)))
    assert "lactate" not in bare
    np.testing.assert_allclose(scores, again)


@pytest.mark.parametrize(
    ("learnt", "then"),
    [("%d/%m/%Y", "%m/%d/%Y"), ("%m/%d/%Y", "%d/%m/%Y"), ("%d.%m.%y", "%m.%d.%y")],
)
def test_another_order_of_day_and_month_is_named_and_not_read(learnt, then, tmp_path) -> None:
    visits, later = clinic(), clinic(300, seed=1)
    day = pd.Timestamp("2021-01-01") + pd.to_timedelta(7 * visits["age"], "D")
    fitted(tmp_path, visits.assign(seen=day.dt.strftime(learnt)))
    day = pd.Timestamp("2021-01-01") + pd.to_timedelta(7 * later["age"], "D")
    said, scores = scored(tmp_path, later.assign(seen=day.dt.strftime(then)))
    assert "seen: " in said
    assert "order" in said
    _, without = scored(tmp_path, later.assign(seen=""))
    turned = (day.dt.day != day.dt.month).to_numpy()
    np.testing.assert_allclose(scores[turned], without[turned])


def test_python_is_told_too(tmp_path) -> None:
    visits, later = clinic(), clinic(300, seed=1)
    fitted(tmp_path, visits.assign(lactate=money("$", visits)))
    model = dcem.load_model(tmp_path / "model")
    with pytest.warns(dcem.DataWarning, match=r"lactate: 300 cells .*€"):
        model.predict_proba(later.assign(lactate=money("€", later)))
    batches = [later.assign(lactate=money("€", later))]
    with pytest.warns(dcem.DataWarning, match=r"lactate: 300 cells .*€"):
        list(dcem.scoring.score_batches(model, batches))


def test_lists_of_tests_and_monitoring_are_told_too(tmp_path) -> None:
    visits, later = clinic(), clinic(600, seed=1)
    fitted(tmp_path, visits.assign(lactate=money("$", visits)))
    later.assign(lactate=money("€", later)).to_csv(tmp_path / "later.csv", index=False)
    how = ("model", "later.csv")
    listed = command("next-tests", *how, "--budget", "20", "--out", "next.csv", cwd=tmp_path)
    assert "lactate: 600 cells" in listed.text
    watched = command("monitor", *how, cwd=tmp_path)
    assert "lactate: 600 cells" in watched.text
