"""Deciders in the page of an audit: how they differ, what they bound, what was checked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from dcem.audit.deciders import ASSUMPTION
from dcem.audit.results import Audit, Deciders
from dcem.estimation.deciders import Spread
from dcem.estimation.instrument import LEVELS, Ends
from dcem.estimation.instrument_checks import Check
from dcem.report.document import (
    NOTHING,
    Block,
    Cell,
    Figure,
    Fold,
    Missing,
    Name,
    Text,
    estimate,
    table,
)
from dcem.report.figures import deciders as draw
from dcem.text import p_value

OURS = {name for names in LEVELS.values() for name in names}  # other levels are single deciders
CHECKED = {
    "tested": "as tests grow, nobody's kind is tested less",
    "found": "as tests grow, nobody's kind is found positive less",
    "cleared": "as tests grow, nobody's kind is found negative less",
}


def deciders(audit: Audit) -> Iterator[Block]:
    """Where it is told who decided."""
    found = audit.deciders
    if found is None:
        return
    if found.reason:
        yield Text((f"{found.reason[:1].upper()}{found.reason[1:]}.",))
    if found.compared is None:
        return
    yield Figure(partial(draw.effects, audit))
    if not found.levels:
        return
    yield _bounds(audit, found)
    yield Fold("Levels of deciders", (_levels(found),))
    yield Fold("What was checked of deciders", (_checks(found),))


def ends(bounds: Ends, form: str = "percent") -> tuple[Cell, Cell]:
    """At least and at most."""
    return estimate(bounds.low, form), estimate(bounds.high, form)


def _bounds(audit: Audit, found: Deciders) -> Block:
    robust = {item.group: item.doubly_robust for item in audit.prevalence}
    rows: list[tuple[Cell, ...]] = [
        (
            Name(name),
            *ends(bounds),
            estimate(robust[name], "percent") if name in robust else NOTHING,
        )
        for name, bounds in found.prevalence.items()
    ]
    if found.auc is not None:
        rows.append(
            ("AUC of the model of what a test would show", *ends(found.auc, "score"), NOTHING)
        )
    rests = "the known prevalence holds" if audit.known else "features explain who is tested"
    return table(
        "How common the outcome is, by who decides",
        ("group", "at least", "at most", "doubly robust"),
        rows,
        note=f"{ASSUMPTION}: then nobody's risk is below what any decider finds positive in people "
        "like them, or above what any decider does not find negative. Each end has its interval; "
        "the truth lies between the outer limits 95 times in 100. Doubly robust: if, instead, "
        f"{rests}.",
    )


def _levels(found: Deciders) -> Block:
    return table(
        "",
        ("deciders", "tested", "found positive, of everybody"),
        [
            (
                one.name if one.name in OURS else Name(one.name),
                estimate(one.tested, "percent"),
                estimate(one.found, "percent"),
            )
            for one in found.levels
        ],
        note="Deciders taken together by how much they have tested of other people, and what they "
        "would find among everybody, by their features. Where they hardly differ, chance "
        "orders them.",
    )


def _checks(found: Deciders) -> Block:
    compared = found.compared
    assert compared is not None
    rows: list[tuple[Cell, ...]] = [
        ("no more spread of testing than chance makes", *_spread(compared.testing)),
        ("deciders get people of the same risk, by features", *_spread(compared.mix)),
        ("found alike at equal rates of testing", *_spread(compared.at_equal_rates)),
        *(
            (f"one order from strict to lenient: {name} against others", *_spread(one))
            for name, one in compared.order.items()
        ),
        *((f"bounds do not cross: {name}", *_check(one)) for name, one in found.exclusion.items()),
        *((CHECKED[name], *_check(one)) for name, one in found.monotone.items()),
    ]
    return table(
        "",
        ("what should hold", "standard deviation, or by how much it fails", "chance of no less"),
        rows,
        note="Standard deviations are of deciders, chance taken off. Where it is said by how much "
        "something fails, it is asked of people for whom models fitted to others foretell that; "
        "p-values are corrected for the number of groups or kinds. None of this can show that the "
        "assumption holds.",
    )


def _spread(one: Spread) -> tuple[Cell, Cell]:
    if not one.deviation.estimable:
        return Missing(one.deviation.reason), NOTHING
    return estimate(one.deviation, "percent"), p_value(one.p_value)


def _check(one: Check) -> tuple[Cell, Cell]:
    if not one.violation.estimable:
        return "foretold for hardly anybody", NOTHING
    return estimate(one.violation, "points"), p_value(one.p_value)
