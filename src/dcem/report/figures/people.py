"""Who is tested: at equal risk, and at all; and what a method believes of those who were not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dcem.audit.results import RiskCurve
from dcem.compare.results import History, MethodResult, TableComparison, TestingByScore
from dcem.estimation.results import Histogram
from dcem.report.figures.panels import DASHED, Groups, panels, plain_marks, share_marks
from dcem.report.style import (
    ACCENT,
    GRID,
    INK,
    MUTED,
    WARN,
    Drawing,
    in_style,
    new_figure,
    tell,
)
from dcem.text import number, percent


@in_style
def tested_by_risk(
    lines: Mapping[str, tuple[np.ndarray, RiskCurve | TestingByScore]],
    groups: Groups,
    name: str,
    title: str,
    whose: str,
    caption: str,
) -> Drawing | None:
    """The share tested against predicted risk, a line for each group.

    `lines` are the risk [bins] and who was tested at it, by group; `whose` prediction it is.
    """
    shown = {n: line for n, line in lines.items() if n in groups.look or len(groups.names) == 1}
    if not shown:
        return None
    figure = new_figure(8.2, 4.2)
    ax = figure.subplots()
    for group, (risk, line) in shown.items():
        look = groups.look[group] if len(groups.names) > 1 else {"color": ACCENT}
        faint = 0.16 if len(shown) <= 3 else 0.08
        ax.fill_between(risk, line.low, line.high, color=look["color"], alpha=faint, lw=0)
        (drawn,) = ax.plot(risk, line.tested, marker="o", lw=2, ms=4.5, **look)
        points = zip(risk, line.tested, strict=True)
        tell(drawn, [f"{group}: {percent(t)} tested at a risk of {percent(r)}" for r, t in points])
    ax.set(xlabel=f"risk that {whose}", ylabel="share tested")
    ax.set_ylim(bottom=0)
    share_marks(ax.xaxis, ax.yaxis)
    ax.grid(axis="y")
    if len(groups.names) > 1:
        groups.key(figure, shown)
    ends = "; ".join(
        f"{group}: from {percent(line.tested[0])} tested at a risk of {percent(risk[0])} to "
        f"{percent(line.tested[-1])} at {percent(risk[-1])}"
        for group, (risk, line) in shown.items()
    )
    said = f"Share tested by predicted risk. {ends}."
    return Drawing(figure, name, title, said, caption + groups.left_out(shown))


def who_is_tested(comparison: TableComparison, method: MethodResult) -> Drawing | None:
    """The share tested against the risk that a method predicts."""
    return tested_by_risk(
        {g: (one.score, one) for g, one in method.testing_by_score.items() if len(one.score) > 1},
        Groups(comparison),
        f"testing-{method.name}",
        f"Who is tested at equal risk, by {method.name}",
        f"{method.name} predicts",
        "If testing followed risk alone, the groups' lines would lie on each other. A distance at "
        "equal predicted risk is only as good as the prediction, which was learnt from the tested. "
        "Shaded: intervals.",
    )


@in_style
def overlap(comparison: TableComparison) -> Drawing:
    """The estimated probability of being tested, group by group."""
    shown, groups = comparison.overlap, Groups(comparison)
    figure, (ax,) = panels([""], "estimated probability of being tested", "share of the group", 2.9)
    drawn = _stairs(ax, comparison.probability, groups)
    groups.key(figure, drawn)
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
        "left hardly anybody was." + groups.left_out(drawn),
    )


@in_style
def pseudo_labels(comparison: TableComparison) -> Drawing | None:
    """What methods that fill in labels believe of the untested, group by group."""
    methods = {m.name: m.pseudo_labels for m in comparison.methods if m.pseudo_labels is not None}
    if not methods:
        return None
    groups = Groups(comparison)
    labels = ("label filled in for the untested", "share of the untested")
    figure, axes = panels(list(methods), *labels, 2.6)
    drawn = set().union(
        *(_stairs(ax, shares, groups) for ax, shares in zip(axes, methods.values(), strict=True))
    )
    groups.key(figure, drawn)
    return Drawing(
        figure,
        "pseudo-labels",
        "What is believed of the untested",
        "Distribution of the labels filled in for the untested. "
        + " ".join(
            f"{method}, {name}: most often {_fullest(histogram, name)}."
            for method, histogram in methods.items()
            for name in groups.look
            if name in drawn
        ),
        "A method that fills in missing labels gives every untested person a probability. Much "
        "mass near 0 means that it believes the untested to be negative, as taking the table at "
        "its word does. Bins of fewer than ten people are shown as empty." + groups.left_out(drawn),
    )


@in_style
def em_history(name: str, history: History) -> Drawing:
    """The losses of an EM fit by iteration, with the iteration that was kept."""
    figure = new_figure(7.2, 2.9)
    ax = figure.subplots()
    for (split, loss), colour in zip(history.loss.items(), (INK, ACCENT, MUTED), strict=False):
        steps = np.arange(1, len(loss) + 1)
        marker = "o" if len(loss) <= 60 else None
        (drawn,) = ax.plot(steps, loss, color=colour, lw=1.8, marker=marker, ms=3, label=split)
        if marker:
            told = zip(steps, loss, strict=True)
            tell(drawn, [f"{split}: {number(value)} at iteration {step}" for step, value in told])
    figure.legend(loc="outside lower left", labelcolor="linecolor", ncols=3, fontsize=9.5)
    ax.axvline(history.kept, color=WARN, lw=1.2, ls=DASHED)
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


def _stairs(ax: Any, histogram: Histogram, groups: Groups) -> set[str]:
    """Draw the groups of whom most people are in bins that may be shown; which ones these are."""
    drawn = {name for name in groups.look if histogram.share.get(name, np.zeros(1)).sum() > 0.6}
    for name in groups.look:
        if name in drawn:
            ax.stairs(histogram.share[name], histogram.edges, **groups.look[name], lw=1.7)
    ax.set_xlim(0, 1)
    ax.grid(axis="y", color=GRID)
    plain_marks(ax.xaxis)
    share_marks(ax.yaxis)
    return drawn


def _fullest(histogram: Histogram, name: str) -> str:
    place = int(np.argmax(histogram.share[name]))
    low, high = histogram.edges[place : place + 2]
    return f"{number(float(low), 2)} to {number(float(high), 2)}"
