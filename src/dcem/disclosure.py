"""Small counts hidden, together with the counts that would give them away.

A page that is shared must not let a reader learn that, say, three patients had some trait. Hiding
the three is not enough: if 40 patients were left before a step and 37 after it, everybody can
subtract. So the counts are taken together with every sum that holds among them, and further counts
are hidden, smallest first, until no hidden small count follows from what is still shown.

A zero is shown as small like any other, but nothing else is hidden for its sake: a reader who
works out that it was zero has learnt of nobody. This protects against subtraction. It does not
protect against a reader who knows some patients already, nor against comparing two pages built
from different inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

THRESHOLD = 10
SMALL = f"<{THRESHOLD}"  # shown in place of a count under the threshold
WITHHELD = "withheld"  # shown in place of a count that would reveal a small one

Sum = tuple[str, tuple[str, ...]]  # the name of a total, and the names of its parts
Shown = int | str


def hide_small(
    counts: Mapping[str, int], sums: Sequence[Sum], *, show_all: bool = False
) -> dict[str, Shown]:
    """Every count, or in its place `SMALL` or `WITHHELD`.

    `sums` lists what a reader knows to add up.
    """
    if show_all:
        return dict(counts)
    names = list(counts)
    place = {name: column for column, name in enumerate(names)}
    relations = np.zeros((len(sums), len(names)))  # [sums, counts], each row: total - parts = 0
    for row, (total, parts) in enumerate(sums):
        relations[row, place[total]] = 1.0
        for part in parts:
            relations[row, place[part]] = -1.0
    value = np.array([counts[name] for name in names], dtype=float)
    small = value < THRESHOLD
    hidden = small.copy()
    while reveals := _what_reveals(relations, hidden, value):
        hidden[list(reveals)] = True
    return {
        name: (SMALL if small[i] else WITHHELD) if hidden[i] else counts[name]
        for i, name in enumerate(names)
    }


def _what_reveals(relations: np.ndarray, hidden: np.ndarray, value: np.ndarray) -> set[int]:
    """For each hidden small count that can be worked out, the smallest shown one that it takes."""
    found = set()
    for row in relations[relations[:, hidden].any(axis=1)]:
        parts, total = row < 0, row > 0
        if not (total & hidden).any():
            rest = value[total].sum() - value[parts & ~hidden].sum()
            if 0 < rest < THRESHOLD:  # together the hidden parts are a small count themselves
                shown = parts & ~hidden
                found.add(_smallest(shown if shown.any() else total, value))
    if found:
        return found
    somebody = (value > 0) & (value < THRESHOLD)
    for count, recipe in _worked_out(relations[:, hidden]):
        if somebody[hidden][count]:
            used = ~hidden & (np.abs(recipe @ relations) > 1e-9)
            if used.any():
                found.add(_smallest(used, value))
    return found or _what_pins_down(relations, hidden, value)


def _what_pins_down(relations: np.ndarray, hidden: np.ndarray, value: np.ndarray) -> set[int]:
    """The same for counts fixed by their bounds: two of "<10" that add up to 18 are nines.

    A reader knows a small count to be 0 to 9 and a withheld one to be at least 10; every sum
    narrows the bounds of its members, again and again until nothing changes.
    """
    small = value < THRESHOLD
    low = np.where(~hidden, value, np.where(small, 0, THRESHOLD))
    high = np.where(~hidden, value, np.where(small, THRESHOLD - 1, np.inf))
    narrowed = True
    while narrowed:
        before = (high - low).copy()
        for row in relations:
            total, parts = np.flatnonzero(row > 0), np.flatnonzero(row < 0)
            low[total] = np.maximum(low[total], low[parts].sum())
            high[total] = np.minimum(high[total], high[parts].sum())
            for part in parts:
                others = parts[parts != part]
                low[part] = np.maximum(low[part], (low[total] - high[others].sum()).max())
                high[part] = np.minimum(high[part], (high[total] - low[others].sum()).min())
        narrowed = bool((before > high - low).any())
    pinned = hidden & small & (value > 0) & (low == high)
    for count in np.flatnonzero(pinned):
        beside = (relations[relations[:, count] != 0] != 0).any(axis=0)
        anywhere = (relations[relations[:, hidden].any(axis=1)] != 0).any(axis=0)
        for near in (beside & ~hidden, anywhere & ~hidden):
            if near.any():
                return {_smallest(near, value)}
    return set()


def _worked_out(unknown: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """The hidden counts that the sums determine, each with the weights of the sums that do it.

    Gauss-Jordan elimination of [unknown | identity]: a count is determined if, in the end, its row
    holds no other hidden count. `unknown` is [sums, hidden].
    """
    rows, columns = unknown.shape
    table = np.hstack([unknown, np.eye(rows)])
    pivots: list[int] = []
    for column in range(columns):
        rank = len(pivots)
        if rank == rows:
            break
        best = rank + int(np.argmax(np.abs(table[rank:, column])))
        if abs(table[best, column]) < 1e-9:
            continue
        table[[rank, best]] = table[[best, rank]]
        table[rank] /= table[rank, column]
        touched = np.flatnonzero(np.abs(table[:, column]) > 1e-12)
        for row in touched[touched != rank]:
            table[row] -= table[row, column] * table[rank]
        pivots.append(column)
    left = np.abs(table[: len(pivots), :columns]) > 1e-9
    return [
        (column, table[row, columns:]) for row, column in enumerate(pivots) if left[row].sum() == 1
    ]


def _smallest(among: np.ndarray, value: np.ndarray) -> int:
    """Position of the smallest count; of equal ones the last, since totals are named first."""
    places = np.flatnonzero(among)[::-1]
    return int(places[np.argmin(value[places])])
