"""Whom to act on: a threshold, a share, a number; never more than asked for."""

import json

import numpy as np
import pandas as pd
import pytest

from dcem.scoring import predict_file
from dcem.scoring.decisions import Decisions, Rule
from dcem.table.messages import InputError

from .conftest import visits

pytestmark = pytest.mark.usefixtures("linear_models")


@pytest.fixture
def decide(model, tmp_path, monkeypatch):
    monkeypatch.setattr("dcem.table.csv_files.BLOCK", 4096)  # many batches

    def run(frame, **rule):
        frame.to_csv(tmp_path / "people.csv", index=False)
        done = predict_file(
            model, tmp_path / "people.csv", tmp_path / "out.parquet", rule=Rule(**rule)
        )
        return done.decisions, pd.read_parquet(tmp_path / "out.parquet")

    return run


def test_a_threshold(decide, model) -> None:
    frame = visits(2000, seed=4)
    cut = float(np.quantile(model.score(frame).score, 0.8))
    found, out = decide(frame, threshold=cut)
    np.testing.assert_array_equal(out["flagged"], out["score"] >= np.float32(cut))
    assert found.flagged == out["flagged"].sum()
    group = frame[model.roles.group[0]].astype(str)
    assert {name: n for name, (n, _) in found.by_group.items()} == group.value_counts().to_dict()
    for name, (_, flagged) in found.by_group.items():
        assert flagged == out["flagged"][(group == name).to_numpy()].sum()


@pytest.mark.parametrize(("capacity", "many"), [(0.1, 200), (37, 37), (1.0, 2000), (9999, 2000)])
def test_a_capacity_takes_the_highest(decide, capacity, many) -> None:
    found, out = decide(visits(2000, seed=5), capacity=capacity)
    assert found.flagged == out["flagged"].sum() == many
    if many < 2000:
        assert out["score"][out["flagged"]].min() >= out["score"][~out["flagged"]].max()


def test_ties_do_not_exceed_the_capacity(decide) -> None:
    frame = pd.concat([visits(1, seed=6)] * 50, ignore_index=True)
    found, out = decide(frame, capacity=7)
    assert out["flagged"].tolist() == [True] * 7 + [False] * 43
    assert (found.flagged, found.tied) == (7, 43)


def test_without_the_group_nothing_is_said_of_groups(decide, model) -> None:
    found, _ = decide(visits(300, seed=7).drop(columns=list(model.roles.group)), capacity=0.5)
    assert found.by_group == {}
    assert found.flagged == 150


def test_small_counts_are_hidden_from_the_record() -> None:
    plain = Decisions(0.5, 1000, 203, {"a": (900, 200), "b": (100, 3)}).to_plain()
    assert json.loads(json.dumps(plain))["by_group"]["b"]["share"] is None
    shown = [plain["by_group"][name]["flagged"] for name in "ab"]
    assert not any(isinstance(count, int) for count in shown)  # one would give the other away


def test_many_rows_of_a_few_people_are_as_secret_as_few_rows(decide) -> None:
    frame = visits(600, seed=8)
    frame.loc[:59, "race"] = None
    many, _ = decide(frame, capacity=0.5)
    assert list(many.by_group) == ["A", "B", "(missing)"]
    assert many.shown()["(missing)"]["rows"] == 60
    frame.loc[:59, "patient"] = [f"P{i % 3}" for i in range(60)]
    few, _ = decide(frame, capacity=0.5)
    assert few.by_group == many.by_group
    assert not isinstance(few.shown()["(missing)"]["rows"], int)
    assert isinstance(few.shown_flagged(), int)  # of all together there are enough


def test_a_small_decision_is_withheld_with_what_would_give_it_away() -> None:
    """Five in one group on whom one acts: neither they, nor all others' decisions to subtract."""
    groups = {"a": (5, 395, 100), "b": (300, 100, 100)}
    rows = dict.fromkeys(groups, (500, 0))
    plain = Decisions(0.5, 1000, 0, rows, 0, (305, 495, 200), groups).to_plain()
    assert (plain["act"], plain["do_not_act"], plain["cannot_say"]) == (305, 495, 200)
    assert all(not isinstance(plain["by_group"][name]["act"], int) for name in "ab")
    assert all(plain["by_group"][name]["share_do_not_act"] is None for name in "ab")
    assert all(plain["by_group"][name]["cannot_say"] == 100 for name in "ab")
    few = Decisions(0.5, 1000, 0, {}, 0, (4, 896, 100), {}).to_plain()
    assert (few["act"], few["do_not_act"], few["cannot_say"]) == ("<10", "withheld", 100)


@pytest.mark.parametrize(
    "rule",
    [{}, {"threshold": 0.5, "capacity": 0.1}, {"threshold": 2}, {"capacity": 0}, {"capacity": 2.5}],
)
def test_rules_that_mean_nothing(rule) -> None:
    with pytest.raises(InputError):
        Rule(**rule)


def test_what_all_rows_less_a_group_would_tell_is_withheld() -> None:
    """75 rows are told; with the 66 of one group, that the others are 9."""
    groups = {"a": (66, 0), "b": (4, 0), "c": (5, 0)}
    shown = Decisions(0.5, 75, 0, groups).shown()
    assert [one["rows"] for one in shown.values()] == ["withheld", "<10", "<10"]


def test_the_total_does_not_give_a_group_away() -> None:
    """All but 5 of group b are flagged: with all flagged and those of a, that would be told."""
    plain = Decisions(0.5, 1000, 895, {"a": (300, 200), "b": (700, 695)}).to_plain()
    seen = [plain["flagged"], *(plain["by_group"][name]["flagged"] for name in "ab")]
    assert sum(isinstance(count, int) for count in seen) < 2


def test_a_group_whose_size_the_card_withholds() -> None:
    groups = {"a": (300, 100), "b": (700, 200)}
    shown = Decisions(0.5, 1000, 300, groups, withheld=frozenset("a")).shown()
    assert shown["a"] == {"rows": "withheld", "flagged": "withheld", "share": None}
    assert shown["b"]["flagged"] == 200
