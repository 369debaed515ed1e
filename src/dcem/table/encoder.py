"""From raw columns to numbers, learnt once on the table that a model is fitted to.

* A number stays itself; a missing one is NaN (a method fills it and adds an indicator).
* Yes and no become 1 and 0; a date becomes days since 1970, a time of day hours.
* A category gets one indicator a frequent level (`insulin=Steady`), one for all others together
  (`=(other)`, where levels not seen before go too), and one for missing values (`=(missing)`).
  A category that is never missing and has two levels needs only one indicator. Where hardly anybody
  had another level or none in training, such a value has no indicator: all of them are 0, or the
  only one is NaN, and `Encoder.unread_notes` tells of it.

What is learnt is small and names nobody: levels that at least ten people have, and no values of
numbers or dates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from dcem.table import dates, values
from dcem.table.marks import Marks, as_learnt, marks_on, marks_to_learn
from dcem.table.read import as_arrow
from dcem.table.roles import missing_in
from dcem.text import counted, percent

OTHER, MISSING = "(other)", "(missing)"
STRANGE = 0.05  # share of a column's cells that may be unheard of before it is worth a word
NEITHER = {"number": "not numbers", "boolean": "neither yes nor no"}  # of cells not read
BLOCK = 65_536  # rows encoded at a time: their features stay in the cache


@dataclass(frozen=True)
class Encoding:
    """How one raw column becomes features; only a category has levels."""

    name: str
    kind: str  # "number", "boolean", "date", "time" or "category"
    levels: tuple[str, ...] = ()  # those with an indicator of their own
    other: bool = False  # whether rarer levels have one
    missing: bool = False  # whether missing values have one
    from_numbers: bool = False  # whether levels are numbers: "3.0" and "$3" are the level "3"
    date_format: str | None = None  # of a date or a time that is stored as text, or as a number
    decimal: str | None = None  # a comma, if numbers in text had it; a point is not mentioned
    thousands: str | None = None  # what parted them there: a point or a comma

    @property
    def is_single(self) -> bool:
        """Whether a category is one indicator: two levels, or one level and missing values."""
        return len(self.levels) + self.other + self.missing == 2

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, in the order of their columns."""
        if self.kind != "category":
            return (self.name,)
        marks = [*self.levels, *[OTHER] * self.other, *[MISSING] * self.missing]
        return tuple(f"{self.name}={mark}" for mark in (marks[1:] if self.is_single else marks))

    def learning_marks(self, table: pa.Table) -> Encoding:
        """This encoding, with what commas and points mean in its column of numbers in text."""
        column = table.column(self.name)
        if self.kind != "number" or not values.is_text(column):
            return self
        found = marks_to_learn(column, marks_on(table.schema.field(self.name)))
        return replace(self, decimal=found.decimal or None, thousands=found.thousands or None)

    def column_of(self, table: pa.Table) -> pa.ChunkedArray:
        """Its raw column, with commas and points as they were in training."""
        column = table.column(self.name)
        if not (self.decimal or self.thousands) or not values.is_text(column):
            return column
        learnt = Marks(self.decimal or "", self.thousands or "")
        return as_learnt(column, marks_on(table.schema.field(self.name)), learnt)

    def encode(self, column: pa.ChunkedArray, missing: Sequence[str], out: np.ndarray) -> int:
        """Write the features of a raw column into `out [n, features]`.

        Returns how many cells hold something that cannot be determined: no number in a column of
        numbers, no date among dates, no level of its own among categories.
        """
        if self.kind == "number":
            out[:, 0], unread = values.numbers_and_unread(column, missing)
        elif self.kind in ("date", "time"):
            out[:, 0], unread = dates.days_and_unread(column, self.date_format, missing)
        elif self.kind == "boolean":
            text = values.coded(column, missing)
            meant = values.yes_no(text.values)
            out[:, 0], unread = text.take(meant, np.nan), values.unread(text, meant)
        else:
            unread = self._indicators(values.coded(column, missing), out)
        return unread

    def _indicators(self, text: values.Coded, out: np.ndarray) -> int:
        n_marks = len(self.levels) + self.other + self.missing
        nowhere = n_marks  # a level that has no indicator: all of them stay 0
        rest = len(self.levels) if self.other else nowhere
        absent = n_marks - 1 if self.missing else nowhere
        places = self._places(text.values, absent)
        codes = [rest if place is None else place for place in places]
        marks = text.take(np.array(codes, np.int64), absent)
        if self.is_single:
            out[:, 0] = marks == 1
            unknown = marks == nowhere
            if unknown.any():  # neither of the two: not known to be one of them
                out[unknown, 0] = np.nan
        else:
            table = np.vstack([np.eye(n_marks), np.zeros(n_marks)]).astype(out.dtype)
            out[:] = table[marks]
        strange = [i for i, place in enumerate(places) if place is None]
        return int(text.counts()[strange].sum()) if strange else 0

    def _places(self, found: Sequence[str], absent: int) -> list[int | None]:
        """The place of each value among the levels; `absent` for a word for a missing number."""
        place = {level: i for i, level in enumerate(self.levels)}
        if not self.from_numbers:
            return [place.get(value) for value in found]
        names = values.number_names(self.levels)  # 1.10 is 1.1, unless both are levels
        named = {name: i for i, name in enumerate(names) if names.count(name) == 1}
        place |= {
            v: absent for v in found if v.casefold() in values.NOT_A_NUMBER and v not in place
        }
        pairs = zip(found, values.number_names(found), strict=True)
        return [place.get(value, named.get(name)) for value, name in pairs]


