"""A model of all rows of a table that is too large to be read whole.

A part of the people, drawn at random, says what the columns mean, how they are scaled and where to
stop; then all rows pass, batch by batch. Who is held out follows from the identifier alone
(`dcem.table.sampling`), so that nobody is learnt from and judged by. What is kept in memory does
not grow with the table for the learner `linear`; for `boost` it is a byte per row and feature.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dcem.compare.one_column import about_dominant
from dcem.learners.learner import Batch
from dcem.learners.registry import learner_class
from dcem.methods.fitting import Prepared, describe_features, prepare
from dcem.methods.registry import MEMBERS, delivered
from dcem.methods.supervised import lessons
from dcem.methods.training_table import MAX_VALIDATION
from dcem.scoring.fit import missing_shares, require_method
from dcem.scoring.model import TableModel
from dcem.scoring.stream import parallel, with_start
from dcem.table import UserTable, read_batches
from dcem.table.checks import check_weight
from dcem.table.disclosure import few_people
from dcem.table.messages import POSITION, DataWarning, InputError, formerly
from dcem.table.outcome import labels_of
from dcem.table.remote import located
from dcem.table.sampling import Draw, hashed, numbers_of
from dcem.table.values import numbers

BATCH = 1 << 16  # rows
LEARNERS = ("linear", "boost")


def require_all_rows(method: str, learner: Any = None) -> None:
    """Refuse a method that cannot learn from rows as they pass."""
    require_method(method, learner)
    made: Any = delivered(method, params=None if learner is None else {"learner": learner})
    if not made.row_by_row or made.learner not in LEARNERS:
        raise InputError(
            f"Only tested-only and y-obs, with the learner {' or '.join(LEARNERS)}, can be fitted "
            f"to all rows of a table that is too large for memory. To fit {method!r} to a sample "
            "of the people, leave out `all_rows`."
        )


@formerly(members="n_members")
def fit_all_rows(
    source: str | Path,
    table: UserTable,
    method: str,
    *,
    learner: str | None = None,
    n_members: int = MEMBERS,
    random_state: int = 0,
    query: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TableModel:
    """Fit a method to all rows of a file of which `table` holds a sample.

    Parameters
    ----------
    source, query
        The file, as it was given to `read_table`.
    table
        The sample that `read_table` drew from it.
    method, learner
        `tested-only` or `y-obs`; "linear" or "boost", unless the name says it.
    n_members
        Models whose disagreement is the spread; all but the first weight people at random.
    progress
        Called with the rows done and the total, in each pass.
    """
    require_all_rows(method, learner)
    if table.draw is None:
        raise InputError("The whole table fits in memory: leave out `all_rows`.")
    problem = table.problem
    for asked, why in (
        (table.roles.until, "Leaving out rows after a time (`until`)"),
        (problem.imperfect_test, "Correcting for an imperfect test"),
        (problem.known_prevalence, "Adjusting a model to a known prevalence"),
    ):
        if asked:
            raise InputError(f"{why} needs all rows in memory: leave out `all_rows`.")
    given: dict[str, Any] = {"random_state": random_state}
    if learner is not None:
        given["learner"] = learner
    estimator: Any = delivered(method, n_members=n_members, params=given)
    held = table.draw.numbers < held_below(table.draw)
    describe_features(estimator, problem)
    data = prepare(estimator, problem.subset(~held), problem.subset(held), None)
    rows = AllRows(located(source), table, data, query, progress)
    sample, watched = lessons(estimator, data)
    estimator.models_ = learner_class(estimator.learner).of_batches(
        data.seeds, sample, watched, rows
    )
    data.finish()
    estimator.training_counts_, estimator.training_few_ = problem.counts(), few_people(problem)
    origin = replace(table.source, all_rows=True)
    dominant = about_dominant(table.problem, table.encoder)
    return TableModel(
        estimator, table.encoder, table.roles, origin, missing_shares(table), dominant=dominant
    )


def held_below(draw: Draw) -> float:
    """People with a smaller number than this are held out: a fifth of those drawn, at most."""
    return draw.share * min(0.2, MAX_VALIDATION / len(draw.numbers))


@dataclass(frozen=True, eq=False)
class AllRows:
    """The rows that a method learns from, as often as they are wanted."""

    path: Path
    table: UserTable
    data: Prepared
    query: str | None = None
    progress: Callable[[int, int], None] | None = None

    def __call__(self, *, features: bool = True) -> Iterator[Batch]:
        """The batches in order; without `features` labels and weights alone, which is sooner."""
        roles = self.table.roles
        named = [roles.label, *roles.tested, *filter(None, (roles.id, roles.weight))]
        columns = [*named, *(self.table.encoder.columns if features else ())]
        how: dict[str, Any] = {"verbatim": named, "names": (roles.id,), "query": self.query}
        batches = read_batches(self.path, list(dict.fromkeys(columns)), rows=BATCH, **how)
        seen = 0
        with warnings.catch_warnings():  # said of the part that was drawn already
            warnings.simplefilter("ignore", DataWarning)
            for batch, n_rows in parallel(
                lambda item: (self._taught(*item, features), item[1].num_rows), with_start(batches)
            ):
                seen += n_rows
                if self.progress is not None:
                    self.progress(seen, self.table.source.drawn_from)
                yield batch

    def _taught(self, start: int, batch: pa.RecordBatch, features: bool) -> Batch:
        """The rows of a batch that the method learns from, held-out people left aside."""
        roles, draw = self.table.roles, self.table.draw
        assert draw is not None
        y = labels_of(batch, roles)
        number = numbers_of(batch, roles.id, draw.seed, start)
        tested, weight = ~np.isnan(y), np.ones(len(y))
        if roles.weight is not None:
            weight = numbers(batch.column(roles.weight), roles.missing_in(roles.weight))
            if weight.any():  # all of a batch may be 0
                labels = pd.RangeIndex(start, start + len(y), name=POSITION)
                weight = check_weight(weight, roles.weight, labels=labels)
        lesson = self.data.estimator._lesson(
            {"y": np.nan_to_num(y), "tested": tested, "weight": weight}, self.data.n_groups
        )
        kept = (number >= held_below(draw)) & (weight > 0)
        if lesson.keep is not None:
            kept &= lesson.keep
        place = np.flatnonzero(kept)
        X = np.empty((len(place), 0))
        if features:
            X = self.table.encoder.transform(batch.take(pa.array(place)))
        weights = [
            weight[place] * (lot(number[place], seed) if member else 1.0)
            for member, seed in enumerate(self.data.seeds)
        ]
        return Batch(X, lesson.target[place], np.stack(weights), number[place])


def lot(number: np.ndarray, seed: int) -> np.ndarray:
    """How much each row counts by lot `[n]`, of mean 1; the rows of a person alike."""
    return -np.log1p(-hashed(number.view(np.uint64), seed))
