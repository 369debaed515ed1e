"""What a point and a comma mean in numbers that are text: each column decides for itself.

`3,5` has a decimal comma, and in `1,234,567` and `1,234.5` commas part thousands; of `1,234` alone
nobody knows, and so with points. What a file's reader did to a column travels with it, as metadata
of its field, and the encoder of a model keeps it: the same cell is the same number by every route.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dcem.table import values

KEY = b"dcem.marks"
# What may stand around a number: "< 0,6", "-3,5", "€ 12,50", "12,5 %".
BEFORE, AFTER = r"\s*(?:[<>≤≥]=?\s*)?[-+−$€£¥]?\s*", r"\s*[%€+]?\s*"
EXPONENT = r"[eE][-+−]?\d+"  # after it, a mark before is decimal: "1,5e-16"
SPACED = r"\d{1,3}(?:[ \x{A0}\x{202F}'’]\d{3})+"  # as Arrow reads patterns
DECIMAL_COMMA = rf"^({BEFORE}(?:{SPACED}|\d+)),(\d+(?:{EXPONENT})?{AFTER})$"
POINTS = rf"^{BEFORE}[1-9]\d{{0,2}}(?:\.\d{{3}})+(?:,\d+)?{AFTER}$"  # of thousands
DOUBTFUL = rf"^({BEFORE}[1-9]\d{{0,2}})\.(\d{{3}}{AFTER})$"
HUNDREDS, LONG = rf"^{BEFORE}[1-9]\d\d{AFTER}$", rf"^{BEFORE}\d{{4,}}{AFTER}$"  # whole numbers
EITHER = "separates thousands"  # of notes
UNREAD = "(decimals or thousands)"  # instead of a cell that contradicts the marks of its column


def _shapes(mark: str, other: str) -> tuple[str, str, str]:
    """Patterns of numbers in which a mark is decimal, parts thousands, or may do either."""
    grouped, by_others = (rf"[1-9]\d{{0,2}}(?:{one}\d{{3}})" for one in (mark, other))
    decimal = rf"(?:{SPACED}|0+|\d{{4,}}|{by_others}+){mark}\d+|\d+{mark}(?:\d{{1,2}}|\d{{4,}})"
    decimal += rf"|\d+{mark}\d+{EXPONENT}"
    thousands = rf"{grouped}{{2,}}(?:{other}\d*)?|{grouped}{other}\d+"
    return decimal, thousands, grouped


MEANINGS = "decimal", "thousands", "either"
SHAPES = {
    f"{meaning} {name}": rf"^{BEFORE}(?:{pattern}){AFTER}$"
    for name, mark, other in ((",", ",", r"\."), (".", r"\.", ","))
    for meaning, pattern in zip(MEANINGS, _shapes(mark, other), strict=True)
}
WHOLE = {"hundreds": HUNDREDS, "long": LONG}


@dataclass(frozen=True)
class Marks:
    """The marks of one column."""

    decimal: str = ""  # "," if decimal commas were found, or taken for such, and made points
    thousands: str = ""  # "." if points parted thousands and were removed; "," if commas do
    undecided: str = ""  # marks of which nothing in the column says what they mean

    def on(self, field: pa.Field) -> pa.Field:
        """The field of a column that knows them."""
        plain = "|".join((self.decimal, self.thousands, self.undecided))
        return field.with_metadata({**(field.metadata or {}), KEY: plain.encode()})


def marks_on(field: pa.Field) -> Marks | None:
    """The marks that the reader of a file found, if there were any in a column."""
    plain = (field.metadata or {}).get(KEY)
    return None if plain is None else Marks(*plain.decode().split("|"))


def find_marks(batches: Iterable[pa.RecordBatch], *, semicolons: bool) -> dict[str, Marks]:
    """The marks of each column of text that holds some, by all its rows.

    Commas that may be either are decimal if commas are so elsewhere in the table and nothing speaks
    against it; where nothing tells at all, if `semicolons` part the fields. Points that may be
    either are left, unless whole numbers beside them show that they part thousands.
    """
    seen: dict[str, set[str]] = {}
    shapes = SHAPES | WHOLE
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            known = seen.setdefault(name, set())
            new = [shape for shape in shapes if shape not in known]
            if _any(column, "|".join(shapes[shape] for shape in new)):
                known |= {shape for shape in new if _any(column, shapes[shape])}
    commas = any("decimal ," in known for known in seen.values())
    against = any({"decimal .", "thousands ,"} & known for known in seen.values())
    usual = semicolons if commas == against else commas
    return {
        name: _decided(known, usual, commas and not against)
        for name, known in seen.items()
        if known & SHAPES.keys()
    }


def _decided(seen: set[str], usual: bool, elsewhere: bool) -> Marks:
    """The marks of a column in which such shapes were `seen`.

    `usual`: commas that may be either are decimal. `elsewhere`: commas are decimal in this table
    and points are not; then points part thousands beside `850`, if no `1200` is written without.
    """
    comma, point = "decimal ," in seen, "decimal ." in seen
    if "thousands ," in seen:
        return Marks() if comma or "thousands ." in seen else Marks(thousands=",")
    if "thousands ." in seen:
        clear = not point or "either ." not in seen  # else all are left as text, which is told
        return Marks(",", "." * (not point)) if clear else Marks()
    open_point = "." if "either ." in seen and not point else ""
    if elsewhere and open_point and "hundreds" in seen and "long" not in seen:
        return Marks(",", ".")
    if comma:  # or two codes, where nothing else speaks of decimal commas
        return Marks(",", undecided=open_point) if usual else Marks(undecided="," + open_point)
    if "either ," not in seen:
        return Marks(undecided=open_point)
    return Marks(thousands=",") if point else Marks("," * usual, undecided="," + open_point)


def _any(column: Any, pattern: str) -> bool:
    return bool(pattern) and bool(pc.any(pc.match_substring_regex(column, pattern)).as_py())


def with_points(column: Any, marks: Marks | None) -> Any:
    """A column of a file as points alone: `3,5` as `3.5`, and `1.234,5` as `1234.5`."""
    if marks is None or not marks.decimal:
        return column
    column = _without_points(column, POINTS if marks.thousands == "." else SHAPES["thousands ."])
    return pc.replace_substring_regex(column, DECIMAL_COMMA, r"\1.\2")


def marks_to_learn(column: Any, here: Marks | None) -> Marks:
    """What a model should know of a column of numbers in text, which it then reads in `as_learnt`.

    Commas that are left in numbers part thousands, whoever wrote them.
    """
    found = here or Marks()
    cells = column.cast(pa.string())
    parted = _any(cells, SHAPES["thousands ,"]) or _any(cells, SHAPES["either ,"])
    return Marks(found.decimal, "," if parted else found.thousands)


def as_learnt(column: Any, here: Marks | None, learnt: Marks) -> Any:
    """A column of text with the marks that its column had when a model `learnt` it.

    `here` is what the reader of this table decided. What it left open is as it was then; of text
    that no reader has seen, a cell that may mean either where that would be a guess is not read.
    """
    if here is not None and not here.undecided:
        return column
    column = column.cast(pa.string())
    if learnt.thousands == ",":  # where the reader took commas for decimal
        undo = here is not None and here.decimal == "," and "," in here.undecided
        return pc.replace_substring_regex(column, DOUBTFUL, r"\1\2") if undo else column
    if learnt.thousands == "." and here is None:
        column = pc.if_else(pc.match_substring_regex(column, DOUBTFUL), UNREAD, column)
    column = _without_points(column, POINTS if learnt.thousands == "." else SHAPES["thousands ."])
    if learnt.decimal == "," and (here is None or not here.decimal):
        odd = pc.match_substring_regex(column, SHAPES["thousands ,"])
        column = pc.if_else(odd, UNREAD, column)
        column = pc.replace_substring_regex(column, DECIMAL_COMMA, r"\1.\2")
    return column


def _without_points(column: Any, pattern: str) -> Any:
    """The column with all points removed from cells like a pattern."""
    such = pc.match_substring_regex(column, pattern)
    if not pc.any(such).as_py():
        return column
    return pc.if_else(such, pc.replace_substring(column, ".", ""), column)


def doubts(table: pa.Table) -> Iterator[tuple[str, str]]:
    """Columns in which a mark may mean either, and what to say of how it was taken.

    Points are doubtful where other columns have decimal commas; commas where none plainly has.
    """
    found = {field.name: marks_on(field) or Marks() for field in table.schema}
    commas = any(one.decimal and "," not in one.undecided for one in found.values())
    for name, one in found.items():
        comma = one.decimal == "," and "," in one.undecided and not commas
        column = table.column(name)
        if (comma or (commas and "." in one.undecided)) and values.is_text(column):
            cells = column.cast(pa.string())
            such = cells.filter(pc.match_substring_regex(cells, DOUBTFUL))
            if len(such):
                yield name, taken(such[0].as_py().strip(), "comma" if comma else "point")


def taken(cell: str, mark: str) -> str:
    """What to say of a cell whose point, which was perhaps a comma, is read as decimal."""
    written = cell.replace(".", ",") if mark == "comma" else cell
    size = values.limits_parsed([cell])[0]
    return f"{written!r} is read as {size:g}: remove the {mark} if it {EITHER}"
