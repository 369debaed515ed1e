"""Class: exact. Reading tables: one test for each repair of the changelog that changed a number."""

import os

import names
import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.filterwarnings("ignore")
N = 600


def frame(**columns) -> pd.DataFrame:
    """People with a feature `x`, a label that every third lacks, and these columns."""
    rng = np.random.default_rng(0)
    label = pd.Series(np.resize([0, 1, None, 0, 1, None, 0, 0, None], N), dtype="Int64")
    return pd.DataFrame({"x": rng.normal(size=N).round(6), "y": label}).assign(**columns)


def cycle(*values) -> np.ndarray:
    return np.resize(np.array(values, dtype=object), N)


def read(table, **roles):
    return names.read(table, **{"label": "y", **roles})


def csv(folder, lines, head):
    """A file of one cell after another, between semicolons or commas as the head has it."""
    path = folder / "t.csv"
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return path


# -- rows and people -------------------------------------------------------------------------------


def test_rows_of_another_index_are_refused():
    """Rows were paired by position although pandas said otherwise."""
    y, score = pd.Series([0, 1, 0, 1.0]), pd.Series([0.1, 0.9, 0.2, 0.8], index=[3, 2, 1, 0])
    with pytest.raises(names.Refused, match="indices"):
        names.auc(y, score)
    X = pd.DataFrame({"x": range(4)}, index=list("abcd"))
    group = pd.Series(list("fmfm"), index=list("dcba"))
    with pytest.raises(names.Refused, match="disagree"):
        names.arrays(X, [0, 1, 0, np.nan], group=group)
    with pytest.raises(names.Refused, match="disagree"):
        names.arrays(X, [0, 1, 0, np.nan], test_sensitivity=pd.Series(0.9, index=list("dcba")))


def test_groups_at_prediction_are_not_paired_by_position():
    """... groups at prediction."""
    rng = np.random.default_rng(1)
    rows = {"X": rng.normal(size=(200, 2)), "truth": rng.integers(2, size=200) * 1.0}
    rows |= {"tested": rng.random(200) < 0.6, "group": rng.choice(["a", "b"], 200)}
    model = names.fit("tested-only-plus-group", "", rows, steps=2)
    X = pd.DataFrame(rows["X"])
    group = pd.Series(rows["group"], index=X.index[::-1])
    with pytest.raises(names.Refused, match="disagree"):
        names.scores(model, {"X": X, "group": group})


