"""What a table seems to hold: its first rows, the kind of each column, the values of one.

Looks at the first rows of a file, however long it is; what is decided from them is a proposal, and
the commands look at all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from dcem.app.places import Place
from dcem.table import values
from dcem.table.columns import guess
from dcem.table.read import plain_types

LOOKED_AT = 30_000  # rows, about
FIRST = 8  # rows that are shown
EXAMPLES = 3
LONGEST = 40  # characters of a cell that are shown
MOST_VALUES = 60  # of a column whose values are asked for one by one


@dataclass(frozen=True)
class Seen:
    """One column, by the first rows."""

    name: str
    kind: str
    missing: float
    distinct: int
    examples: tuple[str, ...]
    note: str


@dataclass(frozen=True)
class Look:
    """A table, by its first rows.

    Attributes
    ----------
    columns, rows
        Every column; the cells of a few rows as text, missing ones empty.
    looked_at, whole
        How many rows were looked at, and whether these are all.
    notes
        What a person should know about how the file is laid out.
    """

    columns: tuple[Seen, ...]
    rows: tuple[tuple[str, ...], ...]
    looked_at: int
    whole: bool
    notes: tuple[str, ...]


def look(place: Place) -> Look:
    """Look at a table; once, for as long as it does not change."""
    return _look(place, place.stamp)


@lru_cache(maxsize=8)
def _look(place: Place, stamp: tuple[int, int]) -> Look:
    names = place.header()
    first, whole = place.first_rows(LOOKED_AT)
    table = plain_types(first)
    columns = tuple(_seen(name, table.column(name)) for name in names)
    head = table.slice(0, FIRST).to_pydict()
    rows = tuple(
        tuple(_short(head[name][row]) for name in names)
        for row in range(min(FIRST, table.num_rows))
    )
    return Look(columns, rows, table.num_rows, whole, place.notes())


def _seen(name: str, column: pa.ChunkedArray) -> Seen:
    found = guess(name, column)
    examples: list[str] = []
    for value in column.slice(0, 1000).to_pylist():
        text = _short(value)
        if text and text not in examples:
            examples.append(text)
        if len(examples) == EXAMPLES:
            break
    return Seen(name, found.kind, found.missing, found.distinct, tuple(examples), found.note)


def _short(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def values_of(place: Place, column: str) -> tuple[tuple[str, int], ...]:
    """The distinct values of a column in all rows with their counts, the most frequent first.

    Empty if there are too many to be asked for one by one.
    """
    return _values_of(place, column, place.stamp)


@lru_cache(maxsize=32)
def _values_of(place: Place, column: str, stamp: tuple[int, int]) -> tuple[tuple[str, int], ...]:
    counts: dict[str, int] = {}
    for batch in place.batches([column]):
        text = values.coded(pa.chunked_array([batch.column(0)]))
        for value, count in zip(text.values, text.counts().tolist(), strict=True):
            counts[value] = counts.get(value, 0) + count
        if len(counts) > MOST_VALUES:
            return ()
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
