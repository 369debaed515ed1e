"""How findings about time are worded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dcem.audit.wording_outcomes import Words, points_of
from dcem.estimation.findings import Finding
from dcem.text import p_value, percent, ratio


def _late(f: Finding, v: Mapping[str, Any]) -> Words:
    return (
        f"Hardly anybody is tested after {v['until']}: results may not have arrived yet",
        f"{percent(v['before'].value)} of the rows until then, {percent(v['after'].value)} since. "
        "If results take longer than that, these rows are not untested but not yet known, and what "
        "is said of who is tested is wrong for them.",
    )


def _testing(f: Finding, v: Mapping[str, Any]) -> Words:
    told = "; ".join(f"{name}: {points_of(by)}" for name, by in v["periods"].items())
    return (
        "Who is tested, at equal features, changed over time",
        f"Share tested against all other periods: {told} (percentage points).",
    )


def _outcome(f: Finding, v: Mapping[str, Any]) -> Words:
    told = "; ".join(
        f"{name}: {ratio(e.value)} [{ratio(e.low)}, {ratio(e.high)}]"
        for name, e in v["odds_ratios"].items()
    )
    odds = f" Odds ratios against all other periods: {told}." if told else ""
    return (
        "What tests show at equal features changed over time",
        f"{p_value(v['p_value'])}, all periods jointly.{odds} A model of the past need not hold.",
    )


def _earlier(f: Finding, v: Mapping[str, Any]) -> Words:
    told = "; ".join(f"{name}: {points_of(by)}" for name, by in v["history"].items())
    return (
        "Earlier results drive who is tested",
        f"Share tested against others with the same features: {told} (percentage points). Earlier "
        "results tell of the outcome too: unless the features hold them, features do not explain "
        "who is tested, and what is estimated for everybody is off.",
    )


TIME: dict[str, Words | Callable[[Finding, Mapping[str, Any]], Words]] = {
    "late-results": _late,
    "testing-changed": _testing,
    "outcome-changed": _outcome,
    "earlier-results": _earlier,
}
