"""What a person sees of a run: how far it is, what it is doing, and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from dcem.benchmark.cells import FleetOfCells
from dcem.text import remaining

_EVERY = 30.0  # seconds between lines without a terminal
_FRAME = 0.2  # and between changes of the bar where there is one


class Display:
    """A progress bar on a terminal, a line now and then elsewhere; silent without a console."""

    def __init__(self, console: Console | None = None):
        self._console = console
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._total = self._done = self._failed = 0
        self._doing = self._last_text = ""
        self._seconds_left: float | None = None
        self._estimated_at = self._last_line = self._last_shown = time.monotonic()

    @contextmanager
    def running(
        self, name: str, total: int, counts: dict[str, int], notes: list[str]
    ) -> Iterator[None]:
        """Show a run from its beginning to its end."""
        self._total, self._done = total, counts.get("done", 0)
        self._failed = counts.get("failed", 0)
        if self._console is None:
            yield
            return
        for note in notes:
            self._console.print(f"left out: {note}", soft_wrap=True, style="dim")
        if not self._console.is_terminal:
            self._line()
            yield
            self._line()
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[doing]}"),
        )
        with Progress(*columns, console=self._console) as self._bar:
            done = self._done
            self._task = self._bar.add_task(name, total=total, completed=done, doing="")
            yield
        self._bar = None

    def fleet(self, fleet: FleetOfCells, seconds_left: float) -> None:
        """A fleet begins; `seconds_left` estimates how long all that is left will take."""
        first, n = fleet.cells[0], len(fleet.open)
        self._doing = f"{first.method['name']} x {n}"
        self._seconds_left = seconds_left
        self._estimated_at = time.monotonic()
        if self._console is not None:
            self._show()

    def resumed(self, fleet: FleetOfCells) -> None:
        """The fleet that begins is not new."""
        if self._console is not None:
            text = (
                f"going on from a checkpoint: {fleet.cells[0].method['name']} x {len(fleet.open)}"
            )
            self._console.print(text, soft_wrap=True, highlight=False)

    def progress(self, done: int, total: int) -> None:
        """The current fleet got further."""
        if self._console is None:
            return
        now = time.monotonic()
        if now - self._last_shown > (_EVERY if self._bar is None else _FRAME):
            self._last_shown = now
            self._show(f" ({done}/{total})")

    def cell_done(self, *, failed: bool) -> None:
        """A cell was committed."""
        self._failed += failed
        self._done += not failed
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)

    def _show(self, detail: str = "") -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, doing=f"{self._doing}{detail}{self._left()}")
        elif time.monotonic() - self._last_line > 1:
            self._line(detail)

    def _line(self, detail: str = "") -> None:
        assert self._console is not None
        failed = f", {self._failed} failed" if self._failed else ""
        doing = f"; {self._doing}{detail}" if self._doing else ""
        text = f"{self._done} of {self._total} cells{failed}{doing}{self._left()}"
        if text != self._last_text:  # where nothing was left to do, the end is as the beginning
            self._console.print(text, soft_wrap=True, highlight=False)
        self._last_text = text
        self._last_line = self._last_shown = time.monotonic()

    def _left(self) -> str:
        if self._seconds_left is None or self._done >= self._total:
            return ""
        left = self._seconds_left - (time.monotonic() - self._estimated_at)
        return remaining(max(left, 1.0))
