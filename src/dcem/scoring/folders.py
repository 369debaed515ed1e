"""Scores for a folder of Parquet files, file by file, here or on a Ray cluster.

Each file of the table becomes a file of the result, under the same name. On a cluster, every
machine needs dcem and must see the model and both folders. A worker or machine that is lost takes
nothing with it: Ray gives its file to another. The result appears when all of it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path

import pyarrow.parquet

from dcem.files import require_folder_place, whole_folder
from dcem.ray_cluster import connection, shared_out
from dcem.scoring.model import TableModel
from dcem.scoring.stream import Predicted, Tally, carried, loaded, score_part
from dcem.table.formats import parquet_files
from dcem.table.messages import InputError


def predict_folder(
    model: str | Path,
    folder: str | Path,
    out: str | Path,
    *,
    keep: Sequence[str] | None = None,
    bounds: float | None = None,
    backend: str = "local",
    address: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Predicted:
    """Score every row of a folder of Parquet files; the result is also a folder of Parquet files.

    Parameters
    ----------
    model
        The folder of a model.
    keep, bounds
        As for `predict_file`.
    backend
        "local", or "ray": files are scored by the workers of a cluster, one per core.
    address
        Address of the cluster; None starts one on this machine.
    progress
        Called with the number of rows scored so far.
    """
    model, folder, out = Path(model).absolute(), Path(folder).absolute(), Path(out).absolute()
    connected = connection(backend, address)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder of Parquet files.")
    if out == folder or folder in out.parents or out in folder.parents:
        raise InputError(f"{out}: the result must not be inside the table's folder, or around it.")
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not parquet_files(out))):
        raise InputError(f"{out} exists and is not a folder of Parquet files. Name a new folder.")
    require_folder_place(out)
    fitted = TableModel.load(model)
    called = carried(fitted, folder, keep, bounds=bounds)
    with whole_folder(out) as partial:
        jobs, start = [], 0  # arguments of `score_file`
        for file in parquet_files(folder):
            name, rows = file.relative_to(folder), pyarrow.parquet.read_metadata(file).num_rows
            if rows:
                jobs.append((model, folder, str(name), partial / name, called, start, bounds))
            start += rows
        if not jobs:
            raise InputError(f"{folder}: the table has no rows.")
        tallies, done = {}, 0
        scored: Iterable[tuple[int, Tally]]
        with connected as ray:
            if ray is None:
                scored = enumerate(score_file(*job) for job in jobs)
            else:  # a worker has one core
                scored = shared_out(ray, score_file, [(*job, 1) for job in jobs])
            for number, tally in scored:
                tallies[number] = tally
                done += tally.rows
                if progress is not None:
                    progress(done)
        return reduce(add, (tallies[i] for i in range(len(jobs)))).result(fitted)


def score_file(
    model: Path, folder: Path, name: str, out: Path, called: Mapping[str, str], start: int,
    bounds: float | None = None, threads: int | None = None,
) -> Tally:  # fmt: skip
    """One file of the folder: what a worker runs."""
    return score_part(
        loaded(model), folder, out, called, query=name, start=start, bounds=bounds, threads=threads
    )
