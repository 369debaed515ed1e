"""What kind of column is it? Guessed from the values, said aloud, and open to correction."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dcem.table import values
from dcem.table.encoder import Encoding

FEWEST = 10  # rows that a level needs to have an indicator, and to be written to a model
RARE = 0.005  # a level with a smaller share of the rows is "other"
MOST_LEVELS = 20  # indicators a column, the most frequent levels
SMALL_TABLE = 1000  # in a smaller one, a column must be constant to count as such
DISTINCT = 0.5  # text with more distinct values than this share of its rows names single rows
CODE_NAME = re.compile(r"(^|[_\W])(id|code|codes|cd|type|zip|postcode)$|(?<=[a-z])(Id|ID|Code)$")
ID_NAME = re.compile(r"(^|[_\W])(id|nbr|no|number|key|mrn|uuid|guid)$|(?<=[a-z])(Id|ID|Nr)$", re.I)
MOST_CODES = 50  # distinct integers that a column named like a code may have to be one


@dataclass(frozen=True)
class Column:
    """One column of the user's table, as it was understood.

    Attributes
    ----------
    name
        As in the file.
    role
        "feature", "label", "tested", "group", "id", "weight", "truth", "excluded" (as asked), or
        "left out" (as useless; `note` says why).
    kind
        "number", "boolean", "date", "category", "constant", "identifier" or "unknown".
    missing
        Share of rows without a value.
    levels
        Number of distinct values.
    encoded
        Names of the features it became.
    note
        What a person should know about how it was read.
    flag
        Why it may have been recorded after the labelling decision, or empty.
    """

    name: str
    role: str
    kind: str
    missing: float
    levels: int
    encoded: tuple[str, ...] = ()
    note: str = ""
    flag: str = ""


@dataclass(frozen=True)
class Guess:
    """The kind of a column, and how it would be encoded (None: not at all)."""

    kind: str
    missing: float
    distinct: int
    encoding: Encoding | None
    note: str = ""


def guess(
    name: str,
    column: pa.ChunkedArray,
    missing: Collection[str] = (),
    *,
    is_category: bool = False,
    keep: bool = False,
) -> Guess:
    """Look at all values of a column and decide what it is.

    `is_category` makes it a category, `keep` a feature even if it looks like an identifier.
    """
    if not values.is_known(column):
        return Guess("unknown", 0.0, 0, None, f"{column.type} values cannot be read")
    if values.is_date(column):
        return _guess_date(name, values.days(column, None), None, "")
    numbers = (
        values.numbers(column, missing)
        if values.is_number(column)
        else values.plain_numbers(column, missing)
    )
    if numbers is not None:
        return _guess_codes(name, numbers) if is_category else _guess_number(name, numbers, keep)
    text = values.coded(column, missing)
    counts = text.counts()
    found = _number_in_text(text, counts)
    if found is not None:
        numbers, note = text.take(found[0], np.nan), found[1]
        if not is_category:
            return _guess_number(name, numbers, keep, note)
        if not note:
            return _guess_codes(name, numbers)
    if not is_category:
        if _is_yes_no(text):
            return _guess_boolean(name, text, counts)
        known = values.date_format(text.values)
        if known is not None:
            note = "month/day/year" if known.startswith("%m/") else ""
            return _guess_date(name, values.days(column, known, missing), known, note)
    return _guess_category(name, text, counts, keep)


def _is_yes_no(text: values.Coded) -> bool:
    said = values.yes_or_no(text.values)
    return said is not None and len(set(said)) == 2


def _number_in_text(text: values.Coded, counts: np.ndarray) -> tuple[np.ndarray, str] | None:
    """Numbers of the distinct values, if this is a column of numbers, and a note about the rest.

    A few words among numbers ("hemolyzed") are missing values; words with digits ("V57") mean that
    all of them are codes.
    """
    if any(re.match(r"^0\d", value) for value in text.values):  # 007 is a code
        return None
    numbers = values.parsed(text.values)
    bad = [v for v, number in zip(text.values, numbers, strict=True) if np.isnan(number)]
    words = [v for v in bad if v.casefold() not in values.NOT_A_NUMBER]
    if len(bad) == len(text.values) or any(c.isdigit() for word in words for c in word):
        return None
    in_words = counts[[v in set(words) for v in text.values]].sum() if words else 0
    limits = [v for v in text.values if values.LIMIT.match(v)]
    in_limits = counts[[v in set(limits) for v in text.values]].sum() if limits else 0
    said = counts[[v.casefold() not in values.NOT_A_NUMBER for v in text.values]].sum()
    if in_words > 0.05 * said or in_limits > 0.5 * said:
        return None
    shown = ", ".join(repr(v) for v in bad[:3]) + (", ..." if len(bad) > 3 else "")
    note = f"{shown} counts as missing" if bad else ""
    if limits:
        note = "; ".join(filter(None, [note, f"{limits[0]!r} is read as its limit"]))
    return numbers, note


def _guess_codes(name: str, numbers: np.ndarray) -> Guess:
    """Numbers as the levels of a category, however they were spelled."""
    codes, found = pd.factorize(numbers)  # -1 where missing
    text = values.Coded(codes, tuple(values.plainly([repr(v) for v in found.tolist()])))
    as_category = _guess_category(name, text, text.counts(), keep=True)
    if as_category.encoding is None:
        return as_category
    return replace(as_category, encoding=replace(as_category.encoding, from_numbers=True))


def _guess_number(name: str, numbers: np.ndarray, keep: bool, note: str = "") -> Guess:
    absent = np.isnan(numbers)
    present = numbers[~absent] if absent.any() else numbers
    n, share = len(numbers), float(absent.mean()) if len(numbers) else 0.0
    codes, found = pd.factorize(present)
    counts = np.bincount(codes, minlength=len(found))
    if (constant := _constant(n, int(absent.sum()), counts, found)) is not None:
        return Guess("constant", share, len(found), None, constant)
    whole = bool((present == np.floor(present)).all())
    if len(found) == 1:  # the one value tells nothing, that it is missing may
        (level,) = values.plainly([repr(float(found[0]))])
        encoding = Encoding(name, "category", (level,), missing=True, from_numbers=True)
        return Guess("category", share, 1, encoding, note)
    if whole and not keep and _names_rows(name, n, len(present), len(found)):
        return Guess("identifier", share, len(found), None, _IDENTIFIER)
    if whole and 2 < len(found) <= MOST_CODES and CODE_NAME.search(name):
        codes_guess = _guess_codes(name, numbers)
        note = "; ".join(filter(None, [codes_guess.note, "codes, by name"]))
        return replace(codes_guess, note=note)
    return Guess("number", share, len(found), Encoding(name, "number"), note)


_IDENTIFIER = "a value a row; --include keeps it"


def _names_rows(name: str, n: int, present: int, distinct: int) -> bool:
    """Whether integers look like the number of a row or a person rather than a quantity."""
    if ID_NAME.search(name):
        return distinct > DISTINCT * n
    return distinct == present == n >= SMALL_TABLE


def _constant(n: int, absent: int, counts: np.ndarray, found: Any) -> str | None:
    """Why a column tells no rows apart, or None if it does."""
    if absent == n:
        return "missing in every row"
    most = int(counts.argmax())
    differ = n - int(counts[most])
    value = f"{found[most]:g}" if isinstance(found[most], float) else repr(found[most])
    if differ == 0:
        return f"{value} in every row"
    if differ < FEWEST and n >= SMALL_TABLE:
        return f"{value} in all but {differ} row{'s' * (differ > 1)}"
    return None


def _guess_boolean(name: str, text: values.Coded, counts: np.ndarray) -> Guess:
    share = float((text.codes < 0).mean())
    absent = len(text.codes) - int(counts.sum())
    constant = _constant(len(text.codes), absent, counts, text.values)
    if constant is not None:
        return Guess("constant", share, len(text.values), None, constant)
    return Guess("boolean", share, len(text.values), Encoding(name, "boolean"))


def _guess_date(name: str, days: np.ndarray, known: str | None, note: str) -> Guess:
    absent = np.isnan(days)
    distinct = len(pd.unique(days[~absent]))
    share = float(absent.mean()) if len(days) else 0.0
    if distinct <= 1:
        note = "missing in every row" if distinct == 0 else "the same date wherever there is one"
        return Guess("constant", share, distinct, None, note)
    return Guess("date", share, distinct, Encoding(name, "date", date_format=known), note)


def _guess_category(name: str, text: values.Coded, counts: np.ndarray, keep: bool) -> Guess:
    n, present, distinct = len(text.codes), int(counts.sum()), len(text.values)
    absent = n - present
    share = absent / n if n else 0.0
    if (constant := _constant(n, absent, counts, text.values)) is not None:
        return Guess("constant", share, distinct, None, constant)
    if distinct > max(MOST_LEVELS, DISTINCT * present) and not keep:
        return Guess("identifier", share, distinct, None, _IDENTIFIER)
    order = sorted(range(distinct), key=lambda i: (-counts[i], text.values[i]))
    enough = max(FEWEST, RARE * n)
    chosen = [i for i in order[:MOST_LEVELS] if counts[i] >= enough]
    levels = tuple(sorted(text.values[i] for i in chosen))
    rest = present - int(counts[chosen].sum())
    encoding = Encoding(name, "category", levels, other=rest >= FEWEST, missing=absent >= FEWEST)
    notes = []
    if not levels:
        return Guess("category", share, distinct, None, f"no level has {int(enough)} rows")
    if len(levels) == 1 and not encoding.other and not encoding.missing:
        return Guess("constant", share, distinct, None, f"{levels[0]!r} in nearly all rows")
    if distinct > len(levels):
        rare = distinct - len(levels)
        notes.append(f"{rare:,} rare as one")
    if doubtful := [v for v in text.values if v.casefold() in values.NOT_A_NUMBER - {"-", "."}]:
        notes.append(f"{doubtful[0]!r} is a level; or --missing {doubtful[0]}")
    return Guess("category", share, distinct, encoding, "; ".join(notes))
