"""What pictures share: panels on common axes, the looks of groups with one key, marks of axes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from dcem.audit.results import Audit
from dcem.compare.results import Curve, TableComparison
from dcem.report.style import COLOURS, FAINT, FOUND, INK, group_colour, new_figure, tell

WIDTH = 9.6  # inches of a figure as wide as the page
LONGEST_NAME = 26  # letters of a group's name in a key
MOST_GROUPS = 8  # lines that an eye can tell apart; the largest groups are drawn
DASHED = (0, (4, 3))


def side_by_side(
    titles: Sequence[str], xlabel: str, ylabel: str, height: float | None = None
) -> tuple[Any, list[Any]]:
    """A figure with a panel for each title on common axes, in rows of up to four.

    Without a height, panels have room for a square. Labels stand on the outside only.
    """
    columns = len(titles) if len(titles) <= 4 else min(4, -(-len(titles) // 2))
    rows = -(-len(titles) // columns)
    width = 7.2 if len(titles) == 1 and height else min(WIDTH, 3.6 * columns)
    figure = new_figure(width, (height or width / columns + 0.4) * rows + 0.5)
    figure.get_layout_engine().set(wspace=0.05, hspace=0.06)
    axes = list(figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat)
    for place, ax in enumerate(axes):
        if place >= len(titles):
            ax.set_visible(False)
            continue
        ax.set_title(titles[place])
        if place + columns >= len(titles):
            ax.set_xlabel(xlabel)
            ax.tick_params(labelbottom=True)
        if place % columns == 0:
            ax.set_ylabel(ylabel)
    return figure, axes[: len(titles)]


class GroupStyles:
    """The groups of a result, each with the colour and dashes that it has on every page."""

    def __init__(self, found: Audit | TableComparison) -> None:
        if isinstance(found, Audit):
            known = [(one.group, one.rows, i) for i, one in enumerate(found.counts)]
        else:
            groups = enumerate(found.groups)
            known = [(g.name, g.people, i if g.place is None else g.place) for i, g in groups]
        self.names = [name for name, *_ in known]
        largest = sorted(known, key=lambda one: -one[1])[:MOST_GROUPS]
        self.look = {one[0]: group_line(one[2]) for one in known if one in largest}

    def key(self, figure: Any, drawn: Collection[str], extra: Sequence[Any] = ()) -> None:
        """Which colour is which group, under the panels, for the groups that are drawn."""
        looks = {name: look for name, look in self.look.items() if name in drawn}
        entries = [line(shortened(name), lw=2.2, **look) for name, look in looks.items()]
        key([*entries, *extra], figure)

    def left_out(self, drawn: Collection[str]) -> str:
        """A sentence on the groups that a figure does not show: small ones must not just vanish."""
        missing = [name for name in self.look if name not in drawn]
        more = len(self.names) > MOST_GROUPS
        return (
            f" The {MOST_GROUPS} largest of {len(self.names)} groups are drawn." * more
            + f" Not drawn, because of too few people: {', '.join(missing)}." * bool(missing)
        )


def group_line(code: int) -> dict[str, Any]:
    """How the line of a group is drawn: eight colours, then the same with other dashes."""
    dashes = ["-", (0, (4, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1, 1.5))]
    return {"color": group_colour(code), "ls": dashes[code // COLOURS % len(dashes)]}


def line(label: str, **look: Any) -> Any:
    """An entry of a key."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **look)


def key(entries: Sequence[Any], figure: Any) -> None:
    """The entries under a figure, in as many columns as there is room for."""
    longest = max((len(entry.get_label()) for entry in entries), default=0)
    columns = max(1, int(11.5 * figure.get_figwidth() / (longest + 7)))  # letters an inch
    rows = -(-len(entries) // columns)
    figure.set_figheight(figure.get_figheight() + 0.22 * (rows - 1))
    figure.legend(
        handles=entries, loc="outside lower left", ncols=columns, fontsize=9.5, handlelength=1.9,
        columnspacing=1.4,
    )  # fmt: skip


def shortened(name: str) -> str:
    """A name that fits into a key; one that begins with an underscore would be left out of it."""
    name = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    return f"\N{HAIR SPACE}{name}" if name.startswith("_") else name


def diagonal(ax: Any, end: float = 1.0) -> None:
    """The line of equality."""
    ax.plot([0, end], [0, end], color=FAINT, lw=1, ls=DASHED, zorder=0)


def hover(ax: Any, x: Iterable[float], y: Iterable[float], texts: Sequence[str]) -> None:
    """Words that a page shows where a pointer rests on a line; call it when the limits are set."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    inside = [left <= a <= right and bottom <= b <= top for a, b in zip(x, y, strict=True)]
    kept = [(a, b, t) for a, b, t, is_in in zip(x, y, texts, inside, strict=True) if is_in]
    if kept:
        places = [a for a, *_ in kept], [b for _, b, _ in kept]
        (marks,) = ax.plot(*places, ls="none", marker="o", ms=FOUND, mew=0, color=INK, alpha=0)
        tell(marks, [text for *_, text in kept])


def named_rows(ax: Any, names: Sequence[str]) -> None:
    """A name for each row, the first on top, and lines to read along."""
    ax.set_yticks(range(len(names)), [shortened(name) for name in names][::-1], color=INK)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.grid(axis="x")


def log_marks(ax: Any, marks: Sequence[float], low: float, high: float) -> None:
    """A logarithmic axis with these marks alone, and lines to read along."""
    ax.set_xscale("log")
    ax.set_xticks(marks, [f"{mark:g}" for mark in marks])
    ax.set_xticks([], minor=True)
    ax.set_xlim(low, high)
    ax.grid(axis="y")


def share_marks(*axes: Any) -> None:
    """Marks in per cent."""
    for axis in axes:
        axis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %" if value else "0")


def plain_marks(*axes: Any) -> None:
    """Few marks at round numbers, written as in the text: .05, not 0.050."""
    from matplotlib.ticker import MaxNLocator

    for axis in axes:
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(lambda value, _: f"{value:.3g}".replace("0.", ".", 1))


def thinned(curve: Curve) -> Curve:
    """Evenly spaced along its length: what an eye can tell apart, whatever the number of rows."""
    length = curve.fpr + curve.tpr  # both rise, so this does
    even = np.linspace(length[0], length[-1], 100)
    return Curve(np.interp(even, length, curve.fpr), np.interp(even, length, curve.tpr))
