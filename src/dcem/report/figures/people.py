"""Who is tested: at equal risk, and at all; and what a method believes of those who were not."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcem.compare.results import History, MethodResult, TableComparison
from dcem.estimation.results import Histogram
from dcem.report.figures.panels import (
    group_line,
    key_of_groups,
    left_out,
    panels,
    plain_marks,
    share_marks,
)
from dcem.report.style import (
    ACCENT,
    GRID,
    INK,
    MUTED,
    WARN,
    Drawing,
    group_colour,
    in_style,
    new_figure,
    tell,
)
from dcem.text import number, percent


def who_is_tested(comparison: TableComparison, method: MethodResult) -> Drawing | None:
    """The share tested against predicted risk, a line for each group."""
    lines = {name: line for name, line in method.testing_by_score.items() if len(line.score) > 1}
    if not lines:
        return None
    names = [group.name for group in comparison.groups]
    with panels([""], 3.4) as (figure, (ax,)):
        figure.set_figwidth(7.2)
        for name, line in lines.items():
            colour = group_colour(names.index(name))
            ax.fill_between(line.score, line.low, line.high, color=colour, alpha=0.16, lw=0)
            look = group_line(names.index(name))
            (drawn,) = ax.plot(line.score, line.tested, **look, lw=1.9, marker="o", ms=3.5)
            shares = zip(line.score, line.tested, strict=True)
            tell(
                drawn,
                [f"{name}: {percent(t)} tested at a risk of {number(s, 2)}" for s, t in shares],
            )
        ax.set(xlabel=f"risk predicted by {method.name}", ylabel="share tested")
        ax.set_ylim(bottom=0)
        ax.set_xlim(left=0)
        plain_marks(ax.xaxis)
        ax.grid(axis="y", color=GRID)
        share_marks(ax.yaxis)
        key_of_groups(figure, names, lines)
    ends = [
        f"{name}: from {percent(float(line.tested[0]))} at a risk of "
        f"{number(float(line.score[0]), 2)} to {percent(float(line.tested[-1]))} at "
        f"{number(float(line.score[-1]), 2)}."
        for name, line in lines.items()
    ]
    return Drawing(
        figure,
        f"testing-{method.name}",
        f"Who is tested at equal risk, by {method.name}",
        "Share tested against predicted risk. " + " ".join(ends),
        "If testing followed risk alone, the groups' lines would lie on each other. A distance at "
        "equal predicted risk is only as good as the prediction, which was learnt from the tested. "
        "Shaded: intervals." + left_out(names, lines),
    )


def overlap(comparison: TableComparison) -> Drawing | None:
    """The estimated probability of being tested, group by group."""
    shown = comparison.overlap
    if shown is None or comparison.probability is None:
        return None
    names = [group.name for group in comparison.groups]
    with panels([""], 2.9) as (figure, (ax,)):
        figure.set_figwidth(7.2)
        drawn = _stairs(ax, comparison.probability, names)
        ax.set(xlim=(0, 1), xlabel="estimated probability of being tested")
        ax.set_ylabel("share of the group")
        share_marks(ax.yaxis)
        key_of_groups(figure, names, drawn)
    said = (
        f"{percent(shown.reach)} of people are within reach of the tests; the effective sample "
        f"size of the weighted tests is {percent(shown.effective_share)} of their number."
    )
    return Drawing(
        figure,
        "overlap",
        "Could everybody have been tested?",
        said,
        f"{said} What is said of everybody rests on the tested in each region; far to the "
        "left hardly anybody was." + left_out(names, drawn),
    )


def pseudo_labels(comparison: TableComparison) -> Drawing | None:
    """What methods that fill in labels believe of the untested, group by group."""
    methods = {m.name: m.pseudo_labels for m in comparison.methods if m.pseudo_labels is not None}
    if not methods:
        return None
    names = [group.name for group in comparison.groups]
    drawn: set[str] = set()
    with panels(list(methods), 2.6, sharex=True, sharey=True) as (figure, axes):
        if len(axes) == 1:
            figure.set_figwidth(7.2)
        for ax, histogram in zip(axes, methods.values(), strict=True):
            drawn |= _stairs(ax, histogram, names)
            ax.set(xlim=(0, 1), xlabel="label filled in for the untested")
            ax.set_ylabel("share of the untested")
            share_marks(ax.yaxis)
        key_of_groups(figure, names, drawn)
    return Drawing(
        figure,
        "pseudo-labels",
        "What is believed of the untested",
        "Distribution of the labels filled in for the untested. "
        + " ".join(
            f"{method}, {name}: most often {_fullest(histogram, name)}."
            for method, histogram in methods.items()
            for name in names
            if name in drawn
        ),
        "A method that fills in missing labels gives every untested person a probability. Much "
        "mass near 0 means that it believes the untested to be negative, as taking the table at "
        "its word does. Bins of fewer than ten people are shown as empty." + left_out(names, drawn),
    )


@in_style
def em_history(name: str, history: History) -> Drawing:
    """The losses of an EM fit by iteration, with the iteration that was kept."""
    figure = new_figure(7.2, 2.9)
    ax = figure.subplots()
    for (split, loss), colour in zip(history.loss.items(), (INK, ACCENT, MUTED), strict=False):
        steps = np.arange(1, len(loss) + 1)
        marker = "o" if len(loss) <= 60 else None
        ax.plot(steps, loss, color=colour, lw=1.8, marker=marker, ms=3, label=split)
    figure.legend(loc="outside lower left", labelcolor="linecolor", ncols=3, fontsize=9.5)
    ax.axvline(history.kept, color=WARN, lw=1.2, ls=(0, (4, 3)))
    ax.set(xlabel="EM iteration", ylabel="loss")
    ax.margins(x=0.02)
    ax.grid(axis="y", color=GRID)
    ax.xaxis.get_major_locator().set_params(integer=True)
    return Drawing(
        figure,
        f"history-{name}",
        f"How {name} converged",
        f"{len(next(iter(history.loss.values())))} EM iterations; iteration {history.kept} was "
        f"kept. {history.termination}",
        f"Loss after each EM iteration, without any truth. {history.termination} The dashed line "
        f"marks the iteration that was kept.",
    )


def _stairs(ax: Any, histogram: Histogram, names: list[str]) -> set[str]:
    """Draw the groups of whom most people are in bins that may be shown; which ones these are."""
    shown = {name: share for name, share in histogram.share.items() if share.sum() > 0.6}
    for name, share in shown.items():
        ax.stairs(share, histogram.edges, **group_line(names.index(name)), lw=1.7)
    ax.grid(axis="y", color=GRID)
    plain_marks(ax.xaxis)
    return set(shown)


def _fullest(histogram: Histogram, name: str) -> str:
    place = int(np.argmax(histogram.share[name]))
    low, high = histogram.edges[place : place + 2]
    return f"{number(float(low), 2)} to {number(float(high), 2)}"
