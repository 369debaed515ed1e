"""For whom a decision holds if the unmeasured has a stated strength, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan

from dcem.audit.remedies import audit_finding
from dcem.audit.results import Audit
from dcem.estimation.bounds import Bounds, bound_table, starting_odds, strengths_of_columns
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.findings import Finding
from dcem.estimation.results import EVERYBODY
from dcem.text import percent, ratio

MOST = 0.5  # share of people nothing can be said of that calls for a second look
UNEQUAL = 0.1  # difference in that share between groups


def find_bounds(
    evaluator: Evaluator, sources: Sequence[str], gamma: float | None, threshold: float | None
) -> tuple[Bounds | None, str]:
    """For whom a decision holds at the stated strength, if one is; or why nobody can tell."""
    problem = evaluator.problem
    if gamma is None:
        return None, ""
    if problem.extent != "some":
        return None, f"{problem.extent} is tested"
    if why := evaluator.lacking("dr"):
        return None, why
    columns = strengths_of_columns(
        problem.X, sources, evaluator.nuisances.testing, evaluator.unseen.risk
    )
    return bound_table(evaluator, gamma, threshold, columns), ""


def about_bounds(audit: Audit) -> Iterator[Finding]:
    """How many decisions are certain, and whether abstaining falls on one group."""
    found = audit.bounds
    if found is None:
        if why := audit.bounds_lacking:
            yield audit_finding(
                "bounds-unknown",
                "note",
                "sensitivity",
                "For whom a decision holds cannot be determined",
                f"A strength of what is unmeasured was stated, but {why}.",
                reason=why,
            )
        return
    every, at = found.shares[EVERYBODY], found.at
    act, leave, unsure = (float(part[at]) for part in (every.act, every.leave, every.open))
    strongest, scale = max(found.columns.items(), key=lambda one: one[1], default=None), ""
    if strongest is not None:
        scale = (
            f" For scale: of the measured columns, `{strongest[0]}` would matter most if it had "
            f"not been recorded, with a factor of about {ratio(strongest[1])}."
        )
    stated = {"gamma": found.stated, "cut": found.cut}
    yield audit_finding(
        "bounds",
        "caution" if unsure > MOST else "note",
        "sensitivity",
        f"Whether to act at a risk of {percent(found.cut)} is certain for {percent(act + leave)} "
        f"of people if nothing unmeasured is stronger than {found.stated:g}",
        f"For {percent(act)} the risk lies above and for {percent(leave)} below, even if the odds "
        f"of untested people differ from {starting_odds(found.known)} by that factor, up or down; "
        f"for {percent(unsure)} one cannot say.{scale}",
        **stated,
        act=act,
        leave=leave,
        open=unsure,
        known=found.known,
        column=strongest,
    )
    shares = {
        name: float(one.open[at])
        for name, one in found.shares.items()
        if name != EVERYBODY and not isnan(one.open[at])
    }
    if len(shares) < 2:
        return
    more, less = (pick(shares, key=shares.__getitem__) for pick in (max, min))
    if shares[more] - shares[less] >= UNEQUAL:
        yield audit_finding(
            "bounds-unequal",
            "caution",
            "sensitivity",
            f"More decisions are uncertain in group {more} than in group {less}",
            f"At a risk of {percent(found.cut)} and a strength of {found.stated:g}, one cannot say "
            f"for {percent(shares[more])} of group {more} and {percent(shares[less])} of group "
            f"{less}. A rule that acts only where it is certain would leave out group {more} more "
            "often.",
            (more, less),
            **stated,
            shares={name: shares[name] for name in (more, less)},
        )
