"""For whom a decision holds if the unmeasured has a stated strength, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any

from dcem.audit.results import Audit
from dcem.estimation.bounds import (
    Bounds,
    counts_from_known,
    describe,
    of_table,
    risk_of_table,
    strengths_of_columns,
)
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.findings import Finding
from dcem.estimation.results import EVERYBODY

MOST = 0.5  # share of people nothing can be said of that calls for a second look
UNEQUAL = 0.1  # difference in that share between groups


def find_bounds(
    judge: Evaluator, sources: Sequence[str], gamma: float, threshold: float | None
) -> Bounds:
    """For whom a decision holds at the stated strength, and how strong measured columns are."""
    nuisances, unseen = judge.nuisances, judge.unseen
    columns = strengths_of_columns(judge.problem.X, sources, nuisances.testing, unseen.risk)
    return describe(
        judge.problem,
        risk_of_table(judge),
        lambda strength: of_table(judge, strength),
        gamma,
        threshold,
        columns,
        known=counts_from_known(judge.unseen),
    )


def about_bounds(audit: Audit) -> Iterator[Finding]:
    """How many decisions are certain, and whether abstaining falls on one group."""
    found = audit.bounds
    if found is None:
        if why := audit.bounds_lacking:
            yield Finding("bounds-unknown", "note", "sensitivity", values={"reason": why})
        return
    every, at = found.shares[EVERYBODY], found.at
    values: dict[str, Any] = {
        "gamma": found.stated,
        "cut": found.cut,
        "act": float(every.act[at]),
        "leave": float(every.leave[at]),
        "open": float(every.open[at]),
        "known": found.known,
        "column": max(found.columns.items(), key=lambda one: one[1], default=None),
    }
    severity = "caution" if values["open"] > MOST else "note"
    yield Finding("bounds", severity, "sensitivity", values=values)
    shares = {
        name: float(one.open[at])
        for name, one in found.shares.items()
        if name != EVERYBODY and not isnan(one.open[at])
    }
    if len(shares) > 1:
        most, least = (pick(shares, key=shares.__getitem__) for pick in (max, min))
        if shares[most] - shares[least] >= UNEQUAL:
            of_whom = {name: shares[name] for name in (most, least)}
            values = {"gamma": found.stated, "cut": found.cut, "shares": of_whom}
            yield Finding("bounds-unequal", "caution", "sensitivity", (most, least), values)
