"""An audit in pictures: who is tested at equal risk, where nobody is, what could overturn it."""

from __future__ import annotations

from math import isnan

import numpy as np

from dcem.audit.overlap import HARDLY
from dcem.audit.results import EVERYBODY, Audit, Estimate
from dcem.report.figures.audit_look import colours_of, left_out, legend_outside, percent_axis
from dcem.report.figures.audit_sensitivity import SENSITIVITY
from dcem.report.style import (
    ACCENT,
    FAINT,
    INK,
    MUTED,
    RC,
    WARN,
    Drawing,
    new_figure,
)


def draw_audit(audit: Audit) -> list[Drawing]:
    """Every figure that has something to show."""
    import matplotlib

    parts = (risk, overlap, calibration, drivers, prevalence, *SENSITIVITY)
    with matplotlib.rc_context(RC):
        return [drawing for part in parts for drawing in [part(audit)] if drawing is not None]


def risk(audit: Audit) -> Drawing | None:
    """Share tested against predicted risk."""
    colours = colours_of(audit)
    curves = [c for c in audit.risk_curves if c.group in colours or not audit.grouped]
    if not curves:
        return None
    figure = new_figure(8.2, 4.2)
    ax = figure.subplots()
    for curve in curves:
        colour = colours.get(curve.group, ACCENT)
        faint = 0.16 if len(curves) <= 3 else 0.08
        ax.fill_between(curve.risk, curve.low, curve.high, color=colour, alpha=faint, lw=0)
        label = curve.group if audit.grouped else "everybody"
        ax.plot(curve.risk, curve.tested, "o-", color=colour, lw=2, ms=4.5, label=label)
    ax.set(xlabel="risk that the features predict", ylabel="share tested")
    ax.set_ylim(bottom=0)
    percent_axis(ax.xaxis)
    percent_axis(ax.yaxis)
    ax.grid(axis="y")
    if len(curves) > 1:
        legend_outside(figure, ax)
    described = "; ".join(
        f"{c.group}: from {100 * c.tested[0]:.0f} % tested at a risk of {100 * c.risk[0]:.0f} % to "
        f"{100 * c.tested[-1]:.0f} % at {100 * c.risk[-1]:.0f} %"
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


def overlap(audit: Audit) -> Drawing | None:
    """Distribution of the testing probabilities, a panel a group."""
    if not audit.overlap:
        return None
    colours = colours_of(audit)
    names = [n for n, o in audit.overlap.items() if n in colours and o.histogram.any()]
    names = names if audit.grouped else [EVERYBODY]
    if not names:
        return None
    figure = new_figure(8.6, 0.75 + 0.95 * len(names))
    axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    edges = np.arange(len(audit.bin_edges))  # one step a bin: small probabilities need the room
    marks = [0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1]
    places = [int(np.argmin(np.abs(audit.bin_edges - mark))) for mark in marks]
    for ax, name in zip(axes, names, strict=True):
        found, colour = audit.overlap[name], colours.get(name, ACCENT)
        ax.stairs(found.histogram, edges, fill=True, color=colour, alpha=0.75)
        ax.axvspan(0, places[1], color=WARN, alpha=0.1, lw=0)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.set_ylim(0, max(found.histogram.max(), 1e-9) * 1.05)
        ax.set_xlim(0, edges[-1])
        share = found.under[HARDLY]
        said = name if isnan(share) else f"{name}\n{100 * share:.1f} % under 1 %"
        ax.text(1.01, 0.5, said, transform=ax.transAxes, va="center", fontsize=9.5, color=INK)
    axes[-1].set_xticks(places, [f"{100 * mark:g} %" for mark in marks])
    axes[-1].set_xlabel("probability of being tested, given features and group (uneven scale)")
    return Drawing(
        figure,
        "overlap",
        "Who could have been tested",
        "Distribution of the probability of being tested. "
        + "; ".join(
            f"{n}: median {100 * audit.overlap[n].quantiles[2]:.1f} %"
            + (
                ""
                if isnan(share := audit.overlap[n].under[HARDLY])
                else f", {100 * share:.1f} % of people under 1 %"
            )
            for n in names
        )
        + ".",
        "Height: share of the group's people. In the shaded region hardly anybody was tested, and "
        "what is said about these people is extrapolation. Bins of fewer than ten people are "
        f"empty here.{left_out(audit)}",
    )


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
    ax.plot(found.predicted, found.observed, "o", color=ACCENT, ms=5.5)
    ax.set(xlim=(0, most), ylim=(0, most), xlabel="predicted share tested", ylabel="share tested")
    percent_axis(ax.xaxis)
    percent_axis(ax.yaxis)
    return Drawing(
        figure,
        "calibration",
        "Is the model of testing right?",
        f"Predicted and observed shares tested in {len(found.predicted)} bins; slope "
        f"{found.slope.value:.2f}, mean error {100 * found.error:.1f} percentage points.",
        f"Each point is a tenth of the people, predicted by models that had not seen them. On the "
        f"line, predictions are right. Calibration slope {found.slope.value:.2f} (1 is right); "
        f"AUC {found.auc:.2f}.",
    )


def drivers(audit: Audit, most: int = 12) -> Drawing | None:
    """Importance of the raw columns."""
    shown = [d for d in audit.drivers[:most] if d.loss.value > 0]
    if not shown:
        return None
    figure = new_figure(8.2, 0.8 + 0.33 * len(shown))
    ax = figure.subplots()
    heights = np.arange(len(shown))[::-1]
    values = np.array([d.loss.value for d in shown])
    ax.barh(heights, values, color=ACCENT, height=0.62)
    ax.hlines(
        heights,
        [max(d.loss.low, 0) for d in shown],
        [d.loss.high for d in shown],
        color=INK,
        lw=1.4,
    )
    ax.set_yticks(heights, [d.column for d in shown], color=INK)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("loss of prediction when the column is shuffled (thousandths of a nat a row)")
    ax.grid(axis="x")
    return Drawing(
        figure,
        "drivers",
        "What drives testing",
        "; ".join(f"{d.column}: {d.loss.value:.2f}" for d in shown) + ".",
        "Longer bars: testing is predicted from this column more than from others. Prediction is "
        "not cause, and a column that was filled in after the decision can lead the list. "
        "`(group)` is the group itself.",
    )


_KINDS = (
    ("recorded", "recorded: the untested count as negative", "D", MUTED),
    ("tested_only", "tested only", "s", INK),
    ("weighted", "weighted", "^", ACCENT),
    ("doubly_robust", "doubly robust", "o", ACCENT),
)


def prevalence(audit: Audit) -> Drawing | None:
    """Every estimate of every group, with the limits behind them."""
    names = colours_of(audit)
    shown = [p for p in audit.prevalence if p.group == EVERYBODY or p.group in names]
    shown = [p for p in shown if p.recorded.estimable]
    if not shown:
        return None
    figure = new_figure(8.6, 1.1 + 0.78 * len(shown))
    ax = figure.subplots()
    for row, item in enumerate(shown):
        height = len(shown) - 1 - row
        ax.hlines(height, *item.bounds, color=FAINT, lw=9, alpha=0.6)
        for number, (kind, label, marker, colour) in enumerate(_KINDS):
            at = height + 0.24 - 0.16 * number
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
    ax.set_yticks(range(len(shown)), [p.group for p in shown][::-1], color=INK)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(-0.6, len(shown) - 0.4)
    ax.set_xlim(0, 1)
    percent_axis(ax.xaxis)
    ax.grid(axis="x")
    figure.legend(loc="outside upper left", ncols=2, fontsize=9.5)
    return Drawing(
        figure,
        "prevalence",
        "How common is the outcome?",
        "; ".join(
            f"{p.group}: recorded {100 * p.recorded.value:.1f} %, limits "
            f"{100 * p.bounds[0]:.0f} to {100 * p.bounds[1]:.0f} %"
            for p in shown
        )
        + ".",
        "Points with 95 % intervals. The grey bar holds every answer that the data allow without "
        f"an assumption about the untested.{left_out(audit)}",
    )
