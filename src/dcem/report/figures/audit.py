"""An audit in pictures: who is tested at equal risk, where nobody is, what could overturn it."""

from __future__ import annotations

from math import isfinite, isnan
from typing import Any

import numpy as np

from dcem.audit.results import Audit
from dcem.estimation.overlap import HARDLY
from dcem.estimation.results import EVERYBODY
from dcem.metrics.estimate import Estimate
from dcem.report.cells import said
from dcem.report.figures.panels import (
    Groups,
    diagonal,
    hover,
    line,
    named_rows,
    share_marks,
    shortened,
)
from dcem.report.figures.people import tested_by_risk
from dcem.report.style import ACCENT, FAINT, INK, MUTED, WARN, Drawing, in_style, new_figure, tell
from dcem.text import decimal, number, percent, ratio


def risk(audit: Audit) -> Drawing | None:
    """Share tested against predicted risk."""
    return tested_by_risk(
        {curve.group: (curve.risk, curve) for curve in audit.risk_curves},
        Groups(audit),
        "risk",
        "Testing against risk",
        "the features predict",
        "People in ten parts by the risk that a model of the tested predicts from their features, "
        "with 95 % intervals. Where the lines lie apart, people at equal predicted risk are tested "
        "unequally. Points that rest on fewer than ten people are left out.",
    )


@in_style
def overlap(audit: Audit) -> Drawing | None:
    """Distribution of the testing probabilities, a panel a group."""
    groups = Groups(audit)
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
        beside = shortened(name)
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
        "what is said about these people is extrapolation. Bins of fewer than ten people are "
        f"empty here.{groups.left_out(names)}",
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
    diagonal(ax, most)
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
    groups = Groups(audit)
    shown = [p for p in audit.prevalence if p.group == EVERYBODY or p.group in groups.look]
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
            look = {"color": colour, "mfc": hollow, "ms": 6, "label": None if row else label}
            (drawn,) = ax.plot(estimate.value, at, marker, **look)
            tell(drawn, [f"{item.group}, {label}: {said(estimate, 'percent')}"])
    named_rows(ax, [p.group for p in shown])
    ax.set_xlim(0, 1)
    share_marks(ax.xaxis)
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
def sensitivity_testing(audit: Audit) -> Drawing | None:
    """The difference in testing that could remain."""
    found = audit.testing_sensitivity
    if found is None:
        return None
    figure = new_figure(7.6, 3.9)
    ax = figure.subplots()
    value, at = found.difference.value, found.breakdown.value
    strongest = max([min(b.with_group, b.with_testing) for b in found.benchmarks], default=0.0)
    end = min(max(2.2 * at, 1.4 * strongest, 0.01), found.strength[-1])
    shown = found.strength <= end * 1.1
    x = 100 * found.strength[shown]
    ax.fill_between(x, found.low[shown], found.high[shown], color=ACCENT, alpha=0.18, lw=0)
    ax.axhline(value, color=ACCENT, lw=2)
    ax.axhline(0, color=INK, lw=1)
    ax.set_xlim(0, 100 * end)
    if at <= end:
        _mark(ax, 100 * at, f"breakdown\n{percent(at)}")
    for benchmark in found.benchmarks[:1]:
        place = 100 * min(benchmark.with_group, benchmark.with_testing)
        if place <= 100 * end:
            ax.axvline(place, color=MUTED, lw=1, ls=":")
            ax.text(
                place, 0.02, f" {benchmark.column}", transform=ax.get_xaxis_transform(),
                color=MUTED, fontsize=9, va="bottom",
            )  # fmt: skip
    ax.set_xlabel("strength of an unmeasured cause: partial R² with group and with testing, in %")
    ax.set_ylabel("difference that could remain")
    share_marks(ax.yaxis)
    return Drawing(
        figure,
        "sensitivity-testing",
        "An unmeasured cause of testing",
        f"Group {found.group}: difference {decimal(100 * value, 1)} percentage points; it could be "
        f"zero if an unmeasured cause has a partial R² of {percent(at)} with group and testing.",
        f"Group {found.group} against {audit.others}. Line: the difference in testing at equal "
        "features. Band: what could be left of it if something unmeasured were that strongly tied "
        "to both the group and testing. Dotted: the strongest measured column, for scale."
        + (
            f" E-value {ratio(found.e_value)} (interval {ratio(found.e_value_of_interval)})."
            if isfinite(found.e_value)
            else ""
        ),
    )


