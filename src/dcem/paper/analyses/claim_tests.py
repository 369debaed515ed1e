"""The tests that `claims` puts to each side: the numbers, and whether the sentence holds.

Every test carries its rule in words, which is printed beside the verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from dcem.paper.drawing import fraction
from dcem.paper.exhibits.tradeoff import FEW
from dcem.paper.published import METHOD_NAMES, METRIC_NAMES, ORACLE, SELECTED
from dcem.paper.spread import Spread, Spreads
from dcem.text import number

Answer = tuple[str, bool | None]  # the numbers in words; whether the sentence holds
NO_ANSWER: Answer = ("", None)
Setting = tuple[float, float, float]  # q_y, k, q_t
# What the text calls similar, read so generously that a failure is one by any reading.
SIMILAR_GAP, SIMILAR_AUC, SIMILAR_RANGE = 0.01, 0.1, 2.0  # the range as a factor
SIMILAR_TREND = 0.01  # of a rank: rivals that are ahead by no more do not break a trend
TRIVIAL = 0.01  # of a median
NO_MARGIN = "(no margin)"


@dataclass(frozen=True)
class Evidence:
    """Everything one side has."""

    simulation: Spreads = field(default_factory=dict)  # Figure 2
    settings: dict[Setting, Spreads] = field(default_factory=dict)  # and its appendix versions
    sepsis: Spreads = field(default_factory=dict)  # Figure 4
    tables: dict[str, Spreads] = field(default_factory=dict)
    by_auc: pd.DataFrame = field(default_factory=pd.DataFrame)  # windows of Figure 3
    by_gap: pd.DataFrame = field(default_factory=pd.DataFrame)
    overlap: pd.DataFrame = field(default_factory=pd.DataFrame)


@dataclass(frozen=True)
class Test:
    """A test, and the rule by which it says that a sentence holds."""

    rule: str
    ask: Callable[[Evidence], Answer]

    def __call__(self, evidence: Evidence) -> Answer:
        """The numbers of one side in words, and whether the sentence holds."""
        return self.ask(evidence)


def holds_if(rule: str) -> Callable[[Callable[[Evidence], Answer]], Test]:
    """Make a function a test with this rule."""
    return lambda ask: Test(rule, ask)


def _rivals(at_most: int, margin: float = 0.0) -> str:
    """The rule of a place among baselines: `at_most` 1 is the first."""
    count = {1: "no other", 2: "at most one other"}.get(at_most, f"at most {at_most - 1} others")
    return f"{count} better " + (f"by more than {number(margin, 2)}" if margin else NO_MARGIN)


def first(
    metric: str, statistic: str, *, at_most: int = 1, sepsis: bool = False, table: str = ""
) -> Test:
    """DCEM is at most the `at_most`-th of the baselines by a statistic of a metric."""

    @holds_if(_rivals(at_most))
    def test(evidence: Evidence) -> Answer:
        spreads = evidence.sepsis if sepsis else evidence.simulation
        names: tuple[str, ...] = SELECTED
        if table:
            spreads, names = evidence.tables.get(table, {}), tuple(METHOD_NAMES)
        return _place(spreads, metric, statistic, names, at_most)

    return test


def _place(
    spreads: Spreads,
    metric: str,
    statistic: str,
    names: tuple[str, ...],
    at_most: int,
    margin: float = 0.0,
) -> Answer:
    """DCEM's place among the named; rivals that are better by no more than the margin are not."""
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
        text += f" (DCEM is better than {len(order) - place} of {len(order) - 1})"
    clearly = sum(abs(values[name] - values["dcem"]) > margin for name in order[: place - 1])
    return text, clearly < at_most


def _statistic(one: Spread, metric: str, statistic: str) -> float:
    found = {"median": one.median, "worst": one.worst(metric), "range": one.range}
    return found[statistic]


def everywhere(
    metric: str,
    among: Callable[[Setting], bool],
    *,
    rival: str = "",
    at_most: int = 1,
    margin: float = 0.0,
) -> Test:
    """At every such setting DCEM's median is at most the `at_most`-th, or better than a rival's."""

    better = NO_MARGIN if rival else _rivals(at_most, margin)

    @holds_if(f"at every setting {better}")
    def test(evidence: Evidence) -> Answer:
        names = ("dcem", rival) if rival else SELECTED
        answers = {
            setting: _place(spreads, metric, "median", names, at_most, margin)
            for setting, spreads in sorted(evidence.settings.items())
            if among(setting)
        }
        answers = {setting: one for setting, one in answers.items() if one != NO_ANSWER}
        if not answers:
            return NO_ANSWER
        fails = [
            f"k {fraction(k)}, q_t {fraction(q_t)}: {text}"
            for (_, k, q_t), (text, holds) in answers.items()
            if not holds
        ]
        text = f"at {len(answers) - len(fails)} of {len(answers)} settings"
        return text + (f", not at {'; '.join(fails)}" if fails else ""), not fails

    return test


