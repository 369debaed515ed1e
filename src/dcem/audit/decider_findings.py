"""What an audit finds about deciders, no stronger than its intervals."""

from __future__ import annotations

from collections.abc import Iterator

from dcem.audit.deciders import Deciders
from dcem.audit.results import Audit
from dcem.estimation.deciders import Compared
from dcem.estimation.findings import Finding
from dcem.estimation.results import EVERYBODY

CLEAR = 0.05  # p-values, corrected for the number of checks
MUCH = 0.05  # a standard deviation of testing rates that is more than a note
MIXED = 0.01  # share of the variance of risk between deciders that a reader should know of
ABOUT = "deciders"


def about_deciders(audit: Audit) -> Iterator[Finding]:
    """Of a table that says who decided."""
    found = audit.deciders
    if found is None:
        return
    if found.reason:
        yield Finding("deciders-unknown", "note", ABOUT, values={"reason": found.reason})
    if found.compared is not None:
        yield from _differences(audit, found.compared)
    if found.prevalence:
        yield from _instrument(audit, found)


def _differences(audit: Audit, found: Compared) -> Iterator[Finding]:
    spread = found.testing
    clear = spread.p_value < CLEAR
    matters = clear and spread.deviation.value >= audit.least_difference
    effects = found.effects
    values = {
        "number": found.number,
        "left_out": found.left_out,
        "deviation": spread.deviation,
        "p_value": spread.p_value,
        "clear": clear,
        "shown": len(effects),
        "least": effects[0].shrunken.value if effects else 0.0,
        "most": effects[-1].shrunken.value if effects else 0.0,
    }
    key = "deciders-differ" if matters else "deciders-alike"
    severity = "caution" if spread.deviation.value >= MUCH else "note"
    yield Finding(key, severity if matters else "fine", ABOUT, values=values)
    mixed = found.mix.p_value < CLEAR and found.mix_share >= MIXED
    yield Finding(
        "deciders-mix" if mixed else "deciders-comparable",
        "caution" if mixed else "fine",
        ABOUT,
        values={"share": found.mix_share, "p_value": found.mix.p_value},
    )
    equal = found.at_equal_rates
    # Where deciders get different people, what they find differs at equal rates, too.
    if not mixed and equal.p_value < CLEAR and equal.deviation.value >= audit.least_difference:
        values = {"deviation": equal.deviation, "p_value": equal.p_value}
        yield Finding("deciders-find-unequally", "caution", ABOUT, values=values)
    turned = {
        name: one.deviation
        for name, one in found.order.items()
        if one.p_value < CLEAR and one.deviation.value >= audit.least_difference
    }
    if turned:
        groups = tuple(name for name in turned if name in {item.group for item in audit.counts})
        yield Finding("deciders-order", "caution", ABOUT, groups, {"parts": turned})


def _instrument(audit: Audit, found: Deciders) -> Iterator[Finding]:
    crossed = {name: one for name, one in found.exclusion.items() if one.p_value < CLEAR}
    if crossed:
        groups = tuple(name for name in crossed if name != EVERYBODY)
        values = {"p_value": min(one.p_value for one in crossed.values()), "checks": crossed}
        yield Finding("deciders-refuted", "serious", ABOUT, groups, values)
    falls = {name: one for name, one in found.monotone.items() if one.p_value < CLEAR}
    if falls:
        values = {"p_value": min(one.p_value for one in falls.values()), "checks": falls}
        yield Finding("deciders-not-monotone", "caution", ABOUT, values=values)
    every = found.prevalence[EVERYBODY]
    if not crossed:
        yield Finding("decider-bounds", "note", "prevalence", values={"bounds": every})
        beyond = found.beyond
        if beyond and found.p_value < CLEAR and beyond.value >= audit.least_difference:
            values = {
                "bounds": every,
                "beyond": beyond,
                "p_value": found.p_value,
                "doubly_robust": audit.prevalence[0].doubly_robust,
            }
            yield Finding("features-refuted", "serious", "prevalence", values=values)
