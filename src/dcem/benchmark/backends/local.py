"""The local backend: one fleet after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dcem.benchmark.fleets import CellResult, run_fleet
from dcem.benchmark.plan import Clock, Planner, StopRun
from dcem.benchmark.progress import Display
from dcem.engine import resolve_device
from dcem.table.messages import InputError


@contextmanager
def connected(device: str, address: str | None) -> Iterator[str]:
    """There is nothing to connect to; the device is found."""
    try:
        found = str(resolve_device(device))
    except ValueError as error:
        raise InputError(str(error)) from None
    yield found


def work(
    planner: Planner,
    where: str,
    clock: Clock,
    commit: Callable[[CellResult], None],
    display: Display,
) -> None:
    """Train until nothing is left that can be done in time."""
    while (fleet := planner.next()) is not None:
        running = planner.begin(fleet, display)
        display.fleet(fleet, planner.seconds_left([fleet]))
        clock.start_fleet()

        def progress(done: int, total: int) -> None:
            display.progress(done, total)
            if done < total:  # at the end of training only the measuring is left
                clock.tick()

        try:
            for result in run_fleet(
                fleet.cells,
                device=where,
                checkpoint=planner.checkpoint_of(fleet),
                progress=progress,
                skip=fleet.done,
            ):
                commit(result)
        except StopRun:
            planner.cut_off(running)
            return
        planner.end(running)
