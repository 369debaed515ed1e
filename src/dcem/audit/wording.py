"""Numbers and lists as findings write them."""

from __future__ import annotations

from math import isnan

from dcem.metrics.estimate import Estimate


def percent(value: float) -> str:
    """A share in per cent, with a decimal where it is small."""
    if isnan(value):
        return "a share not shown"
    shown = 100 * value
    return f"{shown:.0f} %" if abs(shown) >= 10 else f"{shown:.1f} %"


def points(estimate: Estimate) -> str:
    """A difference of shares, in percentage points."""
    value, low, high = (100 * v for v in (estimate.value, estimate.low, estimate.high))
    return f"{value:+.1f} percentage points, {low:+.1f} to {high:+.1f}"


def between(estimate: Estimate) -> str:
    """An interval in per cent."""
    return f"{percent(estimate.low)} to {percent(estimate.high)}"


def share(estimate: Estimate) -> str:
    """A share with its interval, to a tenth of a per cent."""
    value, low, high = (100 * v for v in (estimate.value, estimate.low, estimate.high))
    return f"{value:.1f} % ({low:.1f} to {high:.1f} %)"


def listed(names: list[str]) -> str:
    """A, B and C; many are counted."""
    shown = names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
