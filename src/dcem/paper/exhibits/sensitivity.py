"""Three figures with a knob on their axis: overlap, what the testers look at, the M-step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dcem.paper import published, theory
from dcem.paper.drawing import WATERMARK, Picture, heading, style_of, tick, watermark
from dcem.paper.exhibits.points import ARTIFICIAL, STAR, cut_short
from dcem.paper.published import METHOD_NAMES, METRIC_NAMES, METRICS
from dcem.paper.sources import Found
from dcem.paper.spread import (
    Spread,
    Spreads,
    other_parameters,
    our_rows,
    published_spreads,
    table_spreads,
)
from dcem.report.style import GRID, INK, MUTED, PAPER, new_figure

SLOPE = 30.0  # of the testing decision in every other figure
CAUSAL = ("tested-only", "tested-only-plus-group", "ipw", "dr-learner", "dcem")
# Methods that rank well under some testing policies and below chance under others.
BIMODAL = ("y-obs", "group-peer-loss", "self", "sar-em", "tested-only", "dcem")


def overlap(found: Found) -> Picture:
    """Causal estimators and DCEM as the testing decision gets steeper, which is less overlap."""
    table = table_spreads(published.tables(), "causal-estimators")
    frame = overlap_numbers(found.rows)
    figure = _draw_overlap(frame, table)
    caption = (
        "Overlap at q_y 1/2, k 1, q_t 2: median over 12 boundaries (line) and range (whisker) as "
        "the slope of the testing decision goes from a quarter to four times its value; steeper "
        "means less overlap. Hollow, at the end of the axis: the paper's table at the usual slope."
    )
    notes = (
        "Of the paper's overlap figure only the rows at the usual slope are known as numbers (its "
        "causal-estimators table, where DCEM starts from tested-only weights).",
    )
    return Picture(figure, {"": frame}, caption, (*found.notes, *notes))


def overlap_numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """Spreads of the causal estimators and DCEM by slope; the published table beside slope 1."""
    rows = rows.copy()
    table = table_spreads(published.tables(), "causal-estimators")
    slope = rows["testing_slope"] if "testing_slope" in rows else pd.Series(np.nan, rows.index)
    rows["slope_factor"] = slope.astype(float).fillna(SLOPE) / SLOPE
    rows = rows.drop(columns="testing_slope", errors="ignore")
    parts = [our_rows(part) for _, part in rows.groupby("slope_factor")]
    rows = pd.concat(parts, ignore_index=True) if parts else rows
    numbers = []
    for method in CAUSAL:
        for factor, points in rows[rows["method"] == method].groupby("slope_factor"):
            for metric in METRICS:
                theirs = table.get((method, metric)) if factor == 1 else None
                row = {"method": method, "metric": metric, "slope_factor": factor}
                for side, one in (("ours", Spread.of(points[metric])), ("published", theirs)):
                    ends = one.numbers(metric) if one else {}
                    row |= {f"{side}_{n}": ends[n] for n in ("median", "min", "max") if ends}
                numbers.append(row)
    return pd.DataFrame(numbers)


def _panels(
    figure: Any, along: str, methods: Sequence[str], middle: float | None
) -> Iterator[tuple[Any, str]]:
    """Gap and AUC along a knob, each panel to be drawn into; `middle`: where ours is missed."""
    for ax, metric in zip(figure.subplots(1, 2), METRICS, strict=True):
        yield ax, metric
        ax.set_title(METRIC_NAMES[metric])
        ax.set_xlabel(along)
        ax.yaxis.set_major_formatter(tick)
        ax.grid(axis="y", color=GRID)
        if middle is not None:
            ax.text(middle, 0.5, "ours is not recorded", transform=ax.transAxes, ha="center")
    legend = {"loc": "outside lower center", "ncols": len(methods), "fontsize": 9}
    figure.legend(*ax.get_legend_handles_labels(), **legend)


def _draw_overlap(frame: pd.DataFrame, table: Spreads) -> Any:
    figure = new_figure(9.6, 4.3)
    along = "slope of the testing decision, as a multiple of the usual 30"
    for ax, metric in _panels(figure, along, CAUSAL, middle=None if len(frame) else 0.4):
        for place, method in enumerate(CAUSAL):
            colour, marker = style_of(method)
            shift = 1.035 ** (place - 2)  # whiskers beside each other
            if len(frame):
                part = frame[(frame["method"] == method) & (frame["metric"] == metric)]
                x = part["slope_factor"].to_numpy(float) * shift
                ax.vlines(x, part["ours_min"], part["ours_max"], color=colour, lw=1.1, alpha=0.7)
                ax.plot(
                    x, part["ours_median"], marker=marker, color=colour, ms=6,
                    lw=2.4 if method == "dcem" else 1.4, label=METHOD_NAMES[method],
                )  # fmt: skip
            theirs = table.get((method, metric))
            if theirs:
                ax.plot(
                    6.2 * 1.07 ** (place - 2), theirs.median, marker, mfc=PAPER,
                    mec=colour, ms=6, label=None if len(frame) else METHOD_NAMES[method],
                )  # fmt: skip
        ax.axvline(4.9, color=GRID, lw=1)
        ax.set_xscale("log", base=2)
        ticks = [0.25, 0.5, 1, 2, 4, 6.2]
        ax.set_xticks(ticks, ["¼", "½", "1", "2", "4", "paper\n(at 1)"])
        ax.minorticks_off()
    heading(figure, "Less overlap, to the right (q_y 1/2, k 1, q_t 2)")
    return figure


def salience(found: Found) -> Picture:
    """Sepsis at k 4, q_t 1.5: metrics against the weight of respiratory rate in the policy."""
    rows = our_rows(found.rows)
    rows = rows[rows["method"].isin(BIMODAL)]
    theirs = published_spreads(published.sepsis_figures(), k=4.0, q_t=1.5)
    other = other_parameters(rows)
    labels = METHOD_NAMES | {name: f"{METHOD_NAMES[name]} *" for name in other}
    figure = _draw_salience(rows, theirs, found, labels)
    numbers = [
        {"source": "published", "method": method, "metric": metric}
        | {"median": one.median, "min": one.low, "max": one.high}
        for method in BIMODAL
        for metric in METRICS
        if (one := theirs.get((method, metric)))
    ]
    numbers += [
        {"source": "ours", "method": row["method"], "metric": metric, "beta": row["beta"]}
        | {"value": row[metric], "ours_params": other.get(row["method"])}
        for row in rows.to_dict("records")
        for metric in METRICS
    ]
    caption = (
        "Sepsis at k 4, q_t 3/2 as the testing policy moves from blood pressure alone (0) to "
        "respiratory rate alone (1). Right of the line: the paper's points, whose weights are not "
        "recorded. Dashed: an AUC of one half, chance."
    )
    notes = (*found.notes, *([ARTIFICIAL] if found.artificial else []))
    notes += (cut_short(other),) if other else ()
    columns = ["source", "method", "metric", "beta", "value", "median", "min", "max", "ours_params"]
    frame = pd.DataFrame(numbers).reindex(columns=columns)
    return Picture(figure, {"": frame}, caption, notes)


def _draw_salience(
    rows: pd.DataFrame, theirs: Spreads, found: Found, labels: dict[str, str]
) -> Any:
    figure = new_figure(9.6, 4.3)
    along = "weight of respiratory rate in the testing policy"
    for ax, metric in _panels(figure, along, BIMODAL, middle=None if len(rows) else 0.35):
        for place, method in enumerate(BIMODAL):
            colour, marker = style_of(method)
            part = rows[rows["method"] == method].sort_values("beta")
            if len(part):
                ax.plot(
                    part["beta"], part[metric], marker=marker, ms=5, color=colour,
                    lw=2.4 if method == "dcem" else 1.2, label=labels[method],
                )  # fmt: skip
            points = theirs.get((method, metric))
            if points:
                x = np.full(len(points.values), 1.12 + 0.055 * place)
                ax.plot(
                    x, points.values, marker, mfc=PAPER, mec=colour, ms=4.5, ls="",
                    label=None if len(part) else labels[method],
                )  # fmt: skip
        if metric == "auc":
            ax.axhline(0.5, color=INK, lw=0.8, ls=(0, (4, 3)))
            below = {"xytext": (0, -11), "textcoords": "offset points"}
            ax.annotate("chance", (0.5, 0.5), **below, fontsize=8.5, color=MUTED)
        ax.axvline(1.06, color=GRID, lw=1)
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1, 1.26], ["0", ".25", ".5", ".75", "1", "paper"])
        if found.artificial:
            watermark(ax, x=0.36, size=16)  # over ours alone, left of the line
    title = "Which feature the testers look at (sepsis, k 4, q_t 3/2)"
    title += f"     {WATERMARK}" if found.artificial else ""
    title += f"     {STAR}" if labels != METHOD_NAMES else ""
    heading(figure, title)
    return figure


def m_step() -> Picture:
    """The optimum of the M-step for an untested person, in closed form: nothing to train."""
    edge = np.linspace(0, 1, 21)
    t, q = (grid.ravel() for grid in np.meshgrid(edge, edge))
    frame = pd.DataFrame(
        {
            "t_hat": t,
            "q": q,
            "optimum": theory.m_step_optimum(q, t),
            "strength": theory.regularisation_strength(q, t),
        }
    )
    caption = (
        "Left, the paper's figure: the prediction that the M-step wants for an untested person "
        "with pseudo-label Q and testing probability t̂. Right: how far that is below Q."
    )
    return Picture(m_step_contours(), {"": frame}, caption)


def m_step_contours() -> Any:
    """Where the M-step wants an untested row, and how far that is below its pseudo-label."""
    figure = new_figure(9.6, 4.5)
    edge = np.linspace(0, 1, 101)
    t, q = np.meshgrid(edge, edge)
    strength = "Regularisation strength R = Q − optimum"
    panels = [
        ("Optimal prediction", theory.m_step_optimum, 1.0, "GnBu"),
        (strength, theory.regularisation_strength, 0.5, "OrRd"),
    ]
    for ax, (title, of, most, colours) in zip(figure.subplots(1, 2), panels, strict=True):
        value, levels = of(q, t), np.linspace(0, most, 11)
        ax.contourf(t, q, value, levels=levels, cmap=colours, alpha=0.75)
        # The first and last level touch the frame only.
        lines = ax.contour(t, q, value, levels=levels[1:-1], colors=INK, linewidths=0.9)
        ax.clabel(lines, fmt=lambda level: f"{level:.2g}".removeprefix("0"), fontsize=9)
        ax.set_title(title)
        ax.set(xlabel="testing probability t̂", ylabel="pseudo-label Q", aspect="equal")
        unit_ticks(ax)
    return figure


def unit_ticks(ax: Any) -> None:
    """Both axes from 0 to 1."""
    ticks, labels = [0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"]
    ax.set_xticks(ticks, labels)
    ax.set_yticks(ticks, labels)
    ax.set(xlim=(0, 1), ylim=(0, 1))