def ahead(rival: str, metric: str = "auc", at_least: float = 0.0) -> Test:
    """DCEM's median AUC is above a rival's by more than `at_least`."""

    @holds_if(f"by more than {number(at_least, 2)}")
    def test(evidence: Evidence) -> Answer:
        spreads = evidence.simulation
        if ("dcem", metric) not in spreads or (rival, metric) not in spreads:
            return NO_ANSWER
        mine, other = (spreads[name, metric].median for name in ("dcem", rival))
        text = f"DCEM {number(mine)}, {METHOD_NAMES[rival]} {number(other)}"
        return text, mine - other > at_least

    return test


def every_window(kind: str, rival: str, below: float, *, higher: bool) -> Test:
    """In every window below an edge DCEM's mean is the better one."""

    @holds_if(f"in every window of {FEW} fits or more {NO_MARGIN}")
    def test(evidence: Evidence) -> Answer:
        wide = _means(evidence, kind, rival)
        wide = wide[wide["high"] <= below + 1e-9] if len(wide) else wide
        if wide.empty:
            return NO_ANSWER
        lead = (wide["dcem"] - wide[rival]) * (1 if higher else -1)
        return _pairs(wide, rival), bool((lead > 0).all())

    return test


def similar_windows(rival: str, above: float) -> Test:
    """In every window of the gap above an edge the mean AUCs are similar."""

    @holds_if(f"within {number(SIMILAR_AUC, 2)} in every window")
    def test(evidence: Evidence) -> Answer:
        wide = _means(evidence, "gap", rival)
        wide = wide[wide["low"] >= above - 1e-9] if len(wide) else wide
        if wide.empty:
            return NO_ANSWER
        apart = (wide["dcem"] - wide[rival]).abs()
        return _pairs(wide, rival), bool((apart <= SIMILAR_AUC).all())

    return test


def _means(evidence: Evidence, kind: str, rival: str) -> pd.DataFrame:
    """One row a window that is worth a claim, with the means of DCEM and of the rival."""
    frame = evidence.by_auc if kind == "auc" else evidence.by_gap
    if frame.empty:
        return frame
    column = "mean_roc_gap" if kind == "auc" else "mean_auc"
    frame = frame[frame["n"] >= FEW]
    wide = frame.pivot_table(index=["low", "high"], columns="method", values=column)
    if "dcem" not in wide or rival not in wide:
        return pd.DataFrame()
    return wide.reset_index().dropna()


def _pairs(wide: pd.DataFrame, rival: str) -> str:
    pairs = [f"{number(a)} / {number(b)}" for a, b in zip(wide["dcem"], wide[rival], strict=True)]
    return f"DCEM / {METHOD_NAMES[rival]}: {', '.join(pairs)}"


@holds_if(f"within {number(SIMILAR_GAP, 2)}")
def top_window(evidence: Evidence) -> Answer:
    """Above an AUC of .875 the mean gaps are similar."""
    frame = evidence.by_auc
    if frame.empty:
        return NO_ANSWER
    top = frame[frame["high"] >= 1].set_index("method")["mean_roc_gap"].dropna()
    if not {"dcem", "tested-only"} <= set(top.index):
        return NO_ANSWER
    text = f"DCEM {number(top['dcem'])}, tested-only {number(top['tested-only'])}"
    return text, bool(abs(top["dcem"] - top["tested-only"]) <= SIMILAR_GAP)


@holds_if(f"more than half of the others larger {NO_MARGIN}")
def temperature_gap(evidence: Evidence) -> Answer:
    """Most other temperatures have a larger median gap than 1: they "tend to", says the text."""
    spreads = evidence.tables.get("temperature", {})
    gaps = {row: one.median for (row, metric), one in spreads.items() if metric == "roc_gap"}
    if "1" not in gaps or len(gaps) < 5:
        return NO_ANSWER
    text = ", ".join(f"τ {row}: {number(gap)}" for row, gap in gaps.items())
    larger = sum(gap > gaps["1"] for gap in gaps.values())
    return f"{text} ({larger} of {len(gaps) - 1} larger)", larger > (len(gaps) - 1) / 2


