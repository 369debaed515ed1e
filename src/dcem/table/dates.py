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
from itertools import compress, permutations

import numpy as np
import pandas as pd
import pyarrow as pa

from dcem.table.values import NOT_A_NUMBER, NULLS, coded, is_date, whole

# Where two of one shape fit equally well, the earlier is taken.
DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y"),
    *("%m-%d-%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%m-%y", "%m-%d-%y"),
    *("%y-%m-%d", "%y/%m/%d"),
    *("%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d%b%Y", "%b %d, %Y", "%b %d %Y", "%d. %b %Y"),
    *("%d de %b de %Y", "%G-W%V-%u"),
)
# Weeks of ISO 8601 and quarters (%q) are the day they begin with.
WEEKS = ("%G-W%V", "%GW%V")
QUARTERS = ("%YQ%q", "%Y-Q%q", "%Y Q%q", "Q%q %Y", "Q%q/%Y", "Q%q-%Y")
MONTHS_ALONE = ("%m/%Y", "%b %Y", "%b-%Y", "%b-%y")
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
# What months are called, in full and short.
_IN_ENGLISH = {
    name: english
    for names in (
        MONTHS.casefold(),
        "january february march april may june july august september october november december",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    )
    for name, english in zip(names.split(), MONTHS.split(), strict=True)
}
_IN_ENGLISH |= {"jänner": "Jan", "mär": "Mar", "mrz": "Mar", "okt": "Oct", "dez": "Dec"}
_IN_ENGLISH |= {"janv": "Jan", "févr": "Feb", "avr": "Apr", "juil": "Jul", "déc": "Dec"}
_IN_ENGLISH |= {"ene": "Jan", "abr": "Apr", "ago": "Aug", "sept": "Sep", "dic": "Dec"}
TIMES = (
    *("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p", "%Hh%M"),
    *("%I.%M.%S.%f %p", "%H.%M.%S.%f"),  # of Oracle and DB2, after a date
)
BETWEEN = (" ", ", ", "T", ":", "-")  # a date and its time; the last two as SAS and DB2 do
EITHER_ORDER = "could also be"  # of notes
ISO = "ISO8601"  # mixed precision, time zones
COMPACT = {  # 20210403, which is a number as well
    "%Y%m%d": "YYYYMMDD",
    "%Y%m%d%H%M": "YYYYMMDDHHMM",
    "%Y%m%d%H%M%S": "YYYYMMDDHHMMSS",
}
SHARE = 0.95  # of the values that must be dates
SAMPLE = 200
LONGEST = 60  # characters that a date may have
_CLOCK = re.compile(r"(\d{1,3})[:h]([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?(?: ?([AaPp])[Mm])?")
PAST_MIDNIGHT = 30  # hours: 25:30 is half past one in the next morning
_STARTS_ISO = re.compile(r"\d{4}-?\d\d")
_ISO_CLOCK = re.compile(r"\d[T ]\d")  # between a date and its time of day
_ZONE = re.compile(r":\d\d(?:\.\d+)?(?: ?[AaPp][Mm])? ?(?![AP]M$)([A-Z]{1,5})$")  # after a time
_NAMED = re.compile(r"(.*) ([A-Z]{2,5})")  # a format whose dates end in the name of a zone
UNIVERSAL = ("UTC", "GMT", "Z")
_WORD = re.compile(r"[^\W\d_]{3,}\.?")
_QUARTER = re.compile(r"Q(\d+)", re.IGNORECASE)
_PADDED = re.compile(r"\d\d[-/]\d\d[-/]\d\d\b")
_PARTS = {"YYYY": "%Y", "YY": "%y", "MM": "%m", "DD": "%d"}
_EXAMPLE = datetime(2021, 4, 3, 14, 5, 7)
_OFFSET = re.compile(r":\d\d(?:\.\d+)? ?(Z|[+-]\d\d(?::?\d\d)?)$")  # after a time
_CENTURY = re.compile(r"(.*) from (\d{4})")  # a format of two-digit years, and the first of them
_BIRTH_NAME = re.compile(
    r"(?:^|_)(?:dob|geb|born)(?:_|$)|birth|geburt|gebdat|naissance|nacimiento|nascita|nascimento"
)
AHEAD = 40  # years from now that a date may lie in: when a loan is to be repaid
MOST_DAYS = 25  # of a month
FEWEST_DAYS = 12  # different ones, before one may lie far from all others
_DATE_NAME = re.compile(r"(?:^|_)(?:date|datum|fecha|dob)(?:_|$)")
SECONDS_PER_DAY = 86_400.0


