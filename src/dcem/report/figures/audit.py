"""An audit in pictures: who is tested at equal risk, where nobody is, what could overturn it."""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np

from dcem.audit.results import Audit, Estimate
from dcem.estimation.overlap import HARDLY
from dcem.estimation.results import EVERYBODY
from dcem.report.figures.panels import group_line, key_of_groups, share_marks, shortened
from dcem.report.style import ACCENT, FAINT, INK, MUTED, WARN, Drawing, in_style, new_figure, tell
from dcem.text import decimal, number, percent

MOST_GROUPS = 8  # lines that an eye can tell apart; the largest groups are drawn


def looks_of(audit: Audit) -> dict[str, dict[str, Any]]:
    """The largest groups, each with the colour and dashes it has on every page."""
    largest = sorted(audit.counts, key=lambda item: -item.rows)[:MOST_GROUPS]
    return {
        item.group: group_line(place) for place, item in enumerate(audit.counts) if item in largest
    }


def left_out(audit: Audit) -> str:
    """A sentence about groups that are not drawn, or nothing."""
    more = len(audit.counts) > MOST_GROUPS
    return f" The {MOST_GROUPS} largest of {len(audit.counts)} groups are drawn." if more else ""


def names_of(audit: Audit) -> list[str]:
    """All groups, in the order of their colours."""
    return [item.group for item in audit.counts]


@in_style
def risk(audit: Audit) -> Drawing | None:
    """Share tested against predicted risk."""
    looks = looks_of(audit)
    curves = [c for c in audit.risk_curves if c.group in looks or not audit.grouped]
    if not curves:
        return None
    figure = new_figure(8.2, 4.2)
    ax = figure.subplots()
    for curve in curves:
        look = looks[curve.group] if audit.grouped else {"color": ACCENT}
        faint = 0.16 if len(curves) <= 3 else 0.08
        ax.fill_between(curve.risk, curve.low, curve.high, color=look["color"], alpha=faint, lw=0)
        (line,) = ax.plot(curve.risk, curve.tested, marker="o", lw=2, ms=4.5, **look)
        tell(
            line,
            [
                f"{curve.group}: {percent(tested)} tested at a risk of {percent(risk)}"
                for risk, tested in zip(curve.risk, curve.tested, strict=True)
            ],
        )
    ax.set(xlabel="risk that the features predict", ylabel="share tested")
    ax.set_ylim(bottom=0)
    share_marks(ax.xaxis, ax.yaxis)
    ax.grid(axis="y")
    if len(curves) > 1:
        key_of_groups(figure, names_of(audit), {curve.group for curve in curves})
    described = "; ".join(
        f"{c.group}: from {percent(c.tested[0])} tested at a risk of {percent(c.risk[0])} to "
        f"{percent(c.tested[-1])} at {percent(c.risk[-1])}"
        for c in curves
    )
    return Drawing(
        figure,
        "risk",
        "Testing against risk",
        f"Share tested by predicted risk. {described}.",
        "People in ten parts by the risk that a model of the tested predicts from their features, "
        "with 95 % intervals. Where the lines lie apart, people at equal predicted risk are tested "
        f"unequally. Points that rest on fewer than ten people are left out.{left_out(audit)}",
    )


@in_style
def overlap(audit: Audit) -> Drawing | None:
    """Distribution of the testing probabilities, a panel a group."""
    if not audit.overlap:
        return None
    looks = looks_of(audit)
    names = [n for n, o in audit.overlap.items() if n in looks and o.histogram.any()]
    names = names if audit.grouped else [EVERYBODY]
    if not names:
        return None
    figure = new_figure(8.6, 0.75 + (0.95 if len(names) <= 3 else 0.6) * len(names))
    axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    edges = np.arange(len(audit.bin_edges))  # one step a bin: small probabilities need the room
    marks = [0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1]
    places = [int(np.argmin(np.abs(audit.bin_edges - mark))) for mark in marks]
    for ax, name in zip(axes, names, strict=True):
        found = audit.overlap[name]
        colour = looks[name]["color"] if name in looks else ACCENT
        ax.stairs(found.histogram, edges, fill=True, color=colour, alpha=0.75)
        ax.axvspan(0, places[1], color=WARN, alpha=0.1, lw=0)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.set_ylim(0, max(found.histogram.max(), 1e-9) * 1.05)
        ax.set_xlim(0, edges[-1])
        share = found.under[HARDLY]
        said = shortened(name)
        said += "" if isnan(share) else f"\n{percent(share, 1)} under 1 %"
        ax.text(1.01, 0.5, said, transform=ax.transAxes, va="center", fontsize=9.5, color=INK)
    axes[-1].set_xticks(places, [f"{100 * mark:g} %" for mark in marks])
    axes[-1].set_xlabel("probability of being tested, given features and group (uneven scale)")
    return Drawing(
        figure,
        "overlap",
        "Who could have been tested",
        "Distribution of the probability of being tested. "
        + "; ".join(
            f"{n}: median {percent(audit.overlap[n].quantiles[2], 1)}"
            + (
                ""
                if isnan(share := audit.overlap[n].under[HARDLY])
                else f", {percent(share, 1)} of people under 1 %"
            )
            for n in names
        )
        + ".",
        "Height: share of the group's people. In the shaded region hardly anybody was tested, and "
        "what is said about these people is extrapolation. Bins of fewer than ten people are "
        f"empty here.{left_out(audit)}",
    )


