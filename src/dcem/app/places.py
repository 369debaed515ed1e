"""A table that can be chosen, and what it seems to hold: its first rows, the kind of each column.

It is a file, one of the tables in a file, or a folder of Parquet files. Only its first rows are
looked at; what is decided from them is a proposal, and the commands look at all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from dcem.files import stamp
from dcem.table import values
from dcem.table.columns import guess_kind
from dcem.table.formats import DATABASES, parquet_files, tables_within
from dcem.table.read import READ_SUFFIXES, notes, plain_types, read_batches, read_header

LOOKED_AT = 30_000  # rows, about
FIRST = 8  # rows that are shown
EXAMPLES = 3
LONGEST = 40  # characters of a cell that are shown
MOST_VALUES = 60  # of a column whose values are asked for one by one

Find = TypeVar("Find", bound=Callable[..., Any])


@dataclass(frozen=True)
class Place:
    """Where a table is: its path and, of a database or a workbook, which table of it."""

    path: Path
    query: str | None = None

    @property
    def name(self) -> str:
        """What it is called on a page."""
        if self.query is None:
            return self.path.name
        plain = re.fullmatch(r'SELECT \* FROM "(.*)"', self.query)
        return f"{self.path.name}: {plain[1] if plain else self.query}"

    @property
    def files(self) -> list[Path]:
        """The files that hold it."""
        return parquet_files(self.path) if self.path.is_dir() else [self.path]

    @property
    def stamp(self) -> tuple[int, int]:
        """When it was changed, and its bytes: the same for as long as nobody touches it."""
        about = [file.stat() for file in self.files]
        return max((one.st_mtime_ns for one in about), default=0), sum(one.st_size for one in about)

    def exists(self) -> bool:
        """Whether it is there."""
        return self.path.exists() and looks_readable(self.path)

    def header(self) -> list[str]:
        """The names of its columns."""
        return read_header(self.path, self.query)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Its rows in order, a batch at a time."""
        wanted = self.header() if columns is None else columns
        return read_batches(self.path, columns, verbatim=wanted, query=self.query)

    def first_rows(self, most: int) -> tuple[pa.Table, bool]:
        """The first rows, about so many, and whether these are all."""
        found: list[pa.RecordBatch] = []
        for batch in self.batches():
            if sum(one.num_rows for one in found) >= most:
                return pa.Table.from_batches(found), False
            found.append(batch)
        if not found:
            return pa.table({name: pa.array([], pa.string()) for name in self.header()}), True
        return pa.Table.from_batches(found), True

    def notes(self) -> tuple[str, ...]:
        """What a person should know about how the file is laid out."""
        return notes(self.path, self.query)


def looks_readable(path: Path) -> bool:
    """Whether it can be read, by its name; or a folder of Parquet files."""
    if path.is_dir():
        parts = path.glob("*.parquet"), path.glob("*=*/**/*.parquet")
        return any(next(found, None) for found in parts)
    return path.name.lower().endswith(READ_SUFFIXES)


def choices(path: Path) -> dict[str, str]:
    """What there is to choose from in a file: name and query; empty if it is one table."""
    found = tables_within(path)
    return found if len(found) > 1 else {}


def takes_sql(path: Path) -> bool:
    """Whether rows can be asked for in SQL."""
    return path.suffix.lower() in DATABASES


def once(most: int) -> Callable[[Find], Find]:
    """Remember what is found of the latest `most` tables, for as long as these do not change."""

    def remembering(find: Any) -> Any:
        found = lru_cache(maxsize=most)(lambda stamp, place, *more: find(place, *more))
        return wraps(find)(lambda place, *more: found(tuple(map(stamp, place.files)), place, *more))

    return remembering


@dataclass(frozen=True)
class ColumnPreview:
    """One column, by the first rows."""

    name: str
    kind: str
    missing: float
    distinct: int
    examples: tuple[str, ...]
    note: str


@dataclass(frozen=True)
class Preview:
    """A table, by its first rows."""

    columns: tuple[ColumnPreview, ...]
    rows: tuple[tuple[str, ...], ...]  # the cells of a few rows as text, missing ones empty
    looked_at: int  # rows
    whole: bool  # whether these are all
    notes: tuple[str, ...]  # what a person should know about how the file is laid out


@once(8)
def preview(place: Place) -> Preview:
    """Look at a table."""
    names = place.header()
    first, whole = place.first_rows(LOOKED_AT)
    table = plain_types(first)
    columns = tuple(_column_preview(name, table.column(name)) for name in names)
    head = table.slice(0, FIRST).to_pydict()
    rows = tuple(
        tuple(_cut(head[name][row]) for name in names) for row in range(min(FIRST, table.num_rows))
    )
    return Preview(columns, rows, table.num_rows, whole, place.notes())


def _column_preview(name: str, column: pa.ChunkedArray) -> ColumnPreview:
    found = guess_kind(name, column)
    examples: list[str] = []
    for value in column.slice(0, 1000).to_pylist():
        text = _cut(value)
        if text and text not in examples:
            examples.append(text)
        if len(examples) == EXAMPLES:
            break
    return ColumnPreview(
        name, found.kind, found.missing, found.distinct, tuple(examples), found.note
    )


def _cut(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


@once(32)
def values_of(place: Place, column: str) -> tuple[tuple[str, int], ...]:
    """The distinct values of a column in all rows with their counts, the most frequent first.

    Empty if there are too many to be asked for one by one.
    """
    counts: dict[str, int] = {}
    for batch in place.batches([column]):
        text = values.coded(pa.chunked_array([batch.column(0)]))
        for value, count in zip(text.values, text.counts().tolist(), strict=True):
            counts[value] = counts.get(value, 0) + count
        if len(counts) > MOST_VALUES:
            return ()
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
