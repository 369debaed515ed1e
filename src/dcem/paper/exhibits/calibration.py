"""Is the testing probability that DCEM uses calibrated, and what does a temperature do to it?

The propensity network of the published DCEM (seed 42, raw features, 1000 full-batch steps) is
trained once for each of the 12 boundaries; its log-odds are divided by the temperature afterwards.
Curves are on the test split, in ten bins of equal width. The paper shows one curve for each of
τ = 0.1, 1, 10 and does not say of which boundary, split or binning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dcem.paper.drawing import Picture, heading
from dcem.paper.sources import Found
from dcem.report.style import FAINT, GRID, group_colour, new_figure
from dcem.tasks.sinusoid.make import DEGREES
from dcem.text import number

TEMPERATURES = (0.01, 0.1, 1.0, 10.0, 100.0)
SHOWN = (0.1, 1.0, 10.0)
N_BINS = 10


def curves(
    phases: Sequence[float] = DEGREES, *, steps: int = 1000, device: str = "auto"
) -> pd.DataFrame:
    """Calibration curves of the testing probability, by phase, temperature and group.

    Columns: q_y, k, q_t, phase, temperature, group ("all", "0", "1"), bin, predicted, observed,
    count. Bins that hold nobody are left out.
    """
    from dcem.engine import Rows, resolve_device
    from dcem.learners.preprocess import Preprocessor
    from dcem.methods.fleets import stack
    from dcem.methods.propensity import PropensitySettings, fit_propensity, log_odds
    from dcem.methods.training_table import TrainingTable
    from dcem.tasks import make_sinusoid

    tasks = [make_sinusoid(0.5, 1.0, 2.0, float(np.radians(phase))) for phase in phases]
    as_they_are = Preprocessor.fit(tasks[0].train.X, None)

    def rows(split: str) -> Rows:
        tables = [TrainingTable.of(task.split(split), as_they_are, None) for task in tasks]
        return stack(tables, 1, resolve_device(device))

    fleet = fit_propensity(
        rows("train"), None, PropensitySettings(steps=steps), n_groups=2, seeds=[42] * len(tasks)
    )
    logit = log_odds(fleet, rows("test"), 2).double().cpu().numpy()  # [phases, n]
    found = []
    for phase, task, u in zip(phases, tasks, logit, strict=True):
        for temperature in TEMPERATURES:
            score = 1 / (1 + np.exp(-np.clip(u / temperature, -700, 700)))
            for group in ("all", "0", "1"):
                member = np.ones(len(u), bool) if group == "all" else task.test.group == int(group)
                where: dict[Any, Any] = {"q_y": 0.5, "k": 1.0, "q_t": 2.0, "phase": phase}
                where |= {"temperature": temperature, "group": group}
                curve = _share_tested_by_bin(score[member], task.test.tested[member])
                found += [where | one for one in curve.to_dict("records")]
    return pd.DataFrame(found)


def _share_tested_by_bin(score: np.ndarray, tested: np.ndarray) -> pd.DataFrame:
    """Bin, mean of the score, share tested and number of people; without bins that are empty."""
    place = np.minimum((score * N_BINS).astype(int), N_BINS - 1)
    bins = pd.DataFrame({"bin": place, "predicted": score, "observed": tested, "count": 1})
    sums = {"predicted": "mean", "observed": "mean", "count": "sum"}
    return bins.groupby("bin").agg(sums).reset_index()


def errors(table: pd.DataFrame) -> pd.DataFrame:
    """Expected calibration error of every curve: |predicted - observed|, weighted by people."""
    table = table.assign(off=(table["predicted"] - table["observed"]).abs() * table["count"])
    sums = table.groupby(["temperature", "group", "phase"])[["off", "count"]].sum()
    return (sums["off"] / sums["count"]).rename("error").reset_index()


def calibration(found: Found) -> Picture:
    """Calibration of the testing probability at three temperatures, one thin line per boundary."""
    table = found.rows
    caption = (
        "Calibration of the testing probability t̂ after division of its log-odds by τ: one thin "
        "line for each of 12 boundaries, bold their mean by bin; the number is the expected "
        "calibration error, median over boundaries. Test split, ten bins of equal width."
    )
    notes = (
        *found.notes,
        "The paper's curves are not known as numbers; it says that τ = 1 is well calibrated and "
        "that the others are not.",
    )
    if table.empty:
        return Picture(None, {}, caption, notes)
    table = table.assign(group=table["group"].astype(str))
    summary = errors(table)
    figure = _draw_curves(table, summary)
    return Picture(figure, {"": table, "errors": summary}, caption, notes)


def _draw_curves(table: pd.DataFrame, summary: pd.DataFrame) -> Any:
    figure = new_figure(9.6, 4.2)
    axes = figure.subplots(1, len(SHOWN), sharey=True)
    looks = {"0": (group_colour(0), "o", "group 0"), "1": (group_colour(1), "s", "group 1")}
    for ax, temperature in zip(axes, SHOWN, strict=True):
        ax.plot([0, 1], [0, 1], color=FAINT, lw=1.2, ls=(0, (4, 3)))
        part = table[np.isclose(table["temperature"], temperature)]
        for place, (group, (colour, marker, name)) in enumerate(looks.items()):
            mine = part[part["group"] == group]
            for _, line in mine.groupby("phase"):
                ax.plot(line["predicted"], line["observed"], color=colour, lw=0.6, alpha=0.4)
            mean = mine.groupby("bin")[["predicted", "observed"]].mean()
            ax.plot(mean["predicted"], mean["observed"], marker=marker, color=colour, lw=2, ms=5)
            off = summary[
                np.isclose(summary["temperature"], temperature) & (summary["group"] == group)
            ]["error"].median()
            # above the panel, where no curve can cross it
            ax.text(
                0.3 + 0.36 * place, 1.03, f"{name}: {number(off)}", color=colour, fontsize=9,
                fontweight="bold", transform=ax.transAxes, va="bottom",
            )  # fmt: skip
        ax.set_title(f"τ = {temperature:g}")
        ax.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="predicted t̂", aspect="equal")
        ax.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
        ax.set_yticks([0, 0.5, 1], ["0", ".5", "1"])
        ax.grid(color=GRID)
    axes[0].set_ylabel("share tested")
    title = "Calibration of the testing probability, with its expected error (q_y 1/2, k 1, q_t 2)"
    heading(figure, title)
    return figure
