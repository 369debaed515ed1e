"""What kind of column is it? Guessed from the values, said aloud, and open to correction."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dcem.table import dates, units, values
from dcem.table.candidates import MEASURE, normalised
from dcem.table.disclosure import THRESHOLD, people_of
from dcem.table.encoder import Encoding
from dcem.table.marks import taken
from dcem.table.messages import quoted
from dcem.table.roles import missing_in
from dcem.text import counted

RARE = 0.005  # a level with a smaller share of the rows is "other"
MOST_LEVELS = 20  # indicators per column, for the most frequent levels
SAMPLE = 200  # of many distinct values, so many are looked at to tell text from numbers
PIECE = 1 << 14  # rows of text looked at together
SMALL_TABLE = 1000  # in a smaller one, a column must be constant to count as such
COUNTED = 100  # so many integers from 0 or 1 on, without a gap, count the rows
DISTINCT = 0.5  # text with more distinct values than this share of its rows names single rows
CODE_NAME = re.compile(
    r"(?i:(^|[_\W])(id|code|codes|cd|type|zip|postcode|plz|icd\d*|snomed|drg|fips))$|(?<=[a-z])(Id|ID|Code)$"
)
ID_NAME = re.compile(r"(^|[_\W])(id|nbr|no|number|key|mrn|uuid|guid)$|(?<=[a-z])(Id|ID|Nr)$", re.I)
NUMBER = r"(\d{1,3}(['’.\s]\d{3})+|\d{1,3}(,\d{2,3})*,\d{3}|\d+)([.,]\d+)?"
IN_TEXT = {  # what nearly all values are like -> what to say of them
    re.compile(
        rf"[<>]?=?\s*[-+]?{NUMBER}(\s*[^\W\d][^\d\s]{{1,11}}|\s*°\w|\s\w)|[A-Z][a-z]\.\s*{NUMBER}"
        rf"|[A-Z]{{3}}\s*{NUMBER}|[$€£]?{NUMBER}[kKM]|[HL]\s?\d+[.,]\d+"
        r"|\d+ days?,? \d\d?:\d\d(:\d\d)?"
    ): "text because of its unit ({!r}): in one unit and without it, it would be a number",
    re.compile(rf"['(~≈]?([-+]\s?)?[$€£]?{NUMBER}\)?\s*[-*†%€]?"): (
        "text because of its spelling: {!r} written like 1234.5 would be a number"
    ),
    re.compile(r"\d+ ?[/+'’y] ?\d+ ?(\"|''|”|m)?"): (
        "two numbers per cell, such as {!r}: in separate columns each would be a number"
    ),
}
ICD = re.compile(r"[A-Za-z]{1,2}\d")  # "V57": a few of these among numbers make them codes
ICD_9 = re.compile(r"[VE]\d{2,3}(\.\d{1,2})?")  # such diagnoses stand among 250.8 and 428
LETTER = re.compile(r"\d+([.,]\d+)?[^\W\d_]")  # "8m", the age of a baby among years; or a code
HIDDEN = "would be a number"
NO_NUMBERS = "that cannot be numbers"
# What notes say of a column that is a number or a date but for its spelling.
MENDABLE = (HIDDEN, dates.DATED, NO_NUMBERS)
FEW_UNREAD = 0.01  # of the values of a column of numbers may be none, which count as missing
FEWEST_NUMBERS = 20  # of which one may be none
MOSTLY = 0.8  # numbers among the values from here on: a reader expects them to be used as such
FEW_ODD = 3  # words that may keep a column from being one of numbers
MOST_CODES = 50  # distinct integers that a column named like a code may have to be one
EXACT = 2**53  # larger integers are not all different as floats
FEW_CODES = 12  # distinct integers that may be codes whatever the column is called


@dataclass(frozen=True)
class Column:
    """One column of the user's table, and how it was read.

    Attributes
    ----------
    name
        As in the file.
    role
        "feature", "label", "tested", "group", "id", "weight", "truth", "excluded" (by the user), or
        "left out" (not usable as a feature; `note` says why).
    kind
        "number", "boolean", "date", "time", "category", "constant", "identifier" or "unknown".
    missing
        Share of rows without a value.
    levels
        Number of distinct values.
    encoded
        Names of the features it became.
    note
        What the user should know about how it was read.
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


