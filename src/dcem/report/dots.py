"""A picture that is a table: points with intervals on common axes, for a page and a terminal.

Names wrap, twenty groups are twenty rows, and a reader who cannot see it hears a table of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import floor, isfinite, log10
from typing import NamedTuple

from dcem import text
from dcem.report import document as doc


class Axis(NamedTuple):
    """The stretch of numbers that a column shows, with round marks on it."""

    low: float
    high: float
    ticks: tuple[float, ...]
    form: str

    def place(self, value: float) -> float:
        """Where a value lies, from 0 to 1; beyond the ends, at the end."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def label(self, tick: float) -> str:
        """A mark in as few digits as it needs."""
        step = self.ticks[1] - self.ticks[0]
        if self.form in ("percent", "points"):
            return f"{text.decimal(100 * tick, _digits(100 * step))} %"
        return text.number(tick, _digits(step)) if tick else "0"


def _digits(step: float) -> int:
    return max(0, -floor(log10(step) + 1e-9))


def axis_of(cells: Sequence[doc.Cell]) -> Axis | None:
    """An axis that holds every number with its interval; None if there is none."""
    numbers = [cell for cell in cells if isinstance(cell, doc.Number)]
    if not numbers:
        return None
    ends = [v for n in numbers for v in (n.estimate.value, n.estimate.low, n.estimate.high)]
    ends = [end for end in ends if isfinite(end)]  # no interval is NaN; one may have no end
    low, high = min(ends), max(ends)
    if 0 < low < (high - low) / 2:  # near enough to show the distance from nothing
        low = 0.0
    span = (high - low) or abs(high) or 1.0
    rough = span / 4
    magnitude = 10.0 ** floor(log10(rough))
    step = magnitude * next(m for m in (1, 2, 5, 10) if m * magnitude >= rough)
    first, last = floor(low / step + 1e-9), -floor(-high / step + 1e-9)
    last = max(last, first + 1)
    ticks = tuple(round(step * i, 10) for i in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks, numbers[0].form)


def axes_of(dots: doc.Dots) -> list[Axis | None]:
    """One axis for each column: its own, or that of all; None where it holds no number."""
    columns = [
        [c for row in dots.rows for c in (*row.values[i : i + 1], *row.references[i : i + 1])]
        for i in range(len(dots.columns))
    ]
    if dots.one_axis:
        common = axis_of([cell for column in columns for cell in column])
        return [common if axis_of(column) else None for column in columns]
    return [axis_of(column) for column in columns]


def dots_table(dots: doc.Dots, cell: Callable[[doc.Cell], str], prose: Callable[[str], str]) -> str:
    """The dots as an HTML table whose cells hold a strip with a point, and the number."""
    axes = axes_of(dots)
    key = (
        f'<p class="key"><span class="mark hollow" aria-hidden="true"></span> '
        f"{prose(dots.reference)}</p>"
        if dots.compared
        else ""
    )
    head = "".join(f'<th scope="col">{prose(column)}</th>' for column in dots.columns)
    many = len(dots.columns) > 2  # too many for a phone: they scroll
    # others stand under each other there, and each cell names its column
    names = [
        f' data-column="{escape(column.replace("`", ""))}"' * (not many) for column in dots.columns
    ]
    rows = []
    for row in dots.rows:
        entries = "".join(
            f"<td{names[i]}>"
            f"{_strip(axes[i], value, row.references[i : i + 1], row.colour)}"
            f'<span class="{"number" if axes[i] else "told"}">{cell(value)}'
            f"{_compared(row.references[i : i + 1], cell)}</span></td>"
            for i, value in enumerate(row.values)
        )
        kind = ' class="marked"' if row.marked else ""
        rows.append(f'<tr{kind}><th scope="row">{cell(row.label)}</th>{entries}</tr>')
    label = escape(dots.title.replace("`", ""))
    said = f"{dots.caption} Shaded: {dots.marked}." if dots.marked else dots.caption
    scales = "".join(
        f"<td{name}>{_scale(axis)}</td>" for name, axis in zip(names, axes, strict=True)
    )
    return (
        f'<figure class="dots">\n<p class="caption">{prose(dots.title)}</p>{key}\n'
        f'<div class="wide" role="group" tabindex="0" aria-label="{label}">\n'
        f'<table class="dots{" many" * many}">\n<thead><tr><th></th>{head}</tr></thead>\n'
        f"<tbody>\n{chr(10).join(rows)}\n</tbody>\n"
        f'<tfoot aria-hidden="true"><tr><td></td>{scales}</tr></tfoot>\n</table>\n</div>\n'
        f"<figcaption>{prose(said)}</figcaption>\n</figure>"
    )


def _compared(references: Sequence[doc.Cell], cell: Callable[[doc.Cell], str]) -> str:
    """What the hollow mark stands at."""
    shown = [cell(reference) for reference in references if isinstance(reference, doc.Number)]
    return "".join(f' <span class="interval">○ {text}</span>' for text in shown)


def _strip(axis: Axis | None, value: doc.Cell, references: Sequence[doc.Cell], colour: str) -> str:
    if axis is None:
        return ""
    if not isinstance(value, doc.Number):
        return '<span class="strip" aria-hidden="true"></span>'
    found = value.estimate
    marks = []
    if found.low == found.low:
        left, right = axis.place(found.low), axis.place(found.high)
        marks.append(f'<i class="range" style="left:{_at(left)};width:{_at(right - left)}"></i>')
    for reference in references:
        if isinstance(reference, doc.Number):
            place = axis.place(reference.estimate.value)
            marks.append(f'<i class="mark hollow" style="left:{_at(place)}"></i>')
    marks.append(f'<i class="mark" style="left:{_at(axis.place(found.value))}"></i>')
    gaps = len(axis.ticks) - 1  # even ones, whose lines the style sheet draws
    return (
        f'<span class="strip" aria-hidden="true" '
        f'style="--gaps:{gaps};color:var(--{colour})">{"".join(marks)}</span>'
    )


def _scale(axis: Axis | None) -> str:
    if axis is None:
        return ""
    gaps = len(axis.ticks) - 1
    most = 2 if axis.form in ("percent", "points") else 3  # as many as there is room for
    step = next(step for step in range(1, gaps + 1) if gaps % step == 0 and gaps // step <= most)
    ticks = axis.ticks[::step]  # the first and the last among them
    marks = "".join(
        f'<span style="left:{_at(axis.place(tick))}">{escape(axis.label(tick))}</span>'
        for tick in ticks
    )
    return f'<span class="strip scale">{marks}</span><span class="number"></span>'


def _at(place: float) -> str:
    return f"{round(100 * place, 1):g}%"


def line_of(
    axis: Axis | None, value: doc.Cell, references: Sequence[doc.Cell], width: int = 24
) -> str:
    """A point with its interval in characters, for a terminal: `     ├──●──┤  ○    `."""
    if axis is None or not isinstance(value, doc.Number):
        return " " * width
    row = [" "] * width

    def column(number: float) -> int:
        return round(axis.place(number) * (width - 1))

    found = value.estimate
    if found.low == found.low:
        left, right = column(found.low), column(found.high)
        row[left : right + 1] = "─" * (right - left + 1)
    for reference in references:
        if isinstance(reference, doc.Number):
            row[column(reference.estimate.value)] = "○"
    row[column(found.value)] = "●"
    return "".join(row)
