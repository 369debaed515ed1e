"""Signs beside numbers: a model reads `10.44%` only where it learnt percent, and € only for €.

A number with another sign than its column had in training is another quantity. It counts as
missing, and a note names the column and the rows; it is never read as if the sign were not there.
So with a comma that may be decimal or part thousands.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from dcem.table import values
from dcem.table.marks import UNREAD

PERCENT = "%"
CURRENCIES = frozenset("$€£¥")
SIGNS = CURRENCIES | {PERCENT}
ANY_SIGN = "[%$€£¥]"
DOUBTFUL_COMMA = re.compile(r"^[+-]?[1-9]\d{0,2},\d{3}$")  # "1,234"
WITH_COMMA = re.compile(r"^[+-]?\d+,\d+$")  # "3,5", where commas are not decimal
NO_NUMBER = ""  # why most cells are not read
BY_COMMA = "have a mark that may be decimal or separate thousands"
Why = dict[str, np.ndarray]  # reason -> rows


def sign(text: str) -> str:
    """The sign beside a number: "%", a currency, or nothing."""
    return next((letter for letter in text if letter in SIGNS), "")


def usual_sign(texts: Sequence[str], counts: np.ndarray) -> str:
    """The sign of a column of numbers with these values: the most frequent one.

    Numbers without a sign go with those of a currency, but not with percentages.
    """
    rows: Counter[str] = Counter()
    for text, count in zip(texts, counts.tolist(), strict=True):
        rows[sign(text)] += count
    money = [(count, mark) for mark, count in rows.items() if mark in CURRENCIES]
    plain = rows[""] + sum(count for count, _ in money)
    if rows[PERCENT] > plain:
        return PERCENT
    return max(money)[1] if money else ""


def why_foreign(mark: str, usual: str) -> str:
    """The reason why a number with this sign is not of a column with the usual one, or nothing."""
    if mark == usual or (not mark and usual in CURRENCIES):
        return ""
    if PERCENT in (mark, usual):
        return f"have {'a' if mark == PERCENT else 'no'} percent sign, unlike the training table"
    if usual:
        return f"are in {mark}, but were in {usual} in the training table"
    return f"have the sign {mark}, unlike the training table"


def are_foreign(texts: Sequence[str], sizes: np.ndarray, usual: str) -> np.ndarray:
    """Which values have another sign than the usual one; 0 is 0 with any."""
    odd = [bool(why_foreign(sign(text), usual)) for text in texts]
    return np.array(odd, bool) & (np.abs(sizes) > 0)


def numbers_as_learnt(
    column: pa.ChunkedArray, missing: Collection[str], usual: str, commas: bool
) -> tuple[np.ndarray, Why]:
    """A column as numbers [n], NaN where a cell is missing or not read; and why cells are not read.

    `usual` is the sign that the column had in training; `commas` says whether commas parted
    thousands there.
    """
    stored = values.is_number(column) or pa.types.is_boolean(column.type)
    plain = None if stored or not values.is_plain_text(column) else values.cast(column, missing)
    if stored or plain is not None:
        sizes, lost = values.within(plain) if plain is not None else values.stored(column, missing)
        why = {NO_NUMBER: np.flatnonzero(lost)} if lost.any() else {}
        if usual == PERCENT and (bare := np.abs(sizes) > 0).any():
            why[why_foreign("", usual)] = np.flatnonzero(bare)
            sizes[bare] = np.nan
        return sizes, why
    text = values.coded(column, missing)
    found = values.limits_parsed(text.values)
    reasons = [_reason(*cell, usual, commas) for cell in zip(text.values, found, strict=True)]
    found[[reason is not None for reason in reasons]] = np.nan
    why = {}
    for reason in dict.fromkeys(reasons):
        if reason is not None:
            of_values = np.array([one == reason for one in reasons])
            if len(rows := np.flatnonzero(text.take(of_values, False))):
                why[reason] = rows
    return text.take(found, np.nan), why


def _reason(text: str, size: float, usual: str, commas: bool) -> str | None:
    """Why a value is not read as a number; None if it is one, or missing."""
    bare = values.UNIT.sub("", values.LIMIT.sub("", text))
    if text == UNREAD or (not commas and DOUBTFUL_COMMA.match(bare)):
        return BY_COMMA
    if np.isnan(size) and WITH_COMMA.match(bare):
        return BY_COMMA
    if np.isnan(size):
        return None if text.casefold() in values.NOT_A_NUMBER else NO_NUMBER
    if abs(size) > values.LARGEST_VALUE:
        return NO_NUMBER
    return (size != 0 and why_foreign(sign(text), usual)) or None
