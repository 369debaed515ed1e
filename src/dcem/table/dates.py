"""Dates and times as people write them: the only place where they become numbers.

A column has one format, the one in which most of its values are dates; whether the day or the month
comes first is so decided by all of them. A date becomes days since 1 January 1970, fractions for
the time of day, in UTC where an offset is given; a time of day alone becomes hours. A zone that is
named (`10:00 MEZ`) must be the same in all rows, whose times are then taken as they are written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa

from dcem.table.values import NOT_A_NUMBER, Coded, coded, is_date, unread, whole

# Where two of one shape fit equally well, the earlier is taken.
DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y"),
    *("%m-%d-%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%m-%y", "%m-%d-%y"),
    *("%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %B %Y", "%d%b%Y", "%b %d, %Y", "%B %d, %Y"),
    *("%b %d %Y", "%B %d %Y"),
    *("%d. %B %Y", "%d. %b %Y", "%d. %b. %Y", "%d de %B de %Y", "%G-W%V-%u"),
)
# Weeks of ISO 8601 and quarters (%q) are the day they begin with.
WEEKS = ("%G-W%V", "%GW%V")
QUARTERS = ("%YQ%q", "%Y-Q%q", "%Y Q%q", "Q%q %Y", "Q%q/%Y", "Q%q-%Y")
MONTHS_ALONE = ("%m/%Y", "%b %Y", "%B %Y")
MONTHS = "January February March April May June July August September October November December"
# What they are called in other languages; and short, where that is not as in English.
_IN_ENGLISH = {
    name: english
    for names in (
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    )
    for name, english in zip(names.split(), MONTHS.split(), strict=True)
} | {"jänner": "January", "mär": "Mar", "mrz": "Mar", "okt": "Oct", "dez": "Dec"}
TIMES = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p")
BETWEEN = (" ", ", ", "T", ":")  # a date and its time; the last as SAS does
ISO = "ISO8601"  # mixed precision, time zones
COMPACT = "%Y%m%d"  # 20210403, which is a number as well
SHARE = 0.95  # of the values that must be dates
SAMPLE = 200
LONGEST = 60  # characters that a date may have
_CLOCK = re.compile(r"\d{1,2}:\d\d(:\d\d(\.\d+)?)?( ?[AaPp][Mm])?")
_STARTS_ISO = re.compile(r"\d{4}-?\d\d")
_ISO_CLOCK = re.compile(r"\d[T ]\d")  # between a date and its time of day
_ZONE = re.compile(r":\d\d(?:\.\d+)?(?: ?[AaPp][Mm])? ?(?![AP]M$)([A-Z]{1,5})$")  # after a time
_NAMED = re.compile(r"(.*) ([A-Z]{2,5})")  # a format whose dates end in the name of a zone
UNIVERSAL = ("UTC", "GMT", "Z")
_WORD = re.compile(r"[^\W\d_]{3,}")
_QUARTER = re.compile(r"Q(\d+)", re.IGNORECASE)
_EXAMPLE = datetime(2021, 4, 3, 14, 5, 7)
_DATE_NAME = re.compile(r"(?:^|_)(?:date|datum|fecha|dob)(?:_|$)")
SECONDS_PER_DAY = 86_400.0


def date_format(values: Sequence[str], like: str | None = None) -> str | None:
    """The format in which nearly all values are dates, or times of day; None if there is none.

    Of two that fit equally well the one with day and month in the order of `like` is taken.
    """
    given = [value for value in values if value.casefold() not in NOT_A_NUMBER]
    few = _some(given)
    if not few or max(map(len, few)) > LONGEST:
        return None
    if zones := _zones(few):
        zones |= _zones(given)
        return _with_zone(given, zones.pop(), like) if len(zones) == 1 else None
    shape = Counter(map(_shape, few)).most_common(1)[0][0]
    likely = [one for one in _fitting(shape, few[0]) if _share_dated(few, one) >= SHARE - 0.05]
    shares = {one: _share_dated(given, one) for one in likely}
    order = (like or "")[: len("%d/%m")]
    best = max(shares, key=lambda one: (shares[one], one.startswith(order)), default=None)
    if best is None or shares[best] < SHARE or (is_time(best) and not _are_times(given)):
        return None
    return best


def _some(values: Sequence[str]) -> Sequence[str]:
    """About `SAMPLE` of the values, from all over."""
    return values[:: max(1, len(values) // SAMPLE)]


def _fitting(shape: str, example: str) -> list[str]:
    """The formats that dates of this shape, such as the example, may have."""
    return [*_by_shape().get(shape, ()), *[ISO] * bool(_STARTS_ISO.match(example))]


def _zones(values: Sequence[str]) -> set[str]:
    """The zones that nearly all values name after a time of day; names of universal time are one.

    Empty where all say `Z`, as ISO 8601 does.
    """
    found = Counter(match[1] for value in values if (match := _ZONE.search(value)))
    is_iso = set(found) == {"Z"} and _STARTS_ISO.match(values[0])
    if found.total() < SHARE * len(values) or is_iso:
        return set()
    return {"UTC" if zone in UNIVERSAL else zone for zone in found}


def _with_zone(values: Sequence[str], zone: str, like: str | None = None) -> str | None:
    base = date_format(_without_zone(values, zone), like)
    return None if base is None or is_time(base) else f"{base} {zone}"


def _without_zone(values: Sequence[str], zone: str) -> list[str]:
    """Dates without their zone; nothing where another one, or none, is named."""
    own = "|".join(UNIVERSAL) if zone in UNIVERSAL else re.escape(zone)
    cut = re.compile(rf"(.*?) ?(?:{own})")
    return [match[1] if (match := cut.fullmatch(value)) else "" for value in values]


def zones_note(values: Sequence[str]) -> str:
    """What to say of dates that are not read since they name several time zones, or nothing."""
    zones = sorted(_zones(_some(values)) and _zones(values))
    of_first = [value for value in values if zones and _zones([value]) == {zones[0]}]
    if len(zones) < 2 or _with_zone(of_first, zones[0]) is None:
        return ""
    return (
        f"dates in several time zones ({', '.join(zones)}) are not read as dates: write all in one "
        "zone, or with offsets such as +01:00"
    )


def forms_note(values: Sequence[str]) -> str:
    """What to say of dates that are not read since they are written in several ways, or nothing."""
    few = _some(values)
    if max(map(len, few), default=0) > LONGEST:
        return ""
    alike: dict[str, list[str]] = {}
    for value in few:
        alike.setdefault(_shape(value), []).append(value)
    first: dict[str, str] = {}  # a format and a date in it
    unread = 0
    for shape, left in alike.items():
        known = [one for one in _fitting(shape, left[0]) if not is_time(one)]
        while known and left:
            shares = {one: _share_dated(left, one) for one in known}
            best = max(shares, key=lambda one: shares[one])
            read = _dates(left, best).notna().tolist()
            if not any(read):
                break
            first.setdefault(best, left[read.index(True)])
            left = [value for value, is_read in zip(left, read, strict=True) if not is_read]
        unread += len(left)
    if len(first) < 2 or unread > (1 - SHARE) * len(few):
        return ""
    written = ", ".join(map(repr, first.values()))
    return f"dates in several formats, such as {written}: in one format they {DATED}"


DATED = "would be read as dates"


def is_time(known: str) -> bool:
    """Whether a format is of times of day alone."""
    return known in TIMES


def reading_note(values: Sequence[str], known: str) -> str:
    """What a person should know of how a column of dates was read, or nothing."""
    said = []
    order = re.match(r"(%[dm])([/-])(%[dm])", known)
    if order:
        names = {"%d": "day", "%m": "month"}
        first, mark, second = order.groups()
        taken, other = (
            f"{names[a]}{mark}{names[b]}{mark}year" for a, b in ((first, second), (second, first))
        )
        swapped = second + mark + first + known[order.end() :]
        doubtful = (_dates(values, swapped).notna() >= _dates(values, known).notna()).all()
        doubt = f"; no day is above 12, so it could also be {other}" if doubtful else ""
        said.append(f"read as {taken}{doubt}")
    if (named := _NAMED.fullmatch(known)) and named[2] not in UNIVERSAL:
        said.append(f"times stay in {named[2]}, as written")
    if "%y" in known:
        said.append("years 69 to 99 are read as 1969 to 1999")
    if is_time(known):
        said.append("a time of day, in hours")
    if known in (*WEEKS, *QUARTERS):
        said.append(f"a {'week' if known in WEEKS else 'quarter'} is read as its first day")
    return "; ".join(said)


def unread_values(values: Sequence[str], known: str) -> list[str]:
    """Values that are not dates of this format, nor words for a missing one."""
    lost = _dates(values, known).isna()
    return [
        value
        for value, is_lost in zip(values, lost, strict=True)
        if is_lost and value.casefold() not in NOT_A_NUMBER
    ]


def are_compact(found: np.ndarray) -> bool:
    """Whether whole numbers are dates written as 20210403."""
    if len(found) < 2 or found.min() < 19_000_000 or found.max() > 21_000_000:
        return False
    written = pd.Series(found.astype(np.int64).astype(str))
    return bool(pd.to_datetime(written, format=COMPACT, errors="coerce").notna().all())


def disguise_note(found: np.ndarray) -> str:
    """What to say of whole numbers that are dates or times of day in disguise, or nothing.

    12312024 comes after 1012025 as a number and before it as a date; the distance from 0859 to
    0900 is one minute, not 41.
    """
    if len(found) < 30 or found.min() < 0:
        return ""
    if found.max() < 2400 and found.max() >= 1300 and (found % 100 < 60).all():
        return "looks like times written HHMM: read as numbers, whose differences are not durations"
    written = pd.Series(found.astype(np.int64).astype(str)).str.zfill(8)
    for shape, form in (("MMDDYYYY", "%m%d%Y"), ("DDMMYYYY", "%d%m%Y")):
        read = pd.to_datetime(written, format=form, errors="coerce")
        if read.notna().mean() > 0.95 and read.dt.year.between(1900, 2100).mean() > 0.95:
            return f"looks like dates written {shape}: read as numbers, not in order of time"
    return ""


def day_numbers_note(name: str, found: np.ndarray) -> str:
    """What to say of numbers in a column called a date, or nothing: a spreadsheet counts days.

    The name is in lower case, its words joined by underscores.
    """
    if not _DATE_NAME.search(name) or found.min() < 3_653 or found.max() > 73_050:  # 1910 to 2099
        return ""
    first = int(found.min())
    day = np.datetime64("1899-12-30") + first
    return f"looks like a spreadsheet's day numbers ({first} is {day}): not read as dates"


def end_of(written: str, like: str | None = None) -> float:
    """The last second of a date, week, month or quarter, in days since 1970; NaN if it is none.

    One with a time of day ends at once. Whether day or month comes first is as in a column of the
    format `like`, where both are possible.
    """
    known = date_format([written], like)
    if known is None or is_time(known):
        return np.nan
    first = _day(written, known)
    clock = _ISO_CLOCK.search(written) if known.startswith(ISO) else re.search("%[HI]", known)
    if clock or np.isnan(first):
        return first
    is_month = known in MONTHS_ALONE or (known == ISO and len(written) <= len("2021-04"))
    months = 3 if known in QUARTERS else int(is_month)
    over = first + (7 if known in WEEKS else 1)
    if months:
        begins = np.datetime64(int(first), "D").astype("datetime64[M]")
        over = float((begins + months).astype("datetime64[D]").astype(int))
    return over - 1 / SECONDS_PER_DAY


def days(column: pa.ChunkedArray, known: str | None, missing: Collection[str] = ()) -> np.ndarray:
    """A column of dates as days since 1 January 1970 [n], one of times of day as hours."""
    return days_and_unread(column, known, missing)[0]


def days_and_unread(
    column: pa.ChunkedArray, known: str | None, missing: Collection[str] = ()
) -> tuple[np.ndarray, int]:
    """`days`, and how many cells hold something that is not such a date."""
    if is_date(column):
        is_clock = pa.types.is_time(column.type)
        kind = pa.time64("us") if is_clock else pa.timestamp("us")
        stamps = column.cast(kind, safe=False).cast(pa.int64()).cast(pa.float64(), safe=False)
        found = stamps.to_numpy() / (1e6 * SECONDS_PER_DAY) * (24 if is_clock else 1)
        marks = [_mark(text, is_clock) for text in missing]
        return np.where(np.isin(found.round(6), np.round(marks, 6)), np.nan, found), 0
    return days_of(coded(column, missing), known or ISO)


def _mark(text: str, is_clock: bool) -> float:
    """What stands for a missing value, as a day or, of a clock, in hours; NaN if it is neither."""
    fitting = (one for one in _fitting(_shape(text), text) if is_time(one) == is_clock)
    return next((day for one in fitting if not np.isnan(day := _day(text, one))), np.nan)


def _day(text: str, known: str) -> float:
    return float(days_of(Coded(np.zeros(1, np.int64), (text,)), known)[0][0])


def day_words(day: float) -> str:
    """A number of days since 1 January 1970 as the day that it is."""
    return str(np.datetime64(int(np.floor(day)), "D"))


def month_words(day: float) -> str:
    """The same as the month that it lies in."""
    return day_words(day).rpartition("-")[0]


def days_of(text: Coded, known: str) -> tuple[np.ndarray, int]:
    """`days_and_unread` of a column that is coded."""
    stamps = _dates(text.values, known).dt.as_unit("us")  # nanoseconds end in the year 2262
    found = stamps.astype("int64").to_numpy() / (1e6 * SECONDS_PER_DAY)
    found = np.where(stamps.isna(), np.nan, found)
    if is_time(known):
        found = 24 * (found - np.floor(found))
    return text.take(found, np.nan), unread(text, found)


def _dates(values: Sequence[str], known: str) -> pd.Series:
    if named := _NAMED.fullmatch(known):
        known, values = named[1], _without_zone(values, named[2])
    if "%b" in known or "%B" in known:
        values = [_WORD.sub(_in_english, value) for value in values]
    elif known in WEEKS:
        known, values = f"{known}-%u", [f"{value}-1" for value in values]
    elif known == COMPACT:
        values = [whole(value) for value in values]
    elif known in QUARTERS:
        known, values = known.replace("%q", "%m"), [_QUARTER.sub(_month, one) for one in values]
    text = pd.Series(list(values), dtype=object)
    return pd.to_datetime(text, format=known, errors="coerce", utc=True)


def _in_english(word: re.Match[str]) -> str:
    return _IN_ENGLISH.get(word[0].casefold(), word[0])


def _month(quarter: re.Match[str]) -> str:
    """Q with the first month of a quarter; without any, where there is no such quarter."""
    return {"1": "Q01", "2": "Q04", "3": "Q07", "4": "Q10"}.get(quarter[1], "Q")


def _share_dated(values: Sequence[str], known: str) -> float:
    return float(_dates(values, known).notna().mean())


def _are_times(values: Sequence[str]) -> bool:
    """Whether they are times of day, and not titres such as 1:20 and 1:40."""
    hours = {value.partition(":")[0] for value in values}
    written = sum(_CLOCK.fullmatch(value) is not None for value in values)
    return len(hours) > 1 and written >= SHARE * len(values)


def _shape(text: str) -> str:
    """What is left of a date when digits and letters do not count: `9.9.9 9:9`."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", text))


@cache
def _by_shape() -> dict[str, list[str]]:
    """The formats by the shape of what they write."""
    found: dict[str, list[str]] = {}
    whole = [f"{date}{between}{time}" for date in DATES for between in BETWEEN for time in TIMES]
    for known in (*DATES, *MONTHS_ALONE, *WEEKS, *QUARTERS, *whole, *TIMES):
        example = _EXAMPLE.strftime(known.replace("%q", "2"))
        found.setdefault(_shape(example), []).append(known)
    return found
