"""Twelve hundred kinds of damage to one sound table, by family; see `damaged`."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from damaged import (
    COLUMNS,
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
from more_damages import MORE


def layouts() -> Iterator[Case]:
    """Encodings, delimiters, ends of lines, quotes: the same table, however it is written."""
    frame = cells()
    frame.loc[0, "ward"] = "Chirurgie-Höhe"
    people = people_of(frame)
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "latin-1"):
        for delimiter in ",;\t|":
            for end in ("\n", "\r\n"):
                for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
                    text = csv_bytes(frame, delimiter, end, quoting)
                    name = f"layout: {encoding} {delimiter!r} {end!r} quoting {quoting}"
                    yield Case(name, as_bytes(text.encode(encoding)), people)
    text = csv_bytes(frame)
    yield Case("layout: no end of the last line", as_bytes(text.rstrip("\n").encode()), people)
    yield Case("layout: blank lines at the end", as_bytes((text + "\n\n").encode()), people)
    yield Case("layout: blank lines before", as_bytes(("\n\n" + text).encode()), people)
    yield Case("layout: gzip", as_bytes(gzip.compress(text.encode()), "t.csv.gz"), people)
    yield Case(
        "layout: ends of old Macs",
        as_bytes(text.replace("\n", "\r").encode()),
        people,
        may_refuse=True,
    )
    rows = text.splitlines()
    spaced = "\n".join("\n".join([row, ""]) for row in rows)
    yield Case("layout: every second line blank", as_bytes(spaced.encode()), people)
    trailing = "\n".join([rows[0], *(row + "," for row in rows[1:])])
    yield Case("layout: a delimiter after the last field", as_bytes(trailing.encode()), people)
    everywhere = "\n".join(row + "," for row in rows)
    yield Case("layout: a column without name or value", as_bytes(everywhere.encode()), people)
    for first in (0, 1):
        named = "\n".join([rows[0], *(f"{i + first},{row}" for i, row in enumerate(rows[1:]))])
        yield Case(
            f"layout: row numbers from {first} without a name", as_bytes(named.encode()), people
        )
    unnamed = "\n".join(["," + rows[0], *(f"{i},{row}" for i, row in enumerate(rows[1:]))])
    yield Case("layout: row numbers under an empty name", as_bytes(unnamed.encode()), people)
    long = frame.assign(ward=frame["ward"].where(frame.index != 3, "two\nlines, quoted"))
    yield Case("layout: a cell of two lines", as_csv(long), people)
    comma = frame.assign(lactate=frame["lactate"].str.replace(".", ",", regex=False))
    yield Case("layout: decimal commas", as_csv(comma, delimiter=";"), people)
    yield Case("layout: empty file", as_bytes(b""), None)
    yield Case("layout: blanks only", as_bytes(b"\n \n\n"), None)
    yield Case("layout: header only", as_bytes((rows[0] + "\n").encode()), None)
    yield Case("layout: NUL bytes", as_bytes(text.encode().replace(b"ICU", b"I\0U", 1)), None)
    yield Case("layout: not a gzip file", as_bytes(text.encode(), "t.csv.gz"), None)


def cuts() -> Iterator[Case]:
    """Files that end too early or lost fields: no row may go, and none may come."""
    frame = cells()
    text = csv_bytes(frame)
    rows = text.splitlines()
    rng = np.random.default_rng(1)
    for i in range(12):
        packed = gzip.compress(text.encode(), mtime=0)
        cut = packed[: int(rng.integers(10, len(packed) - 1))]
        yield Case(f"cut: gzip {i}", as_bytes(cut, "t.csv.gz"), None)
    for i in range(12):
        row = int(rng.integers(1, len(rows)))
        fields = rows[row].split(",")
        shorter = fields[: int(rng.integers(1, len(fields)))]
        short = "\n".join([*rows[:row], ",".join(shorter), *rows[row + 1 :]])
        yield Case(f"cut: a row {i}", as_bytes(short.encode()), None)
        longer = ",".join([*fields[:3], "x", *fields[3:]])
        long = "\n".join([*rows[:row], longer, *rows[row + 1 :]])
        yield Case(f"cut: a field too many {i}", as_bytes(long.encode()), None)
    table = pa.Table.from_pandas(frame)
    sink = io.BytesIO()
    pq.write_table(table, sink)
    for i in range(12):
        end = int(rng.integers(1, len(sink.getvalue()) - 1))
        yield Case(f"cut: Parquet {i}", as_bytes(sink.getvalue()[:end], "t.parquet"), None)


def quotes() -> Iterator[Case]:
    """Stray quotation marks: rows in are rows out, or an error."""
    frame = cells()
    people = people_of(frame)
    for column in COLUMNS:
        for where in ((5,), (5, 9), (5, 6)):
            rows = csv_bytes(frame).splitlines()
            place = COLUMNS.index(column)
            for row in where:
                fields = rows[row].split(",")
                fields[place] = '"' + fields[place]
                rows[row] = ",".join(fields)
            content = "\n".join(rows).encode()
            yield Case(f"quotes: {column} {where}", as_bytes(content), None)
        inside = frame.copy()
        if column in ("age", "ward", "lactate", "seen"):
            inside.loc[[4, 8], column] = "5'11\""
            raw = "\n".join(",".join(row) for row in [COLUMNS, *inside.to_numpy().tolist()])
            yield Case(f"quotes: inside {column}", as_bytes(raw.encode()), people)


NAMES = [
    "$x$",
    "[/b]",
    "[red]",
    "a,b",
    "é",
    "日本",
    "row",
    "score",
    "reason",
    "group",
    "id",
    "=1+1",
    "(missing)",
    "nan",
    "1",
]
NAMES += ["a b", " age", 'a"b', "a\nb", "x" * 200_000, "", "a (2)"]


def headers() -> Iterator[Case]:
    """Names of columns."""
    frame = cells()
    people = people_of(frame)
    for name in NAMES:
        shown = name if len(name) < 20 else f"{len(name)} characters"
        yield Case(
            f"header: a feature {shown!r}", as_csv(frame.rename(columns={"age": name})), people
        )
        if name:
            renamed = as_csv(frame.rename(columns={"patient": name, "race": f"{name} "}))
            roles = replace(ROLES, id=name, group=(f"{name} ",))
            yield Case(f"header: the person {shown!r}", renamed, people, roles)
    for column in COLUMNS[1:5]:
        twice = frame.assign(twin=frame[column]).rename(columns={"twin": column})
        yield Case(f"header: {column} twice", as_csv(twice), people)
        other = frame.assign(twin=frame[column][::-1].to_numpy()).rename(columns={"twin": column})
        yield Case(f"header: two columns {column}", as_csv(other), people)
    for column in ("race", "result", "patient"):
        other = frame.assign(twin=frame[column][::-1].to_numpy()).rename(columns={"twin": column})
        # the first counts, and a note says so
        yield Case(f"header: two columns {column}", as_csv(other), people)
        same = frame.assign(twin=frame[column]).rename(columns={"twin": column})
        yield Case(f"header: {column} twice", as_csv(same), people)
        yield Case(f"header: no {column}", as_csv(frame.drop(columns=column)), None)


CELLS = [
    "NA",
    "nan",
    "None",
    "?",
    "1e200",
    "-1e200",
    "inf",
    "-inf",
    "1e-320",
    "<5",
    ">=65",
    "01",
    "1.0",
    "1.50",
    "-9",
    "1,234",
    "1,5",
    "9007199254740993",
    "=1+1",
    "@x",
    "TRUE",
    "yes",
    "é",
    "１",
    "{}",
    "9999-12-31",
    "0000-00-00",
    "31/12/2020",
    "12312020",
    "0x10",
    "1_000",
    "--",
    "%s",
    "\\N",
    "'",
    "$1$",
    "\N{MINUS SIGN}3",
    "$12,345",
    "45 %",
    "01JAN2020",
]
CELLS += ["9" * 400, "\t", "\u200b1", "[1, 2]", "x" * 20_000]


def odd_cells() -> Iterator[Case]:
    """Odd values in features: in one row, in a few, in all."""
    for column in ("age", "lactate", "ward", "seen"):
        for value in CELLS:
            for where, rows in (("one", [7]), ("all", range(N))):
                frame = cells()
                frame.loc[list(rows), column] = value
                shown = value if len(value) < 20 else f"{len(value)} characters"
                name = f"cells: {shown!r} in {where} of {column}"
                yield Case(name, as_csv(frame), people_of(frame))


def names() -> Iterator[Case]:
    """Groups and people are names: none may be merged, split or renamed."""
    one_and_two = (
        "<65 >=65|01 1|1 2|9007199254740992 9007199254740993|nan A|NA None|(missing) A|a A|A A_B|"
        "-1 1|1e5 100000|0x1 1|TRUE FALSE|2021-01-01 2021-01-02|é e|=A A|0.5 x|[/b] [b]|１ 1|"
        "1,5 1.5|\N{MINUS SIGN}1 -1|$1 1|50% 50|all others"
    )
    pairs = [pair.split() for pair in one_and_two.split("|")]
    for one, two in pairs:
        frame = cells()
        frame["race"] = np.where(frame["race"] == "A", one, two)
        yield Case(f"names: groups {one!r} and {two!r}", as_csv(frame), people_of(frame))
        crossed = replace(ROLES, group=("race", "ward"))
        people = people_of(frame)
        people["group"] = frame["race"] + " & " + frame["ward"]
        yield Case(f"names: {one!r} and {two!r} crossed", as_csv(frame), people, crossed)
        frame = cells()
        frame["patient"] = np.where(np.arange(N) == 3, one, frame["patient"])
        frame["patient"] = np.where(np.arange(N) == 4, two, frame["patient"])
        yield Case(f"names: people {one!r} and {two!r}", as_csv(frame), people_of(frame))
    for one, two in (("1", "1.0"), ("0", "-0.0"), ("7.0", "7.00"), ("everybody", "A")):
        frame = cells()
        frame["race"] = np.where(frame["race"] == "A", one, two)
        yield Case(f"names: groups {one!r} and {two!r}", as_csv(frame), None)
    floats = cells()
    floats["race"] = floats["race"].map({"A": "1.0", "B": "2.0", "C": "3.0"})
    people = people_of(floats)
    people["group"] = people["group"].str.removesuffix(".0")
    yield Case("names: whole floats", as_csv(floats), people)
    gaps = cells()
    gaps.loc[3:9, "race"] = ""
    yield Case("names: groups missing", as_csv(gaps), people_of(gaps))
    both = gaps.copy()
    both.loc[10, "race"] = "(missing)"
    yield Case("names: missing and (missing)", as_csv(both), None)
    one = cells()
    one["patient"] = "P1"
    yield Case("names: one person", as_csv(one), None)


def labels() -> Iterator[Case]:
    """Labels: whoever is tested stays tested, whoever is positive stays positive."""
    spellings = "yes no|TRUE FALSE|1.0 0.0|Y n|pos neg|1 0|positive NEGATIVE|+1 0|1.00 0|t f|01 00"
    for yes, no in (pair.split() for pair in spellings.split("|")):
        for nobody in ("", "-9", "-9.0", "not done", "NA", "None", " "):
            frame, sound = cells(), people_of(cells())
            frame["result"] = frame["result"].map({"1": yes, "0": no, "": nobody})
            roles = replace(ROLES, untested_value=(nobody,)) if nobody.strip() else ROLES
            name = f"labels: {yes!r}, {no!r}, {nobody!r}"
            yield Case(name, as_csv(frame), sound, roles)
            given = replace(roles, positive=(yes,))
            yield Case(f"{name} with positive", as_csv(frame), sound, given)
    sound = people_of(cells())
    for given, other in (("-9", "-9.0"), ("-9.0", "-9"), ("-9", "-9.00"), ("99", "99.0")):
        frame = cells()
        gone = np.flatnonzero(frame["result"] == "")
        frame.loc[gone[::2], "result"], frame.loc[gone[1::2], "result"] = given, other
        roles = replace(ROLES, untested_value=(given,))
        yield Case(f"labels: {given!r} beside {other!r}", as_csv(frame), sound, roles)
    for given, other in (
        ("Yes", "yes"),
        ("Yes", "YES"),
        ("found", "Found"),
        ("A B", "AB"),
        ("é", "É"),
    ):
        frame = cells()
        hits = np.flatnonzero(frame["result"] == "1")
        frame["result"] = frame["result"].map({"1": given, "0": "none found", "": ""})
        frame.loc[hits[::3], "result"] = other
        roles = replace(ROLES, positive=(given,))
        yield Case(
            f"labels: {given!r} beside {other!r}", as_csv(frame), sound, roles, may_refuse=True
        )
    for value in ("2", "maybe", "0.5", "NA?", "-1", "pending", "<1", "1;0"):
        frame = cells()
        frame.loc[np.flatnonzero(frame["result"] == "1")[0], "result"] = value
        yield Case(f"labels: {value!r} among 0 and 1", as_csv(frame), None)
    frame = cells()
    for name, content in {"nobody tested": "", "all positive": "1", "all negative": "0"}.items():
        yield Case(f"labels: {name}", as_csv(frame.assign(result=content)), None)
    decided = frame.assign(tested=(frame["result"] != "").astype(int).astype(str))
    for yes, no in (("1", "0"), ("yes", "no"), ("True", "False"), ("1.0", "0.0"), ("01", "00")):
        spelled = decided.assign(tested=decided["tested"].map({"1": yes, "0": no}))
        roles = replace(ROLES, tested="tested")
        yield Case(f"labels: tested is {yes!r}, {no!r}", as_csv(spelled), sound, roles)
    for value in ("", "2", "maybe", "-9", "NA"):
        broken = decided.copy()
        broken.loc[3, "tested"] = value
        roles = replace(ROLES, tested="tested")
        yield Case(f"labels: tested {value!r}", as_csv(broken), None, roles)


def weights() -> Iterator[Case]:
    """Weights and known probabilities."""
    frame = cells()
    sound = people_of(frame)
    tested = frame["result"] != ""
    for role in ("weight", "testing_probability"):
        roles = replace(ROLES, **{role: "w"})
        yield Case(f"weights: {role} .5", as_csv(frame.assign(w="0.5")), sound, roles)
        for value in ("", "-1", "inf", "x", "NA", "1e200", "nan"):
            odd = frame.assign(w="0.5")
            odd.loc[5, "w"] = value
            yield Case(f"weights: {role} {value!r}", as_csv(odd), None, roles)
        nothing = frame.assign(w=np.where(tested, "0", "1"))
        yield Case(f"weights: {role} 0 of all tested", as_csv(nothing), None, roles)


def types() -> Iterator[Case]:
    """Parquet: the same values in other types."""
    frame = cells()
    sound = people_of(frame)
    base = pa.table({name: pa.array(frame[name].tolist()) for name in frame})
    label = pd.to_numeric(frame["result"], errors="coerce")
    group = frame["race"].map({"A": 1, "B": 2, "C": 3})

    def put(name: str, values: Any) -> Writer:
        return as_parquet(base.set_column(base.schema.get_field_index(name), name, values))

    numbered = sound.assign(group=group.astype(str))
    for kind in (
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint64",
        "float16",
        "float32",
        "float64",
    ):
        stored = pa.array(group.to_numpy()).cast(getattr(pa, kind)())
        yield Case(f"types: group {kind}", put("race", stored), numbered)
        results = pa.array(label.to_numpy(), from_pandas=True).cast(getattr(pa, kind)())
        yield Case(f"types: label {kind}", put("result", results), sound)
        ages = pa.array(frame["age"].astype(float).to_numpy()).cast(getattr(pa, kind)())
        yield Case(f"types: age {kind}", put("age", ages), sound)
    texts = {
        "string": pa.string(),
        "large": pa.large_string(),
        "view": pa.string_view(),
        "binary": pa.binary(),
        "large binary": pa.large_binary(),
    }
    for column in ("race", "ward", "patient", "result"):
        for name, kind in texts.items():
            stored = pa.array(frame[column].tolist(), pa.string()).cast(kind)
            yield Case(f"types: {column} {name}", put(column, stored), sound)
        coded = pa.array(frame[column].tolist()).dictionary_encode()
        yield Case(f"types: {column} dictionary", put(column, coded), sound)
    flags = pa.array([None if np.isnan(v) else bool(v) for v in label])
    yield Case("types: label boolean", put("result", flags), sound)
    money = pa.array(label.to_numpy(), from_pandas=True).cast(pa.decimal128(5, 2))
    yield Case("types: label decimal", put("result", money), sound)
    big = pa.array((group + 2**53).to_numpy())
    yield Case(
        "types: group beyond 2^53",
        put("race", big),
        sound.assign(group=(group + 2**53).astype(str)),
    )
    strange: dict[str, Any] = {
        "beyond 2^53": pa.array(np.arange(N) % 50 + 2**53),
        "uint64": pa.array(np.full(N, 2**64 - 1, np.uint64) - np.arange(N, dtype=np.uint64) % 9),
        "year 9999": pa.array([9999 * 365] * 80 + [18_000] * 80, pa.int32()).cast(pa.date32()),
        "timestamp": pa.array(pd.to_datetime(frame["seen"])),
        "timestamp with zone": pa.array(pd.to_datetime(frame["seen"], utc=True)),
        "time": pa.array(np.arange(N) * 1000, pa.int32()).cast(pa.time32("ms")),
        "duration": pa.array(np.arange(N), pa.duration("s")),
        "list": pa.array([[i] for i in range(N)]),
        "struct": pa.array([{"a": i} for i in range(N)]),
        "map": pa.array([[("a", i)] for i in range(N)], pa.map_(pa.string(), pa.int64())),
        "null": pa.nulls(N),
        "bytes": pa.array([bytes([255, i]) for i in range(N)]),
        "fixed bytes": pa.array([bytes([255, i % 250]) for i in range(N)], pa.binary(2)),
        "1e200": pa.array([1e200] + [1.5, 2.5, 3.5] * 53),
        "infinite": pa.array([np.inf] + [1.5, 2.5, 3.5] * 53),
        "decimal": pa.array(np.arange(N) * 1.0).cast(pa.decimal128(20, 4)),
    }
    for name, values in strange.items():
        yield Case(f"types: a feature {name}", put("lactate", values), sound)
        left_out = replace(ROLES, exclude=("lactate",))
        yield Case(f"types: excluded {name}", put("lactate", values), sound, left_out)
        yield (
            Case(f"types: group {name}", put("race", values), None, may_refuse=True)
            if name in ("list", "struct", "map", "bytes", "fixed bytes")
            else Case(f"types: another {name}", put("age", values), sound)
        )
    indexed = pa.Table.from_pandas(frame.set_index(frame.index[::-1]))
    yield Case("types: a pandas index", as_parquet(indexed), sound)
    twice = base.append_column("age", base.column("age"))
    yield Case("types: a name twice", as_parquet(twice), sound)


FAMILIES = (layouts, cuts, quotes, headers, odd_cells, names, labels, weights, types, *MORE)


def cases() -> list[Case]:
    """Every case, in a fixed order."""
    return [case for family in FAMILIES for case in family()]
