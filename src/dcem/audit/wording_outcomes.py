"""How findings about the outcome are worded: what tests show, and what could overturn it.

Part of `dcem.audit.wording`, where a finding gets its words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from dcem.estimation.bounds import starting_odds
from dcem.estimation.findings import Finding
from dcem.estimation.results import EVERYBODY
from dcem.metrics.estimate import Estimate
from dcem.table.imperfect import ASSUMPTION
from dcem.table.known import ASSUMPTION as KNOWN
from dcem.text import groups, number, p_value, percent, points, ratio

Words = tuple[str, str]  # a headline and a text
EXPLAINED = "assumes that features and group explain who was tested"


def _within(estimate: Estimate) -> str:
    return f"{percent(estimate.low)} to {percent(estimate.high)}"


def points_of(e: Estimate) -> str:
    """A difference in percentage points, with its interval."""
    return f"{points(e.value)} percentage points, {points(e.low)} to {points(e.high)}"


def _share(e: Estimate) -> str:
    low, high = (percent(end, 1) for end in (e.low, e.high))
    return f"{percent(e.value, 1)} ({low.removesuffix(' %')} to {high})"


def _times(value: float) -> str:
    return "any size" if value == inf else ratio(value)


# -- what tests show ---------------------------------------------------------------------------


def _yields(f: Finding, v: Mapping[str, Any]) -> Words:
    rates = ", ".join(f"{name} {percent(e.value)}" for name, e in v["rates"].items())
    return (
        "Tests are positive more often in some groups",
        f"{rates}. A difference in these rates alone is not yet bias: they average over everybody "
        "tested, not over those at the margin, and groups whose risk is distributed differently "
        "have different rates under one and the same rule (infra-marginality).",
    )


def _margin(f: Finding, v: Mapping[str, Any]) -> Words:
    more = "more" if v["difference"].value > 0 else "less"
    headline = (
        f"At equal testing probability, tests of group {f.groups[0]} are positive {more} often"
    )
    if f.key == "yield-at-margin":
        return headline, (
            f"Difference {points_of(v['difference'])}. This is nearer to a comparison at the "
            "margin than the plain rates, as far as the features describe what the decision was "
            "based on. A feature that drives testing and is unrelated to risk can cause it as well."
        )
    plain = "The plain rates differ in the same way. " if v["robust"] else ""
    if f.key in ("stricter-bar", "laxer-bar"):
        often, bar = ("fewer", "stricter") if f.key == "stricter-bar" else ("more", "laxer")
        return headline, (
            f"Difference {points_of(v['difference'])}. {plain}Testing prefers low risk here: "
            f"together with {often} tests at equal features, this points to a {bar} bar for this "
            "group, as far as the features describe what the decision was based on."
        )
    often, bar = ("fewer", "higher") if f.key == "higher-bar" else ("more", "lower")
    return headline, (
        f"Difference {points_of(v['difference'])}. {plain}Together with {often} tests at equal "
        f"features, the signs point to a {bar} bar for this group."
    )


def _safer(f: Finding, v: Mapping[str, Any]) -> Words:
    taught = ""
    if v["record_auc"].estimable and v["risk_auc"].estimable:
        wrong = " rank people the wrong way round, and" if v["record_auc"].value < 0.5 else ""
        taught = (
            f" A score that learnt such a record would{wrong} have an AUC of about "
            f"{number(v['record_auc'].value, 2)}; that of the model of what a test would show is "
            f"{number(v['risk_auc'].value, 2)}."
        )
    return (
        "Those at lower risk are the ones tested",
        f"{percent(v['tested'].value)} of the tested are positive; of the untested it would be "
        f"{percent(v['untested'].value)} ({_within(v['untested'])}, doubly robust, within reach of "
        "the tests). Counting the untested as negative records those at the highest risk as "
        f"safe.{taught}",
    )


def _prevalence(f: Finding, v: Mapping[str, Any]) -> Words:
    found, (low, high) = v["doubly_robust"], v["bounds"]
    return (
        f"The record shows {percent(v['recorded'].value)}, the estimate for everybody is "
        f"{percent(found.value)}",
        f"Doubly robust, {_within(found)}; among the tested {percent(v['tested_only'].value)}. It "
        + ("rests on the known prevalence" if v["known"] else EXPLAINED)
        + f". Without any {'other ' * v['known']}assumption it lies between {percent(low)} and "
        f"{percent(high)}.",
    )


def _unknown(f: Finding, v: Mapping[str, Any]) -> Words:
    (low, high), within = v["bounds"], v["within"]
    reach = ""
    if within.estimable:
        near, far = v["limits"]
        reach = (
            f"Of those within reach it is {percent(within.value)} ({_within(within)}), and of "
            f"everybody between {percent(near)} and {percent(far)}, whatever the others are like. "
        )
    reason = v["doubly_robust"].reason
    return (
        "How common the outcome is cannot be estimated for everybody",
        f"{reason[:1].upper()}{reason[1:]}. {reach}Without any "
        f"{'other ' * v['known']}assumption it lies between "
        f"{percent(low)} and {percent(high)}.",
    )


def _hidden(f: Finding, v: Mapping[str, Any]) -> Words:
    more, less = f.groups
    return (
        f"{'The record' if v['rates'] else 'Counting the untested as negative'} hides more in "
        f"group {more} than in group {less}",
        f"{_share(v['shares'][more])} of the outcomes in group {more}, "
        f"{_share(v['shares'][less])} in group {less}, by the doubly robust estimate.",
    )


def _errs(f: Finding, v: Mapping[str, Any]) -> Words:
    shown, found, told = v["as_shown"], v["corrected"], ""
    if found.estimable and not v["known"]:
        told = (
            f"Taken at its word, the test gives {percent(shown.value)} of people with the outcome; "
            f"at these rates it is {percent(found.value)} ({_within(found)}). "
        )
        if found.value in (0, 1):
            told += (
                "The results are about what such a test would show if nobody, or everybody, had "
                "the outcome: the estimate is cut off there. "
            )
    return (
        f"Numbers are corrected for a test that errs: {v['rates']}",
        f"{told}{ASSUMPTION} Neither the rates nor this can be seen in the table.",
    )


def _known_test(f: Finding, v: Mapping[str, Any]) -> Words:
    of = f" in group {f.groups[0]}" if f.groups else ""
    stated, guess, times = v["stated"], v["estimated"], v["odds_ratio"]
    if f.key == "known-rate-unused":
        return (
            f"The known prevalence{of} says nothing of the untested here",
            f"{percent(stated.value, 1)} is stated. What it means for the untested cannot be told: "
            f"{times.reason}. Estimates{of} rest on features and group explaining who was tested.",
        )
    known = _share(stated) if stated.high > stated.low else percent(stated.value, 1)
    if f.key == "known-rate-agrees":
        low, high = (_times(end) for end in v["detectable"])
        return (
            f"A known prevalence does not contradict that features explain testing{of}",
            f"{_share(guess)} on that assumption; known is {known}, {p_value(v['p_value'])}. If "
            f"the odds of untested people were under {low} or over {high} times those of tested "
            "people with the same features, it would most likely have been noticed (80 %).",
        )
    less = "less" if v["difference"].value > 0 else "more"
    times_as = ""
    if times.estimable:
        times_as = (
            f" The untested have it {less} often than tested people with the same features: their "
            f"odds are {ratio(times.value)} ({ratio(times.low)} to {ratio(times.high)}) times as "
            "high."
        )
    return (
        f"Features do not explain who is tested{of}: estimated {percent(guess.value, 1)}, known "
        f"{percent(stated.value, 1)}",
        f"It would be {_share(guess)} if they did; known is {known}, {p_value(v['p_value'])}."
        f"{times_as} Or the known rate is of other people, or of another outcome.",
    )


def _known_used(f: Finding, v: Mapping[str, Any]) -> Words:
    told = ", ".join(
        f"{percent(e.value, 1)}" + ("" if name == EVERYBODY else f" in group {name}")
        for name, e in v["rates"].items()
    )
    rest = ""
    if v["rest"]:
        rest = (
            f" Nothing is stated of {groups(v['rest'])}: there, features and group are taken to "
            "explain who was tested, which makes a comparison with the other groups doubtful."
        )
    return (
        f"Numbers for everybody rest on a known prevalence: {told}",
        f"{KNOWN} Neither can be seen in the table.{rest}",
    )


def _explained(f: Finding, v: Mapping[str, Any]) -> Words:
    more, less = f.groups
    high, low = (v["prevalence"][name] for name in f.groups)
    return (
        f"A test that finds less in group {less} could be why the outcome looks rarer there",
        f"{percent(low.value)} in group {less}, {percent(high.value)} in group {more}. Both would "
        f"be the same if, of the cases there are, the test found {number(v['equal_at'], 2)} times "
        f"as many in group {less} as in group {more}, without false alarms. Nothing in the table "
        "tells how much a test misses.",
    )


def _needed(f: Finding, v: Mapping[str, Any]) -> Words:
    told = "; ".join(f"{name}: {one.more:,} more" for name, one in v["tests"].items())
    return (
        "More tests would tell how common the outcome is, to within "
        f"{100 * v['precision']:g} percentage points",
        f"At random among the people of the group: {told}.",
    )


def _untested(f: Finding, v: Mapping[str, Any]) -> Words:
    reason = v["reason"]
    return (
        "Whether the outcome depends on the group could not be checked",
        f"{reason[:1].upper()}{reason[1:]}. Methods that assume it does not (DCEM) rest on "
        "something unchecked here.",
    )


def _depends(f: Finding, v: Mapping[str, Any]) -> Words:
    told = "; ".join(
        f"{name}: odds ratio {ratio(e.value)} ({ratio(e.low)} to {ratio(e.high)})"
        for name, e in v["odds_ratios"].items()
    )
    agree = "" if v["agree"] else " Not every kind of model sees it."
    return (
        "The outcome depends on the group at equal features",
        f"Among the tested, {p_value(v['p_value'])}. {told or 'No single group stands out'}. "
        "Methods that assume independence (DCEM and its variants) are off by about that much; or "
        f"the features lack something that differs between groups.{agree}",
    )


def _no_dependence(f: Finding, v: Mapping[str, Any]) -> Words:
    least, most = ratio(v["least"]), ratio(v["most"])
    unseen = f"depending on the group, odds ratios of {least} to {most}"
    if least == most:
        unseen = f"an odds ratio of {least}"
    return (
        "No sign that the outcome depends on the group at equal features",
        f"Among the tested, {p_value(v['p_value'])}. That is not a proof: {unseen} could have "
        "gone unnoticed, and only tested people could be asked.",
    )


# -- what could overturn it --------------------------------------------------------------------


def _breakdown(f: Finding, v: Mapping[str, Any]) -> Words:
    conclusion = f"“{v['conclusion'][0].upper()}{v['conclusion'][1:]}”"
    if f.key == "not-tried":
        return f"{conclusion} could not be put to the test", f"{v['reason']}."
    if f.key == "not-clear":
        return (
            f"{conclusion} is not clear to begin with",
            f"Even if the odds of untested people are {starting_odds(v['known'])}, the interval "
            "allows for no difference at all.",
        )
    if f.key == "holds-anyway":
        return (
            f"{conclusion} holds whatever the untested are like",
            "Even the limits without any assumption leave it standing.",
        )
    return (
        f"{conclusion} stands up to an odds ratio of {_times(v['interval'])}",
        f"If the odds of untested people differ from {starting_odds(v['known'])} by that factor, "
        f"the interval no longer excludes the opposite; at {_times(v['value'])} the estimate "
        "itself turns." + (" That is little." if f.key == "fragile" else ""),
    )


def _bounds(f: Finding, v: Mapping[str, Any]) -> Words:
    held = v["act"] + v["leave"]
    scale = ""
    if v["column"] is not None:
        name, strength = v["column"]
        scale = (
            f" For scale: of the measured columns, `{name}` would matter most if it had not been "
            f"recorded, with a factor of about {ratio(strength)}."
        )
    return (
        f"Whether to act at a risk of {percent(v['cut'])} is certain for {percent(held)} of people "
        f"if the unmeasured is no stronger than {v['gamma']:g}",
        f"For {percent(v['act'])} the risk lies above and for {percent(v['leave'])} below, even if "
        f"the odds of untested people differ from {starting_odds(v['known'])} by that factor, up "
        f"or down; of {percent(v['open'])} one cannot say.{scale}",
    )


def _bounds_unknown(f: Finding, v: Mapping[str, Any]) -> Words:
    return (
        "For whom a decision holds cannot be told",
        f"A strength of the unmeasured was stated, but {v['reason']}.",
    )


def _bounds_unequal(f: Finding, v: Mapping[str, Any]) -> Words:
    more, less = f.groups
    return (
        f"One cannot say more often in group {more} than in group {less}",
        f"At a risk of {percent(v['cut'])} and a strength of {v['gamma']:g}: "
        f"{percent(v['shares'][more])} of group {more}, {percent(v['shares'][less])} of group "
        f"{less}. A rule that acts only where it is certain would leave out the first more often.",
    )


OUTCOMES: dict[str, Words | Callable[[Finding, Mapping[str, Any]], Words]] = {
    "yields-differ": _yields,
    "yield-at-margin": _margin,
    "higher-bar": _margin,
    "stricter-bar": _margin,
    "laxer-bar": _margin,
    "safer-tested": _safer,
    "lower-bar": _margin,
    "prevalence": _prevalence,
    "prevalence-unknown": _unknown,
    "hidden-unequal": _hidden,
    "test-errs": _errs,
    "test-could-explain": _explained,
    "known-rate": _known_used,
    "known-rate-agrees": _known_test,
    "known-rate-disagrees": _known_test,
    "known-rate-unused": _known_test,
    "tests-needed": _needed,
    "independence-untested": _untested,
    "depends-on-group": _depends,
    "no-dependence-seen": _no_dependence,
    "not-tried": _breakdown,
    "not-clear": _breakdown,
    "holds-anyway": _breakdown,
    "stands": _breakdown,
    "fragile": _breakdown,
    "bounds": _bounds,
    "bounds-unequal": _bounds_unequal,
    "bounds-unknown": _bounds_unknown,
}
