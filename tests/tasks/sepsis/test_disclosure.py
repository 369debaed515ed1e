"""No small count can be worked out from what is shown."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from dcem.disclosure import SMALL, THRESHOLD, WITHHELD, hide_small


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
