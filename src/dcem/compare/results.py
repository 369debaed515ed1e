"""What a comparison of methods holds: plain objects with numbers in them.

`compare_methods` fills these in; pages, tables and files are made from them alone. Nothing here
describes a single person: curves and histograms are sums over at least ten people, and what would
rest on fewer is left out. Only `ComparedGroup` holds raw counts, for the writer to withhold by the
rule of `dcem.table.disclosure`. Where one of a group is, the plain numbers about it (among the
tested, and against the truth) are withheld too: shares and the steps of a curve are counts in other
words. What rests on models of everybody stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dcem.estimation.bounds import Bounds
from dcem.estimation.by_decider import Contracted
from dcem.estimation.findings import Finding
from dcem.estimation.hidden_cause import HiddenCause
from dcem.estimation.instrument import Ends
from dcem.estimation.results import WITHHELD, Effect, Histogram, Nuisance, Overlap, Target
from dcem.estimation.swap_sets import SwapSet
from dcem.hooks import ShowsItself
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import Shown, hide_groups

PLAIN = ("tested", "truth")  # targets whose numbers are ratios of counts


@dataclass(frozen=True)
class Curve:
    """A ROC curve: false and true positive rates, both rising from 0 to 1."""

    fpr: np.ndarray
    tpr: np.ndarray


@dataclass(frozen=True)
class CalibrationPoints:
    """Predicted against estimated risk in bins of equal mass; bins of under ten people left out."""

    predicted: np.ndarray  # [bins] mean score
    observed: np.ndarray  # [bins] estimated share of positives; may leave [0, 1] if doubly robust
    low: np.ndarray  # [bins] interval of `observed`
    high: np.ndarray  # [bins]
    share: np.ndarray  # [bins] of the people


@dataclass(frozen=True)
class DecisionCurve:
    """Net benefit against the risk at which somebody acts (the threshold probability)."""

    threshold: np.ndarray  # [points], rising
    net_benefit: np.ndarray  # [points] true positives minus weighted false ones, per person
    low: np.ndarray  # [points]
    high: np.ndarray  # [points]
    treat_all: np.ndarray  # [points] net benefit of acting on everybody; on nobody it is 0


@dataclass(frozen=True)
class Judgement:
    """One method as one target sees it. Mappings "by group" are keyed by the group's name.

    A target that is not available has NaN estimates with the reason, and empty curves.
    """

    target: str  # the key of its `Target`
    auc: Estimate
    group_auc: Mapping[str, Estimate]
    auc_differences: Mapping[tuple[str, str], Estimate]  # AUC of the first minus the second
    auc_against: Mapping[str, Estimate]  # AUC of a group minus that of the comparison's reference
    # group; these intervals hold for all groups at once
    roc_gap: Estimate  # the largest over pairs of groups
    gap_pair: tuple[str, str] | None  # the pair that has it
    gap_by_chance: float  # 95th percentile of the largest gap if all groups had one curve
    gap_p_values: Mapping[tuple[str, str], float]  # of each pair's gap, adjusted for their number
    xauc: Mapping[
        tuple[str, str], Estimate
    ]  # positives of the first against negatives of the second
    when_acting: Mapping[str, Mapping[str, Estimate]]  # measure -> EVERYBODY, groups
    calibration_error: Estimate  # mean absolute difference of predicted and estimated risk
    calibration_in_the_large: Mapping[str, Estimate]  # mean score minus risk; EVERYBODY, groups
    precision_at_capacity: Mapping[float, Estimate]  # share of people acted on -> precision
    net_benefit: Mapping[float, Estimate]  # threshold -> net benefit per person
    auc_gain: Estimate | None  # over the comparison's reference, same people; None for that one
    roc_curves: Mapping[str, Curve]  # by group
    calibration_curves: Mapping[str, CalibrationPoints]  # EVERYBODY, then by group
    decision_curves: Mapping[str, DecisionCurve]  # EVERYBODY, then by group
    # of the outcome's log-odds in those of the score, 1 where risks are right; EVERYBODY, groups
    calibration_slope: Mapping[str, Estimate] = field(default_factory=dict)
    # What a lender asks; None unless it was asked for.
    gini: Estimate | None = None
    ks: Estimate | None = None
    hidden_cause: HiddenCause | None = None  # that moves the AUC by a tenth, of everybody
    kickout: Estimate | None = None  # of those whom the comparison's reference would select


@dataclass(frozen=True)
class FitHistory:
    """The course of an expectation-maximisation fit (first fold)."""

    loss: Mapping[str, np.ndarray]  # what was watched -> [iterations]
    kept: int  # which iteration's model was returned, counted from 1
    termination: str  # a sentence: why it ended


@dataclass(frozen=True)
class TestingByScore:
    """Who is tested at equal predicted risk: equal-mass bins of the score, group by group."""

    score: np.ndarray  # [bins] mean score
    tested: np.ndarray  # [bins] share tested
    low: np.ndarray  # [bins]
    high: np.ndarray  # [bins]

    __test__ = False  # not a test case, whatever its name suggests to pytest


@dataclass(frozen=True)
class MethodResult:
    """One method, judged on people it was not fitted to."""

    name: str
    what_it_does: str  # one sentence
    judgements: Mapping[str, Judgement]  # by key of the target
    testing_by_score: Mapping[str, TestingByScore]  # by group
    pseudo_labels: Histogram | None  # predicted risk of the untested, by group; None if no labels
    # are filled in by this method
    history: FitHistory | None  # of methods that iterate
    seconds: float  # of fitting all folds
    members: int = 1  # models whose scores are averaged
    uses_truth: bool = False  # an oracle, there for comparison
    in_short: str = ""  # what it does, in a few words
    effects: tuple[Effect, ...] = ()  # of the columns that are shown, on the score
    swaps: SwapSet | None = None  # whom it would have tested instead; None unless it was asked for


@dataclass(frozen=True)
class ComparedGroup:
    """Who was looked at in one group, and what was seen. `positives` needs the truth."""

    name: str
    people: int  # rows, where a person may have several
    tested: int
    positives_seen: int
    positives: int | None = None
    place: int | None = None  # among the groups of the whole table, some of which may be empty here
    few: frozenset[str] = frozenset()  # counts too small to be shown (`few_people`)
    few_together: frozenset[str] = frozenset()  # likewise, of all groups together


@dataclass(frozen=True)
class PlantedFamily:
    """A way in which outcomes were planted in the table's own features."""

    name: str
    what: str  # one sentence
    violates: str  # which assumption of dcem does not hold there; empty where all do


