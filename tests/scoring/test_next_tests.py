"""Probabilities of being tested next: what must hold whatever the table."""

import copy
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcem.scoring import allocate, draw, next_tests
from dcem.scoring.allocation import floor
from dcem.scoring.next_tests import reasons, shortfall
from dcem.table.messages import InputError

from .conftest import visits


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 200),
    st.floats(0.001, 1.2),
    st.integers(1, 6),
    st.integers(0, 10_000),
    st.booleans(),
)
def test_sum_bounds_and_floor(n, share, n_groups, seed, spiky):
    rng = np.random.default_rng(seed)
    gain = rng.random(n) ** (20 if spiky else 1)
    group = rng.integers(0, n_groups, n)
    budget = share * n
    probability = allocate(gain, group, budget)
    assert probability.sum() == pytest.approx(min(budget, n), rel=1e-9)
    assert (probability > 0).all()
    assert (probability <= 1 + 1e-12).all()
    if budget < n:
        assert (probability >= floor(group, budget) - 1e-12).all()
        for g in np.unique(group):  # a tenth of an even share over groups, unless people run out
            people = (group == g).sum()
            least = min(0.5 * people, 0.1 * budget / len(np.unique(group)))
            assert probability[group == g].sum() >= least - 1e-9


def test_more_gain_more_probability_and_order_does_not_matter():
    rng = np.random.default_rng(0)
    gain, group = rng.random(500), np.zeros(500, int)
    probability = allocate(gain, group, 60)
    order = np.argsort(gain)
    assert (np.diff(probability[order]) >= 0).all()
    shuffled = rng.permutation(500)
    np.testing.assert_allclose(allocate(gain[shuffled], group[shuffled], 60), probability[shuffled])


def test_nothing_to_gain_is_dealt_out_evenly():
    np.testing.assert_allclose(allocate(np.zeros(10), np.zeros(10, int), 2), 0.2)


def test_a_draw_keeps_the_budget_and_the_probabilities():
    rng = np.random.default_rng(3)
    probability = allocate(rng.random(60) ** 3, rng.integers(0, 2, 60), 12)
    drawn = np.stack([draw(probability, seed) for seed in range(4000)])
    assert (drawn.sum(axis=1) == 12).all()
    error = np.sqrt(probability * (1 - probability) / 4000)
    assert (np.abs(drawn.mean(axis=0) - probability) < 4.5 * error + 1e-12).all()
    np.testing.assert_array_equal(draw(probability, 7), draw(probability, 7))


def test_a_draw_takes_one_row_of_a_person_at_most():
    rng = np.random.default_rng(3)
    person = rng.integers(0, 40, 120)
    probability = allocate(rng.random(120), np.zeros(120, int), 12)
    assert np.bincount(person, probability).max() <= 1
    drawn = np.stack([draw(probability, seed, person) for seed in range(4000)])
    assert (drawn.sum(axis=1) == 12).all()
    assert max(np.bincount(person, row).max() for row in drawn) == 1
    error = np.sqrt(probability * (1 - probability) / 4000)
    assert (np.abs(drawn.mean(axis=0) - probability) < 4.5 * error + 1e-12).all()


@pytest.mark.parametrize("budget", [0, -1, np.nan, np.inf])
def test_a_budget_is_a_positive_number(budget):
    with pytest.raises(InputError, match="budget"):
        allocate(np.ones(3), np.zeros(3, int), budget)


@pytest.fixture
def found(model, table_file):
    return next_tests(model, table_file, 100)


def test_only_the_untested_and_all_of_them(found):
    frame = visits()
    untested = frame.index[frame["result"] == "not ordered"]
    assert list(found.table["row"]) == list(untested)
    assert list(found.table["patient"]) == list(frame.loc[untested, "patient"])
    assert found.table["probability"].sum() == pytest.approx(100)
    assert (found.table["probability"] > 0).all()
    assert found.by_group["expected_tests"].sum() == pytest.approx(100)
    assert found.by_group["untested"].sum() == len(untested)
    assert found.rows == len(frame)


def test_the_group_that_is_tested_less_gets_more(found):
    rate = found.by_group["expected_tests"] / found.by_group["untested"]
    assert rate["B"] > 1.15 * rate["A"]
    of_b = found.table[found.table["group"] == "B"]
    assert of_b["reason"].str.contains("this group is tested less").all()
    of_a = found.table[found.table["group"] == "A"]
    assert not of_a["reason"].str.contains("this group is tested less").any()
    # tested with 30 % instead of 60 %, and people of group B are two in five
    assert of_b["shortfall"].iloc[0] == pytest.approx(1 - 0.3 / (0.6 * 0.6 + 0.4 * 0.3), abs=0.08)


