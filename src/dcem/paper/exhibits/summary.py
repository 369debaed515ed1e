"""The paper's own summary, "DCEM is best where ...", compared with the numbers, setting by setting.

At a setting DCEM is *best* if it is better than every baseline by more than .01, *worse* if some
baseline is better by more than .01, *similar* otherwise. The paper names no margin; .01 is what
other draws of the same setting move a median by. Judged twice, by the median over boundaries and by
the worst case, since the paper argues with both. Baselines are those of the paper's figures; the
oracle is none, nor are the causal estimators of its tables.

What the summary says may overlap (k = 1/2 is both "best" and "similar"): any named outcome counts
as a hit, so the paper gets the benefit of every doubt.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from dcem.paper import published
from dcem.paper.drawing import Picture, heading
from dcem.paper.exhibits.tradeoff import pooled_fits
from dcem.paper.published import BASELINES, BETTER, METRIC_NAMES, each, parts_of
from dcem.paper.sources import Found
from dcem.paper.spread import (
    SETTING,
    Spreads,
    complete_only,
    our_rows,
    published_spreads,
    spreads_of,
)
from dcem.report.style import GRID, INK, MUTED, WARN, group_colour, new_figure
from dcem.text import fraction, number

MARGIN = 0.01
STATISTICS = ("median", "worst")
SIDES = ("published", "ours")
VERDICTS = ("best", "similar", "worse")


def says(metric: str, q_y: float, k: float, q_t: float) -> tuple[str, ...]:
    """What the paper's summary predicts at a setting; nothing is an answer."""
    near = 1e-3
    found = []
    if q_y < 1 and q_t > 1 and k >= 0.5 - near:
        found.append("best")
    if 1 / 3 - near <= k <= 0.5 + near or k >= 3 - near:
        found.append("similar")
    aligned = q_t < 1 and q_y < 1
    if k < 1 / 3 - near or (metric == "roc_gap" and k <= 0.5 + near and aligned):
        found.append("worse")
    return tuple(found)


def versus_best(spreads: Spreads, metric: str, statistic: str) -> dict[str, Any] | None:
    """DCEM against the best baseline of one setting; None if either is absent."""
    others = {
        name: spread.numbers(metric)[statistic]
        for (name, one), spread in spreads.items()
        if one == metric and name in BASELINES and not np.isnan(spread.median)
    }
    if ("dcem", metric) not in spreads or not others:
        return None
    dcem = spreads["dcem", metric].numbers(metric)[statistic]
    best = max(others, key=lambda name: BETTER[metric] * others[name])
    lead = BETTER[metric] * (dcem - others[best])
    verdict = "best" if lead > MARGIN else "worse" if lead < -MARGIN else "similar"
    return {
        "dcem": dcem,
        "best_baseline": best,
        "baseline": others[best],
        "lead": lead,
        "verdict": verdict,
    }


def check_summary(sides: dict[str, dict[tuple[float, float, float], Spreads]]) -> pd.DataFrame:
    """Every setting, metric, statistic and side: the verdict, and whether the summary has it."""
    rows = []
    for side, settings in sides.items():
        for place, metric, statistic in product(settings, ("auc", "roc_gap"), STATISTICS):
            found = versus_best(settings[place], metric, statistic)
            if found is None:
                continue
            claimed = says(metric, *place)
            rows.append(
                dict(zip(SETTING, place, strict=True))
                | {"metric": metric, "statistic": statistic, "side": side, **found}
                | {"paper_says": " or ".join(claimed)}
                | {"holds": found["verdict"] in claimed if claimed else None}
            )
    return pd.DataFrame(rows)


def statements(checked: pd.DataFrame) -> pd.DataFrame:
    """Of the settings each word of the summary speaks about, in how many it is what is found."""
    rows = []
    keys = ["side", "metric", "statistic"]
    for values, part in checked.groupby(keys, sort=False):
        for word in VERDICTS:
            spoken = part[
                part["paper_says"].str.split(" or ").map(lambda claimed, w=word: w in claimed)
            ]
            rows.append(
                dict(zip(keys, values, strict=True))
                | {"paper_says": word, "settings": len(spoken)}
                | {f"found_{v}": int((spoken["verdict"] == v).sum()) for v in VERDICTS}
            )
    return pd.DataFrame(rows)


def settings_of(rows: pd.DataFrame) -> dict[tuple[float, float, float], Spreads]:
    """Spreads of every setting in a table of rows, of methods that are complete there."""
    return {
        (float(place[0]), round(float(place[1]), 4), float(place[2])): spreads_of(part)
        for place, part in parts_of(
            complete_only(rows).sort_values(SETTING, kind="stable"), SETTING
        )
    }


