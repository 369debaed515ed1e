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
import pyarrow.compute as pc

from dcem.table import dates, units, values
from dcem.table.marks import Marks, as_learnt, marks_on, marks_to_learn
from dcem.table.messages import listed_rows
from dcem.table.read import as_arrow
from dcem.table.roles import missing_in
from dcem.text import counted, percent

OTHER, MISSING = "(other)", "(missing)"
STRANGE = 0.05  # share of a column's cells that may be unheard of before it is worth a word
NEITHER = {"number": "not numbers", "boolean": "neither yes nor no"}  # of cells not read
FIRST = 5  # rows that are named
BLOCK = 65_536  # rows encoded at a time: their features stay in the cache

Strange = tuple[int, units.Why]  # cells that could not be read, and in which rows by the reason


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
    sign: str | None = None  # beside these numbers: "%" or a currency
    called: str | None = None  # its features, where those of another column have its name

    @property
    def is_single(self) -> bool:
        """Whether a category is one indicator: two levels, or one level and missing values."""
        return len(self.levels) + self.other + self.missing == 2

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, in the order of their columns."""
        if self.kind != "category":
            return (self.called or self.name,)
        own = [f"{level!r}" if level in (OTHER, MISSING) else level for level in self.levels]
        marks = [*own, *[OTHER] * self.other, *[MISSING] * self.missing]
        name = self.called or self.name
        return tuple(f"{name}={mark}" for mark in (marks[1:] if self.is_single else marks))

    def learning_marks(self, table: pa.Table, missing: Sequence[str] = ()) -> Encoding:
        """This encoding, with the commas, points and signs of its column of numbers in text."""
        column = table.column(self.name)
        if self.kind != "number" or not values.is_text(column):
            return self
        found = marks_to_learn(column, marks_on(table.schema.field(self.name)))
        sign = ""
        if pc.any(pc.match_substring_regex(column.cast(pa.string()), units.ANY_SIGN)).as_py():
            text = values.coded(column, missing)
            sign = units.usual_sign(text.values, text.counts())
        return replace(
            self,
            decimal=found.decimal or None,
            thousands=found.thousands or None,
            sign=sign or None,
        )

    def column_of(self, table: pa.Table) -> pa.ChunkedArray:
        """Its raw column, with commas and points as they were in training."""
        column = table.column(self.name)
        if not (self.decimal or self.thousands) or not values.is_text(column):
            return column
        learnt = Marks(self.decimal or "", self.thousands or "")
        return as_learnt(column, marks_on(table.schema.field(self.name)), learnt)

    def encode(self, column: pa.ChunkedArray, missing: Sequence[str], out: np.ndarray) -> Strange:
        """Write the features of a raw column into `out [n, features]`.

        Returns how many cells hold something that cannot be determined: no number in a column of
        numbers, no date among dates, no level of its own among categories. Of all but categories
        also in which rows, by the reason.
        """
        if self.kind == "category":
            return self._indicators(values.coded(column, missing), out), {}
        if self.kind == "number":
            commas = self.thousands == ","
            out[:, 0], why = units.numbers_as_learnt(column, missing, self.sign or "", commas)
        elif self.kind in ("date", "time"):
            out[:, 0], why = self._days(column, missing)
        else:
            text = values.coded(column, missing)
            meant = values.yes_no(text.values)
            out[:, 0], why = text.take(meant, np.nan), {}
            if len(rows := np.flatnonzero(values.unread_rows(text, meant))):
                why = {units.NO_NUMBER: rows}
        return sum(map(len, why.values())), why

    def _days(
        self, column: pa.ChunkedArray, missing: Sequence[str]
    ) -> tuple[np.ndarray, units.Why]:
        """Days or hours [n], and why cells are not read."""
        if values.is_date(column):
            return dates.days(column, self.date_format, missing), {}
        text, known = values.coded(column, missing), self.date_format or dates.ISO
        found = dates.each_day(text.values, known)
        alone, either = dates.in_another_order(text.values, known, found)
        order = known.partition(" from ")[0]
        other = f"have day, month and year in another order than {order} of the training table"
        why = {
            other: text.take(alone | either, False),
            units.NO_NUMBER: values.unread_rows(text, np.where(alone, 0.0, found)),
        }
        found[either] = np.nan
        rows = {reason: np.flatnonzero(odd) for reason, odd in why.items() if odd.any()}
        return text.take(found, np.nan), rows

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


def distinct(encodings: Sequence[Encoding]) -> tuple[Encoding, ...]:
    """Encodings whose features have different names.

    The level `b` of a column `x=a` and the level `a=b` of a column `x` would both be `x=a=b`.
    """
    each: list[Encoding] = []
    names: set[str] = set()
    for encoding in encodings:
        own, again = encoding, 1
        while names & {*own.features}:
            again += 1
            own = replace(encoding, called=f"{encoding.name} ({again})")
        names |= {*own.features}
        each.append(own)
    return tuple(each)


@dataclass(frozen=True, eq=False)
class Unread:
    """Cells of a table that a model could not read: how many of each raw column, and why.

    Attributes
    ----------
    cells
        How many of each raw column `[columns]`.
    why
        How many of a column and for which reason, and the first of their rows; categories have
        no reason. The reason is empty for cells that are no number or date at all.
    """

    cells: np.ndarray
    why: dict[tuple[int, str], tuple[int, tuple[int, ...]]]

    @classmethod
    def none(cls, columns: int) -> Unread:
        """No cells, of so many columns."""
        return cls(np.zeros(columns, np.int64), {})

    def add(self, column: int, strange: Strange, start: int) -> None:
        """Count the cells of a column of a block that begins with the row `start`."""
        self.cells[column] += strange[0]
        for reason, rows in strange[1].items():
            places = tuple((start + rows[:FIRST]).tolist())
            self._count((column, reason), len(rows), places)

    def later(self, start: int) -> Unread:
        """The same cells in a longer table, in which these rows begin with the row `start`."""
        moved = {
            key: (n, tuple(start + row for row in first)) for key, (n, first) in self.why.items()
        }
        return replace(self, why=moved)

    def _count(self, key: tuple[int, str], cells: int, first: tuple[int, ...]) -> None:
        before, rows = self.why.get(key, (0, ()))
        self.why[key] = before + cells, (*rows, *first)[:FIRST]


def joined(one: Unread | None, other: Unread | None) -> Unread | None:
    """The unread cells of two parts of a table, the second of which comes later."""
    if one is None or other is None:
        return one or other
    both = Unread(one.cells + other.cells, dict(one.why))
    for key, (cells, first) in other.why.items():
        both._count(key, cells, first)
    return both


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

    def read(self, table: Any, dtype: str = "float64") -> tuple[np.ndarray, Unread]:
        """`transform`, and the cells that could not be read."""
        table = as_arrow(table, self.columns)
        for name, column in zip(table.column_names, table.columns, strict=True):
            values.require_known(column, name)
        out = np.empty((table.num_rows, len(self.feature_names)), dtype)
        unread = Unread.none(len(self.encodings))
        for first in range(0, table.num_rows, BLOCK):
            block, rows = table.slice(first, BLOCK), out[first : first + BLOCK]
            start = 0
            for number, encoding in enumerate(self.encodings):
                stop = start + len(encoding.features)
                raw = encoding.column_of(block)
                strange = encoding.encode(raw, self.missing_in(encoding.name), rows[:, start:stop])
                unread.add(number, strange, first)
                start = stop
        return out, unread

    def raw_levels(self, table: pa.Table) -> dict[str, np.ndarray]:
        """Codes [n] of the values of each category with values that have no feature of their own.

        A missing value is -1.
        """
        found = {}
        for one in self.encodings:
            if one.kind == "category":
                text = values.coded(table.column(one.name), self.missing_in(one.name))
                if len(text.values) > len(one.levels):
                    found[one.name] = text.codes
        return found

    def unread_notes(
        self,
        unread: Unread,
        rows: int,
        usual: Mapping[str, float],
        rare: float = STRANGE,
    ) -> Iterator[str]:
        """A sentence for each column with many cells that could not be read.

        `unread` counts them among `rows`; `usual` is the mean of each feature in training. A
        category without a place for other levels is told of from the share `rare` on; numbers and
        dates in another unit always.
        """
        for (number, reason), (cells, first) in unread.why.items():
            encoding = self.encodings[number]
            if reason or cells / max(rows, 1) > STRANGE:
                written = encoding.date_format or dates.ISO
                form = f"not {encoding.kind}s in the format {written} of the training table"
                be = "is" if cells == 1 else "are"
                problem = reason or f"{be} {NEITHER.get(encoding.kind, form)}"
                many = f"{counted(cells, 'cell')} {problem}"
                count = "counts" if cells == 1 else "count"
                where = listed_rows(first, cells)
                yield f"{encoding.name}: {many} and {count} as missing ({where})."
        for encoding, cells in zip(self.encodings, unread.cells.tolist(), strict=True):
            share = cells / max(rows, 1)
            if encoding.kind != "category":
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

    def foreign_notes(self, unread: Unread, rows: int) -> tuple[str, ...]:
        """The sentences about numbers and dates in another unit than in training, and no others."""
        odd = {key: cells for key, cells in unread.why.items() if key[1]}
        return tuple(self.unread_notes(replace(unread, cells=0 * unread.cells, why=odd), rows, {}))

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
