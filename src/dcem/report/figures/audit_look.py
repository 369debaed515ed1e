"""What the figures of an audit share: which groups are drawn, in which colour, on which axes."""

from __future__ import annotations

from typing import Any

from dcem.audit.results import Audit
from dcem.report.style import group_colour

MOST_GROUPS = 6  # as many as there are colours; the largest groups are drawn


def colours_of(audit: Audit) -> dict[str, str]:
    """The largest groups, each with its colour."""
    largest = sorted(audit.counts, key=lambda item: -item.rows)[:MOST_GROUPS]
    drawn = [item.group for item in audit.counts if item in largest]
    return {name: group_colour(number) for number, name in enumerate(drawn)}


def left_out(audit: Audit) -> str:
    """A sentence about groups that are not drawn, or nothing."""
    more = len(audit.counts) - MOST_GROUPS
    return (
        f" The {MOST_GROUPS} largest of {len(audit.counts)} groups are drawn." if more > 0 else ""
    )


def percent_axis(axis: Any) -> None:
    """Shares written in per cent."""
    axis.set_major_formatter(lambda value, _: f"{100 * value:g} %")


def legend_outside(figure: Any, ax: Any) -> None:
    """The key beside the picture, where it covers no line."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=9.5)
