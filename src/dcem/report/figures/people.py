"""Who is tested, at equal risk and at all; how many have it; what methods believe of the others."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import Any

import numpy as np

from dcem.audit.results import Audit, RiskCurve
from dcem.compare.results import FitHistory, MethodResult, TableComparison, TestingByScore
from dcem.estimation.overlap import HARDLY
from dcem.estimation.results import EVERYBODY, Histogram
from dcem.metrics.estimate import Estimate
from dcem.report.document import in_sentence
from dcem.report.figures import panels
from dcem.report.style import (
    ACCENT,
    FAINT,
    GRID,
    INK,
    MUTED,
    WARN,
    Drawing,
    in_style,
    new_axes,
    new_figure,
    tell,
)
from dcem.text import decimal, number, percent


@in_style
def tested_by_risk(
    lines: Mapping[str, tuple[np.ndarray, RiskCurve | TestingByScore]],
    groups: panels.GroupStyles,
    name: str,
    title: str,
    whose: str,
    caption: str,
) -> Drawing | None:
    """The share tested against predicted risk, a line for each group.

    `lines` are the risk [bins] and who was tested at it, by group; `whose` prediction it is. A
    group with a single point has no line.
    """
    named = groups.look if len(groups.names) > 1 else lines
    shown = {n: line for n, line in lines.items() if n in named and len(line[0]) > 1}
    if not shown:
        return None
    figure, ax = new_axes(8.2, 4.2)
    for group, (risk, line) in shown.items():
        look = groups.look[group] if len(groups.names) > 1 else {"color": ACCENT}
        faint = 0.16 if len(shown) <= 3 else 0.08
        ax.fill_between(risk, line.low, line.high, color=look["color"], alpha=faint, lw=0)
        (drawn,) = ax.plot(risk, line.tested, marker="o", lw=2, ms=4.5, **look)
        points = zip(risk, line.tested, strict=True)
        tell(drawn, [f"{group}: {percent(t)} tested at a risk of {percent(r)}" for r, t in points])
    ax.set(xlabel=f"risk that {whose}", ylabel="share tested")
    lowest, highest = ax.dataLim.y0, ax.dataLim.y1
    if lowest < (highest - lowest) / 2:  # near enough to show the distance from nothing
        ax.set_ylim(bottom=0)
    panels.share_marks(ax.xaxis, ax.yaxis)
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


def risk_figure(audit: Audit) -> Drawing | None:
    """Share tested against predicted risk."""
    return tested_by_risk(
        {curve.group: (curve.risk, curve) for curve in audit.risk_curves},
        panels.GroupStyles(audit),
        "risk",
        "Testing against risk",
        "the features predict",
        "People in ten parts by the risk that a model of the tested predicts from their features, "
        "with 95 % intervals. Where the lines lie apart, people at equal predicted risk are tested "
        "unequally. Parts with fewer than ten people on a side are put together with the next.",
    )


def who_is_tested(comparison: TableComparison, method: MethodResult) -> Drawing | None:
    """The share tested against the risk that a method predicts."""
    return tested_by_risk(
        {group: (one.score, one) for group, one in method.testing_by_score.items()},
        panels.GroupStyles(comparison),
        f"testing-{method.name}",
        f"Who is tested at equal risk, by {method.name}",
        f"{method.name} predicts",
        "If testing followed risk alone, the groups' lines would coincide. A distance at equal "
        "predicted risk is only as good as the prediction, which was learnt from the tested. "
        "Shaded: intervals.",
    )


@in_style
def overlap_figure(audit: Audit) -> Drawing | None:
    """Distribution of the testing probabilities, one panel per group."""
    groups = panels.GroupStyles(audit)
    names = [n for n, o in audit.overlap.items() if n in groups.look and o.histogram.any()]
    names = names if audit.grouped or not audit.overlap else [EVERYBODY]
    if not names:
        return None
    figure = new_figure(8.6, 0.75 + (0.95 if len(names) <= 3 else 0.6) * len(names))
    axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    edges = np.arange(len(audit.bin_edges))  # one step a bin: small probabilities need the room
    marks = [0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1]
    places = [int(np.argmin(np.abs(audit.bin_edges - mark))) for mark in marks]
    for ax, name in zip(axes, names, strict=True):
        found = audit.overlap[name]
        colour = groups.look[name]["color"] if name in groups.look else ACCENT
        ax.stairs(found.histogram, edges, fill=True, color=colour, alpha=0.75)
        ax.axvspan(0, places[1], color=WARN, alpha=0.1, lw=0)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.set_ylim(0, max(found.histogram.max(), 1e-9) * 1.05)
        ax.set_xlim(0, edges[-1])
        share = found.under[HARDLY]
        beside = panels.shortened(name)
        beside += "" if isnan(share) else f"\n{percent(share, 1)} under 1 %"
        ax.text(1.01, 0.5, beside, transform=ax.transAxes, va="center", fontsize=9.5, color=INK)
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
        "numbers for these people are extrapolation. Bins of fewer than ten people are shown as "
        f"empty.{groups.left_out(names)}",
    )


@in_style
def calibration_figure(audit: Audit) -> Drawing | None:
    """Predicted against observed testing."""
    found = audit.calibration
    if found is None or not len(found.predicted):
        return None
    figure, ax = new_axes(5.2, 4.4)
    most = max(found.high.max(), found.predicted.max()) * 1.05
    panels.diagonal(ax, most)
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
    panels.share_marks(ax.xaxis, ax.yaxis)
    return Drawing(
        figure,
        "calibration",
        "Is the model of testing right?",
        f"Predicted and observed shares tested in {len(found.predicted)} bins; slope "
        f"{decimal(found.slope.value)}, mean error {decimal(100 * found.error, 1)} percentage "
        "points.",
        "Each point is a tenth of the people or more, predicted by models that had not seen them. "
        "On the line, predictions are right. Calibration slope "
        f"{decimal(found.slope.value)} (1 is right); AUC {number(found.auc)}.",
    )


@in_style
def probability_figure(comparison: TableComparison) -> Drawing:
    """The estimated probability of being tested, group by group."""
    shown, groups = comparison.overlap, panels.GroupStyles(comparison)
    figure, (ax,) = panels.side_by_side(
        [""], "estimated probability of being tested", "share of the group", 2.9
    )
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
        f"{said} Numbers beyond the tested are based on the tested in each region; "
        "far to the left there are hardly any." + groups.left_out(drawn),
    )


_KINDS = (
    ("recorded", "recorded: the untested count as negative", "D", MUTED),
    ("tested_only", "tested only", "s", INK),
    ("weighted", "weighted", "^", ACCENT),
    ("doubly_robust", "doubly robust", "o", ACCENT),
    ("within", "doubly robust, of those within reach", "o", ACCENT),  # where that is not all
)


@in_style
def prevalence_figure(audit: Audit) -> Drawing | None:
    """Every estimate of every group, with the limits behind them."""
    groups = panels.GroupStyles(audit)
    shown = [p for p in audit.prevalence if p.group == EVERYBODY or p.group in groups.look]
    shown = [p for p in shown if p.recorded.estimable]
    if not shown:
        return None
    figure, ax = new_axes(8.6, 1.1 + (0.78 if len(shown) <= 4 else 0.6) * len(shown))
    unnamed = {kind: label for kind, label, *_ in _KINDS}
    for row, item in enumerate(shown):
        height = len(shown) - 1 - row
        ax.hlines(height, *item.bounds, color=FAINT, lw=9, alpha=0.6)
        for place, (kind, label, marker, colour) in enumerate(_KINDS):
            at = height + 0.24 - 0.16 * min(place, 3)
            estimate: Estimate = getattr(item, kind)
            if not estimate.estimable:
                continue
            ax.hlines(at, estimate.low, estimate.high, color=colour, lw=1.8)
            hollow = "none" if kind in ("weighted", "within") else colour
            look = {"color": colour, "mfc": hollow, "ms": 6, "label": unnamed.pop(kind, None)}
            (drawn,) = ax.plot(estimate.value, at, marker, **look)
            tell(drawn, [f"{item.group}, {label}: {in_sentence(estimate, 'percent')}"])
    panels.named_rows(ax, [p.group for p in shown])
    ends = [e.high for p in shown for e in vars(p).values() if isinstance(e, Estimate)]
    widest = np.nanmax([*ends, *(p.bounds[1] for p in shown)], initial=0.01)
    ax.set_xlim(0, min(1.0, 1.05 * widest))
    panels.share_marks(ax.xaxis)
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
        f"an assumption about the untested.{groups.left_out([p.group for p in shown])}",
    )


@in_style
def pseudo_label_figure(comparison: TableComparison) -> Drawing | None:
    """What methods that fill in labels believe of the untested, group by group."""
    methods = {m.name: m.pseudo_labels for m in comparison.methods if m.pseudo_labels is not None}
    if not methods:
        return None
    groups = panels.GroupStyles(comparison)
    labels = ("label filled in for the untested", "share of the untested")
    figure, axes = panels.side_by_side(list(methods), *labels, 2.6)
    drawn = set().union(
        *(_stairs(ax, shares, groups) for ax, shares in zip(axes, methods.values(), strict=True))
    )
    groups.key(figure, drawn)
    return Drawing(
        figure,
        "pseudo-labels",
        "What each method believes about the untested",
        "Distribution of the labels filled in for the untested. "
        + " ".join(
            f"{method}, {name}: most often {_fullest(histogram, name)}."
            for method, histogram in methods.items()
            for name in groups.look
            if name in drawn
        ),
        "A method that fills in missing labels gives every untested person a probability. Much "
        "mass near 0 means that it believes the untested to be negative, as the record has them. "
        "Bins of fewer than ten people are shown as empty." + groups.left_out(drawn),
    )


@in_style
def em_history(name: str, history: FitHistory) -> Drawing:
    """The losses of an EM fit by iteration, with the iteration that was kept."""
    figure, ax = new_axes(7.2, 2.9)
    for (split, loss), colour in zip(history.loss.items(), (INK, ACCENT, MUTED), strict=False):
        steps = np.arange(1, len(loss) + 1)
        marker = "o" if len(loss) <= 60 else None
        (drawn,) = ax.plot(steps, loss, color=colour, lw=1.8, marker=marker, ms=3, label=split)
        if marker:
            points = zip(steps, loss, strict=True)
            tell(drawn, [f"{split}: {number(value)} at iteration {step}" for step, value in points])
    figure.legend(loc="outside lower left", labelcolor="linecolor", ncols=3, fontsize=9.5)
    ax.axvline(history.kept, color=WARN, lw=1.2, ls=panels.DASHED)
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


def _stairs(ax: Any, histogram: Histogram, groups: panels.GroupStyles) -> set[str]:
    """Draw the groups of whom most people are in bins that may be shown; which ones these are."""
    drawn = {name for name in groups.look if histogram.share.get(name, np.zeros(1)).sum() > 0.6}
    for name in groups.look:
        if name in drawn:
            ax.stairs(histogram.share[name], histogram.edges, **groups.look[name], lw=1.7)
    ax.set_xlim(0, 1)
    ax.grid(axis="y", color=GRID)
    panels.plain_marks(ax.xaxis)
    panels.share_marks(ax.yaxis)
    return drawn


def _fullest(histogram: Histogram, name: str) -> str:
    place = int(np.argmax(histogram.share[name]))
    low, high = histogram.edges[place : place + 2]
    return f"{number(float(low), 2)} to {number(float(high), 2)}"
