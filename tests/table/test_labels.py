"""`SelectiveLabels` holds one table in its roles; the truth stays outside of it."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcem.table.labels import SelectiveLabels
from dcem.table.messages import DataWarning, InputError

pytestmark = pytest.mark.filterwarnings("ignore::dcem.table.messages.DataWarning")
ROLES: dict[str, Any] = {"label": "y", "tested": "t", "group": ["sex", "race"], "id": "person"}


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """Legal tables: both classes among the tested, anything else may be missing or lopsided."""
    n = draw(st.integers(2, 25))
    number = st.one_of(st.floats(-1e6, 1e6), st.just(np.nan))
    column = lambda values: draw(st.lists(values, min_size=n, max_size=n))  # noqa: E731
    tested = np.array(column(st.booleans()))
    y = np.array(column(st.integers(0, 1)))
    tested[:2], y[:2] = True, (0, 1)
    return pd.DataFrame(
        {
            "a": column(number),
            "b": column(number),
            "y": np.where(tested, y, 0),
            "t": tested.astype(int),
            "sex": column(st.sampled_from(["F", "M"])),
            "race": column(st.sampled_from(["Black", "White", "Asian", None])),
            "person": column(st.integers(0, 8)),
            "w": column(st.floats(0.5, 2)),
        }
    )


def same(one: SelectiveLabels, other: SelectiveLabels) -> None:
    for field in dataclasses.fields(SelectiveLabels):
        a, b = getattr(one, field.name), getattr(other, field.name)
        np.testing.assert_array_equal(a, b, err_msg=field.name)


@settings(deadline=None, max_examples=60)
@given(frame=tables())
def test_a_legal_table_is_held_unchanged(frame: pd.DataFrame) -> None:
    data = SelectiveLabels.from_frame(frame, **ROLES, weight="w")
    np.testing.assert_array_equal(data.X, frame[["a", "b"]])
    np.testing.assert_array_equal(data.tested, frame.t == 1)
    np.testing.assert_array_equal(data.y_obs, frame.y.where(frame.t == 1))
    np.testing.assert_array_equal(data.y_imputed, frame.y)
    np.testing.assert_array_equal(data.id, frame.person)
    np.testing.assert_array_equal(data.weight, frame.w)
    np.testing.assert_array_equal(data.row, np.arange(len(frame)))
    names = frame.sex + " & " + frame.race.fillna("(missing)")
    assert [data.group_names[g] for g in data.group] == names.tolist()
    assert set(data.group_names) == set(names)
    counts = data.counts()
    assert counts["rows"].sum() == len(frame)
    pd.testing.assert_series_equal(
        counts["tested"].sort_index(),
        frame.t.groupby(names).sum().sort_index(),
        check_names=False,
    )
    assert counts["positive"].sum() == frame.y.sum()


@settings(deadline=None, max_examples=15)
@given(frame=tables())
def test_every_way_in_gives_the_same_object(
    frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    frame = frame.assign(person=frame.person.map("{:03d}".format))
    data = SelectiveLabels.from_frame(frame, **ROLES)
    same(data, SelectiveLabels.from_frame(pl.from_pandas(frame), **ROLES))
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.csv.gz", index=False)
    frame.to_parquet(folder / "t.parquet")
    for name in ["t.csv", "t.csv.gz", "t.parquet"]:
        same(data, SelectiveLabels.from_file(folder / name, **ROLES))
        same(data, SelectiveLabels.from_file(str(folder / name), **ROLES, features=["a", "b", "w"]))
    arrays = SelectiveLabels.from_arrays(
        frame[["a", "b", "w"]].to_numpy(),
        frame.y.where(frame.t == 1).tolist(),  # no `tested`: a missing label says it
        group=frame[["sex", "race"]].to_numpy(),
        id=frame.person.tolist(),
        feature_names=["a", "b", "w"],
    )
    if not data.tested.all():
        same(data, arrays)


def test_a_known_probability_of_testing_is_a_column_of_a_file(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": range(4), "y": [0, 1, None, None], "p": [0.25, 0.5, 0.75, 1]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = SelectiveLabels.from_file(tmp_path / "t.csv", label="y", testing_probability="p")
    assert data.feature_names == ("x",)
    assert data.testing_probability is not None
    assert data.testing_probability.tolist() == [0.25, 0.5, 0.75, 1]


@settings(deadline=None, max_examples=60)
@given(frame=tables(), draw=st.data())
def test_subsets_of_subsets_keep_identity(frame: pd.DataFrame, draw: st.DataObject) -> None:
    data = SelectiveLabels.from_frame(frame, **ROLES, weight="w")
    positions = st.lists(st.integers(0, len(data) - 1), max_size=30)
    first = np.array(draw.draw(positions), dtype=int)
    part = data.subset(first)
    np.testing.assert_array_equal(part.row, first)
    np.testing.assert_array_equal(part.X, data.X[part.row])
    assert part.group_names == data.group_names
    mask = np.array(draw.draw(st.lists(st.booleans(), min_size=len(part), max_size=len(part))))
    same(part.subset(mask), data.subset(first[mask.astype(bool)]))
    same(part.subset(slice(1, None, 2)), data.subset(first[1::2]))


@settings(deadline=None, max_examples=60)
@given(
    frame=tables(),
    with_id=st.booleans(),
    seed=st.integers(0, 2**31),
    shares=st.sampled_from([(0.5, 0.5), (0.6, 0.2, 0.2), (1.0,), (0.25,) * 4]),
)
def test_splits_share_out_every_row_once_and_nobody_twice(
    frame: pd.DataFrame, with_id: bool, seed: int, shares: tuple[float, ...]
) -> None:
    roles = {**ROLES, "id": "person" if with_id else None}
    data = SelectiveLabels.from_frame(frame, **roles, features=["a", "b"])
    try:
        parts = data.split(shares, seed)
    except InputError:  # a part would be empty; never where single rows suffice
        assert with_id or min(shares) * len(data) < 1
        return
    rows = np.concatenate([part.row for part in parts])
    assert sorted(rows) == list(range(len(data)))
    for part, share in zip(parts, shares, strict=True):
        assert (np.diff(part.row) > 0).all()
        assert part.group_names == data.group_names
        if not with_id:
            assert abs(len(part) - share * len(data)) <= 1
    if with_id:
        people = [set(part.id) for part in parts if part.id is not None]
        assert sum(map(len, people)) == len(set.union(*people))
    for part, again in zip(parts, data.split(shares, np.random.default_rng(seed)), strict=True):
        same(part, again)


def simple(**changes: Any) -> SelectiveLabels:
    arguments: dict[str, Any] = {
        "X": [[1.0, 2.0], [3.0, np.nan], [5.0, 6.0], [7.0, 8.0]],
        "y": [0, 1, 0, 0],
        "tested": [1, 1, 0, 1],
        "group": ["F", "F", "M", "M"],
        **changes,
    }
    return SelectiveLabels.from_arrays(**arguments)


def test_splits_differ_between_seeds_and_follow_the_shares() -> None:
    n = 1000
    data = simple(
        X=np.arange(2.0 * n).reshape(n, 2),
        y=np.arange(n) % 2,
        tested=np.ones(n),
        group=None,
        id=np.arange(n) // 3,
    )
    one, other = data.split((0.7, 0.3), 0), data.split((0.7, 0.3), 1)
    assert abs(len(one[0]) - 700) <= 2
    assert not np.array_equal(one[0].row, other[0].row[: len(one[0])])


def test_a_part_without_people_is_refused() -> None:
    data = simple(id=[1, 1, 1, 2])
    with pytest.raises(InputError, match="leave a part empty: there are only 2 people"):
        data.split((0.4, 0.3, 0.3), 0)


@pytest.mark.parametrize("shares", [(), (0.5, 0.6), (1.2, -0.2), (0.5,)])
def test_shares_must_sum_to_one(shares: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="positive and sum to 1"):
        simple().split(shares, 0)


def test_nothing_in_it_can_be_changed() -> None:
    data = simple(id=[1, 1, 2, 3], weight=[1, 1, 1, 1])
    for name in ["X", "y_obs", "tested", "group", "id", "weight", "row"]:
        with pytest.raises(ValueError, match="read-only"):
            getattr(data, name)[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.X = np.zeros((4, 2))  # type: ignore[misc]


def test_the_callers_array_stays_writable() -> None:
    X = np.ones((4, 1))
    simple(X=X)
    X[0] = 2


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))])
def test_copies_are_read_only_too(duplicate: Any) -> None:
    data = simple(id=[1, 1, 2, 3])
    same(data, duplicate(data))
    assert not duplicate(data).X.flags.writeable


def test_untested_labels_are_absent_unless_asked_for() -> None:
    data = simple()
    np.testing.assert_array_equal(data.y_obs, [0, 1, np.nan, 0])
    np.testing.assert_array_equal(data.y_imputed, [0, 1, 0, 0])


def test_without_a_group_everybody_is_in_one() -> None:
    data = simple(group=None)
    assert data.group_names == ("all",)
    assert data.n_groups == 1
    assert data.feature_names == ("x0", "x1")


def test_levels_can_be_shared_between_tables() -> None:
    data = simple(group=["M"] * 4, group_names=["F", "M", "X"])
    np.testing.assert_array_equal(data.group, 1)
    assert data.counts().loc["X", "rows"] == 0


def test_a_level_left_empty_by_a_subset_keeps_its_name() -> None:
    part = simple().subset([0, 1])
    assert part.group_names == ("F", "M")
    assert len(part.subset([])) == 0
    assert len(part.subset(1)) == 1


def test_persons_are_numbered() -> None:
    np.testing.assert_array_equal(simple(id=["b", "b", "a", "b"]).person, [0, 0, 1, 0])
    np.testing.assert_array_equal(simple().person, [0, 1, 2, 3])


def test_leading_zeros_of_an_identifier_survive_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,x,y\n007,1,0\n7,2,1\n8,3,\n")
    data = SelectiveLabels.from_file(path, label="y", id="id")
    assert data.id is not None
    assert data.id.tolist() == ["007", "7", "8"]
    np.testing.assert_array_equal(data.tested, [True, True, False])


def test_account_of_the_table() -> None:
    data = simple(id=[1, 1, 2, 3], weight=[1, 1, 1, 1])
    assert repr(data) == (
        "SelectiveLabels(4 rows, 2 features, tested 3 (75.0 %), "
        "positive among them 1 (33.3 %), groups: F, M)"
    )
    first, header, *lines = data.summary().splitlines()
    assert first == "4 rows of 3 people, 2 features (1 with missing values), weighted"
    assert header.split() == ["group", "rows", "tested", "positive", "of", "tested"]
    assert [line.replace(" %", "%").split() for line in lines] == [
        ["F", "2", "2", "(100.0%)", "1", "(50.0%)"],
        ["M", "2", "1", "(50.0%)", "0", "(0.0%)"],
        ["all", "4", "3", "(75.0%)", "1", "(33.3%)"],
    ]


def test_account_of_many_groups_and_of_nothing() -> None:
    n = 60
    data = simple(
        X=np.arange(n)[:, None], y=np.arange(n) % 2, tested=np.ones(n), group=np.arange(n) % 30
    )
    assert "... and 10 more groups" in data.summary()
    assert "groups: 0, 1, 2, 3, 4, 5, ..." in repr(data)
    assert "0 (-)" in data.subset([]).summary()


FINISHED: dict[str, Any] = {
    "X": np.zeros((3, 1)),
    "y_obs": np.array([0, 1, np.nan]),
    "tested": np.array([True, True, False]),
    "group": np.zeros(3, int),
    "id": None,
    "weight": None,
    "feature_names": ("x",),
    "group_names": ("all",),
    "row": np.arange(3),
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y_obs": np.array([0, 1])}, "'y_obs' has shape"),
        ({"X": np.zeros(3)}, "'X' has shape"),
        ({"y_obs": np.array([0, 1, 0])}, "NaN elsewhere"),
        ({"y_obs": np.array([0, np.nan, np.nan])}, "0 or 1 where tested"),
        ({"y_obs": np.array([0, 2, np.nan])}, "0 or 1 where tested"),
        ({"group": np.array([0, 1, 0])}, "codes from 0 to 0"),
        ({"group": np.array([0, -1, 0])}, "codes from 0 to 0"),
        ({"feature_names": ("x", "y")}, "2 feature names for 1"),
        ({"weight": np.ones(2)}, "'weight' has shape"),
    ],
)
def test_finished_columns_must_agree(change: dict[str, Any], words: str) -> None:
    assert len(SelectiveLabels(**FINISHED)) == 3
    with pytest.raises(InputError, match=words):
        SelectiveLabels(**{**FINISHED, **change})


def test_truth_has_no_place_in_the_problem() -> None:
    names = {field.name for field in dataclasses.fields(SelectiveLabels)}
    assert not {name for name in names if "truth" in name or name == "y"}


def test_warnings_are_not_silenced_by_construction() -> None:
    with pytest.warns(DataWarning, match="Nobody is tested in group 'M'"):
        simple(tested=[1, 1, 0, 0])


def test_a_column_of_text_is_refused_with_a_way_out() -> None:
    frame = pd.DataFrame({"ward": ["ICU", "ER"] * 4, "ill": [0.0, 1.0, None, 1.0] * 2})
    with pytest.raises(InputError, match=r"'ward'.*dcem\.read_table"):
        SelectiveLabels.from_frame(frame, label="ill")


@pytest.mark.parametrize(
    ("rows", "extent"), [([0, 1], "everybody"), ([1, 2], "some"), ([2], "nobody")]
)
def test_the_extent_of_testing(rows, extent) -> None:
    people = SelectiveLabels.from_arrays(np.zeros((3, 1)), np.array([0, 1, np.nan]))
    assert people.subset(np.array(rows)).extent == extent


def test_columns_may_be_called_by_numbers() -> None:
    frame = pd.DataFrame({0: [0, 1, np.nan, 1], 1: list("abab"), 2: [0.1, 0.2, 0.3, 0.4]})
    data = SelectiveLabels.from_frame(frame, label=0, group=1)
    assert (data.feature_names, data.group_names) == (("2",), ("a", "b"))
    assert data.tested.sum() == 3


def test_groups_as_masks() -> None:
    y = np.array([0, 1, np.nan])
    people = SelectiveLabels.from_arrays(np.zeros((3, 1)), y, group=np.array(["b", "a", "b"]))
    assert {name: mine.tolist() for name, mine in people.by_group().items()} == {
        "a": [False, True, False],
        "b": [True, False, True],
    }
    assert list(people.parts()) == ["everybody", "a", "b"]
    some = people.subset(people.group == 1)  # nobody of the other group
    assert list(some.by_group()) == ["b"]
    assert list(some.parts()) == ["everybody", "b"]
    alone = SelectiveLabels.from_arrays(np.zeros((3, 1)), y)
    assert list(alone.parts()) == ["everybody"]
    assert alone.parts()["everybody"].all()