def date_format(values: Sequence[str], like: str | None = None) -> str | None:
    """The format in which nearly all values are dates, or times of day; None if there is none.

    Of two that fit equally well the one with fewer years is taken, then the one with day and month
    in the order of `like`. Two-digit years come first only before nearly all days of a month: the
    last part of `15-04-05` may as well be the year.
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
    order = (like or "")[: len("%d/%m")]
    shares: dict[str, tuple[float, int, bool]] = {}
    for one in likely:
        read, is_like = _dates(given, one), one.startswith(order)
        if one.startswith("%y") and not (order and is_like) and read.dt.day.nunique() < MOST_DAYS:
            continue
        years = read.dt.year.nunique() if "%y" in one else 0
        shares[one] = (float(read.notna().mean()), -years, is_like)
    best = max(shares, key=lambda one: shares[one], default=None)
    if best is None or shares[best][0] < SHARE or (is_time(best) and not _are_times(given)):
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
            read = _dates(left, best).notna()
            if not read.any():
                break
            first.setdefault(best, left[int(read.argmax())])
            left = [*compress(left, ~read)]
        unread += len(left)
    if len(first) < 2 or unread > (1 - SHARE) * len(few):
        return ""
    written = ", ".join(map(repr, first.values()))
    return f"dates in several formats, such as {written}: in one format they {DATED}"


DATED = "would be read as such"
AS_UTC = "are read as UTC"


def in_century(values: Sequence[str], known: str, name: str) -> str:
    """A format of two-digit years with the first of the hundred years in which they are read.

    The hundred years are parted where the years leave the widest gap: 30 to 99 and 00 to 05 are
    1930 to 2005. They end `AHEAD` of now at most, those of a birth (by the `name` of the column, in
    lower case, its words joined by underscores) now.
    """
    if "%y" not in known:
        return known
    years = np.unique(_dates(values, known).dropna().dt.year % 100)
    gaps = np.diff(years, append=years[0] + 100)
    widest = int(gaps.argmax())
    last = int(years[widest]) + (2000 if years[widest] < 69 else 1900)
    latest = datetime.now().year + (0 if _BIRTH_NAME.search(name) else AHEAD)
    last -= 100 * (last > latest)
    return f"{known} from {last + (int(gaps[widest]) - 1) // 2 - 99}"


def marks_apart(found: np.ndarray) -> list[float]:
    """Days (of those found [n]) that are often written for an unknown one, apart from all others.

    9999-12-31, 1900-01-01: the first or the last of a year, or a year in which hardly anybody
    lives, at either end of the column. It must be far off the other days, or be found ten times as
    often as any of them.
    """
    days, counts = np.unique(found, return_counts=True)
    marks = []
    for side in (-1, 0):
        while len(days) >= FEWEST_DAYS:
            end, inner = days[side], days[-2 if side else 1]
            year, month, day = day_words(end).rsplit("-", 2)  # a year may be before Christ
            gap, spread = abs(end - inner), abs(inner - days[0 if side else -1])
            often = counts[side] >= 0.01 * counts.sum()
            most = often and counts[side] >= 10 * np.delete(counts, side).max()
            likely = f"{month}-{day}" in ("01-01", "12-31") or not 1900 < int(year) < 2099
            if not (likely and (most or gap > (spread / 4 if often else spread))):
                break
            marks.append(float(end))
            days, counts = np.delete(days, side), np.delete(counts, side)
    return marks


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
        doubt = f"; no day is above 12, so it {EITHER_ORDER} {other}" if doubtful else ""
        said.append(f"read as {taken}{doubt}")
    if (named := _NAMED.fullmatch(known)) and named[2] not in UNIVERSAL:
        said.append(f"times stay in {named[2]}, as written")
    if "%y" in known:
        years = _dates(values, known).dt.year
        first, last = years.min(), years.max()
        span = f"{first:.0f}" if first == last else f"{first:.0f} to {last:.0f}"
        said.append(f"two-digit years are read as {span}")
    if known == ISO:
        clocks = [value for value in values if _ISO_CLOCK.search(value)]
        offsets = [match[1] for value in clocks if (match := _OFFSET.search(value))]
        if 0 < len(offsets) < len(clocks):
            said.append(f"some times have an offset ({offsets[0]}), the others {AS_UTC}")
    if known in COMPACT:
        said.append(f"read as dates, {COMPACT[known]}")
    if is_time(known):
        longest = _dates(values, known).max().timestamp() / 3600
        said.append("a time of day, in hours" if longest < 24 else "in hours: 25:30 is 25.5")
    if known in (*WEEKS, *QUARTERS):
        said.append(f"a {'week' if known in WEEKS else 'quarter'} is read as its first day")
    return "; ".join(said)


def unread_values(values: Sequence[str], known: str) -> list[str]:
    """Values that are not dates of this format, nor what programs write for a missing one."""
    lost = compress(values, _dates(values, known).isna())
    return [value for value in lost if value.casefold() not in NULLS]


def compact_format(found: np.ndarray) -> str | None:
    """The format of whole numbers that are dates written as 20210403; 0 and 9999... are none."""
    found = found[found != 0]
    digits = len(f"{found.min():.0f}") if len(found) > 1 else 0
    known = next((one for one, words in COMPACT.items() if len(words) == digits), None)
    if known is None:
        return None
    years = found // 10 ** (digits - 4)
    found, years = found[years != 9999], years[years != 9999]
    if len(found) < 2 or years.min() < 1900 or years.max() > 2100:
        return None
    written = pd.Series(found.astype(np.int64).astype(str))
    all_dates = pd.to_datetime(written, format=known, errors="coerce").notna().all()
    return known if all_dates else None


def disguise_note(found: np.ndarray) -> str:
    """What to say of whole numbers that are dates or times of day in disguise, or nothing.

    12312024 comes after 1012025 as a number and before it as a date; the distance from 0859 to
    0900 is one minute, not 41.
    """
    months = len(found) >= FEWEST_DAYS and found.min() >= 190_001 and found.max() <= 210_012
    if months and np.isin(found % 100, range(1, 13)).all():
        return "looks like months written YYYYMM"
    if len(found) < 30 or found.min() < 0:
        return ""
    if found.max() < 2400 and found.max() >= 1300 and (found % 100 < 60).all():
        return "looks like times written HHMM"
    digits = len(f"{found.max():.0f}")
    written = pd.Series(f"{number:0{digits}.0f}" for number in found)
    years: dict[str, int] = {}
    for shape in ("MMDDYYYY", "DDMMYYYY", "YYMMDD", "DDMMYY", "MMDDYY"):
        if digits == len(shape) or digits == len("MDDYYYY") == len(shape) - 1:
            form = re.sub(r"(.)\1+", lambda part: _PARTS[part[0]], shape)
            read = pd.to_datetime(written.str.zfill(len(shape)), format=form, errors="coerce")
            if read.dt.year.between(1900, 2100).mean() > 0.95:
                years[shape] = read.dt.year.nunique()
    return f"looks like dates written {min(years, key=lambda one: years[one])}" if years else ""


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
    century = _CENTURY.fullmatch(like or "") if "%y" in known else None
    first = _day(written, f"{known} from {century[2]}" if century else known)
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
    if is_date(column):
        is_clock = pa.types.is_time(column.type)
        kind = pa.time64("us") if is_clock else pa.timestamp("us")
        stamps = column.cast(kind, safe=False).cast(pa.int64()).cast(pa.float64(), safe=False)
        found = stamps.to_numpy() / (1e6 * SECONDS_PER_DAY) * (24 if is_clock else 1)
        marks = [_mark(text, is_clock) for text in missing]
        return np.where(np.isin(found.round(6), np.round(marks, 6)), np.nan, found)
    text = coded(column, missing)
    return text.take(each_day(text.values, known or ISO), np.nan)


def in_another_order(
    values: Sequence[str], known: str, found: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which values only another order of day, month and year reads, and which either would read.

    `found [v]` is what the known order makes of them. The second are none unless the other order
    alone reads more values than the known one alone: then nobody knows which day `03/04/2021` is.
    """
    lost = np.isnan(found)
    few = [values[i] for i in np.flatnonzero(lost)[:SAMPLE]]
    others = [one for one in _other_orders(known) if few and _share_dated(few, one) > 0]
    readings = [each_day(values, one) for one in others]
    if not readings:
        return np.zeros(len(values), bool), np.zeros(len(values), bool)
    other = min(readings, key=lambda one: int(np.isnan(one).sum()))
    turned = (lost & ~np.isnan(other)).sum() > (~lost & np.isnan(other)).sum()
    return lost & ~np.isnan(other), ~np.isnan(other) & ~lost & (other != found) & bool(turned)


