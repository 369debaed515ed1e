"""What audit and comparison have to say, as values: the wording comes last, and from one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scipy.stats import norm

from dcem.estimation.results import EVERYBODY
from dcem.metrics.estimate import Estimate
from dcem.text import group, listed

KEY: Any = {"key": True}  # marks fields that are looked up, not read: they are never reworded
SEVERITIES = ("serious", "caution", "note", "fine")
# Before all others, which cannot be trusted beside them; the first of them before the rest.
ABOVE_ALL = "one-column"
FIRST = (ABOVE_ALL, "leak", "groups-unlike")


OFF = 0.02  # by so much a group's risks are off, at least, to be pointed out


@dataclass(frozen=True)
class Finding:
    """Something a reader should know, how serious it is, and what to do.

    Severity is about consequences, not about p-values. *Serious*: a conclusion or a method that
    people would reach for is not supported here. *Caution*: it needs a second look, or a sentence
    in the paper. *Note*: worth knowing. *Fine*: it was looked for and not found.
    """

    # stable: "leak", "overlap", "tested-less", ...
    key: str = field(metadata=KEY)
    severity: str = field(metadata=KEY)  # one of SEVERITIES
    # the part of a report it belongs to: testing, overlap, outcome, ...
    about: str = field(metadata=KEY)
    groups: tuple[str, ...] = field(default=(), metadata=KEY)  # whom it is about
    # the numbers behind it, by name
    values: Mapping[str, Any] = field(default_factory=dict, metadata=KEY)
    headline: str = ""
    text: str = ""
    remedy: str = ""  # what to do about it


def by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The serious ones first, and before them what makes the rest doubtful."""
    return tuple(sorted(findings, key=_place))


def _place(finding: Finding) -> tuple[bool, bool, int]:
    severity = SEVERITIES.index(finding.severity)
    return finding.key != ABOVE_ALL, finding.key not in FIRST, severity


def clearly_off(calibration_in_the_large: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Groups whose mean predicted risk is clearly off, all asked at once (Bonferroni)."""
    errors = {
        name: error
        for name, error in calibration_in_the_large.items()
        if error.estimable and name != EVERYBODY
    }
    if len(errors) < 2:
        return {}
    wider = float(norm.ppf(1 - 0.025 / len(errors)) / norm.ppf(0.975))
    return {
        who: error
        for who, error in errors.items()
        if abs(error.value) >= OFF
        and abs(error.value) > wider * max(error.high - error.value, error.value - error.low)
    }


def too_high_or_low(groups: Mapping[str, Estimate]) -> str:
    """`too high for b (+2.5 points [+1.1, +3.9]) and too low for c (...)`."""
    return listed(
        [
            f"too {'high' if by.value > 0 else 'low'} for {group(name)} ({by:points})"
            for name, by in groups.items()
        ]
    )
