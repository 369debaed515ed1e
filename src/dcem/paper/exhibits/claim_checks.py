"""The tests that `claims` puts to each side: the numbers, and whether the sentence holds.

Every test carries its rule in words, which is printed beside the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dcem.paper.exhibits.tradeoff import FEW_FITS
from dcem.paper.published import METHOD_NAMES, METRIC_NAMES, ORACLE, SELECTED
from dcem.paper.spread import Spreads
from dcem.text import fraction, number

Verdict = tuple[str, bool | None]  # the numbers in words; whether the sentence holds
NO_ANSWER: Verdict = ("", None)
Setting = tuple[float, float, float]  # q_y, k, q_t
# What the text calls similar, read so generously that a failure is one by any reading.
SIMILAR_GAP, SIMILAR_AUC, SIMILAR_RANGE = 0.01, 0.1, 2.0  # the range as a factor
SIMILAR_TREND = 0.01  # of a rank: rivals that are ahead by no more do not break a trend
TRIVIAL = 0.01  # of a median
NO_MARGIN = "(no margin)"
BOTH = ("auc", "roc_gap")


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
    ask: Callable[[Evidence], Verdict]

    def __call__(self, evidence: Evidence) -> Verdict:
        """The numbers of one side in words, and whether it holds; no answer where one is absent."""
        try:
            return self.ask(evidence)
        except KeyError:
            return NO_ANSWER


def holds_if(rule: str) -> Callable[[Callable[[Evidence], Verdict]], Test]:
    """Make a function a test with this rule."""
    return lambda ask: Test(rule, ask)


def _values(spreads: Spreads, metric: str, statistic: str = "median") -> dict[str, float]:
    """Method, or row of a table -> what it reaches."""
    chosen = {name: one for (name, of), one in spreads.items() if of == metric}
    return {name: one.numbers(metric)[statistic] for name, one in chosen.items()}


def _listed_values(values: Mapping[Any, float]) -> str:
    return ", ".join(f"{METHOD_NAMES[name]} {number(value)}" for name, value in values.items())


# -- DCEM's place ------------------------------------------------------------------------------


def _rivals(at_most: int, margin: float = 0.0) -> str:
    """The rule of a place among baselines: `at_most` 1 is the first."""
    count = {1: "no other", 2: "at most one other"}.get(at_most, f"at most {at_most - 1} others")
    return f"{count} better " + (f"by more than {number(margin, 2)}" if margin else NO_MARGIN)


def _place(
    spreads: Spreads,
    metric: str,
    statistic: str,
    names: Collection[str],
    at_most: int,
    margin: float = 0.0,
) -> Verdict:
    """DCEM's place among the named; rivals that are better by no more than the margin are not."""
    values = {
        name: value
        for name, value in _values(spreads, metric, statistic).items()
        if name in names and name != ORACLE and not np.isnan(value)
    }
    if "dcem" not in values or len(values) < 2:
        return NO_ANSWER
    more = metric == "auc" and statistic != "range"
    order = sorted(values, key=values.__getitem__, reverse=more)
    place = order.index("dcem") + 1
    rival = order[1] if place == 1 else order[0]
    text = _listed_values({name: values[name] for name in ("dcem", rival)})
    if place > 2:
        text += f" (DCEM is better than {len(order) - place} of {len(order) - 1})"
    clearly = sum(abs(values[name] - values["dcem"]) > margin for name in order[: place - 1])
    return text, clearly < at_most


def first(
    metric: str, statistic: str, *, at_most: int = 1, sepsis: bool = False, table: str = ""
) -> Test:
    """DCEM is at most the `at_most`-th of the baselines by a statistic of a metric."""

    @holds_if(_rivals(at_most))
    def test(evidence: Evidence) -> Verdict:
        if table:
            return _place(evidence.tables[table], metric, statistic, METHOD_NAMES, at_most)
        spreads = evidence.sepsis if sepsis else evidence.simulation
        return _place(spreads, metric, statistic, SELECTED, at_most)

    return test


