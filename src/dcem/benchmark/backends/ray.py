"""The Ray backend: the same fleets, trained on a cluster.

The driver (this process) claims fleets, hands each to a Ray task, and commits what comes back; the
store never leaves it, so workers need no common disk. A worker that dies takes nothing with it: Ray
runs its task again, and where checkpoints are on a disk that the next worker sees, the task goes on
from there. Every node needs dcem installed. A task that cannot be saved costs its own cells alone:
they have failed, with the reason, and the run goes on.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dcem.benchmark.cells import Cell
from dcem.benchmark.fleets import Outcome, run_fleet
from dcem.benchmark.plan import Clock, Planner, StopRun
from dcem.benchmark.progress import Display
from dcem.benchmark.store import Claim
from dcem.benchmark.versions import versions
from dcem.table.checks import InputError

RETRIES = 3  # of a fleet whose worker died, or whose task raised (a card that no longer answers)
_GRACE = 10.0  # seconds that a worker may take to notice that the time is up
_ANSWER = 5.0  # seconds that a cluster may take to answer
TOKEN = (
    "If the cluster wants a token, as newer versions of Ray do, set RAY_AUTH_MODE=token, and "
    "RAY_AUTH_TOKEN to what 'ray get-auth-token' prints on its first machine."
)


@dataclass(frozen=True)
class _Running:
    """A fleet that is out on the cluster."""

    claim: Claim
    started: float
    resumed: bool  # from a checkpoint: its time says little about that of a whole fleet

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started


def train_remotely(
    cells: Sequence[Cell],
    device: str,
    checkpoint: Path,
    skip: frozenset[str],
    max_seconds: float | None,
) -> list[Outcome] | None:
    """What a Ray task runs: one fleet; None where the time ran out.

    Each outcome says the versions here: those of the driver are another machine's.
    """
    clock = Clock(max_seconds)

    def progress(done: int, total: int) -> None:
        if done < total:
            clock.tick()

    fleet = run_fleet(cells, device=device, checkpoint=checkpoint, progress=progress, skip=skip)
    try:
        return [replace(one, about=one.about | {"versions": versions()}) for one in fleet]
    except StopRun:
        return None


def _require_listener(address: str) -> None:
    """Refuse an address at which nobody answers; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return  # "auto" and the like: Ray knows
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"No Ray cluster answers at {address} ({error}). On its first machine, start it with: "
            f"ray start --head --port {port}"
        ) from None


@contextmanager
def cluster(address: str | None) -> Iterator[bool]:
    """Be connected to the cluster, or to one started here; whether it has cards."""
    if address is not None:
        _require_listener(address)
    import ray

    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(address=address, log_to_driver=False, configure_logging=False)
        except (ConnectionError, ValueError, ray.exceptions.RayError) as error:
            if address is None:
                raise
            why = f"Ray cannot join the cluster at {address}: {error}."
            raise InputError(f"{why} {TOKEN}") from error
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

    running: dict[Any, _Running] = {}
    out_of_time = False
    while True:
        resources = ray.cluster_resources()  # nodes come and go
        cards = int(resources.get("GPU", 0))
        slots = cards or max(1, int(resources.get("CPU", 1)))
        while not out_of_time and len(running) < slots and (claim := planner.next()) is not None:
            one = _Running(claim, time.monotonic(), planner.has_checkpoint(claim))
            if one.resumed:
                display.resumed(claim)
            running[_submit(ray, planner, claim, clock, cards > 0)] = one
            claims = [one.claim for one in running.values()]
            display.fleet(claim, planner.seconds_left(claims) / slots)
        if not running:
            return
        ready, _ = ray.wait(list(running), timeout=1.0)
        for task in ready:
            out_of_time |= not _collect(ray, task, running.pop(task), planner, commit)
        if clock.left < -_GRACE:
            for task, one in running.items():
                ray.cancel(task, force=True)
                _cut_off(planner, one)
            return


def _submit(ray: Any, planner: Planner, claim: Claim, clock: Clock, card: bool) -> Any:
    options = {"num_gpus": 1, "num_cpus": 0} if card else {"num_cpus": 1}
    options |= {"max_retries": RETRIES, "retry_exceptions": True}
    return ray.remote(**options)(train_remotely).remote(
        claim.cells,
        "cuda" if card else "cpu",
        planner.checkpoint_of(claim).absolute(),
        claim.done,
        None if clock.max_seconds is None else max(1.0, clock.left),
    )


def _collect(
    ray: Any, task: Any, one: _Running, planner: Planner, commit: Callable[[Outcome], None]
) -> bool:
    """Commit what a task brought, or that its cells have failed; False where the time ran out."""
    try:
        outcomes = ray.get(task)
    except ray.exceptions.RayError as error:
        text = _given_up(ray, one.claim, error)
        outcomes = [Outcome(cell.id, None, text, {}) for cell in one.claim.open]
    else:
        if outcomes is None:
            _cut_off(planner, one)
            return False
        if not one.resumed:
            planner.record(one.claim, one.seconds, whole=True)
    for outcome in outcomes:
        commit(outcome)
    planner.forget_checkpoint(one.claim)
    return True


def _cut_off(planner: Planner, one: _Running) -> None:
    """The time ran out: another run goes on from the checkpoint, or with smaller fleets."""
    planner.store.release([cell.id for cell in one.claim.open])
    if not planner.has_checkpoint(one.claim):
        planner.record(one.claim, one.seconds, whole=False)


def _given_up(ray: Any, claim: Claim, error: Exception) -> str:
    """Why a fleet was given up; the last line is the one that `status` shows."""
    n = len(claim.cells)
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        why = f"out of memory; --retry-failed --max-fleet {max(1, n // 2)} may help"
    elif isinstance(error, ray.exceptions.RayTaskError):  # raised by the task: its own last line
        why = str(error).strip().rpartition("\n")[2]
    else:
        why = f"its workers died ({type(error).__name__})"
    return f"{error}\nA fleet of {n} cells was given up after {RETRIES + 1} tries: {why}"
