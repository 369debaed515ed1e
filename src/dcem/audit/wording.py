"""How findings are worded: the place to change a sentence of an audit.

Each key has a headline and a text, made from the values of the finding alone, and what to do about
it, in which a role in backticks becomes an option of the command line; some have other words for
several groups at once. Sentences about the outcome are in `wording_outcomes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import Any

from dcem.audit.wording_deciders import DECIDERS, TO_DO_DECIDERS
from dcem.audit.wording_outcomes import OUTCOMES, Words, points_of
from dcem.audit.wording_time import TIME
from dcem.estimation.findings import SEVERITIES, Finding
from dcem.metrics.estimate import Estimate
from dcem.text import group, groups, listed, number, percent, points, ratio

TO_DO = {
    "leak": "Leave it out (`exclude`), unless you know that it is recorded before the decision.",
    "nobody-tested": "Find out where outcomes are recorded.",
    "everybody-tested": "Name the column that says who was tested (`tested`), or the label's value "
    "for nobody looked (`untested_value`), or say that nobody recorded it (`positives_only`), and "
    "audit again.",
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
    "safer-tested": "Do not count the untested as negative. Learn from the tested, and judge for "
    "everybody.",
    "stricter-bar": "Review the rule: these people are tested at lower risk than others only.",
    "laxer-bar": "Review the rule: these people are tested at higher risk than others too.",
    "excluded": "Say why it is unrelated to the outcome, wherever it is used.",
    "excluded-weak": "Name another column (`testing_only`), or do without one.",
    "prevalence": "Do not read the record as how common the outcome is, and do not train on it.",
    "prevalence-unknown": "Give the limits, not a number; test some of those out of reach.",
    "hidden-unequal": "Do not train on the record as it is: a model would learn this difference.",
    "tests-needed": "Only tests drawn at random within the group would tell it better; until "
    "then, report the interval.",
    "depends-on-group": "Prefer methods that do not assume independence, or add what differs.",
    "test-errs": "State where the rates come from wherever these numbers are used.",
    "test-could-explain": "Find out how much the test finds in each group, and state it "
    "(`test_sensitivity`).",
    "late-results": "Find out how long results take. If they are not in yet, leave the last rows "
    "out (`until`); if testing stopped, ask why.",
    "testing-changed": "Ask what changed; judge models on the latest rows.",
    "outcome-changed": "Do not carry old numbers forward: judge and recalibrate on the latest "
    "rows, and watch the model in use.",
    "earlier-results": "Give every row what was known of earlier results (`dcem history` does it), "
    "and audit again.",
    "known-rate": "State where the prevalence comes from wherever these numbers are used.",
    "known-rate-disagrees": "Find out what else decides who is tested, and record it; until then, "
    "fit and compare with the prevalence stated (`prevalence`).",
    "known-rate-unused": "Check that it is of these people. Test some of those out of reach, state "
    "it for groups within reach, or leave it out.",
    "fragile": "Say so wherever this conclusion is used.",
    "bounds": "Leave people of whom nothing can be said to somebody who looks at them, or test "
    "some.",
    "bounds-unequal": "Do not let abstaining fall on one group: test more of its people.",
    **TO_DO_DECIDERS,
}


# Key -> what is said of several groups at once, and after their numbers.
TOGETHER = {
    "tested-less": (
        "{groups} are tested less often than {others} with the same features",
        "Recorded features do not explain the differences; something unrecorded might.",
    ),
    "tested-more": (
        "{groups} are tested more often than {others} with the same features",
        "Recorded features do not explain the differences; something unrecorded might.",
    ),
    "small-difference": (
        "Small differences in testing at equal features: {groups}",
        "They are beyond chance, but too small to be counted as disparities.",
    ),
    "depends-on-model": (
        "Whether {groups} are tested differently depends on the model",
        "A difference that one kind of model does not see is not a finding.",
    ),
    "yield-at-margin": (
        "At equal testing probability, tests are positive more or less often in {groups}",
        "This is nearer to a comparison at the margin than the plain rates.",
    ),
    "higher-bar": (
        "Tested less and positive more often: the signs point to a higher bar for {groups}",
        "Differences in positive tests at equal testing probability.",
    ),
    "stricter-bar": (
        "Tested less and positive less often, where testing prefers low risk: the signs point to a "
        "stricter bar in {groups}",
        "Differences in positive tests at equal testing probability.",
    ),
    "laxer-bar": (
        "Tested more and positive more often, where testing prefers low risk: the signs point to a "
        "laxer bar in {groups}",
        "Differences in positive tests at equal testing probability.",
    ),
    "lower-bar": (
        "Tested more and positive less often: the signs point to a lower bar for {groups}",
        "Differences in positive tests at equal testing probability.",
    ),
}


def word(finding: Finding) -> Finding:
    """The finding with its headline, its text, and what to do about it."""
    words = _WORDS[finding.key]
    headline, text = words if isinstance(words, tuple) else words(finding, finding.values)
    remedy = "" if finding.severity == "fine" else TO_DO.get(finding.key, "")
    return replace(finding, headline=headline, text=text, remedy=remedy)


def together(alike: Sequence[Finding]) -> Finding:
    """Findings of one key as one: of the worst severity, with the groups of all and a new text."""
    first = alike[0]
    if len(alike) == 1:
        return replace(first, headline=first.headline.removesuffix("."))
    headline, after = TOGETHER[first.key]
    named = [name for finding in alike for name in finding.groups]
    worst = min((finding.severity for finding in alike), key=SEVERITIES.index)
    numbers = "; ".join(
        f"{groups(finding.groups)} {_points(finding.values['difference'])}" for finding in alike
    )
    reference = first.values.get("reference")
    said = headline.format(
        groups=f"{len(named)} groups" if len(named) > 3 else groups(named),
        others=group(reference) if reference else "others",
    )
    text = f"Percentage points, with 95 % intervals: {numbers}. {after}"
    headline = said[0].upper() + said[1:]
    return replace(first, severity=worst, groups=tuple(named), headline=headline, text=text)


def _points(found: Estimate) -> str:
    return f"{points(found.value)} ({points(found.low)} to {points(found.high)})"


def keys() -> tuple[str, ...]:
    """All findings that an audit can have."""
    return tuple(_WORDS)


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
        f"{points_of(v['difference'])}{shown})"
    )


def _who(f: Finding, v: Mapping[str, Any]) -> str:
    """Group b; where groups are crossed and it is about one attribute: Group F of sex."""
    return f"roup {f.groups[0]}" + (f" of {v['attribute']}" if "attribute" in v else "")


def _others(v: Mapping[str, Any]) -> str:
    return f"group {v['reference']}" if v.get("reference") else "others"


def _tested(f: Finding, v: Mapping[str, Any]) -> Words:
    how = "less" if f.key == "tested-less" else "more"
    crude = f"Crude rate: {percent(v['crude'].value)}. " if v["crude"].estimable else ""
    return (
        f"G{_who(f, v)} is tested {how} often than {_others(v)} with the same features",
        f"{_rates(v)}. {crude}Recorded features do not explain the difference; something "
        "unrecorded might.",
    )


def _small(f: Finding, v: Mapping[str, Any]) -> Words:
    return (
        f"A small difference in testing of g{_who(f, v)} at equal features",
        f"{_rates(v)}. It is beyond chance, but under {percent(v['least'])} of people, and not "
        "counted as a disparity.",
    )


def _model(f: Finding, v: Mapping[str, Any]) -> Words:
    each = "; ".join(f"{name}: {points_of(e)}" for name, e in v["each"].items())
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


def _excluded(f: Finding, v: Mapping[str, Any]) -> Words:
    names = listed(list(v["columns"]))
    told = "; ".join(
        f"{name}: {percent(a)} of the importances for testing"
        + ("" if isnan(b) else f", {percent(b)} for what a test would show")
        for name, (a, b) in v["columns"].items()
    )
    if f.key == "excluded-weak":
        return (
            f"{names} hardly drives who is tested",
            f"{told}. A method that rests on it (`heckman`) learns little from it.",
        )
    return (
        f"{names} drives who is tested, and is said to be unrelated to the outcome",
        f"{told}. That it is unrelated to the outcome at equal features cannot be seen: "
        "among the tested the two go together whenever something unrecorded drives both.",
    )


def _missing(f: Finding, v: Mapping[str, Any]) -> Words:
    told = "; ".join(f"{name}: {points_of(e)}" for name, e in v["columns"].items())
    return (
        f"Whether {listed(list(v['columns']))} is filled in goes with testing",
        f"Missing among the tested minus among the untested: {told}. What is measured together "
        "with the test, or because of it, tells a model who was tested.",
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
    "excluded": _excluded,
    "excluded-weak": _excluded,
    "missing-by-testing": _missing,
    **OUTCOMES,
    **TIME,
    **DECIDERS,
}