def _other_orders(known: str) -> list[str]:
    """A format with day, month and year in each other order; none where months have names."""
    base = "%Y-%m-%d" if known == ISO else known.partition(" from ")[0]
    parts = re.findall("%[dmyY]", base)
    if len(parts) != 3:
        return []
    frame = re.sub("%[dmyY]", "{}", base)
    return [frame.format(*order) for order in permutations(parts) if list(order) != parts]


def _mark(text: str, is_clock: bool) -> float:
    """What stands for a missing value, as a day or, of a clock, in hours; NaN if it is neither."""
    fitting = (one for one in _fitting(_shape(text), text) if is_time(one) == is_clock)
    return next((day for one in fitting if not np.isnan(day := _day(text, one))), np.nan)


def _day(text: str, known: str) -> float:
    return float(each_day([text], known)[0])


def day_words(day: float) -> str:
    """A number of days since 1 January 1970 as the day that it is."""
    return str(np.datetime64(int(np.floor(day)), "D"))


def month_words(day: float) -> str:
    """The same as the month that it lies in."""
    return day_words(day).rpartition("-")[0]


def each_day(values: Sequence[str], known: str) -> np.ndarray:
    """Each value in days since 1 January 1970, or as an hour of the day; NaN if it is neither."""
    stamps = _dates(values, known).dt.as_unit("us")  # nanoseconds end in the year 2262
    found = stamps.astype("int64").to_numpy() / (1e6 * SECONDS_PER_DAY)
    found = np.where(stamps.isna(), np.nan, found)
    return 24 * found if is_time(known) else found


