"""The figures of points: each method at every decision boundary, published above ours.

Published points are hollow diamonds, ours filled circles; medians are bars, worst cases triangles.
Shapes tell the sides apart, colour only repeats it: the pictures survive a black-and-white printer.
Where ours are of artificial patients they are red, as the words across the panels: the published
points beside them are of real ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dcem.paper import published
from dcem.paper.drawing import Picture, heading, tick, watermark
from dcem.paper.published import BASELINES, METHOD_NAMES, METRIC_NAMES, METRICS, ORACLE, SELECTED
from dcem.paper.sources import Found
from dcem.paper.spread import (
    NOTHING,
    Spread,
    Spreads,
    comparison_table,
    other_parameters,
    our_rows,
    points_table,
    published_spreads,
    spreads_of,
)
from dcem.report.style import GRID, INK, MUTED, PAPER, WARN, group_colour, new_figure
from dcem.text import fraction, number

STAR = "* ours cut short"
LANE = 0.19  # how far the two sides of a method are from its middle
READING = (
    "Hollow diamonds: the paper. Filled circles: this package. Bar: median; triangle: worst case."
)
NO_POINTS = "The paper's points at this setting are not carried by the project."
ARTIFICIAL = (
    "Ours comes from artificial patients, made up to exercise the code: its numbers say nothing "
    "about sepsis and are not comparable with the published ones."
)


def simulation(
    found: Found, q_y: float, k: float, q_t: float, methods: Sequence[str] | None = None
) -> Picture:
    """ROC gap and AUC of every method at one setting of the simulation."""
    theirs = published_spreads(published.figures(), q_y=q_y, k=k, q_t=q_t)
    title = f"Simulation at q_y {fraction(q_y)}, k {fraction(k)}, q_t {fraction(q_t)}"
    return _points_picture(found, theirs, title, "phase", methods or (ORACLE, *BASELINES, "dcem"))


def sepsis(found: Found, k: float, q_t: float = 1.5) -> Picture:
    """ROC gap and AUC of every method at one setting of the sepsis task."""
    theirs = published_spreads(published.sepsis_figures(), k=k, q_t=q_t)
    title = f"Sepsis at k {fraction(k)}, q_t {fraction(q_t)}"
    return _points_picture(found, theirs, title, "beta", SELECTED)


def _points_picture(
    found: Found, theirs: Spreads, title: str, over: str, methods: Iterable[str]
) -> Picture:
    rows = our_rows(found.rows)
    ours = spreads_of(rows)
    present = {name for name, _ in (*theirs, *ours)}
    names = [name for name in METHOD_NAMES if name in methods and name in present]
    notes = list(found.notes)
    if not names:
        return Picture(None, {}, title, (*notes, NO_POINTS))
    if not theirs:
        notes.append(NO_POINTS)
    if found.artificial:
        notes.append(ARTIFICIAL)
    expected = 12 if over == "phase" else 11
    short = [name for name in names if 0 < len(ours.get((name, "auc"), NOTHING).values) < expected]
    absent = [name for name in names if (name, "auc") not in ours]
    if ours and absent:
        notes.append(f"Not recorded by us: {', '.join(METHOD_NAMES[name] for name in absent)}.")
    if short:
        few = ", ".join(METHOD_NAMES[name] for name in short)
        notes.append(f"Fewer than {expected} points of ours: {few}.")
    other = {name: text for name, text in other_parameters(rows).items() if name in names}
    if other:
        notes.append(cut_short(other))
    labels = METHOD_NAMES | {name: f"{METHOD_NAMES[name]} *" for name in other}
    figure = gap_and_auc(title, names, labels, theirs, ours, found)
    numbers = {
        "": comparison_table(theirs, ours, names).assign(
            ours_params=lambda frame: frame["method"].map(other)
        ),
        "points": points_table(rows, over, theirs, names),
    }
    each = "boundary s_Y" if over == "phase" else "testing policy s_T"
    return Picture(figure, numbers, f"{title}. Each point is one {each}. {READING}", tuple(notes))


def cut_short(other: Mapping[str, str]) -> str:
    """What a reader must know about methods (with their parameters) that carry a star."""
    names = ", ".join(METHOD_NAMES[name] for name in other)
    return f"* Ours not with the published training, but cut short: {names} (see ours_params)."


def gap_and_auc(
    title: str,
    names: Sequence[str],
    labels: Mapping[str, str],
    theirs: Spreads,
    ours: Spreads,
    found: Found,
    *,
    written: bool = False,
) -> Any:
    """Two panels, gap and AUC, one row per method with both sides; `written` adds the numbers."""
    figure = new_figure(9.6, 1.35 + 0.46 * len(names))
    figure.get_layout_engine().set(wspace=0.05)
    panels = figure.subplots(1, 2, sharey=True)
    heights = dict(zip(names, np.arange(len(names))[::-1], strict=True))
    for ax, metric in zip(panels, METRICS, strict=True):
        for name, height in heights.items():
            mine, published_one = ours.get((name, metric)), theirs.get((name, metric))
            # alone, a side takes the middle
            lane = LANE if mine and published_one else 0.0
            if published_one:
                _lane(ax, metric, published_one, height + lane, MUTED, hollow=True)
            if mine:
                colour = _colour(name, found.artificial)
                _lane(ax, metric, mine, height - lane, colour, hollow=False)
        better = "more is better" if metric == "auc" else "less is fairer"
        ax.set_title(f"{METRIC_NAMES[metric]}: {better}")
        ax.set_ylim(-0.6, len(names) - 0.4)
        ax.grid(axis="x", color=GRID)
        for height in range(len(names) - 1):
            ax.axhline(height + 0.5, color=GRID, lw=0.6)
        ax.set_axisbelow(True)
        ax.tick_params(length=0)
        ax.spines["left"].set_visible(False)
        ax.xaxis.set_major_formatter(tick)
        if written:
            _write_numbers(ax, metric, heights, theirs, ours)
        if found.artificial:
            watermark(ax)
    panels[0].set_yticks(
        list(heights.values()), [labels.get(name, name) for name in names], color=INK, fontsize=10.5
    )
    for text, name in zip(panels[0].get_yticklabels(), names, strict=True):
        text.set_fontweight("bold" if "dcem" in name else "normal")
    heading(figure, title)
    starred = any(labels.get(name, name).endswith("*") for name in names)
    partial = any((name, "auc") not in ours for name in names)
    key = _marks_key(theirs, ours, artificial=found.artificial, partial=partial, starred=starred)
    figure.supxlabel(key, fontsize=8.5, color=MUTED)
    return figure


def _lane(ax: Any, metric: str, spread: Spread, y: float, colour: str, *, hollow: bool) -> None:
    """One side of one method: its points (or its range), median and worst case."""
    face = PAPER if hollow else colour
    ax.plot([spread.low, spread.high], [y, y], color=colour, lw=0.8, alpha=0.55, zorder=1)
    marker = "D" if hollow else "o"
    if len(spread.values):
        ax.plot(
            spread.values, np.full(len(spread.values), y), marker, ms=3.4 if hollow else 3.8,
            mfc=face, mec=colour, mew=0.8, ls="", alpha=0.85, zorder=2,
        )  # fmt: skip
    ax.plot([spread.median] * 2, [y - 0.16, y + 0.16], color=colour, lw=2.4, zorder=3)
    triangle = "<" if metric == "auc" else ">"
    ax.plot(
        spread.numbers(metric)["worst"], y, triangle, ms=6.5, mfc=face, mec=colour, mew=1, zorder=4
    )


def _write_numbers(
    ax: Any, metric: str, heights: Mapping[str, Any], theirs: Spreads, ours: Spreads
) -> None:
    low, high = ax.get_xlim()
    ax.set_xlim(low, high + 0.62 * (high - low))
    ax.set_xticks([tick for tick in ax.get_xticks() if low <= tick <= high])
    for name, height in heights.items():
        lane = LANE if (name, metric) in theirs and (name, metric) in ours else 0.0
        for side, offset, colour in ((theirs, lane, MUTED), (ours, -lane, _colour(name))):
            if (name, metric) in side:
                text = brackets(side[name, metric])
                ax.text(
                    0.995, height + offset, text, color=colour, fontsize=8.5, ha="right",
                    va="center", transform=ax.get_yaxis_transform(),
                )  # fmt: skip


def brackets(spread: Spread) -> str:
    """`.787 [.768, .823]`, as the paper's tables write it."""
    if np.isnan(spread.median):
        return "–"
    return f"{number(spread.median)} [{number(spread.low)}, {number(spread.high)}]"


def _colour(name: str, artificial: bool = False) -> str:
    if artificial:
        return WARN
    if name == ORACLE:
        return INK
    return group_colour(3) if "dcem" in name else group_colour(0)


def _marks_key(
    theirs: Spreads, ours: Spreads, *, artificial: bool, partial: bool, starred: bool
) -> str:
    """What the marks mean, and which side is not there, wholly or (`partial`) for some methods."""
    # the paper's tables have no points
    points = any(len(one.values) for one in theirs.values())
    key = ["◇ published" if points else "grey: published" if theirs else "published: not at hand"]
    if ours:
        key.append("● ours, on artificial patients" if artificial else "● ours")
        key += ["no ●: not recorded by us"] * partial
    else:
        key.append("ours: not recorded")
    triangles = " ".join(["▷◁"] * bool(theirs) + ["▶◀"] * bool(ours))
    return "     ".join([*key, "| median", f"{triangles} worst case", *[STAR] * starred])