def test_a_few_people_do_not_make_a_disparity():
    rates = pd.DataFrame({"group": ["big"] * 5000 + ["tiny"] * 3})
    rates["own_rate"] = np.where(rates["group"] == "big", 0.1, 0.0)
    rates["average_rate"] = 0.2
    found = shortfall(rates)
    assert found[0] == pytest.approx(0.5, abs=0.01)
    assert found[-1] < 0.1


def test_people_unlike_the_tested_get_more_and_are_told_so(model, tmp_path):
    frame = visits(400, seed=7).assign(result="not ordered")
    frame.loc[:19, "lactate"] = 400.0
    frame.to_csv(tmp_path / "p.csv", index=False)
    table = next_tests(model, tmp_path / "p.csv", 40).table
    far = table["row"] < 20
    assert table.loc[far, "reason"].str.contains("unlike anybody tested").all()
    assert table.loc[far, "probability"].mean() > table.loc[~far, "probability"].mean()


def test_rows_in_another_order_give_the_same_people_the_same(model, table_file, found, tmp_path):
    shuffled = visits().sample(frac=1, random_state=1)
    shuffled.to_parquet(tmp_path / "p.parquet", index=False)
    other = next_tests(model, tmp_path / "p.parquet", 100).table.set_index("patient")
    mine = found.table.set_index("patient")
    pd.testing.assert_series_equal(
        other.loc[mine.index, "probability"], mine["probability"], rtol=1e-4
    )


def test_without_label_or_group_it_says_what_it_could_not_do(model, tmp_path):
    frame = visits(100).drop(columns=["result", "race"])
    frame.to_csv(tmp_path / "p.csv", index=False)
    found = next_tests(model, tmp_path / "p.csv", 10)
    assert len(found.table) == 100
    assert any("everybody counts as untested" in note for note in found.notes)
    assert any("disparity is not considered" in note for note in found.notes)


def test_a_group_nobody_knows_was_never_tested(model, tmp_path):
    frame = visits(200, seed=9).assign(result="not ordered")
    frame.loc[:9, "race"] = "C"
    frame.to_csv(tmp_path / "p.csv", index=False)
    table = next_tests(model, tmp_path / "p.csv", 20).table
    unknown = table[table["group"] == "C"]
    assert (unknown["shortfall"] == 1).all()
    assert unknown["reason"].str.contains("seen nobody of this group").all()
    assert not unknown["reason"].str.contains("tested less").any()


def test_reasons_claim_no_more_than_was_compared(found):
    rows = found.table[found.table["group"] == "B"]
    none = np.zeros(len(rows), bool)
    assert all("less at equal features" in text for text in reasons(rows, none))
    crude = reasons(rows, none, equal_features=False)
    assert all("tested less" in text and "equal features" not in text for text in crude)
    assert not found.table["reason"].str.contains("minimum").any()  # two groups of similar size


def test_reasons_call_the_prediction_what_its_column_is_called(found):
    rows = found.table.assign(score=0.5)
    none = np.zeros(len(rows), bool)
    assert all("the risk is close" in text for text in reasons(rows, none, score="risk"))
    assert all("the score is close" in text for text in reasons(rows, none))


def test_people_without_a_group_are_listed_last(model, tmp_path):
    frame = visits(400, seed=9)
    frame.loc[:59, "race"] = None
    frame.loc[60:119, "race"] = "0 new"
    frame.to_csv(tmp_path / "p.csv", index=False)
    by_group = next_tests(model, tmp_path / "p.csv", 50).by_group
    assert list(by_group.index) == ["A", "B", "0 new", "(missing)"]


def test_a_budget_for_everybody(model, table_file, found):
    everybody = next_tests(model, table_file, 5000)
    assert (everybody.table["probability"] == 1).all()
    assert set(everybody.table["reason"]) == {"there are tests for everybody"}
    assert any("everybody is tested" in note for note in everybody.notes)
    assert everybody.draw(0).all()


def test_people_with_several_rows(model, tmp_path):
    frame = visits(300, seed=9).assign(result="not ordered")
    frame["patient"] = [f"P{i % 100}" for i in range(300)]
    frame.to_csv(tmp_path / "p.csv", index=False)
    few = next_tests(model, tmp_path / "p.csv", 20)
    for seed in range(20):
        drawn = few.table[few.draw(seed)]
        assert len(drawn) == 20
        assert drawn["patient"].is_unique
    many = next_tests(model, tmp_path / "p.csv", 200)
    assert any("such a person more than one row" in note for note in many.notes)


