"""Figure 3 and the SELF trade-off: is a smaller gap bought with a smaller AUC?

Fits of all settings are pooled and cut into windows of similar AUC (or similar gap); inside a
window the other metric of two methods is compared. The paper's windows are .05 of AUC wide. How
many there are is not printed; the text names (.825, .875) and everything above .875.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from dcem.paper.drawing import Picture, heading, style_of, tick
from dcem.paper.published import METHOD_NAMES, METRIC_NAMES
from dcem.paper.sources import Found
from dcem.paper.spread import SETTING, independent
from dcem.report.style import GRID, MUTED, new_figure
from dcem.text import number

# What the released code pools: k 0.1 is in none of the figures, at k 4 everybody is tested.
POOLED_K = (0.25, 1 / 3, 0.5, 1.0, 2.0, 3.0)
LEFT_OUT = (
    "k 1/10 and 4 are left out, as in the pool behind the paper's Figure 3, whose k are 1/4, 1/3, "
    "1/2, 1, 2 and 3"
)
# Windows of what, in which what is compared; their edges; the rival and DCEM.
BY_AUC = ("auc", "roc_gap", (0.675, 0.725, 0.775, 0.825, 0.875, 1.0), ("tested-only", "dcem"))
BY_GAP = ("roc_gap", "auc", (0.0, 0.02, 0.04, 0.06, 0.08), ("self", "dcem"))
LINE = 0.76  # how high the lines of the means go; above them are the labels
FEW_FITS = 10  # fits in a window that are not worth a histogram, or a claim
# The only means that the paper prints: of the gap, for AUC in (.825, .875).
PRINTED = {("roc_gap", 0.825, "dcem"): 0.028, ("roc_gap", 0.825, "tested-only"): 0.050}
STREAM_NOTE = (
    "Ours pools fits of this package's defaults (fast schedule, corrected variants) on draws of "
    "their own, not the published runs: it answers the same question for a user of the package."
)


def pooled_fits(rows: pd.DataFrame, *, every_k: bool = False) -> pd.DataFrame:
    """Fits on independent draws (one seed) at the k that the paper pools, or at all, each once."""
    rows = independent(rows)
    if not every_k:
        near = np.isclose(rows["k"].to_numpy(float)[:, None], POOLED_K, atol=1e-3)
        rows = rows[near.any(axis=1)]
    if "seed" in rows:
        rows = rows[rows["seed"] == rows["seed"].min()]
    return rows


def in_common(rows: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Fits of these methods on data sets that all of them were fitted to: like with like."""
    rows = rows[rows["method"].isin(methods)]
    seen = rows.groupby([*SETTING, "phase"])["method"].transform("nunique")
    return rows[seen == len(methods)]


def n_settings(rows: pd.DataFrame) -> int:
    """How many settings there are fits of."""
    return len(rows.groupby(SETTING))


def windows(
    rows: pd.DataFrame, by: str, of: str, edges: Sequence[float], methods: Sequence[str]
) -> pd.DataFrame:
    """Mean and number of fits of each method in each window of `by`, on common data sets."""
    found = []
    rows = in_common(rows, methods)
    for low, high in pairwise(edges):
        for method in methods:
            values = _inside(rows, by, of, low, high, method)
            found.append(
                {"window_of": by, "low": low, "high": high, "method": method, "n": len(values)}
                | {f"mean_{of}": values.mean(), f"median_{of}": values.median()}
                | {"published_mean": PRINTED.get((of, low, method), np.nan)}
            )
    return pd.DataFrame(found)


def _inside(
    rows: pd.DataFrame, by: str, of: str, low: float, high: float, method: str
) -> pd.Series:
    part = rows[(rows["method"] == method) & (rows[by] >= low) & (rows[by] < high)]
    return part[of].dropna().astype(float)


def figure3(found: Found) -> Picture:
    """ROC gaps of DCEM and tested-only among fits of similar AUC."""
    return _tradeoff(found, *BY_AUC)


def self_tradeoff(found: Found) -> Picture:
    """AUCs of DCEM and SELF among fits of similar ROC gap."""
    return _tradeoff(found, *BY_GAP)


