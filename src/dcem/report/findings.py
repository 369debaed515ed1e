"""Findings as a report lists them: one for all groups that share it, each with what to do.

A table of eight groups has one finding "three groups are tested less", not three.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from dcem.audit.wording import TOGETHER, together
from dcem.estimation.findings import SEVERITIES, Finding
from dcem.report.document import Findings, Verdict


def listed_findings(found: Iterable[Finding]) -> Findings:
    """Findings of one key as one, in the order of the worst of them."""
    by_key: dict[str, list[Finding]] = {}
    for finding in found:
        key = finding.key if finding.key in TOGETHER else str(len(by_key))
        by_key.setdefault(key, []).append(finding)
    return Findings(tuple(together(alike) for alike in by_key.values()))


def no_milder(verdict: Verdict, findings: Findings, told: Collection[str] = ()) -> Verdict:
    """The verdict, marked as seriously as the worst finding below it, which it then names.

    Findings with one of the keys `told` are in its sentences already.
    """
    worst = min(findings.items, key=lambda one: SEVERITIES.index(one.severity), default=None)
    if worst is None or SEVERITIES.index(worst.severity) >= SEVERITIES.index(verdict.severity):
        return verdict
    said = () if worst.key in told else (f"Most serious: {worst.headline.removesuffix('.')}.",)
    return replace(verdict, severity=worst.severity, sentences=(*verdict.sentences, *said))
