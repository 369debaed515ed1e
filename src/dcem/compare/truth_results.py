"""What a comparison on a known truth holds: plain objects with numbers in them.

`compare_on_truth` fills these in; pages, tables and sentences are made from them alone, so the same
comparison always gives the same report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dcem.compare.results import Curve, GroupCounts, History
from dcem.metrics.estimate import Estimate


@dataclass(frozen=True)
class MethodResult:
    """One method on one test set."""

    name: str
    what_it_does: str
    uses_truth: bool
    auc: Estimate
    roc_gap: Estimate
    gap_by_chance: float  # 95th percentile of the gap under equal curves
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
