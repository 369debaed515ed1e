"""Tests drawn from a list: whose probability is whose, and what does not fit together."""

import numpy as np
import pandas as pd
import pytest

from dcem.table import Roles, read_table
from dcem.table.messages import DataWarning, InputError


@pytest.fixture
def drawn(tmp_path):
    """A table after the draw, the list before it, and the probability of each row."""
    rng = np.random.default_rng(0)
    n = 200
    before = rng.random(n) < 0.4
    probability = np.where(before, 1.0, rng.uniform(0.1, 0.9, n))
    asked = ~before & (rng.random(n) < probability)
    tested = before | asked
    frame = pd.DataFrame(
        {
            "who": [f"{i:03d}" for i in rng.permutation(n)],
            "x": rng.normal(size=n),
            "y": np.where(tested, rng.integers(0, 2, n), np.nan),
        }
    )
    people = pd.DataFrame({"row": np.arange(n), "who": frame["who"], "probability": probability})
    people = people.assign(drawn=asked)[~before]
    people.to_csv(tmp_path / "next.csv", index=False)
    return frame, people, probability, tmp_path / "next.csv"


def chances(frame, path, **more):
    roles = Roles(label="y", testing_probability=str(path), **more)
    return read_table(frame, roles).problem.testing_probability


def test_people_are_found_by_identifier_in_any_order(drawn):
    frame, _, probability, path = drawn
    order = np.random.default_rng(1).permutation(len(frame))
    found = chances(frame.iloc[order].reset_index(drop=True), path, id="who")
    np.testing.assert_allclose(found, probability[order])


def test_rows_are_found_by_position_without_one(drawn):
    frame, _, probability, path = drawn
    np.testing.assert_allclose(chances(frame, path, exclude="who"), probability)
    visits = frame.assign(who=np.arange(len(frame)) // 2)  # people with two rows each
    listed = pd.read_csv(path, dtype={"who": str})
    listed.assign(who=listed["row"] // 2).to_csv(path, index=False)
    np.testing.assert_allclose(chances(visits, path, id="who"), probability)


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
@pytest.mark.parametrize("roles", [{"exclude": "who"}, {"id": "who"}])
def test_rows_that_are_left_out_do_not_shift_the_others(drawn, roles):
    frame, _, probability, path = drawn
    weight = np.arange(len(frame)) % 3
    day = np.arange(len(frame)) % 5
    found = chances(frame.assign(w=weight, day=day), path, weight="w", time="day", until=3, **roles)
    np.testing.assert_allclose(found, probability[(weight > 0) & (day <= 3)])
    unlisted = frame.assign(w=weight, day=day, y=np.where(np.arange(200) == 101, np.nan, frame.y))
    pd.read_csv(path, dtype={"who": str}).query("row != 101").to_csv(path, index=False)
    with pytest.raises(InputError, match=r"1 of \d+ rows \(first: 101\), which are untested"):
        chances(unlisted, path, weight="w", time="day", until=3, **roles)


def test_a_certain_draw_is_told_from_an_earlier_test(drawn):
    frame, people, _, path = drawn
    people.assign(probability=1.0).to_csv(path, index=False)
    found = chances(frame, path, id="who")
    assert ((found < 1) == frame.index.isin(people["row"])).all()
    assert found.min() > 0.999


def test_what_is_estimated_by_the_design(tmp_path):
    """Old tests with 1 and drawn ones with their probability: the total is met without bias."""
    rng = np.random.default_rng(0)
    n = 3000
    y = rng.random(n) < np.where(np.arange(n) < n / 2, 0.6, 0.1)
    before = (np.arange(n) < n / 2) & (rng.random(n) < 0.5)  # of the first half alone
    means = []
    for _ in range(20):
        drawn = ~before & (rng.random(n) < 0.2)
        people = pd.DataFrame({"row": np.flatnonzero(~before), "probability": 0.2})
        people.to_csv(tmp_path / "next.csv", index=False)
        frame = pd.DataFrame({"x": rng.normal(size=n), "y": np.where(before | drawn, y, np.nan)})
        found = chances(frame, tmp_path / "next.csv")
        means.append(np.nansum(frame["y"] / found) / n)
    assert np.mean(means) == pytest.approx(y.mean(), abs=0.01)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda frame, people: (frame.iloc[:150], people), "not in the table"),
        (lambda frame, people: (frame, people.iloc[:-5]), "does not list"),
        (lambda frame, people: (frame, pd.concat([people, people[:1]])), "twice"),
        (lambda frame, people: (frame, people.drop(columns="probability")), "probability"),
        (lambda frame, people: (frame, people.assign(probability=np.nan)), "unusable"),
    ],
)
def test_what_does_not_fit_is_refused(drawn, damage, said):
    frame, people, _, path = drawn
    frame, people = damage(frame, people)
    people.to_csv(path, index=False)
    with pytest.raises(InputError, match=said):
        chances(frame.reset_index(drop=True), path, id="who")


def test_another_order_without_people_of_one_row_is_refused(drawn):
    frame, _, _, path = drawn
    listed = pd.read_csv(path, dtype={"who": str})
    listed.assign(who=listed["row"] // 2).to_csv(path, index=False)
    visits = frame.assign(who=np.arange(len(frame)) // 2).iloc[::-1].reset_index(drop=True)
    with pytest.raises(InputError, match="order"):
        chances(visits, path, id="who")


def test_tests_beside_the_draw_are_mentioned(drawn):
    frame, people, _, path = drawn
    people.assign(drawn=~people["drawn"]).to_csv(path, index=False)
    with pytest.warns(DataWarning) as said:
        chances(frame, path, id="who")
    texts = [str(one.message) for one in said]
    assert any("have no result" in text for text in texts)
    assert any("did not draw" in text for text in texts)


@pytest.mark.parametrize("known", [True, False], ids=["by person", "by position"])
def test_whoever_still_waits_for_an_earlier_result_is_left_out(tmp_path, known) -> None:
    """`next-tests` does not list them; nobody drew them, and there is no result to learn from."""
    frame = pd.DataFrame(
        {
            "who": [f"p{i}" for i in range(60)],
            "x": np.arange(60.0),
            "y": (["yes", "no", "no", "not done", "pending"] * 12),
        }
    )
    untested = frame.index[frame["y"] == "not done"]
    path = tmp_path / "next.csv"
    pd.DataFrame({"row": untested, "who": frame["who"][untested], "probability": 0.25}).to_csv(
        path, index=False
    )
    frame.loc[untested[:3], "y"] = "yes"
    frame.loc[4, "y"] = "no"  # came in meanwhile
    roles = Roles(
        label="y",
        positive=("yes",),
        untested_value=("not done", "pending"),
        id="who" if known else None,
        exclude=() if known else ("who",),
        testing_probability=str(path),
    )
    with pytest.warns(DataWarning, match="11 rows still wait"):
        problem = read_table(frame, roles).problem
    assert len(problem) == 49
    assert problem.testing_probability.tolist() == [0.25 if i in untested else 1.0
                                                    for i in range(60)
                                                    if frame["y"][i] != "pending"]  # fmt: skip
