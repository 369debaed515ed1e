"""Files of any length: order, columns, formats, and nothing half-written."""

import json
import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dcem
import dcem.scoring.stream as stream
from dcem.methods import make
from dcem.methods.supervised import TestedOnlyClassifier
from dcem.saving import ModelFileError
from dcem.saving.folder import _content_hash
from dcem.scoring import (
    Predicted,
    TableModel,
    fit_table,
    next_tests,
    predict_file,
    score_batches,
)
from dcem.table import read_table
from dcem.table.messages import InputError

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
    monkeypatch.setattr("dcem.table.csv_files.BLOCK", 4096)  # many batches
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
    monkeypatch.setattr("dcem.table.csv_files.BLOCK", 4096)  # many batches
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
    monkeypatch.setattr("dcem.table.csv_files.BLOCK", 4096)  # many batches
    frame = visits(1000, seed=3).astype({"age": object})
    frame.loc[:5, "ward"] = "hospice"  # as many as training may have had
    path = write(frame.astype({"age": str}), tmp_path / f"rare{suffix}")
    assert predict_file(model, path, tmp_path / "s.csv").notes == ()
    frame.loc[:39, "ward"] = "hospice"
    frame.loc[:39, "age"] = "sixty"
    few = predict_file(model, write(frame.astype({"age": str}), tmp_path / f"a{suffix}"),
                       tmp_path / "s.csv")  # fmt: skip
    assert few.notes == (  # 4 % that are no number: happens; but a new ward is new
        "ward: 40 values were rare or never seen in training and count as none of the known "
        "levels.",
    )
    frame["ward"] = "hospice"
    frame.loc[:299, "age"] = "sixty"
    frame.loc[300:, "age"] = "NA"  # missing, as may be
    many = predict_file(model, write(frame.astype({"age": str}), tmp_path / f"b{suffix}"),
                        tmp_path / "s.csv")  # fmt: skip
    assert many.notes == (
        "age: 300 cells are not numbers and count as missing (rows 0, 1, 2, 3, 4, ..., counted "
        "from 0).",
        "ward: 100 % of the values were rare or never seen in training and count as none of the "
        "known levels.",
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
        "ward: 52 % of the values were rare or never seen in training and count as"
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
    with pytest.raises(InputError, match="the input table"):
        predict_file(model, path, path)
    with pytest.raises(InputError, match="must end in"):
        predict_file(model, path, tmp_path / "s.docx")
    with pytest.raises(InputError, match=r"no column 'pateint'\. Did you mean 'patient'\?"):
        predict_file(model, path, tmp_path / "s.csv", keep=["pateint"])
    path = write(frame.drop(columns="age"), tmp_path / "q.csv")
    with pytest.raises(InputError, match="no column 'age'"):
        predict_file(model, path, tmp_path / "s.csv")
    assert not (tmp_path / "s.csv").exists()


def test_a_failure_on_the_way_leaves_the_old_file(model, tmp_path, monkeypatch):
    monkeypatch.setattr("dcem.table.csv_files.BLOCK", 4096)
    path = write(visits(2000), tmp_path / "p.csv")
    path.write_text(path.read_text() + "P1,2,3\n")  # a line too short, at the end
    (tmp_path / "s.csv").write_text("precious")
    with pytest.raises(InputError, match="not a readable CSV file"):
        predict_file(model, path, tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 2


def test_an_interruption_leaves_the_old_file(model, tmp_path, monkeypatch):
    monkeypatch.setattr("dcem.table.csv_files.BLOCK", 4096)
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
    for done in stream.parallel(work, items(), workers=3):
        seen.append(done)
        assert len(taken) <= len(seen) + 4  # never the whole file in memory
    assert seen == list(range(40))
    assert most <= 3


# -- what a model needs and does not get -----------------------------------------------------


def quiet_table(path, **roles):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_table(path, replace(ROLES, **roles))


def test_an_empty_column_is_named_and_nobody_is_like_the_tested(table_file, tmp_path):
    fitted = fit_table(quiet_table(table_file), "tested-only", n_members=1)
    assert fitted.missing["lactate"] == pytest.approx(0.1, abs=0.001)
    frame = visits(800, seed=4)
    usual = predict_file(fitted, write(frame, tmp_path / "a.csv"), tmp_path / "s.csv")
    assert usual.notes == ()
    for column, share in (("age", 1.0), ("lactate", 1.0), ("age", 0.3), ("ward", 0.5)):
        broken = frame.astype({column: object})
        broken.loc[: int(800 * share) - 1, column] = None
        done = predict_file(fitted, write(broken, tmp_path / "b.csv"), tmp_path / "s.csv")
        assert [note.partition(":")[0] for note in done.notes] == [column]
        assert f"{100 * share:.0f} %" in done.notes[0]
        if column == "age":  # never missing in training
            assert done.unlike_tested >= 800 * share
    fitted.save(tmp_path / "model")
    again = TableModel.load(tmp_path / "model")
    assert again.missing == fitted.missing


class Undecided(TestedOnlyClassifier):
    """A method of one's own that has nothing to say about gaps."""

    def members(self, X, rows, *, exact=True):
        scores = super().members(X, rows, exact=exact)
        scores[:, np.isnan(X).any(axis=1)] = np.nan
        return scores


def test_a_score_that_is_not_a_number_is_an_empty_cell_with_a_reason(table_file, tmp_path):
    table = quiet_table(table_file)
    estimator = Undecided(learner="linear", random_state=0).fit_problem(table.problem)
    model = TableModel(estimator, table.encoder, table.roles, table.source)
    frame = visits(50, seed=5).fillna({"lactate": 1.0})
    frame.loc[[7, 9], "lactate"] = np.nan
    done = predict_file(model, write(frame, tmp_path / "a.parquet"), tmp_path / "s.csv")
    scores = pd.read_csv(tmp_path / "s.csv")
    assert scores["score"].isna().to_numpy().nonzero()[0].tolist() == [7, 9]
    assert done.unscored == 2
    assert "2 rows" in done.notes[-1]
    assert "row 7" in done.notes[-1]
    with pytest.raises(InputError, match="2 of 50 rows"):
        model.predict_proba(frame)
    with pytest.raises(InputError, match="cannot be scored"):
        next_tests(model, write(frame, tmp_path / "a.csv"), 5)


def test_calibrated_scores_are_called_risk(model, tmp_path, monkeypatch):
    monkeypatch.setattr(type(model.estimator), "calibrated", True)
    path = write(visits(20, seed=5), tmp_path / "a.csv")
    predict_file(model, path, tmp_path / "s.csv")
    found = list(pd.read_csv(tmp_path / "s.csv"))
    assert found == ["patient", "risk", "risk_spread", "distance", "like_tested"]


def test_batches_are_scored_as_they_come(model):
    frame = visits(90, seed=6)
    parts = [frame[:40], frame[40:]]
    scored = pd.concat([batch.to_pandas() for batch in score_batches(model, parts)])
    assert scored["row"].tolist() == list(range(90))
    np.testing.assert_allclose(scored["score"], model.score(frame).score, atol=1e-6)
    named = next(score_batches(model, parts, keep=["patient"]))
    assert named.column("patient").to_pylist() == frame["patient"][:40].tolist()


def test_columns_carried_over_are_there_and_not_written_over(model):
    frame = visits(10, seed=6).assign(distance=7.0)
    assert "patient" in next(score_batches(model, [frame], keep="patient")).schema.names
    for keep, why in (("distance", "cannot be copied"), (["patent"], "mean 'patient'")):
        with pytest.raises(InputError, match=why):
            next(score_batches(model, [frame], keep=keep))


def test_a_folder_whose_model_was_replaced_is_read_again(model, tmp_path):
    frame, scored = visits(10, seed=6), []
    other = make("tested-only", learner="linear").fit_problem(read_table(visits(), ROLES).problem)
    for estimator in (model.estimator, other):
        replace(model, estimator=estimator).save(tmp_path / "model")
        (batch,) = score_batches(tmp_path / "model", [frame])
        scored.append(batch.column("score").to_numpy())
    assert np.allclose(scored[1], other.predict_proba(model._rows(frame))[:, 1], atol=1e-6)
    assert not np.allclose(*scored)


def test_what_a_killed_run_left_is_cleared(model, tmp_path):
    left = tmp_path / ".s.csv.0123456789abcdef.partial"
    left.write_text("patient,score")
    predict_file(model, write(visits(20), tmp_path / "a.csv"), tmp_path / "s.csv")
    assert not left.exists()


def test_load_model_reads_both_kinds_of_folders(model, tmp_path):
    frame = visits(30, seed=7)
    model.save(tmp_path / "table")
    loaded = dcem.load_model(tmp_path / "table")
    assert isinstance(loaded, TableModel)
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_allclose(
        loaded.predict_proba(frame)[:, 1], model.score(frame).score, atol=1e-5
    )
    assert set(loaded.predict(frame)) <= {0, 1}
    model.estimator.save(tmp_path / "arrays")
    assert type(dcem.load_model(tmp_path / "arrays")) is type(model.estimator)
    with pytest.raises(ModelFileError, match="fitted to arrays"):
        TableModel.load(tmp_path / "arrays")


def test_a_model_of_a_table_with_a_network_of_its_own_is_given_it_again(model, tmp_path):
    nn = pytest.importorskip("torch.nn")

    def network(n_inputs):
        return nn.Linear(n_inputs, 1)

    estimator = make("tested-only", network=network, steps=3, random_state=0)
    estimator.fit_problem(read_table(visits(200), ROLES).problem)
    replace(model, estimator=estimator).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="pass its factory"):
        dcem.load_model(tmp_path / "model")
    loaded, frame = dcem.load_model(tmp_path / "model", network=network), visits(20)
    assert np.array_equal(loaded.predict(frame), replace(model, estimator=estimator).predict(frame))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("encoder", {}),
        ("encoder", {"missing": [], "columns": [{"name": "age", "kind": "number"}]}),
        ("encoder", {"missing": [], "columns": [{"name": "age", "kind": "word"}]}),
        ("roles", {"label": "y", "groups": "sex"}),
        ("roles", []),
        ("encoder", {"missing": [1], "columns": None}),
        ("source", {"rows": "many"}),
        ("source", {"name": "a", "rows": 0, "columns": 3, "sha256": ""}),
        ("source", {"name": [], "rows": 9, "columns": 3, "sha256": ""}),
        ("missing", {"age": "often"}),
        ("missing", 7),
    ],
)
def test_a_crafted_table_is_refused(model, tmp_path, field, value):
    model.save(tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    description = json.loads(file.read_text())
    description.pop("sha256")
    if value == {"missing": [1], "columns": None}:
        value["columns"] = description["table"]["encoder"]["columns"]
    description["table"][field] = value
    description["sha256"] = _content_hash(description)
    file.write_text(json.dumps(description))
    with pytest.raises(ModelFileError):
        TableModel.load(tmp_path / "model")
