"""Files of any length: order, columns, formats, and nothing half-written."""

import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dcem.scoring.stream as stream
from dcem.methods import make
from dcem.scoring import Predicted, TableModel, predict_file
from dcem.table import read_table
from dcem.table.checks import InputError

from .conftest import ROLES, visits


def write(frame: pd.DataFrame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False, row_group_size=400)
    else:
        frame.to_csv(path, index=False)
    return path


def read(path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_scores_in_the_order_of_the_rows(model, tmp_path, suffix, monkeypatch):
    monkeypatch.setattr("dcem.table.read.BLOCK_BYTES", 4096)  # many batches
    frame = visits(3000, seed=3)
    path = write(frame, tmp_path / f"people{suffix}")
    done = predict_file(model, path, tmp_path / f"scores{suffix}")
    scores = read(tmp_path / f"scores{suffix}")
    assert list(scores) == ["patient", "score", "score_spread", "distance", "like_tested"]
    assert list(scores["patient"]) == list(frame["patient"])
    expected = model.score(frame)
    np.testing.assert_allclose(scores["score"], expected.score, atol=1e-6)
    np.testing.assert_array_equal(scores["like_tested"], expected.like_tested)
    assert done == Predicted(3000, int((~expected.like_tested).sum()))
    assert {p.name for p in tmp_path.iterdir()} == {f"people{suffix}", f"scores{suffix}"}


def test_identifiers_are_quoted_only_where_they_must_be(model, tmp_path, monkeypatch):
    monkeypatch.setattr("dcem.table.read.BLOCK_BYTES", 4096)  # many batches
    frame = visits(500, seed=4)
    frame["patient"] = [f"{i:03d}" for i in range(500)]
    predict_file(model, write(frame, tmp_path / "p.csv"), tmp_path / "s.csv")
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == list(frame["patient"])
    hard = ["a,b", 'say "x"', "two\nlines", "car\rriage"]
    frame.loc[496:, "patient"] = hard
    predict_file(model, write(frame, tmp_path / "p.parquet"), tmp_path / "s.csv")
    scores = pd.read_csv(tmp_path / "s.csv", dtype={"patient": str})
    assert list(scores["patient"]) == list(frame["patient"])


def test_csv_and_parquet_give_the_same(model, tmp_path):
    frame = visits(500, seed=4)
    frame.loc[:20, "ward"] = None
    for suffix in (".csv", ".parquet"):
        predict_file(model, write(frame, tmp_path / f"p{suffix}"), tmp_path / f"s{suffix}")
    one, other = (read(tmp_path / f"s{suffix}") for suffix in (".csv", ".parquet"))
    np.testing.assert_allclose(one["score"], other["score"], atol=1e-6)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_unlike_those_of_training_are_named(model, tmp_path, suffix, monkeypatch):
    monkeypatch.setattr("dcem.table.read.BLOCK_BYTES", 4096)  # many batches
    frame = visits(1000, seed=3).astype({"age": object})
    frame.loc[:39, "ward"] = "hospice"
    frame.loc[:39, "age"] = "sixty"
    few = predict_file(model, write(frame.astype({"age": str}), tmp_path / f"a{suffix}"),
                       tmp_path / "s.csv")  # fmt: skip
    assert few.notes == ()  # 4 %: happens
    frame["ward"] = "hospice"
    frame.loc[:299, "age"] = "sixty"
    frame.loc[300:, "age"] = "NA"  # missing, as may be
    many = predict_file(model, write(frame.astype({"age": str}), tmp_path / f"b{suffix}"),
                        tmp_path / "s.csv")  # fmt: skip
    assert many.notes == (
        "age: 300 cells are no number, counted as missing.",
        "ward: 100% of the values were never seen in training, counted as none of the known "
        "levels.",
    )


def test_rare_levels_are_strange_only_where_there_are_more_of_them(tmp_path):
    frame = visits(1000)
    rare = np.arange(1000) % 5 == 0
    frame.loc[rare, "ward"] = [f"ward {i}" for i in range(200)]  # a fifth, each of them once
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = read_table(write(frame, tmp_path / "p.csv"), replace(ROLES, include=("ward",)))
    estimator = make("tested-only", n_members=1, random_state=0).fit_problem(table.problem)
    fitted = TableModel(estimator, table.encoder, table.roles, table.source)
    assert predict_file(fitted, tmp_path / "p.csv", tmp_path / "s.csv").notes == ()
    frame.loc[:399, "ward"] = "hospice"
    write(frame, tmp_path / "q.csv")
    (note,) = predict_file(fitted, tmp_path / "q.csv", tmp_path / "s.csv").notes
    assert note.startswith(
        "ward: 52% of the values were rare or never seen in training, counted as"
    )


def test_carried_columns_and_the_row_number(model, tmp_path):
    frame = visits(50, seed=4)
    path = write(frame, tmp_path / "p.csv")
    predict_file(model, path, tmp_path / "s.csv", keep=["ward", "age"])
    assert list(read(tmp_path / "s.csv"))[:3] == ["ward", "age", "score"]
    path = write(frame.drop(columns=["patient", "race", "result"]), tmp_path / "q.csv")
    predict_file(model, path, tmp_path / "s.csv")
    assert list(read(tmp_path / "s.csv")["row"]) == list(range(50))


def test_folders_on_the_way_to_the_result_are_created(model, tmp_path):
    path = write(visits(20), tmp_path / "p.csv")
    predict_file(model, path, tmp_path / "new" / "newer" / "s.csv")
    assert len(read(tmp_path / "new" / "newer" / "s.csv")) == 20
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        predict_file(model, path, tmp_path / "folder.csv")
    with pytest.raises(InputError, match=r"p\.csv is a file, not a folder"):
        predict_file(model, path, path / "deeper" / "s.csv")


def test_refusals_come_before_the_work(model, tmp_path):
    frame = visits(50)
    path = write(frame, tmp_path / "p.csv")
    with pytest.raises(InputError, match="the table itself"):
        predict_file(model, path, path)
    with pytest.raises(InputError, match="must end in"):
        predict_file(model, path, tmp_path / "s.xlsx")
    with pytest.raises(InputError, match=r"no column 'pateint'\. Did you mean 'patient'\?"):
        predict_file(model, path, tmp_path / "s.csv", keep=["pateint"])
    path = write(frame.drop(columns="age"), tmp_path / "q.csv")
    with pytest.raises(InputError, match="no column 'age'"):
        predict_file(model, path, tmp_path / "s.csv")
    assert not (tmp_path / "s.csv").exists()


def test_a_failure_on_the_way_leaves_the_old_file(model, tmp_path, monkeypatch):
    monkeypatch.setattr("dcem.table.read.BLOCK_BYTES", 4096)
    path = write(visits(2000), tmp_path / "p.csv")
    path.write_text(path.read_text() + "P1,2,3\n")  # a line too short, at the end
    (tmp_path / "s.csv").write_text("precious")
    with pytest.raises(InputError, match="not a readable CSV file"):
        predict_file(model, path, tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 2


def test_an_interruption_leaves_the_old_file(model, tmp_path, monkeypatch):
    monkeypatch.setattr("dcem.table.read.BLOCK_BYTES", 4096)
    path = write(visits(2000), tmp_path / "p.csv")
    (tmp_path / "s.csv").write_text("precious")

    def stop(rows: int) -> None:
        assert any(p.name.endswith(".partial") for p in tmp_path.iterdir())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict_file(model, path, tmp_path / "s.csv", progress=stop)
    assert (tmp_path / "s.csv").read_text() == "precious"
    assert {p.name for p in tmp_path.iterdir()} == {"p.csv", "s.csv"}


def test_in_order_keeps_order_and_stays_few_ahead():
    running, most, lock = 0, 0, threading.Lock()
    taken = []

    def items():
        for i in range(40):
            taken.append(i)
            yield i

    def work(i: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.001 * (i % 3))
        with lock:
            running -= 1
        return i

    seen = []
    for done in stream.in_order(work, items(), workers=3):
        seen.append(done)
        assert len(taken) <= len(seen) + 4  # never the whole file in memory
    assert seen == list(range(40))
    assert most <= 3