@dataclass(frozen=True)
class Encoder:
    """All columns that a model reads, and what each becomes."""

    encodings: tuple[Encoding, ...]
    missing: tuple[str, ...] = ()  # spellings of a missing value

    @property
    def columns(self) -> tuple[str, ...]:
        """Raw columns that a table must have to be encoded."""
        return tuple(encoding.name for encoding in self.encodings)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded features."""
        return tuple(name for encoding in self.encodings for name in encoding.features)

    @property
    def sources(self) -> tuple[str, ...]:
        """The raw column of each encoded feature."""
        return tuple(encoding.name for encoding in self.encodings for _ in encoding.features)

    @property
    def dates(self) -> tuple[str, ...]:
        """The raw columns that are dates: their features are days since 1 January 1970."""
        return tuple(encoding.name for encoding in self.encodings if encoding.kind == "date")

    def missing_in(self, column: str) -> tuple[str, ...]:
        """What stands for a missing value in a column."""
        return missing_in(column, self.missing)

    def transform(self, table: Any, dtype: str = "float64") -> np.ndarray:
        """Features `[n, d]` of a raw table: an Arrow table or batch, a pandas or polars frame.

        Rows keep their order. Columns that are not needed are ignored; one that is needed and not
        there is an error.
        """
        return self.read(table, dtype)[0]

    def read(self, table: Any, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
        """`transform`, and how many cells of each raw column could not be read `[columns]`."""
        table = as_arrow(table, self.columns)
        for name, column in zip(table.column_names, table.columns, strict=True):
            values.require_known(column, name)
        out = np.empty((table.num_rows, len(self.feature_names)), dtype)
        unread = np.zeros(len(self.encodings), np.int64)
        for first in range(0, table.num_rows, BLOCK):
            block, rows = table.slice(first, BLOCK), out[first : first + BLOCK]
            start = 0
            for number, encoding in enumerate(self.encodings):
                stop = start + len(encoding.features)
                raw = encoding.column_of(block)
                unread[number] += encoding.encode(
                    raw, self.missing_in(encoding.name), rows[:, start:stop]
                )
                start = stop
        return out, unread

    def unread_notes(
        self, unread: np.ndarray, rows: int, usual: Mapping[str, float], rare: float = STRANGE
    ) -> Iterator[str]:
        """A sentence for each column with many cells that could not be read.

        `unread [columns]` counts them among `rows`; `usual` is the mean of each feature in
        training. A category without a place for other levels is told of from the share `rare` on.
        """
        for encoding, cells in zip(self.encodings, unread.tolist(), strict=True):
            share = cells / max(rows, 1)
            if encoding.kind != "category":
                if share > STRANGE:
                    written = encoding.date_format or dates.ISO
                    form = f"not {encoding.kind}s in the format {written} of the training table"
                    problem = NEITHER.get(encoding.kind, form)
                    yield f"{encoding.name}: {cells:,} cells are {problem} and count as missing."
                continue
            much = share - usual.get(f"{encoding.name}={OTHER}", 0.0) > STRANGE
            if encoding.levels and (much or (share > rare and not encoding.other)):
                many = f"{percent(share)} of the values were"
                if not much:
                    many = f"{counted(cells, 'value')} {'was' if cells == 1 else 'were'}"
                as_what = "other" if encoding.other else "none of the known levels"
                new = f"{many} rare or never seen in training"
                count = "counts" if many.endswith("was") else "count"
                yield f"{encoding.name}: {new} and {count} as {as_what}."

    def to_plain(self) -> dict[str, Any]:
        """The encoder as JSON knows it."""
        return {
            "missing": list(self.missing),
            "columns": [
                {
                    name: list(value) if isinstance(value, tuple) else value
                    for name, value in vars(encoding).items()
                    if value not in ((), False, None)
                }
                for encoding in self.encodings
            ],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Encoder:
        """The encoder that `to_plain` wrote."""
        encodings = [
            Encoding(**{**column, "levels": tuple(column.get("levels", ()))})
            for column in plain["columns"]
        ]
        return cls(tuple(encodings), tuple(plain["missing"]))
