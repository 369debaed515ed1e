"""Curves of every method as one target sees it: ROC by group, calibration, net benefit."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcem.compare.results import Judgement, TableComparison
from dcem.estimation.results import EVERYBODY, Target
from dcem.report.cells import said
from dcem.report.figures.panels import (
    dashed,
    diagonal,
    group_line,
    key_of_groups,
    left_out,
    panels,
    plain_marks,
    thinned,
    unit_axes,
)
from dcem.report.style import ACCENT, FAINT, GRID, INK, MUTED, Drawing
from dcem.text import number

_ABOUT_THE_GAP = (
    "Shaded: the area between the curves of the two groups that lie furthest apart, the ROC gap. A "
    "gap is never quite zero; the table says what it would be by chance. "
)


def roc_curves(comparison: TableComparison, target: Target) -> Drawing | None:
    """One panel a method: a curve for each group, the area between the two furthest shaded."""
    judged = _judged(comparison, target, "roc_curves")
    if not judged:
        return None
    names = [group.name for group in comparison.groups]
    drawn: set[str] = set()
    with panels(list(judged), sharex=True, sharey=True) as (figure, axes):
        for ax, one in zip(axes, judged.values(), strict=True):
            diagonal(ax)
            curves = {g: thinned(one.roc_curves[g]) for g in names if g in one.roc_curves}
            if one.gap_pair is not None and set(one.gap_pair) <= set(curves):
                first, second = (curves[name] for name in one.gap_pair)
                grid = np.union1d(first.fpr, second.fpr)
                between = [np.interp(grid, c.fpr, c.tpr) for c in (first, second)]
                ax.fill_between(grid, *between, color=ACCENT, alpha=0.28, lw=0)
            drawn |= set(curves)
            for name, curve in curves.items():
                ax.plot(curve.fpr, curve.tpr, **group_line(names.index(name)), lw=1.7)
            unit_axes(ax)
            ax.text(0.97, 0.14, f"AUC {number(one.auc.value)}", ha="right", fontsize=9.5)
            if len(names) > 1:
                gap = number(one.roc_gap.value) if one.roc_gap.estimable else "not estimable"
                ax.text(0.97, 0.04, f"gap {gap}", ha="right", fontsize=9.5, color=ACCENT)
            ax.set(xlabel="false positive rate", ylabel="true positive rate")
        key_of_groups(figure, names, drawn)
    return Drawing(
        figure,
        f"roc-{target.key}",
        f"ROC curves by group, {target.name}",
        " ".join(
            f"{name}: AUC {said(one.auc)}, ROC gap {said(one.roc_gap)}."
            for name, one in judged.items()
        ),
        "A curve nearer the top left ranks people better. "
        + ("" if len(names) == 1 else _ABOUT_THE_GAP)
        + f"{target.assumption}{left_out(names, drawn)}",
    )


def calibration(comparison: TableComparison, target: Target) -> Drawing | None:
    """One panel a method: estimated against predicted risk, for everybody and for each group."""
    judged = _judged(comparison, target, "calibration_curves")
    if not judged:
        return None
    names = [group.name for group in comparison.groups]
    curves = [c for one in judged.values() for c in one.calibration_curves.values()]
    most = [max(c.predicted.max(), min(c.observed.max(), 1.0)) for c in curves if len(c.predicted)]
    end = min(1.0, 1.08 * float(max(most, default=1.0)))
    drawn: set[str] = set()
    with panels(list(judged), sharex=True, sharey=True) as (figure, axes):
        for ax, one in zip(axes, judged.values(), strict=True):
            diagonal(ax, end)
            for name, points in one.calibration_curves.items():
                if name != EVERYBODY and len(points.predicted) > 1:
                    drawn.add(name)
                    look = group_line(names.index(name))
                    ax.plot(points.predicted, points.observed, **look, lw=1.2, alpha=0.9)
            everybody = one.calibration_curves.get(EVERYBODY)
            if everybody is not None:
                x, y = everybody.predicted, everybody.observed
                ax.vlines(x, everybody.low, everybody.high, color=INK, lw=1.4)
                ax.plot(x, y, "o", color=INK, ms=4.5)
            ax.set(xlim=(0, end), ylim=(-0.02 * end, end), aspect="equal")
            ax.set(xlabel="predicted risk", ylabel="estimated risk")
            plain_marks(ax.xaxis, ax.yaxis)
            error = number(one.calibration_error.value)
            if one.calibration_error.estimable:
                ax.text(0.97, 0.04, f"error {error}", ha="right", transform=ax.transAxes)
        key_of_groups(figure, names, drawn, [_dot("everybody, with interval")])
    return Drawing(
        figure,
        f"calibration-{target.key}",
        f"Calibration, {target.name}",
        "Estimated against predicted risk. "
        + " ".join(
            f"{name}: calibration error {said(one.calibration_error)}."
            for name, one in judged.items()
        ),
        "Points on the dashed line: what was predicted is what happened. Below it, risks are "
        "overstated; above it, understated. Each point is a bin of equal numbers of people; bins "
        "of fewer than ten are left out, and the group lines have no intervals: read them as "
        "hints." + left_out(names, drawn),
    )


def decision_curves(comparison: TableComparison, target: Target) -> Drawing | None:
    """One panel a method: net benefit against the risk at which somebody acts."""
    judged = {
        name: one
        for name, one in _judged(comparison, target, "decision_curve").items()
        if one.decision_curve is not None
    }
    if not judged:
        return None
    drawn = [one.decision_curve for one in judged.values() if one.decision_curve is not None]
    top = max(0.001, *(float(max(c.net_benefit.max(), c.treat_all.max())) for c in drawn))
    # Acting on everybody soon costs more than any axis should hold; the methods must stay on it.
    bottom = min(-0.1 * top, *(float(c.net_benefit.min()) for c in drawn))
    left, right = (f(float(f(c.threshold)) for c in drawn) for f in (min, max))
    reference = next(iter(judged.values())).decision_curve
    with panels(list(judged), 2.6, sharex=True, sharey=True) as (figure, axes):
        for ax, curve in zip(axes, drawn, strict=True):
            x = curve.threshold
            ax.axhline(0, color=FAINT, lw=1)
            ax.plot(x, curve.treat_all, color=MUTED, lw=1.2, ls=(0, (4, 3)))
            if reference is not None and curve is not reference:
                ax.plot(reference.threshold, reference.net_benefit, color=MUTED, lw=1.2)
            ax.fill_between(x, curve.low, curve.high, color=ACCENT, alpha=0.22, lw=0)
            ax.plot(x, curve.net_benefit, color=ACCENT, lw=1.9)
            ax.set(xlim=(left, right), ylim=(1.08 * bottom, 1.12 * top))
            ax.set(xlabel="risk at which one acts", ylabel="net benefit")
            ax.grid(axis="y", color=GRID)
            plain_marks(ax.xaxis, ax.yaxis)
        _key_of_decisions(figure, next(iter(judged)))
    return Drawing(
        figure,
        f"decisions-{target.key}",
        f"Decision curves, {target.name}",
        f"Net benefit of acting on each method's score, for risks from {number(left, 2)} to "
        f"{number(right, 2)}, beside acting on everybody and on nobody.",
        "Net benefit counts true positives per person and takes off false ones, weighed by the "
        "risk at which one would act. A method helps where its line is above both zero (act on "
        "nobody) and the dashed line (act on everybody). Shaded: intervals, point by point.",
    )


def _judged(comparison: TableComparison, target: Target, what: str) -> dict[str, Judgement]:
    return {
        method.name: method.judgements[target.key]
        for method in comparison.methods
        if target.key in method.judgements and getattr(method.judgements[target.key], what)
    }


def _dot(label: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=INK, marker="o", ms=4.5, lw=1.4, label=label)


def _key_of_decisions(figure: Any, reference: str) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=ACCENT, lw=2.2, label="the method"),
        Line2D([], [], color=MUTED, lw=1.2, label=f"{reference}, for reference"),
        dashed("act on everybody", MUTED),
    ]
    columns = 3 if figure.get_figwidth() > 7 else 1
    figure.set_figheight(figure.get_figheight() + 0.22 * (3 // columns - 1))
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, fontsize=9.5)
