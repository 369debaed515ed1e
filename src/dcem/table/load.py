"""A user's file as a problem that methods can learn from, and an account of how it was read."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from dcem.table import checks, leaks, outcome, values
from dcem.table import read as reading
from dcem.table.checks import InputError
from dcem.table.columns import Column, Guess, guess
from dcem.table.encoder import Encoder
from dcem.table.labels import SelectiveLabels
from dcem.table.read import Source
from dcem.table.roles import Roles

SMALL_GROUP = 10
LEAK_ROWS = 200_000  # about as many are looked at for signs of a leak


@dataclass(frozen=True, eq=False)
class UserTable:
    """A table with its roles: what methods get, what only judges get, and how it came about.

    Attributes
    ----------
    problem
        Encoded features, observed label, tested, group, person and weight of every row.
    truth
        Everybody's true outcome [n], if the table has it; never among the features.
    encoder
        Turns a raw table with the same columns into the same features.
    columns
        How each column of the file was understood, in their order.
    roles
        As given, lists with commas split.
    source
        The file: its name, size and hash.
    """

    problem: SelectiveLabels
    truth: np.ndarray | None
    encoder: Encoder
    columns: tuple[Column, ...]
    roles: Roles
    source: Source


def load_table(path: str | Path, roles: Roles) -> UserTable:
    """Read a .csv, .csv.gz or .parquet file of people, messy as such files are.

    Kinds of columns are guessed from all their values (`UserTable.columns` says how, and what was
    left out and why); categories, dates and yes/no become numbers; missing values stay missing.
    A group of three people stays a group.
    """
    path = Path(path)
    header = reading.read_header(path)
    with naming(path):
        roles = roles.resolved(header)
        roles = replace(roles, missing=_split(roles.missing))
        table = reading.read_whole(path)
        if table.num_rows == 0:
            raise InputError("The table has a header and no rows.")
        label, roles = outcome.read_label(table.column(roles.label), roles)
        tested = None
        if roles.tested is not None:
            tested = outcome.read_tested(table.column(roles.tested), roles)
        with warnings.catch_warnings():  # what there is to say is said by the problem below
            warnings.simplefilter("ignore", checks.DataWarning)
            looked = checks.resolve_tested(
                label, tested, label_name=roles.label, tested_name=roles.tested or "tested"
            )[1]
        columns, encoder = _understand(table, roles, looked, label)
        problem = SelectiveLabels.from_arrays(
            encoder.transform(table),
            label,
            tested=tested,
            group=_groups(table, roles),
            id=_person(table, roles),
            weight=(
                None
                if roles.weight is None
                else values.numbers(table.column(roles.weight), roles.missing)
            ),
            feature_names=encoder.feature_names,
            names={
                "label": roles.label,
                "tested": roles.tested or "tested",
                "group": " & ".join(roles.group),
                "id": str(roles.id),
                "weight": str(roles.weight),
            },
        )
        _mention_small_groups(problem)
        truth = None
        if roles.truth is not None:
            truth = outcome.read_truth(table.column(roles.truth), roles)
    source = Source(path.name, table.num_rows, table.num_columns, reading.file_hash(path))
    return UserTable(problem, truth, encoder, columns, roles, source)


def _understand(
    table: pa.Table, roles: Roles, tested: np.ndarray, label: np.ndarray
) -> tuple[tuple[Column, ...], Encoder]:
    """Every column's kind, and the encoder of those that become features."""
    columns, encodings = [], []
    looked_at = np.arange(0, len(tested), max(1, len(tested) // LEAK_ROWS))
    sampled = len(looked_at) < len(tested)
    if sampled:
        tested, label = tested[looked_at], label[looked_at]
    for name in table.column_names:
        role, raw = roles.of(name), table.column(name)
        if role == "id":  # whatever it looks like; a million names are not worth a look
            person = values.coded(raw, roles.missing)
            absent = float((person.codes < 0).mean())
            columns.append(Column(name, role, "identifier", absent, len(person.values)))
            continue
        forced = name in roles.category
        found = guess(name, raw, roles.missing, is_category=forced, keep=name in roles.include)
        is_feature = role == "feature" or (role == "group" and roles.group_as_feature)
        column = Column(name, role, found.kind, found.missing, found.distinct, note=found.note)
        if not is_feature:
            column = replace(column, note="")
        elif found.encoding is None:
            column = replace(column, role="left out" if role == "feature" else role)
        else:
            encodings.append(found.encoding)
            cells = _cells(raw.take(pa.array(looked_at)) if sampled else raw, found, roles)
            flag = leaks.suspicion(*cells, tested, label)
            column = replace(column, encoded=found.encoding.features, flag=flag)
        columns.append(column)
    if not encodings:
        raise InputError(
            "No column is left that could be a feature: all have a role, are excluded, constant, "
            "or identify single rows. A column that was left out wrongly is kept with --include."
        )
    return tuple(columns), Encoder(tuple(encodings), roles.missing)


def _cells(raw: pa.ChunkedArray, found: Guess, roles: Roles) -> tuple[np.ndarray, list[str]]:
    if found.kind == "number":
        return leaks.bands(values.numbers(raw, roles.missing))
    if found.kind == "date":
        assert found.encoding is not None
        return leaks.bands(values.days(raw, found.encoding.date_format, roles.missing))
    text = values.coded(raw, roles.missing)
    return leaks.levels(text.codes, text.values)


def _groups(table: pa.Table, roles: Roles) -> pd.DataFrame | None:
    """The group columns as categories, their levels in order."""
    if not roles.group:
        return None
    frame = {}
    for name in roles.group:
        text = values.coded(table.column(name), roles.missing)
        numbers = values.parsed(text.values)
        if len(numbers) and not np.isnan(numbers).any():
            frame[name] = pd.Series(text.take(numbers, np.nan))
        else:
            order = np.argsort(np.array(text.values, dtype=object))
            rank = np.empty(len(order), np.int64)
            rank[order] = np.arange(len(order))
            levels = pd.Index([text.values[i] for i in order.tolist()])
            frame[name] = pd.Series(pd.Categorical.from_codes(text.take(rank, -1), levels))
    return pd.DataFrame(frame)


def _person(table: pa.Table, roles: Roles) -> pd.Series | None:
    """The person behind each row, as a number in order of appearance."""
    if roles.id is None:
        return None
    codes = values.coded(table.column(roles.id), roles.missing).codes
    return pd.Series(codes).where(codes >= 0) if (codes < 0).any() else pd.Series(codes)


def _mention_small_groups(problem: SelectiveLabels) -> None:
    sizes = np.bincount(problem.group, minlength=problem.n_groups)
    small = [problem.group_names[g] for g in np.flatnonzero(sizes < SMALL_GROUP)]
    if small and problem.n_groups > 1:
        shown = ", ".join(repr(name) for name in small[:5])
        more = f" and {len(small) - 5} more" if len(small) > 5 else ""
        checks.notice(
            f"Fewer than {SMALL_GROUP} rows in group {shown}{more}. They are kept and scored like "
            "everybody, but nothing about so few people can be estimated by itself; results will "
            "say so. Merge groups in the table if that makes sense."
        )


def _split(given: tuple[str, ...]) -> tuple[str, ...]:
    """Spellings of a missing value: a list with commas is several."""
    return tuple(dict.fromkeys(piece.strip() for entry in given for piece in entry.split(",")))


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the file's name before an error about what is in it."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(str(path)):
            raise
        counted = " Rows are counted from 0 after the header." if "(first: " in str(error) else ""
        raise InputError(f"{path}: {error}{counted}") from None
