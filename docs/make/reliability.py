"""Write docs/reliability.md from results/fuzz.csv: `python docs/make/reliability.py`."""

import json
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
FAMILIES = {
    "layout": "encodings, delimiters, ends of lines, quoting, row names, decimal commas",
    "cut": "files and rows that end too early, fields too many",
    "quotes": "stray quotation marks",
    "header": "odd, long, repeated and missing names of columns",
    "cells": "odd values in features, in one row or in all",
    "names": "groups and people that look alike: `01` and `1`, `<65` and `>=65`, `nan`",
    "labels": "spellings of yes, no and not tested; values that mean neither",
    "weights": "weights and known probabilities",
    "types": "Parquet types, beyond 2^53, the year 9999, lists, bytes",
    "lone": "one cell of a column of numbers that is none, or five of 160; `1,5e-16`",
    "identifiers": "people called `=1+1`, `+49 30`, `1.234`, `a,b`, ...",
    "units": "percent, currencies, commas and orders of a date that no model has learnt",
    "levels": "levels called `(other)`, columns called `ward=ICU`, categories that do not occur",
    "positives": "people who are positive without a test",
    "nothing": "tables without columns; lists and structures for people, groups and labels",
    "stale": "files with the size and time stamp of one that was read before",
}
COMMANDS = ("predict", "next-tests", "list", "fit", "audit", "compare", "benchmark file")
SHOWN = {"benchmark file": "benchmark run", "list": "--testing-probability"}
TEXT = """\
# Reliability

A damaged table is either read correctly or refused with a message that says what is wrong. It never
causes a traceback or a hang, and never a silent change of who is tested, which group or label
somebody has, or how many rows there are. This page says how that was tested.

`python experiments/fuzz.py` puts {tried:,} damaged tables through the reader, whole and in batches,
and compares every row with the undamaged table (`tests/support/damages.py` makes them, and
`tests/table/test_fuzz.py` runs the same in the tests). The counts of {date}, commit `{commit}`:

{reading}

*Right* means that every row, label, group and test is as it should be. *Refused* means an error
that says why, for tables that nobody could interpret. *Wrong* would be a silent change, or the
refusal of an undamaged table.

Tables that were read correctly are passed on to the commands. `predict` and `next-tests` use a
model of the undamaged table: as many scores must come out as rows went in, and everybody untested,
but nobody else, must have a probability above zero. A column in another unit than the model learnt
must be named. The list of `next-tests`, written as CSV, must come back beside the table with every
probability, whatever the people are called (`--testing-probability`). One table in {every} is also
audited, compared and fitted. Benchmark files are damaged in one line or one byte each.

{commands}

`predict` and `next-tests` refused the tables that lacked a column the model reads.

## Model folders

`tests/saving/test_crafted.py` writes 1,275 folders with correct hashes and wrong content: any field
replaced by something else; any array cut, doubled, moved, turned into another type or left out; for
neural networks, boosted trees, a forest and a linear model. Each is refused with a message or
scores rows with numbers, within 2 GB of memory; none ends in a traceback.
`tests/saving/test_replacing.py` loads a folder repeatedly while another process keeps replacing it:
no load fails, and a killed save leaves the older model.

## Would the tests notice?

`experiments/mutations.py` changes one sign, comparison, connective or number in `estimation/`,
`metrics/`, `audit/` or the files of the default method, and runs their tests. A change that no test
notices is a survivor. Four samples were drawn, the first from 2,246 possible changes of the three
packages, the second from 4,604 (`results/mutations.csv`). The last two columns count survivors:

| sample | changes | noticed | have tests now | make no difference |
|---|---:|---:|---:|---:|
| seed 0 | 50 | 44 | 5 | 1 |
| seed 12 | 13 | 5 | 4 | 4 |
| seed 13 | 20 | 10 | 3 | 7 |
| seed 14 | 37 | 23 | 7 | 7 |

Survivors that make no difference are, for example, the same number written differently, a shortcut,
a seed that is always given, or a constant that affects only speed or smoothness.

## What it does not show

People thought up the damage, and a table can be wrong in ways that nobody thought of. A reader that
keeps every row faithfully cannot know that a label was entered for the wrong person. What looks
doubtful but is legal (a group called `NA`, levels that differ in case, dates written as numbers) is
read as it is, with a note.
"""


def table(rows: pd.DataFrame, first: str) -> str:
    """Counts as Markdown."""
    lines = [
        f"| {first} | tried | right | refused | wrong | crashed |",
        "|---|---|---|---|---|---|",
    ]
    for name, *counts in rows.itertuples(index=False):
        lines.append(f"| {name} | " + " | ".join(f"{count:,}" for count in counts) + " |")
    return "\n".join(lines)


def page() -> str:
    """The page, from the recorded run."""
    counts = pd.read_csv(ROOT / "results" / "fuzz.csv")
    about = json.loads((ROOT / "results" / "fuzz.json").read_text(encoding="utf-8"))
    reading = counts[counts["what"] == "read"].drop(columns="what")
    total = reading.drop(columns="family").sum()
    reading = reading.assign(family=reading["family"].map(FAMILIES))
    reading.loc[len(counts)] = ["all", *total]
    commands = counts[counts["what"].isin(COMMANDS)].drop(columns="family")
    commands = commands.set_index("what").loc[list(COMMANDS)].reset_index()
    commands["what"] = "`" + commands["what"].replace(SHOWN) + "`"
    return TEXT.format(
        tried=total["tried"],
        date=about["date"],
        commit=about["commit"][:9],
        every=about["every"],
        reading=table(reading, "damage"),
        commands=table(commands, "command"),
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