@dataclass(frozen=True)
class PlantedScore:
    """How well one method recovered one family; intervals over the repetitions."""

    family: str
    method: str  # a method's name, or "the planted risk": the best score there could be
    auc: Estimate  # against the planted truth of everybody, out of fold
    roc_gap: Estimate
    auc_gain: Estimate  # over the first method listed, paired by repetition


@dataclass(frozen=True)
class Planted:
    """Which method recovers outcomes that were planted here?"""

    families: tuple[PlantedFamily, ...]
    scores: tuple[PlantedScore, ...]
    repetitions: int
    findings: tuple[Finding, ...]  # the answer, no stronger than the intervals
    seconds: float


@dataclass(frozen=True)
class Standing:
    """Which method ranks best for a target, and which others cannot be distinguished from it.

    Differences hold for all pairs of methods at once, and count the luck of initial weights.
    """

    best: str
    ahead_of: Mapping[str, Estimate]  # the best minus each other method
    level_with: tuple[str, ...]  # methods not clearly, or not by more than the floor, behind


@dataclass(frozen=True)
class MethodBounds:
    """One method, if the unmeasured has each strength; arrays are [gammas]."""

    name: str
    holds: Mapping[str, np.ndarray]  # share of EVERYBODY, of groups, whose decision is right
    against: np.ndarray  # share of everybody whose decision is wrong
    auc_low: np.ndarray
    auc_high: np.ndarray
    benefit_low: np.ndarray  # net benefit per person at the cut
    benefit_high: np.ndarray
    lead: tuple[Estimate, ...]  # the least by which the best method's AUC exceeds this one's


