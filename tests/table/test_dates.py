"""Dates and times as exports have them: which format, what it means, what is said about it."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dcem.table.columns import guess_kind
from dcem.table.dates import days, end_of

N = 300
TIMES = pd.date_range("2019-01-02 00:07", periods=N, freq="31h17min")
DAYS = ((TIMES - pd.Timestamp(0)) / pd.Timedelta(days=1)).to_numpy()


def column(values) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array([str(value) for value in values], pa.string())])


def read(values) -> tuple[str, np.ndarray, str]:
    """The kind of a column, its numbers, and the note."""
    found = guess_kind("seen", column(values))
    assert found.encoding is not None, found
    return found.kind, days(column(values), found.encoding.date_format), found.note


@pytest.mark.parametrize(
    "written",
    [
        "%d.%m.%Y %H:%M",
        "%d.%m.%Y, %H:%M",
        "%d.%m.%y %H:%M",
        "%Y-%m-%dT%H:%M:%SZ",
        "%Y-%m-%d %H:%M:%S.%f",
        "%Y/%m/%d %H:%M:%S",
        "%m/%d/%y %H:%M",
        "%d/%m/%Y %H:%M:%S.%f",
        "%m/%d/%Y, %I:%M:%S %p",
        "%d-%m-%Y %H:%M",
        "%d-%b-%Y %H:%M",
        "%b %d, %Y %I:%M %p",
        "%B %d, %Y %I:%M %p",
        "%d%b%Y:%H:%M:%S",
        "%Y%m%dT%H%M%S",
    ],
)
def test_days_and_the_time_of_day(written):
    kind, found, _ = read(TIMES.strftime(written))
    assert kind == "date"
    np.testing.assert_allclose(found, DAYS, atol=1e-9)


@pytest.mark.parametrize(
    "written", ["%d-%b-%y", "%d %B %Y", "%Y.%m.%d", "%m-%d-%Y", "%Y%m%d", "%G-W%V-%u"]
)
def test_days(written):
    kind, found, _ = read(TIMES.strftime(written))
    assert kind == "date"
    np.testing.assert_array_equal(found, np.floor(DAYS))


@pytest.mark.parametrize(
    ("written", "months"),
    [
        (
            "{day}. {month} {year}",
            "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        ),
        ("{day:02d}-{month}-{year}", "JAN FEB MRZ APR MAI JUN JUL AUG SEP OKT NOV DEZ"),
        (
            "{day} {month} {year}",
            "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        ),
        (
            "{day} de {month} de {year}",
            "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
            "diciembre",
        ),
    ],
)
def test_months_in_other_languages(written, months):
    names = months.split()
    texts = [
        written.format(day=one.day, month=names[one.month - 1], year=one.year) for one in TIMES
    ]
    kind, found, _ = read(texts)
    assert kind == "date"
    np.testing.assert_array_equal(found, np.floor(DAYS))


@pytest.mark.parametrize("written", ["%G-W%V", "%GW%V"])
def test_weeks_are_their_first_day(written):
    kind, found, note = read(TIMES.strftime(written))
    assert (kind, note) == ("date", "a week is read as its first day")
    mondays = TIMES.normalize() - pd.to_timedelta(TIMES.day_of_week, "D")
    np.testing.assert_array_equal(found, (mondays - pd.Timestamp(0)).days)


@pytest.mark.parametrize("written", ["{0}Q{1}", "{0}-Q{1}", "{0} q{1}", "Q{1} {0}", "Q{1}/{0}"])
def test_quarters_are_their_first_day(written):
    kind, found, note = read([written.format(one.year, one.quarter) for one in TIMES])
    assert (kind, note) == ("date", "a quarter is read as its first day")
    begins = TIMES.to_period("Q").start_time
    np.testing.assert_array_equal(found, (begins - pd.Timestamp(0)).days)
    kind = guess_kind("x", column(["2023Q5", "2023Q6", "2023Q02"] * 30)).kind
    assert kind == "category"


def test_days_as_a_spreadsheet_counts_them_are_pointed_out():
    told = "looks like a spreadsheet's day numbers (43831 is 2020-01-01)"
    for name in ("admission_date", "BirthDate", "Datum"):
        found = guess_kind(name, column(43_831 + np.arange(300) * 7 % 900))
        assert found.kind == "number"
        assert told in found.note
    for name, start in (("candidates", 43_831), ("date", 1), ("update", 43_831)):
        assert not guess_kind(name, column(start + np.arange(300) * 7 % 900)).note


@pytest.mark.parametrize("written", ["%H:%M", "%H:%M:%S", "%I:%M %p"])
def test_times_of_day_are_hours(written):
    kind, found, _ = read(TIMES.strftime(written))
    assert kind == "time"
    np.testing.assert_allclose(found, 24 * (DAYS - np.floor(DAYS)), atol=1e-9)


def test_without_leading_zeros():
    kind, found, _ = read([f"{one.month}/{one.day}/{one.year % 100}" for one in TIMES])
    assert kind == "date"
    np.testing.assert_array_equal(found, np.floor(DAYS))


def test_whether_the_day_comes_first_is_decided_by_the_whole_column():
    days_up_to_12 = [f"{one.day % 12 + 1:02d}/{one.month:02d}/{one.year}" for one in TIMES]
    kind, found, note = read(days_up_to_12)
    assert kind == "date"
    assert "month/day/year; no day is above 12" in note
    one_tells = [*days_up_to_12[:-1], "25/03/2020"]
    found, note = read(one_tells)[1:]
    assert note == "read as day/month/year"
    assert np.isfinite(found).all()


def test_time_zones_become_one():
    berlin = [f"{one:%Y-%m-%dT%H:%M:%S}+0{1 + number % 2}:00" for number, one in enumerate(TIMES)]
    found = read(berlin)[1]
    np.testing.assert_allclose(found, DAYS - (1 + np.arange(N) % 2) / 24, atol=1e-9)


def test_words_for_missing_and_a_few_slips():
    written = TIMES.strftime("%d.%m.%Y").to_numpy(object)
    written[::7], written[5] = "NA", "31.02.2020"
    found = read(written)[1]
    assert np.isnan(found[::7]).all()
    assert np.isnan(found[5])
    assert np.isfinite(np.delete(found, [*range(0, N, 7), 5])).all()


@pytest.mark.parametrize(
    "values",
    [
        ["1:10", "1:20", "1:40"],  # titres
        ["1:80", "1:160", "2:80"],
        [f"{100 + i}/{60 + i}" for i in range(15)],  # blood pressure
        [f"{i}/{i + 1}" for i in range(1, 15)],
        ["10.1.1", "10.2.1", "10.2.3"],
        ["I20-I25", "J40-J47"],
        ["2-3", "4-5"],
    ],
)
def test_what_is_not_a_date(values):
    assert guess_kind("x", column(values * 30)).kind == "category"


def test_numbers_that_are_not_dates():
    for values in (range(43_000, 43_300), range(20_000_000, 20_000_300)):
        assert guess_kind("x", column(values)).kind == "number"


@pytest.mark.parametrize(
    ("value", "mark"),
    [
        (datetime.date(1900, 1, 1), "1900-01-01"),
        (datetime.datetime(9999, 12, 31), "31.12.9999"),
        (datetime.time(10, 5), "10:05"),
    ],
)
def test_what_stands_for_a_missing_date_counts_in_types_too(value, mark):
    later = [TIMES[i].to_pydatetime() for i in range(20)]
    parts = {datetime.date: "date", datetime.time: "time", datetime.datetime: "replace"}
    typed = pa.chunked_array([[value, *(getattr(one, parts[type(value)])() for one in later)]])
    for missing in ((mark,), (f"seen={mark}", "99")):
        found = guess_kind("seen", typed, missing)
        assert found.missing == 1 / 21
    assert np.isnan(days(typed, None, (mark, "99"))).tolist() == [True] + [False] * 20


def test_types_that_arrow_has():
    clock = pa.chunked_array([pa.array([one.time() for one in TIMES])])
    assert guess_kind("x", clock).kind == "time"
    np.testing.assert_allclose(days(clock, None), 24 * (DAYS % 1), atol=1e-6)
    stay = pa.chunked_array([pa.array([datetime.timedelta(hours=i) for i in range(N)])])
    found = guess_kind("x", stay)
    assert found.kind == "number"
    out = np.empty((N, 1))
    found.encoding.encode(stay, (), out)
    np.testing.assert_allclose(out[:, 0], np.arange(N) / 24)


@pytest.mark.parametrize("zone", ["UTC", "GMT", "MEZ", "CET", "EST"])
@pytest.mark.parametrize("written", ["%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M:%S", "%m/%d/%Y %I:%M %p"])
def test_a_zone_that_all_rows_name(written, zone) -> None:
    kind, found, note = read(TIMES.strftime(written) + f" {zone}")
    assert kind == "date"
    np.testing.assert_allclose(found, DAYS, atol=1e-6)
    assert (f"in {zone}" in note) == (zone not in ("UTC", "GMT"))


def test_names_of_universal_time_are_one_zone() -> None:
    ends = np.array([" UTC", " GMT", "Z"])[np.arange(N) % 3]
    kind, found, _ = read(TIMES.strftime("%d.%m.%Y %H:%M") + ends)
    assert kind == "date"
    np.testing.assert_allclose(found, DAYS, atol=1e-6)


@pytest.mark.parametrize("n", [N, 40 * N])
def test_dates_in_several_zones_are_pointed_out(n) -> None:
    times = pd.date_range("2019-01-02 00:07", periods=n, freq="7min")
    ends = np.where(np.arange(n) % 2, " MEZ", " MESZ")
    found = guess_kind("seen", column(times.strftime("%d.%m.%Y %H:%M") + ends))
    assert found.kind == "identifier"
    assert "time zones (MESZ, MEZ)" in found.note


def test_a_row_in_another_zone_is_not_read() -> None:
    known = guess_kind("seen", column(TIMES.strftime("%Y-%m-%d %H:%M CET"))).encoding
    assert known is not None
    assert np.isnan(days(column(["2024-03-01 10:00 EST"]), known.date_format)).all()


def years_of(written, name="x") -> tuple[int, int]:
    """The first and the last year that two-digit years were read as."""
    found = guess_kind(name, column(written))
    assert found.kind == "date"
    read = pd.to_datetime(days(column(written), found.encoding.date_format), unit="D").year
    assert f"{read.min()} to {read.max()}" in found.note
    return read.min(), read.max()


@pytest.mark.parametrize("shape", ["{:02d}.{:02d}.{:02d}", "{1:02d}/{0:02d}/{2:02d} 14:05"])
@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("x", 1930, 2005),  # births, whatever the column is called
        ("x", 1940, 1975),
        ("x", 1927, 2024),
        ("Geburtsdatum", 1930, 1968),
        ("dob", 1921, 1960),
        ("x", 2019, 2026),
        ("x", 1995, 2026),
        ("maturity", 2024, 2055),  # of loans
        ("x", 1969, 1999),
    ],
)
def test_the_century_of_two_digit_years(shape, name, first, last):
    years = [first + i % (last - first + 1) for i in range(1200)]
    written = [shape.format(1 + i % 28, 1 + i % 12, y % 100) for i, y in enumerate(years)]
    assert years_of(written, name) == (first, last)


def test_later_rows_and_until_are_read_in_the_same_century():
    births = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.{(30 + i % 76) % 100:02d}" for i in range(N)]
    known = guess_kind("x", column(births)).encoding.date_format
    later = days(column(["29.02.20", "01.01.10", "31.12.16"]), known)
    assert [str(np.datetime64(int(day), "D")) for day in later] == [
        "1920-02-29",
        "2010-01-01",
        "2016-12-31",
    ]
    assert end_of("31.12.25", known) < end_of("31.12.29", known) < end_of("31.12.16", known)


@pytest.mark.parametrize("mark", ["9999-12-31", "2099-12-31", "1900-01-01", "1753-01-01"])
@pytest.mark.parametrize("shape", ["%Y-%m-%d", "%d.%m.%Y", "%Y-%m-%d 00:00:00", "%Y%m%d", "typed"])
def test_days_that_stand_for_unknown_ones_are_pointed_out(mark, shape):
    year, month, day = mark.split("-")
    marked = np.arange(N) % 9 == 0
    if shape == "typed":
        of_mark = datetime.date(int(year), int(month), int(day))
        cells = [of_mark if m else one.date() for m, one in zip(marked, TIMES, strict=True)]
        raw, written = pa.chunked_array([cells]), mark
    else:
        written = shape.replace("%Y", year).replace("%m", month).replace("%d", day)
        raw = column(np.where(marked, written, TIMES.strftime(shape)))
    if (mark, shape) == ("1753-01-01", "%Y%m%d"):  # a number like any other
        return
    found = guess_kind("seen", raw)
    assert f"{written} lies far from all other values" in found.note
    assert f"seen={written}" in found.note
    listed = guess_kind("seen", raw, (f"seen={written}",))
    assert (listed.kind, listed.missing) == ("date", marked.mean())
    assert "far from" not in listed.note


def test_two_marks_and_one_that_is_only_frequent_are_pointed_out():
    births = pd.date_range("1921-01-01", "2019-12-31", periods=1000).strftime("%Y-%m-%d").to_numpy()
    births[::20] = "1900-01-01"
    assert "1900-01-01 lies" in guess_kind("dob", column(births)).note
    births[1::20] = "9999-12-31"
    assert "9999-12-31, 1900-01-01 lie" in guess_kind("dob", column(births)).note


@pytest.mark.parametrize(
    "dates",
    [
        TIMES,
        pd.date_range("2015-01-01", "2019-12-31"),
        pd.to_datetime([f"{1950 + i % 60}-01-01" for i in range(N)]),  # years
        pd.to_datetime([f"{1950 + (i % 14) ** 2}-12-31" for i in range(N)]),
        pd.to_datetime(["1899-03-04", *[f"{1905 + i % 90}-05-06" for i in range(N)]]),
        pd.to_datetime(["2019-01-01", "2020-06-01"] * 100),
    ],
)
def test_ordinary_days_are_not_pointed_out(dates):
    assert "far from" not in guess_kind("seen", column(dates.strftime("%Y-%m-%d"))).note
    assert "far from" not in guess_kind("seen", pa.chunked_array([pa.array(dates)])).note


@pytest.mark.parametrize("mark", ["0000-00-00", "unknown", "n.a."])
def test_words_for_no_date_do_not_keep_dates_from_being_dates(mark):
    found = guess_kind("seen", column(np.where(np.arange(N) % 4, TIMES.strftime("%F"), mark)))
    assert (found.kind, found.missing) == ("date", 1 / 4)
    assert f"{mark!r} counts as missing" in found.note


def test_compact_dates_with_marks_are_dates():
    written = np.where(np.arange(N) % 4, TIMES.strftime("%Y%m%d"), "0")
    written[::9] = "99991231"
    kind, _, note = read(written)
    assert (kind, "'0' counts as missing" in note, "99991231 lies" in note) == ("date", True, True)
    assert guess_kind("x", column([0, *range(20_000_000, 20_000_300)])).kind == "number"


def test_offsets_in_some_rows_are_pointed_out():
    written = TIMES.strftime("%Y-%m-%d %H:%M:%S").to_numpy(object)
    assert "UTC" not in read(written)[2]
    assert "UTC" not in read(written + "+02:00")[2]
    for offset in ("+02:00", "Z", "-0500"):
        mixed = np.where(np.arange(N) % 3, written, written + offset)
        assert f"an offset ({offset}), the others are read as UTC" in read(mixed)[2]
    days_alone = np.where(np.arange(N) % 3, written + "+02:00", TIMES.strftime("%Y-%m-%d"))
    assert "UTC" not in read(days_alone)[2]


@pytest.mark.parametrize(
    "written",
    [
        "%d-%b-%y %I.%M.%S.000000000 %p",  # Oracle
        "%Y-%m-%d-%H.%M.%S.000000",  # DB2
        "%Y%m%d%H%M%S",  # HL7
        "%Y%m%d%H%M",
    ],
)
def test_stamps_of_databases_and_messages(written):
    kind, found, _ = read([one.upper() for one in TIMES.strftime(written)])
    assert kind == "date"
    np.testing.assert_allclose(found, DAYS, atol=1e-9)


def test_numbers_of_twelve_digits_that_are_not_times():
    numbered = [f"20210403{i:04d}" for i in range(N)]  # a day and a running number
    assert guess_kind("x", column(numbered)).kind == "number"


@pytest.mark.parametrize("written", ["%b-%Y", "%b-%y", "%b. %Y", "%B %Y"])
def test_months_alone(written):
    kind, found, _ = read(TIMES.strftime(written))
    assert kind == "date"
    first = TIMES.to_period("M").start_time
    np.testing.assert_array_equal(found, (first - pd.Timestamp(0)).days)
    encoding = guess_kind("seen", column(TIMES.strftime(written))).encoding
    until = TIMES[5].strftime(written)
    assert end_of(until, encoding.date_format) == pytest.approx(found[5] + 31, abs=1e-4)


def test_short_names_of_french_months_and_hours():
    names = [
        "janv.",
        "févr.",
        "mars",
        "avr.",
        "mai",
        "juin",
        "juil.",
        "août",
        "sept.",
        "oct.",
        "nov.",
        "déc.",
    ]
    kind, found, _ = read([f"{t.day} {names[t.month - 1]} {t.year}" for t in TIMES])
    assert kind == "date"
    np.testing.assert_array_equal(found, np.floor(DAYS))
    kind, found, _ = read([f"{t.hour}h{t.minute:02d}" for t in TIMES])
    assert kind == "time"
    np.testing.assert_allclose(found, TIMES.hour + TIMES.minute / 60)


def test_words_that_begin_like_months_are_not_months():
    drugs = ["Augmentin 2020", "Decadron 2021", "Marcumar 2019", "Janumet 2020"]
    assert guess_kind("x", column(drugs * 30)).kind == "category"


def test_times_past_midnight_and_durations_are_hours():
    written = ["18:30", "23:59", "24:00", "25:30", "29:59"] * 30
    kind, found, note = read(written)
    assert (kind, note) == ("time", "in hours: 25:30 is 25.5")
    np.testing.assert_allclose(found[:5], [18.5, 23 + 59 / 60, 24, 25.5, 29 + 59 / 60])
    kind, found, _ = read(["0:35:00", "72:15:36", "120:00:00"] * 30)
    np.testing.assert_allclose(found[:3], [35 / 60, 72.26, 120])
    for values in (["50:50", "60:40", "80:20"], ["1:75:00", "2:99:10"], ["13:05 PM", "0:10 AM"]):
        assert guess_kind("x", column(values * 30)).kind == "category"


def test_months_written_as_numbers_are_pointed_out():
    assert "YYYYMM" in guess_kind("x", column(TIMES.strftime("%Y%m"))).note
    prices = guess_kind("x", column(190_001 + np.arange(300) * 61 % 20_000))
    assert "YYYYMM" not in prices.note


@pytest.mark.parametrize("mark", ["-", "/"])
def test_two_digit_years_may_come_first(mark):
    """As SAS writes them: 21-04-03 is no 21 April 2003."""
    kind, found, note = read(TIMES.strftime(f"%y{mark}%m{mark}%d"))
    assert (kind, note) == ("date", "two-digit years are read as 2019 to 2020")
    np.testing.assert_array_equal(found, np.floor(DAYS))
    known = guess_kind("x", column(TIMES.strftime(f"%y{mark}%m{mark}%d"))).encoding.date_format
    assert end_of(f"19{mark}04{mark}03", known) == pytest.approx(17_989 + 1, abs=1e-4)


@pytest.mark.parametrize("written", ["%d-%m-%y", "%d/%m/%y", "%m/%d/%y", "%m-%d-%y"])
@pytest.mark.parametrize(
    "dates",
    [
        TIMES,
        pd.date_range("2019-01-01", "2019-12-31"),
        pd.date_range("2001-01-15", "2024-12-31", freq="MS"),
        pd.date_range("2001-01-15", "2024-12-31", freq="SMS"),
        pd.date_range("2001-01-01", "2025-12-31", freq="11D"),
    ],
)
def test_two_digit_years_that_come_last_stay_there(written, dates):
    """Also of days that are all firsts of a month, or of children born in 2001 to 2025."""
    kind, found, note = read(dates.strftime(written))
    unclear = "could also be" in note
    if not unclear:
        np.testing.assert_array_equal(found, (dates - pd.Timestamp(0)).days)
    assert kind == "date"
    assert f"{dates.year.min()} to" in note or dates.year.nunique() == 1


@pytest.mark.parametrize(
    ("written", "said"),
    [("%d%m%Y", "DDMMYYYY"), ("%m%d%Y", "MMDDYYYY"), ("%y%m%d", "YYMMDD"), ("%d%m%y", "DDMMYY")],
)
def test_dates_of_digits_alone_are_pointed_out(written, said):
    many = pd.date_range("2019-01-02", periods=700)
    for cells in (many.strftime(written), [str(int(one)) for one in many.strftime(written)]):
        assert f"looks like dates written {said}" in guess_kind("x", column(cells)).note


def test_times_of_digits_alone_are_pointed_out_and_codes_are_not():
    assert "times written HHMM" in guess_kind("x", column(TIMES.strftime("%H%M"))).note
    rooms, items = [101 + i % 31 for i in range(N)], [50_801 + i % 31 for i in range(N)]
    for codes in ([f"{i * 7 % 9000:04d}" for i in range(N)], rooms, items):
        assert "looks like dates" not in guess_kind("x", column(codes)).note
        assert "looks like times" not in guess_kind("x", column(codes)).note


@pytest.mark.parametrize("written", ["%H:%M", "%d.%m.%y", "%b-%Y", "%Y%m%d%H%M", "%y-%m-%d"])
def test_a_batch_without_any_date(written):
    known = guess_kind("seen", column(TIMES.strftime(written))).encoding.date_format
    for cells in ([], [None] * 3, ["no date"] * 3):
        found = days(pa.chunked_array([pa.array(cells, pa.string())]), known)
        assert len(found) == len(cells)
        assert np.isnan(found).all()
