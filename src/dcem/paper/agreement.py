"""Do results agree: with the published figures, or with another run of the same cells?

Training is full-batch from fixed seeds on known draws, so most methods can be held to the published
*points*, not just to their spread. Which phase a point belongs to is not recorded, so the twelve
points of a setting are compared in sorted order; two runs of ours (on another machine, of another
version) are compared cell by cell. Two kinds of method, two rules:

* *single-stage* methods (one network, one loss): the median absolute difference of the points is at
  most .002, and the medians agree to .012. Single phases are chaotic: another card rounds
  differently, and one of twelve may end elsewhere.
* *iterative* methods amplify such differences: only their medians are compared, to .03 in AUC and
  .02 in ROC gap.

For the appendix tables (three digits, some of them of methods that were never released) and the
sepsis figures (whose cohort nobody else can draw exactly) the differences are reported, not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dcem.benchmark.read import WITHIN, setting_columns
from dcem.paper import published
from dcem.paper.published import SETTING, SINGLE_STAGE, TABLES, at, each, parts_of
from dcem.table.messages import InputError, notice, require_columns
from dcem.tasks.sinusoid.make import DEGREES

if TYPE_CHECKING:
    from rich.console import Console

JUDGED = ("auc", "roc_gap")
MEDIAN_TOLERANCE = {"single-stage": {"auc": 0.012, "roc_gap": 0.012}} | {
    "iterative": {"auc": 0.03, "roc_gap": 0.02}
}
POINTS_TOLERANCE = 0.002  # of single-stage methods
COLUMNS = [
    "source",  # figure, table, sepsis or runs
    "setting",
    "method",
    "metric",
    "n",
    "ours",
    "published",  # or of the other run
    "difference",  # of the medians, ours minus published
    "points",  # median absolute difference of the points
    "verdict",  # agrees, off, incomplete or reported
    "why",
]
STYLES = {"agrees": "green", "off": "bold red", "incomplete": "yellow", "reported": "dim"}


def compare_published(results: pd.DataFrame) -> pd.DataFrame:
    """Set results beside the published figures.

    Parameters
    ----------
    results
        One row per fit, with at least `q_y, k, q_t, phase, method, auc, roc_gap` (phase in degrees;
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
    parts = (
        (_compare_figures, ~in_table & ~sepsis),
        (_compare_tables, in_table & ~sepsis),
        (_compare_sepsis, sepsis),
    )
    found = [row for compare, mine in parts if mine.any() for row in compare(results[mine])]
    return pd.DataFrame(found, columns=COLUMNS)


def is_off(comparison: pd.DataFrame) -> bool:
    """Whether anything that has a rule breaks it, or could not be judged yet."""
    return bool(comparison["verdict"].isin(["off", "incomplete"]).any())


def not_in(comparison: pd.DataFrame) -> list[str]:
    """Which parts of the simulation figures a comparison is not about, in words."""
    ours = comparison[comparison["source"] == "figure"]
    if ours.empty:
        return []
    theirs = published.figures()
    n_settings = len(theirs[SETTING].drop_duplicates())
    absent: dict[tuple[str, ...], list[str]] = {}  # settings, by the methods they lack
    for setting, rows in ours.groupby("setting", sort=False):
        methods = tuple(m for m in theirs["method"].unique() if m not in set(rows["method"]))
        absent.setdefault(methods, []).append(str(setting))
    notes = []
    for methods, settings in absent.items():
        if methods:
            where = f" ({'; '.join(settings)})" if len(absent) > 1 else ""
            notes.append(f"published methods not in these results{where}: {', '.join(methods)}")
    if ours["setting"].nunique() < n_settings:
        notes.append(f"compared at {ours['setting'].nunique()} of {n_settings} published settings")
    return notes


def published_rows(results: pd.DataFrame) -> pd.DataFrame:
    """The rows that claim to be the published runs, with every column that is read below."""
    absent: dict[str, Any] = dict.fromkeys(("q_y", "phase", "beta"), np.nan)
    absent |= {"stream": "published", "benchmark": "", "label": results["method"]}
    results = results.assign(**{name: v for name, v in absent.items() if name not in results})
    if "roc_gap_grid" in results:
        results["roc_gap"] = results["roc_gap_grid"].fillna(results["roc_gap"])
    return results[~np.logical_or.reduce(list(_not_published(results).values()))]


def left_out(results: pd.DataFrame) -> list[str]:
    """Why results are not compared with the figures, in words: how many, and what they are."""
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
    for column in setting_columns(results):
        if column not in ("task", *SETTING):
            usual = results[column].isna() | results[column].isin(["as-released", "published"])
            found[f"they set {column}, which the figures leave alone"] = ~usual
    if "label" in results:
        named = results["label"].isna() | results["label"].eq(results["method"])
        in_table = results.get("benchmark", pd.Series("", results.index)).isin(TABLES)
        found["their label is not the name of a method"] = ~named & ~in_table
    return found


def _at_published_phases(results: pd.DataFrame) -> pd.DataFrame:
    """Without rows at other boundaries, which the figures do not have; says how many there were."""
    other = results["phase"].notna() & ~results["phase"].isin(DEGREES)
    if other.any():
        notice(
            f"Left out: {int(other.sum())} of {len(other)} results, whose phases are none of the "
            "published 0, 30, ..., 330 degrees."
        )
    return results[~other]


def _compare_figures(results: pd.DataFrame) -> Iterator[list[Any]]:
    for (q_y, k, q_t), figure in parts_of(published.figures(), SETTING):
        here = results[at(results, q_y=q_y, k=k, q_t=q_t)]
        owed = set(results["method"][results["benchmark"].isin(here["benchmark"])])
        setting = f"q_y {q_y:g}, k {k:g}, q_t {q_t:g}"
        by_method = dict(list(here.groupby("method")))
        for theirs in each(figure[figure["method"].isin(owed)]):
            ours = by_method.get(theirs.method, here[:0])
            points = _one_per_place(ours, theirs.metric, "phase", f"{theirs.method} at {setting}")
            place = ("figure", setting, theirs.method, theirs.metric)
            sides = np.sort(points), theirs.values
            medians = _median(points), theirs.median
            yield _judged(place, theirs.method, medians, *sides, _lacking(points))


def _compare_tables(results: pd.DataFrame) -> Iterator[list[Any]]:
    for theirs in each(published.tables()):
        same = (results["benchmark"] == theirs.table) & (results["label"] == theirs.row)
        ours = results[same & at(results, q_y=0.5, k=1.0, q_t=2.0)]
        for metric in JUDGED if len(ours) else ():
            points = _one_per_place(ours, metric, "phase", f"{theirs.row} of table {theirs.table}")
            low, high = (float(getattr(theirs, f"{metric}_{end}")) for end in ("min", "max"))
            lacking, note = _lacking(points), f"published range {low:.3f} to {high:.3f}"
            if not lacking:
                note += f", ours {points.min():.3f} to {points.max():.3f}"
            place = ("table", theirs.table, theirs.row, metric)
            yield _reported(place, points, float(getattr(theirs, metric)), lacking, note)


def _compare_sepsis(results: pd.DataFrame) -> Iterator[list[Any]]:
    for theirs in each(published.sepsis_figures()):
        same = at(results, k=theirs.k, q_t=theirs.q_t) & (results["method"] == theirs.method)
        ours = results[same]
        if ours.empty:
            continue
        setting = f"k {theirs.k:.3g}, q_t {theirs.q_t:g}"
        points = _one_per_place(ours, theirs.metric, "beta", f"{theirs.method} at {setting}")
        planned = ours["beta"].nunique()
        lacking = f"{len(points)} of {planned} betas" if len(points) < planned else ""
        note = f"{theirs.n} published points could be distinguished"
        place = ("sepsis", setting, theirs.method, theirs.metric)
        yield _reported(place, points, theirs.median, lacking, note)


def compare_runs(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Two tables of results, setting by setting; columns as of `compare_published`.

    `ours` and `published` are the medians of the two runs, `points` is the median absolute
    difference of paired cells. Cells that only one run has, or that have no result, make a setting
    "incomplete".
    """
    for frame, which in ((ours, "the first run"), (theirs, "the second run")):
        require_columns(frame.columns, ["method", *JUDGED], which)
    setting = [*dict.fromkeys(setting_columns(ours) + setting_columns(theirs)), "method", "label"]
    setting = [c for c in setting if c in ours and c in theirs]
    keys = setting + [c for c in WITHIN if c in ours and c in theirs]
    left, right = (frame[[*keys, *JUDGED]].drop_duplicates() for frame in (ours, theirs))
    for frame in (left, right):
        frame[keys] = frame[keys].map(_key)
    both = left.merge(right, on=keys, how="outer", suffixes=("", "_other"), indicator=True)
    if not (both["_merge"] == "both").any():
        raise InputError("The two runs have no cell in common: there is nothing to compare.")
    if both.duplicated(keys).any():
        several = sorted(set(both.loc[both.duplicated(keys), "method"]))
        raise InputError(
            f"One run has several results for the same cells of {', '.join(several)}: compare one "
            "`benchmark` at a time."
        )
    rows = []
    for values, part in both.groupby(setting, sort=False):
        named = dict(zip(setting, values, strict=True))
        rows += [_compare_cells(named, part, metric) for metric in JUDGED]
    return pd.DataFrame(rows, columns=COLUMNS)


def _key(value: Any) -> str:
    """A parameter as text that is the same in every table: thirds are thirds."""
    if pd.isna(value):
        return ""
    number = isinstance(value, float | int) and not isinstance(value, bool)
    return f"{round(float(value), 6):.15g}" if number else str(value)


def _compare_cells(named: dict[str, Any], part: pd.DataFrame, metric: str) -> list[Any]:
    both = part["_merge"] == "both"
    paired = part[both].dropna(subset=[metric, f"{metric}_other"])
    alone, unfinished = int((~both).sum()), int(both.sum()) - len(paired)
    lacking = [f"{alone} cells are in one run only"] * bool(alone)
    lacking += [f"{unfinished} cells have no result"] * bool(unfinished)
    told = ((name, value) for name, value in named.items() if name not in ("method", "label"))
    words = ", ".join(
        value if name == "task" else f"{name} {value}" for name, value in told if value
    )
    place = ("runs", words, str(named.get("label", named["method"])), metric)
    ours, theirs = (paired[name].to_numpy(float) for name in (metric, f"{metric}_other"))
    medians = _median(ours), _median(theirs)
    return _judged(place, named["method"], medians, ours, theirs, "; ".join(lacking))


def _judged(
    place: tuple[str, str, str, str],
    method: str,
    medians: tuple[float, float],
    ours: np.ndarray,
    theirs: np.ndarray,
    lacking: str,
) -> list[Any]:
    """A row with a verdict: points of both sides in an order in which they can be paired."""
    kind = "single-stage" if method in SINGLE_STAGE else "iterative"
    tolerance = MEDIAN_TOLERANCE[kind][place[3]]
    difference, why = medians[0] - medians[1], []
    distance = _median(np.abs(ours - theirs)) if len(ours) == len(theirs) else np.nan
    if not abs(difference) <= tolerance:
        why.append(f"medians differ by {abs(difference):.4f}, allowed {tolerance}")
    if kind == "single-stage" and not distance <= POINTS_TOLERANCE:
        why.append(f"points differ by {distance:.4f}, allowed {POINTS_TOLERANCE}")
    verdict = "incomplete" if lacking else "off" if why else "agrees"
    note = lacking or "; ".join(why)
    return [*place, len(ours), *medians, difference, distance, verdict, note]


def _reported(
    place: tuple[str, str, str, str], points: np.ndarray, theirs: float, lacking: str, note: str
) -> list[Any]:
    """A row without a rule."""
    median, verdict = _median(points), "incomplete" if lacking else "reported"
    numbers = [len(points), median, theirs, median - theirs, np.nan]
    return [*place, *numbers, verdict, lacking or note]


def _median(values: np.ndarray) -> float:
    return float(np.median(values)) if len(values) else np.nan


def _lacking(points: np.ndarray) -> str:
    return f"{len(points)} of {len(DEGREES)} phases" if len(points) < len(DEGREES) else ""


def _one_per_place(ours: pd.DataFrame, metric: str, over: str, what: str) -> np.ndarray:
    """One value for each phase (or beta); two different ones for the same are refused."""
    both = ours[[over, metric]].to_numpy(dtype=float)
    places, values = np.unique(both[~np.isnan(both).any(axis=1)], axis=0).T
    twice = places[1:][places[1:] == places[:-1]]
    if len(twice):
        raise InputError(
            f"{what}: {over} {twice[0]:g} has several results. Compare one run at a time: "
            "filter the table by seed or configuration first."
        )
    return values


def print_comparison(
    comparison: pd.DataFrame,
    console: Console | None = None,
    *,
    everything: bool = True,
    left_out: Sequence[str] = (),
) -> None:
    """Print a comparison with the published figures, and last what is off.

    With `everything=False` only what is off is listed. `left_out` says what was not compared, for
    the case that nothing was.
    """
    from rich.console import Console
    from rich.table import Table

    console = console or Console()
    if comparison.empty:
        console.print("Nothing to compare: no result is one of the published figures.")
        for line in left_out:
            console.print(line, soft_wrap=True, markup=False, highlight=False)
        return
    off = comparison["verdict"].isin(["off", "incomplete"])
    listed = comparison if everything else comparison[off]
    forms = {"ours": ".4f", "published": ".4f", "difference": "+.4f", "points": ".4f"}
    for (source, setting), rows in listed.groupby(["source", "setting"], sort=False):
        table = Table(
            "method", "metric", title=f"{source}: {setting}", title_justify="left", box=None
        )
        for column in ("ours", "theirs", "difference", "points"):
            table.add_column(column, justify="right")
        table.add_column("verdict")
        for made in table.columns:
            made.no_wrap = True
        table.add_column("", overflow="fold")
        for row in rows.to_dict("records"):
            numbers = [
                "" if pd.isna(row[name]) else format(row[name], form)
                for name, form in forms.items()
            ]
            note = row["why"] if row["verdict"] == "reported" else ""  # the others: at the end
            table.add_row(row["method"], row["metric"], *numbers, _styled(row["verdict"]), note)
        console.print(table)
        console.print()
    counts = comparison["verdict"].value_counts()
    console.print(", ".join(f"{counts[name]} {name}" for name in STYLES if name in counts))
    for row in comparison[off].to_dict("records"):
        what = f"{row['method']}, {row['metric']} ({row['setting']})"
        console.print(f"{_styled(row['verdict'])}: {what}: {row['why']}", soft_wrap=True)


def _styled(verdict: str) -> str:
    return f"[{STYLES[verdict]}]{verdict}[/]"
