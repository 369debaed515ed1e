"""Every mistake a person can make with a table gets an `InputError` that helps to mend it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcem.table import checks
from dcem.table.groups import check_groups
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import DataWarning, InputError, nearest

ROLES = {"label": "sepsis", "tested": "cultured", "group": "sex", "id": "patient"}
N = 40


def table(n: int = N) -> pd.DataFrame:
    """A clean table with both groups tested and both classes among the tested."""
    i = np.arange(n)
    return pd.DataFrame(
        {
            "age": 20.0 + i,
            "lactate": np.where(i % 7 == 3, np.nan, i % 5),
            "cultured": (i % 2 == 0).astype(int),
            "sepsis": (i % 4 == 0).astype(int),
            "sex": np.where(i % 3 == 0, "F", "M"),
            "patient": i // 2,
        }
    )


def put(column: str, rows: Any, value: Any) -> Callable[[], pd.DataFrame]:
    """A function returning the clean table with `value` in these rows of the column."""

    def changed() -> pd.DataFrame:
        frame = table()
        frame[column] = frame[column].astype(object)
        frame.loc[rows, column] = value
        return frame

    return changed


def read(frame: Any, **roles: Any) -> SelectiveLabels:
    return SelectiveLabels.from_frame(frame, **{**ROLES, **roles})


# column, rows, value put there, what the message must say besides column, count and first rows
BAD_VALUES = [
    ("sepsis", [4, 8], 2, "Allowed: 0 and 1"),
    ("sepsis", [4, 8], "maybe", "'maybe'"),
    ("sepsis", [1, 3, 5], 1, "untested row cannot have a positive result"),
    ("sepsis", [0, 2], None, "A tested row needs its result"),
    ("cultured", [4, 6], 2, "Allowed: 0 and 1"),
    ("cultured", [4, 6], "yes", "'yes'"),
    ("cultured", [4, 6], None, "drop these rows"),
    ("age", [7, 11], np.inf, "infinit"),
    ("age", [7, 11], -np.inf, "infinit"),
    ("age", [7, 11], 1e200, "beyond 1e+30"),
    ("age", [7, 11], "old", "'old'"),
    ("age", [7, 11], pd.Timestamp("2024-01-01"), "days since"),
    ("patient", [9], None, "give each of these rows a new one"),
]


@pytest.mark.parametrize(("column", "rows", "value", "words"), BAD_VALUES)
def test_bad_values_are_located(column: str, rows: list[int], value: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        read(put(column, rows, value)())
    message = str(caught.value)
    assert f"'{column}'" in message
    assert f"{len(rows)} of {N} rows (first: {', '.join(map(str, rows))})" in message
    assert words in message


def test_rows_are_named_by_the_users_own_labels() -> None:
    frame = put("age", [7, 11], np.inf)().set_index(pd.Index([f"p{i}" for i in range(N)]))
    with pytest.raises(InputError, match=r"2 of 40 rows \(first labels: 'p7', 'p11'\)"):
        read(frame)


def test_only_the_first_five_rows_are_listed() -> None:
    with pytest.raises(InputError, match=r"7 of 40 rows \(first: 1, 2, 3, 4, 5, \.\.\.\)"):
        read(put("age", list(range(1, 8)), "x")())


def test_all_unreadable_features_are_named_at_once() -> None:
    frame = table().assign(ward="north", name="x")
    with pytest.raises(InputError, match=r"'ward' cannot .* The same holds for 'name'\."):
        read(frame)


TABLE_MISTAKES = [
    (lambda: table().iloc[:0], {}, "no rows"),
    (lambda: table().assign(sex=["everybody", "F"] * 20), {}, "called 'everybody', the name that"),
    (lambda: table().assign(cultured=0, sepsis=0), {}, "Nobody is tested: 'cultured' is 0"),
    (lambda: table().assign(sepsis=0), {}, "one class .* 'sepsis' is 0 in all 20 tested rows"),
    (lambda: table().assign(sepsis=table().cultured), {}, "'sepsis' is 1 in all 20"),
    (
        lambda: pd.concat([table(), table()[["age"]]], axis=1),
        {},
        r"duplicate column names: 'age' \(2 times\)",
    ),
    (table, {"features": ["age", "age"]}, "list of features has duplicate"),
    (table, {"features": ["age", "cultured"]}, "'cultured' .*'tested' and also .* feature"),
    (table, {"features": ["age", "sex"]}, "'sex' was given as 'group' and also"),
    (table, {"id": "sepsis"}, "'sepsis' was given as 'label' and as 'id'"),
    (table, {"group": ["sex", "sex"]}, "'group' and as 'group'"),
    (table, {"label": "sepsys"}, "no column 'sepsys'. Did you mean 'sepsis'?"),
    (table, {"tested": "Cultured"}, "Did you mean 'cultured'?"),
    (table, {"features": ["lactat"]}, "Did you mean 'lactate'?"),
    (table, {"label": "zzz"}, "no column 'zzz'. Its columns are: 'age', 'lactate'"),
    (table, {"features": []}, r"0 feature\(s\)"),
    (
        lambda: table().assign(site=np.arange(40) % 2 + 20),
        {"group": "site", "group_names": ["20"], "features": ["lactate"]},
        "is '21' in 20 of 40 rows",
    ),
    (table, {"group_names": ["Female", "M"]}, "is 'F' in 14 of 40 rows"),
    (lambda: table().assign(w=-1.0), {"weight": "w"}, "'w' is unusable in 40 of 40 rows"),
    (lambda: table().assign(w=np.nan), {"weight": "w"}, "'w' is unusable in 40 of 40 rows"),
    (lambda: table().assign(w=1e300), {"weight": "w"}, "'w' is unusable in 40 of 40 rows"),
    (lambda: table().assign(w=1e-300), {"weight": "w"}, "Allowed: 0, and numbers from 1e-30"),
    (lambda: table().assign(w=0), {"weight": "w"}, "'w' is zero in all 40 rows"),
    (lambda: table().assign(g=np.arange(N) / 4), {"group": ["sex", "g"]}, "30 of 40 .*pandas.cut"),
    (lambda: table().assign(g=np.inf), {"group": ["sex", "g"]}, "infinities in 40 of 40"),
    (lambda: [1, 2], {}, r"Expected a frame .*, got list"),
]


@pytest.mark.parametrize(("frame", "roles", "words"), TABLE_MISTAKES)
def test_mistakes_in_the_table(frame: Callable[[], Any], roles: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(frame(), **roles)


# --- legal, with a warning -------------------------------------------------------------------


def warned(call: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(w.category is DataWarning for w in caught)
    assert all(w.filename == __file__ for w in caught), "a warning must point at the caller"
    return [str(w.message) for w in caught]


def test_a_clean_table_is_silent() -> None:
    assert warned(lambda: read(table())) == []


def test_everybody_tested() -> None:
    (message,) = warned(lambda: read(table().assign(cultured=1)))
    assert "Everybody is tested ('cultured' is 1 in all 40 rows)" in message


def test_tested_left_out_although_no_label_is_missing() -> None:
    (message,) = warned(lambda: read(table().drop(columns="cultured"), tested=None))
    assert "every row counts as tested. If untested rows were filled in" in message
    assert "pass 'tested'" in message


def test_a_group_nobody_tested() -> None:
    frame = table().assign(sex=np.where(table().cultured == 1, "F", "M"))
    (message,) = warned(lambda: read(frame))
    assert "Nobody is tested in group 'M' (20 of 40 rows)" in message


def test_an_agreed_level_that_does_not_occur_is_no_untested_group() -> None:
    assert warned(lambda: read(table(), group_names=["F", "M", "X"])) == []


def test_constant_and_empty_features() -> None:
    (message,) = warned(lambda: read(table().assign(site=1, height=np.nan)))
    assert "'site', 'height' (2 of 4)" in message


def test_missing_group_values_form_a_level() -> None:
    (message,) = warned(lambda: read(put("sex", [4, 6], None)()))
    assert "'sex' is missing in 2 of 40 rows (first: 4, 6)" in message
    assert "'(missing)'" in message


# --- who was tested ----------------------------------------------------------------------------


def test_resolve_tested_reads_missing_labels_as_untested() -> None:
    y, tested = checks.resolve_tested([0, 1, None, np.nan])
    np.testing.assert_array_equal(tested, [True, True, False, False])
    np.testing.assert_array_equal(y, [0, 1, np.nan, np.nan])


def test_resolve_tested_removes_imputed_zeros() -> None:
    y, tested = checks.resolve_tested([0, 1, 0, np.nan], [True, True, False, False])
    np.testing.assert_array_equal(y, [0, 1, np.nan, np.nan])
    assert tested.dtype == bool


BINARY_SPELLINGS = [
    [0, 1, 0],
    [0.0, 1.0, 0.0],
    [False, True, False],
    ["0", "1", "0"],
    pd.Series([0, 1, 0], dtype="Int8"),
    pd.Series([False, True, False], dtype="boolean"),
    pd.Series([0, 1, 0], dtype="category"),
    pd.Series([False, True, False], dtype=object),
    pl.Series([0, 1, 0]),
    np.array([[0], [1], [0]]),
]


@pytest.mark.parametrize("values", BINARY_SPELLINGS)
def test_binary_columns_may_be_spelled_in_many_ways(values: Any) -> None:
    np.testing.assert_array_equal(checks.check_binary(values, "tested"), [0, 1, 0])


# --- groups ------------------------------------------------------------------------------------

LEVELS = [
    (["b", "a", "b"], [1, 0, 1], ("a", "b")),
    ([10, 2, 10], [1, 0, 1], ("2", "10")),
    ([1.0, 0.0, np.nan], [1, 0, 2], ("0", "1", "(missing)")),
    (np.array([1, 0, 1], dtype=np.float32), [1, 0, 1], ("0", "1")),
    ([True, False, True], [1, 0, 1], ("False", "True")),
    ([10, 2, None], [1, 0, 2], ("2", "10", "(missing)")),
    (["b", None, " "], [0, 1, 1], ("b", "(missing)")),
    (["b", np.nan], [0, 1], ("b", "(missing)")),
    (["b", "nan"], [0, 1], ("b", "nan")),
    (["01", "1", "<65", ">=65"], [0, 1, 2, 3], ("01", "1", "<65", ">=65")),
    ([2**53 + 1, 2**53, 2**53], [1, 0, 0], ("9007199254740992", "9007199254740993")),
    (["9007199254740993", "9007199254740992"], [1, 0], ("9007199254740992", "9007199254740993")),
    (["(missing)", "b", "b"], [0, 1, 1], ("(missing)", "b")),
    (["2.0", "10.0"], [0, 1], ("2", "10")),
    ([1, "1", "a"], [0, 0, 1], ("1", "a")),
    (pd.Series([1, None, 2], dtype="Int64"), [0, 2, 1], ("1", "2", "(missing)")),
    (pd.Categorical(["low", "high"], ["low", "high", "unused"]), [0, 1], ("low", "high")),
    ([["F", "x"], ["M", "x"], ["F", "w"]], [1, 2, 0], ("F & w", "F & x", "M & x")),
    (pd.DataFrame({"s": ["F", "M"], "r": [None, 1]}), [0, 1], ("F & (missing)", "M & 1")),
    ({"s": np.array(["F", "M"]), "r": [2, 1]}, [0, 1], ("F & 2", "M & 1")),
    (
        pd.DataFrame([["F", 1], ["F", 2]], columns=["twice", "twice"]),
        [0, 1],
        ("F & 1", "F & 2"),
    ),
    (pl.DataFrame({"s": ["F", "M"], "r": [2, 1]}), [0, 1], ("F & 2", "M & 1")),
    (pl.Series(["z", "y"], dtype=pl.Categorical), [0, 1], ("z", "y")),
]


@pytest.mark.filterwarnings("ignore::dcem.table.messages.DataWarning")
@pytest.mark.parametrize(("values", "codes", "names"), LEVELS)
def test_groups_become_codes_and_level_names(values: Any, codes: list, names: tuple) -> None:
    found, found_names = check_groups(values, "group")
    assert found_names == names
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, codes)


@pytest.mark.parametrize(
    "values", [["1", "1.0", "2"], [["a", "-0.0"], ["b", "0"]], ["(missing)", None, "b"]]
)
def test_levels_that_would_be_one_are_an_error(values: Any) -> None:
    with pytest.raises(InputError, match=r"'-?[01]\.0'|\(missing\)"):
        check_groups(values, "group")


@pytest.mark.parametrize("values", [["a", "nan"], ["White", "white "], ["A B", "AB", "c"]])
def test_doubtful_levels_are_mentioned(values: Any) -> None:
    with pytest.warns(DataWarning, match="has (the )?value"):
        assert len(check_groups(values, "group")[1]) == len(values)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (["a", "None"], "has the value 'None', which counts.*If it means.*list it under"),
        (["a", "N/A", "None"], "the values 'N/A', 'None', each of which.*If they mean.*list them"),
    ],
)
def test_one_level_that_may_mean_missing_or_several(values: list[str], told: str) -> None:
    with pytest.warns(DataWarning, match=told):
        check_groups(values, "group")


def test_crossed_levels_never_share_a_name() -> None:
    values = pd.DataFrame({"a": ["x & y", "x"], "b": ["z", "y & z"]})
    with pytest.raises(InputError, match="same name"):
        check_groups(values, "group")


def test_given_levels_stay_even_if_absent() -> None:
    codes, names = check_groups(["c", "a"], "group", levels=["a", "b", "c"])
    np.testing.assert_array_equal(codes, [2, 0])
    assert names == ("a", "b", "c")


# --- properties ----------------------------------------------------------------------------------

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(width=32),
    st.sampled_from([0, 1, "0", "1", "", "nan", "x", "F", pd.NA, pd.NaT, b"1", 1j, (1,)]),
)


@settings(deadline=None, max_examples=200)
@given(data=st.data(), spoilt=st.sets(st.sampled_from(["x", "y", "t", "g", "h", "p", "w"])))
def test_whatever_a_column_holds_only_an_input_error_is_raised(
    data: st.DataObject, spoilt: set[str]
) -> None:
    frame = pd.DataFrame(
        {
            "x": [0.5, np.nan, 3, 4],
            "y": [0, 1, 0, 0],
            "t": [1, 1, 0, 1],
            "g": ["F", "M", "F", "M"],
            "h": [1, 1, 2, 2],
            "p": ["a", "a", "b", "c"],
            "w": [1, 2, 0, 1],
        }
    )
    for column in sorted(spoilt):
        values = data.draw(st.lists(junk, min_size=4, max_size=4), label=column)
        kind = data.draw(st.sampled_from([object, None]))
        frame[column] = pd.Series(values, dtype=kind)
    tested = data.draw(st.sampled_from(["t", None]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            made = SelectiveLabels.from_frame(
                frame,
                label="y",
                tested=tested,
                group=["g", "h"],
                id="p",
                weight="w",
                features=["x"],
            )
        except InputError:
            assert spoilt
            return
    assert np.isfinite(made.X[~np.isnan(made.X)]).all()
    np.testing.assert_array_equal(np.isnan(made.y_obs), ~made.tested)
    assert set(np.unique(made.y_obs[made.tested])) == {0, 1}
    assert made.weight is not None
    assert (made.weight >= 0).all()


@settings(deadline=None, max_examples=60)
@given(
    rows=st.sets(st.integers(0, N - 1), min_size=1),
    damage=st.sampled_from([("age", np.inf), ("lactate", "high"), ("sepsis", 7), ("cultured", -1)]),
)
def test_the_offending_rows_are_counted_and_the_first_listed(
    rows: set[int], damage: tuple[str, Any]
) -> None:
    column, value = damage
    with pytest.raises(InputError) as caught:
        read(put(column, sorted(rows), value)())
    first = ", ".join(map(str, sorted(rows)[:5]))
    assert f"'{column}'" in str(caught.value)
    assert f"{len(rows)} of {N} rows (first: {first}" in str(caught.value)


@given(name=st.text(min_size=1, max_size=8), allowed=st.lists(st.text(max_size=8), max_size=6))
def test_the_nearest_name_is_an_allowed_one(name: str, allowed: list[str]) -> None:
    guess = nearest(name, allowed)
    assert guess is None or guess in allowed
    if name in allowed:
        assert guess is not None
        assert guess.lower() == name.lower()
