"""Figures of the documentation from recorded runs: `python experiments/figures.py`."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

from _record import RESULTS
from dcem.report.style import INK, MUTED, RC, group_colour, new_figure

IMAGES = RESULTS.parent / "docs" / "img"


def engine_steps() -> None:
    """Time of one M-step against the number of networks trained as one."""
    table = pd.read_csv(RESULTS / "engine_steps.csv")
    figure = new_figure(6.4, 3.6)
    axes = figure.add_subplot()
    for number, (kind, part) in enumerate(table.groupby("kind", sort=False)):
        axes.plot(part.networks, part.ms_per_step, "o-", color=group_colour(number), ms=4)
        last = part.iloc[-1]
        axes.annotate(
            kind, (last.networks, last.ms_per_step), (6, -3), textcoords="offset points",
            color=group_colour(number), fontsize=9,
        )  # fmt: skip
    axes.axhline(9.4, color=MUTED, lw=0.8, ls=":")
    axes.text(1, 10.2, "one network, the paper's loop: 9.4 ms", color=MUTED, fontsize=9)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(0.9, 4200)
    axes.set_xticks(table.networks.unique(), table.networks.unique())
    axes.set_xlabel("networks trained as one (20,000 rows each)")
    axes.set_ylabel("milliseconds a step")
    axes.grid(axis="y")
    save(figure, "engine-steps")


def schedules() -> None:
    """Fast against published schedule, phase by phase, at the five settings."""
    table = pd.read_csv(RESULTS / "dcem_schedules.csv")
    settings = sorted(set(zip(table.q_y, table.k, table.q_t, strict=True)))
    figure = new_figure(8.2, 4.4)
    panels = figure.subplots(2, len(settings), sharey="row")
    models = {
        "tested-only, published": ("tested-only", 2),
        "published": ("DCEM, published", 1),
        "fast": ("DCEM, fast", 0),
    }
    for column, (q_y, k, q_t) in enumerate(settings):
        part = table[(table.q_y == q_y) & (table.k == k) & (table.q_t == q_t)]
        for row, metric in enumerate(("auc", "roc_gap")):
            axes = panels[row, column]
            for place, (model, (_, colour)) in enumerate(models.items()):
                values = part[part.model == model].sort_values("phase")[metric]
                spots = place + np.linspace(-0.25, 0.25, len(values))
                axes.plot(spots, values, "o", ms=3, color=group_colour(colour), alpha=0.8)
                axes.plot([place - 0.35, place + 0.35], [values.median()] * 2, color=INK, lw=1.5)
            axes.set_xticks(
                range(3), [name for name, _ in models.values()], rotation=90, fontsize=8
            )
            axes.grid(axis="y")
            if row == 0:
                axes.set_title(f"q_y {q_y:g}, k {k:g}, q_t {q_t:g}", fontsize=8.5)
                axes.set_xticks([])
    panels[0, 0].set_ylabel("AUC")
    panels[1, 0].set_ylabel("ROC gap")
    save(figure, "schedules")


def rows() -> None:
    """Time and memory of a default fit against the number of rows."""
    path = RESULTS / "rows.csv"
    if not path.exists():
        return
    table = pd.read_csv(path)
    figure = new_figure(7.2, 3.2)
    left, right = figure.subplots(1, 2)
    left.plot(table.rows, table.fit_seconds, "o-", color=group_colour(0), ms=4)
    left.set(xscale="log", yscale="log", xlabel="rows (20 features)", ylabel="seconds to fit")
    right.plot(table.rows, table.peak_mb, "o-", color=group_colour(0), ms=4, label="peak")
    right.plot(table.rows, table.table_mb, "o--", color=group_colour(1), ms=4, label="the table")
    right.set(xscale="log", xlabel="rows (20 features)", ylabel="megabytes")
    right.legend()
    for axes in (left, right):
        axes.grid(axis="y")
    save(figure, "rows")


def save(figure: object, name: str) -> None:
    """Write an SVG that is the same from run to run."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(RC | {"svg.hashsalt": name}):
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None}, facecolor="white")  # type: ignore[attr-defined]
    print("wrote", Path("docs/img") / f"{name}.svg")


if __name__ == "__main__":
    with matplotlib.rc_context(RC):
        engine_steps()
        schedules()
        rows()
