"""A user's table as a problem that methods can learn from, and an account of how it was read."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dcem.table import checks, dates, design, groups, leaks, outcome, values
from dcem.table import read as reading
from dcem.table.columns import MENDABLE, Column, guess_kind
from dcem.table.encoder import Encoder, Unread, distinct
from dcem.table.frames import as_table
from dcem.table.labels import SelectiveLabels
from dcem.table.leaks import Leak
from dcem.table.marks import EITHER, doubts
from dcem.table.messages import (
    POSITION,
    DataWarning,
    InputError,
    LeakWarning,
    formerly,
    naming,
    notice,
    quoted,
    require_columns,
    require_kind,
)
from dcem.table.read import Source
from dcem.table.remote import SERVER, located
from dcem.table.roles import Roles
from dcem.table.sampling import Draw, read_some
from dcem.table.times import in_time, numeric, read_time, tell_order

MOST_CELLS = 30_000_000  # of a table that is read whole; of larger ones, people are drawn
MOST_NUMBERS = 100_000_000  # of the features that its columns become
FIRST_ROWS = 20_000  # by which these are counted, about
LEAK_ROWS = 200_000  # about as many are looked at for signs of a leak
FROM_FRAME = "Read a frame or a file with `dcem.read_table(table, dcem.Roles(label=...))`."


@dataclass(frozen=True, eq=False)
class UserTable:
    """A table with its roles: the problem for methods, the truth if known, and how it was read.

    Attributes
    ----------
    problem
        Encoded features, observed label, tested, group, person and weight of every row.
    truth
        Everybody's true outcome [n], if the table has it; never among the features.
    encoder
        Turns a raw table with the same columns into the same features.
    columns
        How each column of the file was read, in the order of the file.
    roles
        As given, with lists and wildcards expanded.
    source
        The file: its name, size and hash.
    unread
        For each raw column of `encoder`, the cells that could not be read or have no level of their
        own.
    leaks
        Signs that features were recorded after the decision to test.
    attributes
        If several group columns are crossed, the codes [n] and names of each column alone.
    draw
        How the rows were drawn, if the file has more.
    """

    problem: SelectiveLabels
    truth: np.ndarray | None
    encoder: Encoder
    columns: tuple[Column, ...]
    roles: Roles
    source: Source
    unread: Unread
    leaks: tuple[Leak, ...] = ()
    attributes: tuple[tuple[str, np.ndarray, tuple[str, ...]], ...] = ()
    draw: Draw | None = None

    def by_attribute(self) -> dict[str, SelectiveLabels]:
        """The problem with each sensitive attribute by itself as the group."""
        plain = replace(self.problem, reference_group=None, known_prevalence=())
        return {
            name: replace(plain, group=codes, group_names=levels)
            for name, codes, levels in self.attributes
        }


@formerly(most_rows="sample_rows")
def read_table(
    source: Any,
    roles: Roles,
    query: str | None = None,
    *,
    sample_rows: int | None = None,
    random_state: int = 0,
    encoder: Encoder | None = None,
) -> UserTable:
    """Read a table of people, which need not be clean.

    The kind of each column is inferred from all its values; `UserTable.columns` says how, and what
    was left out and why. Categories, dates and yes/no become numbers; missing values stay missing.
    A group of three people stays a group.

    Parameters
    ----------
    source
        The path or address of a file, or of a folder of Parquet files (docs/formats.md lists the
        formats); or a frame: pandas, polars, Arrow, a DuckDB relation, and whatever else narwhals
        knows.
    roles
        Which column has which role.
    query
        SQL, if the file is a database; or the name of a sheet of a workbook.
    sample_rows
        About how many rows to read. From a file or folder with more, whole people are drawn at
        random in one pass, in bounded memory if the format allows it (docs/formats.md). None: as
        many rows as make 30 million cells, or 100 million numbers once categories have become
        indicators.
    random_state
        Seed of that draw.
    encoder
        The encoder of an earlier table, to read this one in the same way. Its columns must be
        present, others are left out, and nobody need have been tested yet.
    """
    require_kind(roles, Roles, "Write `dcem.Roles(label=...)`, with the names of columns.")
    if not isinstance(source, str | Path):
        frame = source if isinstance(source, pd.DataFrame) else as_table(source)
        table = reading.as_arrow(frame)
        if table.num_columns == 0:
            raise InputError("The table has no columns.")
        if isinstance(frame, pd.DataFrame) and roles.id in table.column_names:
            who = frame.iloc[:, table.column_names.index(roles.id)]  # before Arrow makes it text
            values.refuse_twins(who, str(roles.id))
        read = _read(table, roles, frame, encoder)
        for one in read.columns:  # all notes of a file are shown by commands
            if one.role == "time":
                tell_order(one.name, one.note)
            for note in one.note.split("; ") if one.encoded else ():
                if any(words in note for words in MENDABLE):
                    notice(f"{one.name!r}: {note}.")
        return read
    path = located(source)
    header = reading.read_header(path, query)
    with naming(path):
        for note in reading.notes(path, query):
            notice(note)
        most = sample_rows or max(1, MOST_CELLS // len(header))
        table, rows, draw = read_some(path, most, roles.id, random_state, query)
        if sample_rows is None and table.num_rows > FIRST_ROWS:
            fewer = MOST_NUMBERS // _width(table, roles)
            if table.num_rows > 1.1 * fewer:  # categories of many levels
                most = fewer
                table, rows, draw = read_some(path, most, roles.id, random_state, query)
        if draw is None:
            return _read(table, roles, path, encoder, query)
        require_columns(table.column_names, [] if roles.id is None else [roles.id])
        drawn = "rows" if roles.id is None else "people"
        notice(
            f"{path.name} has {rows:,} rows; {table.num_rows:,} of them are read ({drawn} drawn at "
            f"random, seed {random_state}). Intervals are {math.sqrt(rows / most):.1f} times as "
            "wide as with all rows. `sample_rows` sets how many are read."
        )
        try:
            return _read(table, roles, path, encoder, query, rows, draw)
        except InputError as error:
            some = f"({table.num_rows:,} of {rows:,} rows were drawn: `sample_rows` sets how many.)"
            raise InputError(f"{error} {some}") from None


def _width(table: pa.Table, roles: Roles) -> int:
    """How many features the columns become, about."""
    first = table.slice(0, FIRST_ROWS)
    found = [
        guess_kind(name, first.column(name), roles.missing, is_category=name in roles.category)
        for name in first.column_names
        if name not in (roles.id, roles.label, *roles.exclude)
    ]
    return max(1, sum(len(one.encoding.features) for one in found if one.encoding))


def _read(
    table: pa.Table,
    roles: Roles,
    origin: Any,
    known: Encoder | None,
    query: str | None = None,
    drawn_from: int = 0,
    draw: Draw | None = None,
) -> UserTable:
    drawn = design.list_given(roles, table.column_names)
    if drawn is not None:
        if drawn_from:
            raise InputError(f"The list {drawn} needs all rows of the table: raise `sample_rows`.")
        roles = replace(roles, testing_probability=None)
    roles = roles.resolved(table.column_names)
    if known is not None:
        _require_known(table, roles, known)
    twins = {} if known else _twins(table, reading.repeated(origin, query), roles)
    for note in reading.strange_rows(table):
        notice(note)
    _refuse_unreadable(table, roles)
    kept, time = _that_count(table, roles, once=known is not None)
    whole, table = table, table if kept.all() else table.filter(pa.array(kept))
    draw = draw and replace(draw, numbers=draw.numbers[kept], rows=draw.rows[kept])
    row = pd.Index(draw.rows if draw else np.flatnonzero(kept), name=POSITION)
    tested = outcome.read_tested(table, roles, row) if roles.tested else None
    label, roles = outcome.read_label(table.column(roles.label), roles, tested)
    if drawn is not None and (waits := design.still_waiting(drawn, whole, roles)[row]).any():
        table, row, label = table.filter(pa.array(~waits)), row[~waits], label[~waits]
        tested, time = (None if part is None else part[~waits] for part in (tested, time))
    if roles.positives_only:  # of everybody else nothing is known; signs of a leak are of the found
        label = np.where(label == 1, 1.0, 0.0)
    looked = ~np.isnan(label)
    if tested is not None:
        looked &= outcome.with_positives(label, tested, roles)[1] == 1
    chance = _column_numbers(table, roles.testing_probability, roles)
    if drawn is not None:
        chance = design.probabilities(drawn, whole, roles, looked, row)
        roles = replace(roles, testing_probability=drawn.name)
    truth = outcome.read_truth(table.column(roles.truth), roles, row) if roles.truth else None
    person = _person(table, roles)
    # those of whom it is not known are one more
    people = None if person is None else person.fillna(-1).to_numpy(np.int64) + 1
    if known is None and roles.positive and not roles.positives_only:
        no = looked & (label == 0)
        negative = outcome.values_of_no(table.column(roles.label), no, roles, people)
        roles = replace(roles, negative=negative)
    columns, encoder = _understand(table, roles, people, twins, known)
    found = _leaks(table, encoder, roles, looked, label, truth, time)
    flags = {
        name: "; ".join(leak.sentence for leak in found if leak.column == name)
        for name in encoder.columns
    }
    columns = tuple(replace(one, flag=flags.get(one.name, "")) for one in columns)
    if found and known is None:
        signs = "; ".join(f"{name!r}: {flag}" for name, flag in flags.items() if flag)
        notice(
            f"Features may have been recorded after the decision to test ({signs}). Give such a "
            "column its role (`tested`) or leave it out (`exclude`). If it was known before, keep "
            "it: it may be a ground of the decision. `UserTable.leaks` lists them.",
            LeakWarning,
        )
    X, unread = encoder.read(table)
    coded = {
        column: groups.order_levels(outcome.coded_names(table, column, roles))
        for column in roles.group
    }
    per_row = roles.rate_columns(table.column_names)
    rates = {name: getattr(roles, name) for name in roles.named("rate")}
    problem = SelectiveLabels.from_arrays(
        X,
        label,
        tested=[] if roles.everybody_tested else tested,
        group=coded or None,
        id=person,
        time=time,
        weight=_column_numbers(table, roles.weight, roles),
        testing_probability=chance,
        reference_group=roles.reference_group,
        prevalence=roles.prevalence,
        positives_only=roles.positives_only,
        positive_untested=roles.positive_untested,
        decider=roles.decider and outcome.coded_names(table, roles.decider, roles),
        **rates | {name: _column_numbers(table, column, roles) for name, column in per_row.items()},
        testing_only=_made_of(roles.testing_only, encoder),
        to_learn=known is None,
        row=row,
        feature_names=encoder.feature_names,
        names={name: str(getattr(roles, name)) for name in roles.named("column")}
        | per_row
        | {"tested": " or ".join(roles.tested) or "tested", "group": " & ".join(roles.group)},
    )
    problem = replace(problem, raw_levels=encoder.raw_levels(table))
    groups.mention_small_groups(problem.group, problem.group_names)
    if person is None and known is None and not roles.positives_only:
        checks.mention_copies(problem.X, problem.y_obs)
    attributes = []
    if len(coded) > 1:
        with warnings.catch_warnings():  # said of the crossed groups already
            warnings.simplefilter("ignore", DataWarning)
            attributes = [(c, *groups.check_groups({c: text}, c)) for c, text in coded.items()]
    is_file = isinstance(origin, Path)
    is_kept = is_file and origin.suffix != SERVER  # the file of a server holds its address
    digest = reading.file_hash(origin, query) if is_kept else reading.frame_hash(table)
    rows, width = table.shape
    source = Source(origin.name if is_file else "frame", rows, width, digest, drawn_from)
    made = problem, truth, encoder, columns, roles, source, unread
    return UserTable(*made, tuple(found), tuple(attributes), draw)


def _made_of(columns: Sequence[str], encoder: Encoder) -> tuple[str, ...]:
    """The features that raw columns became; they must be features."""
    made = {one.name: one.features for one in encoder.encodings}
    if lost := [column for column in columns if column not in made]:
        raise InputError(
            f"`testing_only` must name features; {quoted(lost)} is not one here. Remove it from "
            "`exclude`, or leave out `testing_only`."
        )
    return tuple(feature for column in columns for feature in made[column])


def _require_known(table: pa.Table, roles: Roles, known: Encoder) -> None:
    """The columns of an earlier table must be there, and be features still."""
    require_columns(table.column_names, known.columns)
    taken = [name for name in known.columns if not roles.is_feature(name)]
    if taken:
        said = ", ".join(f"{name!r} is {roles.of(name)}" for name in taken)
        raise InputError(
            f"Features of the earlier model have other roles here: {said}. Give the same roles as "
            "for that model, or fit from scratch."
        )


def _refuse_unreadable(table: pa.Table, roles: Roles) -> None:
    """Columns with a role hold single values: not lists, structures or bytes."""
    singles = [getattr(roles, name) for name in roles.named("column")]
    singles += roles.rate_columns(table.column_names).values()
    for name in [*filter(None, singles), *roles.tested, *roles.group]:
        values.require_known(table.column(name), name)


def _understand(
    table: pa.Table,
    roles: Roles,
    people: np.ndarray | None,
    twins: dict[str, str],
    known: Encoder | None,
) -> tuple[tuple[Column, ...], Encoder]:
    """Every column's kind, and the encoder of those that become features.

    With a `known` encoder the columns that it knows become features, as it says, and no others.
    """
    earlier = None if known is None else {one.name: one for one in known.encodings}
    columns, encodings, doubtful = [], [], dict(doubts(table))
    for name in table.column_names:
        role, raw = roles.of(name), table.column(name)
        if role == "id":  # whatever it looks like; a million names are not worth a look
            code = outcome.coded(table, name, roles)
            absent = float((code.codes < 0).mean())
            columns.append(Column(name, role, "identifier", absent, len(code.values)))
            continue
        found = guess_kind(
            name,
            raw,
            roles.missing,
            is_category=name in roles.category,
            keep=name in roles.include or name in roles.features,
            person=people,
        )
        is_feature = roles.is_feature(name)
        if earlier is not None and is_feature:
            old = earlier.get(name)
            note = "" if old else "not in the earlier model"
            found = replace(found, kind=old.kind if old else found.kind, encoding=old, note=note)
        note = found.note
        if not is_feature:  # a time is read as a feature would be
            note = note if found.kind == "unknown" or role == "time" else ""
        elif name in twins:
            role, note = "left out", twins[name]
        elif found.encoding is None:
            role = "left out" if role == "feature" else role
        else:
            encodings.append(found.encoding.learning_marks(table, roles.missing_in(name)))
            if name in doubtful:
                kept = [one for one in note.split("; ") if one and EITHER not in one]
                note = "; ".join([*kept, doubtful[name]])
        columns.append(Column(name, role, found.kind, found.missing, found.distinct, note=note))
    if not encodings:
        raise InputError(
            "No column is left as a feature: each has a role, is excluded, is constant, or "
            "identifies single rows. To keep a column that was wrongly left out, list it under "
            "`include`."
        )
    encoder = known or Encoder(distinct(encodings), roles.missing)
    made = {one.name: one.features for one in encoder.encodings}
    return tuple(replace(one, encoded=made.get(one.name, ())) for one in columns), encoder


def _twins(table: pa.Table, repeated: tuple[str, ...], roles: Roles) -> dict[str, str]:
    """Features that repeat the name of an earlier column and are left out, and why.

    One that differs from the first is a column of its own, unless the first is the label or another
    role: then it is most likely another version of it, and would give it away.
    """
    found = {}
    again = [
        (first, f"{first} ({n})") for first in repeated for n in range(2, table.num_columns + 1)
    ]
    for first, name in again:
        if name not in table.column_names or name in roles.include or roles.of(name) != "feature":
            continue
        if table.column(name).equals(table.column(first)):
            found[name] = f"the same as {first!r}"
        elif roles.of(first) not in ("feature", "excluded"):
            found[name] = (
                f"differs from the first {first!r}, which is the {roles.of(first)}; list it under "
                "`include` to keep it"
            )
    return found


def _leaks(
    table: pa.Table,
    encoder: Encoder,
    roles: Roles,
    tested: np.ndarray,
    label: np.ndarray,
    truth: np.ndarray | None,
    time: np.ndarray | None,
) -> list[Leak]:
    """Signs that features were recorded after the decision, in about `LEAK_ROWS` rows."""
    few = slice(None, None, max(1, len(tested) // LEAK_ROWS))
    rows = pa.array(np.arange(len(tested))[few])
    truth = None if truth is None else truth[few]
    decided = numeric(time[few]) if time is not None and time.dtype.kind == "M" else None
    encodings = {one.name: one for one in encoder.encodings}
    found: list[Leak] = []
    for name in (name for name in table.column_names if name in encodings):
        raw, kind, missing = table.column(name), encodings[name].kind, roles.missing_in(name)
        raw = raw.take(rows) if len(rows) < len(raw) else raw
        if kind == "number":
            cells = leaks.number_cells(values.numbers(raw, missing))
        elif kind in ("date", "time"):
            days = dates.days(raw, encodings[name].date_format, missing)
            words = (dates.day_words, dates.month_words) if kind == "date" else ()
            cells = leaks.number_cells(days, *words)
        else:
            text = values.coded(raw, missing)
            cells = leaks.level_cells(text.codes, text.values)
        found += leaks.find_leaks(name, cells, tested[few], label[few], truth)
        if kind == "date" and decided is not None:
            found += leaks.recorded_after(name, days, decided)
    return [replace(one, found_only=roles.positives_only) for one in found]


def _that_count(
    table: pa.Table, roles: Roles, once: bool = False
) -> tuple[np.ndarray, np.ndarray | None]:
    """Which rows [n] count, and the time of each of them, if there is one.

    A row of weight 0 teaches nothing, and is nobody where people are counted; rows that are all of
    weight 0 are kept, to be refused with the other weights that are wrong. All may be of one time,
    if `once`.
    """
    weight = _column_numbers(table, roles.weight, roles)
    kept = np.ones(table.num_rows, bool)
    if weight is not None and (weight != 0).any():
        kept = weight != 0
    if not kept.all():
        notice(f"{(~kept).sum():,} of {len(kept):,} rows have a weight of 0 and are left out.")
    if roles.time is None:
        if roles.until is not None:
            raise InputError("`until` needs a column with the time of each row: name it as `time`.")
        return kept, None
    if roles.positives_only:
        raise InputError(
            "Without a record of testing (`positives_only`) models cannot be judged over time: "
            "leave out `time`."
        )
    column = table.column(roles.time).filter(pa.array(kept))
    if once and roles.until is None and len(column.unique()) == 1:
        return kept, None
    time, written, _ = read_time(column, roles.time, roles.missing_in(roles.time))
    if roles.until is None:
        return kept, time
    early = in_time(time, roles.until, roles.time, written)
    notice(f"{(~early).sum():,} rows after {roles.until} are left out (`until`).")
    kept[kept] = early
    return kept, time[early]


def _column_numbers(table: pa.Table, column: str | None, roles: Roles) -> np.ndarray | None:
    return None if column is None else outcome.numbers(table, column, roles)


def _person(table: pa.Table, roles: Roles) -> pd.Series | None:
    """The person behind each row, as a number in order of appearance."""
    if roles.id is None:
        return None
    text = values.code_names(outcome.coded_names(table, roles.id, roles), roles.id)
    checks.mention_strange_people(text, roles.id)
    if len(text.values) == 1 and len(text.codes) > 1:
        raise InputError(
            f"Column {roles.id!r} holds one person in all {len(text.codes):,} rows, so a model "
            "could not be checked on other people. Name the column that identifies the person, or "
            "none if each row is a person."
        )
    return pd.Series(text.codes).where(text.codes >= 0)
