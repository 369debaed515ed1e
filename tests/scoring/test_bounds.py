"""Limits of each person's risk: learnt with a model, saved with it, asked at any strength."""

from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from dcem.scoring import TableModel, predict_file, predict_folder, score_batches
from dcem.scoring.bounds import with_bounds
from dcem.scoring.decisions import Rule
from dcem.table import read_table
from dcem.table.messages import InputError

from .conftest import ROLES, visits


@pytest.fixture(scope="module")
def bounded(model):
    estimator = copy(model.estimator)
    estimator.calibrated = True  # as the default's scores are
    return with_bounds(replace(model, estimator=estimator), read_table(visits(), ROLES), 2.0)


@pytest.fixture
def predicted(bounded, tmp_path):
    def run(frame, **how):
        frame.to_csv(tmp_path / "people.csv", index=False)
        done = predict_file(bounded, tmp_path / "people.csv", tmp_path / "out.parquet", **how)
        return done, pd.read_parquet(tmp_path / "out.parquet")

    return run


def test_decisions_follow_from_the_limits(predicted) -> None:
    done, out = predicted(visits(800, seed=4), rule=Rule(threshold=0.4), bounds=2.0)
    assert (out["risk_low"] <= out["risk"]).all()
    assert (out["risk_high"] >= out["risk"]).all()
    certain = np.where(
        out["risk_low"] >= 0.4, "act", np.where(out["risk_high"] < 0.4, "do not act", "cannot say")
    )
    assert out["decision"].tolist() == certain.tolist()
    assert {*certain} == {"act", "do not act", "cannot say"}
    told = done.decisions.to_plain()
    for name in ("act", "do not act", "cannot say"):
        key = name.replace(" ", "_")
        assert told[key] == (certain == name).sum()
        assert told[f"share_{key}"] == told[key] / told["rows"]
        assert sum(one[key] for one in told["by_group"].values()) == told[key]
    assert told["act"] + told["do_not_act"] + told["cannot_say"] == told["rows"]
    assert set(out["outcome_set"]) <= {"positive", "negative", "either", "neither"}


def test_nothing_is_known_of_people_unlike_the_tested(predicted) -> None:
    frame = visits(50, seed=5)
    frame.loc[0, "lactate"] = 1e4
    _, out = predicted(frame, bounds=1.0)
    assert not out["like_tested"][0]
    assert (out["risk_low"][0], out["risk_high"][0], out["outcome_set"][0]) == (0, 1, "either")


def test_a_capacity_decides_at_the_lowest_risk_acted_on(predicted) -> None:
    done, out = predicted(visits(800, seed=6), rule=Rule(capacity=0.25), bounds=1.5)
    acted = out["decision"] == "act"
    assert (out["risk_low"][acted] >= np.float32(done.decisions.threshold)).all()
    assert acted.sum() <= out["flagged"].sum() == 200


def test_as_saved_in_batches_and_in_folders(bounded, tmp_path) -> None:
    bounded.save(tmp_path / "model")
    frame = visits(300, seed=7)
    folder = tmp_path / "parts"
    folder.mkdir()
    for name, part in (("a", frame[:100]), ("b", frame[100:])):
        pyarrow.parquet.write_table(pa.table(part), folder / f"{name}.parquet")
    loaded = TableModel.load(tmp_path / "model")
    whole, *_ = score_batches(replace(loaded, ends=bounded.ends), [frame], bounds=3.0)
    predict_folder(tmp_path / "model", folder, tmp_path / "scored", bounds=3.0)
    parts = pd.concat([pd.read_parquet(p) for p in sorted((tmp_path / "scored").iterdir())])
    added = ["risk_low", "risk_high", "outcome_set"]
    pd.testing.assert_frame_equal(whole.to_pandas()[added], parts[added].reset_index(drop=True))


def test_what_is_refused(bounded, model, tmp_path) -> None:
    visits(30).to_csv(tmp_path / "people.csv", index=False)
    places = tmp_path / "people.csv", tmp_path / "out.csv"
    with pytest.raises(InputError, match="fitted without `bounds`"):
        predict_file(model, *places, bounds=2.0)
    with pytest.raises(InputError, match="odds ratio from 1"):
        predict_file(bounded, *places, bounds=0.5)
    assert not (tmp_path / "out.csv").exists()


def test_scores_that_are_not_risks_decide_nothing(bounded, model, tmp_path) -> None:
    found = replace(bounded, estimator=model.estimator)
    visits(30).to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(InputError, match="are not risks"):
        predict_file(
            found, tmp_path / "people.csv", tmp_path / "out.csv", rule=Rule(0.5), bounds=2.0
        )


def test_the_card_tells_them(bounded, tmp_path) -> None:
    assert bounded.coverage[0].group == "everybody"
    assert bounded.coverage[0].everybody.value == pytest.approx(0.9, abs=0.06)
    assert bounded.bounds.shares["everybody"].open[-1] > bounded.bounds.shares["everybody"].open[0]
    bounded.save(tmp_path / "card")
    assert "gamma = 2" in (tmp_path / "card" / "MODEL_CARD.md").read_text()