def _tradeoff(
    found: Found, by: str, of: str, edges: Sequence[float], methods: Sequence[str]
) -> Picture:
    rows = in_common(pooled_fits(found.rows), methods)
    means = windows(rows, by, of, edges, methods)
    recorded = n_settings(in_common(pooled_fits(found.rows, every_k=True), methods))
    other = METHOD_NAMES[methods[0]]
    title = f"{METRIC_NAMES[of]} of DCEM and {other} at similar {METRIC_NAMES[by]}"
    caption = (
        f"{title}: share of fits pooled over {n_settings(rows)} of the {recorded} settings at "
        f"which both methods are recorded ({LEFT_OUT}). "
        "Dashed: mean. Dotted: mean printed in the paper, where it prints one."
    )
    notes = (*found.notes, STREAM_NOTE) if len(rows) else found.notes
    if len(found.rows) and rows.empty:
        names = " and ".join(METHOD_NAMES[name] for name in methods)
        notes = (*notes, f"{found.origin} has no fits of {names} on common independent draws.")
    if rows.empty:
        return Picture(None, {}, caption, notes)
    figure = _draw_windows(title, rows, means, by, of, edges, methods)
    points = rows.reindex(columns=["method", *SETTING, "phase", "seed", "auc", "roc_gap"])
    return Picture(figure, {"": means, "points": points}, caption, notes)


def _draw_windows(
    title: str,
    rows: pd.DataFrame,
    means: pd.DataFrame,
    by: str,
    of: str,
    edges: Sequence[float],
    methods: Sequence[str],
) -> Any:
    panels = len(edges) - 1
    figure = new_figure(2.1 * panels + 0.6, 3.4)
    axes = figure.subplots(1, panels, sharey=True, sharex=True)
    bins = _bins(rows, of)
    looks = {m: (style_of(m)[0], hatch) for m, hatch in zip(methods, ("////", None), strict=True)}
    for ax, (low, high) in zip(axes, pairwise(edges), strict=True):
        for place, method in enumerate(methods):
            values = _inside(rows, by, of, low, high, method)
            colour, hatch = looks[method]
            if len(values) >= FEW_FITS:
                ax.hist(
                    values, bins, weights=np.full(len(values), 1 / len(values)),
                    histtype="stepfilled", facecolor=colour if hatch is None else "none",
                    edgecolor=colour, hatch=hatch, alpha=0.55, lw=1.2,
                )  # fmt: skip
            one = means[(means["low"] == low) & (means["method"] == method)].iloc[0]
            if one["n"] >= FEW_FITS:
                ax.axvline(one[f"mean_{of}"], 0, LINE, color=colour, ls=(0, (5, 3)), lw=1.8)
            if not np.isnan(one["published_mean"]):
                ax.axvline(one["published_mean"], 0, LINE, color=colour, ls=":", lw=1.8)
            text = f"{METHOD_NAMES[method]} {number(one[f'mean_{of}'])} (n {one['n']})"
            ax.text(
                0.98, 0.97 - 0.085 * place, text, transform=ax.transAxes, ha="right", va="top",
                fontsize=8, color=colour, fontweight="bold", zorder=5,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.2},
            )  # fmt: skip
        top = f"over {number(low)}" if high >= 1 else f"{number(low)} to {number(high)}"
        ax.set_title(f"{METRIC_NAMES[by]} {top}", fontsize=9.5)
        ax.grid(axis="y", color=GRID)
        ax.set_axisbelow(True)
        ax.xaxis.set_major_formatter(tick)
        ax.margins(y=1 / LINE - 1)
        ax.set_xlim(bins[0], bins[-1])
    axes[0].set_ylabel("share of fits")
    _line_key(figure, printed=bool(means["published_mean"].notna().any()))
    figure.supxlabel(METRIC_NAMES[of], fontsize=10, color=MUTED)
    heading(figure, title)
    return figure


def _bins(rows: pd.DataFrame, of: str) -> np.ndarray:
    """Edges of the bars, from and to where there are fits: none is left out or moved."""
    width = 0.01 if of == "roc_gap" else 0.025
    first = 0.0 if of == "roc_gap" else np.floor(rows[of].min() / width - 1e-9) * width
    return np.arange(first, rows[of].max() + 1.5 * width, width)


def _line_key(figure: Any, *, printed: bool) -> None:
    from matplotlib.lines import Line2D

    lines: list[tuple[str, Any]] = [("mean of ours", (0, (5, 3)))]
    lines += [("mean printed in the paper", ":")] if printed else []
    handles = [Line2D([], [], color=MUTED, ls=style, lw=1.8, label=name) for name, style in lines]
    figure.legend(handles=handles, loc="outside lower right", ncols=2, fontsize=8.5)