def everywhere(
    metric: str,
    among: Callable[[Setting], bool],
    *,
    rival: str = "",
    at_most: int = 1,
    margin: float = 0.0,
) -> Test:
    """At every such setting DCEM's median is at most the `at_most`-th, or better than a rival's."""

    @holds_if(f"at every setting {NO_MARGIN if rival else _rivals(at_most, margin)}")
    def test(evidence: Evidence) -> Verdict:
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


def ahead(rival: str, at_least: float) -> Test:
    """DCEM's median AUC is above a rival's by more than `at_least`."""

    @holds_if(f"by more than {number(at_least, 2)}")
    def test(evidence: Evidence) -> Verdict:
        aucs = _values(evidence.simulation, "auc")
        both = {name: aucs[name] for name in ("dcem", rival)}
        return _listed_values(both), both["dcem"] - both[rival] > at_least

    return test


# -- fits of similar AUC, or of similar gap ------------------------------------------------------


def _windows(
    rule: str,
    rival: str,
    inside: Callable[[pd.DataFrame], pd.Series],
    holds: Callable[[pd.Series], pd.Series],
    *,
    gap: bool,
) -> Test:
    """In every window worth a claim, DCEM's mean less the rival's is as it should be."""

    @holds_if(rule)
    def test(evidence: Evidence) -> Verdict:
        frame = evidence.by_gap if gap else evidence.by_auc
        wide = frame[frame["n"] >= FEW_FITS].pivot_table(
            index=["low", "high"], columns="method", values="mean_auc" if gap else "mean_roc_gap"
        )
        wide = wide[["dcem", rival]].reset_index().dropna()
        wide = wide[inside(wide)]
        if wide.empty:
            return NO_ANSWER
        means = zip(wide["dcem"], wide[rival], strict=True)
        text = ", ".join(f"{number(mine)} / {number(other)}" for mine, other in means)
        lead = wide["dcem"] - wide[rival]
        return f"DCEM / {METHOD_NAMES[rival]}: {text}", bool(holds(lead).all())

    return test


def every_window(rival: str, below: float, *, gap: bool) -> Test:
    """In every window below an edge DCEM's mean is the better one: AUC (of `gap`), or gap."""
    return _windows(
        f"in every window of {FEW_FITS} fits or more {NO_MARGIN}",
        rival,
        lambda wide: wide["high"] <= below + 1e-9,
        lambda lead: lead > 0 if gap else lead < 0,
        gap=gap,
    )


def similar_windows(rival: str, above: float) -> Test:
    """In every window of the gap above an edge the mean AUCs are similar."""
    return _windows(
        f"within {number(SIMILAR_AUC, 2)} in every window",
        rival,
        lambda wide: wide["low"] >= above - 1e-9,
        lambda lead: lead.abs() <= SIMILAR_AUC,
        gap=True,
    )


@holds_if(f"within {number(SIMILAR_GAP, 2)}")
def top_window(evidence: Evidence) -> Verdict:
    """Above an AUC of .875 the mean gaps are similar."""
    windows = evidence.by_auc
    top = windows[windows["high"] >= 1].set_index("method")["mean_roc_gap"].dropna()
    apart = abs(top["dcem"] - top["tested-only"])
    return _listed_values({n: top[n] for n in ("dcem", "tested-only")}), bool(apart <= SIMILAR_GAP)


# -- the appendix tables, and sepsis --------------------------------------------------------------


def _temperatures(evidence: Evidence, metric: str, statistic: str) -> tuple[str, dict[str, float]]:
    """In words, and temperature -> what is reached."""
    found = _values(evidence.tables["temperature"], metric, statistic)
    values = {row: found[row] for row in ("0.01", "0.1", "1", "10", "100")}
    return ", ".join(f"τ {row}: {number(value)}" for row, value in values.items()), values


@holds_if(f"more than half of the others larger {NO_MARGIN}")
def temperature_gap(evidence: Evidence) -> Verdict:
    """Most other temperatures have a larger median gap than 1: they "tend to", says the text."""
    text, gaps = _temperatures(evidence, "roc_gap", "median")
    larger, others = sum(gap > gaps["1"] for gap in gaps.values()), len(gaps) - 1
    return f"{text} ({larger} of {others} larger)", larger > others / 2


