"""The time of a decision: how it is read, what lies after it, and a person's history."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dcem.table import Roles, read_table
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import DataWarning, InputError
from dcem.table.times import add_history, earlier_results, time_words

ROLES = Roles(label="y", tested="tested", id="who", time="when")


def visits(n: int = 400, form: str = "%Y-%m-%d", seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D")
    tested = rng.random(n) < 0.5
    return pd.DataFrame(
        {
            "who": rng.integers(0, n // 3, n),
            "when": days.strftime(form),
            "x": rng.normal(size=n),
            "tested": tested.astype(int),
            "y": np.where(tested, rng.random(n) < 0.4, np.nan).astype(float),
        }
    )


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%d %b %Y"])
def test_dates_as_people_write_them_are_one_time_and_never_a_feature(form):
    problem = read_table(visits(form=form), ROLES).problem
    expected = pd.to_datetime(visits()["when"]).to_numpy("datetime64[s]")
    np.testing.assert_array_equal(problem.time, expected)
    assert problem.feature_names == ("x",)


def test_a_time_whose_order_is_a_guess_is_told():
    day = np.arange(400) % 12 + 1
    frame = visits().assign(when=[f"{d:02d}/{d % 7 + 1:02d}/2021" for d in day])
    told = r"'when', the time of the decision: read as month/day/year; no day is above 12"
    with pytest.warns(DataWarning, match=told):
        read_table(frame, ROLES)
    with pytest.warns(DataWarning, match="'time', the time of the decision: read as month/day"):
        SelectiveLabels.from_arrays(frame[["x"]], frame["y"], time=frame["when"].to_numpy())


def test_numbers_are_times_and_so_are_arrays_of_dates():
    frame = visits().assign(when=np.arange(400) / 7)
    assert read_table(frame, ROLES).problem.time.dtype == float
    given = pd.to_datetime(visits()["when"])
    made = SelectiveLabels.from_arrays(
        np.arange(4)[:, None], [0, 1, np.nan, 1], time=given[:4].to_numpy()
    )
    assert made.subset([2]).moment == given[2].toordinal() - 719163
    assert time_words(made.time[0]) == str(given[0].date())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"when": "2023-01-01"}, "the same time in all rows"),
        ({"when": "soon"}, "the same time|neither numbers nor dates"),
    ],
)
def test_what_is_not_a_time_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        read_table(visits().assign(**change), ROLES)


def test_rows_without_a_time_are_refused_by_count():
    frame = visits()
    frame.loc[[3, 5], "when"] = None
    with pytest.raises(InputError, match="2 of 400 rows"):
        read_table(frame, ROLES)


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
def test_until_leaves_out_what_is_later_and_keeps_its_own_day():
    frame = visits()
    kept = read_table(frame, Roles(**{**vars(ROLES), "until": "2023-06-30"})).problem
    assert len(kept) == (frame["when"] <= "2023-06-30").sum()
    with pytest.raises(InputError, match="must be a date"):
        read_table(frame, Roles(**{**vars(ROLES), "until": "summer"}))
    with pytest.raises(InputError, match="`time`"):
        read_table(frame, Roles(label="y", until="2023-06-30"))


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
@pytest.mark.parametrize("until", ["2023-06", "06/2023", "Juni 2023", "2023Q2", "2023-W26"])
def test_until_a_month_a_quarter_or_a_week_keeps_all_of_it(until):
    frame = visits()
    end = "2023-07-02" if "W" in until else "2023-06-30"
    kept = read_table(frame, Roles(**{**vars(ROLES), "until": until})).problem
    assert len(kept) == (frame["when"] <= end).sum()


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
@pytest.mark.parametrize(
    ("form", "until"),
    [
        ("%d/%m/%Y", "03/04/2023"),
        ("%d/%m/%Y %H:%M", "03/04/2023"),
        ("%d/%m/%Y", "03/04/2023 14:05"),
        ("%m-%d-%Y", "04-03-2023"),
        ("%Y-%m-%d", "2023-04-03T14"),
        ("%Y-%m-%d", "20230403T140500"),
    ],
)
def test_until_is_read_as_the_column_is(form, until):
    frame = visits()
    written = pd.to_datetime(frame["when"]).dt.strftime(form)
    roles = Roles(**{**vars(ROLES), "until": until})
    kept = read_table(frame.assign(when=written), roles).problem
    assert len(kept) == (frame["when"] <= "2023-04-03").sum()


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
def test_rows_keep_their_place_where_others_are_left_out(tmp_path):
    frame = visits().assign(w=lambda rows: rows.index % 3, rate=0.9)
    roles = Roles(**{**vars(ROLES), "until": "2023-06-30", "weight": "w"})
    problem = read_table(frame, roles).problem
    kept = (frame["w"] > 0) & (frame["when"] <= "2023-06-30")
    assert problem.row.tolist() == np.flatnonzero(kept).tolist()
    wrong = np.flatnonzero(kept & (frame["tested"] == 1))[7]
    for column, value, role in (("y", None, {}), ("rate", 2, {"test_sensitivity": "rate"})):
        other = frame.copy()
        other.loc[wrong, column] = value
        with pytest.raises(InputError, match=rf"\(first: {wrong}\)"):
            read_table(other, Roles(**{**vars(roles), **role}))
    frame.to_csv(tmp_path / "t.csv", index=False)
    some = read_table(tmp_path / "t.csv", roles, sample_rows=200)
    assert kept[some.problem.row].all()
    np.testing.assert_array_equal(some.problem.X[:, 0], frame["x"].to_numpy()[some.problem.row])
    assert len(some.draw.numbers) == len(some.problem)


def test_dates_after_the_decision_are_a_leak_and_those_before_it_are_not():
    frame = visits()
    when = pd.to_datetime(frame["when"])
    frame["result_day"] = (when + pd.Timedelta(days=2)).dt.strftime("%Y-%m-%d")
    frame["admitted"] = (when - pd.Timedelta(days=3)).dt.strftime("%Y-%m-%d")
    with pytest.warns(DataWarning, match="'result_day'"):
        found = {leak.column: leak for leak in read_table(frame, ROLES).leaks}
    assert found["result_day"].kind == "after"
    assert found["result_day"].strength == 1
    assert "admitted" not in found


def test_history_is_that_of_strictly_earlier_rows():
    frame = visits(150, seed=3)
    frame.loc[:9, "when"] = frame.loc[0, "when"]  # several at one time
    problem = read_table(frame, ROLES).problem
    found = earlier_results(problem.person, problem.time, problem.tested, problem.y_obs)
    for i in range(len(problem)):
        earlier = np.flatnonzero(
            (problem.person == problem.person[i]) & (problem.time < problem.time[i])
        )
        tests = earlier[problem.tested[earlier]]
        assert found["earlier_visits"][i] == len(earlier)
        assert found["earlier_tests"][i] == len(tests)
        assert found["earlier_positives"][i] == np.nansum(problem.y_obs[tests])
        last = tests[problem.time[tests] == problem.time[tests].max()] if len(tests) else tests
        expected = problem.y_obs[last].max() if len(last) else np.nan
        np.testing.assert_equal(found["last_result"][i], expected)
        if len(last):
            days = (problem.time[i] - problem.time[last[0]]) / np.timedelta64(1, "D")
            assert found["since_last_test"][i] == days


def test_history_is_added_to_a_table_and_needs_people_and_times():
    added = add_history(visits(), ROLES).to_pandas()
    assert added["x"].tolist() == visits()["x"].tolist()
    assert added["last_result"].isin([0, 1]).any()
    with pytest.raises(InputError, match="`id`"):
        add_history(visits(), Roles(label="y", time="when"))


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
def test_history_is_of_all_rows_of_whatever_frame():
    frame = visits().assign(w=lambda rows: rows.index % 2, mixed=["a", 1] * 200).iloc[::-1]
    roles = Roles(**{**vars(ROLES), "weight": "w", "exclude": "mixed"})
    found = add_history(frame, roles)
    assert found.column_names[:7] == list(frame)
    assert found.num_rows == len(frame)
    plain = pa.Table.from_pandas(frame.drop(columns="mixed"))
    again = add_history(plain, Roles(**{**vars(roles), "exclude": ()}))
    assert again.equals(found.drop_columns("mixed"))
