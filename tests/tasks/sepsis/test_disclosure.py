"""No small count can be worked out from what is shown."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dcem.table.disclosure import SMALL, THRESHOLD, WITHHELD, Sum, hide_small
from dcem.tasks.sepsis.account import (
    FORMED,
    IMPORTANT,
    STEPS,
    Counts,
    count_flow,
    count_quality,
)
from dcem.tasks.sepsis.cohort import build_cohort


def test_a_small_step_of_a_flow() -> None:
    counts = {"all": 1000, "out1": 4, "left1": 996, "out2": 96, "left2": 900}
    sums = [("all", ("out1", "left1")), ("left1", ("out2", "left2"))]
    shown = hide_small(counts, sums)
    assert shown["out1"] == SMALL
    assert shown["left1"] == WITHHELD  # else 1000 - 996
    assert WITHHELD in (shown["out2"], shown["left2"])  # else 1000 - (96 + 900)


def test_a_table_with_margins() -> None:
    counts = {"n": 300, "a": 100, "b": 200, "a1": 3, "a0": 97, "b1": 80, "b0": 120}
    counts |= {"one": 83, "zero": 217}
    sums = [("n", ("a", "b")), ("n", ("one", "zero")), ("a", ("a1", "a0")), ("b", ("b1", "b0"))]
    sums += [("one", ("a1", "b1")), ("zero", ("a0", "b0"))]
    shown = hide_small(counts, sums)
    assert shown["a1"] == SMALL
    assert shown["a0"] == WITHHELD
    assert WITHHELD in (shown["b1"], shown["one"])


def test_two_small_parts_whose_sum_would_be_small() -> None:
    counts = {"all": 57, "x": 3, "y": 4, "z": 50}
    shown = hide_small(counts, [("all", ("x", "y", "z"))])
    assert shown["z"] == WITHHELD or shown["all"] == WITHHELD


def test_zero_is_shown_as_small_but_protects_nothing() -> None:
    shown = hide_small({"all": 100, "none": 0, "left": 100}, [("all", ("none", "left"))])
    assert shown == {"all": 100, "none": SMALL, "left": 100}


def test_large_counts_are_untouched() -> None:
    counts = {"all": 100, "x": 40, "y": 60}
    assert hide_small(counts, [("all", ("x", "y"))]) == counts


def test_show_all() -> None:
    counts = {"all": 100, "x": 1, "y": 99}
    assert hide_small(counts, [("all", ("x", "y"))], show_all=True) == counts


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 16), min_size=2, max_size=4), st.integers(0, 2))
def test_every_hidden_small_count_could_be_another(parts: list[int], split: int) -> None:
    """Enumerate all tables that agree with the page: each small count must take two values."""
    names = [f"p{i}" for i in range(len(parts))]
    counts = dict(zip(names, parts, strict=True))
    cut = 1 + split % (len(parts) - 1)
    counts["first"], counts["second"] = sum(parts[:cut]), sum(parts[cut:])
    counts["all"] = sum(parts)
    sums = [("first", tuple(names[:cut])), ("second", tuple(names[cut:]))]
    sums += [("all", ("first", "second"))]
    shown = hide_small(counts, sums)
    seen: dict[str, set[int]] = {name: set() for name in counts}
    ranges = []
    for name in names:
        value = shown[name]
        if isinstance(value, int):
            ranges.append([value])
        else:  # a reader knows a small count to be small and a withheld one not to be
            ranges.append(list(range(10)) if value == SMALL else list(range(10, 20)))
    for guess in itertools.product(*ranges):
        table = dict(zip(names, guess, strict=True))
        table |= {"first": sum(guess[:cut]), "second": sum(guess[cut:]), "all": sum(guess)}
        if all(table[name] == v for name, v in shown.items() if isinstance(v, int)):
            for name in counts:
                seen[name].add(table[name])
    for name, value in counts.items():
        if 0 < value < THRESHOLD:
            assert shown[name] == SMALL
            assert len(seen[name]) > 1, (counts, shown)


class Reader:
    """Solves the linear system of a page: the exact range of every count, by linear programming."""

    def __init__(self, names: Sequence[str], sums: Sequence[Sum]) -> None:
        self.place = {name: i for i, name in enumerate(names)}
        self.system = np.zeros((len(sums), len(names)))
        for row, (total, parts) in zip(self.system, sums, strict=True):
            row[self.place[total]] = 1
            row[[self.place[part] for part in parts]] = -1

    def learns(
        self,
        counts: Mapping[str, int],
        shown: Mapping[str, Any],
        unseen: Collection[str],
        *,
        any_is_enough: bool = False,
    ) -> list[str]:
        """Small counts of somebody that follow from the page."""
        plain, marked = [], []  # bounds: by the sums alone, and by "<10" and "withheld" too
        for name in self.place:
            value = shown[name]
            if name not in unseen and isinstance(value, int):
                plain.append((value, value))
                marked.append((value, value))
            else:
                plain.append((0, None))
                known = {SMALL: (0, THRESHOLD - 1), WITHHELD: (THRESHOLD, None)}
                marked.append((0, None) if name in unseen else known[value])
        learnt = []
        for name, count in counts.items():
            if 0 < count < THRESHOLD:
                most = self._end(name, plain, -1)
                low, high = self._end(name, marked, 1), self._end(name, marked, -1)
                if most < THRESHOLD - 1e-6 or high - low < 1e-6:
                    learnt.append(name)
                    if any_is_enough:
                        break
        return learnt

    def _end(self, name: str, bounds: list, sign: int) -> float:
        goal = np.zeros(len(self.place))
        goal[self.place[name]] = sign
        answer = linprog(goal, A_eq=self.system, b_eq=np.zeros(len(self.system)), bounds=bounds)
        if answer.status == 3:  # unbounded
            return float("inf")
        assert answer.status == 0
        return float(answer.x[self.place[name]])


@settings(max_examples=25)
@example([10, 9, 9], 30)  # the last two follow from 10 and 28: the 10 is withheld, and no end
@given(st.lists(st.integers(0, 25), min_size=3, max_size=6), st.integers(30, 200))
def test_no_flow_gives_a_small_step_away(removed: list[int], last: int) -> None:
    counts = {"left0": sum(removed) + last}
    sums: list[Sum] = []
    for i, count in enumerate(removed, start=1):
        counts |= {f"out{i}": count, f"left{i}": counts[f"left{i - 1}"] - count}
        sums.append((f"left{i - 1}", (f"out{i}", f"left{i}")))
    lefts = [f"left{i}" for i in range(len(removed) + 1)]
    unseen = set()
    for first, later in itertools.combinations(lefts, 2):
        name = f"{FORMED}{first}-{later}"
        counts[name] = counts[first] - counts[later]
        sums.append((first, (name, later)))
        unseen.add(name)
    ends = [lefts[-1], lefts[0]]
    shown = hide_small(counts, sums, unseen=unseen, important=ends)
    reader = Reader(list(counts), sums)
    assert reader.learns(counts, shown, unseen) == []
    numbers = [value for name, value in shown.items() if name in lefts and isinstance(value, int)]
    gaps = [a - b for a, b in itertools.combinations(numbers, 2)]
    assert not [gap for gap in gaps if 0 < gap < THRESHOLD]
    if sum(removed) >= THRESHOLD and set(removed) != {THRESHOLD - 1}:  # "<10" three times is 27
        assert [shown[name] for name in ends] == [counts[name] for name in ends]
    for name in [*lefts, *(f"out{i + 1}" for i in range(len(removed)))]:
        if shown[name] == WITHHELD:  # none without need
            better = {**shown, name: counts[name]}
            assert reader.learns(counts, better, unseen, any_is_enough=True)


def test_the_page_of_the_demo_gives_nothing_away_and_withholds_nothing_in_vain(
    demo: Path, demo_folder: Path
) -> None:
    build_cohort(demo, demo_folder / "told.parquet", work=demo_folder / "work")
    study = pd.read_parquet(demo_folder / "work" / "study.parquet")
    told = Counts()
    count_flow(told, study)
    counts, sums = dict(told.counts), list(told.sums)
    unseen = {name for name in counts if name.startswith(FORMED)}
    shown = hide_small(counts, sums, unseen=unseen, important=IMPORTANT)
    reader = Reader(list(counts), sums)
    assert reader.learns(counts, shown, unseen) == []
    withheld = [name for name in set(counts) - unseen if shown[name] == WITHHELD]
    for name in withheld:
        better = {**shown, name: counts[name]}
        assert reader.learns(counts, better, unseen, any_is_enough=True), name
    lefts = [shown[f"left:{step}"] for step in STEPS]
    assert lefts == [136, 100, 90, WITHHELD, WITHHELD, 40, 40, WITHHELD, WITHHELD, 16]
    # The whole page, with the features' missing values among its counts.
    final = study[study["left_out_because"].isna()]
    count_quality(told, final, pd.DataFrame(columns=["measure", "verdict", "n"]))
    counts, sums = told.counts, told.sums
    shown = hide_small(counts, sums, unseen=unseen, important=IMPORTANT)
    assert Reader(list(counts), sums).learns(counts, shown, unseen) == []
