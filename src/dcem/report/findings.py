"""Findings as a report lists them: one for all groups that share it, each with what to do.

A table of eight groups has one finding "three groups are tested less", not three.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from dcem.estimation.findings import SEVERITIES, Finding
from dcem.metrics.estimate import Estimate
from dcem.report.document import Findings, Verdict
from dcem.text import group, groups, points

# Key -> what is said of several groups at once, and after their numbers.
TOGETHER = {
    "tested-less": (
        "{groups} are tested less often than {others} with the same features",
        "Recorded features do not explain the differences; something unrecorded might.",
    ),
    "tested-more": (
        "{groups} are tested more often than {others} with the same features",
        "Recorded features do not explain the differences; something unrecorded might.",
    ),
    "small-difference": (
        "Small differences in testing at equal features: {groups}",
        "They are beyond chance, but too small to be counted as disparities.",
    ),
    "depends-on-model": (
        "Whether {groups} are tested differently depends on the model",
        "A difference that one kind of model does not see is not a finding.",
    ),
    "yield-at-margin": (
        "At equal testing probability, tests are positive more or less often in {groups}",
        "This is nearer to a comparison at the margin than the plain rates.",
    ),
    "higher-bar": (
        "Tested less and positive more often: the signs point to a higher bar for {groups}",
        "Differences in positive tests at equal testing probability.",
    ),
    "lower-bar": (
        "Tested more and positive less often: the signs point to a lower bar for {groups}",
        "Differences in positive tests at equal testing probability.",
    ),
}


def listed_findings(found: Iterable[Finding]) -> Findings:
    """Findings of one key as one, in the order of the worst of them."""
    by_key: dict[str, list[Finding]] = {}
    for finding in found:
        key = finding.key if finding.key in TOGETHER else str(len(by_key))
        by_key.setdefault(key, []).append(finding)
    return Findings(tuple(_one(alike) for alike in by_key.values()))


def no_milder(verdict: Verdict, findings: Findings, told: Collection[str] = ()) -> Verdict:
    """The verdict, marked as seriously as the worst finding below it, which it then names.

    Findings with one of the keys `told` are in its sentences already.
    """
    worst = min(findings.items, key=lambda one: SEVERITIES.index(one.severity), default=None)
    if worst is None or SEVERITIES.index(worst.severity) >= SEVERITIES.index(verdict.severity):
        return verdict
    said = () if worst.key in told else (f"Most serious: {worst.headline.removesuffix('.')}.",)
    return replace(verdict, severity=worst.severity, sentences=(*verdict.sentences, *said))


def _one(alike: list[Finding]) -> Finding:
    first = alike[0]
    if len(alike) == 1:
        return replace(first, headline=first.headline.removesuffix("."))
    headline, after = TOGETHER[first.key]
    named = [name for finding in alike for name in finding.groups]
    worst = min((finding.severity for finding in alike), key=SEVERITIES.index)
    numbers = "; ".join(
        f"{groups(finding.groups)} {_points(finding.values['difference'])}" for finding in alike
    )
    reference = first.values.get("reference")
    said = headline.format(
        groups=f"{len(named)} groups" if len(named) > 3 else groups(named),
        others=group(reference) if reference else "others",
    )
    text = f"Percentage points, with 95 % intervals: {numbers}. {after}"
    headline = said[0].upper() + said[1:]
    return replace(first, severity=worst, groups=tuple(named), headline=headline, text=text)


def _points(found: Estimate) -> str:
    return f"{points(found.value)} ({points(found.low)} to {points(found.high)})"
