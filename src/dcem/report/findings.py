"""Findings as a report lists them: one for all groups that share it, each with what to do.

A table of eight groups has one finding "three groups are tested less", not three. What to do
stands here by the key of a finding; roles in backticks are spelt as options by the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dcem.estimation.findings import SEVERITIES
from dcem.estimation.findings import Finding as Found
from dcem.metrics.estimate import Estimate
from dcem.report.document import Finding, Findings
from dcem.text import listed, points

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
    "lower-bar": (
        "Tested more and positive less often: the signs point to a lower bar for {groups}",
        "Differences in positive tests at equal testing probability.",
    ),
}

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
    "tested-more": "Ask those who decide what might explain it, and whether more tests help these "
    "people or burden them.",
    "depends-on-model": "Report that the answer depends on the model.",
    "unmeasured-cause": "List what drives testing and is not recorded; could it be that strong?",
    "overlap": "Claim nothing about people unlike the tested, or test some of them.",
    "overlap-groups": "Claim nothing for these groups that rests on weights, or test more of them.",
    "calibration": "Add what is known to drive testing, and audit again.",
    "predictable": "Find out whether a rule decides, or whether a column records the decision.",
    "model-leaves": "Add what is known to drive testing, and audit again.",
    "one-driver": "Audit again without it (`exclude`), and compare.",
    "missing-by-testing": "Find out whether these columns are filled in because of the test.",
    "yield-at-margin": "Read it beside who is tested at equal features.",
    "higher-bar": "Review the rule: at equal risk, more of these people should have been tested.",
    "lower-bar": "Review the rule: these people bear tests that find less.",
    "prevalence": "Do not read the record as how common the outcome is, and do not train on it.",
    "prevalence-unknown": "Give the limits, not a number; test some of those out of reach.",
    "hidden-unequal": "Do not train on the record as it is: a model would learn this difference.",
    "tests-needed": "Test that many more, drawn at random within the group.",
    "depends-on-group": "Prefer methods that do not assume independence, or add what differs.",
    "fragile": "Say so wherever this conclusion is used.",
}

# The same for a comparison, whose findings have keys of their own.
TO_DO_WITH_METHODS = {
    "leak": TO_DO["leak"],
    "no-overlap": TO_DO["overlap"],
    "not-estimable": "Look at who was tested before you choose a method.",
    "little-overlap": "Read the intervals, not the middle; test people who are seldom tested.",
    "row-budget": "Compare again with more rows (`max_rows`).",
    "unpredictable": "Look for features that say more about the outcome.",
    "small-groups": TO_DO["group-too-small"],
    "estimates-disagree": "Trust neither number alone; look at who could have been tested.",
    "groups-differ": "Say for whom it is worse; look at every group before you set a threshold.",
    "curves-differ": "Look at every group before you set a threshold.",
    "calibration": "Use it to rank people; recalibrate it before its risks are read as risks.",
    "flattered": "Judge it by the numbers for everybody.",
    "planted-harm": "Use it only where you know that its assumption holds.",
    "gain-unknown": "Do not choose it for its gain.",
}


def listed_findings(found: Iterable[Found], to_do: Mapping[str, str] = TO_DO) -> Findings:
    """Findings of one key as one, in the order of the worst of them."""
    by_key: dict[str, list[Found]] = {}
    for finding in found:
        key = finding.key if finding.key in TOGETHER else str(len(by_key))
        by_key.setdefault(key, []).append(finding)
    return Findings(tuple(_one(alike, to_do) for alike in by_key.values()))


def _one(alike: list[Found], to_do: Mapping[str, str]) -> Finding:
    first = alike[0]
    what_to_do = to_do.get(first.key, "") if first.severity != "fine" else ""
    if len(alike) == 1:
        headline = first.headline.removesuffix(".")
        return Finding(first.key, first.severity, headline, first.text, what_to_do)
    headline, after = TOGETHER[first.key]
    groups = [name for finding in alike for name in finding.groups]
    worst = min((finding.severity for finding in alike), key=SEVERITIES.index)
    numbers = "; ".join(
        f"{listed(finding.groups)} {_points(finding.values['difference'])}" for finding in alike
    )
    reference = first.values.get("reference")
    said = headline.format(
        groups=f"{len(groups)} groups" if len(groups) > 3 else listed(groups),
        others=f"group {reference}" if reference else "others",
    )
    text = f"Percentage points, with 95 % intervals: {numbers}. {after}"
    return Finding(first.key, worst, said[0].upper() + said[1:], text, what_to_do)


def _points(found: Estimate) -> str:
    return f"{points(found.value)} ({points(found.low)} to {points(found.high)})"