@dataclass(frozen=True)
class ComparedBounds:
    """What is left of a comparison if the unmeasured has a stated strength."""

    people: Bounds
    best: str  # by the doubly robust AUC
    methods: tuple[MethodBounds, ...]


@dataclass(frozen=True)
class ByDecider:
    """One method, over all risks that deciders allow."""

    auc: Ends
    true_positive_rate: Ends  # of acting as the comparison does
    precision: Ends
    contraction: tuple[Contracted, ...]  # levels of deciders, from the fewest tests


@dataclass(frozen=True)
class JudgedByDeciders:
    """All methods; empty with the reason where deciders cannot be distinguished."""

    reason: str = ""
    methods: Mapping[str, ByDecider] = field(default_factory=dict)
    best: str = ""  # the method that ranks best by the most telling target
    ahead_of: Mapping[str, Ends] = field(default_factory=dict)  # AUC of the best minus another's
    crossing: float = 1.0  # p-value of bounds that do not cross: under .05 they do not hold


@dataclass(frozen=True, repr=False)
class TableComparison(ShowsItself):
    """Everything that a comparison of methods has to say."""

    _document: ClassVar[str] = "compare_document"

    methods: tuple[MethodResult, ...]  # in the order given
    reference: str  # the method that gains are counted from
    reference_group: str  # the group that the others are compared with: as named, or the largest
    standings: Mapping[str, Standing]  # by key of the target, where it is available
    decision: str  # whom `when_acting` acts on, in words
    floor: float  # differences in AUC below it are not called differences
    targets: tuple[Target, ...]  # in the order of a table's columns
    groups: tuple[ComparedGroup, ...]
    overlap: Overlap
    probability: Histogram  # estimated probability of being tested, by group
    nuisances: tuple[Nuisance, ...]
    planted: Planted | None
    level: float  # of the intervals
    folds: int
    rows: int  # of the table
    rows_used: int  # at most the row budget; whole people, drawn at random
    people: int  # among the rows used
    findings: tuple[Finding, ...]  # conclusions, no stronger than the intervals
    warnings: tuple[Finding, ...]  # what a reader must know before believing a number
    configuration: Mapping[str, str]
    versions: Mapping[str, str]
    data: Mapping[str, str] = field(default_factory=dict)  # file, hash, roles
    testing_effects: tuple[Effect, ...] = ()  # of the same columns, on who is tested
    deciders: JudgedByDeciders | None = None  # where it is known who decided
    stated_rates: str = ""  # of an imperfect test, for which all but the truth is corrected
    known_rates: str = ""  # a known prevalence, on which numbers for everybody rest
    bounds: ComparedBounds | None = None  # where a strength of the unmeasured was stated
    shown: tuple[Mapping[str, Any], ...] = ()  # counts as they may be shown, of a saved comparison

    def to_frame(self) -> pd.DataFrame:
        """Every estimate as one row: method, target, metric, of, value, low, high, reason."""
        known = [
            (method.name, key, metric, _joined(metric, of), estimate)
            for method in self.methods
            for key, judged in method.judgements.items()
            for metric, of, estimate in estimates(judged)
        ]
        known += [
            (score.method, f"planted: {score.family}", metric, "", getattr(score, metric))
            for score in (self.planted.scores if self.planted else ())
            for metric in ("auc", "roc_gap", "auc_gain")
        ]
        known += [
            (name, "by who decides", f"{metric} at {end}", "", getattr(getattr(one, metric), at))
            for name, one in (self.deciders.methods if self.deciders else {}).items()
            for metric in ("auc", "true_positive_rate", "precision")
            for end, at in (("least", "low"), ("most", "high"))
        ]
        known += [
            (name, "contraction", metric, level.level, getattr(level, metric))
            for name, one in (self.deciders.methods if self.deciders else {}).items()
            for level in one.contraction
            for metric in ("score", "deciders", "gain")
        ]
        columns = ["method", "target", "metric", "of", "value", "low", "high", "reason"]
        rows = [(*whose, e.value, e.low, e.high, e.reason) for *whose, e in known]
        return pd.DataFrame(rows, columns=columns)


