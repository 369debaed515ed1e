"""What an audit holds where nobody recorded who was tested: plain objects with numbers in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dcem.audit.results import GroupCounts, MethodAdvice
from dcem.audit.sensitivity import Breakdown
from dcem.estimation.findings import Finding
from dcem.hooks import ShowsItself
from dcem.metrics.estimate import Estimate


@dataclass(frozen=True)
class FoundGroup:
    """One group against the reference group. All but the found share rests on assumptions."""

    group: str
    found: Estimate  # share of the group that was found positive
    crude: Estimate  # that over the reference group's
    rate: Estimate  # share of positives that is found, over the reference group's
    prevalence: Estimate  # how common the outcome is, over the reference group's
    without_form: Estimate  # the same by flexible models, over shared features
    rate_p_value: float  # of equal rates, corrected for the number of groups
    prevalence_p_value: float  # of equal prevalence, likewise
    at_least: float  # prevalence, if being found has nothing to do with the features
    at_most: float
    at_stated: Estimate  # prevalence, by the stated share of positives that is found


@dataclass(frozen=True)
class FoundCurve:
    """Share found against what the model of all groups predicts, in one group (out of fold)."""

    group: str
    predicted: np.ndarray  # [bins]
    found: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Departure:
    """A column that bears on being found in one group otherwise than in the others."""

    column: str
    group: str
    more: bool  # whether the group is found more than assumed where the column is high
    p_value: float  # corrected for all features and groups


@dataclass(frozen=True)
class FoundCheck:
    """Do features bear on being found alike in all groups?"""

    p_value: float  # that they do, all features and groups together
    departures: tuple[Departure, ...]  # the clearest
    loss: Estimate  # held-out log loss of the common model minus that of one per group, nats / 1000
    curves: tuple[FoundCurve, ...]


@dataclass(frozen=True)
class FoundSensitivity:
    """The ratio of prevalences if being found depends on features, alike in all groups."""

    factor: np.ndarray  # [points] by which the rate may be more, or less, than its usual value
    low: Mapping[str, np.ndarray]  # by group, sampling included
    high: Mapping[str, np.ndarray]
    breakdown: Mapping[str, Breakdown]  # the factor at which the ratio may be 1


@dataclass(frozen=True)
class FoundAudit(ShowsItself):
    """Everything that an audit of found positives alone has to say."""

    _document: ClassVar[str] = "found_document"

    counts: tuple[GroupCounts, ...]
    total: GroupCounts  # `tested` and `positive` are the found
    found: Estimate  # share of everybody
    groups: tuple[FoundGroup, ...]
    reference: str  # the group that the others are compared with; empty: there is one group
    check: FoundCheck | None
    sensitivity: FoundSensitivity | None
    methods: tuple[MethodAdvice, ...]
    findings: tuple[Finding, ...]
    learners: Mapping[str, str]
    configuration: Mapping[str, str]
    suspicious: Mapping[str, str] = field(default_factory=dict)
    stated_rates: str = ""  # of being found, in words; empty: none
    at_odds: Mapping[str, float] = field(default_factory=dict)  # group -> p-value that its stated
    # rate, against the reference group's, is the estimated one; corrected for their number
    withheld: tuple[str, ...] = ()

    @property
    def grouped(self) -> bool:
        """Whether there is more than one group to compare."""
        return len(self.counts) > 1
