"""What a bootstrap gives back: small records that print what a reader needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from dcem.metrics._inputs import Label


@dataclass(frozen=True, repr=False)
class Interval:
    """An estimate with its bootstrap interval; NaN with the `reason` where there is none."""

    estimate: float
    low: float
    high: float
    level: float
    n_replicates: int  # resamples in which the metric existed
    reason: str | None = None

    def __str__(self) -> str:
        if self.reason:
            return f"{self.estimate:.3f} (no interval: {self.reason})"
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def __repr__(self) -> str:
        tail = "" if self.reason else f", {100 * self.level:g} %, {self.n_replicates} replicates"
        return f"{type(self).__name__}({self}{tail})"


@dataclass(frozen=True, repr=False)
class GapInterval(Interval):
    """The ROC gap with its interval and with what it would be under permuted groups."""

    p_value: float = float("nan")  # share of permuted gaps at least as large as the estimate
    reference: np.ndarray = field(default_factory=lambda: np.empty(0), compare=False)
    reference_reason: str | None = None  # why there is no reference, where there is none

    @property
    def expected(self) -> float:
        """The mean gap under permuted groups: what noise alone would show."""
        return float(self.reference.mean()) if len(self.reference) else float("nan")

    def __str__(self) -> str:
        if self.reference_reason:
            return f"{super().__str__()}; no reference: {self.reference_reason}"
        return f"{super().__str__()}; permuted groups {self.expected:.3f}, p = {self.p_value:.2g}"


@dataclass(frozen=True, repr=False)
class BootstrapResult:
    """Intervals of all metrics; each field has the name of the function it belongs to."""

    auc: Interval
    group_auc: Mapping[Label, Interval]
    worst_group_auc: Interval
    auc_differences: Mapping[tuple[Label, Label], Interval]
    roc_gap: GapInterval
    roc_gaps: Mapping[tuple[Label, Label], Interval]
    xauc: Mapping[tuple[Label, Label], Interval]
    xauc_difference: Interval
    calibration_error: Interval
    group_calibration_error: Mapping[Label, Interval]
    worst_group_calibration_error: Interval

    def items(self) -> Iterator[tuple[str, Any, Interval]]:
        """(metric, group or pair or None, interval), one after the other, for tables."""
        for metric in fields(self):
            value = getattr(self, metric.name)
            entries = value.items() if isinstance(value, Mapping) else [(None, value)]
            for of, interval in entries:
                yield metric.name, of, interval

    def __repr__(self) -> str:
        rows = [(metric, _who(of), interval) for metric, of, interval in self.items()]
        width = max(len(who) for _, who, _ in rows)
        return "\n".join(
            f"{metric:<29} {who:<{width}} {interval}" for metric, who, interval in rows
        )


def _who(of: Any) -> str:
    """A group, or a pair of them, in words; nothing for everybody."""
    if isinstance(of, tuple):
        return " / ".join(map(str, of))
    return "" if of is None else str(of)
