"""A simulated task as a picture: the data with both boundaries, what is tested, what is seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcem.report.style import ACCENT, FAINT, INK, WARN, Drawing, group_colour, in_style, new_figure
from dcem.table.messages import InputError
from dcem.tasks import SinusoidProcess, Task
from dcem.text import percent

_DOTS = 1_500  # of a group in one panel; more would hide each other


@in_style
def draw_task(task: Task) -> Drawing:
    """One row per group, three columns: the truth, who was tested, and what the table then shows.

    Over the dots lie the outcome boundary, where P(Y|x) = 1/2 (solid, the same for both groups),
    and the testing boundary of the group, where P(T|x,a) = 1/2 (dashed). Of many people to learn
    from, a random sample is drawn; the percentages count everybody.

    Raises
    ------
    InputError
        For a task whose law is not known in two features.
    """
    if not isinstance(task.process, SinusoidProcess):
        raise InputError(
            f"Only simulated tasks with two features can be drawn; this one is a {task.kind!r} "
            f"task with {len(task.train.feature_names)}."
        )
    problem, ill = task.train, task.truth["train"] == 1
    rng = np.random.default_rng(0)
    figure = new_figure(9.6, 3.1 * problem.n_groups + 0.6)
    axes = figure.subplots(problem.n_groups, 3, sharex=True, sharey=True, squeeze=False)
    low, high = np.percentile(problem.X, [0.3, 99.7], axis=0)
    said = []
    for code, name in enumerate(problem.group_names):
        here = np.flatnonzero(problem.group == code)
        shown = rng.permutation(here)[:_DOTS]
        positives, tested = ill[here].sum(), problem.tested[here].sum()
        seen = (ill & problem.tested)[here].sum()
        titles = [
            f"Truth: {percent(positives / len(here))} positive",
            f"Tested: {percent(tested / len(here))}",
            f"Seen: {percent(seen / len(here))} positive",
        ]
        said.append(f"Group {name}: " + ", ".join(t.lower() for t in titles) + ".")
        x, truth, looked = problem.X[shown], ill[shown], problem.tested[shown]
        colour = group_colour(code)
        for ax, title in zip(axes[code], titles, strict=True):
            ax.set_title(title, fontsize=10.5)
            ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        _dots(axes[code][0], x, truth, colour)
        _dots(axes[code][1], x, looked, colour)
        _seen(axes[code][2], x, truth, looked, colour)
        for ax in axes[code]:
            _boundaries(ax, task.process, code)
        axes[code][0].set_ylabel(f"group {name}\nx₁", color=colour)
    for ax in axes[-1]:
        ax.set_xlabel("x₀")
    figure.legend(handles=_key(), loc="outside lower center", ncols=3, fontsize=9.5)
    return Drawing(
        figure,
        "task-train",
        "The data, who is tested, and what is seen",
        " ".join(said),
        "Each dot is a person. Left, large dots are truly positive; middle, large dots were "
        "tested; right, large dots are positives that the table shows, rings are tested negatives, "
        "and crosses are positives that nobody looked for.",
    )


def _dots(ax: Any, x: np.ndarray, marked: np.ndarray, colour: str) -> None:
    ax.scatter(*x[~marked].T, s=3, color=FAINT, lw=0)
    ax.scatter(*x[marked].T, s=8, color=colour, lw=0)


def _seen(ax: Any, x: np.ndarray, ill: np.ndarray, tested: np.ndarray, colour: str) -> None:
    ax.scatter(*x[~tested & ~ill].T, s=3, color=FAINT, lw=0)
    ax.scatter(*x[tested & ~ill].T, s=9, facecolors="none", edgecolors=colour, lw=0.5)
    ax.scatter(*x[~tested & ill].T, s=11, color=WARN, marker="x", lw=0.7)
    ax.scatter(*x[tested & ill].T, s=11, color=colour, lw=0)


def _boundaries(ax: Any, process: SinusoidProcess, group: int) -> None:
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    across, up = np.meshgrid(np.linspace(left, right, 220), np.linspace(bottom, top, 220))
    grid = np.column_stack([across.ravel(), up.ravel()])
    outcome = process.outcome_probability(grid).reshape(across.shape)
    testing = process.testing_probability(grid, group).reshape(across.shape)
    ax.contour(across, up, outcome, levels=[0.5], colors=INK, linewidths=1.6)
    if testing.min() < 0.5 < testing.max():
        ax.contour(
            across, up, testing, levels=[0.5], colors=ACCENT, linewidths=1.8, linestyles="--"
        )


def _key() -> list[Any]:
    from matplotlib.lines import Line2D

    def dot(label: str, **style: Any) -> Line2D:
        return Line2D([], [], ls="none", marker=style.pop("marker", "o"), label=label, **style)

    return [
        Line2D([], [], color=INK, lw=1.6, label="outcome boundary, P(Y|x) = ½"),
        Line2D([], [], color=ACCENT, lw=1.8, ls="--", label="testing boundary, P(T|x,a) = ½"),
        dot("positive / tested / positive seen", color=INK, ms=4),
        dot("tested, negative", mfc="none", mec=INK, mew=0.8, ms=4),
        dot("positive nobody looked for", color=WARN, marker="x", ms=5),
        dot("all others", color=FAINT, ms=3),
    ]
