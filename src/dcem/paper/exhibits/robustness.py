"""Robustness as a user needs it: paired differences with intervals, ranks, and the luck of a draw.

*Paired differences.* Two methods at one boundary share its difficulty, so they are compared
boundary by boundary: method minus DCEM. Intervals resample the 12 boundaries. Pooled over settings,
a boundary is drawn with all its settings together, because the same 12 recur in each; the resamples
are the same for all methods, so equal fits get equal intervals. They answer "would other boundaries
like these say the same?", not "would other data?".

*Seeds.* Five independent draws of the same setting say that: the median over boundaries of each
draw, its mean over draws, and a t interval (5 draws, 4 degrees of freedom).

*Ranks.* At every setting the methods are ranked by median; their mean over settings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dcem.paper.drawing import Picture, heading, style_of, tick
from dcem.paper.exhibits.summary import published_settings, settings_of
from dcem.paper.published import BETTER, METHOD_NAMES, METRIC_NAMES, METRICS, ORACLE, at
from dcem.paper.sources import Found
from dcem.paper.spread import SETTING, complete_only, independent, our_rows
from dcem.report.style import GRID, INK, MUTED, group_colour, new_figure
from dcem.text import fraction

N_RESAMPLES = 20_000
LEVEL = 0.95


def spread_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The paper's definition: median, worst case and range, for every setting and both sides."""
    found = []
    for side, settings in (("published", published_settings()), ("ours", settings_of(rows))):
        for place, spreads in settings.items():
            for (method, metric), one in spreads.items():
                row: dict[str, Any] = {"side": side} | dict(zip(SETTING, place, strict=True))
                row |= {"method": method, "metric": metric, "n": len(one.values)}
                found.append(row | one.numbers(metric))
    columns = ["side", *SETTING, "method", "metric", "median", "worst", "range", "min", "max", "n"]
    return pd.DataFrame(found, columns=columns)


def paired_differences(
    rows: pd.DataFrame, *, n_resamples: int = N_RESAMPLES, random_state: int = 0
) -> pd.DataFrame:
    """Method minus DCEM at every boundary: mean with interval, by setting and over all settings."""
    found = []
    rows = complete_only(rows)
    phases = np.sort(rows["phase"].unique()) if len(rows) else np.empty(0)
    rng = np.random.default_rng(random_state)
    drawn = rng.integers(max(len(phases), 1), size=(n_resamples, len(phases)))
    for metric in METRICS if len(rows) else ():
        cube = rows.pivot_table(index=[*SETTING, "phase"], columns="method", values=metric)
        if "dcem" not in cube:
            return pd.DataFrame()
        for method in cube.columns.drop("dcem"):
            difference = (cube[method] - cube["dcem"]).dropna()
            if difference.empty:
                continue
            # [settings, phases]; a setting without a phase has NaN there
            table = difference.unstack("phase").reindex(columns=phases)
            values = table.to_numpy(float)
            resampled = values[:, drawn]  # [settings, resamples, phases]
            by_setting = np.nanmean(resampled, axis=2)
            places: list[tuple[Any, ...]] = [*table.index]
            for place, mean, many in zip(places, np.nanmean(values, 1), by_setting, strict=True):
                found.append(_difference(method, metric, place, mean, many, values.shape[1]))
            if len(places) > 1:
                whole = np.nanmean(by_setting, axis=0)
                mean = np.nanmean(values)
                found.append(_difference(method, metric, ("all",) * 3, mean, whole, len(places)))
    return pd.DataFrame(found)


def _difference(
    method: str, metric: str, place: tuple[Any, ...], mean: float, many: np.ndarray, n: int
) -> dict[str, Any]:
    low, high = np.quantile(many, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    ends = sorted((low * BETTER[metric], high * BETTER[metric]))
    words = "better" if ends[0] > 0 else "worse" if ends[1] < 0 else ""
    names = {"method": method, "metric": metric, **dict(zip(SETTING, place, strict=True))}
    return names | {
        "n": n,
        "difference": float(mean),
        "low": float(low),
        "high": float(high),
        "says": f"{words} than DCEM" if words else "unclear",
    }


def ranks(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean rank over settings, by median and by worst case; 1 is best.

    The oracle is left out, and so are methods that are not recorded at every setting.
    """
    table = spread_table(rows)
    table = table[(table["side"] == "ours") & (table["method"] != ORACLE)]
    found = []
    for metric in METRICS:
        part = table[table["metric"] == metric]
        settings = len(part.groupby(SETTING))
        part = part[part.groupby("method")["median"].transform("size") == settings]
        for statistic in ("median", "worst"):
            wide = part.pivot_table(index=SETTING, columns="method", values=statistic)
            order = (-BETTER[metric] * wide).rank(axis=1)
            for method in order:
                found.append(
                    {"method": method, "metric": metric, "statistic": statistic}
                    | {"mean_rank": order[method].mean(), "worst_rank": order[method].max()}
                    | {"times_first": int((order[method] == 1).sum()), "settings": len(order)}
                )
    return pd.DataFrame(found)


def over_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """Median over boundaries of every draw; mean over draws with interval, and against DCEM."""
    found = []
    for place, part in rows.groupby(SETTING):
        for metric in METRICS:
            medians = part.pivot_table(
                index="seed", columns="method", values=metric, aggfunc="median"
            )
            for method in medians:
                values = medians[method].dropna().to_numpy()
                row: dict[str, Any] = dict(zip(SETTING, place, strict=True))
                row |= {"method": method, "metric": metric, "seeds": len(values)}
                row |= _t_interval("median", values)
                if "dcem" in medians and method != "dcem":
                    paired = (medians[method] - medians["dcem"]).dropna().to_numpy()
                    row |= _t_interval("minus_dcem", paired)
                found.append(row)
    return pd.DataFrame(found)


def _t_interval(name: str, values: np.ndarray) -> dict[str, float]:
    from scipy import stats

    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return {name: mean, f"{name}_low": np.nan, f"{name}_high": np.nan}
    half = stats.t.ppf((1 + LEVEL) / 2, n - 1) * float(np.std(values, ddof=1)) / np.sqrt(n)
    return {name: mean, f"{name}_low": mean - half, f"{name}_high": mean + half}


def robustness(shown: Found, seeds: Found) -> Picture:
    """Differences to DCEM over all settings, with ranks; and the medians over seeds."""
    rows = our_rows(shown.rows)
    paired, order = paired_differences(rows), ranks(rows)
    draws = over_seeds(independent(seeds.rows))
    figure = _draw_panels(paired, order, draws)
    numbers = {"": spread_table(rows), "paired": paired, "ranks": order, "seeds": draws}
    settings = len(rows.groupby(SETTING))
    caption = (
        f"Above: mean difference to DCEM over boundaries and {settings} settings, 95 % interval "
        "from resampled boundaries (hollow: it holds zero); on the right the mean rank by median, "
        "1 is best. Below: median over 12 boundaries, mean of independent draws, 95 % interval."
    )
    notes = (*shown.notes, *seeds.notes)
    return Picture(figure, {k: v for k, v in numbers.items() if len(v)}, caption, notes)


def _draw_panels(paired: pd.DataFrame, order: pd.DataFrame, draws: pd.DataFrame) -> Any:
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
    heading(figure, "How sure is it?", "large")
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
        here = draws[at(draws, **dict(zip(SETTING, setting, strict=True)))]
        for offset, model in enumerate(models):
            colour, marker = style_of(model)
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
