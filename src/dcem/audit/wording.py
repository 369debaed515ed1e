"""How findings are worded: the one place to change a sentence of an audit.

Each key has a headline and a text, made from the values of the finding alone, and what to do about
it, in which a role in backticks becomes an option of the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import Any

from dcem.estimation.findings import Finding
from dcem.metrics.estimate import Estimate
from dcem.text import listed, number, p_value, percent, points, ratio

Words = tuple[str, str]

TO_DO = {
    "leak": "Leave it out (`exclude`), unless you know that it is recorded before the decision.",
    "nobody-tested": "Find out where outcomes are recorded.",
    "everybody-tested": "Name the column that says who was tested (`tested`), or the label's value "
    "for nobody looked (`untested_value`), and audit again.",
    "few-tests": "Collect more tests before you conclude anything.",
    "no-groups": "Name the column with the group (`group`).",
    "group-too-small": "Join small groups, or learn more about them; do not report them as equal.",
    "tested-less": "Ask those who decide what might explain it; if nothing does, the rule has to "
    "change. Until then, do not train on the record as it is.",
    "tested-more": "Ask those who decide what might explain it, and whether tests help these "
    "people or burden them.",
    "depends-on-model": "Report that the answer depends on the model.",
    "unmeasured-cause": "List what drives testing and is not recorded; could it be that strong?",
    "overlap": "Claim nothing about people unlike the tested, or test some of them.",
    "overlap-groups": "Claim nothing for these groups that rests on weights, or test more of them.",
    "calibration": "Add what is known to drive testing, and audit again.",
    "predictable": "Find out whether a rule decides, or whether a column records the decision.",
    "model-leaves": "Add what is known to drive testing, and audit again.",
    "one-driver": "Audit again without it (`exclude`), and compare.",
    "drives-testing": "Ask those who decide why it counts for more in their decision than in what "
    "tests show.",
    "missing-by-testing": "Find out whether these columns are filled in because of the test.",
    "yield-at-margin": "Read it beside who is tested at equal features.",
    "higher-bar": "Review the rule: at equal risk these people are tested too little or others "
    "too much.",
    "lower-bar": "Review the rule: these people bear tests that find less.",
    "prevalence": "Do not read the record as how common the outcome is, and do not train on it.",
    "prevalence-unknown": "Give the limits, not a number; test some of those out of reach.",
    "hidden-unequal": "Do not train on the record as it is: a model would learn this difference.",
    "tests-needed": "Only tests drawn at random within the group would tell it better; until "
    "then, report the interval.",
    "depends-on-group": "Prefer methods that do not assume independence, or add what differs.",
    "fragile": "Say so wherever this conclusion is used.",
}


def word(finding: Finding) -> Finding:
    """The finding with its headline, its text, and what to do about it."""
    words = _WORDS[finding.key]
    headline, text = words if isinstance(words, tuple) else words(finding, finding.values)
    remedy = "" if finding.severity == "fine" else TO_DO.get(finding.key, "")
    return replace(finding, headline=headline, text=text, remedy=remedy)


def keys() -> tuple[str, ...]:
    """All findings that an audit can have."""
    return tuple(_WORDS)


def _within(estimate: Estimate) -> str:
    return f"{percent(estimate.low)} to {percent(estimate.high)}"


def _points(e: Estimate) -> str:
    return f"{points(e.value)} percentage points, {points(e.low)} to {points(e.high)}"


def _share(e: Estimate) -> str:
    low, high = (percent(end, 1) for end in (e.low, e.high))
    return f"{percent(e.value, 1)} ({low.removesuffix(' %')} to {high})"


def _times(value: float) -> str:
    return "any size" if value == inf else ratio(value)


def _group(finding: Finding) -> str:
    many = "groups" if len(finding.groups) > 1 else "group"
    return f"{many} {listed(finding.groups)}"


def _reasons(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {why}" for name, why in reasons.items())


# -- who is tested -----------------------------------------------------------------------------


def _leak(f: Finding, v: Mapping[str, Any]) -> Words:
    return (
        f"{listed(list(v['columns']))} may have been recorded after the decision to test",
        f"{_reasons(v['columns'])}. A column that follows the decision hides disparities and "
        "overstates every model. While it is in, nothing below can be trusted: leave it out if so.",
    )


def _too_small(f: Finding, v: Mapping[str, Any]) -> Words:
    return (
        f"Too little is known about {_group(f)}",
        f"At equal features: {_reasons(v['reasons'])}. This does not mean that these groups are "
        "treated alike.",
    )


def _rates(v: Mapping[str, Any]) -> str:
    r = v["ratio"]
    shown = f"; ratio {ratio(r.value)}, {ratio(r.low)} to {ratio(r.high)}" if r.estimable else ""
    return (
        f"{percent(v['equal'].value)} against {percent(v['others'].value)} (difference "
        f"{_points(v['difference'])}{shown})"
    )


def _who(f: Finding, v: Mapping[str, Any]) -> str:
    """Group b; where groups are crossed and it is about one attribute: Group F of sex."""
    return f"roup {f.groups[0]}" + (f" of {v['attribute']}" if "attribute" in v else "")


def _others(v: Mapping[str, Any]) -> str:
    return f"group {v['reference']}" if v.get("reference") else "others"


def _tested(f: Finding, v: Mapping[str, Any]) -> Words:
    how = "less" if f.key == "tested-less" else "more"
    return (
        f"G{_who(f, v)} is tested {how} often than {_others(v)} with the same features",
        f"{_rates(v)}. Crude rate: {percent(v['crude'].value)}. Recorded features do not explain "
        "the difference; something unrecorded might.",
    )


def _small(f: Finding, v: Mapping[str, Any]) -> Words:
    return (
        f"A small difference in testing of g{_who(f, v)} at equal features",
        f"{_rates(v)}. It is beyond chance, but under {percent(v['least'])} of people, and not "
        "counted as a disparity.",
    )


def _model(f: Finding, v: Mapping[str, Any]) -> Words:
    each = "; ".join(f"{name}: {_points(e)}" for name, e in v["each"].items())
    return (
        f"Whether g{_who(f, v)} is tested differently depends on the model",
        f"{_rates(v)} with all models together. By each kind of model alone: {each}. A difference "
        "that one of them does not see is not a finding.",
    )


def _alike(f: Finding, v: Mapping[str, Any]) -> Words:
    return (
        "No clear difference in testing at equal features",
        "No group's rate differs clearly from that of others with the same features. Differences "
        f"up to {percent(v['widest']).removesuffix(' %')} percentage points are compatible with "
        "the data.",
    )


def _unmeasured(f: Finding, v: Mapping[str, Any]) -> Words:
    scale = (
        "A measured column is that strong, so an unmeasured one might be."
        if v["interval"] < v["strongest"]
        else f"No measured column is that strong on both (the strongest: "
        f"{percent(v['strongest'])})."
    )
    return (
        f"It takes an unmeasured cause of strength {percent(v['value'])} to explain the difference "
        "away",
        f"Something unrecorded that explains {percent(v['value'])} of what the features leave open "
        f"about both belonging to group {f.groups[0]} and being tested would account for all of it "
        f"({percent(v['interval'])} for its interval). {scale}",
    )


# -- whom the tests speak for ------------------------------------------------------------------


def _overlap(f: Finding, v: Mapping[str, Any]) -> Words:
    facts = (
        f"{percent(v['reach'])} of people are within reach of the tests. Weighted to stand for "
        f"them, their effective sample size is {percent(v['effective'])} of their number."
    )
    if v["reason"]:
        return (
            "The tested cannot speak for everybody",
            f"{facts} For people like nobody tested, any score or estimate is extrapolation.",
        )
    if f.severity == "serious":
        return (
            f"The tested cannot speak for {percent(1 - v['reach'])} of the people",
            f"{facts} Estimates are about those within reach; for the rest there are limits that "
            "assume nothing, and any score is extrapolation.",
        )
    if f.severity == "caution":
        return (
            "Thin overlap of tested and untested people",
            f"{facts} The heaviest hundredth of the tests carries {percent(v['heaviest'])} of the "
            "weight: weighted estimates rest on few people.",
        )
    return "Tested and untested people overlap", facts


def _overlap_groups(f: Finding, v: Mapping[str, Any]) -> Words:
    return (
        f"No estimate for all people of {_group(f)}",
        f"{_reasons(v['reasons'])}.",
    )


def _calibration(f: Finding, v: Mapping[str, Any]) -> Words:
    return (
        "The model of testing is not well calibrated",
        f"Slope {ratio(v['slope'].value)} (1 is right), mean error "
        f"{percent(v['error']).removesuffix(' %')} percentage points. What rests on its "
        "probabilities, the weighted estimates above all, is less sure than the intervals say.",
    )


def _predictable(f: Finding, v: Mapping[str, Any]) -> Words:
    return (
        "Testing can be predicted almost perfectly",
        f"AUC {number(v['auc'], 2)}. Either testing follows a rule, and nothing is known about "
        "those the rule leaves out; or a feature was recorded after the decision.",
    )


def _leaves(f: Finding, v: Mapping[str, Any]) -> Words:
    told = "; ".join(f"{name}: {percent(e.value)}" for name, e in v["shares"].items())
    return (
        "The models leave something that the features could tell",
        f"Of the variance that each model leaves, other trees still predict: {told}. Differences "
        "at equal features and estimates for everybody may be off by more than their intervals.",
    )


# -- features ----------------------------------------------------------------------------------


def _driver(f: Finding, v: Mapping[str, Any]) -> Words:
    return (
        f"{v['column']} carries most of the prediction of testing",
        f"{percent(v['share'])} of the permutation importances of all columns. It may simply be "
        "why people are tested. But it may also count the test itself, or be recorded after the "
        "decision; then it hides disparities, and people at equal features were not equal when it "
        "was made. Consider leaving it out, and compare.",
    )


def _drives(f: Finding, v: Mapping[str, Any]) -> Words:
    told = "; ".join(
        f"{name}: {percent(a)} against {percent(b)}" for name, (a, b) in v["columns"].items()
    )
    verb = "drives" if len(v["columns"]) == 1 else "drive"
    return (
        f"{listed(list(v['columns']))} {verb} who is tested more than what tests show",
        f"Shares of the permutation importances: {told}. It may send people to a test for another "
        "reason than their risk.",
    )


def _missing(f: Finding, v: Mapping[str, Any]) -> Words:
    told = "; ".join(f"{name}: {_points(e)}" for name, e in v["columns"].items())
    return (
        f"Whether {listed(list(v['columns']))} is filled in goes with testing",
        f"Missing among the tested minus among the untested: {told}. What is measured together "
        "with the test, or because of it, tells a model who was tested.",
    )


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
            f"Difference {_points(v['difference'])}. This is nearer to a comparison at the margin "
            "than the plain rates, as far as the features describe what the decision was based on. "
            "A feature that drives testing and is unrelated to risk can cause it as well."
        )
    often, bar = ("fewer", "higher") if f.key == "higher-bar" else ("more", "lower")
    plain = "The plain rates differ in the same way. " if v["robust"] else ""
    return headline, (
        f"Difference {_points(v['difference'])}. {plain}Together with {often} tests at equal "
        f"features, the signs point to a {bar} bar for this group."
    )


def _prevalence(f: Finding, v: Mapping[str, Any]) -> Words:
    found, (low, high) = v["doubly_robust"], v["bounds"]
    return (
        f"The record shows {percent(v['recorded'].value)}, the estimate for everybody is "
        f"{percent(found.value)}",
        f"Doubly robust, {_within(found)}; among the tested {percent(v['tested_only'].value)}. It "
        "assumes that features and group explain who was tested. Without any assumption it lies "
        f"between {percent(low)} and {percent(high)}.",
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
        f"{reason[:1].upper()}{reason[1:]}. {reach}Without any assumption it lies between "
        f"{percent(low)} and {percent(high)}.",
    )


def _hidden(f: Finding, v: Mapping[str, Any]) -> Words:
    more, less = f.groups
    return (
        f"Counting the untested as negative hides more in group {more} than in {less}",
        f"{_share(v['shares'][more])} of the outcomes in group {more}, "
        f"{_share(v['shares'][less])} in group {less}, by the doubly robust estimate.",
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
    return (
        "No sign that the outcome depends on the group at equal features",
        f"Among the tested, {p_value(v['p_value'])}. That is not a proof: depending on the group, "
        f"odds ratios of {ratio(v['least'])} to {ratio(v['most'])} could have gone unnoticed, and "
        "only tested people could be asked.",
    )


# -- what could overturn it --------------------------------------------------------------------


def _breakdown(f: Finding, v: Mapping[str, Any]) -> Words:
    conclusion = f"“{v['conclusion'][0].upper()}{v['conclusion'][1:]}”"
    if f.key == "not-tried":
        return f"{conclusion} could not be put to the test", f"{v['reason']}."
    if f.key == "not-clear":
        return (
            f"{conclusion} is not clear to begin with",
            "Even if untested people are like tested people with the same features, the interval "
            "allows for no difference at all.",
        )
    if f.key == "holds-anyway":
        return (
            f"{conclusion} holds whatever the untested are like",
            "Even the limits without any assumption leave it standing.",
        )
    return (
        f"{conclusion} stands up to an odds ratio of {_times(v['interval'])}",
        "If the odds of untested people differ from those of tested people with the same features "
        f"by that factor, the interval no longer excludes the opposite; at {_times(v['value'])} "
        "the estimate itself turns." + (" That is little." if f.key == "fragile" else ""),
    )


_WORDS: dict[str, Words | Callable[[Finding, Mapping[str, Any]], Words]] = {
    "leak": _leak,
    "nobody-tested": (
        "Nobody was tested",
        "There is not a single outcome in this table. Neither a model nor an estimate of anything "
        "about the outcome can be made from it.",
    ),
    "everybody-tested": (
        "Everybody counts as tested",
        "No label is missing. If untested people were recorded as negative, that is the bias "
        "itself, and nothing below shows it: say who was tested, and audit again.",
    ),
    "few-tests": (
        "Fewer than 100 tests",
        "Intervals are wide, and a difference that is not seen may well be there.",
    ),
    "no-groups": (
        "No groups were given",
        "This audit looks at overlap, prevalence and sensitivity only. Name a group column to ask "
        "whether groups are tested differently.",
    ),
    "group-too-small": _too_small,
    "tested-less": _tested,
    "tested-more": _tested,
    "small-difference": _small,
    "depends-on-model": _model,
    "tested-alike": _alike,
    "unmeasured-cause": _unmeasured,
    "overlap": _overlap,
    "overlap-groups": _overlap_groups,
    "calibration": _calibration,
    "predictable": _predictable,
    "model-leaves": _leaves,
    "one-driver": _driver,
    "drives-testing": _drives,
    "missing-by-testing": _missing,
    "yields-differ": _yields,
    "yield-at-margin": _margin,
    "higher-bar": _margin,
    "lower-bar": _margin,
    "prevalence": _prevalence,
    "prevalence-unknown": _unknown,
    "hidden-unequal": _hidden,
    "tests-needed": _needed,
    "independence-untested": _untested,
    "depends-on-group": _depends,
    "no-dependence-seen": _no_dependence,
    "not-tried": _breakdown,
    "not-clear": _breakdown,
    "holds-anyway": _breakdown,
    "stands": _breakdown,
    "fragile": _breakdown,
}