@holds_if(_rivals(1))
def temperature_worst(evidence: Evidence) -> Verdict:
    """No temperature has a better worst-case AUC than 1."""
    text, least = _temperatures(evidence, "auc", "worst")
    return text, least["1"] == max(least.values())


@holds_if(f"both within {number(TRIVIAL, 2)}")
def same_start(evidence: Evidence) -> Verdict:
    """Both medians hardly move with the start."""
    spreads = evidence.tables["initialization"]
    texts, small = [], True
    for metric in BOTH:
        one, two = (spreads[row, metric].median for row in ("random", "tested-only"))
        texts.append(f"{METRIC_NAMES[metric]} {number(one)} and {number(two)}")
        small &= abs(one - two) <= TRIVIAL
    return ", ".join(texts), small


@holds_if(f"all within {number(SIMILAR_AUC, 2)}")
def like_tested_only(evidence: Evidence) -> Verdict:
    """The median AUCs of the causal estimators are similar to that of tested-only."""
    aucs = _values(evidence.tables["causal-estimators"], "auc")
    aucs.pop("dcem", None)
    if len(aucs) < 2:
        return NO_ANSWER
    near = all(abs(auc - aucs["tested-only"]) <= SIMILAR_AUC for auc in aucs.values())
    return _listed_values(aucs), near


@holds_if(f"all three no larger {NO_MARGIN}")
def three_fairer(evidence: Evidence) -> Verdict:
    """On sepsis, three baselines have smaller median gaps than DCEM."""
    found = _values(evidence.sepsis, "roc_gap")
    gaps = {name: found[name] for name in ("dcem", "group-peer-loss", "dragonnet", "group-0-only")}
    return _listed_values(gaps), all(gap <= gaps["dcem"] for gap in gaps.values())


# -- less overlap ---------------------------------------------------------------------------------


def _by_slope(evidence: Evidence, metric: str, of: str) -> pd.DataFrame:
    """A number by slope, ascending, one column per method; there must be two slopes."""
    frame = evidence.overlap
    if frame["slope_factor"].nunique() < 2:
        raise KeyError("a second slope")
    frame = frame.assign(range=frame["ours_max"] - frame["ours_min"]).sort_values("slope_factor")
    wide = frame[frame["metric"] == metric].pivot_table(
        index="slope_factor", columns="method", values=of
    )
    return wide[frame["method"].unique()]


def overlap_drop(metric: str) -> Test:
    """From the flattest to the steepest slope DCEM's median loses least."""

    @holds_if(f"least loss of the median, flattest to steepest {NO_MARGIN}")
    def test(evidence: Evidence) -> Verdict:
        wide = _by_slope(evidence, metric, "ours_median").sort_index(axis=1)
        loss = (wide.iloc[0] - wide.iloc[-1]) * (1 if metric == "auc" else -1)
        return f"loss: {_listed_values(loss.to_dict())}", bool(loss["dcem"] == loss.min())

    return test


@holds_if(f"widest at most {SIMILAR_RANGE:g} times the narrowest, AUC and gap")
def tight_ranges(evidence: Evidence) -> Verdict:
    """DCEM's ranges are similar at all levels of overlap, in both metrics."""
    found = {metric: _by_slope(evidence, metric, "range")["dcem"] for metric in BOTH}
    text = "; ".join(f"{METRIC_NAMES[m]} {', '.join(map(number, r))}" for m, r in found.items())
    tight = all(wide.max() <= SIMILAR_RANGE * wide.min() for wide in found.values())
    return f"range: {text}", tight


@holds_if(f"each wider at steepest than at flattest, AUC and gap {NO_MARGIN}")
def causal_ranges_widen(evidence: Evidence) -> Verdict:
    """The ranges of all causal estimators are wider at the steepest slope than at the flattest."""
    both = [
        _by_slope(evidence, metric, "range").drop(columns="dcem", errors="ignore")
        for metric in BOTH
    ]
    text = ", ".join(
        f"{METHOD_NAMES[str(name)]} {number(wide.iloc[0])} to {number(wide.iloc[-1])}"
        for name, wide in both[0].items()
    )
    widen = all((wide.iloc[-1] > wide.iloc[0]).all() for wide in both)
    return f"AUC range: {text}", widen