def guess_kind(
    name: str,
    column: pa.ChunkedArray,
    missing: Collection[str] = (),
    *,
    is_category: bool = False,
    keep: bool = False,
    person: np.ndarray | None = None,
) -> Guess:
    """Look at all values of a column and decide what it is.

    `is_category` makes it a category, `keep` a feature even if it looks like an identifier;
    `person [n]` are codes of the people behind the rows, where a person has several.
    """
    anywhere, missing = missing, missing_in(name, missing)
    # numbers that are stored as categories are meant to be some
    is_category |= pa.types.is_dictionary(column.type) and not values.is_text(column)
    if not values.is_known(column):
        return Guess("unknown", 0.0, 0, None, f"{column.type} values cannot be read")
    if values.is_date(column):
        clock = dates.TIMES[1] if pa.types.is_time(column.type) else None
        days = dates.days(column, None, missing)
        return _guess_date(name, days, clock, "", lambda row: values.spell(column[row].as_py()))
    if not (is_category or keep) and (free := _free_text(column, missing)) is not None:
        return free
    if not is_category:
        is_number = values.is_number(column)
        read = values.numbers_and_unread if is_number else values.plain_numbers
        if (plain := read(column, missing)) is not None:
            whole = lambda: values.coded(column, missing)  # noqa: E731
            if _may_be_inexact(column, *plain) and _are_long(text := whole()):
                return _guess_long(name, text, keep, person)
            beyond = f"numbers beyond {values.LARGEST_VALUE:g} count as missing" if plain[1] else ""
            hidden = _hidden(column, plain[0], anywhere)
            note = _notes(beyond, _may_part_thousands(column), hidden)
            return _guess_number(name, plain[0], keep, whole, person, note)
    text = values.coded(column, missing)
    if is_category:
        return _guess_codes(name, text, person)
    if _is_prose(text.values):
        return _guess_category(name, text, keep, person)
    counts = text.counts()
    found, why = _number_in_text(name, text, counts)
    if found is not None and _are_long(text):
        return _guess_long(name, text, keep, person)
    if found is not None:
        numbers = text.take(found, np.nan)
        return _guess_number(name, numbers, keep, lambda: text, person, why)
    said = values.yes_or_no(text.values)
    if said is not None and len(set(said)) == 2:
        n, absent = len(text.codes), len(text.codes) - int(counts.sum())
        yes_no = Guess("boolean", absent / n, len(text.values), Encoding(name, "boolean"))
        return _constant(n, absent, counts, text.values) or yes_no
    known = dates.date_format(text.values)
    if known is not None:
        return _guess_dates(name, text, dates.in_century(text.values, known, normalised(name)))
    guess = _guess_category(name, text, keep, person)
    other = dates.zones_note(text.values) or dates.forms_note(text.values)
    if not other and all(value.isdecimal() for value in text.values):
        digits = dates.disguise_note(np.array(text.values, float))
        other = f"{digits}: with marks between the parts they {dates.DATED}" if digits else ""
    are_codes = (
        guess.encoding is not None
        and sum(ICD.match(value) is not None for value in text.values) >= FEW_ODD
    )
    if why and not are_codes and not any(words in guess.note for words in MENDABLE):
        other = other or _notes(why, guess.note)
    return replace(guess, note=other) if other else guess


