"""The picture of `robustness`: differences to DCEM with ranks above, independent draws below."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dcem.paper.picture import fraction, look, tick
from dcem.paper.spread import METHOD_NAMES, METRIC_NAMES, METRICS, ORACLE, SETTING
from dcem.report.style import GRID, INK, MUTED, group_colour, new_figure


def draw(paired: pd.DataFrame, order: pd.DataFrame, draws: pd.DataFrame) -> Any:
    """Two panels above, two below; a part without results says so."""
    names = [] if paired.empty else [m for m in METHOD_NAMES if m in set(paired["method"])]
    settings = [] if draws.empty else sorted(set(zip(*(draws[c] for c in SETTING), strict=True)))
    models = [] if draws.empty else [m for m in METHOD_NAMES if m in set(draws["method"])]
    heights = [max(1.2, 0.36 * len(names)), max(1.0, 0.24 * len(settings) * max(len(models), 1))]
    figure = new_figure(9.6, sum(heights) + 1.6)
    axes = figure.subplots(2, 2, height_ratios=heights, sharey="row")
    for column, metric in enumerate(METRICS):
        _draw_paired(axes[0, column], metric, paired, order, names, label=column == 0)
        _draw_seeds(axes[1, column], metric, draws, settings, models, label=column == 0)
    figure.suptitle("How sure is it?", x=0.01, ha="left", fontweight="bold")
    handles = _intervals() if names else []
    handles += axes[1, 0].get_legend_handles_labels()[0]
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=9)
    return figure


def _intervals() -> list[Any]:
    """What filled and hollow mean in the upper panels."""
    from matplotlib.lines import Line2D

    looks = (("above: interval without zero", INK, INK), ("with zero: unclear", MUTED, "white"))
    return [
        Line2D([], [], color=colour, marker="o", mfc=face, ms=6, lw=2.2, label=name)
        for name, colour, face in looks
    ]


def _draw_paired(
    ax: Any, metric: str, paired: pd.DataFrame, order: pd.DataFrame, names: list[str], label: bool
) -> None:
    ax.set_title(f"{METRIC_NAMES[metric]}: method minus DCEM")
    ax.axvline(0, color=group_colour(3), lw=1.6)
    if not names:
        _nothing(ax)
        return
    whole = (paired["k"] == "all") if (paired["k"] == "all").any() else paired["k"].notna()
    for height, name in enumerate(reversed(names)):
        part = paired[whole & (paired["metric"] == metric) & (paired["method"] == name)]
        for row in part.to_dict("records"):
            colour = MUTED if row["says"] == "unclear" else INK
            ax.plot([row["low"], row["high"]], [height] * 2, color=colour, lw=2.2)
            face = "white" if row["says"] == "unclear" else colour
            ax.plot(row["difference"], height, "o", color=colour, mfc=face, ms=6)
        settings = part["n"].max() if len(part) else 0
        rank = _rank(order, metric, name) or ("" if name == ORACLE else f"{settings} settings")
        ax.text(
            1.0, height, rank, transform=ax.get_yaxis_transform(), fontsize=8.5, ha="right",
            va="center", color=MUTED,
        )  # fmt: skip
    low, high = ax.get_xlim()
    ax.set_xlim(low, high + 0.12 * (high - low))
    ax.text(
        1.0, len(names) - 0.45, f"rank (DCEM {_rank(order, metric, 'dcem')})", ha="right",
        transform=ax.get_yaxis_transform(), fontsize=8.5, color=MUTED,
    )  # fmt: skip
    ax.set_yticks(range(len(names)), [METHOD_NAMES[n] for n in reversed(names)], color=INK)
    ax.set_ylim(-0.6, len(names))
    _tidy(ax, label)


def _draw_seeds(
    ax: Any,
    metric: str,
    draws: pd.DataFrame,
    settings: list[tuple[Any, ...]],
    models: list[str],
    label: bool,
) -> None:
    ax.set_title(f"{METRIC_NAMES[metric]} over independent draws")
    if not settings:
        _nothing(ax)
        return
    for place, setting in enumerate(reversed(settings)):
        here = draws[
            np.logical_and.reduce([draws[c] == v for c, v in zip(SETTING, setting, strict=True)])
        ]
        for offset, model in enumerate(models):
            colour, marker = look(model)
            y = place + 0.7 * (0.5 - (offset + 0.5) / len(models))
            for row in here[(here["metric"] == metric) & (here["method"] == model)].to_dict(
                "records"
            ):
                ax.plot([row["median_low"], row["median_high"]], [y] * 2, color=colour, lw=2)
                name = METHOD_NAMES[model] if place == 0 else None
                ax.plot(row["median"], y, marker, color=colour, ms=5.5, label=name)
    places = [f"k {fraction(k)}, q_t {fraction(t)}" for _, k, t in reversed(settings)]
    ax.set_yticks(range(len(settings)), places, color=INK)
    ax.set_ylim(-0.6, len(settings) - 0.3)
    _tidy(ax, label)


def _nothing(ax: Any) -> None:
    ax.text(0.5, 0.5, "not recorded", transform=ax.transAxes, ha="center", color=MUTED)
    ax.axis("off")


def _rank(order: pd.DataFrame, metric: str, method: str) -> str:
    if order.empty:
        return ""
    keep = (order["metric"] == metric) & (order["statistic"] == "median")
    part = order[keep & (order["method"] == method)]
    return f"{part['mean_rank'].iloc[0]:.1f}" if len(part) else ""


def _tidy(ax: Any, label: bool) -> None:
    ax.grid(axis="x", color=GRID)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelleft=label)
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_formatter(tick)
