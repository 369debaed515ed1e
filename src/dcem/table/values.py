"""The values of one raw column, as codes or as numbers; rows are never looped over.

Text is dictionary-encoded first, so that trimming, missing spellings and parsing are decided once
for each distinct value and carried to the rows by an integer lookup.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

# Missing values among numbers and dates. In a column of text these words are values: "None" may
# mean "never ordered", and "NA" may be Namibia.
NOT_A_NUMBER = frozenset({"na", "n/a", "nan", "null", "none", "nil", "-", ".", "#n/a"})
YES = frozenset({"yes", "y", "true", "t", "positive", "pos", "1", "1.0"})
NO = frozenset({"no", "n", "false", "f", "negative", "neg", "0", "0.0"})
DATE_FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "ISO8601",
    "%Y/%m/%d",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d.%m.%Y",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M",
    "%d.%m.%Y %H:%M",
    "%d-%b-%Y",
    "%d %b %Y",
)
LIMIT = re.compile(r"^[<>]=?\s*(?=[\d.])")  # "<0.5": a laboratory's limit of detection
SECONDS_A_DAY = 86_400.0


@dataclass(frozen=True)
class Coded:
    """A column as codes [n] into its distinct values; -1 where missing."""

    codes: np.ndarray
    values: tuple[str, ...]

    def counts(self) -> np.ndarray:
        """Rows of each value."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))

    def take(self, per_value: np.ndarray, missing: Any) -> np.ndarray:
        """An array over values [v] carried to the rows [n]."""
        return np.append(per_value, missing)[self.codes]


def is_number(column: pa.ChunkedArray) -> bool:
    """Whether Arrow stores numbers (not text that reads as such)."""
    kind = column.type
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether Arrow stores text, or a dictionary of it."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_known(column: pa.ChunkedArray) -> bool:
    """Whether it is of a kind that can be read at all: no lists, no structures."""
    simple = pa.types.is_boolean(column.type) or pa.types.is_null(column.type)
    return bool(simple or is_number(column) or is_text(column) or is_date(column))


def is_date(column: pa.ChunkedArray) -> bool:
    """Whether Arrow stores dates or times of day of a date."""
    return bool(pa.types.is_timestamp(column.type) or pa.types.is_date(column.type))


def coded(column: pa.ChunkedArray, missing: Collection[str] = ()) -> Coded:
    """Any column as text codes: blanks, nulls and the spellings in `missing` are missing.

    Numbers are spelled as a person would: 3, not 3.0, so that a code means the same in a CSV and
    in a Parquet file.
    """
    if pa.types.is_dictionary(column.type) and not is_text(column):
        column = column.cast(column.type.value_type)
    dictionary = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    array = dictionary.combine_chunks() if isinstance(dictionary, pa.ChunkedArray) else dictionary
    if isinstance(array, pa.ChunkedArray):  # no rows
        return Coded(np.empty(0, np.int64), ())
    spelled = array.dictionary
    if is_text(column):
        spelled = pc.utf8_trim_whitespace(spelled.cast(pa.string()))
    else:
        spelled = pa.array([_spell(value) for value in spelled.to_pylist()], pa.string())
    absent = pc.is_in(spelled, pa.array(["", *missing], pa.string()))
    # Two spellings that differ in blanks alone are one value: the distinct ones are coded again.
    known = pc.if_else(absent, pa.scalar(None, pa.string()), spelled).dictionary_encode()
    lookup = np.append(known.indices.fill_null(-1).to_numpy(zero_copy_only=False), -1)
    raw = array.indices.fill_null(len(spelled)).to_numpy(zero_copy_only=False)
    return Coded(lookup.astype(np.int64)[raw], tuple(known.dictionary.to_pylist()))


def _spell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return "" if value != value else str(int(value)) if value.is_integer() else repr(value)
    return str(value).strip()


def plainly(values: Sequence[str]) -> list[str]:
    """Numbers in text as a person would write them: "3.0" is "3"; other text as it is."""
    found = parsed(values)
    return [
        v if np.isnan(number) or not v[-1:].isdigit() or LIMIT.match(v) else _spell(float(number))
        for v, number in zip(values, found, strict=True)
    ]


def all_numbers(values: Sequence[str]) -> bool:
    """Whether every text is a number, and none is a code such as 007."""
    codes = any(re.match(r"^0\d", value) for value in values)
    return bool(values) and not codes and not np.isnan(parsed(values)).any()


def numbers(column: pa.ChunkedArray, missing: Collection[str] = ()) -> np.ndarray:
    """A column as float64 [n]; NaN where it is missing, infinite, or no number."""
    return numbers_and_unread(column, missing)[0]


