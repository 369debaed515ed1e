"""Tests that were drawn by design: the list of `dcem next-tests` beside the table with results.

Whoever had been tested when the list was made is not on it and had no part in the draw: given all
that was known then, the result of such a row is known for certain, with a probability of 1.
Everybody else is on the list with the probability of the draw. So sums of z / probability over the
tested estimate totals over everybody in the table, old tests included (Horvitz and Thompson, 1952).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from dcem.table import outcome, values
from dcem.table import read as reading
from dcem.table.csv_files import is_csv
from dcem.table.messages import InputError, notice, require_columns, rows_text
from dcem.table.roles import Roles
from dcem.table.write import unguarded

PROBABILITY, DRAWN, ROW = "probability", "drawn", "row"  # columns of the list
COLUMNS = (  # of the list, beside the identifier: one that is called so becomes `id`
    *(ROW, "group", "score", "score_spread", "risk", "risk_spread", "distance", "untested"),
    *("shortfall", "own_rate", "average_rate", PROBABILITY, "reason", DRAWN),
)
CERTAIN = 1 - 1e-9  # of a row that was drawn for certain, which tells it from an earlier test


def list_given(roles: Roles, columns: Sequence[str]) -> Path | None:
    """The file that the role `testing_probability` names, where it does not name a column."""
    given = roles.testing_probability
    return Path(given) if given and given not in columns and Path(given).is_file() else None


def probabilities(
    path: Path, table: pa.Table, roles: Roles, tested: np.ndarray, row: pd.Index
) -> np.ndarray:
    """The probability of each row's test `[n]`: that of the list, 1 for rows that are not on it.

    Asked are the rows `[n]` of the table, who were `tested [n]` or not; the list is about all.
    """
    listed = _listed(path, table, roles)
    require_columns(listed.column_names, (ROW, PROBABILITY), f"{path}: the list")
    place = _places(table, listed, roles, path)
    found = np.ones(table.num_rows)
    found[place] = np.minimum(values.numbers(listed.column(PROBABILITY)), CERTAIN)
    absent = ~tested & (found[row] == 1)
    if absent.any():
        raise InputError(
            f"{path} does not list {rows_text(absent, row)}, which are untested, so their "
            "probability of being tested is unknown. Use the table that the list was made for."
        )
    if DRAWN in listed.column_names:
        text = values.coded(listed.column(DRAWN))
        drawn = pd.Series(text.take(values.yes_no(text.values), 0) == 1, place)
        asked = np.isin(row, place)
        _mention_departures(tested[asked], drawn.loc[row[asked]].to_numpy(), path)
    return found[row]


def still_waiting(path: Path, table: pa.Table, roles: Roles) -> np.ndarray:
    """Rows `[n]` that are not on the list because a test was done, and still have no result."""
    text = outcome.coded(table, roles.label, roles)
    given = {value.strip() for value in roles.untested_value}
    says = [value in given and values.word(value) in outcome.PENDING for value in text.values]
    waits = text.take(np.array(says, dtype=bool), False)
    if waits.any():
        waits[_places(table, _listed(path, table, roles), roles, path)] = False
    if rows := int(waits.sum()):
        notice(f"{rows:,} rows still wait for the result of an earlier test and are left out.")
    return waits


def identifier_in_list(name: str | None) -> str | None:
    """What the column of identifiers is called in the list."""
    return "id" if name in COLUMNS else name


def _listed(path: Path, table: pa.Table, roles: Roles) -> pa.Table:
    """The list as it was before it was made safe to open in a spreadsheet.

    Which it was, the identifiers of the table tell: a list of another make may have an apostrophe
    where the table has one, and a CSV of ours may have become a workbook.
    """
    name = identifier_in_list(roles.id)
    written = reading.read_whole(path, names=(name, f"'{name}"))
    ways = [unguarded(written), written] if is_csv(path) else [written, unguarded(written)]
    if roles.id in table.column_names:
        people, own = {*outcome.person_names(table, roles)}, replace(roles, id=name)
        for way in ways:
            if name in way.column_names and people.issuperset(outcome.person_names(way, own)):
                return way
    return ways[0]


def _places(table: pa.Table, listed: pa.Table, roles: Roles, given: Path) -> np.ndarray:
    """The row of the table that each row of the list is about.

    People are found by their identifier where it is known and nobody has two rows, else rows by
    their position in the file.
    """
    position = values.numbers(listed.column(ROW))
    name = identifier_in_list(roles.id)
    known = roles.id in table.column_names and name in listed.column_names
    if known:
        own = replace(roles, id=name)
        people, asked = outcome.person_names(table, roles), outcome.person_names(listed, own)
        if len(set(people)) == len(people):
            where = {person: row for row, person in enumerate(people)}
            unknown = [person for person in asked if person not in where]
            if unknown:
                raise InputError(
                    f"{given} lists {len(unknown):,} people who are not in the table. Use the "
                    "table that the list was made for, with all its rows."
                )
            if not pd.Index(asked).is_unique:
                raise InputError(f"{given} lists a person twice who has one row in the table.")
            return np.array([where[person] for person in asked], np.int64)
    in_table = np.isin(position, np.arange(table.num_rows)).all()
    if not (in_table and pd.Index(position).is_unique):
        raise InputError(
            f"{given} lists rows that are not in the table, which has {table.num_rows:,} rows. Use "
            "the table that the list was made for, with its rows in the same order."
        )
    place = position.astype(np.int64)
    if known and (people[place] != asked).any():
        raise InputError(
            f"{given} was made for a table in another order: {roles.id!r} differs in "
            f"{int((people[place] != asked).sum()):,} rows. Restore the order of the rows."
        )
    return place


def _mention_departures(tested: np.ndarray, drawn: np.ndarray, given: Path) -> None:
    """Say where tests and draw differ: then probabilities are not quite those of the tests."""
    without, beside = int((drawn & ~tested).sum()), int((tested & ~drawn).sum())
    if without:
        notice(
            f"Of {int(drawn.sum()):,} rows drawn in {given}, {without:,} have no result. Estimates "
            "are valid if these are missing by chance alone."
        )
    if beside:
        notice(
            f"{beside:,} rows were tested although {given} did not draw them, so their probability "
            "of being tested is unknown. Leave their results out if they are many."
        )