def estimates(judged: Judgement) -> Iterator[tuple[str, Any, Estimate]]:
    """(metric, of whom or at what, estimate) of a judgement, one after the other."""
    named: dict[str, Any] = {}
    for name, value in vars(judged).items():
        named |= value if name == "when_acting" else {name: value}
    for metric, value in named.items():
        entries = value if isinstance(value, Mapping) else {"": value}
        for of, entry in entries.items():
            if isinstance(entry, Estimate):
                yield metric, of, entry


def _joined(metric: str, of: Any) -> str:
    joint = " over " if metric == "xauc" else " minus "
    return joint.join(of) if isinstance(of, tuple) else str(of)


# -- what would give a small count away -----------------------------------------------------------


CELL_OF = {
    "people": "rows",
    "tested": "tested",
    "positives_seen": "positive",
    "positives": "positive in truth",
}  # a count of a group here -> its name in `few_people`


def shown_group_counts(groups: Sequence[ComparedGroup]) -> list[dict[str, Shown]]:
    """Counts of every group, then of all together, small ones hidden."""
    known = all(group.positives is not None for group in groups)
    names = {cell: name for name, cell in CELL_OF.items() if known or name != "positives"}
    found = hide_groups(
        [{cell: getattr(group, name) for cell, name in names.items()} for group in groups],
        [*(group.few for group in groups), groups[0].few_together],
    )
    return [{names[cell]: value for cell, value in one.items()} for one in found]


def withheld_groups(groups: Sequence[ComparedGroup]) -> frozenset[str]:
    """Groups some of whose counts are hidden, though somebody is told of by them."""
    return frozenset(
        group.name
        for group, shown in zip(groups, shown_group_counts(groups)[:-1], strict=True)
        if any(
            isinstance(value, str) and (getattr(group, key) or CELL_OF[key] in group.few)
            for key, value in shown.items()
        )
    )


def without_withheld(judged: Judgement, withheld: Collection[str]) -> Judgement:
    """The same judgement without what would give away a count of these groups."""
    if judged.target not in PLAIN or not withheld:
        return judged

    def about(key: Any) -> bool:
        return not set(withheld).isdisjoint(key if isinstance(key, tuple) else (key,))

    def lost(found: Mapping[Any, Estimate]) -> dict[Any, Estimate]:
        return {k: WITHHELD if about(k) and e.estimable else e for k, e in found.items()}

    def rounded(found: Mapping[Any, Estimate]) -> dict[Any, Estimate]:
        return {k: _to_hundredths(e) if about(k) else e for k, e in found.items()}

    return replace(
        judged,
        group_auc=rounded(judged.group_auc),
        auc_differences=rounded(judged.auc_differences),
        auc_against=rounded(judged.auc_against),
        xauc=rounded(judged.xauc),
        when_acting={name: lost(found) for name, found in judged.when_acting.items()},
        calibration_in_the_large=lost(judged.calibration_in_the_large),
        calibration_slope=lost(judged.calibration_slope),
        roc_curves={k: v for k, v in judged.roc_curves.items() if not about(k)},
        calibration_curves={k: v for k, v in judged.calibration_curves.items() if not about(k)},
        decision_curves={k: v for k, v in judged.decision_curves.items() if not about(k)},
    )


def _to_hundredths(one: Estimate) -> Estimate:
    """Finer, an AUC tells how many pairs it was counted from."""
    return replace(one, value=round(one.value, 2), low=round(one.low, 2), high=round(one.high, 2))
