"""Robustness as the paper defines it: median, worst case and range over decision boundaries.

A *spread* is what one method reaches in one metric over the 12 boundaries of the simulation (or the
11 testing policies of sepsis). The published side may be three numbers of a table or twelve points
of a figure; ours has the points, each with its phase or beta.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dcem.paper.agreement import published_rows
from dcem.paper.published import BETTER, METRICS, SETTING, TABLES, at, each


@dataclass(frozen=True)
class Spread:
    """One method in one metric: points, or only their median and ends."""

    median: float
    low: float
    high: float
    values: np.ndarray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """From points."""
        points = np.asarray(list(values), dtype=float)
        points = points[~np.isnan(points)]
        if not len(points):
            return NOTHING
        return cls(float(np.median(points)), float(points.min()), float(points.max()), points)

    def numbers(self, metric: str) -> dict[str, float]:
        """By name; the worst is the least AUC, the greatest gap."""
        ends = {"median": self.median, "min": self.low, "max": self.high}
        worst = self.low if BETTER[metric] > 0 else self.high
        return ends | {"worst": worst, "range": self.high - self.low}


NOTHING = Spread(np.nan, np.nan, np.nan)
Spreads = dict[tuple[str, str], Spread]  # (method, metric)


def our_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows that claim to be the published runs of the figures, each cell once."""
    rows = published_rows(rows)
    rows = rows[~rows["benchmark"].isin(TABLES)]
    if "params" in rows:  # of a cell that was fitted twice, the fit as published
        rows = rows.sort_values("params", key=_changed, kind="stable")
    return rows.drop_duplicates(["method", *SETTING, "phase", "beta"])


def other_parameters(rows: pd.DataFrame) -> dict[str, str]:
    """Methods that were fitted with other than the published parameters, and with which."""
    if "params" not in rows:
        return {}
    changed = rows[_changed(rows["params"])]
    by_method = changed.groupby("method", sort=False)["params"]
    return {str(name): " ".join(sorted(set(part))) for name, part in by_method}


def _changed(params: pd.Series) -> pd.Series:
    return params.notna() & ~params.isin(["", "{}"])


def complete_only(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of methods that have, at a setting, every boundary that any method has there.

    A run in progress has methods with a few boundaries: their median is not comparable.
    """
    counts = rows.groupby([*SETTING, "method"])["phase"].transform("nunique")
    return rows[counts == rows.groupby(SETTING)["phase"].transform("nunique")]


def independent(rows: pd.DataFrame) -> pd.DataFrame:
    """Fits on independent draws, each cell once."""
    if "stream" in rows:
        rows = rows[rows["stream"] == "independent"]
    if "label" in rows:
        rows = rows[rows["label"] == rows["method"]]
    cell = [*SETTING, "phase", "seed", "method"]
    return rows.drop_duplicates([name for name in cell if name in rows])


def spreads_of(rows: pd.DataFrame, by: str = "method") -> Spreads:
    """Ours, over all rows of a setting."""
    return {
        (str(name), metric): Spread.of(part[metric])
        for name, part in rows.groupby(by, sort=False)[list(METRICS)]
        for metric in METRICS
    }


def published_spreads(figures: pd.DataFrame, **setting: float) -> Spreads:
    """The published points of a setting, where the project carries them."""
    return {
        (row.method, row.metric): Spread(row.median, row.min, row.max, np.asarray(row.values))
        for row in each(figures[at(figures, **setting)])
    }


def table_spreads(tables: pd.DataFrame, table: str) -> Spreads:
    """The published rows of an appendix table: median, minimum and maximum."""
    return {
        (str(row.row), metric): Spread(
            float(getattr(row, metric)),
            float(getattr(row, f"{metric}_min")),
            float(getattr(row, f"{metric}_max")),
        )
        for row in each(tables[tables["table"] == table])
        for metric in METRICS
    }


def comparison_table(published: Spreads, ours: Spreads, names: Iterable[str]) -> pd.DataFrame:
    """Both sides as numbers: median, least, greatest, worst case, range, and their difference."""
    rows = []
    for name in names:
        for metric in METRICS:
            theirs, mine = (side.get((name, metric), NOTHING) for side in (published, ours))
            if np.isnan(theirs.median) and np.isnan(mine.median):
                continue
            row: dict[str, Any] = {"method": name, "metric": metric}
            for side, spread in (("published", theirs), ("ours", mine)):
                row |= {f"{side}_{name}": v for name, v in spread.numbers(metric).items()}
            row["ours_n"] = len(mine.values)
            row["difference"] = mine.median - theirs.median
            rows.append(row)
    return pd.DataFrame(rows)


def points_table(
    rows: pd.DataFrame, over: str, published: Spreads, names: Iterable[str], by: str = "method"
) -> pd.DataFrame:
    """Every point of a picture; published ones in ascending order, their `over` is unknown."""
    names = list(names)
    parts = [
        {"source": "published", "method": name, "metric": metric, over: np.nan, "value": value}
        for name in names
        for metric in METRICS
        for value in published.get((name, metric), NOTHING).values
    ]
    mine = rows[rows[by].isin(names)]
    parts += [
        {"source": "ours", "method": name, "metric": metric, over: place, "value": value}
        for metric in METRICS
        for name, place, value in zip(mine[by], mine[over], mine[metric], strict=True)
    ]
    return pd.DataFrame(parts, columns=["source", "method", "metric", over, "value"])
