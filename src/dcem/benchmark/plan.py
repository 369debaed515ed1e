"""What to train next: a fleet that was interrupted, else the next kind of cell that fits the time.

A planner is asked for one claim after the other. It never hands out work that would not end in time
unless that work can be checkpointed, or nothing else was done yet: a run always gets somewhere.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from math import ceil
from pathlib import Path

from dcem.benchmark.costs import Cost, fleet_size, guess, learnt
from dcem.benchmark.fleets import device_name
from dcem.benchmark.store import Claim, Store

FLEET_SECONDS = 120.0  # what a fleet should take: results come in, and little is lost
PROBE_SECONDS = 30.0  # of the first fleet of a kind, which shows what the kind really costs
_WORTH_STARTING = 20.0  # seconds left that a checkpointed fleet can use
_MARGIN = {True: 0.9, False: 0.6}  # of the time left to plan with: measured costs, guessed costs


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

    def next(self) -> Claim | None:
        """The next claim; None where nothing is left that can be done in time."""
        if self.clock.left <= 0:
            return None
        claim = self._interrupted() or self._fresh()
        self._claimed_any |= claim is not None
        return claim

    def _interrupted(self) -> Claim | None:
        for file in sorted(self.checkpoints.glob("[!.]*.safetensors*")):
            fleet = file.name.split(".")[0]
            claim = self.store.claim_fleet(fleet)
            if claim is not None:
                return claim
            if self.store.is_finished(fleet):  # killed just before it would have tidied up
                self._forget(fleet)
        return None

    def _fresh(self) -> Claim | None:
        for kind, waiting in self.store.pending().items():
            size = self._size(self.cost(kind))
            if size is None:
                continue
            even = ceil(waiting / ceil(waiting / size))  # 180 in fleets of 50: four of 45
            claim = self.store.claim(kind, even)
            if claim is not None:
                return claim
        return None

    def cost(self, kind: str) -> Cost:
        """What a cell of this kind costs here."""
        if kind not in self._guesses:
            self._guesses[kind] = guess(self.store.example(kind), self._device)
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

    def seconds_left(self, running: Iterable[Claim]) -> float:
        """An estimate of the work that runs and waits, in seconds of one worker."""
        cells = Counter(self.store.pending())
        for claim in running:
            cells[claim.cells[0].kind] += len(claim.open)
        return sum(n * self.cost(kind).seconds for kind, n in cells.items())

    def checkpoint_of(self, claim: Claim) -> Path:
        """Where a fleet writes its state."""
        return self.checkpoints / f"{claim.fleet}.safetensors"

    def has_checkpoint(self, claim: Claim) -> bool:
        """Whether a fleet has written any; one that was split has several files."""
        return any(self.checkpoints.glob(f"{claim.fleet}*"))

    def forget_checkpoint(self, claim: Claim) -> None:
        """Remove the checkpoints of a fleet whose results are all committed."""
        self._forget(claim.fleet)

    def _forget(self, fleet: str) -> None:
        for pattern in (f"{fleet}*", f".{fleet}*"):  # a dot: half-written when its process died
            for file in self.checkpoints.glob(pattern):
                file.unlink(missing_ok=True)

    def record(self, claim: Claim, seconds: float, *, whole: bool) -> None:
        """Remember the speed of a fleet that began afresh."""
        kind = claim.cells[0].kind
        self.store.record_speed(kind, self._name, len(claim.cells), seconds, whole=whole)
