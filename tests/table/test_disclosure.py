"""What all of a small group have in common is as secret as what few of them have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.reader import EVERYBODY, Reader

from dcem.table.disclosure import (
    ENOUGH,
    SMALL,
    THRESHOLD,
    WITHHELD,
    Shown,
    few_people,
    hide_groups,
    hide_small,
    tellable_shares,
)
from dcem.table.labels import SelectiveLabels

Group = tuple[int, int, int]  # rows, tested, positive


def shown(*groups: Group) -> list[dict[str, Shown]]:
    cells = ("rows", "tested", "positive")
    return hide_groups([dict(zip(cells, group, strict=True)) for group in groups])


LARGE = [(900, 400, 150), (700, 300, 90)]


def reads(groups: list[Group]) -> Reader:
    """What a reader knows by the counts and by the marks in place of the others."""
    names = [str(i) for i in range(len(groups))]
    reader = Reader(names)
    for name, counts in zip([*names, EVERYBODY], shown(*groups), strict=True):
        for cell, value in counts.items():
            reader.hears_count(name, cell, value)
            if value == WITHHELD:
                reader.hears(reader.of(name, cell), 10, np.inf)
    return reader


@pytest.mark.parametrize(
    ("group", "secret"),
    [
        ((49, 12, 12), "negative"),
        ((49, 12, 0), "positive"),
        ((25, 25, 12), "untested"),
        ((25, 0, 0), "tested"),
        ((29, 29, 29), "negative"),
    ],
)
def test_nobody_out_of_a_small_group_cannot_be_worked_out(group: Group, secret: str) -> None:
    low, high = reads([*LARGE, group]).learns("2", secret)
    assert low < high


def test_twelve_positives_of_twelve_are_not_shown_beside_each_other() -> None:
    *_, of_group, everybody = shown(*LARGE, (49, 12, 12))
    assert WITHHELD in (of_group["tested"], of_group["positive"])
    assert everybody == {"rows": 1649, "tested": 712, "positive": 252}  # totals stay


def test_of_a_large_group_nobody_and_everybody_are_told() -> None:
    for group in ((200, ENOUGH, 0), (200, ENOUGH, ENOUGH), (200, 200, 90), (200, 0, 0)):
        found = shown(*LARGE, group)
        assert found[2]["rows"] == 200
        assert WITHHELD not in [value for one in found for value in one.values()]


def test_what_is_so_in_the_whole_table_is_told() -> None:
    found = shown((900, 900, 150), (25, 25, 11))
    assert found[1] == {"rows": 25, "tested": 25, "positive": 11}
    found = shown((900, 400, 0), (60, 25, 0))
    assert [one["tested"] for one in found] == [400, 25, 425]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(*[st.sampled_from([0, 0, 4, 12, 20, 45])] * 3).filter(sum),
        min_size=1,
        max_size=3,
    )
)
def test_no_table_tells_what_all_of_a_small_group_have(parts: list[tuple[int, int, int]]) -> None:
    groups = [*LARGE, *((p + n + u, p + n, p) for p, n, u in parts)]
    reader = reads(groups)
    for place, (positive, negative, untested) in enumerate(parts, start=len(LARGE)):
        tested = positive + negative
        secrets = {"positive": positive, "negative": negative} if 0 < tested < ENOUGH else {}
        if tested + untested < ENOUGH:
            secrets |= {"tested": tested, "untested": untested}
        for cell, value in secrets.items():
            if value < THRESHOLD:
                low, high = reader.learns(str(place), cell)
                assert low < high, (groups, place, cell)


def test_visits_are_no_people() -> None:
    """Forty visits of twelve people who are all positive tell of twelve people."""
    rng = np.random.default_rng(0)
    result = np.r_[np.ones(40), np.full(40, np.nan), rng.integers(0, 2, 300), np.full(300, np.nan)]
    person = np.r_[np.arange(80) % 12, 100 + np.arange(600)]
    problem = SelectiveLabels.from_arrays(
        rng.normal(size=(680, 1)), result, group=np.repeat(["A", "B"], [80, 600]), id=person
    )
    assert few_people(problem)[0] == {"negative"}
    counts = problem.counts(small_cells=False)
    assert not {"tested", "positive"} <= {
        cell for cell in counts.columns if isinstance(counts.loc["A", cell], int)
    }


@pytest.mark.filterwarnings("ignore::dcem.DataWarning")
@pytest.mark.parametrize(
    ("yes", "told"),
    [
        ((30, 40, 50), "abc"),
        ((30, 40, 4), "b"),
        ((30, 4, 4), ""),
        ((30, 95, 50), "c"),
        ((0, 40, 50), "abc"),
    ],
)
def test_a_share_is_told_unless_it_shows_a_small_count(yes, told) -> None:
    """Of three groups of a hundred people; everybody's is told in all of these."""
    number, tested = np.arange(300), np.ones(300, bool)
    problem = SelectiveLabels.from_arrays(
        number[:, None], number % 2, tested=tested, group=np.repeat(["a", "b", "c"], 100)
    )
    found = tellable_shares(problem, number % 100 < np.repeat(yes, 100))
    assert found == {name: name in told for name in "abc"} | {"everybody": True}


def test_a_zero_is_still_marked_as_small() -> None:
    assert shown(*LARGE, (49, 12, 0))[2]["positive"] == SMALL


def test_sums_that_give_a_small_count_away_together_are_not_all_shown() -> None:
    """Half of (a and b) + (a and c) - (b and c) is a: no single sum narrows it."""
    counts = {"a": 5, "b": 200, "c": 300, "ab": 205, "ac": 305, "bc": 500}
    sums = [("ab", ("a", "b")), ("ac", ("a", "c")), ("bc", ("b", "c"))]
    found = hide_small(counts, sums, unseen=["a", "b", "c"], important=["bc", "ac", "ab"])
    assert found == {"a": SMALL, "b": WITHHELD, "c": WITHHELD, "ab": WITHHELD, "ac": 305, "bc": 500}
