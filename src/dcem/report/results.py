"""What a report is made of: plain objects with numbers in them, computed elsewhere.

A report computes nothing. Whoever compares methods fills these in, and every page, table and
figure is drawn from them alone, so the same comparison always gives the same report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan, nan

import numpy as np


@dataclass(frozen=True)
class Estimate:
    """A number with its interval. NaN means *not estimable*, and `reason` says why."""

    value: float
    low: float = nan
    high: float = nan
    reason: str = ""

    @property
    def estimable(self) -> bool:
        """Whether there is a number at all."""
        return not isnan(self.value)

    def excludes(self, number: float) -> bool:
        """Whether the interval lies wholly on one side of a number."""
        return self.low > number or self.high < number


@dataclass(frozen=True)
class Curve:
    """A ROC curve: false and true positive rates, both rising from 0 to 1."""

    fpr: np.ndarray
    tpr: np.ndarray


@dataclass(frozen=True)
class GroupCounts:
    """Who was looked at in one group, and what was seen. `positives` needs the truth."""

    name: str
    people: int
    tested: int
    positives_seen: int
    positives: int | None = None


@dataclass(frozen=True)
class History:
    """The course of an expectation-maximisation fit."""

    loss: Mapping[str, np.ndarray]  # split -> [iterations]
    kept: int  # which iteration's model was returned, counted from 1
    termination: str


@dataclass(frozen=True)
class MethodResult:
    """One method on one test set."""

    name: str
    what_it_does: str
    uses_truth: bool
    auc: Estimate
    roc_gap: Estimate
    gap_by_chance: float  # 95th percentile of the gap when groups are permuted
    auc_difference: Estimate  # AUC of the first group minus AUC of the second
    auc_gain: Estimate | None  # over the first method listed, on the same resamples
    gap_change: Estimate | None  # likewise; negative is fairer
    curves: Mapping[str, Curve]  # group name -> curve
    seconds: float
    history: History | None = None


@dataclass(frozen=True)
class Comparison:
    """Everything a comparison report shows."""

    title: str
    description: str
    level: float  # of the intervals
    resamples: int
    groups: tuple[GroupCounts, ...]
    methods: tuple[MethodResult, ...]
    configuration: Mapping[str, str]
    versions: Mapping[str, str]