def numbers_and_unread(
    column: pa.ChunkedArray, missing: Collection[str] = ()
) -> tuple[np.ndarray, int]:
    """`numbers`, and how many cells hold something that is no number."""
    strange = 0
    if is_number(column) and not missing:
        values = column.cast(pa.float64()).to_numpy()
        values = values if values.flags.writeable else values.copy()
    elif is_text(column) and (fast := _cast(column, missing)) is not None:
        values = fast
    else:
        text = coded(column, missing)
        found = parsed(text.values)
        values, strange = text.take(found, np.nan), unread(text, found)
    values[np.isinf(values)] = np.nan
    return values, strange


def unread(text: Coded, found: np.ndarray) -> int:
    """Cells that hold something other than a word for missing, and were read as NaN.

    `found [v]` is what was made of each distinct value.
    """
    lost = [
        i for i in np.flatnonzero(np.isnan(found)) if text.values[i].casefold() not in NOT_A_NUMBER
    ]
    return int(text.counts()[lost].sum()) if lost else 0


def plain_numbers(column: pa.ChunkedArray, missing: Collection[str]) -> np.ndarray | None:
    """Text to numbers in one sweep, if every cell is a number or missing and none a code (007)."""
    if not is_text(column) or pa.types.is_dictionary(column.type):
        return None
    if pc.any(pc.match_substring_regex(column, r"^\s*0\d|^[nN]")).as_py():
        return None
    return _cast(column, missing)


def _cast(column: pa.ChunkedArray, missing: Collection[str]) -> np.ndarray | None:
    """Text to numbers in one sweep, if every cell is a number or plainly missing."""
    if pa.types.is_dictionary(column.type):
        return None
    blank = pa.array(["", "NA", "NaN", "nan", *missing], column.type)
    try:
        cleaned = pc.if_else(pc.is_in(column, blank), pa.scalar(None, column.type), column)
        values = cleaned.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    return values if values.flags.writeable else values.copy()


def parsed(values: Sequence[str]) -> np.ndarray:
    """Each text as a number, NaN where it is none; "<0.5" is 0.5."""
    text = pd.Series(list(values), dtype=object)
    found = pd.to_numeric(text, errors="coerce").to_numpy(np.float64, copy=True)
    limits = [i for i in np.flatnonzero(np.isnan(found)).tolist() if LIMIT.match(values[i])]
    if limits:
        bare = pd.Series([LIMIT.sub("", values[i]) for i in limits], dtype=object)
        found[limits] = pd.to_numeric(bare, errors="coerce").to_numpy(np.float64)
    return found


def yes_or_no(values: Sequence[str]) -> np.ndarray | None:
    """1 for yes and 0 for no, if every value plainly says one of them; else None."""
    folded = [value.casefold() for value in values]
    if not folded or not all(value in YES | NO for value in folded):
        return None
    return np.array([float(value in YES) for value in folded])


def date_format(values: Sequence[str]) -> str | None:
    """The format in which (nearly) all values are dates, or None."""
    candidates = [value for value in values if value.casefold() not in NOT_A_NUMBER]
    if not candidates or not all(any(mark in v for mark in "-/. ") for v in candidates[:20]):
        return None
    for known in DATE_FORMATS:
        # A sample first: most formats fail on it already.
        if _dates(candidates[:200], known).notna().mean() < 0.95:
            continue
        if _dates(candidates, known).notna().mean() >= 0.95:
            return known
    return None


def days(column: pa.ChunkedArray, known: str | None, missing: Collection[str] = ()) -> np.ndarray:
    """A column of dates as days since 1 January 1970 [n], fractions for times of day."""
    return days_and_unread(column, known, missing)[0]


def days_and_unread(
    column: pa.ChunkedArray, known: str | None, missing: Collection[str] = ()
) -> tuple[np.ndarray, int]:
    """`days`, and how many cells hold something that is no such date."""
    if is_date(column):
        seconds = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        values = seconds.cast(pa.float64()).to_numpy() / (1e6 * SECONDS_A_DAY)
        return np.asarray(values), 0
    text = coded(column, missing)
    found = _days(_dates(text.values, known or "ISO8601"))
    return text.take(found, np.nan), unread(text, found)


def _dates(values: Sequence[str], known: str) -> pd.Series:
    text = pd.Series(list(values), dtype=object)
    return pd.to_datetime(text, format=known, errors="coerce", utc=True)


def _days(dates: pd.Series) -> np.ndarray:
    since = dates - pd.Timestamp(0, tz="UTC")
    return (since.dt.total_seconds() / SECONDS_A_DAY).to_numpy(np.float64)
