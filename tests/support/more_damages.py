"""More kinds of damage: lone cells, identifiers, units, levels, contradictions, stale files."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from damaged import (
    ROLES,
    Case,
    N,
    Writer,
    as_bytes,
    as_csv,
    as_parquet,
    cells,
    csv_bytes,
    people_of,
)

from dcem.table import read_table

LONE = (
    *("x1", "12a", "1..2", "1,2,3", "--5", "0x1F", "#REF", "Err:502", "see note 1", "4.20*", "~4"),
    *("12 34", "1/2", "2021-05-05", "12:30", "5-6", "1;2", "(3)", "IV", "1 mg", "3..", "abc"),
    *("45 %", "1e", "²", "½", "5’", "1.2.3", "+-3", "n=5", "1 of 2", "[3]", "{}", "NaN(5)"),
)


def lone_cells() -> Iterator[Case]:
    """One unreadable cell is missing; five of 160 make a column text, with a note."""
    for column, value in itertools.product(("age", "lactate"), LONE):
        frame = cells()
        frame.loc[11, column] = value
        kinds = {column: "number"}
        yield Case(f"lone: {value!r} in {column}", as_csv(frame), people_of(frame), kinds=kinds)
    for value in LONE[:12]:
        frame = cells()
        frame.loc[[3, 30, 60, 90, 120], "lactate"] = value
        yield Case(
            f"lone: {value!r} in five rows",
            as_csv(frame),
            people_of(frame),
            kinds={"lactate": "text"},
        )
    for value in ("-2,22e-16", "1,5e-16", "2,5E+3", "1,234e-5", "-1e-8", "1.5e-3"):
        frame = cells()
        frame["lactate"] = frame["lactate"].str.replace(".", ",", regex=False)
        frame.loc[11, "lactate"] = value
        people, kinds = people_of(frame), {"lactate": "number"}
        yield Case(
            f"lone: {value!r} with semicolons", as_csv(frame, delimiter=";"), people, kinds=kinds
        )
        frame = cells()
        frame.loc[11, "lactate"] = value
        yield Case(f"lone: {value!r} with commas", as_csv(frame), people, kinds=kinds)


PAIRS = (
    ("=1+1", "'=1+1"),
    ("+49 30", "'+49 30"),
    ("+4930", "4930"),
    ("-x", "x"),
    ("@a", "'@a"),
    ("''-x", "'-x"),
    ("-1", "1"),
    ("a,b", "a;b"),
    ('a"b', "a'b"),
    ("a\tb", "a b"),
    ("two\nlines", "two lines"),
    ("A==", "A="),
    ("+A/=", "A/="),
    ("1,5", "1.5"),
    ("1.234", "1234"),
    ("1,234", "1.234"),
    ("1.234.567", "1234567"),
    ("12.5", "12,5"),
    ("1e5", "100000"),
    ("001", "1"),
    ("1/2", "01-02"),
    ("None", "none"),
    ("(missing)", "missing"),
    ("x" * 300, "x" * 299),
    ("é", "e"),
)


def identifiers() -> Iterator[Case]:
    """Two people stay two, whatever their identifiers look like and whatever parts the fields."""
    for (one, two), delimiter in itertools.product(PAIRS, ",;"):
        frame = cells()
        frame.loc[[20, 21], "patient"] = one
        frame.loc[[40, 41], "patient"] = two
        people = people_of(frame).assign(person=frame["patient"])
        name = f"identifiers: {one[:12]!r} and {two[:12]!r}, {delimiter}"
        yield Case(name, as_csv(frame, delimiter=delimiter), people)
    for prefix in ("=", "+", "-", "@", "'", "'+", "''="):
        frame = cells()
        frame["patient"] = prefix + frame["patient"]
        people = people_of(frame).assign(person=frame["patient"])
        yield Case(f"identifiers: all begin with {prefix}", as_csv(frame), people)


FOREIGN = {
    "age": ("45 %", "$45", "€45", "45 €", "£ 45", "1,234", "12,5", "$1,234"),
    "lactate": ("10.44%", "0.5 %", "$0.5", "€ 0.5", "¥5", "0,5", "1,234", "2,5", "1.5%", "0,1044"),
}


def units() -> Iterator[Case]:
    """Units and marks that the model of the sound table never saw: named, and not read."""
    for column, values in FOREIGN.items():
        for value in values:
            for rows in (range(2), range(0, N, 3)):
                frame = cells()
                frame.loc[list(rows), column] = value
                name = f"units: {value!r} in {len(rows)} rows of {column}"
                yield Case(name, as_csv(frame), people_of(frame), foreign=column)
    orders = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%y", "%d %b %Y")
    for form in orders:
        frame = cells()
        frame["seen"] = pd.to_datetime(frame["seen"]).dt.strftime(form)
        yield Case(f"units: dates as {form}", as_csv(frame), people_of(frame), foreign="seen")


def levels() -> Iterator[Case]:
    """Levels called like our own, columns called like features, categories that do not occur."""
    for value in ("(other)", "(missing)", "'(other)'", "other", "=", "a=b", "(other) (2)"):
        frame = cells()
        frame["ward"] = frame["ward"].replace("ICU", value)
        yield Case(f"levels: a ward {value!r}", as_csv(frame), people_of(frame))
        gaps = frame.copy()
        gaps.loc[::4, "ward"] = ""
        yield Case(f"levels: a ward {value!r}, and gaps", as_csv(gaps), people_of(gaps))
    for name in ("ward=ICU", "ward=ER", "ward=(missing)", "ward=surgery"):
        frame = cells().rename(columns={"age": name})
        frame.loc[::4, "ward"] = ""
        yield Case(f"levels: a column {name!r}", as_csv(frame), people_of(frame))
    frame = cells()
    frame["ward=a"] = np.where(np.arange(N) % 2, "b", "c")
    frame["ward"] = np.where(np.arange(N) % 3, "a=b", frame["ward"])
    yield Case("levels: two columns with one feature", as_csv(frame), people_of(frame))
    for column in ("race", "result", "ward", "patient"):
        for unused in ("unknown", "maybe", "(other)"):
            frame = cells()
            values = [*frame[column].replace("", None).dropna().unique(), unused]
            typed = frame.assign(
                **{column: pd.Categorical(frame[column].replace("", None), values)}
            )
            table = pa.Table.from_pandas(typed, preserve_index=False)
            name = f"levels: {unused!r} is no {column}"
            yield Case(name, as_parquet(table), people_of(frame))


def positives() -> Iterator[Case]:
    """People who are positive without a test: refused, or counted as stated."""
    for yes, no in (("1", "0"), ("yes", "no"), ("TRUE", "FALSE"), ("done", "not done")):
        frame = cells()
        tested = frame["result"] != ""
        frame["tested"] = np.where(tested, yes, no)
        late = np.flatnonzero(~tested)[:4]
        frame.loc[late, "result"] = "1"
        roles = replace(ROLES, tested="tested")
        yield Case(f"positives: {yes!r}, {no!r}", as_csv(frame), None, roles)
        people = people_of(frame)
        stated = replace(roles, positive_untested="tested")
        yield Case(f"positives: {yes!r}, {no!r}, tested", as_csv(frame), people, stated)
        people = people.copy()
        people.loc[late, "tested"], people.loc[late, "label"] = False, np.nan
        stated = replace(roles, positive_untested="untested")
        yield Case(f"positives: {yes!r}, {no!r}, untested", as_csv(frame), people, stated)


def nothing() -> Iterator[Case]:
    """Tables without columns, and columns that cannot be what they are named for."""
    rows = pa.table({"x": [1, 2]}).select([])
    yield Case("nothing: Parquet without columns", as_parquet(rows), None)
    yield Case("nothing: delimiters alone", as_bytes(b",,\n,,\n"), None)
    yield Case("nothing: a space", as_bytes(b" "), None)
    base = pa.table({name: pa.array(column.tolist()) for name, column in cells().items()})
    strange: dict[str, Any] = {
        "lists": pa.array([[i] for i in range(N)]),
        "lists of text": pa.array([["a", str(i)] for i in range(N)]),
        "empty lists": pa.array([[]] * N, pa.list_(pa.int64())),
        "structures": pa.array([{"a": i} for i in range(N)]),
        "maps": pa.array([[("a", i)] for i in range(N)], pa.map_(pa.string(), pa.int64())),
        "bytes": pa.array([bytes([255, i]) for i in range(N)]),
        "fixed lists": pa.array([[i, i] for i in range(N)], pa.list_(pa.int64(), 2)),
    }
    for column in ("patient", "race", "result"):
        for name, values in strange.items():
            table = base.set_column(base.schema.get_field_index(column), column, values)
            yield Case(f"nothing: {column} of {name}", as_parquet(table), None)


def _stale(first: Writer, then: Writer) -> Writer:
    """A file that was read, and written anew with the same size and time."""

    def write(folder: Path) -> Path:
        path = first(folder)
        about = path.stat()
        read_table(path, ROLES)
        then(folder)
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
        return path

    return write


def stale() -> Iterator[Case]:
    """Files with the time stamp of another one that was read before."""
    frame = cells()
    turned = frame.assign(race=frame["race"].map({"A": "B", "B": "C", "C": "A"}))
    people = people_of(turned)

    def book(content: pd.DataFrame) -> Writer:
        def write(folder: Path) -> Path:
            content.replace("", None).to_excel(folder / "t.xlsx", index=False)
            return folder / "t.xlsx"

        return write

    def stata(content: pd.DataFrame) -> Writer:
        def write(folder: Path) -> Path:
            content.to_stata(folder / "t.dta", write_index=False)
            return folder / "t.dta"

        return write

    other = frame[[*frame.columns[::-1]]]
    mapped = people_of(other)
    for name, make in (("csv", as_csv), ("stata", stata), ("xlsx", book)):
        yield Case(f"stale: {name}", _stale(make(frame), make(turned)), people)
        yield Case(f"stale: {name}, other columns", _stale(make(frame), make(other)), mapped)
    semicolons = as_csv(frame, delimiter=";")
    yield Case("stale: another delimiter", _stale(as_csv(frame), semicolons), people_of(frame))
    text = csv_bytes(frame)
    wide = as_bytes(text.replace("ICU", "Höhe").encode("latin-1"))
    narrow = as_bytes(text.replace("ICU", "Hohe").encode("latin-1"))
    yield Case("stale: another encoding", _stale(narrow, wide), people_of(frame))


MORE = (lone_cells, identifiers, units, levels, positives, nothing, stale)