@in_style
def sensitivity_prevalence(audit: Audit) -> Drawing | None:
    """Prevalence along the odds ratio."""
    found = audit.prevalence_sensitivity
    if found is None:
        return None
    groups = Groups(audit)
    everybody: dict[str, Any] = {"color": INK, "ls": "--" if audit.grouped else "-"}
    looks = {EVERYBODY: everybody} | groups.look
    curves = {n: c for n, c in found.curves.items() if n in looks and not c.reason}
    if not curves:
        return None
    figure = new_figure(8.2, 4.2)
    ax = figure.subplots()
    for name, curve in curves.items():
        look = looks[name]
        ax.fill_between(found.gamma, curve.low, curve.high, color=look["color"], alpha=0.1, lw=0)
        ax.plot(found.gamma, curve.value, lw=2, **look)
    for one in audit.known:  # where a known prevalence puts the untested
        at = one.odds_ratio
        if one.group in curves and at.estimable:
            ends = [[at.value - at.low], [at.high - at.value]]
            ax.errorbar(
                at.value,
                one.stated.value,
                xerr=ends,
                fmt="o",
                ms=6,
                color=looks[one.group]["color"],
            )
    _odds_axis(ax, found.gamma)
    for name, curve in curves.items():
        told = zip(found.gamma, curve.value, curve.low, curve.high, strict=True)
        texts = [
            f"{name}: {said(Estimate(*share), 'percent')} at an odds ratio of {ratio(gamma)}"
            for gamma, *share in told
        ]
        hover(ax, found.gamma, curve.value, texts)
    ax.set_ylabel("prevalence")
    share_marks(ax.yaxis)
    groups.key(figure, curves, [line(EVERYBODY, **everybody)])
    b = found.breakdown
    if 1 < b.value <= found.gamma[-1] and not audit.known:
        _mark(ax, b.value, f"breakdown {ratio(b.value)}")
        ax.axvline(1 / b.value, color=WARN, lw=1.2, ls="--")
    return Drawing(
        figure,
        "sensitivity-prevalence",
        "If the untested are different: prevalence",
        "; ".join(
            f"{n}: {percent(c.value[0])} to {percent(c.value[-1])}" for n, c in curves.items()
        )
        + f" as the odds ratio goes from {ratio(found.gamma[0])} to {ratio(found.gamma[-1])}.",
        "Odds of the outcome of untested people over those of tested people with the same "
        "features. At 1 they are alike; left of it the untested have the outcome less often than "
        f"their features let expect, right of it more often. Breakdown: “{b.conclusion}” no longer "
        "follows once groups may differ from 1 by this factor in opposite directions."
        + " Points: where the known prevalence puts the untested." * bool(audit.known)
        + groups.left_out(curves),
    )


@in_style
def sensitivity_performance(audit: Audit) -> Drawing | None:
    """The range of the AUC, or of its difference, against an adversary's strength."""
    found = audit.performance_sensitivity
    if found is None:
        return None
    if found.difference is not None and found.difference_range is not None and found.pair:
        band, target = found.difference_range, 0.0
        what = f"AUC of group {found.pair[0]} minus group {found.pair[1]}"
    else:
        band, target, what = found.auc_range[EVERYBODY], 0.5, "AUC, everybody"
    if not np.isfinite(band.low).any():
        return None
    figure = new_figure(7.6, 3.9)
    ax = figure.subplots()
    ax.fill_between(found.strength, band.low, band.high, color=ACCENT, alpha=0.18, lw=0)
    middle = (band.low[0] + band.high[0]) / 2
    ax.axhline(middle, color=ACCENT, lw=2)
    ax.axhline(target, color=INK, lw=1)
    _odds_axis(ax, found.strength)
    b = found.breakdown
    if 1 < b.value <= found.strength[-1]:
        _mark(ax, b.value, f"breakdown {ratio(b.value)}")
    ax.set_xlabel("largest odds ratio, or its inverse, between untested and tested, row by row")
    ax.set_ylabel(what)
    return Drawing(
        figure,
        "sensitivity-performance",
        "If the untested are different: performance",
        f"{what}: {number(middle)}; between {number(band.low[-1])} and {number(band.high[-1])} at "
        f"an odds ratio of {ratio(found.strength[-1])}.",
        f"Score: {found.score}. Line: {what} if untested people are like tested ones with the same "
        "features. Band: all values it can take if every untested person's odds may differ by up "
        f"to this factor. Breakdown: “{b.conclusion}” no longer follows.",
    )


SENSITIVITY = (sensitivity_testing, sensitivity_prevalence, sensitivity_performance)


def _odds_axis(ax: Any, values: np.ndarray) -> None:
    ax.set_xscale("log")
    marks = [m for m in (0.1, 0.2, 0.5, 1, 2, 5, 10) if values[0] * 0.99 <= m <= values[-1] * 1.01]
    ax.set_xticks(marks, [f"{mark:g}" for mark in marks])
    ax.set_xticks([], minor=True)
    ax.set_xlim(values[0], values[-1])
    ax.set_xlabel("odds ratio between untested and tested people with the same features")
    ax.grid(axis="y")


def _mark(ax: Any, place: float, text: str) -> None:
    ax.axvline(place, color=WARN, lw=1.6, ls="--")
    ax.annotate(
        text,
        (place, 0.97),
        xytext=(5, 0),  # clear of the line, whatever the scale of the axis
        xycoords=ax.get_xaxis_transform(),
        textcoords="offset points",
        color=WARN,
        fontsize=9.5,
        va="top",
    )
