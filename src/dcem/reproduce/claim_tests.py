"""The tests that `claims` puts to each side: the numbers, and whether the sentence holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from dcem.report.words import number
from dcem.reproduce.spread import (
    METHOD_NAMES,
    METRIC_NAMES,
    ORACLE,
    SELECTED,
    Spread,
    Spreads,
)
from dcem.reproduce.tradeoff import FEW

Answer = tuple[str, bool | None]  # the numbers in words; whether the sentence holds
NO_ANSWER: Answer = ("", None)


@dataclass(frozen=True)
class Evidence:
    """Everything one side has."""

    simulation: Spreads = field(default_factory=dict)  # Figure 2
    sepsis: Spreads = field(default_factory=dict)  # Figure 4
    tables: dict[str, Spreads] = field(default_factory=dict)
    by_auc: pd.DataFrame = field(default_factory=pd.DataFrame)  # windows of Figure 3
    by_gap: pd.DataFrame = field(default_factory=pd.DataFrame)
    overlap: pd.DataFrame = field(default_factory=pd.DataFrame)


def first(
    metric: str, statistic: str, *, at_most: int = 1, sepsis: bool = False, table: str = ""
) -> Callable[[Evidence], Answer]:
    """DCEM is at most the `at_most`-th of the baselines by a statistic of a metric."""

    def test(evidence: Evidence) -> Answer:
        spreads = evidence.sepsis if sepsis else evidence.simulation
        names: tuple[str, ...] = SELECTED
        if table:
            spreads, names = evidence.tables.get(table, {}), tuple(METHOD_NAMES)
        values = {
            name: _statistic(one, metric, statistic)
            for (name, of), one in spreads.items()
            if of == metric and name in names and name != ORACLE and not np.isnan(one.median)
        }
        if "dcem" not in values or len(values) < 2:
            return NO_ANSWER
        more = metric == "auc" and statistic != "range"
        order = sorted(values, key=values.__getitem__, reverse=more)
        place = order.index("dcem") + 1
        rival = order[1] if place == 1 else order[0]
        text = f"DCEM {number(values['dcem'])}, {METHOD_NAMES[rival]} {number(values[rival])}"
        if place > 2:
            text += f" (DCEM: {place} of {len(order)})"
        return text, place <= at_most

    return test


def _statistic(one: Spread, metric: str, statistic: str) -> float:
    found = {"median": one.median, "worst": one.worst(metric), "range": one.range}
    return found[statistic]


def ahead(rival: str, metric: str = "auc", at_least: float = 0.0) -> Callable[[Evidence], Answer]:
    """DCEM's median AUC is above a rival's by more than `at_least`."""

    def test(evidence: Evidence) -> Answer:
        spreads = evidence.simulation
        if ("dcem", metric) not in spreads or (rival, metric) not in spreads:
            return NO_ANSWER
        mine, other = (spreads[name, metric].median for name in ("dcem", rival))
        text = f"DCEM {number(mine)}, {METHOD_NAMES[rival]} {number(other)}"
        return text, mine - other > at_least

    return test


def every_window(
    kind: str, rival: str, below: float, *, higher: bool
) -> Callable[[Evidence], Answer]:
    """In every window below an edge DCEM's mean is the better one."""

    def test(evidence: Evidence) -> Answer:
        frame = evidence.by_auc if kind == "auc" else evidence.by_gap
        if frame.empty:
            return NO_ANSWER
        column = "mean_roc_gap" if kind == "auc" else "mean_auc"
        frame = frame[frame["n"] >= FEW]
        wide = frame.pivot_table(index=["low", "high"], columns="method", values=column)
        if "dcem" not in wide or rival not in wide:
            return NO_ANSWER
        wide = wide.reset_index().dropna()
        wide = wide[wide["high"] <= below + 1e-9]
        if wide.empty:
            return NO_ANSWER
        lead = (wide["dcem"] - wide[rival]) * (1 if higher else -1)
        pairs = [
            f"{number(a)} / {number(b)}" for a, b in zip(wide["dcem"], wide[rival], strict=True)
        ]
        return f"DCEM / {METHOD_NAMES[rival]}: {', '.join(pairs)}", bool((lead > 0).all())

    return test


def top_window(evidence: Evidence) -> Answer:
    """Above an AUC of .875 the mean gaps are within .01 of each other."""
    frame = evidence.by_auc
    if frame.empty:
        return NO_ANSWER
    top = frame[frame["high"] >= 1].set_index("method")["mean_roc_gap"].dropna()
    if not {"dcem", "tested-only"} <= set(top.index):
        return NO_ANSWER
    text = f"DCEM {number(top['dcem'])}, tested-only {number(top['tested-only'])}"
    return text, bool(abs(top["dcem"] - top["tested-only"]) <= 0.01)


def temperature_gap(evidence: Evidence) -> Answer:
    """No temperature has a smaller median gap than 1."""
    spreads = evidence.tables.get("temperature", {})
    gaps = {row: one.median for (row, metric), one in spreads.items() if metric == "roc_gap"}
    if "1" not in gaps or len(gaps) < 5:
        return NO_ANSWER
    text = ", ".join(f"τ {row}: {number(gap)}" for row, gap in gaps.items())
    return text, gaps["1"] == min(gaps.values())


def temperature_worst(evidence: Evidence) -> Answer:
    """No temperature has a better worst-case AUC than 1."""
    spreads = evidence.tables.get("temperature", {})
    least = {row: one.low for (row, metric), one in spreads.items() if metric == "auc"}
    if "1" not in least or len(least) < 5:
        return NO_ANSWER
    text = ", ".join(f"τ {row}: {number(value)}" for row, value in least.items())
    return text, least["1"] == max(least.values())


def same_start(evidence: Evidence) -> Answer:
    """Both medians move by at most .01 with the start."""
    spreads = evidence.tables.get("initialization", {})
    if ("random", "auc") not in spreads or ("tested-only", "auc") not in spreads:
        return NO_ANSWER
    texts, small = [], True
    for metric in ("auc", "roc_gap"):
        one, two = (spreads[row, metric].median for row in ("random", "tested-only"))
        texts.append(f"{METRIC_NAMES[metric]} {number(one)} and {number(two)}")
        small &= abs(one - two) <= 0.01
    return ", ".join(texts), small


def three_fairer(evidence: Evidence) -> Answer:
    """On sepsis, three baselines have smaller median gaps than DCEM."""
    names = ("dcem", "group-peer-loss", "dragonnet", "group-0-only")
    gaps = {
        n: evidence.sepsis[n, "roc_gap"].median for n in names if (n, "roc_gap") in evidence.sepsis
    }
    if len(gaps) < len(names):
        return NO_ANSWER
    text = ", ".join(f"{METHOD_NAMES[name]} {number(gap)}" for name, gap in gaps.items())
    return text, all(gap <= gaps["dcem"] for gap in gaps.values())


def overlap_drop(metric: str) -> Callable[[Evidence], Answer]:
    """From the flattest to the steepest slope DCEM's median loses least."""

    def test(evidence: Evidence) -> Answer:
        frame = evidence.overlap
        if frame.empty or frame["slope_factor"].nunique() < 2:
            return NO_ANSWER
        wide = frame[frame["metric"] == metric].pivot_table(
            index="slope_factor", columns="method", values="ours_median"
        )
        if "dcem" not in wide:
            return NO_ANSWER
        change = (wide.iloc[0] - wide.iloc[-1]) * (1 if metric == "auc" else -1)
        text = ", ".join(f"{METHOD_NAMES[name]} {number(change[name])}" for name in change.index)
        return f"loss: {text}", change.idxmin() == "dcem"

    return test
