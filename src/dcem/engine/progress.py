"""A progress display for long runs: how far, and how long it will still take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dcem.engine.fit import Progress


@contextmanager
def display(title: str, show: bool) -> Iterator[Progress | None]:
    """A callback `(done, total)` that draws a bar on standard error; None where `show` is off."""
    if not show:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
