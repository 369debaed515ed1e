"""Curves of every method as one target sees it: ROC by group, calibration, net benefit."""

from __future__ import annotations

import numpy as np

from dcem.compare.results import Judgement, TableComparison
from dcem.estimation.results import EVERYBODY, Target
from dcem.report.document import in_sentence
from dcem.report.figures import panels
from dcem.report.style import ACCENT, FAINT, GRID, INK, MUTED, Drawing, in_style
from dcem.text import estimated, number, percent

AT = (0.05, 0.1, 0.2, 0.3, 0.5)  # false positive rates at which curves say their numbers
_ABOUT_THE_GAP = (
    "Shaded: the ROC gap, the area between the curves of the two groups that lie furthest apart. A "
    "gap is never quite zero; the table says what it would be by chance. "
)


@in_style
def roc_curves(comparison: TableComparison, target: Target) -> Drawing | None:
    """One panel per method: a curve for each group, the area between the two furthest shaded."""
    judged = _judged(comparison, target, "roc_curves")
    if not judged:
        return None
    groups = panels.GroupStyles(comparison)
    several = len(groups.names) > 1
    drawn: set[str] = set()
    figure, axes = panels.side_by_side(list(judged), "false positive rate", "true positive rate")
    for ax, one in zip(axes, judged.values(), strict=True):
        panels.diagonal(ax)
        curves = {name: panels.thinned(curve) for name, curve in one.roc_curves.items()}
        if one.gap_pair is not None and set(one.gap_pair) <= set(curves):
            first, second = (curves[name] for name in one.gap_pair)
            grid = np.union1d(first.fpr, second.fpr)
            between = [np.interp(grid, c.fpr, c.tpr) for c in (first, second)]
            ax.fill_between(grid, *between, color=ACCENT, alpha=0.28, lw=0)
        for name, look in groups.look.items():
            if name in curves:
                drawn.add(name)
                ax.plot(curves[name].fpr, curves[name].tpr, **look, lw=1.7)
        marks = {"ticks": [0, 0.5, 1], "labels": ["0", ".5", "1"]}
        ax.set(xlim=(0, 1), ylim=(0, 1.005), aspect="equal")
        ax.set_xticks(**marks)
        ax.set_yticks(**marks)
        for name in [name for name in groups.look if name in curves]:
            rates = np.interp(AT, curves[name].fpr, curves[name].tpr)
            labels = [
                f"{name}: true positive rate {percent(tpr)}, false positive rate {percent(fpr)}"
                for fpr, tpr in zip(AT, rates, strict=True)
            ]
            panels.hover(ax, AT, rates, labels)
        ax.text(0.97, 0.14, f"AUC {number(one.auc.value)}", ha="right", fontsize=9.5)
        if several:
            gap = number(one.roc_gap.value) if one.roc_gap.estimable else "not estimable"
            ax.text(0.97, 0.04, f"gap {gap}", ha="right", fontsize=9.5, color=ACCENT)
    groups.key(figure, drawn)
    return Drawing(
        figure,
        f"roc-{target.key}",
        f"ROC curves by group, {target.name}",
        " ".join(
            f"{name}: AUC {in_sentence(one.auc)}, ROC gap {in_sentence(one.roc_gap)}."
            for name, one in judged.items()
        ),
        "A curve nearer the top left ranks people better. "
        + _ABOUT_THE_GAP * several
        + f"{target.assumption}{groups.left_out(drawn)}",
    )


@in_style
def calibration_curves(comparison: TableComparison, target: Target) -> Drawing | None:
    """One panel per method: estimated against predicted risk, of all and of each group."""
    judged = _judged(comparison, target, "calibration_curves")
    if not judged:
        return None
    groups = panels.GroupStyles(comparison)
    curves = [c for one in judged.values() for c in one.calibration_curves.values()]
    most = [max(c.predicted.max(), min(c.observed.max(), 1.0)) for c in curves if len(c.predicted)]
    every = [one.calibration_curves.get(EVERYBODY) for one in judged.values()]
    most += [min(c.high.max(), 1.0) for c in every if c is not None and len(c.high)]
    end = min(1.0, 1.08 * float(max(most, default=1.0)))
    drawn: set[str] = set()
    figure, axes = panels.side_by_side(list(judged), "predicted risk", "estimated risk")
    for ax, one in zip(axes, judged.values(), strict=True):
        panels.diagonal(ax, end)
        for name, points in one.calibration_curves.items():
            if name in groups.look and len(points.predicted) > 1:
                drawn.add(name)
                look = groups.look[name]
                ax.plot(points.predicted, points.observed, **look, lw=1.2, alpha=0.9)
        everybody = one.calibration_curves.get(EVERYBODY)
        if everybody is not None:
            x, y = everybody.predicted, everybody.observed
            ax.vlines(x, everybody.low, everybody.high, color=INK, lw=1.4)
            ax.plot(x, y, "o", color=INK, ms=4.5)
        ax.set(xlim=(0, end), ylim=(-0.02 * end, end), aspect="equal")
        for name, points in one.calibration_curves.items():
            if name == EVERYBODY or name in drawn:
                seen = zip(points.predicted, points.observed, strict=True)
                whose = "all together" if name == EVERYBODY else name
                labels = [
                    f"{whose}: predicted {percent(p)}, estimated {percent(o)}" for p, o in seen
                ]
                panels.hover(ax, points.predicted, points.observed, labels)
        panels.plain_marks(ax.xaxis, ax.yaxis)
        if one.calibration_error.estimable:
            found = one.calibration_error
            error, _ = estimated(found.value, found.low, found.high, "error")
            ax.text(0.97, 0.04, f"error {error}", ha="right", transform=ax.transAxes)
    everybody_look = {"color": INK, "marker": "o", "ms": 4.5, "lw": 1.4}
    groups.key(figure, drawn, [panels.line("all together, with interval", **everybody_look)])
    return Drawing(
        figure,
        f"calibration-{target.key}",
        f"Calibration, {target.name}",
        "Estimated against predicted risk. "
        + " ".join(
            f"{name}: calibration error {in_sentence(one.calibration_error, 'error')}."
            for name, one in judged.items()
        ),
        "Points on the dashed line: what was predicted is what happened. Below it, risks are "
        "overstated; above it, understated. Each point is a bin of equal numbers of people; bins "
        "of fewer than ten are left out, and the group lines have no intervals: read them as "
        "hints." + groups.left_out(drawn),
    )


