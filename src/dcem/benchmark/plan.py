"""What to train next: a fleet that was interrupted, else the next kind of cell that fits the time.

A planner is asked for one fleet after the other. It never hands out work that would not end in time
unless that work can be checkpointed, or nothing else was done yet: a run always gets somewhere.

How long a cell will take is first guessed by counting steps times rows; after the first fleet of a
kind the store knows better. A wrong guess costs little: a fleet too large for memory is split, one
too long for the time left goes on from its checkpoint, or is cut smaller the next time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

from dcem.benchmark.cells import Cell, FleetOfCells, estimator_of
from dcem.benchmark.machine import device_name, free_memory
from dcem.benchmark.progress import Display
from dcem.benchmark.store import Store

FLEET_SECONDS = 120.0  # what a fleet should take: results come in, and little is lost
PROBE_SECONDS = 30.0  # of the first fleet of a kind, which shows what the kind really costs
_WORTH_STARTING = 20.0  # seconds left that a checkpointed fleet can use
_MARGIN = {True: 0.9, False: 0.6}  # of the time left to plan with: measured costs, guessed costs

# Rows times steps per second, of networks of two layers of 64; deliberately low.
_THROUGHPUT = {"cuda": 2e8, "cpu": 1e6}
_DEFAULT_ROWS = 20_000


class StopRun(BaseException):
    """The time is up. Not an `Exception`: nothing on the way may take it for a failure."""


class Clock:
    """The time a run may take."""

    def __init__(self, max_seconds: float | None, started: float | None = None):
        self.started = time.monotonic() if started is None else started
        self.max_seconds = max_seconds
        self._last_tick: float | None = None
        self._longest = 0.0

    @property
    def left(self) -> float:
        """Seconds left; infinite without a limit."""
        if self.max_seconds is None:
            return float("inf")
        return self.max_seconds - (time.monotonic() - self.started)

    def start_fleet(self) -> None:
        """Forget the rhythm of the fleet before."""
        self._last_tick, self._longest = None, 0.0

    def tick(self) -> None:
        """Called as training goes on: stop if the next piece would end too late."""
        now = time.monotonic()
        if self._last_tick is not None:
            self._longest = max(self._longest, now - self._last_tick)
        self._last_tick = now
        if self.left < self._longest:
            raise StopRun


@dataclass(frozen=True)
class Running:
    """A fleet that is being trained."""

    fleet: FleetOfCells
    resumed: bool  # from a checkpoint: its time says little about that of a whole fleet
    started: float

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self.started


class Planner:
    """Claims fleets of the right size from a store."""

    def __init__(
        self,
        store: Store,
        checkpoints: Path,
        device: str,
        clock: Clock,
        max_fleet: int | None = None,
    ):
        self.store, self.checkpoints, self.clock = store, checkpoints, clock
        self._device, self._max_fleet = device, max_fleet
        self._name = device_name(device)
        self._claimed_any = False
        self._guesses: dict[str, Cost] = {}

    def next(self) -> FleetOfCells | None:
        """The next fleet; None where nothing is left that can be done in time."""
        if self.clock.left <= 0:
            return None
        fleet = self._interrupted() or self._fresh()
        self._claimed_any |= fleet is not None
        return fleet

    def _interrupted(self) -> FleetOfCells | None:
        for file in sorted(self.checkpoints.glob("[!.]*.safetensors*")):
            name = file.name.split(".")[0]
            fleet = self.store.claim_fleet(name)
            if fleet is not None:
                return fleet
            if self.store.is_finished(name):  # killed just before it would have tidied up
                self._forget(name)
        return None

    def _fresh(self) -> FleetOfCells | None:
        for kind, waiting in self.store.pending().items():
            size = self._size(self.cost(kind))
            if size is None:
                continue
            even = ceil(waiting / ceil(waiting / size))  # 180 in fleets of 50: four of 45
            fleet = self.store.claim(kind, even)
            if fleet is not None:
                return fleet
        return None

    def cost(self, kind: str) -> Cost:
        """What a cell of this kind costs here."""
        if kind not in self._guesses:
            self._guesses[kind] = guess_cost(self.store.example(kind), self._device)
        return learnt(self._guesses[kind], self.store.speeds(kind, self._name))

    def _size(self, cost: Cost) -> int | None:
        """How many cells to take; None where not even one would be done in time."""
        left = self.clock.left
        if cost.resumable:
            if left < _WORTH_STARTING and self._claimed_any:
                return None
            return fleet_size(cost, self._device, FLEET_SECONDS, self._max_fleet)
        usable = left * _MARGIN[cost.measured]
        if cost.seconds > usable and self._claimed_any:
            return None
        wanted = FLEET_SECONDS if cost.measured else PROBE_SECONDS
        return fleet_size(cost, self._device, min(wanted, usable), self._max_fleet)

    def seconds_left(self, running: Iterable[FleetOfCells]) -> float:
        """An estimate of the work that runs and waits, in seconds of one worker."""
        cells = Counter(self.store.pending())
        for fleet in running:
            cells[fleet.cells[0].kind] += len(fleet.open)
        return sum(n * self.cost(kind).seconds for kind, n in cells.items())

    def checkpoint_of(self, fleet: FleetOfCells) -> Path:
        """Where a fleet writes its state."""
        return self.checkpoints / f"{fleet.id}.safetensors"

    def _has_checkpoint(self, fleet: FleetOfCells) -> bool:
        """Whether a fleet has written any; one that was split has several files."""
        return any(self.checkpoints.glob(f"{fleet.id}*"))

    def begin(self, fleet: FleetOfCells, display: Display) -> Running:
        """A fleet is about to be trained."""
        running = Running(fleet, self._has_checkpoint(fleet), time.monotonic())
        if running.resumed:
            display.resumed(fleet)
        return running

    def end(self, running: Running, *, trained: bool = True) -> None:
        """All results of a fleet are committed, or (not `trained`) that there are none."""
        if trained and not running.resumed:
            self._record(running, whole=True)
        self._forget(running.fleet.id)

    def cut_off(self, running: Running) -> None:
        """The time ran out: another run goes on from the checkpoint, or with smaller fleets."""
        self.store.release([cell.id for cell in running.fleet.open])
        if not self._has_checkpoint(running.fleet):
            self._record(running, whole=False)

    def _forget(self, name: str) -> None:
        for pattern in (f"{name}*", f".{name}*"):  # a dot: half-written when its process died
            for file in self.checkpoints.glob(pattern):
                file.unlink(missing_ok=True)

    def _record(self, running: Running, *, whole: bool) -> None:
        cells = running.fleet.cells
        self.store.record_speed(cells[0].kind, self._name, len(cells), running.seconds, whole=whole)


@dataclass(frozen=True)
class Cost:
    """What one cell of a kind costs."""

    seconds: float
    bytes: float
    measured: bool
    resumable: bool


def guess_cost(cell: Cell, device: str) -> Cost:
    """The cost of a cell, and of all others of its kind, before any was seen."""
    estimator = estimator_of(cell.method, cell.task["kind"])
    rows = int(cell.task.get("n_train") or _DEFAULT_ROWS)
    throughput = _THROUGHPUT["cpu" if device == "cpu" else "cuda"]
    return Cost(
        seconds=max(1e-4, steps_of(estimator) * rows * estimator.step_cost / throughput),
        bytes=_bytes(estimator, rows),
        measured=False,
        resumable=estimator.resumable,
    )


def learnt(cost: Cost, fleets: list[tuple[int, float, bool]]) -> Cost:
    """The cost after some fleets: (cells, seconds, ran to its end).

    A fleet that was stopped says that its cells take longer; half as long again is assumed.
    """
    whole = [(cells, seconds) for cells, seconds, ended in fleets if ended]
    if whole:
        seconds = sum(s for _, s in whole) / sum(n for n, _ in whole)
        return replace(cost, seconds=max(seconds, 1e-6), measured=True)
    cut = [max(seconds / cells, 1e-6) for cells, seconds, ended in fleets if not ended]
    return replace(cost, seconds=1.5 * max(cut)) if cut else cost


def steps_of(estimator: Any) -> int:
    """Gradient steps of one fit, roughly."""
    params = estimator.get_params(deep=False)
    iterations, steps = params.get("max_iter"), params.get("steps")
    if params.get("schedule") == "fast":
        return int((iterations or 200) * (steps or 10) + 300)
    rounds = iterations or (50 if "max_iter" in params else 1)
    rounds = min(rounds, estimator.usual_rounds or rounds)
    return int(rounds * (steps or params.get("epochs") or 1000))


def _bytes(estimator: Any, rows: int) -> float:
    """Bytes that one network needs while it trains: rows of two splits, activations, gradients."""
    params = estimator.get_params(deep=False)  # what is not a network has neither
    widths = sum(params.get("hidden", ()))
    return rows * 4.0 * (3 * widths + 64) * int(params.get("n_members", 1))


def fleet_size(cost: Cost, device: str, seconds: float, limit: int | None) -> int:
    """How many cells to train at once, so that a fleet takes about `seconds` and fits.

    On a card small fleets waste most of it, so there are at least a dozen.
    """
    by_time = int(seconds / cost.seconds)
    if device != "cpu":
        by_time = max(12, by_time)
    by_memory = int(0.5 * free_memory(device) / cost.bytes)
    return max(1, min(by_time, by_memory, limit or 2048))
