"""What could overturn an audit, as blocks of its document: the unseen, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import inf, isfinite, isnan
from typing import Any

import numpy as np

from dcem.audit.results import Audit
from dcem.audit.sensitivity import Breakdown
from dcem.estimation.results import EVERYBODY
from dcem.metrics.estimate import Estimate
from dcem.report import document as doc
from dcem.report.figures import panels
from dcem.report.style import ACCENT, INK, MUTED, WARN, Drawing, in_style, new_axes
from dcem.text import decimal, number, percent, ratio

MOST_STEPS = 16  # of a slider


def sensitivity(audit: Audit) -> Iterator[doc.Block]:
    """What would overturn it: a slider, three breakdown values, and the curves."""
    yield from filter(None, [_unmeasured(audit), _odds(audit)])
    rows: list[tuple[doc.Cell, ...]] = []
    for name, found in (
        ("disparity in testing", audit.testing_sensitivity),
        ("how common the outcome is", audit.prevalence_sensitivity),
        (f"how well scores rank {audit.whom}", audit.performance_sensitivity),
    ):
        if found is None:
            rows.append((name, doc.Missing(what="not possible here"), doc.NOTHING, doc.NOTHING))
            continue
        b = found.breakdown
        rows.append((name, b.conclusion, _strength(b, b.value), _strength(b, b.with_interval)))
    yield doc.table(
        "How strong would an unmeasured cause have to be?",
        ("about", "conclusion", "breaks down at", "its interval at"),
        rows,
        words=(1,),
        note="Partial R²: of the variation in group and in testing that the features leave open, "
        "the share that an unmeasured cause would have to explain. Odds ratio: between the odds of "
        "the outcome of untested and of tested people with the same features; every row may have "
        "its own, up to this one or its inverse, chosen to overturn the conclusion."
        + " Where a prevalence is known, it is relative to the odds that give it."
        * bool(audit.known),
    )
    curves = (draw_testing, draw_prevalence, draw_performance)
    yield doc.Fold("The curves", tuple(doc.Figure(partial(draw, audit)) for draw in curves))


def _strength(b: Breakdown, value: float) -> doc.Cell:
    if isnan(value):
        return doc.Missing(b.reason)
    if value == inf:
        return "never"
    if b.unit == "odds ratio":
        return "unclear from the start" if value <= 1 else doc.estimate(value, "ratio", b.unit)
    return "unclear from the start" if value == 0 else doc.estimate(value, "percent", b.unit)


def _thinned(points: np.ndarray, end: float) -> list[int]:
    """Positions of a few steps along a curve, up to an end; 1 is one of them if it is there."""
    shown = np.flatnonzero(points <= end)
    few = np.linspace(0, shown[-1], min(MOST_STEPS, len(shown))).round().astype(int)
    return sorted({*few.tolist(), *np.flatnonzero(np.isclose(points, 1.0)).tolist()})


def _unmeasured(audit: Audit) -> doc.Table | None:
    """The difference in testing that could remain, step by step."""
    found = audit.testing_sensitivity
    if found is None:
        return None
    end = max(2.5 * found.breakdown.value, 0.02)
    steps = [
        (found.strength[i], found.low[i], found.high[i]) for i in _thinned(found.strength, end)
    ]

    def left(strength: float, low: float, high: float) -> str:
        if low <= 0 <= high:
            return "there could be none"
        if strength >= found.breakdown.with_interval:
            return "chance could explain what remains"
        return "a difference remains"

    return doc.listing(
        f"What if something unrecorded drives testing and differs for group {found.group}?",
        [
            {
                "its strength (partial R²)": doc.estimate(strength, "percent"),
                "difference at least": doc.estimate(low, "points"),
                "at most": doc.estimate(high, "points"),
                "conclusion": left(strength, low, high),
            }
            for strength, low, high in steps
        ],
        start=0,
    )


def _odds(audit: Audit) -> doc.Table | None:
    """Prevalence along the odds ratio, step by step."""
    found = audit.prevalence_sensitivity
    curve = None if found is None else found.curves.get(EVERYBODY)
    if found is None or curve is None or curve.reason:
        return None
    steps = _thinned(found.gamma, inf)
    known = [one.odds_ratio.value for one in audit.known if one.group == EVERYBODY]
    start = known[0] if known and np.isfinite(known[0]) else 1.0
    alike = min(range(len(steps)), key=lambda place: abs(np.log(found.gamma[steps[place]] / start)))
    return doc.table(
        "What if the untested differ from tested people with the same features?",
        ("odds of the outcome, untested over tested", f"share with the outcome, {audit.whom}"),
        [
            (
                doc.estimate(found.gamma[i], "ratio"),
                doc.estimate(Estimate(curve.value[i], curve.low[i], curve.high[i]), "percent"),
            )
            for i in steps
        ],
        start=alike,
    )


@in_style
def draw_testing(audit: Audit) -> Drawing | None:
    """The difference in testing that could remain."""
    found = audit.testing_sensitivity
    if found is None:
        return None
    figure, ax = new_axes(7.6, 3.9)
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
    panels.share_marks(ax.yaxis)
    return Drawing(
        figure,
        "sensitivity-testing",
        "An unmeasured cause of testing",
        f"Group {found.group}: difference {decimal(100 * value, 1)} percentage points; it could be "
        f"zero if an unmeasured cause has a partial R² of {percent(at)} with group and testing.",
        f"Group {found.group} against {audit.others}. Line: the difference in testing at equal "
        "features. Band: what could be left of it if an unmeasured cause were that strongly tied "
        "to both the group and testing. Dotted: the strongest measured column, for comparison."
        + (
            f" E-value {ratio(found.e_value)} (interval {ratio(found.e_value_of_interval)})."
            if isfinite(found.e_value)
            else ""
        ),
    )


@in_style
def draw_prevalence(audit: Audit) -> Drawing | None:
    """Prevalence along the odds ratio."""
    found = audit.prevalence_sensitivity
    if found is None:
        return None
    groups = panels.GroupStyles(audit)
    everybody: dict[str, Any] = {"color": INK, "ls": "--" if audit.grouped else "-"}
    looks = {EVERYBODY: everybody} | groups.look
    curves = {n: c for n, c in found.curves.items() if n in looks and not c.reason}
    called = {EVERYBODY: audit.whom}
    if not curves:
        return None
    figure, ax = new_axes(8.2, 4.2)
    for name, curve in curves.items():
        look = looks[name]
        ax.fill_between(found.gamma, curve.low, curve.high, color=look["color"], alpha=0.1, lw=0)
        ax.plot(found.gamma, curve.value, lw=2, **look)
    for one in audit.known:  # where a known prevalence puts the untested
        at = one.odds_ratio
        if one.group in curves and at.estimable:
            ends = [[at.value - at.low], [at.high - at.value]]
            colour = looks[one.group]["color"]
            ax.errorbar(at.value, one.stated.value, xerr=ends, fmt="o", ms=6, color=colour)
    _odds_axis(ax, found.gamma)
    for name, curve in curves.items():
        points = zip(found.gamma, curve.value, curve.low, curve.high, strict=True)
        texts = [
            f"{called.get(name, name)}: {doc.in_sentence(Estimate(*share), 'percent')} at an odds "
            f"ratio of {ratio(gamma)}"
            for gamma, *share in points
        ]
        panels.hover(ax, found.gamma, curve.value, texts)
    ax.set_ylabel("prevalence")
    panels.share_marks(ax.yaxis)
    groups.key(figure, curves, [panels.line(audit.whom, **everybody)])
    b = found.breakdown
    if 1 < b.value <= found.gamma[-1] and not audit.known:
        _mark(ax, b.value, f"breakdown {ratio(b.value)}")
        ax.axvline(1 / b.value, color=WARN, lw=1.2, ls="--")
    return Drawing(
        figure,
        "sensitivity-prevalence",
        "If the untested differ: prevalence",
        "; ".join(
            f"{called.get(n, n)}: {percent(c.value[0])} to {percent(c.value[-1])}"
            for n, c in curves.items()
        )
        + f" as the odds ratio goes from {ratio(found.gamma[0])} to {ratio(found.gamma[-1])}.",
        "Odds of the outcome of untested people over those of tested people with the same "
        "features. At 1 they are alike; left of it the untested have the outcome less often than "
        f"their features suggest, right of it more often. Breakdown: “{b.conclusion}” no longer "
        "follows once groups may differ from 1 by this factor in opposite directions."
        + " Points: where the known prevalence puts the untested." * bool(audit.known)
        + groups.left_out(curves),
    )


@in_style
def draw_performance(audit: Audit) -> Drawing | None:
    """The range of the AUC, or of its difference, against an adversary's strength."""
    found = audit.performance_sensitivity
    if found is None:
        return None
    if found.difference is not None and found.difference_range is not None and found.pair:
        band, target = found.difference_range, 0.0
        what = f"AUC of group {found.pair[0]} minus group {found.pair[1]}"
    else:
        band, target, what = found.auc_range[EVERYBODY], 0.5, f"AUC, {audit.whom}"
    if not np.isfinite(band.low).any():
        return None
    figure, ax = new_axes(7.6, 3.9)
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
    panels.plain_marks(ax.yaxis)
    return Drawing(
        figure,
        "sensitivity-performance",
        "If the untested differ: performance",
        f"{what}: {number(middle)}; between {number(band.low[-1])} and {number(band.high[-1])} at "
        f"an odds ratio of {ratio(found.strength[-1])}.",
        f"Score: {found.score}. Line: {what} if untested people are like tested ones with the same "
        "features. Band: all possible estimates if every untested person's odds may differ by up "
        f"to this factor. Breakdown: “{b.conclusion}” no longer follows.",
    )


def _odds_axis(ax: Any, values: np.ndarray) -> None:
    marks = [m for m in (0.1, 0.2, 0.5, 1, 2, 5, 10) if values[0] * 0.99 <= m <= values[-1] * 1.01]
    panels.log_marks(ax, marks, values[0], values[-1])
    ax.set_xlabel("odds ratio between untested and tested people with the same features")


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