@pytest.mark.parametrize("role", ["id", "group", "decider"])
def test_long_numbers_that_are_floats_name_nobody(role, tmp_path):
    """Identifiers of 16 or more digits were rounded, so that people were merged."""
    long = np.repeat(1234567890123456001 + 7 * np.arange(N // 2), 2)
    with pytest.raises(names.Refused, match="floating-point"):
        read(frame(who=long.astype(float)), **{role: "who"})
    problem = read(frame(who=long), id="who").problem
    assert len(np.unique(names.people(problem))) == N // 2
    frame(who=long).to_parquet(tmp_path / "t.parquet")
    assert len(np.unique(names.people(read(tmp_path / "t.parquet", id="who").problem))) == N // 2


def test_rows_that_are_left_out_shift_no_others(tmp_path):
    """Rows that were left out (weight 0, `--until`) shifted the others in a list of tests."""
    rng = np.random.default_rng(0)
    before = rng.random(N) < 0.4
    chance = np.where(before, 1.0, rng.uniform(0.1, 0.9, N))
    asked = ~before & (rng.random(N) < chance)
    result = np.where(before | asked, rng.integers(0, 2, N), np.nan)
    people = {"row": np.arange(N), "x": frame()["x"], "probability": chance, "drawn": asked}
    pd.DataFrame(people)[~before].to_csv(tmp_path / "list.csv", index=False)
    table = frame(y=result, w=np.arange(N) % 3, day=np.arange(N) % 5)
    roles = {"weight": "w", "time": "day", "until": 3}
    got = names.chance_of_testing(
        read(table, testing_probability=str(tmp_path / "list.csv"), **roles)
    )
    kept = (np.arange(N) % 3 > 0) & (np.arange(N) % 5 <= 3)
    assert got == pytest.approx(chance[kept])


def test_a_row_of_weight_0_counts_nowhere():
    """A row of weight 0 now counts nowhere, nor where tables come from arrays."""
    table = frame(w=np.arange(N) % 2)
    assert len(names.rows(read(table, weight="w"))["label"]) == N // 2
    assert not np.isin(table["x"][::2], names.features(read(table, weight="w"))["x"]).any()


def test_people_1_and_1_as_text_are_refused():
    """People `1` and `'1'` of one column were one person."""
    who = np.arange(N).astype(object)
    who[7] = "1"
    with pytest.raises(names.Refused, match="who"):
        read(frame(who=who), id="who")


def test_a_file_with_an_old_time_stamp_is_read_anew(tmp_path):
    """Files with an old time stamp were read stale."""
    path = tmp_path / "t.csv"
    for mark in ",;":
        frame().to_csv(path, index=False, sep=mark)
        os.utime(path, (1e9, 1e9))
        assert names.features(read(path))["x"] == pytest.approx(frame()["x"])


# -- numbers and dates -----------------------------------------------------------------------------


def test_a_comma_before_three_digits_between_semicolons(tmp_path):
    """`64,058` between semicolons was 64.058."""
    lines = [f"{i % 3 % 2};{i % 7 - 3}.13;{50 + i},0{i % 90 + 10}" for i in range(N)]
    values = names.features(read(csv(tmp_path, lines, "y;x;pay")))["pay"]
    assert values[14] == 64_024


def test_until_has_the_order_of_its_column():
    """`03/04/2021` in `--until` ignored the order of its column."""
    days = pd.date_range("2021-01-01", periods=N // 5).repeat(5)
    for form, until in (("%d/%m/%Y", "03/04/2021"), ("%m/%d/%Y", "04/03/2021")):
        table = read(frame(day=days.strftime(form)), time="day", until=until)
        assert len(names.rows(table)["label"]) == (days <= "2021-04-03").sum()


def test_times_whose_order_is_a_guess_are_told():
    """Times such as `01/02/2021` in a frame were taken as month first in silence."""
    with pytest.warns(names.Told, match="day"):
        read(frame(day=cycle("01/02/2021", "03/04/2021", "05/06/2021")), time="day")


def test_columns_called_by_numbers_have_values():
    """Columns that are called by numbers became missing."""
    table = frame().rename(columns={"x": 7})
    assert names.features(read(table))["7"] == pytest.approx(table[7])


def test_a_number_in_another_spelling_is_the_same_label():
    """A number in another spelling (`0.50`, `1e3`) was unknown; `positive=0` was dropped."""
    table = frame(y=cycle("0.5", "1000", "0.50", "1e3"))
    label = names.rows(read(table, positive="1e3"))["label"]
    assert (label == np.resize([0, 1, 0, 1], N)).all()
    assert names.rows(read(frame(), positive=0))["label"][:2].tolist() == [1, 0]


def test_a_quote_that_nobody_closes_swallows_no_rows(tmp_path):
    """A quote that nobody closes swallowed rows."""
    lines = [f"{i % 2},{i}.5,{'12' + chr(34) if i == 5 else 'w'}" for i in range(N)]
    lines[9] = f'1,9.5,"{lines[9][-1]}'
    with pytest.raises(names.Refused, match="quote"):
        read(csv(tmp_path, lines, "y,x,note"))


def test_columns_decide_for_themselves_about_points_and_commas(tmp_path):
    """`7.356` was 7356 beside `3,5`, and `955,402` 955.402 beside `2,581,747`."""
    small = [f"{i % 3 % 2};{i % 9}.{i % 800 + 100};{i % 9},{i % 9}" for i in range(N)]
    table = read(csv(tmp_path, small, "y;a;b"))
    seven = names.features(table)["a"][7]
    assert seven == pytest.approx(7.107) or "category" in names.columns(table)["a"]
    assert names.features(table)["b"][7] == pytest.approx(7.7)
    large = [f'{i % 3 % 2};"{i % 9 + 1},581,747";"{i % 9 + 900},402"' for i in range(N)]
    values = names.features(read(csv(tmp_path, large, "y;a;b")))
    assert values["a"][1] == 2_581_747


def test_the_same_text_in_a_frame_is_the_same_numbers(tmp_path):
    """... so that the same file as text in a frame is the same numbers."""
    path = csv(tmp_path, [f"{i % 3 % 2};{i % 9},{i % 9}5" for i in range(N)], "y;b")
    table = read(path)
    text = names.read_alike(table, pd.read_csv(path, sep=";", dtype=str))
    assert names.features(table)["b"][7] == pytest.approx(7.75)
    assert names.features(text)["b"][7] == pytest.approx(7.75)


def test_integers_of_17_digits_are_not_one_value():
    """Integers of 17 or more digits were one value."""
    codes = np.resize([10**17 + 1, 10**17 + 2, 10**17 + 3], N)
    problem = read(frame(site=codes), group="site")
    assert len(np.unique(names.rows(problem)["group"])) == 3


@pytest.mark.parametrize("word", ["unknown", "90+", "hemolyzed"])
def test_a_word_among_numbers_leaves_them_numbers(word):
    """A word such as `unknown` or `90+` in a column of numbers made levels of them all."""
    rng = np.random.default_rng(0)
    cells = rng.normal(50, 9, N).round(2).astype(str).astype(object)
    cells[7] = word
    values = names.features(read(frame(v=cells)))["v"]
    assert np.isnan(values[7]) or values[7] == 90
    assert np.delete(values, 7) == pytest.approx(np.delete(cells, 7).astype(float))


def test_amounts_in_two_currencies_are_not_one_column_of_numbers():
    """Amounts in `$` and in `€` were one column of numbers."""
    cells = np.array([f"{'$' if i % 2 else '€'}{i % 70}.50" for i in range(N)], dtype=object)
    table = read(frame(pay=cells))
    assert names.columns(table)["pay"][0] not in ("number", "amount")
    assert "pay" not in names.features(table)


@pytest.mark.parametrize("words", [("<65", ">=65"), ("01", "1")])
def test_groups_of_like_names_stay_apart(words):
    """Groups such as `<65` and `>=65`, or `01` and `1`, were merged."""
    group = names.rows(read(frame(g=cycle(*words, words[0])), group="g"))["group"]
    assert (group == cycle(*words, words[0])).all()


def test_infinities_beside_text_are_refused():
    """`fit` took infinities beside text or dates for missing, without a word."""
    X = frame(word=cycle("a", "b"))[["x", "word"]]
    X.loc[5, "x"] = np.inf
    with pytest.raises(names.Refused, match="1e\\+30"):
        names.made("tested-only", learner="linear").fit(X, np.arange(N) % 2)


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["not done", "not_done"])
def test_a_word_for_nobody_looked_is_no_negative(word):
    """Label values that nobody listed, such as `not done`, counted as negative without a word."""
    table = frame(y=cycle("positive", "negative", word))
    for positive in ((), "positive"):
        with pytest.raises(names.Refused, match=word):
            read(table, positive=positive)
    tested = names.rows(read(table, positive="positive", untested_value=word))["tested"]
    assert (tested == np.resize([True, True, False], N)).all()


def test_unclear_is_no_negative_of_the_truth():
    """In a column of the truth, `unclear` or `not tested` was a negative; it is refused."""
    with pytest.raises(names.Refused, match="unclear"):
        read(frame(real=cycle("1", "0", "0", "1", "0", "unclear")), truth="real")


def test_a_copy_of_the_label_with_errors_is_a_leak():
    """A copy of the label with errors in one row of ten went unseen in most tables."""
    rng = np.random.default_rng(0)
    n = 3000
    ill, tested = rng.random(n) < 0.2, rng.random(n) < 0.3
    done = np.where(tested, np.where(ill, rng.random(n) < 0.65, rng.random(n) < 0.02), False)
    table = pd.DataFrame(
        {
            "y": np.where(tested, ill * 1.0, np.nan),
            "x": rng.normal(size=n),
            "copied": np.where(rng.random(n) < 0.1, ~ill, ill) * 1.0,
            "procedure": done * 1.0,  # follows a positive result
            "sign": np.where(ill, rng.random(n) < 0.5, rng.random(n) < 0.1) * 1.0,
        }
    )
    assert names.leaks(read(table)) == {"copied", "procedure"}


# -- init ------------------------------------------------------------------------------------------


def test_a_feature_that_is_unknown_in_some_rows_is_no_label():
    """`init` took a feature that is `unknown` in some rows for the label; none of `POS`, `NEG`."""
    smokes = cycle("yes", "no", "no", "unknown", "no")
    result = frame()["y"].map({1: "POS", 0: "NEG"}).astype(object)
    table = frame(smokes=smokes, result=result).drop(columns="y")
    assert names.proposed(table)["label"] == "result"


def test_zeros_for_the_untested_are_not_tested():
    """`init` counted everybody as tested where zeros stood for the untested."""
    rng = np.random.default_rng(0)
    tested = rng.random(N) < 0.4
    positive = tested & (rng.random(N) < 0.3)
    table = frame(y=positive * 1, tested=tested * 1).rename(columns={"y": "flu"})
    roles = names.proposed(table)
    assert roles["label"] == "flu"
    assert roles["tested"] in ("tested", ("tested",), ["tested"])
    assert (names.rows(names.read(table, **roles))["tested"] == tested).all()
