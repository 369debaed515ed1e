"""Dates and times as exports have them: which format, what it means, what is said about it."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dcem.table.columns import guess_kind
from dcem.table.dates import days

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