def _free_text(column: pa.ChunkedArray, missing: Collection[str]) -> Guess | None:
    """A column of notes or names, told by a few of its rows and the number of its values.

    Coding a million long texts would hold several copies of them in memory, to leave them out.
    """
    few = column.take(np.arange(0, len(column), max(1, len(column) // (20 * SAMPLE))))
    if not values.is_plain_text(column) or len(few) <= 10 * SAMPLE:
        return None
    given = [text for text in few.to_pylist() if text]
    seen = list(dict.fromkeys(given))
    if len(seen) < 0.9 * len(given) or not _is_prose(seen):
        return None
    absent = pc.sum(pc.is_in(column, pa.array(["", None, *missing], column.type))).as_py()
    # Hashes, a piece at a time: counting the texts themselves would copy them.
    pieces = (column.slice(k, PIECE).to_pylist() for k in range(0, len(column), PIECE))
    hashes = np.concatenate([np.fromiter(map(hash, piece), np.int64) for piece in pieces])
    distinct, present = len(np.unique(hashes)), len(column) - absent
    if distinct <= max(MOST_LEVELS, DISTINCT * present):
        return None
    note = _numbers_in_text(seen) or _IDENTIFIER
    return Guess("identifier", absent / len(column), distinct, None, note)


def _is_prose(found: Sequence[str]) -> bool:
    """Whether many values are plainly neither numbers nor dates, by a few of them.

    A million notes need not be parsed one by one to be called text.
    """
    few = found[:: max(1, len(found) // SAMPLE)]
    if len(found) <= 10 * SAMPLE or np.isfinite(values.limits_parsed(few)).mean() >= 0.5:
        return False
    notes = dates.zones_note, dates.forms_note
    return dates.date_format(few) is None and not any(note(few) for note in notes)


def _number_in_text(
    name: str, text: values.Coded, counts: np.ndarray
) -> tuple[np.ndarray | None, str]:
    """Numbers of the distinct values, if this is a column of numbers, and what to say of it.

    One cell that is none, or a hundredth of them, is a missing value; with more, the column is
    text. So are numbers with another sign than the others (`45 %` among `0.45`). A column is text,
    too, if it is named like a code and has a value with a leading zero or such as "V57"; in any
    other it takes two cells such as "V57".
    """
    found = values.limits_parsed(text.values)
    absent = np.array([v.casefold() in values.NOT_A_NUMBER for v in text.values], bool)
    usual = units.usual_sign(text.values, counts * ~np.isnan(found))
    foreign = ~np.isnan(found) & units.are_foreign(text.values, found, usual)
    padded = np.array([values.CODE.match(v) is not None for v in text.values], bool)
    lost = (np.isnan(found) | foreign) & ~absent
    odd, said = int(counts[lost | padded].sum()), int(counts[~absent].sum())
    digits = any(any(c.isdigit() for c in value) for value in compress(text.values, lost))
    is_number = ~(np.isnan(found) | foreign | padded)
    if not is_number.any() or (CODE_NAME.search(name) and (digits or padded.any())):
        return None, ""
    diagnosis = np.array([ICD_9.fullmatch(v) is not None for v in text.values], bool)
    if counts[lost & diagnosis].sum() > 1:
        return None, ""
    if odd > FEW_UNREAD * said and not (odd == 1 and said >= FEWEST_NUMBERS):
        if counts[is_number].sum() < MOSTLY * said:
            return None, ""
        shown = quoted([*compress(text.values, lost | padded)], FEW_ODD)
        return None, f"text because of {counted(odd, 'cell')} {NO_NUMBERS} ({shown})"
    in_limits = [values.LIMIT.search(v) is not None for v in text.values]
    if counts[in_limits].sum() > 0.5 * said:
        return None, ""
    limit, grouped, bare = "", "", ""
    if any(in_limits):
        limit = f"{text.values[in_limits.index(True)]!r} is read as its limit"
    if padded.any():
        first = text.values[int(padded.argmax())]
        bare = f"{first!r} is read as {values.spell(found[padded][0])}"
    marks = (values.THOUSANDS.match, values.SPACED.match, values.UNIT.search)
    read = compress(text.values, ~lost)
    if first := next((v for v in read if any(mark(v) for mark in marks)), ""):
        shown = re.sub(r"\s", " ", first)  # as \u202f, a narrow space would be told by its code
        grouped = f"{shown!r} is read as {values.spell(values.limits_parsed([first])[0])}"
    found[lost] = np.nan
    bad = [*compress(text.values, lost), *compress(text.values, np.isnan(found) & ~lost)]
    return found, _notes(_lost(bad), limit, grouped, bare)


def _notes(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def _lost(found: Sequence[str]) -> str:
    """What to say of cells that are none of what their column holds, or nothing."""
    shown = ", ".join(map(repr, found[:3])) + (", ..." if len(found) > 3 else "")
    return f"{shown} count{'s' if len(found) == 1 else ''} as missing" if found else ""


def _may_part_thousands(column: pa.ChunkedArray) -> str:
    """What to say of `850` and `1.200` in one column, or nothing: the point may part thousands.

    It may where all numbers with a point have three digits after it, at most three before it, and
    other numbers have none: as decimals, `1.200` would be `1.2` there, or `850` be `850.000`.
    """
    if not values.is_plain_text(column):
        return ""
    pointed = column.filter(pc.match_substring(column, "."))
    if not 0 < len(pointed) < len(column) - pc.sum(pc.equal(column, "")).as_py():
        return ""
    if not pc.all(pc.match_substring_regex(pointed, r"^\s*[-+]?[1-9]\d{0,2}\.\d{3}\s*$")).as_py():
        return ""
    first = pointed[0].as_py().strip()
    return taken(first, "point")


def _hidden(column: pa.ChunkedArray, numbers: np.ndarray, missing: Collection[str]) -> str:
    """What to say of numbers that are missing in any column and lie among the others of this one.

    A 9 for "not asked" elsewhere may here be a number like any other.
    """
    marks = values.parsed(mark for mark in missing if "=" not in mark)
    low, high = np.fmin.reduce(numbers), np.fmax.reduce(numbers)
    inside = marks[(low < marks) & (marks < high)]
    here = np.intersect1d(inside, values.numbers(column)) if len(inside) else inside
    if len(here) == 0:
        return ""
    return f"{values.spell(here[0])} counts as missing although it lies between other values"


def _guess_codes(name: str, text: values.Coded, person: np.ndarray | None) -> Guess:
    """Numbers as the levels of a category: 3 and 3.0 are one level, 03 another."""
    as_category = _guess_category(name, values.wholes(text), True, person)
    if as_category.encoding is None:
        return as_category
    return replace(as_category, encoding=replace(as_category.encoding, from_numbers=True))


def _may_be_inexact(column: pa.ChunkedArray, numbers: np.ndarray, beyond: int) -> bool:
    """Whether some numbers that were not stored as floats have more digits than a float."""
    largest = np.fmax.reduce(np.abs(numbers), initial=0)
    return not pa.types.is_floating(column.type) and bool(beyond or largest > EXACT)


def _are_long(text: values.Coded) -> bool:
    """Whether most values are integers of so many digits that floats do not tell them apart."""
    digits = [value.lstrip("-") for value in text.values]
    largest = len(str(EXACT)), str(EXACT)
    return sum(d.isdecimal() and (len(d), d) > largest for d in digits) > 0.5 * len(digits)


def _guess_long(name: str, text: values.Coded, keep: bool, person: np.ndarray | None) -> Guess:
    """Long integers, which are names whatever the column is called."""
    found = _guess_category(name, text, keep, person)
    return found if found.encoding is None else replace(found, note=LONG)


def _guess_number(
    name: str,
    numbers: np.ndarray,
    keep: bool,
    text: Callable[[], values.Coded],
    person: np.ndarray | None,
    note: str = "",
) -> Guess:
    absent = np.isnan(numbers)
    present = numbers[~absent] if absent.any() else numbers
    n, share = len(numbers), float(absent.mean()) if len(numbers) else 0.0
    codes, found = pd.factorize(present)
    counts = np.bincount(codes, minlength=len(found))
    if (constant := _constant(n, int(absent.sum()), counts, found)) is not None:
        return constant
    whole = bool((present == np.floor(present)).all())
    if whole and (known := dates.compact_format(found)):
        return _guess_dates(name, text(), known)
    if len(found) == 1:  # the one value tells nothing, that it is missing may
        level = values.Coded(np.where(absent, -1, 0), (values.spell(float(found[0])),))
        one = _guess_codes(name, level, person)
        return replace(one, note=_notes(note, one.note))
    if whole and not keep and _names_rows(name, n, len(present), found):
        return Guess("identifier", share, len(found), None, _IDENTIFIER)
    if whole and 2 < len(found) <= MOST_CODES and CODE_NAME.search(name):
        as_codes = _guess_codes(name, text(), person)
        return replace(as_codes, note=_notes(as_codes.note, "read as codes because of the name"))
    clock = dates.disguise_note(found) if whole else ""
    clock = f"{clock}: read as numbers, whose differences are not durations" if clock else ""
    clock = clock or dates.day_numbers_note(normalised(name), found)
    named = len(found) > MOST_CODES and bool(CODE_NAME.search(name) or ID_NAME.search(name))
    said = LIKE_CODES * (whole and (named or _few_codes(name, found, counts)))
    odd = values.apart(name, found, counts) or values.in_two_units(found, counts)
    note = _notes(note, said, clock, odd)
    return Guess("number", share, len(found), Encoding(name, "number"), note)


def _few_codes(name: str, found: np.ndarray, counts: np.ndarray) -> bool:
    """Whether a few integers may be codes: not named like a quantity, nor spread like a count.

    Of counts there are the fewer the larger they are: most people have no earlier stay.
    """
    if not 2 < len(found) <= FEW_CODES or MEASURE.search(normalised(name)):
        return False
    falling = bool((np.diff(counts[np.argsort(found)]) <= 0).all())
    return not (found.min() == 0 and falling)


LONG = "numbers of more than 15 digits are read as codes"
AS_OTHER = "as (other)"  # one level for all of them
LIKE_CODES = "read as a quantity: use `category` if these are codes"
_IDENTIFIER = "looks like an identifier; list it under `include` to keep it"


def _names_rows(name: str, n: int, present: int, found: np.ndarray) -> bool:
    """Whether integers look like the number of a row or a person rather than a quantity."""
    if ID_NAME.search(name):
        return len(found) > DISTINCT * n
    least = COUNTED if found.min() in (0, 1) and np.ptp(found) == n - 1 else SMALL_TABLE
    return len(found) == present == n >= least


def _constant(n: int, absent: int, counts: np.ndarray, found: Any) -> Guess | None:
    """A column that tells no rows apart, and why; None if it does."""
    note = "missing in every row"
    if absent < n:
        most = int(counts.argmax())
        differ = n - int(counts[most])
        if differ >= THRESHOLD or (differ and n < SMALL_TABLE):
            return None
        value = f"{found[most]:g}" if isinstance(found[most], float) else repr(found[most])
        note = f"{value} in {'nearly all rows' if differ else 'every row'}"
    return Guess("constant", absent / n if n else 0.0, len(found), None, note)


def _guess_dates(name: str, text: values.Coded, known: str) -> Guess:
    """Dates that are written in a format."""
    lost = _lost(dates.unread_values(text.values, known))
    note = _notes(dates.reading_note(text.values, known), lost)
    days = text.take(dates.each_day(text.values, known), np.nan)
    return _guess_date(name, days, known, note, lambda row: text.values[text.codes[row]])


def _guess_date(
    name: str, days: np.ndarray, known: str | None, note: str, written: Callable[[int], str]
) -> Guess:
    """Days [n], or hours of the day, as a feature; `written` is how a row has them."""
    absent = np.isnan(days)
    distinct = len(pd.unique(days[~absent]))
    share = float(absent.mean()) if len(days) else 0.0
    kind = "time" if known is not None and dates.is_time(known) else "date"
    if distinct <= 1:
        note = "missing in every row" if distinct == 0 else f"the same {kind} wherever given"
        return Guess("constant", share, distinct, None, note)
    if kind == "date" and (marks := dates.marks_apart(days[~absent])):
        odd = values.far_off(name, [written(int(np.argmax(days == mark))) for mark in marks])
        note = _notes(note, odd)
    return Guess(kind, share, distinct, Encoding(name, kind, date_format=known), note)


def _guess_category(name: str, text: values.Coded, keep: bool, person: np.ndarray | None) -> Guess:
    counts = text.counts()
    n, present, distinct = len(text.codes), int(counts.sum()), len(text.values)
    absent = n - present
    share = absent / n if n else 0.0
    if (constant := _constant(n, absent, counts, text.values)) is not None:
        return constant
    unit = "" if CODE_NAME.search(name) else _numbers_in_text(text.values)
    if distinct > max(MOST_LEVELS, DISTINCT * present) and not keep:
        return Guess("identifier", share, distinct, None, unit or _IDENTIFIER)
    frequent = np.flatnonzero(counts >= max(THRESHOLD, RARE * n)).tolist()
    order = sorted(frequent, key=lambda i: (-counts[i], text.values[i]))[:MOST_LEVELS]
    known = text.codes >= 0
    people = counts if person is None else people_of(text.codes[known], person[known], distinct)
    chosen = [i for i in order if people[i] >= THRESHOLD]
    levels = tuple(sorted(text.values[i] for i in chosen))
    rest = np.ones(distinct + 1, bool)  # the last is what the code -1 of a missing value finds
    rest[[*chosen, -1]] = False
    encoding = Encoding(
        name,
        "category",
        levels,
        other=_how_many(rest[text.codes], person) >= THRESHOLD,
        missing=_how_many(text.codes < 0, person) >= THRESHOLD,
    )
    if not levels:
        enough = (
            f"{int(max(THRESHOLD, RARE * n))} rows" if person is None else f"{THRESHOLD} people"
        )
        note = unit or f"no level has at least {enough}"
        return Guess("category", share, distinct, None, note)
    if len(levels) == 1 and not encoding.other and not encoding.missing:
        return Guess("constant", share, distinct, None, f"{levels[0]!r} in nearly all rows")
    notes = [unit]
    if distinct <= MOST_CODES and (alike := values.alike(text.values)):
        notes.append(f"{quoted(alike, FEW_ODD)} differ only in case or blanks: are they one level?")
    if distinct > len(levels):
        notes.append(f"{counted(distinct - len(levels), 'rare value')} {AS_OTHER}")
    if doubtful := [v for v in text.values if v.casefold() in values.NULLS - {"-", "."}]:
        notes.append(f"{doubtful[0]!r} is a level; if it means missing, list it under `missing`")
    return Guess("category", share, distinct, encoding, _notes(*notes))


def _numbers_in_text(found: Sequence[str]) -> str:
    """What to say of `8.7 mmol/L`, `120/80` and the like, if nearly all are such; else nothing.

    Also of what keeps a column of numbers from being one: a few words, several units, many limits.
    """
    first = found[: 10 * SAMPLE] if len(found) > MOST_LEVELS else ()
    if first and np.isfinite(values.limits_parsed(first)).mean() >= 0.9:
        if len(signs := units.CURRENCIES.intersection("".join(first))) > 1:
            several = ", ".join(sorted(signs))
            return f"text because of several currencies ({several}): in one of them it {HIDDEN}"
        shares = [value for value in first if value.endswith("%")]
        if 0 < len(shares) < len(first):
            some = f"some values have a percent sign ({shares[0]!r})"
            return f"text because {some}: if all or none had one, it {HIDDEN}"
    odd = [*compress(first, np.isnan(values.parsed(first)))]
    for shape, said in IN_TEXT.items():
        such = [value for value in odd if shape.fullmatch(value)]
        if such and len(odd) - len(such) <= 0.1 * len(first):
            return said.format(such[0])
    if odd and len(odd) < 0.5 * len(first) and all(map(LETTER.fullmatch, odd)):
        shown = quoted(odd, FEW_ODD)
        return f"text because of {shown}: in one unit and without the letter it {HIDDEN}"
    if first and len(odd) <= 0.1 * len(first):
        odd = [*compress(found, np.isnan(values.limits_parsed(found)))]
        limits = [v for v in first if values.LIMIT.search(v)]
        if limits and all(word.casefold() in values.NOT_A_NUMBER for word in odd):
            most = f"most rows are limits ({limits[0]!r})"
            return f"text because {most}: without the sign it {HIDDEN}"
        may_be_codes = len(found) <= MOST_CODES and any(c.isdigit() for word in odd for c in word)
        if 0 < len(odd) <= FEW_ODD and not may_be_codes:
            return f"text because of {quoted(odd)}: with that listed under `missing`, it {HIDDEN}"
    return ""


def word_among_numbers(text: values.Coded) -> str | None:
    """The word that stands in many rows of a column whose other values are numbers, if one does."""
    found = np.isnan(values.limits_parsed(text.values))
    if found.sum() != 1 or len(text.values) <= MOST_CODES:
        return None
    word, counts = text.values[int(found.argmax())], text.counts()
    if word.casefold() in values.NOT_A_NUMBER:  # which is missing here without being listed
        return None
    often = counts[found][0] > FEW_UNREAD * counts.sum()
    return word if often and not any(letter.isdigit() for letter in word) else None


def _how_many(rows: np.ndarray, person: np.ndarray | None) -> int:
    """People behind these rows (a mask [n])."""
    return int(rows.sum()) if person is None else len(np.unique(person[rows]))
