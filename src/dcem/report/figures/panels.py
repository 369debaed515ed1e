"""Small multiples: one panel a method on common axes, with one key to the groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dcem.compare.results import Curve
from dcem.report.style import FAINT, INK, PLAIN, group_colour, new_figure

WIDTH = 9.6  # inches of a figure as wide as the page
LONGEST_NAME = 26  # letters of a group's name in a key


@contextmanager
def panels(
    titles: Sequence[str], height: float | None = None, **sharing: bool
) -> Iterator[tuple[Any, list[Any]]]:
    """A figure with a panel for each title, in rows of up to four, all drawn in one style.

    Without a height, panels have room for a square.
    """
    import matplotlib

    columns = len(titles) if len(titles) <= 4 else min(4, -(-len(titles) // 2))
    rows = -(-len(titles) // columns)
    with matplotlib.rc_context(PLAIN):
        width = min(WIDTH, 3.6 * columns)
        figure = new_figure(width, (height or width / columns + 0.4) * rows + 0.5)
        figure.get_layout_engine().set(wspace=0.05, hspace=0.06)
        grid = figure.subplots(rows, columns, squeeze=False, **sharing)
        axes = list(grid.flat)
        for ax in axes[len(titles) :]:
            ax.set_visible(False)
        axes = axes[: len(titles)]
        for ax, title in zip(axes, titles, strict=True):
            ax.set_title(title)
        yield figure, axes
        for place, ax in enumerate(axes):  # labels of shared axes stand on the outside only
            if place + columns < len(titles):
                ax.set_xlabel("")
            else:
                ax.tick_params(labelbottom=True)
            if place % columns:
                ax.set_ylabel("")


def group_line(code: int) -> dict[str, Any]:
    """How the line of a group is drawn: six colours, then the same six with other dashes."""
    dashes = ["-", (0, (4, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1, 1.5))]
    return {"color": group_colour(code), "ls": dashes[code // 6 % len(dashes)]}


def key_of_groups(
    figure: Any, names: Sequence[str], drawn: Collection[str], extra: Sequence[Any] = ()
) -> None:
    """Which colour is which group, under the panels, for the groups that are drawn."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], **group_line(code), lw=2.2, label=shortened(name))
        for code, name in enumerate(names)
        if name in drawn
    ]
    entries = [*handles, *extra]
    longest = max((len(entry.get_label()) for entry in entries), default=0)
    columns = max(1, int(11.5 * figure.get_figwidth() / (longest + 7)))  # letters an inch
    rows = -(-len(entries) // columns)
    figure.set_figheight(figure.get_figheight() + 0.22 * (rows - 1))
    figure.legend(
        handles=entries, loc="outside lower left", ncols=columns, fontsize=9.5, handlelength=1.9,
        columnspacing=1.4,
    )  # fmt: skip


def left_out(names: Sequence[str], drawn: Collection[str]) -> str:
    """A sentence on the groups that a figure does not show; small groups must not just vanish."""
    missing = [name for name in names if name not in drawn]
    return f" Not drawn, since there are too few people: {', '.join(missing)}." if missing else ""


def shortened(name: str) -> str:
    """A name that fits into a key; one that begins with an underscore would be left out of it."""
    name = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    return f"\N{HAIR SPACE}{name}" if name.startswith("_") else name


def diagonal(ax: Any, end: float = 1.0) -> None:
    """The line of equality."""
    ax.plot([0, end], [0, end], color=FAINT, lw=1, ls=(0, (4, 3)), zorder=0)


def unit_axes(ax: Any) -> None:
    """Both axes from 0 to 1 with few marks."""
    ax.set(xlim=(0, 1), ylim=(0, 1.005), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1], aspect="equal")
    ax.set_xticklabels(["0", ".5", "1"])
    ax.set_yticklabels(["0", ".5", "1"])


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


def dashed(label: str, colour: str = INK) -> Any:
    """An entry of a key for a dashed line."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, lw=1.2, ls=(0, (4, 3)), label=label)


def thinned(curve: Curve, points: int = 160) -> Curve:
    """Evenly spaced along its length: what an eye can tell apart, whatever the number of rows."""
    length = curve.fpr + curve.tpr  # both rise, so this does
    even = np.linspace(length[0], length[-1], points)
    return Curve(np.interp(even, length, curve.fpr), np.interp(even, length, curve.tpr))
