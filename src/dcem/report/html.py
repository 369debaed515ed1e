"""A comparison on simulated people as one page."""

from __future__ import annotations

from collections.abc import Sequence

from dcem.compare.truth_results import Comparison
from dcem.report import tables, words
from dcem.report.figures.comparison import draw_all
from dcem.report.page import render_page
from dcem.report.style import Drawing


def render(comparison: Comparison, about_data: Sequence[Drawing] = ()) -> str:
    """The comparison as one HTML document; `about_data` are drawings of who is tested."""
    return render_page(
        "comparison.html",
        [*about_data, *draw_all(comparison).values()],
        comparison=comparison,
        conclusions=words.conclusions(comparison),
        columns=tables.COLUMNS,
        rows=tables.rows(comparison),
        interval_note=tables.interval_note(comparison),
        group_columns=tables.GROUP_COLUMNS,
        group_rows=tables.group_rows(comparison),
        about_data=[drawing.name for drawing in about_data],
    )
