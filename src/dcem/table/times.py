"""When the decision to test was taken, and what a person's earlier rows tell.

The time of a row is a date (with or without the time of day) or a number. It is never a feature:
it orders the rows, so that a model learns from the past and is judged in the future, and so that
what is told of a person's earlier tests rests on earlier rows alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dcem.table import dates, values
from dcem.table.columns import guess_kind
from dcem.table.frames import as_series
from dcem.table.messages import InputError, notice, rows_text
from dcem.table.read import as_arrow, read_whole
from dcem.table.remote import located
from dcem.table.roles import Roles

HISTORY = ("not tested before", "last result negative", "last result positive")


def read_time(
    column: pa.ChunkedArray, name: str, missing: Collection[str] = ()
) -> tuple[np.ndarray, str | None, str]:
    """A column of dates or numbers as times [n]: `datetime64`, or float64 of plain numbers.

    And the format of dates that are written as text, and a note on how they were read.
    """
    found = guess_kind(name, column, missing, keep=True)
    if found.kind == "number":
        return values.numbers(column, missing), None, found.note
    if found.kind == "date" and found.encoding is not None:
        written = found.encoding.date_format
        return as_dates(dates.days(column, written, missing)), written, found.note
    if found.kind == "constant":
        raise InputError(
            f"Column {name!r} has the same time in all rows, so no row is earlier than another. "
            "Name the column with the time of each decision, or none."
        )
    raise InputError(
        f"Column {name!r} was given as the time of the decision, but contains neither numbers nor "
        "dates in one format. Write dates the same way in every row, such as 2024-05-31 or "
        "31.05.2024 14:05."
    )


def tell_order(name: str, note: str) -> None:
    """Say of a column of times that was read with this `note` that its order is a guess."""
    if dates.EITHER_ORDER in note:
        notice(f"{name!r}, the time of the decision: {note}.")


def as_dates(days: np.ndarray) -> np.ndarray:
    """Days since 1 January 1970 as `datetime64`, to the second; NaN becomes NaT."""
    seconds = np.round(np.nan_to_num(days) * dates.SECONDS_PER_DAY).astype(np.int64)
    stamps = seconds.astype("datetime64[s]")
    stamps[np.isnan(days)] = np.datetime64("NaT")
    return stamps


def check_time(given: Any, name: str, *, labels: pd.Index | None = None) -> np.ndarray:
    """The time of each row: dates or finite numbers, none missing."""
    series = as_series(given, name)
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        if series.dt.tz is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        times = series.to_numpy("datetime64[s]")
    elif pd.api.types.is_numeric_dtype(series.dtype):
        times = series.to_numpy(float)
    else:
        text = pa.chunked_array([pa.array(series.astype(str))])
        times, _, note = read_time(text, name)
        tell_order(name, note)
    absent = np.isnat(times) if times.dtype.kind == "M" else ~np.isfinite(times)
    if absent.any():
        raise InputError(
            f"Column {name!r}, the time of the decision to test, is missing in "
            f"{rows_text(absent, labels)}. Give these rows a time, or leave them out."
        )
    return times


def numeric(times: np.ndarray) -> np.ndarray:
    """Times as numbers [n]: dates as days since 1 January 1970."""
    if times.dtype.kind != "M":
        return np.asarray(times, float)
    return times.astype("datetime64[s]").astype(np.int64) / dates.SECONDS_PER_DAY


def time_words(moment: Any) -> str:
    """One time as people read it: `2024-05-31`, or the number."""
    if np.asarray(moment).dtype.kind == "M":
        return str(np.datetime64(moment, "D"))
    return f"{float(moment):g}"


def in_time(times: np.ndarray, until: str, name: str, written: str | None = None) -> np.ndarray:
    """Which rows are not after `until` [n], the last time whose results are all in.

    A day, a month or a quarter counts whole; `written` is the format of the column.
    """
    if times.dtype.kind == "M":
        end = as_dates(np.array([dates.end_of(until, written)]))[0]
        unread = np.isnat(end)
    else:
        try:
            end, unread = float(until), False
        except ValueError:
            end, unread = np.nan, True
    if unread:
        what = "a date" if times.dtype.kind == "M" else "a number"
        raise InputError(f"`until` is {until!r}; it must be {what}, as in column {name!r}.")
    kept: np.ndarray = times <= end
    if not kept.any():
        raise InputError(f"All {len(kept):,} rows are after {until} (`until`): none is left.")
    return kept


def period(times: np.ndarray) -> tuple[str, str]:
    """The first and the last time, as everybody may see them: a few rows lie beyond either.

    The very first and last belong to single people.
    """
    ordered = np.sort(times)
    edge = min(9, (len(ordered) - 1) // 2)
    return time_words(ordered[edge]), time_words(ordered[-1 - edge])


def earlier_results(
    person: np.ndarray, time: np.ndarray, tested: np.ndarray, y: np.ndarray
) -> pd.DataFrame:
    """What each row's person had behind them at that time, from strictly earlier rows alone [n].

    Columns: `earlier_visits`, `earlier_tests`, `earlier_positives` (counts), `last_result` (0 or 1,
    NaN if never tested) and `since_last_test` (in days, or the unit of `time`; NaN likewise). Rows
    at the same time do not know of each other. `person [n]` are codes, `y [n]` is NaN where
    untested. A result counts as known as soon as the next row is later.
    """
    time = numeric(time)
    rows = pd.DataFrame({"person": person, "time": time})
    rows["visits"], rows["tests"] = 1, tested.astype(int)
    rows["positives"] = np.where(tested, np.nan_to_num(y), 0).astype(int)
    at = rows.groupby(["person", "time"], sort=True)[["visits", "tests", "positives"]].sum()
    before = at.groupby(level=0).cumsum() - at  # strictly earlier
    seen = rows[tested].assign(result=y[tested]).groupby(["person", "time"])["result"].max()
    last = pd.DataFrame({"result": seen, "when": seen.index.get_level_values("time")})
    last = last.reindex(at.index).groupby(level=0).ffill().groupby(level=0).shift()
    joined = before.join(last).loc[pd.MultiIndex.from_arrays([person, time])]
    joined = joined.add_prefix("earlier_").reset_index(drop=True)
    joined["since_last_test"] = time - joined.pop("earlier_when")
    return joined.rename(columns={"earlier_result": "last_result"})


def add_history(source: Any, roles: Roles, query: str | None = None) -> pa.Table:
    """A table with what was known of each person's earlier tests added to every row.

    Five columns (`earlier_results`), made from strictly earlier rows of the same
    person alone, so that they may be features. The roles `id` and `time` are needed. A test was
    done however much its row counts: weights, and `until`, do not matter here.
    """
    if roles.id is None or roles.time is None:
        raise InputError(
            "To find a person's earlier tests, name the columns with the person (`id`) and with "
            "the time of the decision (`time`)."
        )
    from dcem.table.load import read_table  # which reads times

    unused = () if roles.weight is None else (roles.weight,)
    roles = replace(roles, until=None, weight=None, exclude=(*roles.exclude, *unused))
    is_file = isinstance(source, str | Path)
    table = read_whole(located(source), query=query) if is_file else as_arrow(source)
    problem = read_table(table, roles).problem
    assert problem.time is not None
    known = earlier_results(problem.person, problem.time, problem.tested, problem.y_obs)
    for name in known:
        if name in table.column_names:
            raise InputError(f"The table already has a column {name!r}: rename or drop it.")
        table = table.append_column(name, pa.array(known[name], from_pandas=True))
    return table
