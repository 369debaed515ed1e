"""Points with intervals: every method under every target, and on planted outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import fill
from typing import Any

import numpy as np

from dcem.compare.results import Judgement, TableComparison
from dcem.metrics.estimate import Estimate
from dcem.report.cells import said
from dcem.report.figures.panels import WIDTH, plain_marks
from dcem.report.style import (
    ACCENT,
    CAUTION,
    FAINT,
    GRID,
    INK,
    MUTED,
    PAPER,
    WARN,
    Drawing,
    in_style,
    new_figure,
    tell,
)

# How a target is drawn: colour, marker, hollow
LOOKS = {
    "tested": (MUTED, "o", True),
    "ipw": (CAUTION, "D", False),
    "dr": (INK, "o", False),
    "truth": (ACCENT, "s", False),
}


@in_style
def forest(comparison: TableComparison, pair: tuple[str, str] | None) -> Drawing:
    """AUC, AUC difference of a pair and ROC gap of every method, a point for each target."""
    methods, targets = comparison.methods, [t for t in comparison.targets if t.available]
    pictures: list[tuple[str, Callable[[Judgement], Estimate | None]]] = [
        ("AUC", lambda judged: judged.auc)
    ]
    if pair is not None:
        pictures += [
            ("AUC difference", lambda judged: judged.auc_differences.get(pair)),
            ("ROC gap", lambda judged: judged.roc_gap),
        ]
    step = 0.8 / max(len(targets), 1)
    figure = new_figure(WIDTH, 1.3 + (0.2 * len(targets) + 0.16) * len(methods))
    figure.get_layout_engine().set(wspace=0.06)
    axes = figure.subplots(1, len(pictures), sharey=True, squeeze=False)[0]
    for ax, (title, of) in zip(axes, pictures, strict=True):
        for row, method in enumerate(methods):
            for place, target in enumerate(targets):
                height = -row - step * (place - (len(targets) - 1) / 2)
                judged = method.judgements[target.key]
                _point(ax, of(judged), height, *LOOKS[target.key])
                if title == "ROC gap":
                    ax.plot([judged.gap_by_chance], [height], "|", color=WARN, ms=9, mew=1.6)
        ax.set_title(title)
        _dress(ax, [m.name for m in methods])
        if title == "AUC difference":
            ax.axvline(0, color=FAINT, lw=1.2, zorder=0)
        if title == "ROC gap":
            ax.set_xlim(left=0)
    figure.legend(
        handles=[
            *(_entry(target.name, *LOOKS[target.key]) for target in targets),
            *([_entry("gap by chance", WARN, "|", False)] if pair else []),
        ],
        loc="outside lower left",
        ncols=3,
        fontsize=9.5,
    )
    which = "AUC difference: " + (f"{pair[0]} minus {pair[1]}. " if pair else "")
    return Drawing(
        figure,
        "forest",
        "Methods side by side",
        " ".join(
            f"{m.name}, {t.name}: AUC {said(m.judgements[t.key].auc)}, "
            f"ROC gap {said(m.judgements[t.key].roc_gap)}."
            for m in methods
            for t in targets
        ),
        f"Points with {100 * comparison.level:g} % intervals. "
        + (which if pair else "")
        + (
            "Red marks: the gap that groups drawn at random would stay below in 95 of 100 cases. "
            if pair
            else ""
        )
        + "Where the kinds of estimate disagree, who was tested matters for the answer.",
    )


@in_style
def planted_forest(comparison: TableComparison) -> Drawing | None:
    """How well every method recovers planted outcomes, a panel for each family."""
    planted = comparison.planted
    if planted is None:
        return None
    names = list(dict.fromkeys(score.method for score in planted.scores))
    known = {method.name for method in comparison.methods}
    figure = new_figure(WIDTH, 1.1 + 0.36 * len(names))
    figure.get_layout_engine().set(wspace=0.06)
    axes = figure.subplots(1, len(planted.families), sharey=True, sharex=True, squeeze=False)[0]
    for ax, family in zip(axes, planted.families, strict=True):
        for score in planted.scores:
            if score.family == family.name:
                hollow = score.method not in known
                look = (MUTED if hollow else INK, "o", hollow)
                _point(ax, score.auc, -names.index(score.method), *look)
        title = family.name + (" *" if family.violates else "")
        ax.set_title(fill(title, 72 // len(planted.families)), fontsize=10.5)
        _dress(ax, names)
    return Drawing(
        figure,
        "planted",
        "Which method recovers planted outcomes?",
        " ".join(f"{s.method}, {s.family}: AUC {said(s.auc)}." for s in planted.scores),
        "AUC against the planted truth of everybody, with intervals over "
        f"{planted.repetitions} repetitions. Hollow: a model that was given the truth. "
        "*: here an assumption of dcem fails.",
    )


def _point(
    ax: Any, estimate: Estimate | None, height: float, colour: str, marker: str, hollow: bool
) -> None:
    if estimate is None or not estimate.estimable:
        ax.text(
            0.02, height, "not estimable", transform=ax.get_yaxis_transform(), va="center",
            fontsize=8.5, color=MUTED, style="italic",
        )  # fmt: skip
        return
    ax.plot([estimate.low, estimate.high], [height] * 2, color=colour, lw=1.8)
    face = PAPER if hollow else colour
    (point,) = ax.plot(estimate.value, height, marker, ms=5.5, mfc=face, mec=colour, mew=1.5)
    tell(point, [said(estimate)])


def _dress(ax: Any, names: Sequence[str]) -> None:
    ax.set_yticks(-np.arange(len(names)), names, color=INK, fontsize=10.5)
    ax.set_ylim(-len(names) + 0.45, 0.55)
    for line in range(1, len(names)):
        ax.axhline(-line + 0.5, color=GRID, lw=0.8, zorder=0)
    ax.grid(axis="x", color=GRID)
    ax.set_axisbelow(True)
    ax.tick_params(length=0)
    ax.spines["left"].set_visible(False)
    plain_marks(ax.xaxis)


def _entry(label: str, colour: str, marker: str, hollow: bool) -> Any:
    from matplotlib.lines import Line2D

    face = PAPER if hollow else colour
    line = 0.0 if marker == "|" else 1.8
    return Line2D(
        [], [], color=colour, marker=marker, ms=6, mfc=face, mew=1.5, lw=line, label=label
    )
