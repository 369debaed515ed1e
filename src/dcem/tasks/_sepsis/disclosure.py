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
    while (reveals := _what_reveals(relations, hidden, value)) is not None:
        hidden[reveals] = True
    return {
        name: (SMALL if small[i] else WITHHELD) if hidden[i] else counts[name]
        for i, name in enumerate(names)
    }


def _what_reveals(relations: np.ndarray, hidden: np.ndarray, value: np.ndarray) -> int | None:
    """The smallest shown count by which a hidden small one can be worked out, or None."""
    unknown = relations[:, hidden]  # [sums, hidden]
    somebody = (value > 0) & (value < THRESHOLD)
    # What the sums leave open spans their null space; a count that is zero in all of it is fixed.
    _, singular, directions = np.linalg.svd(unknown)
    open_ = directions[int((singular > 1e-9).sum()) :]  # [free directions, hidden]
    fixed = (np.abs(open_) < 1e-9).all(axis=0)
    for column in np.flatnonzero(fixed & somebody[hidden]):
        wanted = np.zeros(unknown.shape[1])
        wanted[column] = 1.0
        weights = np.linalg.lstsq(unknown.T, wanted, rcond=None)[0]  # [sums]
        used = ~hidden & (np.abs(weights @ relations) > 1e-9)
        if used.any():
            return _smallest(used, value)
    for row in relations:
        parts, total = row < 0, row > 0
        if (parts & hidden).any() and not (total & hidden).any():
            rest = value[total].sum() - value[parts & ~hidden].sum()
            if 0 < rest < THRESHOLD:  # together the hidden parts are a small count themselves
                return _smallest(parts & ~hidden if (parts & ~hidden).any() else total, value)
    return None


def _smallest(among: np.ndarray, value: np.ndarray) -> int:
    """Position of the smallest count; of equal ones the last, since totals are named first."""
    places = np.flatnonzero(among)[::-1]
    return int(places[np.argmin(value[places])])