def grid_settings(rows: pd.DataFrame) -> dict[tuple[float, float, float], Spreads]:
    """Spreads over the grid, k 4 left out: everybody is tested there and q_t means nothing.

    Its settings would be the same few data sets counted once for every q_t.
    """
    pool = pooled_fits(rows, every_k=True)
    return settings_of(pool[pool["k"] < 4 - 1e-3])


def published_settings() -> dict[tuple[float, float, float], Spreads]:
    """The settings whose published points the project carries."""
    figures = published.figures()
    return {
        (q_y, k, q_t): published_spreads(figures, q_y=q_y, k=k, q_t=q_t)
        for q_y, k, q_t in figures[SETTING].drop_duplicates().itertuples(index=False)
    }


def summary(shown: Found, grid: Found) -> Picture:
    """The verdicts at the settings of the figures, drawn; those of the whole grid, as numbers."""
    checked = check_summary(
        {"published": published_settings(), "ours": settings_of(our_rows(shown.rows))}
    )
    over_grid = check_summary({"ours": grid_settings(grid.rows)})
    figure = _draw_verdicts(checked)
    numbers = {"": checked, "statements": statements(checked)}
    notes = list(shown.notes)
    if len(over_grid):
        numbers |= {"grid": over_grid, "grid-statements": statements(over_grid)}
        notes.append(
            "The grid (summary-grid.csv) has this package's defaults on draws of their own, and "
            "tested-only, y-obs and SELF as the only baselines; without k 4, where everybody is "
            "tested and q_t means nothing."
        )
    else:
        notes.append("The whole grid, and with it k below 1/3, is not recorded (grid.csv).")
    caption = (
        "When DCEM is best, similar or worse than the best baseline (margin .01), by median and by "
        "worst case over boundaries. A red frame: not what the paper's summary says; no frame: as "
        "it says; hollow: it says nothing of that setting. No symbol: no numbers on that side."
    )
    return Picture(figure, numbers, caption, tuple(notes))


def _draw_verdicts(checked: pd.DataFrame) -> Any:
    settings = sorted(set(checked[SETTING].itertuples(index=False, name=None)))
    figure = new_figure(9.6, 1.7 + 0.33 * len(settings))
    ax = figure.subplots()
    columns = [(m, s, side) for m in ("auc", "roc_gap") for s in STATISTICS for side in SIDES]
    looks = {  # filled where the summary says something, hollow where it does not
        "best": ("▲△", group_colour(0)),
        "similar": ("●○", MUTED),
        "worse": ("▼▽", group_colour(1)),
    }
    for row in each(checked):
        x = columns.index((row.metric, row.statistic, row.side))
        y = settings[::-1].index((row.q_y, row.k, row.q_t))
        marks, colour = looks[row.verdict]
        mark = marks[row.holds is None]
        ax.text(x, y, mark, color=colour, ha="center", va="center", fontsize=13)
        if row.holds is False:
            ax.plot(
                [x - 0.42, x + 0.42, x + 0.42, x - 0.42, x - 0.42],
                [y - 0.4, y - 0.4, y + 0.4, y + 0.4, y - 0.4], color=WARN, lw=1.4,
            )  # fmt: skip
    for edge in range(1, len(columns)):
        ax.axvline(edge - 0.5, color=MUTED if edge % 4 == 0 else GRID, lw=1)
    for height in range(len(settings) - 1):
        ax.axhline(height + 0.5, color=GRID, lw=0.7)
    names = [f"k {fraction(k)}, q_t {fraction(q_t)}" for _, k, q_t in reversed(settings)]
    ax.set_yticks(range(len(settings)), names, color=INK)
    ax.set_xticks(
        range(len(columns)), [f"{s}\n{side}" for _, s, side in columns], fontsize=9, color=INK
    )
    for place, metric in ((1.5, "auc"), (5.5, "roc_gap")):
        ax.text(
            place, len(settings) - 0.35, METRIC_NAMES[metric], ha="center", va="bottom",
            fontweight="bold",
        )  # fmt: skip
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(-0.5, len(settings) - 0.5))
    ax.tick_params(length=0)
    figure.supxlabel(
        f"▲ DCEM best     ● similar (within {number(MARGIN, 2)})     ▼ some baseline better\n"
        "red frame: not what the paper's summary says     hollow: it says nothing of this setting"
        "     blank: no numbers at hand", fontsize=9, color=MUTED,
    )  # fmt: skip
    heading(figure, "When DCEM is best (q_y 1/2)", "large")
    return figure
