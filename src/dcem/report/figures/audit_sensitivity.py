"""What could overturn an audit, in pictures: three sensitivity analyses with their breakdown."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from dcem.audit.results import Audit
from dcem.estimation.results import EVERYBODY
from dcem.report.figures.audit import left_out, looks_of, names_of
from dcem.report.figures.panels import key_of_groups, share_marks
from dcem.report.style import ACCENT, INK, MUTED, WARN, Drawing, in_style, new_figure
from dcem.text import decimal, number, percent, ratio


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
        f"Group {found.group} against everybody else. Line: the difference in testing at equal "
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
    everybody: dict[str, Any] = {"color": INK, "ls": "--" if audit.grouped else "-"}
    looks = {EVERYBODY: everybody} | looks_of(audit)
    curves = {n: c for n, c in found.curves.items() if n in looks and not c.reason}
    if not curves:
        return None
    from matplotlib.lines import Line2D

    figure = new_figure(8.2, 4.2)
    ax = figure.subplots()
    for name, curve in curves.items():
        look = looks[name]
        ax.fill_between(found.gamma, curve.low, curve.high, color=look["color"], alpha=0.1, lw=0)
        ax.plot(found.gamma, curve.value, lw=2, **look)
    _odds_axis(ax, found.gamma)
    ax.set_ylabel("prevalence")
    share_marks(ax.yaxis)
    key_of_groups(figure, names_of(audit), curves, [Line2D([], [], label=EVERYBODY, **everybody)])
    b = found.breakdown
    if 1 < b.value <= found.gamma[-1]:
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
        + left_out(audit),
    )


@in_style
def sensitivity_performance(audit: Audit) -> Drawing | None:
    """The range of the AUC, or of its difference, against an adversary's strength."""
    found = audit.performance_sensitivity
    if found is None:
        return None
    if found.difference is not None and found.difference_range is not None and found.pair:
        band, target = found.difference_range, 0.0
        said = f"AUC of group {found.pair[0]} minus group {found.pair[1]}"
    else:
        band, target, said = found.auc_range[EVERYBODY], 0.5, "AUC, everybody"
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
    ax.set_ylabel(said)
    return Drawing(
        figure,
        "sensitivity-performance",
        "If the untested are different: performance",
        f"{said}: {number(middle)}; between {number(band.low[-1])} and {number(band.high[-1])} at "
        f"an odds ratio of {ratio(found.strength[-1])}.",
        f"Score: {found.score}. Line: {said} if untested people are like tested ones with the same "
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
