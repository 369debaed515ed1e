"""Scores for a file of any length, in bounded memory and in the order of its rows.

The file is read in batches; a few of them are encoded and scored at a time, one a core; results are
written as they come, under a temporary name that becomes the final one when all is done.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
from threadpoolctl import threadpool_limits

from dcem.files import remove_abandoned
from dcem.scoring.model import TableModel
from dcem.table import checks, read_batches, read_header
from dcem.table.checks import InputError

BESIDES = ("distance", "like_tested")  # columns added to the score and its spread
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Predicted:
    """What became of a file.

    Attributes
    ----------
    rows
        Rows scored.
    unlike_tested
        Those of them that are unlike anybody tested.
    notes
        Columns that do not look as they did in training: their scores rest on less than they seem;
        and rows that could not be scored, if there are any.
    unscored
        Rows whose score is empty, since it would not be a number.
    """

    rows: int
    unlike_tested: int
    notes: tuple[str, ...] = ()
    unscored: int = 0


def predict_file(
    model: TableModel,
    path: str | Path,
    out: str | Path,
    *,
    keep: Sequence[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Predicted:
    """Score every row of a .csv, .csv.gz or .parquet file and write the result.

    Parameters
    ----------
    keep
        Columns to carry over. None: the person's identifier, if the model knows one and the file
        has it; otherwise `row`, the position in the file from 0.
    progress
        Called with the number of rows written so far.
    """
    path, out = Path(path), Path(out)
    require_output(out, path)
    header = read_header(path)
    checks.require_columns(header, model.encoder.columns, f"{path}: the table")
    keep = carried(model, header) if keep is None else tuple(keep)
    checks.require_columns(header, keep, f"{path}: the table")
    clash = sorted(set(keep) & set(added(model)))
    if clash:
        raise InputError(
            f"{path}: the column {clash[0]!r} would be carried over and added. Rename it, or leave "
            "it out of `keep`."
        )
    needed = list(dict.fromkeys([*keep, *model.encoder.columns]))
    rows, unlike_tested, unscored, first = 0, 0, 0, 0
    cells = np.zeros((2, len(model.encoder.columns)), np.int64)  # unread, empty
    with writing(out) as write:
        for scored, strange in _scores(model, read_batches(path, needed, verbatim=keep), keep):
            write(scored)
            like = np.asarray(scored.column("like_tested"))
            unlike_tested += int(len(like) - like.sum())
            absent = scored.column(model.score_name).is_null().to_numpy(zero_copy_only=False)
            if absent.any() and not unscored:
                first = rows + int(absent.argmax())
            unscored += int(absent.sum())
            rows += scored.num_rows
            cells += strange
            if progress is not None:
                progress(rows)
        if rows == 0:
            raise InputError(f"{path}: the table has no rows.")
    notes = model.strange_columns(cells[0], cells[1], rows)
    if unscored:
        notes += (
            f"{unscored:,} rows (the first in row {first:,}, counted from 0) have no "
            f"{model.score_name}: their values are too large to compute with. Look for cells that "
            "stand for something else, such as a missing value.",
        )
    return Predicted(rows, unlike_tested, notes, unscored)


def score_batches(
    model: TableModel, batches: Iterable[Any], keep: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Scores of batches of raw rows, as they come: for data that is not a file.

    Parameters
    ----------
    batches
        Arrow record batches or tables, pandas or polars frames, each with the columns of the model.
    keep
        Columns to carry over; without any, `row` counts the rows from 0.

    Yields
    ------
    Record batches with the columns of `dcem predict`: `keep` or `row`, `score` (`risk` of a
    calibrated model), its spread, `distance` and `like_tested`.
    """
    for scored, _ in _scores(model, (_record_batch(batch) for batch in batches), tuple(keep)):
        yield scored


def _record_batch(rows: Any) -> pa.RecordBatch:
    if isinstance(rows, pa.RecordBatch):
        return rows
    table = rows if isinstance(rows, pa.Table) else pa.table(checks.as_frame(rows))
    return pa.RecordBatch.from_arrays(
        [column.combine_chunks() for column in table.columns], names=table.column_names
    )


def added(model: TableModel) -> tuple[str, ...]:
    """The columns that a model adds to those carried over."""
    return (model.score_name, f"{model.score_name}_spread", *BESIDES)


def _scores(
    model: TableModel, batches: Iterable[pa.RecordBatch], keep: Sequence[str]
) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
    """Scored batches in order, and the cells of each that were unread and empty `[2, columns]`."""
    yield from in_order(lambda item: _scored(model, item[1], keep, item[0]), _numbered(batches))


