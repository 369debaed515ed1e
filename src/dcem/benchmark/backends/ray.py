"""The Ray backend: the same fleets, trained on a cluster.

The driver (this process) claims fleets, hands each to a Ray task, and commits what comes back; the
store never leaves it, so workers need no common disk. A worker that dies takes nothing with it: Ray
runs its task again, and where checkpoints are on a disk that the next worker sees, the task goes on
from there. Every node needs dcem installed. A task that cannot be saved costs its own cells alone:
they have failed, with the reason, and the run goes on. A cluster that is lost as a whole fails
nothing: its cells are still to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dcem.benchmark.cells import Cell, FleetOfCells
from dcem.benchmark.fleets import CellResult, run_fleet
from dcem.benchmark.machine import REMOTE_CARD, machine_versions
from dcem.benchmark.plan import Clock, Planner, Running, StopRun
from dcem.benchmark.progress import Display
from dcem.ray_cluster import joined
from dcem.table.messages import InputError

RETRIES = 3  # of a fleet whose worker died, or whose task raised (a card that no longer answers)
_GRACE = 10.0  # seconds that a worker may take to notice that the time is up


def train_remotely(
    cells: Sequence[Cell],
    device: str,
    checkpoint: Path,
    skip: frozenset[str],
    max_seconds: float | None,
) -> list[CellResult] | None:
    """What a Ray task runs: one fleet; None where the time ran out.

    Each outcome says the versions here: those of the driver are another machine's.
    """
    clock = Clock(max_seconds)

    def progress(done: int, total: int) -> None:
        if done < total:
            clock.tick()

    fleet = run_fleet(cells, device=device, checkpoint=checkpoint, progress=progress, skip=skip)
    try:
        return [replace(one, about=one.about | {"versions": machine_versions()}) for one in fleet]
    except StopRun:
        return None


@contextmanager
def connected(device: str, address: str | None) -> Iterator[str]:
    """Be connected to the cluster, or to one started here; its workers choose their devices."""
    with joined(address) as ray:
        yield REMOTE_CARD if ray.cluster_resources().get("GPU", 0) >= 1 else "cpu"


def work(
    planner: Planner,
    where: str,
    clock: Clock,
    commit: Callable[[CellResult], None],
    display: Display,
) -> None:
    """Keep every worker of the cluster busy until nothing is left, or the time is up.

    One fleet at a time on each card where the cluster has any, else one on each core. Where the
    cluster itself is lost, its cells have not failed: they stay to do.
    """
    import ray

    try:
        _keep_busy(ray, planner, clock, commit, display)
    except (ConnectionError, ray.exceptions.RayError) as error:
        raise InputError(
            f"The Ray cluster no longer answers ({error or type(error).__name__}). Cells that it "
            "had not finished are still to do: run the same command again when it is back."
        ) from error


def _keep_busy(
    ray: Any,
    planner: Planner,
    clock: Clock,
    commit: Callable[[CellResult], None],
    display: Display,
) -> None:
    running: dict[Any, Running] = {}
    out_of_time = False
    while True:
        resources = ray.cluster_resources()  # nodes come and go
        cards = int(resources.get("GPU", 0))
        slots = cards or max(1, int(resources.get("CPU", 1)))
        while not out_of_time and len(running) < slots and (fleet := planner.next()) is not None:
            one = planner.begin(fleet, display)
            running[_submit(ray, planner, fleet, clock, cards > 0)] = one
            fleets = [one.fleet for one in running.values()]
            display.fleet(fleet, planner.seconds_left(fleets) / slots)
        if not running:
            return
        ready, _ = ray.wait(list(running), timeout=1.0)
        for task in ready:
            out_of_time |= not _collect(ray, task, running.pop(task), planner, commit)
        if clock.left < -_GRACE:
            for task, one in running.items():
                ray.cancel(task, force=True)
                planner.cut_off(one)
            return


def _submit(ray: Any, planner: Planner, fleet: FleetOfCells, clock: Clock, card: bool) -> Any:
    options = {"num_gpus": 1, "num_cpus": 0} if card else {"num_cpus": 1}
    options |= {"max_retries": RETRIES, "retry_exceptions": True}
    return ray.remote(**options)(train_remotely).remote(
        fleet.cells,
        "cuda" if card else "cpu",
        planner.checkpoint_of(fleet).absolute(),
        fleet.done,
        None if clock.max_seconds is None else max(1.0, clock.left),
    )


def _collect(
    ray: Any, task: Any, one: Running, planner: Planner, commit: Callable[[CellResult], None]
) -> bool:
    """Commit what a task brought, or that its cells have failed; False where the time ran out."""
    trained = False
    try:
        results = ray.get(task)
    except ray.exceptions.RayError as error:
        if _is_lost(ray, error):
            raise ConnectionError(str(error)) from error
        text = _given_up(ray, one.fleet, error)
        results = [CellResult(cell.id, None, text, {}) for cell in one.fleet.open]
    else:
        if results is None:
            planner.cut_off(one)
            return False
        trained = True
    for result in results:
        commit(result)
    planner.end(one, trained=trained)
    return True


def _is_lost(ray: Any, error: Exception) -> bool:
    """Whether a task came to nothing because the cluster as a whole is gone."""
    if isinstance(error, ray.exceptions.RayTaskError | ray.exceptions.OutOfMemoryError):
        return False  # somebody was there to say so
    try:
        return not any(node["Alive"] for node in ray.nodes())
    except (ConnectionError, RuntimeError, ray.exceptions.RayError):
        return True


def _given_up(ray: Any, fleet: FleetOfCells, error: Exception) -> str:
    """Why a fleet was given up; the last line is the one that `status` shows."""
    n = len(fleet.cells)
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        why = f"out of memory; try again with at most {max(1, n // 2)} cells in a fleet"
    elif isinstance(error, ray.exceptions.RayTaskError):  # raised by the task: its own last line
        why = str(error).strip().rpartition("\n")[2]
    else:
        why = f"its workers died ({type(error).__name__})"
    return f"{error}\nA fleet of {n} cells was given up after {RETRIES + 1} tries: {why}"
