"""Train the cells of one fleet and measure each: no store, no clock, only work.

This is what a backend runs, in this process or on another machine.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dcem import metrics
from dcem.benchmark.cells import Cell, estimator_of, task_of
from dcem.benchmark.machine import device_name, peak_memory, reset_peak
from dcem.extras import extra_needed
from dcem.methods import fit_many
from dcem.tasks import Task

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class CellResult:
    """What became of a cell: what was measured, or why nothing was."""

    cell: str
    metrics: dict[str, Any] | None
    error: str | None
    about: dict[str, Any]  # seconds, memory, device, size of its fleet; if patients are made up


def failed(cell: Cell, error: Exception, about: dict[str, Any]) -> CellResult:
    """A cell of which nothing could be measured, with the whole traceback."""
    return CellResult(cell.id, None, "".join(traceback.format_exception(error)).strip(), about)


class BrokenDevice(RuntimeError):
    """The device no longer answers: nothing that follows in this process would succeed."""


def run_fleet(
    cells: Sequence[Cell],
    *,
    device: str,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
    skip: Collection[str] = (),
) -> Iterator[CellResult]:
    """Train all cells as one fleet and yield the outcome of each, as soon as it is measured.

    Cells in `skip` train along, because the checkpoint holds them, but are not measured. If the
    fleet fails, its halves are tried, and their halves: only cells that fail alone have failed.
    """
    with extra_needed("the benchmark"):
        from dcem.methods.fleets import score_many
    try:
        tasks = [task_of(cell.task) for cell in cells]
        started = time.perf_counter()
        reset_peak(device)
        fitted = _fit(cells, tasks, device, checkpoint, progress)
    except Exception as error:
        if device != "cpu" and "CUDA error" in str(error):
            raise BrokenDevice(str(error)) from error
        if len(cells) == 1:
            if cells[0].id not in skip:
                yield failed(cells[0], error, {"device": device_name(device)})
            return
        fitted = None
    if fitted is None:
        half = (len(cells) + 1) // 2
        for part in (cells[:half], cells[half:]):
            yield from run_fleet(part, device=device, progress=progress, skip=skip)
        return
    seconds = (time.perf_counter() - started) / len(cells)
    about = {
        "seconds": round(seconds, 6),
        "memory_mb": round(peak_memory(device) / 2**20, 1),
        "device": device_name(device),
        "fleet_size": len(cells),
    }
    try:
        scores = score_many(fitted, [task.test for task in tasks])
    except Exception:  # one of them: each on its own, below
        scores = None
    for number, (cell, task, estimator) in enumerate(zip(cells, tasks, fitted, strict=True)):
        if cell.id in skip:
            continue
        described = about | ({"artificial": True} if task.params.get("artificial") else {})
        try:
            score = scores[number] if scores else score_many([estimator], [task.test])[0]
            yield CellResult(cell.id, measure(estimator, score, task), None, described)
        except Exception as error:
            yield failed(cell, error, described)


def _fit(
    cells: Sequence[Cell],
    tasks: Sequence[Task],
    device: str,
    checkpoint: Path | None,
    progress: Progress | None,
) -> list[Any]:
    estimator = estimator_of(cells[0].method, cells[0].task["kind"])
    if "device" in estimator.get_params(deep=False):  # what is not a network chooses none
        estimator.set_params(device=device)
    truths = None
    if estimator.uses_truth:
        truths = [(task.truth["train"], task.truth["validation"]) for task in tasks]
    return fit_many(
        estimator,
        [task.train for task in tasks],
        validations=[task.validation for task in tasks],
        truths=truths,
        random_states=[cell.seed for cell in cells],
        checkpoint=checkpoint,
        progress=progress,
    )


def measure(estimator: Any, score: np.ndarray, task: Task) -> dict[str, Any]:
    """The values of `file.MEASURED`: scores of the test split against the truth, rows counting as
    the task says; and iterations."""
    if not np.isfinite(score).all():
        raise ValueError(f"{int((~np.isfinite(score)).sum())} scores are not finite: it diverged")
    test = task.test
    values = metrics.ranking(task.truth["test"], score, test.group, weight=test.weight)
    iterations = getattr(estimator, "n_iter_", None)
    return values | {"n_iter": None if iterations is None else int(np.max(iterations))}