@holds_if(_rivals(1))
def temperature_worst(evidence: Evidence) -> Answer:
    """No temperature has a better worst-case AUC than 1."""
    spreads = evidence.tables.get("temperature", {})
    least = {row: one.low for (row, metric), one in spreads.items() if metric == "auc"}
    if "1" not in least or len(least) < 5:
        return NO_ANSWER
    text = ", ".join(f"τ {row}: {number(value)}" for row, value in least.items())
    return text, least["1"] == max(least.values())


@holds_if(f"both within {number(TRIVIAL, 2)}")
def same_start(evidence: Evidence) -> Answer:
    """Both medians hardly move with the start."""
    spreads = evidence.tables.get("initialization", {})
    if ("random", "auc") not in spreads or ("tested-only", "auc") not in spreads:
        return NO_ANSWER
    texts, small = [], True
    for metric in ("auc", "roc_gap"):
        one, two = (spreads[row, metric].median for row in ("random", "tested-only"))
        texts.append(f"{METRIC_NAMES[metric]} {number(one)} and {number(two)}")
        small &= abs(one - two) <= TRIVIAL
    return ", ".join(texts), small


@holds_if(f"all within {number(SIMILAR_AUC, 2)}")
def like_tested_only(evidence: Evidence) -> Answer:
    """The median AUCs of the causal estimators are similar to that of tested-only."""
    spreads = evidence.tables.get("causal-estimators", {})
    aucs = {
        name: one.median
        for (name, metric), one in spreads.items()
        if metric == "auc" and name != "dcem"
    }
    if "tested-only" not in aucs or len(aucs) < 2:
        return NO_ANSWER
    text = ", ".join(f"{METHOD_NAMES[name]} {number(auc)}" for name, auc in aucs.items())
    return text, all(abs(auc - aucs["tested-only"]) <= SIMILAR_AUC for auc in aucs.values())


@holds_if(f"all three no larger {NO_MARGIN}")
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


def overlap_drop(metric: str) -> Test:
    """From the flattest to the steepest slope DCEM's median loses least."""

    @holds_if(f"least loss of the median, flattest to steepest {NO_MARGIN}")
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


@holds_if(f"widest at most {SIMILAR_RANGE:g} times the narrowest, AUC and gap")
def tight_ranges(evidence: Evidence) -> Answer:
    """DCEM's ranges are similar at all levels of overlap, in both metrics."""
    ranges = _ranges(evidence)
    if ("dcem", "auc") not in ranges:
        return NO_ANSWER
    texts, tight = [], True
    for metric in ("auc", "roc_gap"):
        wide = ranges["dcem", metric]
        texts.append(f"{METRIC_NAMES[metric]} {', '.join(map(number, wide))}")
        tight &= bool(wide.max() <= SIMILAR_RANGE * wide.min())
    return "range: " + "; ".join(texts), tight


@holds_if(f"each wider at steepest than at flattest, AUC and gap {NO_MARGIN}")
def causal_ranges_widen(evidence: Evidence) -> Answer:
    """The ranges of all causal estimators are wider at the steepest slope than at the flattest."""
    ranges = {key: wide for key, wide in _ranges(evidence).items() if key[0] != "dcem"}
    if not ranges:
        return NO_ANSWER
    text = ", ".join(
        f"{METHOD_NAMES[name]} {number(wide.iloc[0])} to {number(wide.iloc[-1])}"
        for (name, metric), wide in ranges.items()
        if metric == "auc"
    )
    return f"AUC range: {text}", all(wide.iloc[-1] > wide.iloc[0] for wide in ranges.values())


def _ranges(evidence: Evidence) -> dict[tuple[str, str], pd.Series]:
    """From the least to the greatest over boundaries, by slope in ascending order."""
    frame = evidence.overlap
    if frame.empty or frame["slope_factor"].nunique() < 2:
        return {}
    frame = frame.assign(range=frame["ours_max"] - frame["ours_min"]).sort_values("slope_factor")
    return {
        (str(name), str(metric)): part.reset_index(drop=True)
        for (name, metric), part in frame.groupby(["method", "metric"], sort=False)["range"]
    }
