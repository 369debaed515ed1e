"""Bounds in pictures: people in the order of their risk, and of whom one cannot say."""

from __future__ import annotations

import numpy as np

from dcem.estimation.bounds import Bounds
from dcem.estimation.results import EVERYBODY
from dcem.report.figures.panels import group_line, hover, key, line, share_marks, shortened
from dcem.report.style import ACCENT, FAINT, INK, WARN, Drawing, in_style, new_figure
from dcem.text import percent


@in_style
def undecided(found: Bounds) -> Drawing | None:
    """Share of people of whom one cannot say, against the strength, by group."""
    names = [name for name, one in found.shares.items() if np.isfinite(one.open).all()]
    if not names:
        return None
    grouped = len(found.shares) > 1
    looks = {name: group_line(i - 1) for i, name in enumerate(found.shares) if i}
    looks[EVERYBODY] = {"color": INK, "ls": "--" if grouped else "-"}
    drawn = [name for name in names if name == EVERYBODY or list(looks).index(name) < 8]
    figure = new_figure(7.6, 3.8)
    ax = figure.subplots()
    for name in drawn:
        ax.plot(found.gammas, found.shares[name].open, lw=2, **looks[name])
    ax.axvline(found.stated, color=WARN, lw=1.2, ls="--")
    ax.set_xscale("log")
    marks = [1, 1.5, 2, 3, 5, 10]
    ax.set_xticks(marks, [f"{mark:g}" for mark in marks])
    ax.set_xticks([], minor=True)
    ax.set_xlim(1, found.gammas[-1])
    ax.set_ylim(0, 1)
    ax.grid(axis="y")
    for name in drawn:
        share = found.shares[name].open
        texts = [
            f"{name}: of {percent(s)} one cannot say at a strength of {g:g}"
            for g, s in zip(found.gammas, share, strict=True)
        ]
        hover(ax, found.gammas, share, texts)
    ax.set_xlabel("strength of the unmeasured: largest odds ratio")
    ax.set_ylabel("people of whom one cannot say")
    share_marks(ax.yaxis)
    key([line(shortened(name), lw=2.2, **looks[name]) for name in drawn], figure)
    every = found.shares[EVERYBODY].open
    return Drawing(
        figure,
        "bounds-undecided",
        "Of whom one cannot say",
        f"Everybody: {percent(every[0])} at a strength of 1, {percent(every[found.at])} at "
        f"{found.stated:g}, {percent(every[-1])} at {found.gammas[-1]:g}.",
        f"One acts from a risk of {percent(found.cut)} on. A person counts whose limits lie on "
        "both sides of it. Dashed: the stated strength.",
    )


@in_style
def bands(found: Bounds) -> Drawing | None:
    """The limits of the risk of people in the order of their risk."""
    figure = new_figure(7.6, 3.8)
    ax = figure.subplots()
    wide, narrow = found.bands[found.stated], found.bands[1.0]
    place = (np.arange(len(wide.risk)) + 0.5) / len(wide.risk)
    ax.fill_between(place, wide.low, wide.high, color=ACCENT, alpha=0.18, lw=0, step="mid")
    ax.fill_between(place, narrow.low, narrow.high, color=ACCENT, alpha=0.3, lw=0, step="mid")
    ax.step(place, wide.risk, color=ACCENT, lw=2, where="mid")
    ax.axhline(found.cut, color=INK, lw=1)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, None)
    ax.grid(axis="y", color=FAINT, alpha=0.4)
    texts = [
        f"risk {percent(r)}, between {percent(low)} and {percent(high)}"
        for r, low, high in zip(wide.risk, wide.low, wide.high, strict=True)
    ]
    hover(ax, place, wide.risk, texts)
    ax.set_xlabel("people, in the order of their risk")
    ax.set_ylabel("risk")
    share_marks(ax.xaxis, ax.yaxis)
    inner = "; darker, at 1" if (narrow.high > narrow.low).any() else ""
    return Drawing(
        figure,
        "bounds-people",
        "Everybody's risk, and its limits",
        f"From {percent(wide.risk[0])} ({percent(wide.low[0])} to {percent(wide.high[0])}) to "
        f"{percent(wide.risk[-1])} ({percent(wide.low[-1])} to {percent(wide.high[-1])}).",
        "Line: the risk at a strength of 1. Pale band: its limits at a strength of "
        f"{found.stated:g}{inner}. Horizontal: the risk from which on one acts. "
        f"Means of {len(wide.risk)} parts of the people of equal size.",
    )
