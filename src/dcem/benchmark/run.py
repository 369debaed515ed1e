"""Run a benchmark: claim, train, commit, until everything is done or the time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from dcem.benchmark.cells import expand
from dcem.benchmark.file import Benchmark
from dcem.benchmark.fleets import REMOTE_CARD, Outcome, device_name, run_fleet
from dcem.benchmark.plan import Clock, Planner, StopRun
from dcem.benchmark.progress import Display
from dcem.benchmark.store import Claim, Store
from dcem.benchmark.versions import versions
from dcem.engine import resolve_device

STORE = "store.sqlite"
CHECKPOINTS = "checkpoints"


@dataclass(frozen=True)
class Summary:
    """How a run ended."""

    done: int  # cells of the benchmark that have a result, now or from before
    computed: int  # by this run
    failed: int
    pending: int
    elsewhere: int  # claimed by other processes
    out_of_time: bool
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether every cell has a result."""
        return not (self.failed or self.pending or self.elsewhere)


def run(
    benchmark: Benchmark,
    out: Path,
    *,
    device: str = "auto",
    max_seconds: float | None = None,
    max_fleet: int | None = None,
    retry_failed: bool = False,
    backend: str = "local",
    address: str | None = None,
    started: float | None = None,
    display: Display | None = None,
) -> Summary:
    """Compute the cells of a benchmark that have no result yet.

    Parameters
    ----------
    out
        Folder of the store (`store.sqlite`) and of checkpoints; made if it is not there.
    max_seconds
        End cleanly after about this long; the next run goes on.
    max_fleet
        The most cells to train at once.
    retry_failed
        Try cells again that failed before.
    backend, address
        "local" trains in this process; "ray" on a cluster (`address`), or on one of its own.
    started
        `time.monotonic()` when the time began to count.
    """
    clock = Clock(max_seconds, started)
    plan, notes = expand(benchmark)
    out, display = Path(out), display or Display()
    with ExitStack() as stack:
        if backend == "ray":
            from dcem.benchmark.backends.ray import cluster

            where = REMOTE_CARD if stack.enter_context(cluster(address)) else "cpu"
        else:
            where = str(resolve_device(device))
        store = stack.enter_context(Store(out / STORE))
        store.add(benchmark.name, benchmark.about, benchmark.metrics, plan)
        store.want(one.cell.id for one in plan)
        if retry_failed:
            store.retry_failed()
        computed = 0

        def commit(outcome: Outcome) -> None:
            nonlocal computed
            if outcome.metrics is None:
                assert outcome.error is not None
                store.fail(outcome.cell, outcome.error)
            else:
                computed += store.finish(outcome.cell, outcome.metrics, outcome.about)
            display.cell_done(failed=outcome.metrics is None)

        with store.worker(device_name(where), versions()):
            planner = Planner(store, out / CHECKPOINTS, where, clock, max_fleet)
            counts = store.wanted_counts()
            with display.running(benchmark.name, sum(counts.values()), counts, notes):
                if backend == "ray":
                    from dcem.benchmark.backends.ray import run_on_ray

                    run_on_ray(planner, clock, commit, display)
                else:
                    _run_here(planner, where, clock, commit, display)
        counts = store.wanted_counts()
    return Summary(
        done=counts.get("done", 0),
        computed=computed,
        failed=counts.get("failed", 0),
        pending=counts.get("pending", 0),
        elsewhere=counts.get("running", 0),
        out_of_time=bool(counts.get("pending", 0)),
        seconds=time.monotonic() - clock.started,
    )


def _run_here(
    planner: Planner,
    device: str,
    clock: Clock,
    commit: Callable[[Outcome], None],
    display: Display,
) -> None:
    """The local backend: one fleet after the other in this process."""
    while (claim := planner.next()) is not None:
        if planner.has_checkpoint(claim):
            display.resumed(claim)
        display.fleet(claim, planner.seconds_left([claim]))
        if not _train(planner, claim, device, clock, commit, display):
            return


def _train(
    planner: Planner,
    claim: Claim,
    device: str,
    clock: Clock,
    commit: Callable[[Outcome], None],
    display: Display,
) -> bool:
    """Train one fleet and commit its cells; False where the time ran out."""
    started, resumed = time.monotonic(), planner.has_checkpoint(claim)
    clock.start_fleet()

    def progress(done: int, total: int) -> None:
        display.progress(done, total)
        if done < total:  # at the end of training only the measuring is left
            clock.tick()

    try:
        for outcome in run_fleet(
            claim.cells,
            device=device,
            checkpoint=planner.checkpoint_of(claim),
            progress=progress,
            skip=claim.done,
        ):
            commit(outcome)
    except StopRun:
        planner.store.release()
        if not planner.has_checkpoint(claim):
            planner.record(claim, time.monotonic() - started, whole=False)
        return False
    if not resumed:
        planner.record(claim, time.monotonic() - started, whole=True)
    planner.forget_checkpoint(claim)
    return True