@in_style
def decision_curves(comparison: TableComparison, target: Target) -> Drawing | None:
    """One panel per method: net benefit against the risk at which somebody acts, by group too."""
    judged = _judged(comparison, target, "decision_curves")
    if not judged:
        return None
    groups = panels.GroupStyles(comparison)
    drawn = [one.decision_curves[EVERYBODY] for one in judged.values()]
    by_group = [
        {name: curve for name, curve in one.decision_curves.items() if name in groups.look}
        for one in judged.values()
    ]
    lines = [*drawn, *(curve for curves in by_group for curve in curves.values())]
    top = max(0.001, *(float(np.nanmax([c.net_benefit, c.treat_all])) for c in lines))
    # Acting on everybody soon costs more than any axis should hold; the methods must stay on it.
    bottom = min(-0.1 * top, *(float(np.nanmin([*c.net_benefit, 0.0])) for c in lines))
    left, right = (f(float(f(c.threshold)) for c in drawn) for f in (min, max))
    usual = comparison.reference if comparison.reference in judged else next(iter(judged))
    reference = judged[usual].decision_curves[EVERYBODY]
    figure, axes = panels.side_by_side(list(judged), "risk at which one acts", "net benefit", 2.6)
    for ax, curve, parts in zip(axes, drawn, by_group, strict=True):
        x = curve.threshold
        ax.axhline(0, color=FAINT, lw=1)
        for name, part in parts.items():
            ax.plot(x, part.net_benefit, **groups.look[name], lw=1.2, alpha=0.9)
        ax.plot(x, curve.treat_all, color=MUTED, lw=1.2, ls=panels.DASHED)
        if curve is not reference:
            ax.plot(reference.threshold, reference.net_benefit, color=MUTED, lw=1.2)
        ax.fill_between(x, curve.low, curve.high, color=ACCENT, alpha=0.22, lw=0)
        ax.plot(x, curve.net_benefit, color=ACCENT, lw=1.9)
        ax.set(xlim=(left, right), ylim=(1.08 * bottom, 1.12 * top))
        for name, part in {"all together": curve, **parts}.items():
            some = slice(None, None, -(-len(x) // 6))
            seen = zip(x[some], part.net_benefit[some], strict=True)
            labels = [f"{name}: net benefit {number(b)}, acting from {percent(a)}" for a, b in seen]
            panels.hover(ax, x[some], part.net_benefit[some], labels)
        ax.grid(axis="y", color=GRID)
        panels.plain_marks(ax.xaxis, ax.yaxis)
    entries = [
        panels.line("the method, all together", color=ACCENT, lw=2.2),
        panels.line(f"{usual}, for reference", color=MUTED, lw=1.2),
        panels.line("act on everybody", color=MUTED, lw=1.2, ls=panels.DASHED),
    ]
    named = {name for curves in by_group for name in curves}
    groups.key(figure, named, entries)
    return Drawing(
        figure,
        f"decisions-{target.key}",
        f"Decision curves, {target.name}",
        f"Net benefit of acting on each method's score, for risks from {number(left, 2)} to "
        f"{number(right, 2)}, beside acting on everybody and on nobody.",
        "Net benefit counts true positives per person minus false ones, weighted by the "
        "risk at which one would act. A method helps where its line is above both zero (act on "
        "nobody) and the dashed line (act on everybody). Shaded: intervals, point by point. "
        "Thin lines: per person of one group; they differ where the outcome is more common in one."
        + (groups.left_out(named) if named else ""),
    )


def _judged(comparison: TableComparison, target: Target, what: str) -> dict[str, Judgement]:
    """The judgements of each method that have this figure."""
    return {
        method.name: method.judgements[target.key]
        for method in comparison.methods
        if target.key in method.judgements and getattr(method.judgements[target.key], what)
    }