@in_style
def calibration(audit: Audit) -> Drawing | None:
    """Predicted against observed testing."""
    found = audit.calibration
    if found is None or not len(found.predicted):
        return None
    figure = new_figure(5.2, 4.4)
    ax = figure.subplots()
    most = max(found.high.max(), found.predicted.max()) * 1.05
    ax.plot([0, most], [0, most], color=FAINT, lw=1.2)
    ax.vlines(found.predicted, found.low, found.high, color=ACCENT, lw=2)
    (points,) = ax.plot(found.predicted, found.observed, "o", color=ACCENT, ms=5.5)
    tell(
        points,
        [
            f"predicted {percent(p)}, tested {percent(o)}"
            for p, o in zip(found.predicted, found.observed, strict=True)
        ],
    )
    ax.set(xlim=(0, most), ylim=(0, most), xlabel="predicted share tested", ylabel="share tested")
    share_marks(ax.xaxis, ax.yaxis)
    return Drawing(
        figure,
        "calibration",
        "Is the model of testing right?",
        f"Predicted and observed shares tested in {len(found.predicted)} bins; slope "
        f"{decimal(found.slope.value)}, mean error {decimal(100 * found.error, 1)} percentage "
        "points.",
        f"Each point is a tenth of the people, predicted by models that had not seen them. On the "
        f"line, predictions are right. Calibration slope "
        f"{decimal(found.slope.value)} (1 is right); AUC {number(found.auc)}.",
    )


_KINDS = (
    ("recorded", "recorded: the untested count as negative", "D", MUTED),
    ("tested_only", "tested only", "s", INK),
    ("weighted", "weighted", "^", ACCENT),
    ("doubly_robust", "doubly robust", "o", ACCENT),
)


@in_style
def prevalence(audit: Audit) -> Drawing | None:
    """Every estimate of every group, with the limits behind them."""
    looks = looks_of(audit)
    shown = [p for p in audit.prevalence if p.group == EVERYBODY or p.group in looks]
    shown = [p for p in shown if p.recorded.estimable]
    if not shown:
        return None
    figure = new_figure(8.6, 1.1 + (0.78 if len(shown) <= 4 else 0.6) * len(shown))
    ax = figure.subplots()
    for row, item in enumerate(shown):
        height = len(shown) - 1 - row
        ax.hlines(height, *item.bounds, color=FAINT, lw=9, alpha=0.6)
        for place, (kind, label, marker, colour) in enumerate(_KINDS):
            at = height + 0.24 - 0.16 * place
            estimate: Estimate = getattr(item, kind)
            if not estimate.estimable:
                continue
            ax.hlines(at, estimate.low, estimate.high, color=colour, lw=1.8)
            hollow = "none" if kind == "weighted" else colour
            ax.plot(
                estimate.value,
                at,
                marker,
                color=colour,
                mfc=hollow,
                ms=6,
                label=None if row else label,
            )
    ax.set_yticks(range(len(shown)), [shortened(p.group) for p in shown][::-1], color=INK)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(-0.6, len(shown) - 0.4)
    ax.set_xlim(0, 1)
    share_marks(ax.xaxis)
    ax.grid(axis="x")
    figure.legend(loc="outside upper left", ncols=2, fontsize=9.5)
    return Drawing(
        figure,
        "prevalence",
        "How common is the outcome?",
        "; ".join(
            f"{p.group}: recorded {percent(p.recorded.value, 1)}, limits "
            f"{percent(p.bounds[0])} to {percent(p.bounds[1])}"
            for p in shown
        )
        + ".",
        "Points with 95 % intervals. The grey bar holds every answer that the data allow without "
        f"an assumption about the untested.{left_out(audit)}",
    )