def _dates(values: Sequence[str], known: str) -> pd.Series:
    if century := _CENTURY.fullmatch(known):
        found, first = _dates(values, century[1]), int(century[2])
        years = found.dt.year
        for is_off, by in ((years < first, 100), (years >= first + 100, -100)):
            found = found.mask(is_off, found + pd.DateOffset(years=by))
        return found
    if named := _NAMED.fullmatch(known):
        known, values = named[1], _without_zone(values, named[2])
    if is_time(known):
        return pd.Timestamp(0, tz="UTC") + pd.to_timedelta(pd.Series(map(_hours, values)), unit="h")
    if "%b" in known or "%B" in known:  # the latter in models of earlier versions
        known = known.replace("%B", "%b").replace("%b.", "%b")
        values = [_WORD.sub(_in_english, value) for value in values]
    elif known.startswith("%y"):  # 10-1-1 may be anything
        values = [value if _PADDED.match(value) else "" for value in values]
    elif known in WEEKS:
        known, values = f"{known}-%u", [f"{value}-1" for value in values]
    elif known == ISO:  # "-9" is no year
        values = [value if value[:1].isdigit() else "" for value in values]
    elif known in COMPACT:
        values = [whole(value) for value in values]
    elif known in QUARTERS:
        known, values = known.replace("%q", "%m"), [_QUARTER.sub(_month, one) for one in values]
    text = pd.Series(list(values), dtype=object)
    return pd.to_datetime(text, format=known, errors="coerce", utc=True)


def _in_english(word: re.Match[str]) -> str:
    return _IN_ENGLISH.get(word[0].casefold().rstrip("."), word[0])


def _hours(text: str) -> float:
    """A time of day in hours, or a duration, which has seconds; NaN if it is neither."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return np.nan
    hour, half = int(match[1]), (match[4] or "").casefold()
    if half:
        hour = hour % 12 + 12 * (half == "p") if 0 < hour <= 12 else -1
    elif match[3] is None and hour >= PAST_MIDNIGHT:
        hour = -1
    return np.nan if hour < 0 else hour + int(match[2]) / 60 + float(match[3] or 0) / 3600


def _month(quarter: re.Match[str]) -> str:
    """Q with the first month of a quarter; without any, where there is no such quarter."""
    return {"1": "Q01", "2": "Q04", "3": "Q07", "4": "Q10"}.get(quarter[1], "Q")


def _share_dated(values: Sequence[str], known: str) -> float:
    return float(_dates(values, known).notna().mean())


def _are_times(values: Sequence[str]) -> bool:
    """Whether they are times of day, and not titres such as 1:20 and 1:40."""
    found = [match for value in values if (match := _CLOCK.fullmatch(value))]
    return len({match[1] for match in found}) > 1 and len(found) >= SHARE * len(values)


def _shape(text: str) -> str:
    """What is left of a date when digits and letters do not count: `9.9.9 9:9`."""
    return re.sub(r"[^\W\d_]+\.?", "a", re.sub(r"\d+", "9", text))


@cache
def _by_shape() -> dict[str, list[str]]:
    """The formats by the shape of what they write."""
    found: dict[str, list[str]] = {}
    whole = [f"{date}{between}{time}" for date in DATES for between in BETWEEN for time in TIMES]
    for known in (*DATES, *MONTHS_ALONE, *WEEKS, *QUARTERS, *whole, *TIMES):
        example = _EXAMPLE.strftime(known.replace("%q", "2"))
        found.setdefault(_shape(example), []).append(known)
    return found
