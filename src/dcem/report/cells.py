"""Cells as all writers show them: the same number in every output."""

from __future__ import annotations

from typing import NamedTuple

from dcem import text
from dcem.metrics.estimate import Estimate
from dcem.report.document import Cell, Code, Count, Missing, Name, Number, estimate


class Written(NamedTuple):
    """A cell in pieces, for a writer to set in type."""

    main: str
    quiet: str = ""  # its interval or share: smaller, beside it
    beside: str = ""  # a remark under it
    absent: bool = False  # whether this says why a number is missing


def written(cell: Cell) -> Written:
    """A cell as text, in pieces."""
    if isinstance(cell, str):
        return Written(cell)
    if isinstance(cell, Number):
        found = cell.estimate
        interval = text.interval(found.low, found.high, cell.form)
        return Written(text.value(found.value, cell.form), interval, cell.beside)
    if isinstance(cell, Count):
        share = f"({text.percent(cell.value / cell.of)})" if cell.of else ""
        return Written(text.count(cell.value), share)
    if isinstance(cell, Missing):
        return Written(f"{cell.what}: {cell.reason}" if cell.reason else cell.what, absent=True)
    if isinstance(cell, Name):
        return Written(cell.name)
    assert isinstance(cell, Code)
    return Written(cell.name, cell.tag)


def plain(cell: Cell) -> str:
    """A cell on one line: `.787 [.768, .823]`."""
    shown = written(cell)
    line = " ".join(piece for piece in (shown.main, shown.quiet) if piece)
    return f"{line}; {shown.beside}" if shown.beside else line


def said(found: Estimate | float, form: str = "score") -> str:
    """An estimate inside a sentence: `.787 [.768, .823]`, or why there is none."""
    return plain(estimate(found, form))