def carried(model: TableModel, header: Sequence[str]) -> tuple[str, ...]:
    """The columns carried over unless others are asked for."""
    known = model.roles.id
    return (known,) if known is not None and known in header else ()


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    start = 0
    for batch in batches:
        yield start, batch
        start += batch.num_rows


def _scored(
    model: TableModel, batch: pa.RecordBatch, keep: Sequence[str], start: int
) -> tuple[pa.RecordBatch, np.ndarray]:
    rows = model.read(batch)
    scores = model.score_read(rows)
    columns = {name: batch.column(name) for name in keep}
    if not keep:
        columns["row"] = pa.array(np.arange(start, start + batch.num_rows))
    numbers = [
        pa.array(values.astype(np.float32), mask=~np.isfinite(values))
        for values in (scores.score, scores.spread, scores.distance)
    ]
    columns |= dict(zip(added(model), [*numbers, pa.array(scores.like_tested)], strict=True))
    return pa.RecordBatch.from_pydict(columns), np.stack([rows.unread, rows.empty])


def in_order(work: Callable[[T], R], items: Iterable[T], workers: int | None = None) -> Iterator[R]:
    """`map(work, items)` on one thread a core, a few items ahead, results in order.

    Networks and encoders spend their time outside of Python's lock. Each thread keeps to itself:
    products that split over all cores again would only wait for each other.
    """
    workers = workers or os.cpu_count() or 1
    waiting: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(workers)
    try:
        with _one_thread():
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > workers + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Products on one thread each, by whichever library makes them."""
    torch = sys.modules.get("torch")  # if nothing has loaded it, nothing uses it
    threads = torch.get_num_threads() if torch else 1
    try:
        with threadpool_limits(1):
            if torch:
                torch.set_num_threads(1)
            yield
    finally:
        if torch:
            torch.set_num_threads(threads)


def require_output(out: Path, source: Path | None = None) -> None:
    """Refuse before the work is done what would fail after it."""
    if not out.name.lower().endswith((".csv", ".csv.gz", ".parquet")):
        raise InputError(f"{out}: the name must end in .csv, .csv.gz or .parquet.")
    if out.is_dir():
        raise InputError(f"{out} is a folder. Give the name of a file.")
    exists = next(folder for folder in out.absolute().parents if folder.exists())
    if not exists.is_dir():
        raise InputError(f"{out}: {exists} is a file, not a folder.")
    if source is not None and out.exists() and source.exists() and out.samefile(source):
        raise InputError(f"{out} is the table itself. Write the result to another file.")


@contextmanager
def writing(out: Path) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """A function that appends batches to `out`, which appears when all is written, or not.

    Folders on the way to it are created.
    """
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    remove_abandoned(out)
    open_files: list[Any] = []

    def write(batch: pa.RecordBatch) -> None:
        if not open_files:
            out.parent.mkdir(parents=True, exist_ok=True)
            open_files.extend(_open(partial, out.name.lower(), batch.schema))
        open_files[0].write_batch(batch)

    try:
        try:
            yield write
        finally:
            for file in open_files:
                file.close()
        if open_files:
            os.replace(partial, out)
    finally:
        partial.unlink(missing_ok=True)


def write_frame(frame: pd.DataFrame, out: Path) -> None:
    """Write a finished table, whole or not at all."""
    with writing(out) as write:
        for batch in pa.Table.from_pandas(frame, preserve_index=False).to_batches():
            write(batch)


def _open(path: Path, name: str, schema: pa.Schema) -> list[Any]:
    """A writer, and the file under it if that must be closed too."""
    if name.endswith(".parquet"):
        import pyarrow.parquet

        return [pyarrow.parquet.ParquetWriter(path, schema)]
    file = pa.output_stream(path, compression="gzip" if name.endswith(".gz") else None)
    return [_PlainCSV(file, schema), file]


class _PlainCSV:
    """A CSV file whose text is quoted only where it must be, so that the identifier 7 is `7`.

    Arrow quotes all text or none, and refuses none where a value holds a comma, a quote or the end
    of a line: then that batch is quoted. Both are the same CSV to a reader.
    """

    def __init__(self, file: Any, schema: pa.Schema) -> None:
        self.file = file
        self._write(schema.empty_table(), include_header=True)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._write(batch, include_header=False)

    def _write(self, rows: Any, include_header: bool) -> None:
        from pyarrow import csv

        for quoting in ("none", "needed"):
            buffer = pa.BufferOutputStream()  # a refused batch leaves nothing in the file
            try:
                csv.write_csv(
                    rows,
                    buffer,
                    csv.WriteOptions(include_header=include_header, quoting_style=quoting),
                )
            except pa.ArrowInvalid:
                if quoting == "needed":
                    raise
            else:
                self.file.write(buffer.getvalue())
                return

    def close(self) -> None:
        """The file under it is closed by who opened it."""
