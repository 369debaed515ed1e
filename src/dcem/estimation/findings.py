"""What audit and comparison have to say, as values: the wording comes last, and from one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

KEY: Any = {"key": True}  # marks fields that are looked up, not read: they are never reworded
SEVERITIES = ("serious", "caution", "note", "fine")
FIRST = (
    "leak",
    "groups-unlike",
)  # keys that stand before all others: the rest cannot be trusted beside them


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
    return tuple(sorted(findings, key=lambda f: (f.key not in FIRST, SEVERITIES.index(f.severity))))