def test_identifiers_that_are_numbers_keep_their_digits(model, tmp_path):
    frame = visits(60, seed=1)
    frame["patient"] = pd.array([None, *range(2**60, 2**60 + 59)], "Int64")
    frame.to_parquet(tmp_path / "a.parquet")
    listed = next_tests(model, tmp_path / "a.parquet", 5).table
    expected = [None if pd.isna(one) else one for one in frame["patient"].iloc[listed["row"]]]
    assert listed["patient"].tolist() == expected


def test_a_small_group_keeps_a_minimum_and_is_told_so(model, tmp_path):
    frame = visits(1000, seed=9).assign(result="not ordered")
    frame["race"] = np.where(frame.index < 20, "B", "A")
    frame.to_csv(tmp_path / "p.csv", index=False)
    found = next_tests(model, tmp_path / "p.csv", 50)
    assert found.by_group.loc["B", "expected_tests"] >= 0.1 * 50 / 2
    minimum = found.table["reason"].str.contains("keeps a minimum")
    assert minimum[found.table["group"] == "B"].any()
    assert not minimum[found.table["group"] == "A"].any()


def test_everybody_tested_is_an_answer(model, tmp_path):
    visits(100).assign(result="high").to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(InputError, match="nobody is left to test"):
        next_tests(model, tmp_path / "p.csv", 10)


def test_an_unknown_label_value_is_pointed_out(model, tmp_path):
    """`not done` counts as a result, since the model knows another word for nobody looked."""
    frame = visits(60, seed=8)
    frame["result"] = frame["result"].replace("not ordered", "not done")
    path, told = tmp_path / "later.csv", "is 'not done' in .* should be empty, or 'not ordered'"
    frame.to_csv(path, index=False)
    with pytest.raises(InputError, match=f"nobody is left to test.*{told}"):
        next_tests(model, path, 5)
    frame.loc[:4, "result"] = None
    frame.to_csv(path, index=False)
    assert re.search(told, next_tests(model, path, 2).notes[-1])


def test_no_count_of_a_group_that_the_card_withholds(model, tmp_path) -> None:
    """Group C: 60 rows, 4 of them tested. With its untested told, so would these be."""
    frame = visits(600)
    frame.loc[:59, "race"] = "C"
    frame.loc[:3, "result"], frame.loc[4:59, "result"] = "high", "not ordered"
    frame.to_csv(tmp_path / "p.csv", index=False)
    found = next_tests(model, tmp_path / "p.csv", 50)
    withheld = found.by_group["untested"].isna()
    assert withheld["C"]
    assert withheld.sum() > 1  # all less the others would tell
    assert found.by_group["expected_tests"].isna().equals(withheld)
    assert found.untested == len(found.table)


def test_no_count_of_a_few_people_with_many_rows(model, tmp_path) -> None:
    frame = visits(600)
    frame.loc[:59, "race"] = "C"
    frame.loc[:59, "patient"] = [f"P{i % 3}" for i in range(60)]
    frame.to_csv(tmp_path / "p.csv", index=False)
    assert next_tests(model, tmp_path / "p.csv", 50).by_group["untested"].isna()["C"]


def test_what_the_card_withholds_is_withheld_of_any_table(model, table_file) -> None:
    few = copy.copy(model.estimator)
    few.training_counts_ = few.training_counts_.astype(float).mask(
        [[True, True, True], [False] * 3]
    )
    found = next_tests(replace(model, estimator=few), table_file, 50)
    assert list(found.by_group["untested"].isna()) == [True, False]


@pytest.mark.parametrize(("pending", "some"), [(30, "30"), (3, "<10")])
def test_whoever_waits_for_a_result_is_not_tested_again(model, tmp_path, pending, some) -> None:
    """Given as an untested value, as a model of the past has to take it; here a test was done."""
    untested_value = ("not ordered", "Pending", "inconclusive")
    waiting = replace(model, roles=replace(model.roles, untested_value=untested_value))
    frame = visits(400, seed=8)
    untested = frame.index[frame["result"] == "not ordered"]
    frame.loc[untested[:pending], "result"] = "Pending"
    frame.loc[untested[pending : pending + 5], "result"] = "inconclusive"  # a second test may help
    frame.to_csv(tmp_path / "later.csv", index=False)
    found = next_tests(waiting, tmp_path / "later.csv", 20)
    assert found.table["row"].tolist() == untested[pending:].tolist()
    assert found.untested == len(untested) - pending
    assert f"{some} of 400 rows are not listed" in found.notes[-1]
