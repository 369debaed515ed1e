"""Progress of long work, with an estimate of what is left, on a terminal and off it.

Off a terminal (a log, a notebook, a pipe) each step is a line; on one, a line that changes. Where
the environment variable DCEM_PROGRESS names a file, each step is a line of JSON in it, too:
`doing`, and `share`, the part of the work that is done, or null.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

PLACE = "DCEM_PROGRESS"
LEAST = 0.05  # of the work must be done before the rest is estimated


class Progress:
    """Told what is being done, says it with what is left.

    `steps` gives every step that will be told its part of the work, in their order; a step that is
    not among them is told without an estimate.
    """

    def __init__(self, steps: Mapping[str, float], console: Any, status: Any) -> None:
        self.console, self.status = console, status
        self.begun = time.perf_counter()
        total = sum(steps.values()) or 1.0
        self.before, done = {}, 0.0
        for name, part in steps.items():
            self.before[name] = done / total
            done += part

    def __call__(self, doing: str) -> None:
        """Say what is being done now."""
        passed = time.perf_counter() - self.begun
        share = self.before.get(doing)
        left = remaining(share or 0.0, passed)
        note(f"{doing}{left}", share)
        self.status.update(f"{doing} ... ({passed:.0f} s{left})")
        if not self.console.is_terminal:
            line = f"  {passed:4.0f} s  {doing}{left}"
            self.console.print(line, markup=False, soft_wrap=True)


def note(doing: str, share: float | None = None) -> None:
    """Write a step to the file for programs that wait, if there is one."""
    if place := os.environ.get(PLACE):
        with open(place, "a", encoding="utf-8") as file:
            file.write(json.dumps({"doing": doing, "share": share}) + "\n")


def counting(status: Any) -> Callable[[int], None]:
    """Progress of work on rows, however many there will be."""

    def tell(rows: int) -> None:
        status.update(f"{rows:,} rows ...")
        note(f"{rows:,} rows")

    return tell


def remaining(share: float, passed: float) -> str:
    """', about 2 minutes left', or nothing where too little is done to tell."""
    from dcem.text import duration

    if share < LEAST:
        return ""
    left = duration(passed * (1 - share) / share)
    return f", {left if left.startswith('under') else f'about {left}'} left"


@contextmanager
def telling(steps: Mapping[str, float], console: Any) -> Iterator[Progress]:
    """Show progress on `console` while the block runs."""
    with console.status("starting ...") as status:
        yield Progress(steps, console, status)
