"""How findings about deciders are worded. Part of `dcem.audit.wording`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dcem.audit.wording_outcomes import Words
from dcem.estimation.findings import Finding
from dcem.estimation.influence import FEWEST_PEOPLE
from dcem.estimation.instrument import Ends
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import THRESHOLD
from dcem.text import decimal, listed, p_value, percent, points

EITHER = (
    "Either chance does not say who decides at equal features, and people of higher risk go to "
    "some deciders in ways that the table does not show, or"
)

TO_DO_DECIDERS = {
    "deciders-differ": "Ask deciders at both ends what they go by. Who is tested should not hang "
    "on who decides.",
    "deciders-mix": "Add what says who goes to whom, or compare deciders who take turns.",
    "deciders-find-unequally": "Look at what those who find more at equal rates do differently, "
    "or whether they see other people.",
    "deciders-order": "Do not call deciders strict or lenient on the whole; look at each part.",
    "deciders-refuted": "Do not use the bounds by decider. Find out how people come to deciders, "
    "and record it.",
    "deciders-not-monotone": "Do not read what deciders find at equal rates as their skill.",
    "features-refuted": "Do not use estimates for everybody that rest on features explaining "
    "testing; give the bounds by decider, or add what deciders see.",
}


def _size(difference: float) -> str:
    """In percentage points, without a sign."""
    return decimal(100 * abs(difference), 1)


def _spread(e: Estimate) -> str:
    return (
        f"a standard deviation of {_size(e.value)} percentage points ({_size(e.low)} to "
        f"{_size(e.high)})"
    )


def bounds_of(bounds: Ends) -> str:
    """`between 23 % and 58 % (21 % to 61 % with the luck of sampling)`."""
    low, high = sorted((bounds.low.value, bounds.high.value))
    return (
        f"between {percent(low)} and {percent(high)} ({percent(bounds.low.low)} to "
        f"{percent(bounds.high.high)} with the luck of sampling)"
    )


def _differ(f: Finding, v: Mapping[str, Any]) -> Words:
    headline = "People with the same features are tested unequally, depending on who decides"
    lost = ""
    if v["left_out"] > 0:
        lost = (
            f" {percent(v['left_out'])} of the rows are left out: their decider is not recorded, "
            f"or has decided on fewer than {FEWEST_PEOPLE} people."
        )
    if f.key == "deciders-alike":
        headline = "People with the same features are tested about equally, whoever decides"
        if not v["clear"]:
            return headline, (
                f"{v['number']} deciders, no more spread than chance makes "
                f"({p_value(v['p_value'])}); up to {_size(v['deviation'].high)} percentage points "
                f"(standard deviation) could have gone unnoticed.{lost}"
            )
    ends, shown = "", v["shown"]
    if shown:
        whom = "From"
        if shown < v["number"]:
            whom = f"Of the {shown} with at least {THRESHOLD} people on every side, from"
        ends = (
            f" {whom} the lowest to the highest, each drawn in by as much as it is noise: "
            f"{points(v['least'])} to {points(v['most'])} against what the features foretell."
        )
    return headline, (
        f"{v['number']} deciders, chance taken off: {_spread(v['deviation'])}.{ends}{lost}"
    )


def _mix(f: Finding, v: Mapping[str, Any]) -> Words:
    if f.key == "deciders-comparable":
        return (
            "Deciders get people of about the same risk, as far as features tell",
            f"{percent(v['share'], 1)} of the variance of the risk that features foretell lies "
            "between deciders. That says nothing of what the table does not show.",
        )
    return (
        "Deciders get different people",
        f"{percent(v['share'], 1)} of the variance of the risk that features foretell lies between "
        f"deciders, more than chance makes ({p_value(v['p_value'])}). What is said of deciders is "
        "said at equal features; if people differ in what the table shows, they may in what it "
        "does not.",
    )


def _unequal(f: Finding, v: Mapping[str, Any]) -> Words:
    return (
        "Deciders with equal rates of testing do not find equally much",
        f"Of what they find per person, chance taken off: {_spread(v['deviation'])}. Some choose "
        "better, or see other people.",
    )


def _order(f: Finding, v: Mapping[str, Any]) -> Words:
    told = "; ".join(f"{name}: {_spread(e)}" for name, e in v["parts"].items())
    return (
        f"Strict or lenient depends on whom: {listed(list(v['parts']))} against the others",
        "Deciders by whom the others are tested equally often differ, chance taken off, in how "
        f"often these are tested. {told}. There is no one order from strict to lenient.",
    )


def _refuted(f: Finding, v: Mapping[str, Any]) -> Words:
    where = f" in {listed(list(f.groups))}" if f.groups else ""
    if f.key == "deciders-refuted":
        return (
            f"Who decides has to do with the outcome{where}, at equal features",
            "Some deciders find more positives than the negatives of others leave room for "
            f"({p_value(v['p_value'])}). Ends by decider do not hold here.",
        )
    what = {"tested": "tested", "found": "found positive", "cleared": "found negative"}
    told = listed([what[name] for name in v["checks"]])
    return (
        f"With some deciders there are more tests on the whole, and fewer people of a kind {told}",
        f"{EITHER} they do not go down one common list ({p_value(v['p_value'])}). The bounds by "
        "decider need the first alone.",
    )


def _bounds(f: Finding, v: Mapping[str, Any]) -> Words:
    low, high = sorted((v["bounds"].low.value, v["bounds"].high.value))
    told = bounds_of(v["bounds"])
    return (
        f"By who decides, {percent(low)} to {percent(high)} of people have the outcome",
        f"{told[0].upper()}{told[1:]}, if chance says who decides at equal features. Features need "
        "not explain who is tested.",
    )


def _beyond(f: Finding, v: Mapping[str, Any]) -> Words:
    return (
        "Features do not explain who is tested, or chance does not say who decides",
        f"The estimate that rests on the features, {percent(v['doubly_robust'].value)}, lies "
        f"{_size(v['beyond'].value)} percentage points beyond what deciders allow, "
        f"{bounds_of(v['bounds'])}; {p_value(v['p_value'])}.",
    )


DECIDERS: dict[str, Words | Callable[[Finding, Mapping[str, Any]], Words]] = {
    "deciders-unknown": lambda f, v: (
        "Deciders cannot be compared",
        f"{v['reason'][:1].upper()}{v['reason'][1:]}.",
    ),
    "deciders-differ": _differ,
    "deciders-alike": _differ,
    "deciders-mix": _mix,
    "deciders-comparable": _mix,
    "deciders-find-unequally": _unequal,
    "deciders-order": _order,
    "deciders-refuted": _refuted,
    "deciders-not-monotone": _refuted,
    "decider-bounds": _bounds,
    "features-refuted": _beyond,
}
