"""From numbers to what to make of them: findings, assumptions, methods."""

from __future__ import annotations

from dataclasses import replace

from dcem.audit.advice import advise, check_assumptions
from dcem.audit.findings import find
from dcem.audit.results import Audit


def conclude(audit: Audit) -> Audit:
    """The audit with its findings, its checklist and its advice."""
    return replace(
        audit,
        findings=find(audit),
        assumptions=check_assumptions(audit),
        methods=advise(audit),
    )
