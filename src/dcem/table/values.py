"""What a cell says: where raw values become codes, names and numbers (`dates` has the rest).

Text is dictionary-encoded first, so that trimming, missing spellings and parsing are decided once
for each distinct value and carried to the rows by an integer lookup; rows are never looped over.

Three readings, and every command uses the same ones:

* a *name* (a group, a person) is text. Whole-number floats are written as integers, so that a CSV,
  a Parquet and a Stata file agree; nothing else is changed: `01` is not `1`, `<65` is not `>=65`;
* a *number* is what a laboratory or a spreadsheet writes: `3.5`, `1e3`, `1,5e-16`, `1,234`, and,
  among numbers, `1 234` and `<0.5` as its limit;
* *missing* is an empty cell, a null, and what the roles call missing: `-9` is also `-9.0`.
"""

from __future__ import annotations

import datetime
import numbers as numbers_abc
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dcem.table.messages import InputError, quoted

# What spreadsheets write where they cannot compute, in the language of their owner.
ERRORS = frozenset(
    {"#n/a", "#div/0!", "#value!", "#ref!", "#num!", "#name?", "#null!", "#n/a n/a"}
    | {"#nv", "#n/v", "#wert!", "#bezug!", "#zahl!"}
    | {"#valeur!", "#nombre!", "#nom?", "#nul!"}
    | {"#n/d", "#¡valor!", "#¡ref!", "#¡num!", "#¿nombre?", "#¡div/0!", "#¡nulo!"}
    | {"#valor!", "#núm!", "#nome?", "#nulo!", "#valore!", "#rif!", "#nullo!"}
    | {"#n/b", "#waarde!", "#verw!", "#getal!", "#naam?", "#deel/0!", "#leeg!"}
)
# Missing values among numbers and dates: what programs write, and what people do. In a column of
# text these words are values: "None" may mean "never ordered", and "NA" may be Namibia.
NULLS = (
    ERRORS
    | {"na", "n/a", "nan", "null", "(null)", "none", "nil", "-", ".", "<na>", "\\n"}
    | {"1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"}
    | {f".{letter}" for letter in string.ascii_lowercase}  # of Stata and SAS
)
NOT_A_NUMBER = (
    NULLS
    | {"0000-00-00", "0000-00-00 00:00:00", "00.00.0000", "00/00/0000", "00000000"}  # no date
    | {"unknown", "unk", "missing", "refused", "n.a.", "n. a.", "not available", "not known"}
    | {"not applicable", "not recorded", "not stated", "not asked", "don't know", "no data"}
    | {"unbekannt", "keine angabe", "k.a.", "k. a.", "n.b.", "weiss nicht", "fehlt"}
    | {"inconnu", "non renseigné", "manquant", "desconocido", "sin dato", "sconosciuto"}
)
YES = frozenset(
    {"yes", "y", "true", "t", "positive", "pos", "1", "ja", "j", "oui", "si", "sí", "sì", "sim"}
    | {"positiv", "positif", "positivo"}
    | {"wahr", "vrai", "verdadero", "vero", "verdadeiro", "waar"}  # of spreadsheets
)
NO = frozenset(
    {"no", "n", "false", "f", "negative", "neg", "0", "nein", "non", "nee", "não"}
    | {"negativ", "négatif", "negativo"}
    | {"falsch", "faux", "falso", "onwaar"}
)
LIMIT = re.compile(r"^[<>≤≥]=?\s*(?=[\d.])|(?<=\d)\s?\+$")  # "<0.5", "90+": of what is recorded
THOUSANDS = re.compile(r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$")  # "1,234,567.8"
SCIENTIFIC = re.compile(r"^[+-]?\d+,\d+[eE][+-]?\d+$")  # "1,5e-16": the comma is decimal
SPACED = re.compile(r"^[+-]?[1-9]\d{0,2}([\s'’])\d{3}(\1\d{3})*(\.\d*)?$")  # "1 234", "1'234.5"
UNIT = re.compile(r"[$€£¥]\s*(?=[\d.])|\s*[%€]$")  # "$12", "12 %": of a measurement
WHOLE = re.compile(r"^(-?(?:0|[1-9]\d*))\.0+$")  # "3.0", as floats are written
ROUNDED = re.compile(r"^\d([.,]\d+)?[eE]\+?\d+$")  # "1.23457E+11", as spreadsheets show it
CODE = re.compile(r"^0\d")  # "007": digits, but not a quantity
MISSING_CODE = re.compile(r"-1|[+-]?(([789])\2*|9+[678])")  # "-9", "98", "777": perhaps no value
FAR_OFF = "far from all other values"
TWO_UNITS = "perhaps in two units"
FEWEST_OF_A_UNIT = 10  # different numbers
MOST_MARKS = 12  # numbers at one end of a column that may stand for missing ones
DIGITS_OF_FLOATS = {16: 11, 32: 24, 64: 53}  # binary ones of a float of so many bits
LARGEST_VALUE = 1e30  # beyond it is a slip or a mark for missing, and overflows what follows


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

    def among(self, some: Collection[str]) -> np.ndarray:
        """Rows [n] whose value is one of these."""
        chosen = set(some)
        return self.take(np.array([value in chosen for value in self.values], bool), False)


def is_number(column: pa.ChunkedArray) -> bool:
    """Whether Arrow stores numbers (not text that reads as such)."""
    return is_any(column.type, "integer", "floating", "decimal", "duration")


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether Arrow stores text, or a dictionary of it."""
    return is_text_type(column.type)


def is_text_type(kind: pa.DataType) -> bool:
    """The same of the type of a column."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return is_any(kind, "string", "large_string", "string_view")


def is_known(column: pa.ChunkedArray) -> bool:
    """Whether it is of a kind that can be read at all: no lists, no structures."""
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([], column.type.value_type)
    simple = is_any(column.type, "boolean", "null")
    return simple or is_number(column) or is_text(column) or is_date(column)


def is_plain_text(column: pa.ChunkedArray) -> bool:
    """Whether Arrow stores text cell by cell, not as codes into its distinct values."""
    return is_text(column) and not pa.types.is_dictionary(column.type)


def require_known(column: pa.ChunkedArray, name: str) -> None:
    """Refuse a column that is needed and whose cells cannot be read."""
    if not is_known(column):
        raise InputError(
            f"Column {name!r} has the type {column.type}, which cannot be read. Allowed: text, "
            "numbers, booleans, dates."
        )


def is_date(column: pa.ChunkedArray) -> bool:
    """Whether Arrow stores dates, with or without the time of day, or times of day alone."""
    return is_any(column.type, "timestamp", "date", "time")


def is_any(kind: pa.DataType, *names: str) -> bool:
    """Whether it is one of the kinds that Arrow calls so: "string", "date", ..."""
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def coded(column: pa.ChunkedArray, missing: Collection[str] = ()) -> Coded:
    """Any column as text codes: blanks, nulls and the spellings in `missing` are missing.

    Numbers that are stored as such are spelled as a person would: 3, not 3.0. Text stays as it is
    but for blanks around it.
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
    elif is_date(column):  # not through Python, whose calendar ends
        spelled = spelled.cast(pa.string()).fill_null("")
    else:
        spelled = pa.array([spell(value) for value in spelled.to_pylist()], pa.string())
    raw = array.indices.fill_null(len(spelled)).to_numpy(zero_copy_only=False)
    if pa.types.is_dictionary(column.type):  # categories that do not occur are not values
        occurs = np.zeros(len(spelled) + 1, bool)
        occurs[raw] = True
        spelled = pc.if_else(pa.array(occurs[:-1]), spelled, pa.scalar(None, pa.string()))
    return _coded(raw, spelled, missing)


def coded_series(series: pd.Series, missing: Collection[str] = ()) -> Coded:
    """`coded` of a pandas series, whatever objects it holds; categories keep their order."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        occurring = series.cat.remove_unused_categories().cat
        raw, found = occurring.codes.to_numpy(np.int64), occurring.categories  # -1 where missing
    else:
        raw, found = pd.factorize(series)
    spelled = pa.array([spell(level) for level in found], pa.string())
    return _coded(np.where(raw < 0, len(spelled), raw), spelled, missing)


def coded_names(given: Any, column: str, missing: Collection[str] = ()) -> Coded:
    """`coded` of names (groups, people, deciders), or `coded_series` of a pandas series of them.

    Refused if they are stored as floats so large that neighbouring integers are one number.
    """
    is_series = isinstance(given, pd.Series)
    try:
        text = coded_series(given, missing) if is_series else coded(given, missing)
    except TypeError:  # of cells that cannot be compared
        raise InputError(
            f"Column {column!r} holds lists or other objects in its cells, which cannot be names. "
            "Allowed: text, numbers, booleans, dates."
        ) from None
    if is_series:
        kind = getattr(given.dtype, "categories", given).dtype
        bits = 8 * kind.itemsize if kind.kind == "f" else 0
    else:
        kind = given.type.value_type if pa.types.is_dictionary(given.type) else given.type
        bits = kind.bit_width if pa.types.is_floating(kind) else 0
    limit = 2.0 ** DIGITS_OF_FLOATS.get(bits, np.inf)
    long = [value for value in text.values if bits and limit <= abs(float(value)) < np.inf]
    if long:
        raise InputError(
            f"Column {column!r} stores its values as floating-point numbers, which are not exact "
            f"when this long ({quoted(long, 3)}): values that differ in the last digits have "
            "become one. Export the column as text from where it comes from, and read it as text."
        )
    return text


def refuse_twins(series: pd.Series, column: str) -> None:
    """Refuse names that are different cells and would be one: the number 1 and the text '1'."""
    if series.dtype != object:
        return
    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind in ("string", "integer", "floating", "boolean", "decimal", "empty"):
        return
    kinds: dict[str, set[str]] = {}
    for cell in series[series.notna()]:
        sort = _sort_of(cell)
        for name in {spell(cell), *([spell(int(cell))] if sort == "a boolean" else [])}:
            kinds.setdefault(name, set()).add(sort)
    twins = {name: sorts for name, sorts in kinds.items() if len(sorts - {"other"}) > 1}
    for name, sorts in twins.items():
        raise InputError(
            f"Column {column!r} holds {name!r} as {' and as '.join(sorted(sorts))}, which would "
            "count as one value. Store the whole column as text or as numbers."
        )


def _sort_of(cell: object) -> str:
    if isinstance(cell, bool | np.bool_):
        return "a boolean"
    if isinstance(cell, str | bytes):
        return "text" if isinstance(cell, str) else "bytes"
    return "a number" if isinstance(cell, numbers_abc.Number) else "other"


def _coded(raw: np.ndarray, spelled: pa.Array, missing: Collection[str]) -> Coded:
    """Codes of rows [n] from codes into spellings; `len(spelled)` stands for missing."""
    absent = pc.is_in(spelled, pa.array(["", None, *missing], pa.string()))
    if numeric := [whole(text) for text in missing if not np.isnan(parsed([text])[0])]:
        plainly = pc.replace_substring_regex(spelled, WHOLE.pattern, r"\1")
        absent = pc.or_(absent, pc.is_in(plainly, pa.array(numeric, pa.string())))
    # Two spellings that differ in blanks alone are one value: the distinct ones are coded again.
    known = pc.if_else(absent, pa.scalar(None, pa.string()), spelled).dictionary_encode()
    lookup = np.append(known.indices.fill_null(-1).to_numpy(zero_copy_only=False), -1)
    return Coded(lookup.astype(np.int64)[raw], tuple(known.dictionary.to_pylist()))


def spell(value: object) -> str:
    """One stored value as text; empty where it is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value)
    if isinstance(value, float):
        return "" if value != value else str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    return str(value).strip()


def array_of(cells: Sequence[Any]) -> pa.Array:
    """Cells of Python's types as one Arrow column; of mixed kinds, as text."""
    kinds, midnight = {type(cell) for cell in cells if cell is not None}, datetime.time()
    if kinds == {datetime.date, datetime.datetime}:  # a workbook has dates at midnight
        combine = datetime.datetime.combine
        cells = [combine(c, midnight) if type(c) is datetime.date else c for c in cells]
        kinds = {datetime.datetime}
    if kinds <= {int, float} or len(kinds) == 1:
        try:
            array = pa.array(cells)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # integers beyond 64 bits
            pass
        else:
            if pa.types.is_timestamp(array.type) and all(
                cell is None or cell.time() == midnight for cell in cells
            ):
                return array.cast(pa.date32())
            return array
    return pa.array([None if cell is None else spell(cell) for cell in cells], pa.string())


def whole(text: str) -> str:
    """The name that a text stands for: a whole-number float as the integer, all else as it is.

    >>> whole("3.0"), whole("03"), whole("<65"), whole("9007199254740993")
    ('3', '03', '<65', '9007199254740993')
    """
    named = WHOLE.sub(r"\1", text)
    return "0" if named == "-0" else named


def number_names(found: Sequence[str]) -> list[str]:
    """Numbers each by one name, however they are written; all else, and codes, as they are.

    >>> number_names(["1.10", "$100", "1e3", "3.0", "007", "<65", "none"])
    ['1.1', '100', '1000', '3', '007', '<65', 'none']
    """
    names = [whole(text) for text in found]
    sizes = limits_parsed(names)
    for i in np.flatnonzero(np.isfinite(sizes)).tolist():
        is_name = CODE.match(names[i]) or LIMIT.search(names[i])
        if not (is_name or names[i].lstrip("-").isdecimal()):  # digits may be more than a float's
            names[i] = spell(float(sizes[i]))
    return names


def code_names(text: Coded, column: str) -> Coded:
    """Codes of names (groups, people), each value spelled as `whole` does.

    Two values that would become one name are an error: whether `1` and `1.0` in one column are the
    same is not for a program to decide.
    """
    named = wholes(text)
    if len(named.values) == len(text.values):
        return named
    spelled = Counter(map(whole, text.values))
    both = [value for value in text.values if spelled[whole(value)] > 1]
    raise InputError(
        f"Column {column!r} contains {quoted(both)}, which would count as one value. Spell them "
        "the same way if they mean the same, or rename one."
    )


def wholes(text: Coded) -> Coded:
    """The column with every value spelled as `whole` does; what is spelled alike is one value."""
    if not any(WHOLE.match(value) for value in text.values):
        return text
    place: dict[str, int] = {}
    lookup = [place.setdefault(whole(value), len(place)) for value in text.values]
    return Coded(text.take(np.array(lookup, np.int64), -1), tuple(place))


def folded(text: str) -> str:
    """What is left of a text when case, blanks and invisible characters do not count."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in plain if not c.isspace() and unicodedata.category(c) != "Cf")


def alike(names: Sequence[str]) -> list[str]:
    """Those that differ from another one only in what `folded` leaves away, side by side."""
    spelled = Counter(map(folded, names))
    return sorted((name for name in names if spelled[folded(name)] > 1), key=folded)


def all_numbers(values: Sequence[str]) -> bool:
    """Whether there are values and every one is a number."""
    return bool(values) and not np.isnan(parsed(values)).any()


def numbers(column: pa.ChunkedArray, missing: Collection[str] = ()) -> np.ndarray:
    """A column as float64 [n]; NaN where it is missing, beyond `LARGEST_VALUE`, or not a number."""
    return numbers_and_unread(column, missing)[0]


def numbers_and_unread(
    column: pa.ChunkedArray, missing: Collection[str] = ()
) -> tuple[np.ndarray, int]:
    """`numbers`, and how many cells hold no number, or one beyond `LARGEST_VALUE`."""
    strange = 0
    if is_number(column) or pa.types.is_boolean(column.type):
        values, beyond = stored(column, missing)
    elif is_plain_text(column) and (fast := cast(column, missing)) is not None:
        values, beyond = within(fast)
    else:
        text = coded(column, missing)
        found = limits_parsed(text.values)
        values, strange = text.take(found, np.nan), unread(text, found)
        values, beyond = within(values)
    return values, strange + int(beyond.sum())


def stored(column: pa.ChunkedArray, missing: Collection[str]) -> tuple[np.ndarray, np.ndarray]:
    """`within` of a column that is stored as numbers, durations in days."""
    if pa.types.is_duration(column.type):
        column = pc.divide(column.cast(pa.duration("us"), safe=False).cast(pa.int64()), 86.4e9)
    values = column.cast(pa.float64(), safe=False).to_numpy()
    return within(_missing_as_nan(values, missing))


def unread(text: Coded, found: np.ndarray) -> int:
    """Cells that hold something other than a word for missing, and were read as NaN.

    `found [v]` is what was made of each distinct value.
    """
    return int(unread_rows(text, found).sum())


def unread_rows(text: Coded, found: np.ndarray) -> np.ndarray:
    """The rows [n] of these cells."""
    lost = compress(text.values, np.isnan(found))
    strange = [value for value in lost if value.casefold() not in NOT_A_NUMBER]
    return text.among(strange) if strange else np.zeros(len(text.codes), bool)


def plain_numbers(
    column: pa.ChunkedArray, missing: Collection[str]
) -> tuple[np.ndarray, int] | None:
    """`numbers_and_unread` of text, if every cell is a number or missing and none a code (007)."""
    if not is_plain_text(column):
        return None
    if pc.any(pc.match_substring_regex(column, r"^\s*0\d|^[nN]")).as_py():
        return None
    found = cast(column, missing)
    if found is None:
        return None
    found, beyond = within(found)
    return found, int(beyond.sum())


def within(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers with NaN where they are beyond `LARGEST_VALUE`, in place; and where that is [n]."""
    beyond = np.abs(values) > LARGEST_VALUE
    values[beyond] = np.nan
    return values, beyond


def cast(column: pa.ChunkedArray, missing: Collection[str]) -> np.ndarray | None:
    """Plain text to numbers in one sweep, if every cell is a number or plainly missing."""
    blank = pa.array(["", "NA", "NaN", "nan", *missing], column.type)
    try:
        cleaned = pc.if_else(pc.is_in(column, blank), pa.scalar(None, column.type), column)
        values = cleaned.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    return _missing_as_nan(values, missing)


def _missing_as_nan(values: np.ndarray, missing: Collection[str]) -> np.ndarray:
    """Numbers that may be written to, NaN where one stands for missing."""
    values = values if values.flags.writeable else values.copy()
    absent = parsed(missing) if missing else np.empty(0)
    if not np.isnan(absent).all():
        values[np.isin(values, absent)] = np.nan
    return values


def parsed(values: Iterable[str]) -> np.ndarray:
    """Each text as a number, NaN where it is none: "3.5", "1e3", "1,234", "−2"."""
    texts = [text.replace("\N{MINUS SIGN}", "-") for text in values]
    found = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce")
    array = found.to_numpy(np.float64, copy=True)
    for i in np.flatnonzero(np.isnan(array)).tolist():
        if THOUSANDS.match(texts[i]):
            array[i] = float(texts[i].replace(",", ""))
        elif SCIENTIFIC.match(texts[i]):
            array[i] = float(texts[i].replace(",", "."))
    return array


def limits_parsed(values: Sequence[str]) -> np.ndarray:
    """`parsed`, where "<0.5" is 0.5, "$12" is 12, "1 234" is 1234: of measurements, not names."""
    found = parsed(values)
    lost = np.flatnonzero(np.isnan(found)).tolist()
    bare = [UNIT.sub("", LIMIT.sub("", values[i])) for i in lost]
    bare = [re.sub(r"[\s'’]", "", text) if SPACED.match(text) else text for text in bare]
    found[lost] = parsed(bare)
    return found


def apart(name: str, found: np.ndarray, counts: np.ndarray) -> str:
    """What to say of numbers that are often written for a missing one, far from all others.

    -9 among ages, 97 to 99 among drinks per week. Below 1 % of the rows, 7 to 9 are left alone, and
    the others must be farther off than the rest are from one another: 999 among ages, not 99.
    """
    few = min(MOST_MARKS + 1, len(found))
    for side in (1, -1):
        order = np.argpartition(side * found, len(found) - few)[-few:]  # the outermost, in order:
        order = order[np.argsort(side * found[order])]
        written = [spell(float(value)) for value in found[order]]
        for many in range(few - 1, 0, -1):  # of them
            first, inner = found[order[-many]], found[order[-many - 1]]
            if not all(map(MISSING_CODE.fullmatch, written[-many:])):
                continue
            gap, spread = abs(first - inner), abs(inner - side * (side * found).min())
            is_next = gap == 1 and side > 0  # after 6 comes 7
            beyond = found[order[-1]] < (0 if inner >= 1 else -6) and inner >= 0
            often = counts[order[-many:]].sum() >= 0.01 * counts.sum()
            far = gap > spread / 4 if often else gap > spread and not 0 < first < 10
            if (far and not is_next) or beyond:
                return far_off(name, written[-many:])
    return ""


def far_off(name: str, written: Sequence[str]) -> str:
    """What to say of values that may stand for a missing one, as they are written."""
    lies, it = ("lies", "it means") if len(written) == 1 else ("lie", "they mean")
    listed = ", ".join(f"{name}={value}" for value in written)
    return f"{', '.join(written)} {lies} {FAR_OFF}: if {it} missing, list {listed} under `missing`"


def in_two_units(found: np.ndarray, counts: np.ndarray) -> str:
    """What to say of numbers in two clusters far apart, such as 37.2 and 99.0, or nothing.

    Far is twice as far as either is wide; or, in ratios, fivefold and half as far as either is.
    """
    order = np.argsort(found)
    rows, number = np.cumsum(counts[order]) / counts.sum(), found[order]
    scales = [(number, 2.0, 0.0)]
    if len(number) and number[0] > 0:
        scales.append((np.log(number), 0.5, np.log(5)))
    for scaled, times, least in scales if len(number) >= 2 * FEWEST_OF_A_UNIT else ():
        last = int(np.argmax(np.diff(scaled)))  # of the lower cluster
        gap = scaled[last + 1] - scaled[last]
        wide = max(scaled[last] - scaled[0], scaled[-1] - scaled[last + 1])
        several = min(last + 1, len(number) - last - 1) >= FEWEST_OF_A_UNIT
        if several and 0.01 <= rows[last] <= 0.99 and gap >= max(times * wide, least):
            ends = [f"{float(f'{number[i]:.2g}'):g}" for i in (0, last, last + 1, -1)]
            lower, upper = " to ".join(ends[:2]), " to ".join(ends[2:])
            return f"about {lower} or about {upper}, nothing between: {TWO_UNITS}"
    return ""


def yes_or_no(values: Sequence[str]) -> np.ndarray | None:
    """1 for yes and 0 for no, if every value plainly says one of them; else None."""
    said = yes_no(values)
    return None if len(said) == 0 or np.isnan(said).any() else said


def yes_no(values: Sequence[str]) -> np.ndarray:
    """1 for yes, 0 for no, NaN for anything else, of each value."""
    said = parsed(values)
    said[~np.isin(said, (0, 1))] = np.nan
    for i, text in enumerate(map(word, values)):
        if text in YES_WORDS or text in NO_WORDS:
            said[i] = text in YES_WORDS
    return said


def word(text: str) -> str:
    """The word that a text is, without case, accents, spaces, hyphens and underscores.

    >>> word("Not_done"), word("NOT-DONE"), word("n\u00e9gatif")
    ('notdone', 'notdone', 'negatif')
    """
    apart = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(c for c in apart if unicodedata.category(c) not in ("Mn", "Cf"))
    return re.sub(r"[\s_\u2010-\u2015-]+", "", bare)


YES_WORDS = {word(text) for text in YES if text.isalpha()}
NO_WORDS = {word(text) for text in NO if text.isalpha()}
