"""The figures of the paper as numbers, and how far ours are from them.

Training is full-batch from fixed seeds on known draws, so most methods can be held to the published
*points*, not just to their spread. Which phase a point belongs to is not recorded, so the twelve
points of a setting are compared in sorted order. Two kinds of method, two rules:

* *single-stage* methods (one network, one loss): the median absolute difference of the sorted
  points is at most .002, and the medians agree to .012. Single phases are chaotic: another card
  rounds differently, and one of twelve may end elsewhere.
* *iterative* methods amplify such differences: only their medians are compared, to .03 in AUC and
  .02 in ROC gap.

For the appendix tables (three digits, some of them of methods that were never released) and the
sepsis figures (whose cohort nobody else can draw exactly) the differences are reported, not judged.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

from dcem.benchmark.read import FREE_PARAMETERS
from dcem.table.checks import DataWarning, InputError, require_columns

METRICS = ("auc", "roc_gap")
SINGLE_STAGE = (
    "y-model",
    "y-obs",
    "group-0-only",
    "group-1-only",
    "tested-only",
    "gjs",
    "truncated-lq",
    "peer-loss",
    "group-peer-loss",
)
ITERATIVE = ("dcem", "self", "sar-em", "dividemix", "dragonnet")
MEDIAN_TOLERANCE = {"single-stage": {"auc": 0.012, "roc_gap": 0.012}} | {
    "iterative": {"auc": 0.03, "roc_gap": 0.02}
}
POINTS_TOLERANCE = 0.002  # of single-stage methods
PHASES = tuple(range(0, 360, 30))  # degrees
TABLES = ("ablation", "causal-estimators", "temperature", "initialization")

COLUMNS = [
    "source",  # figure, table or sepsis
    "setting",
    "method",
    "metric",
    "n",
    "ours",
    "published",
    "difference",  # of the medians, ours minus published
    "points",  # median absolute difference of the sorted points
    "verdict",  # agrees, off, incomplete or reported
    "why",
]


@cache
def _stored(name: str) -> pd.DataFrame:
    file = resources.files("dcem.paper") / "published_figures" / f"{name}.csv"
    with file.open("rb") as stream:
        frame = pd.read_csv(stream)
    if "values" in frame:
        points = [np.array(text.split(), dtype=float) for text in frame["values"]]
        frame["values"] = pd.Series(points, dtype=object)
    return frame


def figures() -> pd.DataFrame:
    """The simulation figures: q_y, k, q_t, method, metric, median, min, max, values (sorted)."""
    return _stored("synthetic").copy()


def sepsis_figures() -> pd.DataFrame:
    """The sepsis figures: k, q_t, method, metric, n, median, min, max, values."""
    return _stored("sepsis").copy()


def tables() -> pd.DataFrame:
    """The appendix tables: table, row, and median, minimum and maximum of AUC and ROC gap."""
    return _stored("tables").copy()


def compare(results: pd.DataFrame) -> pd.DataFrame:
    """Set results beside the published figures.

    Parameters
    ----------
    results
        One row a fit, with at least `q_y, k, q_t, phase, method, auc, roc_gap` (phase in degrees;
        sepsis rows have `beta` instead of q_y and phase). Rows of another `stream`, `variant` or
        `schedule` than "published" are left out; so are rows whose `label` says that they are
        something else than the method of the figures. `benchmark` and `label` tell the rows of the
        appendix tables ("temperature", "0.1"). `roc_gap_grid`, the published way to compute the
        gap, is preferred where it exists. A row without metrics is a fit that was planned and has
        no result.

    Returns
    -------
    One row for each setting, method and metric that both sides have: `ours` and `published` are
    medians, `points` the median absolute difference of the sorted points, `verdict` one of
    "agrees", "off", "incomplete" (fewer phases than published) and "reported" (no rule). In a
    benchmark every method runs at every setting: one that is missing at some is incomplete there.
    """
    require_columns(results.columns, ["k", "q_t", "method", "auc", "roc_gap"], "results")
    results = _at_published_phases(published_rows(results))
    in_table = results["benchmark"].isin(TABLES)
    sepsis = results["beta"].notna()
    found = [
        *_compare_figures(results[~in_table & ~sepsis]),
        *_compare_tables(results[in_table & ~sepsis]),
        *_compare_sepsis(results[sepsis]),
    ]
    return pd.DataFrame(found, columns=COLUMNS)


def is_off(comparison: pd.DataFrame) -> bool:
    """Whether anything that has a rule breaks it, or could not be judged yet."""
    return bool(comparison["verdict"].isin(["off", "incomplete"]).any())


def not_in(comparison: pd.DataFrame) -> list[str]:
    """Which parts of the simulation figures a comparison is not about, in words."""
    ours = comparison[comparison["source"] == "figure"]
    if ours.empty:
        return []
    theirs = figures()
    n_settings = len(theirs[["q_y", "k", "q_t"]].drop_duplicates())
    absent: dict[tuple[str, ...], list[str]] = {}  # settings, by the methods they lack
    for setting, rows in ours.groupby("setting", sort=False):
        methods = tuple(m for m in theirs["method"].unique() if m not in set(rows["method"]))
        absent.setdefault(methods, []).append(str(setting))
    told = []
    for methods, settings in absent.items():
        if methods:
            where = f" ({'; '.join(settings)})" if len(absent) > 1 else ""
            told.append(f"published methods not in these results{where}: {', '.join(methods)}")
    if ours["setting"].nunique() < n_settings:
        told.append(f"compared at {ours['setting'].nunique()} of {n_settings} published settings")
    return told


def published_rows(results: pd.DataFrame) -> pd.DataFrame:
    """The rows that claim to be the published runs, with every column that is read below."""
    results = results.copy()
    for column in ("q_y", "phase", "beta"):
        if column not in results:
            results[column] = np.nan
    for column, default in (("stream", "published"), ("benchmark", ""), ("label", None)):
        if column not in results:
            results[column] = results["method"] if default is None else default
    if "roc_gap_grid" in results:
        results["roc_gap"] = results["roc_gap_grid"].fillna(results["roc_gap"])
    other = pd.Series(False, index=results.index)
    for rows in _not_published(results).values():
        other |= rows
    return results[~other]


def left_out(results: pd.DataFrame) -> list[str]:
    """Why results are not held against the figures, in words: how many, and what they are."""
    return [
        f"{int(rows.sum())} of {len(results)} results are left out: {words}"
        for words, rows in _not_published(results).items()
        if rows.any()
    ]


def _not_published(results: pd.DataFrame) -> dict[str, pd.Series]:
    """What keeps rows from being the published runs -> the rows for which it holds."""
    found = {}
    sepsis = results.get("beta", pd.Series(np.nan, results.index)).notna()
    if "stream" in results:
        words = 'their draws are their own (write stream = "published" for the draws of the paper)'
        found[words] = results["stream"].ne("published") & ~sepsis
    for column in ("variant", "schedule"):
        if column in results:
            words = f"their {column} is not the published one (write published = true)"
            found[words] = ~results[column].fillna("").isin(["", "published"])
    for column in FREE_PARAMETERS:
        if column in results:
            found[f"they set {column}, which the figures leave alone"] = results[column].notna()
    if "label" in results:
        named = results["label"].isna() | results["label"].eq(results["method"])
        in_table = results.get("benchmark", pd.Series("", results.index)).isin(TABLES)
        found["their label is not the name of a method"] = ~named & ~in_table
    return found


def _at_published_phases(results: pd.DataFrame) -> pd.DataFrame:
    """Without rows at other boundaries, which the figures do not have; says how many there were."""
    other = results["phase"].notna() & ~results["phase"].isin(PHASES)
    if other.any():
        warnings.warn(
            f"Left out: {int(other.sum())} of {len(other)} results, whose phases are none of the "
            "published 0, 30, ..., 330 degrees.",
            DataWarning,
            stacklevel=3,
        )
    return results[~other]


def _compare_figures(results: pd.DataFrame) -> list[list[Any]]:
    rows = []
    for theirs in _each(figures()):
        here = results[_close(results, q_y=theirs.q_y, k=theirs.k, q_t=theirs.q_t)]
        ours = here[here["method"] == theirs.method]
        benchmarks = results[results["benchmark"].isin(here["benchmark"])]
        if theirs.method not in set(benchmarks["method"]):
            continue
        setting = f"q_y {theirs.q_y:g}, k {theirs.k:g}, q_t {theirs.q_t:g}"
        points = _points(ours, theirs.metric, "phase", f"{theirs.method} at {setting}")
        rows.append(_judge(setting, theirs.method, theirs.metric, points, theirs))
    return rows


def _judge(setting: str, method: str, metric: str, points: np.ndarray, theirs: Any) -> list[Any]:
    kind = "single-stage" if method in SINGLE_STAGE else "iterative"
    tolerance = MEDIAN_TOLERANCE[kind][metric]
    median = float(np.median(points)) if len(points) else np.nan
    difference = median - theirs.median
    distance, why = np.nan, []
    if len(points) < len(PHASES):
        verdict = "incomplete"
        why.append(_phases(points))
    else:
        distance = float(np.median(np.abs(np.sort(points) - theirs.values)))
        if not abs(difference) <= tolerance:
            why.append(f"medians differ by {abs(difference):.4f}, allowed {tolerance}")
        if kind == "single-stage" and not distance <= POINTS_TOLERANCE:
            why.append(f"points differ by {distance:.4f}, allowed {POINTS_TOLERANCE}")
        verdict = "off" if why else "agrees"
    head = ["figure", setting, method, metric, len(points), median, theirs.median]
    return [*head, difference, distance, verdict, "; ".join(why)]


def _phases(points: np.ndarray) -> str:
    return f"{len(points)} of {len(PHASES)} phases"


def _compare_tables(results: pd.DataFrame) -> list[list[Any]]:
    rows = []
    for theirs in _each(tables()):
        same = (results["benchmark"] == theirs.table) & (results["label"] == theirs.row)
        ours = results[same & _close(results, q_y=0.5, k=1.0, q_t=2.0)]
        if ours.empty:
            continue
        for metric in METRICS:
            points = _points(ours, metric, "phase", f"{theirs.row} of table {theirs.table}")
            published = float(getattr(theirs, metric))
            median = float(np.median(points)) if len(points) else np.nan
            low, high = (float(getattr(theirs, f"{metric}_{end}")) for end in ("min", "max"))
            verdict, why = "incomplete", _phases(points)
            if len(points) == len(PHASES):
                verdict, why = "reported", f"published range {low:.3f} to {high:.3f}"
                why += f", ours {points.min():.3f} to {points.max():.3f}"
            head = ["table", theirs.table, theirs.row, metric, len(points), median, published]
            rows.append([*head, median - published, np.nan, verdict, why])
    return rows


def _compare_sepsis(results: pd.DataFrame) -> list[list[Any]]:
    rows = []
    for theirs in _each(sepsis_figures()):
        same = _close(results, k=theirs.k, q_t=theirs.q_t) & (results["method"] == theirs.method)
        ours = results[same]
        if ours.empty:
            continue
        setting = f"k {theirs.k:.3g}, q_t {theirs.q_t:g}"
        metric = theirs.metric
        points = _points(ours, metric, "beta", f"{theirs.method} at {setting}")
        median = float(np.median(points)) if len(points) else np.nan
        head = ["sepsis", setting, theirs.method, metric, len(points), median, theirs.median]
        verdict, why = "reported", f"{theirs.n} published points could be told apart"
        if len(points) < ours["beta"].nunique():
            verdict, why = "incomplete", f"{len(points)} of {ours['beta'].nunique()} betas"
        rows.append([*head, median - theirs.median, np.nan, verdict, why])
    return rows


def _each(frame: pd.DataFrame) -> Iterator[Any]:
    """The rows as named tuples; their fields have the types of the columns."""
    return iter(frame.itertuples())


def _close(results: pd.DataFrame, **values: float) -> pd.Series:
    """Rows of a setting; thirds are written with four digits in some tables."""
    same = pd.Series(True, index=results.index)
    for name, value in values.items():
        same &= (results[name].astype(float) - value).abs() < 1e-3
    return same


def _points(ours: pd.DataFrame, metric: str, over: str, what: str) -> np.ndarray:
    """One value for each phase (or beta); two different ones for the same are refused."""
    values = ours[[over, metric]].dropna().drop_duplicates()
    twice = values[over][values[over].duplicated()]
    if len(twice):
        raise InputError(
            f"{what}: {over} {twice.iloc[0]:g} has several results. Compare one run at a time: "
            "filter the table by seed or configuration first."
        )
    return values[metric].to_numpy(dtype=float)
