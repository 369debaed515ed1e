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

from dcem.paper.analyses.robustness_figure import draw
from dcem.paper.analyses.summary import published_settings, settings_of
from dcem.paper.picture import Picture, in_style
from dcem.paper.sources import Found
from dcem.paper.spread import (
    BETTER,
    METRICS,
    ORACLE,
    SETTING,
    complete,
    our_rows,
)

N_RESAMPLES = 20_000
LEVEL = 0.95


def spread_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The paper's definition: median, worst case and range, for every setting and both sides."""
    found = []
    for side, settings in (("published", published_settings()), ("ours", settings_of(rows))):
        for (q_y, k, q_t), spreads in settings.items():
            for (method, metric), one in spreads.items():
                found.append(
                    {"side": side, "q_y": q_y, "k": k, "q_t": q_t, "method": method}
                    | {"metric": metric, "median": one.median, "worst": one.worst(metric)}
                    | {"range": one.range, "min": one.low, "max": one.high, "n": len(one.values)}
                )
    return pd.DataFrame(found)


def paired_differences(
    rows: pd.DataFrame, *, n_resamples: int = N_RESAMPLES, random_state: int = 0
) -> pd.DataFrame:
    """Method minus DCEM at every boundary: mean with interval, by setting and over all settings."""
    found = []
    rows = complete(rows)
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
                found.append(_row(method, metric, place, mean, many, values.shape[1]))
            if len(places) > 1:
                whole = np.nanmean(by_setting, axis=0)
                mean = np.nanmean(values)
                found.append(_row(method, metric, ("all",) * 3, mean, whole, len(places)))
    return pd.DataFrame(found)


def _row(
    method: str, metric: str, place: tuple[Any, ...], mean: float, many: np.ndarray, n: int
) -> dict[str, Any]:
    low, high = np.quantile(many, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    better = BETTER[metric]
    words = "unclear"
    if min(low * better, high * better) > 0:
        words = "better than DCEM"
    elif max(low * better, high * better) < 0:
        words = "worse than DCEM"
    names = dict(zip(SETTING, place, strict=True))
    return {"method": method, "metric": metric, **names, "n": n} | {
        "difference": float(mean),
        "low": float(low),
        "high": float(high),
        "says": words,
    }


def ranks(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean rank over settings, by median and by worst case; 1 is best.

    The oracle is left out, and so are methods that are not recorded at every setting.
    """
    table = spread_table(rows)
    table = table[(table["side"] == "ours") & (table["method"] != ORACLE)] if len(table) else table
    found = []
    for metric in METRICS if len(table) else ():
        part = table[table["metric"] == metric]
        everywhere = part.groupby("method")["median"].transform("size") == len(
            part.groupby(SETTING)
        )
        part = part[everywhere]
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
    from scipy import stats

    found = []
    for place, part in rows.groupby(SETTING) if len(rows) else ():
        for metric in METRICS:
            medians = part.pivot_table(
                index="seed", columns="method", values=metric, aggfunc="median"
            )
            for method in medians:
                values = medians[method].dropna().to_numpy()
                row: dict[str, Any] = dict(zip(SETTING, place, strict=True))
                row |= {"method": method, "metric": metric, "seeds": len(values)}
                row |= _t_interval("median", values, stats)
                if "dcem" in medians and method != "dcem":
                    paired = (medians[method] - medians["dcem"]).dropna().to_numpy()
                    row |= _t_interval("minus_dcem", paired, stats)
                found.append(row)
    return pd.DataFrame(found)


def _t_interval(name: str, values: np.ndarray, stats: Any) -> dict[str, float]:
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return {name: mean, f"{name}_low": np.nan, f"{name}_high": np.nan}
    half = stats.t.ppf((1 + LEVEL) / 2, n - 1) * float(np.std(values, ddof=1)) / np.sqrt(n)
    return {name: mean, f"{name}_low": mean - half, f"{name}_high": mean + half}


def independent(rows: pd.DataFrame) -> pd.DataFrame:
    """Fits on independent draws, each cell once."""
    if rows.empty:
        return rows
    if "stream" in rows:
        rows = rows[rows["stream"] == "independent"]
    if "label" in rows:
        rows = rows[rows["label"] == rows["method"]]
    return rows.drop_duplicates([*SETTING, "phase", "seed", "method"])


def robustness(shown: Found, seeds: Found) -> Picture:
    """Differences to DCEM over all settings, with ranks; and the medians over seeds."""
    rows = our_rows(shown.rows)
    paired, order, draws = (
        paired_differences(rows),
        ranks(rows),
        over_seeds(independent(seeds.rows)),
    )
    figure = in_style(lambda: draw(paired, order, draws))
    numbers = {"": spread_table(rows), "paired": paired, "ranks": order, "seeds": draws}
    settings = 0 if rows.empty else len(rows.groupby(SETTING))
    caption = (
        f"Above: mean difference to DCEM over boundaries and {settings} settings, 95 % interval "
        "from resampled boundaries (hollow: it holds zero); on the right the mean rank by median, "
        "1 is best. Below: median over 12 boundaries, mean of independent draws, 95 % interval."
    )
    notes = (*shown.notes, *seeds.notes)
    return Picture(figure, {k: v for k, v in numbers.items() if len(v)}, caption, notes)
