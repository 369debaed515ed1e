"""The Ray backend: the same fleets, trained on a cluster.

The driver (this process) claims fleets, hands each to a Ray task, and commits what comes back; the
store never leaves it, so workers need no common disk. A worker that dies takes nothing with it: Ray
runs its task again, and where checkpoints are on a disk that the next worker sees, the task goes on
from there. Every node needs dcem installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dcem.benchmark.cells import Cell
from dcem.benchmark.display import Display
from dcem.benchmark.fleets import Outcome, run_fleet
from dcem.benchmark.planner import Clock, Planner, StopRun
from dcem.benchmark.store import Claim

RETRIES = 3  # of a fleet whose worker died
_GRACE = 10.0  # seconds that a worker may take to notice that the time is up


def train_remotely(
    cells: Sequence[Cell],
    device: str,
    checkpoint: Path,
    skip: frozenset[str],
    max_seconds: float | None,
) -> list[Outcome] | None:
    """What a Ray task runs: one fleet; None where the time ran out."""
    clock = Clock(max_seconds)

    def progress(done: int, total: int) -> None:
        if done < total:
            clock.tick()

    try:
        return list(
            run_fleet(
                cells,
                device=device,
                checkpoint=checkpoint,
                progress=progress,
                skip=skip,
            )
        )
    except StopRun:
        return None


@contextmanager
def cluster(address: str | None) -> Iterator[bool]:
    """Be connected to the cluster, or to one started here; whether it has cards."""
    import ray

    ours = not ray.is_initialized()
    if ours:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    try:
        yield ray.cluster_resources().get("GPU", 0) >= 1
    finally:
        if ours:
            ray.shutdown()


def run_on_ray(
    planner: Planner, clock: Clock, commit: Callable[[Outcome], None], display: Display
) -> None:
    """Keep every worker of the cluster busy until nothing is left, or the time is up.

    One fleet at a time on each card where the cluster has any, else one on each core.
    """
    import ray

    running: dict[Any, tuple[Claim, float]] = {}
    while True:
        resources = ray.cluster_resources()  # nodes come and go
        cards = int(resources.get("GPU", 0))
        slots = cards or max(1, int(resources.get("CPU", 1)))
        while len(running) < slots and (claim := planner.next()) is not None:
            running[_submit(ray, planner, claim, clock, cards > 0)] = claim, time.monotonic()
            claims = [claim for claim, _ in running.values()]
            display.fleet(claim, planner.seconds_left(claims) / slots)
        if not running:
            return
        ready, _ = ray.wait(list(running), timeout=1.0)
        for task in ready:
            claim, started = running.pop(task)
            _collect(ray, task, claim, started, planner, commit)
        if clock.left < -_GRACE:
            for task, (claim, _) in running.items():
                ray.cancel(task, force=True)
                planner.store.release([cell.id for cell in claim.open])
            return


def _submit(ray: Any, planner: Planner, claim: Claim, clock: Clock, card: bool) -> Any:
    options = {"num_gpus": 1, "num_cpus": 0} if card else {"num_cpus": 1}
    remote = ray.remote(max_retries=RETRIES, **options)(train_remotely)
    return remote.remote(
        claim.cells,
        "cuda" if card else "cpu",
        planner.checkpoint_of(claim).absolute(),
        claim.done,
        None if clock.max_seconds is None else max(1.0, clock.left),
    )


def _collect(
    ray: Any,
    task: Any,
    claim: Claim,
    started: float,
    planner: Planner,
    commit: Callable[[Outcome], None],
) -> None:
    """Commit what a task brought; cells of a fleet whose workers keep dying have failed."""
    try:
        outcomes = ray.get(task)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError) as error:
        text = f"{len(claim.cells)} cells were given up: {RETRIES + 1} workers died.\n{error}"
        outcomes = [Outcome(cell.id, None, text, {}) for cell in claim.open]
    if outcomes is None:
        planner.store.release([cell.id for cell in claim.open])
        return
    for outcome in outcomes:
        commit(outcome)
    planner.record(claim, time.monotonic() - started, whole=True)
    planner.forget_checkpoint(claim)
