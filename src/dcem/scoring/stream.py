"""Scores for a file of any length, in bounded memory and in the order of its rows.

The file is read in batches; a few of them are encoded and scored at a time, one per core; results
are written as they come, under a temporary name that becomes the final one when all is done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from joblib import cpu_count

from dcem.files import stamp
from dcem.parallel import one_thread
from dcem.saving.folder import DESCRIPTION
from dcem.saving.plain_data import shown_training_counts
from dcem.scoring.bounds import BOUNDS_COLUMNS, bound_columns, require_bounds
from dcem.scoring.decisions import DECISION, FLAGGED, Decider, Decisions, Rule
from dcem.scoring.model import FROM_FOLDER, Read, TableModel
from dcem.table import group_codes, person_names, read_batches, read_header
from dcem.table.encoder import Unread, joined
from dcem.table.frames import as_frame
from dcem.table.messages import InputError, notice, require_columns, require_kind
from dcem.table.remote import located
from dcem.table.roles import as_list
from dcem.table.write import require_output, table_writer

BESIDES = ("distance", "like_tested")  # columns added to the score and its spread
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Predicted:
    """The result of scoring a file.

    Attributes
    ----------
    rows
        Rows scored.
    unlike_tested
        Rows that are unlike anybody tested.
    notes
        Columns that do not look as they did in training, so that scores use less information than
        it seems; and rows that could not be scored, if there are any.
    unscored
        Rows without a score, because it would not be a number.
    decisions
        The result of the rule, if one was given.
    """

    rows: int
    unlike_tested: int
    notes: tuple[str, ...] = ()
    unscored: int = 0
    decisions: Decisions | None = None


def predict_file(
    model: TableModel,
    path: str | Path,
    out: str | Path,
    *,
    keep: Sequence[str] | None = None,
    query: str | None = None,
    rule: Rule | None = None,
    bounds: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> Predicted:
    """Score every row of a file, or of a folder of Parquet files, and write the result.

    Parameters
    ----------
    keep
        Columns to copy. None: the person's identifier, if the model and the file have one;
        otherwise `row`, the position in the file from 0.
    query
        SQL query, for a database; name of the sheet, for a workbook.
    rule
        Whom to act on: adds the column `flagged`, and counts by group where the file has it.
    bounds
        Strength of an unmeasured cause, for models fitted with bounds: adds `risk_low`,
        `risk_high` and `outcome_set`, and with a rule `decision`, which may be "cannot say".
    progress
        Called with the number of rows written so far.
    """
    require_kind(model, TableModel, FROM_FOLDER)
    path, out = located(path), Path(out)
    require_output(out, path)
    called = carried(model, path, keep, query, rule, bounds)
    tally = score_part(
        model, path, out, called, query=query, rule=rule, bounds=bounds, progress=progress
    )
    return tally.result(model)


def carried(
    model: TableModel,
    path: Path,
    keep: Sequence[str] | None,
    query: str | None = None,
    rule: Rule | None = None,
    bounds: float | None = None,
) -> dict[str, str]:
    """Columns to carry over, and what each is called in the result; checks that all are there."""
    if bounds is not None:
        require_bounds(model, bounds, decide=rule is not None)
    header = read_header(path, query)
    require_columns(header, model.encoder.columns, f"{path}: the table")
    new = (*added(model, bounds), *((FLAGGED, DECISION) if rule else ()))
    called = _as_they_are(keep, new)
    if keep is None and model.roles.id in header:
        called = {model.roles.id: own_name(model.roles.id, new)}
    require_columns(header, tuple(called), f"{path}: the table")
    return called


def _as_they_are(keep: str | Sequence[str] | None, new: Collection[str]) -> dict[str, str]:
    """Columns to carry over under their names, none of which may be that of a `new` one."""
    called = {name: name for name in as_list(keep)}
    for name in called.keys() & new:
        raise InputError(
            f"The column {name!r} cannot be copied, because scores add one of that name. Rename "
            "it, or leave it out of `keep`."
        )
    return called


@dataclass(eq=False)
class Tally:
    """What is counted while rows are scored; parts of a table add up."""

    rows: int = 0
    unlike_tested: int = 0
    unscored: int = 0
    first: int = 0  # row of the table without a score
    unread: Unread | None = None  # cells
    empty: Any = 0  # cells [columns]
    decisions: Decisions | None = None  # of a whole table

    def __add__(self, later: Tally) -> Tally:
        return Tally(
            self.rows + later.rows,
            self.unlike_tested + later.unlike_tested,
            self.unscored + later.unscored,
            self.first if self.unscored else later.first,
            joined(self.unread, later.unread),
            self.empty + later.empty,
        )

    def result(self, model: TableModel) -> Predicted:
        """The same in words."""
        unread = self.unread or Unread.none(len(model.encoder.columns))
        notes = model.strange_columns(unread, self.empty, self.rows, singly=True)
        if self.unscored:
            notes += (
                f"{self.unscored:,} rows (the first is row {self.first:,}, counted from 0) have no "
                f"{model.score_name}: their values are too large to compute with. Look for codes, "
                "such as one for a missing value.",
            )
        return Predicted(self.rows, self.unlike_tested, notes, self.unscored, self.decisions)


def score_part(
    model: TableModel,
    path: Path,
    out: Path,
    called: Mapping[str, str],
    *,
    query: str | None = None,
    start: int = 0,
    threads: int | None = None,
    rule: Rule | None = None,
    bounds: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> Tally:
    """Score a file, or one of a folder (`query`), whose first row is row `start` of the table."""
    asked = rule is not None or bounds is not None
    header = set(read_header(path, query)) if asked else set()
    groups = model.roles.group if asked and set(model.roles.group) <= header else ()
    people = [model.roles.id] if groups and model.roles.id in header else []
    needed = list(dict.fromkeys([*called, *groups, *people, *model.encoder.columns]))
    batches = read_batches(
        path, needed, verbatim=(*called, *people), names=(model.roles.id,), query=query
    )
    tally = Tally()
    with table_writer(out) as write:
        sizes = shown_training_counts(model.estimator)["rows"]
        unsaid = frozenset(map(str, sizes.index[sizes.isna()]))
        decide = Decider(rule, model.score_name, write, unsaid) if rule else None
        whose = bool(groups), bool(people)
        for scored, read, *groups_and_people in _scores(
            model, batches, called, *whose, start=start, threads=threads, bounds=bounds
        ):
            if decide:
                decide(scored, *groups_and_people)
            else:
                write(scored)
            like = np.asarray(scored.column("like_tested"))
            absent = scored.column(model.score_name).is_null().to_numpy(zero_copy_only=False)
            tally += Tally(
                scored.num_rows,
                int(len(like) - like.sum()),
                int(absent.sum()),
                start + tally.rows + int(absent.argmax()) if len(absent) else 0,
                read.unread.later(start + tally.rows),
                read.empty,
            )
            if progress is not None:
                progress(tally.rows)
        if tally.rows == 0:
            raise InputError(f"{path}: the table has no rows.")
        decisions = decide.finish() if decide else None
    return replace(tally, decisions=decisions)


def score_batches(
    model: TableModel | str | Path,
    batches: Iterable[Any],
    keep: Sequence[str] = (),
    threads: int | None = None,
    bounds: float | None = None,
) -> Iterator[pa.RecordBatch]:
    """Scores of batches of raw rows, as they come: for data that is not a file.

    This is the function that engines call on their workers: Spark's `mapInArrow`, Ray Data's
    `map_batches` and DuckDB (docs/engines.md).

    Parameters
    ----------
    model
        A model, or the folder of one, which each process then loads once.
    batches
        Arrow record batches or tables, pandas or polars frames, each with the columns of the model.
    keep
        Columns to copy; without any, `row` counts the rows of this call from 0.
    threads
        Batches that are scored at the same time; None is one per core.
    bounds
        As for `predict_file`.

    Yields
    ------
    Record batches with the columns of `dcem predict`: `keep` or `row`, `score` (`risk` of a
    calibrated model), its spread, `distance` and `like_tested`, and those of bounds.
    """
    if not isinstance(model, TableModel):
        model = loaded(Path(model).absolute())
    if bounds is not None:
        require_bounds(model, bounds)
    called = _as_they_are(keep, added(model, bounds))
    rows = (_record_batch(batch) for batch in batches)
    told: set[str] = set()
    for scored, read, *_ in _scores(model, rows, called, threads=threads, bounds=bounds):
        for note in model.encoder.foreign_notes(read.unread, scored.num_rows):
            if (column := note.partition(":")[0]) not in told:  # once, not for every batch
                told.add(column)
                notice(note)
        yield scored


def loaded(folder: Path) -> TableModel:
    """The model in a folder, read once per process, and again when it was replaced."""
    file = folder / DESCRIPTION
    return _loaded(folder, stamp(file) if file.is_file() else ())


@lru_cache(maxsize=4)
def _loaded(folder: Path, about: tuple[int, ...]) -> TableModel:
    return TableModel.load(folder)


def _record_batch(rows: Any) -> pa.RecordBatch:
    if isinstance(rows, pa.RecordBatch):
        return rows
    table = rows if isinstance(rows, pa.Table) else pa.table(as_frame(rows))
    return pa.RecordBatch.from_arrays(
        [column.combine_chunks() for column in table.columns], names=table.column_names
    )


def added(model: TableModel, bounds: float | None = None) -> tuple[str, ...]:
    """The columns that a model adds to those carried over."""
    limits = () if bounds is None else BOUNDS_COLUMNS
    return (model.score_name, f"{model.score_name}_spread", *BESIDES, *limits)


def _scores(
    model: TableModel,
    batches: Iterable[pa.RecordBatch],
    called: Mapping[str, str],
    grouped: bool = False,
    named: bool = False,
    *,
    start: int = 0,
    threads: int | None = None,
    bounds: float | None = None,
) -> Iterator[tuple[pa.RecordBatch, Read, Any, Any]]:
    """Scored batches in order, how they were read, groups and people."""

    def scored(item: tuple[int, pa.RecordBatch]) -> tuple[pa.RecordBatch, Read, Any, Any]:
        first, batch = item
        rows = model.read(batch)
        scores = model.score_read(rows)
        require_columns(batch.schema.names, tuple(called))
        columns = {new: batch.column(name) for name, new in called.items()}
        if not called:
            columns["row"] = pa.array(np.arange(first, first + batch.num_rows))
        numbers = [
            pa.array(values.astype(np.float32), mask=~np.isfinite(values))
            for values in (scores.score, scores.spread, scores.distance)
        ]
        columns |= dict(zip(added(model), [*numbers, pa.array(scores.like_tested)], strict=True))
        if bounds is not None:
            columns |= bound_columns(model, batch, rows, scores, bounds)
        groups = group_codes(batch, model.roles) if grouped else None
        people = person_names(batch, model.roles) if named else None
        return pa.RecordBatch.from_pydict(columns), rows, groups, people

    return parallel(scored, with_start(batches, start), threads)


def own_name(identifier: str, added: Sequence[str]) -> str:
    """What the column of identifiers is called where the result has a column of its name."""
    return "id" if identifier in added else identifier


def with_start(
    batches: Iterable[pa.RecordBatch], start: int = 0
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Each batch with the row of the table that its first one is."""
    for batch in batches:
        yield start, batch
        start += batch.num_rows


def parallel(work: Callable[[T], R], items: Iterable[T], workers: int | None = None) -> Iterator[R]:
    """`map(work, items)` on one thread a core, a few items ahead, results in order.

    Networks and encoders spend their time outside of Python's lock. Each thread keeps to itself:
    products that split over all cores again would only wait for each other.
    """
    workers, alone = workers or cpu_count(), one_thread()(work)
    waiting: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(workers)
    try:
        for item in items:
            waiting.append(pool.submit(alone, item))
            if len(waiting) > workers + 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
