"""What an audit holds: plain objects with numbers in them, from which every page is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from math import nan
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.stats import norm

from dcem.audit.performance import PerformanceSensitivity
from dcem.audit.sensitivity import Breakdown, PrevalenceSensitivity
from dcem.estimation.bounds import Bounds
from dcem.estimation.by_decider import Check
from dcem.estimation.deciders import Compared
from dcem.estimation.findings import Finding
from dcem.estimation.hidden_cause import HiddenCause
from dcem.estimation.influence import Z
from dcem.estimation.instrument import Ends
from dcem.estimation.periods import LateResults
from dcem.estimation.results import EVERYBODY, WITHHELD, WITHIN, Overlap
from dcem.hooks import ShowsItself
from dcem.metrics.estimate import Estimate
from dcem.text import listed

HIDDEN = -1  # in place of a count that must not be shown
CLEAR_P = 0.05  # p-values, corrected for the number of comparisons
FAR_RATIO = 1.25  # an odds ratio of the outcome that is serious if the whole interval lies beyond


@dataclass(frozen=True)
class GroupCounts:
    """Rows, people, tested rows and positives among them, in one group."""

    group: str
    rows: int
    people: int
    tested: int
    positive: int
    few: frozenset[str] = frozenset()  # counts too small to be shown (`few_people`)


@dataclass(frozen=True)
class TestingRate:
    """How often a group is tested, and how often it would be at equal features."""

    group: str
    crude: Estimate
    equal: Estimate  # the group, over the features it shares with the others
    others: Estimate  # everybody else, or the reference group, over the same features
    difference: Estimate  # equal - others
    ratio: Estimate  # equal / others
    p_value: float  # of no difference, corrected for the number of groups
    each: Mapping[str, Estimate] = field(default_factory=dict)  # difference by one kind of model
    beside: tuple[str, ...] = ()  # groups without which it does not differ clearly from the rest

    __test__ = False  # not a test case, whatever its name suggests to pytest

    @property
    def depends_on_model(self) -> bool:
        """Whether some kind of model finds no difference, or the opposite one."""
        return any(
            not one.excludes(0) or (one.value > 0) != (self.difference.value > 0)
            for one in self.each.values()
        )


@dataclass(frozen=True)
class Driver:
    """How much the prediction of testing owes to one raw column, and in which direction."""

    column: str
    loss: Estimate  # log loss added by permuting the column, in nats / 1000 per row
    share: float  # of the permutation importances of all columns
    direction: str  # in words


@dataclass(frozen=True)
class Calibration:
    """Do predicted probabilities of being tested happen that often? (out of fold)"""

    predicted: np.ndarray  # [bins]
    observed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    slope: Estimate  # of the logit; 1 is right, below 1 overconfident
    error: float  # mean absolute difference over the bins
    error_by_chance: float  # what it would be on average if all probabilities were right
    auc: float  # how well testing can be predicted at all
    auc_by_chance: float  # what it would stay below in 97.5 % of cases if nothing could

    @property
    def is_right(self) -> bool:
        """Whether the probabilities are off by no more than chance and a little explain."""
        beyond = self.error - self.error_by_chance
        tilted = self.slope.estimable and (self.slope.high < 0.8 or self.slope.low > 1.25)
        return beyond <= (0.01 if tilted else 0.05)


@dataclass(frozen=True)
class RiskCurve:
    """Share tested against the risk the features predict, in one group."""

    group: str
    risk: np.ndarray  # [bins] mean predicted risk
    tested: np.ndarray  # [bins] share tested, with its interval
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Yield:
    """How often tests of a group are positive."""

    group: str
    rate: Estimate
    difference: Estimate  # against everybody else, or the reference group
    at_equal_probability: Estimate  # difference among people equally likely to be tested
    marginal: Estimate  # rate among the fifth of the group's tests that was least to be expected
    p_value: float = nan  # of no difference, corrected for the number of groups
    p_value_equal: float = nan  # the same at equal probability
    beside: tuple[str, ...] = ()  # groups without which it does not differ clearly there


@dataclass(frozen=True)
class Prevalence:
    """How common the outcome is, as different assumptions have it."""

    group: str
    recorded: Estimate  # the untested counted as negative
    tested_only: Estimate  # the tested represent all
    weighted: Estimate  # each tested person represents 1/probability people
    doubly_robust: Estimate
    hidden: Estimate  # share of the doubly robust prevalence that is not in the record
    bounds: tuple[float, float]  # all untested negative; all untested positive
    within: Estimate  # doubly robust, of those within reach; NaN where that is everybody
    limits: tuple[float, float]  # doubly robust within reach, nothing assumed beyond


@dataclass(frozen=True)
class KnownRate:
    """A prevalence that is known from elsewhere, beside what the tests say of it."""

    group: str
    stated: Estimate
    estimated: Estimate  # doubly robust, if features and group explain who is tested
    difference: Estimate  # estimated - stated
    p_value: float  # of no difference, corrected for the number of rates
    odds_ratio: Estimate  # of the untested against the tested at equal features: meets the rate
    detectable: tuple[float, float]  # odds ratios that would have been noticed

    @property
    def disagrees(self) -> bool:
        """Whether features and group do not explain who is tested."""
        return self.p_value < CLEAR_P


@dataclass(frozen=True)
class Independence:
    """Is the outcome independent of the group, given the features? Asked among the tested."""

    odds_ratio: Mapping[str, Estimate]  # group against everybody else, at equal features
    detectable: Mapping[str, float]  # odds ratio that would have been seen with probability 0.8
    p_value: float  # of independence, all groups jointly; NaN with the reason
    reason: str = ""
    each: Mapping[str, float] = field(default_factory=dict)  # p-value by one kind of model


@dataclass(frozen=True)
class ColumnStrength:
    """How strong a measured column is, in the unit in which the unmeasured is judged."""

    column: str
    with_group: float  # partial R² with the group
    with_testing: float  # partial R² with testing


@dataclass(frozen=True)
class TestingSensitivity:
    """An unmeasured cause of testing that is tied to the group."""

    group: str
    difference: Estimate
    strength: np.ndarray  # [points] partial R² of the unmeasured with group and with testing
    low: np.ndarray  # [points] the difference that could remain, at worst
    high: np.ndarray
    breakdown: Breakdown  # the robustness value
    e_value: float  # the same on the scale of risk ratios; NaN without a ratio
    e_value_of_interval: float
    benchmarks: tuple[ColumnStrength, ...]

    __test__ = False


@dataclass(frozen=True)
class Preference:
    """Whom testing prefers: those at higher risk, or at lower."""

    tested: Estimate  # share of positives
    untested: Estimate  # the same of those within reach of the tests, doubly robust
    difference: Estimate  # tested - untested
    record_auc: Estimate  # of the score that the record teaches, the untested counted as negative
    risk_auc: Estimate  # of the model of what a test would show

    @property
    def low_risk(self) -> bool:
        """Whether those at lower risk are the ones tested, clearly."""
        return self.difference.estimable and self.difference.high < 0


@dataclass(frozen=True)
class HiddenGap:
    """The two groups in which the record hides the most and the least."""

    pair: tuple[str, str]
    p_value: float  # of no difference, corrected for the number of pairs


@dataclass(frozen=True)
class AtRates:
    """What follows if the test has these rates for everybody; NaN where it cannot have them."""

    sensitivity: float
    specificity: float
    prevalence: float  # doubly robust
    difference: float  # of prevalence between the groups of `TestErrors.pair`
    auc: float  # of the model of what a test would show


@dataclass(frozen=True)
class TestErrors:
    """What it means that a test may err."""

    stated: str  # the rates that all estimates are corrected for, in words; empty: none
    as_shown: Estimate  # the doubly robust prevalence, results taken for the truth
    points: tuple[AtRates, ...]  # where nothing is stated
    pair: tuple[str, str] | None  # the groups with the highest and lowest prevalence
    p_value: float  # of no difference between them, corrected for the number of pairs
    equal_at: float  # sensitivity in the second over that in the first at which they are equal
    prevalence: Mapping[str, Estimate]  # of the pair

    __test__ = False


@dataclass(frozen=True)
class Period:
    """Testing and its results in one period, of everybody or of one group."""

    since: str
    group: str
    tested: Estimate  # share of the rows
    positive: Estimate  # share of the tests


@dataclass(frozen=True)
class OverTime:
    """Everything about time that an audit found."""

    begins: str  # the first and the last time, but for a few rows
    ends: str
    shown: tuple[Period, ...]
    testing: tuple[TestingRate, ...]  # of each period, against the others at equal features
    outcome: Independence | None  # of the period, given the features, among the tested
    earlier: tuple[TestingRate, ...]  # by the last result, at equal features; empty without people
    late: LateResults | None


@dataclass(frozen=True)
class Level:
    """Deciders who test about equally often, at the features of everybody."""

    name: str
    tested: Estimate  # share of people whom they test
    found: Estimate  # share of people whom they find positive


@dataclass(frozen=True)
class Deciders:
    """Everything that an audit says of who decided."""

    reason: str  # why nothing is said, or nothing
    compared: Compared | None = None
    levels: tuple[Level, ...] = ()  # from the fewest tests to the most
    prevalence: Mapping[str, Ends] = field(default_factory=dict)  # EVERYBODY, then groups
    auc: Ends | None = None  # of the model of what a test would show
    exclusion: Mapping[str, Check] = field(default_factory=dict)  # EVERYBODY, then groups
    monotone: Mapping[str, Check] = field(default_factory=dict)  # tested, found, cleared
    beyond: Estimate | None = None  # by how much the doubly robust prevalence leaves the bounds
    p_value: float = nan  # of none


@dataclass(frozen=True)
class Needed:
    """How many tests a group needs for a wanted precision of how common its outcome is."""

    group: str
    precision: float  # half the width of a 95 % interval
    tests: int  # there are; HIDDEN if that must not be shown
    needed: int  # these and more, at random among the group

    @property
    def more(self) -> int:
        """Tests that are missing."""
        return max(self.needed - self.tests, 0) if self.tests >= 0 else 0


@dataclass(frozen=True)
class Assumption:
    """Something the conclusions rest on."""

    name: str
    testable: str  # "tested", "partly", "untestable"
    severity: str  # of what the data say
    says: str


@dataclass(frozen=True)
class MethodAdvice:
    """May this method be used here?"""

    name: str
    verdict: str  # "defensible", "with care", "not here"
    reason: str


@dataclass(frozen=True, repr=False)
class Audit(ShowsItself):
    """Everything an audit found. What could not be done is None or empty; findings say so."""

    _document: ClassVar[str] = "audit_document"

    extent: str  # who was tested: "nobody", "everybody" or "some"
    counts: tuple[GroupCounts, ...]
    total: GroupCounts
    testing: tuple[TestingRate, ...]
    risk_curves: tuple[RiskCurve, ...]
    drivers: tuple[Driver, ...]
    bin_edges: np.ndarray
    overlap: Mapping[str, Overlap]  # EVERYBODY, then groups
    calibration: Calibration | None
    yields: tuple[Yield, ...]
    prevalence: tuple[Prevalence, ...]  # EVERYBODY, then groups
    independence: Independence | None
    testing_sensitivity: TestingSensitivity | None
    prevalence_sensitivity: PrevalenceSensitivity | None
    performance_sensitivity: PerformanceSensitivity | None
    learners: Mapping[str, str]  # nuisance -> learner that won
    configuration: Mapping[str, str]
    least_difference: float = 0.01  # differences in rates under it are noted and no more
    outcome_drivers: tuple[Driver, ...] = ()  # the same of what a test would show
    left_over: Mapping[str, Estimate] = field(default_factory=dict)  # what residuals still know
    missing: Mapping[str, Estimate] = field(default_factory=dict)  # column -> tested - untested
    needed: tuple[Needed, ...] = ()
    hidden_gap: HiddenGap | None = None
    by_attribute: Mapping[str, tuple[TestingRate, ...]] = field(default_factory=dict)  # if crossed
    findings: tuple[Finding, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    methods: tuple[MethodAdvice, ...] = ()
    suspicious: Mapping[str, str] = field(default_factory=dict)  # column -> why it may be too late
    withheld: tuple[str, ...] = ()  # groups some of whose counts are hidden
    reference: str = ""  # the group that the others are compared with; empty: all the others
    test_errors: TestErrors | None = None
    preference: Preference | None = None
    testing_only: tuple[str, ...] = ()  # columns said to drive testing and not the outcome
    over_time: OverTime | None = None
    known: tuple[KnownRate, ...] = ()
    bounds: Bounds | None = None  # for whom a decision holds, where a strength was stated
    bounds_lacking: str = ""  # why that cannot be determined
    deciders: Deciders | None = None  # where it is known who decided
    hidden_cause: HiddenCause | None = None  # that moves everybody's prevalence by a tenth of it
    hidden_cause_of_auc: HiddenCause | None = None  # the same of the model of the outcome
    tested_stated: bool = False  # somebody said who was tested

    @property
    def grouped(self) -> bool:
        """Whether there is more than one group to compare."""
        return len(self.counts) > 1

    @property
    def others(self) -> str:
        """Whom a group is compared with, in words."""
        return f"group {self.reference}" if self.reference else "others"

    @property
    def unseen_others(self) -> str:
        """Which of the others cannot be seen in the tables, as a sentence; or nothing.

        A group in which all but a few were tested is withheld, and still it is what the others are
        tested less than.
        """
        unseen = [one.group for one in self.testing if one.difference.reason == WITHHELD.reason]
        if self.reference or not unseen:
            return ""
        verb, of = ("is", "group") if len(unseen) == 1 else ("are", "groups")
        return f"Among the others {verb} {of} {listed(unseen)}, whose numbers are withheld."

    @property
    def widest(self) -> float:
        """The largest difference in testing that the data allow, all groups at once; else NaN."""
        usable = [one.difference for one in self.testing if one.difference.estimable]
        wider = norm.ppf(1 - 0.025 / (1 if self.mirrored else max(len(usable), 1))) / Z
        far = (min(abs(e.value) + wider * (e.high - e.low) / 2, 1.0) for e in usable)
        return max(far, default=nan)

    def matters(self, difference: Estimate) -> bool:
        """Whether a difference in rates is large enough to be more than a note."""
        return abs(difference.value) >= self.least_difference

    def clear(self, rates: Sequence[TestingRate]) -> list[TestingRate]:
        """Those whose difference at equal features is clear.

        Beyond chance, large enough to matter, so under every kind of model that the mixture of
        models rests on, and not because of other groups that stand out.
        """
        return [
            rate
            for rate in rates
            if rate.p_value < CLEAR_P
            and self.matters(rate.difference)
            and not rate.depends_on_model
            and not rate.beside
        ]

    @property
    def whom(self) -> str:
        """Of whom estimates speak: everybody, or those within reach of the tests."""
        every = (one for one in self.prevalence if one.group == EVERYBODY)
        return WITHIN if any(one.within.estimable for one in every) else EVERYBODY

    @property
    def from_known(self) -> bool:
        """Whether numbers beyond the tested are at the odds that meet a known prevalence."""
        return any(one.odds_ratio.estimable for one in self.known)

    @property
    def limits_hold(self) -> str:
        """When the limits of everybody's prevalence hold, if some are out of reach of the tests."""
        return "given what is known" if self.known else "whatever the others are like"

    @property
    def stated_for_everybody(self) -> bool:
        """Whether everybody's prevalence is the known one as stated, some being out of reach."""
        stated = [one.stated for one in self.known if one.group == EVERYBODY]
        return self.prevalence[0].doubly_robust in stated

    @property
    def prefers_low_risk(self) -> bool:
        """Whether those at lower risk are the ones tested, by enough to matter."""
        found = self.preference
        if found is None or not found.low_risk:
            return False
        return -found.difference.value > self.least_difference

    @property
    def stated_rates(self) -> str:
        """The rates of a test that estimates are corrected for, in words; empty: none."""
        return self.test_errors.stated if self.test_errors is not None else ""

    @property
    def clear_by_attribute(self) -> dict[str, list[TestingRate]]:
        """Clear disparities of each attribute that has some; of two levels, the one tested less."""
        found = {}
        for attribute, rates in self.by_attribute.items():
            two = sum(rate.difference.estimable for rate in rates) == 2
            clear = [r for r in self.clear(rates) if not two or r.difference.value < 0]
            if clear:
                found[attribute] = sorted(clear, key=lambda rate: -abs(rate.difference.value))
        return found

    @property
    def mirrored(self) -> bool:
        """Whether there are two groups, of which one mirrors the other: told once."""
        return not self.reference and sum(r.difference.estimable for r in self.testing) == 2

    def to_frame(self) -> pd.DataFrame:
        """Every estimate as one row: about, of, value, low, high, reason.

        Small counts can be worked out of these numbers: `without_small_cells` withholds them.
        """
        rows = [row for name, part in vars(self).items() for row in _estimates(part, name)]
        return pd.DataFrame(rows)


def _estimates(thing: Any, about: str, of: str = "") -> Iterator[dict[str, str | float]]:
    """The estimates inside a part of an audit, with what they are about and of whom."""
    if isinstance(thing, Estimate):
        yield {"about": about, "of": of, **vars(thing)}
    elif isinstance(thing, Mapping):
        for key, value in thing.items():
            yield from _estimates(value, about, str(key))
    elif isinstance(thing, tuple):
        for item in thing:
            yield from _estimates(item, about, of)
    elif is_dataclass(thing):
        whose = getattr(thing, "group", getattr(thing, "column", of))
        for part in fields(thing):
            yield from _estimates(getattr(thing, part.name), f"{about}.{part.name}", whose)
