"""Progress of long work, with an estimate of what is left, on a terminal and off it.

On a terminal it is a line that changes; off one (a log, a pipe) a line now and then. Where the
environment variable DCEM_PROGRESS names a file, each step is a line of JSON in it, too: `doing`;
`share`, the part of the work that is done, and `left`, the seconds that the rest will take, or null
where nobody can tell.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any

from dcem.text import remaining

PLACE = "DCEM_PROGRESS"
LEAST = 0.015  # of the work must be done before the rest is estimated
TRUSTED = 0.1  # of a series, after which its own pace counts as much as that before it
EVERY = 10.0  # seconds between two lines off a terminal; six times as long if they say the same


class Progress:
    """Told what is being done, says it with what is left.

    `steps` gives every step that will be told its part of the work, in their order; a step that is
    not among them is told without an estimate. Within a step the work is taken to go on as fast as
    before, up to where the next one begins. Steps that count ("fitting, 3 of 40") make a series:
    its own pace, the more of it is done the more, tells what is left of it.
    """

    def __init__(
        self,
        steps: Mapping[str, float],
        console: Any,
        status: Any,
        clock: Callable[[], float] = time.perf_counter,
        say: Callable[[str], str] = str,
    ) -> None:
        self.console, self.status, self.clock, self.say = console, status, clock, say
        self.begun, self.said = clock(), -inf
        self.doing, self.until, self.told = "", 0.0, 0.0
        self.last = ""  # the step that was said last
        self.share: float | None = None
        self.series, self.entered = "", 0.0  # the series of steps, and when it began
        total, done = sum(steps.values()) or 1.0, 0.0
        self.parts: dict[str, tuple[float, float]] = {}
        for name, part in steps.items():
            self.parts[name] = done / total, (done + part) / total
            done += part
        self.bounds: dict[str, tuple[float, float]] = {}  # of each series
        for name, (begins, ends) in self.parts.items():
            self.bounds[_series(name)] = self.bounds.get(_series(name), (begins, ends))[0], ends

    def __call__(self, doing: str) -> None:
        """Say what is being done now."""
        self._set(doing, *self.parts.get(doing, (None, 0.0)))

    def counted(self, doing: str, done: int, total: int) -> None:
        """Say how much of it is done; what begins anew has no end that anybody could tell."""
        begins, ends = self.parts.get(doing, (0.0, 1.0))
        share = begins + (ends - begins) * done / total
        known = self.share is not None or not self.doing
        self._set(doing, share if known and share >= (self.share or 0.0) else None, share)

    def left(self) -> float | None:
        """Seconds until all is done, about; None where too little is done to tell."""
        if self.share is None or self.share < LEAST:
            return None
        passed = self.clock() - self.begun
        whole = max(self.told, 1e-9) / self.share  # seconds of all the work, at the pace so far
        share = min(self.share + (passed - self.told) / whole, self.until)
        begins, ends = self.bounds.get(self.series, (0.0, 1.0))
        entered, before = (self.entered, self.entered / begins) if begins else (0, passed / share)
        counts = TRUSTED * (ends - begins)  # as if so much had been done at the pace before
        own = (passed - entered + counts * before) / max(share - begins + counts, 1e-9)
        return own * (ends - share) + passed / share * (1 - ends)

    def tick(self) -> None:
        """Say again what is being done, if it is time to."""
        passed, left = self.clock() - self.begun, remaining(self.left())
        doing = self.say(self.doing)
        self.status.update(f"{doing} ... ({passed:.0f} s{left})")
        if passed - self.said >= (EVERY if left or self.doing != self.last else 6 * EVERY):
            self.last = self.doing
            self.said = passed
            write_step(doing, self.share, self.left())
            if not self.console.is_terminal:
                line = f"  {passed:4.0f} s  {doing}{left}"
                self.console.print(line, markup=False, soft_wrap=True)

    def _set(self, doing: str, share: float | None, until: float) -> None:
        self.doing, self.share, self.until = doing, share, until
        self.told = self.clock() - self.begun
        if (series := _series(doing)) != self.series:
            self.series, self.entered = series, self.told
        write_step(self.say(doing), share, self.left())
        self.tick()


def _series(doing: str) -> str:
    """What a step that counts has in common with the others of its series."""
    return re.sub(r", (part )?\d+ of \d+$", "", doing)


def write_step(doing: str, share: float | None = None, left: float | None = None) -> None:
    """Write a step to the file for programs that wait, if there is one."""
    if place := os.environ.get(PLACE):
        with open(place, "a", encoding="utf-8") as file:
            file.write(json.dumps({"doing": doing, "share": share, "left": left}) + "\n")


def counting(status: Any) -> Callable[[int], None]:
    """Progress of work on rows, however many there will be."""

    def tell(rows: int) -> None:
        status.update(f"{rows:,} rows ...")
        write_step(f"{rows:,} rows")

    return tell


@contextmanager
def telling(
    steps: Mapping[str, float], console: Any, say: Callable[[str], str] = str
) -> Iterator[Progress]:
    """Show progress on `console` while the block runs; `say` puts it into the words of a field."""
    done = threading.Event()
    with console.status("starting ...") as status:
        progress = Progress(steps, console, status, say=say)

        def tick() -> None:
            while not done.wait(1.0):
                if progress.doing:
                    progress.tick()

        ticking = threading.Thread(target=tick, daemon=True)
        ticking.start()
        try:
            yield progress
        finally:
            done.set()
            ticking.join()
