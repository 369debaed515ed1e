"""Run a benchmark: claim, train, commit, until everything is done or the time is up."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from dcem.benchmark.backends import backend as find_backend
from dcem.benchmark.cells import expand
from dcem.benchmark.database import STORE
from dcem.benchmark.fleets import CellResult
from dcem.benchmark.machine import device_name, machine_versions
from dcem.benchmark.plan import Clock, Planner
from dcem.benchmark.progress import Display
from dcem.benchmark.store import Store
from dcem.benchmark.toml_file import Benchmark

CHECKPOINTS = "checkpoints"


@dataclass(frozen=True)
class Summary:
    """How a run ended."""

    done: int  # cells of the benchmark that have a result, now or from before
    computed: int  # by this run
    failed: int
    pending: int
    elsewhere: int  # claimed by other processes
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
        A module of `dcem.benchmark.backends`: "local" trains in this process, "ray" on a cluster
        (`address`), or on one of its own.
    started
        `time.monotonic()` when the time began to count.
    """
    clock = Clock(max_seconds, started)
    trainer = find_backend(backend)
    plan, notes = expand(benchmark)
    out, display = Path(out), display or Display()
    with trainer.connected(device, address) as where, Store(out / STORE) as store:
        store.add(benchmark.name, benchmark.about, benchmark.metrics, plan)
        store.want(one.cell.id for one in plan)
        if retry_failed:
            store.retry_failed()
        computed = 0

        def commit(result: CellResult) -> None:
            nonlocal computed
            if result.metrics is None:
                assert result.error is not None
                store.fail(result.cell, result.error)
            else:
                computed += store.finish(result.cell, result.metrics, result.about)
            display.cell_done(failed=result.metrics is None)

        with store.worker(device_name(where), machine_versions()):
            planner = Planner(store, out / CHECKPOINTS, where, clock, max_fleet)
            counts = store.wanted_counts()
            with display.running(benchmark.name, sum(counts.values()), counts, notes):
                trainer.work(planner, where, clock, commit, display)
        counts = store.wanted_counts()
    return Summary(
        done=counts.get("done", 0),
        computed=computed,
        failed=counts.get("failed", 0),
        pending=counts.get("pending", 0),
        elsewhere=counts.get("running", 0),
        seconds=time.monotonic() - clock.started,
    )
