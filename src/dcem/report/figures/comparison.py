"""The figures of a comparison: intervals side by side, ROC curves per group, the course of EM."""

from __future__ import annotations

import numpy as np

from dcem.compare.results import History
from dcem.compare.truth_results import Comparison
from dcem.report.figures.panels import thinned
from dcem.report.style import (
    ACCENT,
    FAINT,
    GRID,
    INK,
    MUTED,
    PAPER,
    RC,
    WARN,
    Drawing,
    group_colour,
    new_figure,
)
from dcem.report.words import level, number, with_interval


def draw_all(comparison: Comparison) -> dict[str, Drawing]:
    """Every figure this comparison has the numbers for, by name, in reading order."""
    import matplotlib

    with matplotlib.rc_context(RC):
        drawings = [intervals(comparison), roc_curves(comparison)]
        drawings += [
            em_history(m.name, m.history) for m in comparison.methods if m.history is not None
        ]
    return {drawing.name: drawing for drawing in drawings}


def roc_curves(comparison: Comparison) -> Drawing:
    """One panel a method: a ROC curve for each group, the area between two of them shaded."""
    methods = comparison.methods
    columns = min(len(methods), 4)
    rows = -(-len(methods) // columns)
    figure = new_figure(2.75 * columns, 3.15 * rows)
    figure.get_layout_engine().set(wspace=0.06)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for ax in axes.flat[len(methods) :]:
        ax.set_visible(False)
    names = [group.name for group in comparison.groups]
    for ax, method in zip(axes.flat, methods, strict=False):
        ax.plot([0, 1], [0, 1], color=FAINT, lw=1, ls=(0, (4, 3)))
        curves = [
            (code, thinned(method.curves[name]))
            for code, name in enumerate(names)
            if name in method.curves
        ]
        if len(curves) == 2:
            grid = np.union1d(curves[0][1].fpr, curves[1][1].fpr)
            first, second = (np.interp(grid, c.fpr, c.tpr) for _, c in curves)
            ax.fill_between(grid, first, second, color=ACCENT, alpha=0.28, lw=0)
        for code, curve in curves:
            ax.plot(curve.fpr, curve.tpr, color=group_colour(code), lw=1.8)
        ax.set_title(method.name)
        gap = with_interval(method.roc_gap).split(" [")[0]
        ax.text(0.97, 0.14, f"AUC {number(method.auc.value)}", ha="right", fontsize=9.5)
        ax.text(0.97, 0.04, f"gap {gap}", ha="right", fontsize=9.5, color=ACCENT)
        ax.set(xlim=(0, 1), ylim=(0, 1.005), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1], aspect="equal")
        ax.set_xticklabels(["0", ".5", "1"])
        ax.set_yticklabels(["0", ".5", "1"])
    for ax in axes[:, 0]:
        ax.set_ylabel("true positive rate")
    for ax in axes[-1]:
        ax.set_xlabel("false positive rate")
    first_ax = axes.flat[0]
    for code, name in enumerate(names):
        first_ax.text(
            0.04,
            0.93 - 0.085 * code,
            f"group {name}",
            color=group_colour(code),
            fontsize=9.5,
            fontweight="bold",
        )
    return Drawing(
        figure,
        "roc-curves",
        "How well each group is ranked",
        "ROC curves of each group, one panel a method. "
        + " ".join(
            f"{m.name}: AUC {with_interval(m.auc)}, ROC gap {with_interval(m.roc_gap)}."
            for m in methods
        ),
        "A curve nearer the top left ranks people better. The shaded area between the groups' "
        "curves is the ROC gap: 0 if the method serves both groups equally well.",
    )


def intervals(comparison: Comparison) -> Drawing:
    """AUC and ROC gap of every method as points with intervals, on two panels."""
    methods = comparison.methods
    figure = new_figure(9.6, 1.25 + 0.48 * len(methods))
    figure.get_layout_engine().set(wspace=0.05)
    left, right = figure.subplots(1, 2, sharey=True)
    heights = np.arange(len(methods))[::-1]
    for height, method in zip(heights, methods, strict=True):
        colour = MUTED if method.uses_truth else INK
        for ax, estimate in ((left, method.auc), (right, method.roc_gap)):
            if not estimate.estimable:
                ax.text(0.02, height, with_interval(estimate), transform=ax.get_yaxis_transform())
                continue
            ax.plot([estimate.low, estimate.high], [height] * 2, color=colour, lw=2.4)
            face = PAPER if method.uses_truth else colour
            ax.plot(estimate.value, height, "o", ms=7.5, mfc=face, mec=colour, mew=1.8)
            ax.annotate(
                number(estimate.value),
                (estimate.value, height),
                xytext=(0, 8),
                textcoords="offset points",
                ha="center",
                fontsize=9,
                color=colour,
            )
        right.plot([method.gap_by_chance] * 2, [height - 0.26, height + 0.14], color=WARN, lw=1.6)
    left.set_yticks(heights, [m.name for m in methods], color=INK, fontsize=11)
    left.set_title("AUC: more is better")
    right.set_title("ROC gap: less is fairer")
    right.set_xlim(left=-0.04 * right.get_xlim()[1])  # room for a label over a gap near zero
    for ax in (left, right):
        ax.set_ylim(-0.6, len(methods) - 0.25)
        ax.grid(axis="x", color=GRID)
        ax.set_axisbelow(True)
        ax.tick_params(length=0)
        ax.spines["left"].set_visible(False)
        ax.xaxis.set_major_formatter(lambda value, _: number(value, 2))
    return Drawing(
        figure,
        "intervals",
        "Methods side by side",
        " ".join(
            f"{m.name}: AUC {with_interval(m.auc)}, ROC gap {with_interval(m.roc_gap)}, "
            f"by chance up to {number(m.gap_by_chance)}."
            for m in methods
        ),
        f"Points with {level(comparison)} intervals from {comparison.resamples:,} resamples of the "
        "test rows. Hollow: a method that was given the truth, for reference. Red mark: the gap "
        "that groups drawn at random would show in one case out of twenty; the gap is an absolute "
        "value and is never quite zero.",
    )


def em_history(name: str, history: History) -> Drawing:
    """The losses of an EM fit by iteration, with the iteration that was kept."""
    import matplotlib

    figure = new_figure(7.2, 2.9)
    with matplotlib.rc_context(RC):
        ax = figure.subplots()
        for (split, loss), colour in zip(history.loss.items(), (INK, ACCENT, MUTED), strict=False):
            steps = np.arange(1, len(loss) + 1)
            marker = "o" if len(loss) <= 60 else None
            ax.plot(steps, loss, color=colour, lw=1.8, marker=marker, ms=3, label=split)
        figure.legend(loc="outside lower left", labelcolor="linecolor", ncols=3, fontsize=9.5)
    ax.axvline(history.kept, color=WARN, lw=1.2, ls=(0, (4, 3)))
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
