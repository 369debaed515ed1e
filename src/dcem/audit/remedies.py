"""What to do about a finding, what is said of several groups at once, and the forms of numbers.

The sentences of a finding stand where it is made: `findings` (who is tested, features),
`outcome_findings`, and with what else somebody knows: `known_rates`, `bounds`, `deciders`,
`over_time`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf, isclose
from typing import Any

from dcem.audit.sensitivity import Breakdown
from dcem.estimation.findings import SEVERITIES, Finding
from dcem.metrics.estimate import Estimate
from dcem.text import capitalised, group, groups, in_short, percent, points, ratio

NOTHING_TO_DO = (
    *("small-difference", "tested-alike", "yields-differ", "no-dependence-seen"),
    *("independence-untested", "known-rate-agrees", "not-tried", "not-clear", "holds-anyway"),
    *("stands", "bounds-unknown", "decider-bounds", "deciders-unknown", "deciders-alike"),
    "deciders-comparable",
)
# Key -> what to do; a role in backticks becomes an option of the command line.
TO_DO = {
    "leak": "Ask those who record such a column whether it was known before the decision. If it "
    "was, keep it: it is a ground of the decision. If it was not, leave it out (`exclude`).",
    "nobody-tested": "Find out where outcomes are recorded.",
    "everybody-tested": "Name the column that says who was tested (`tested`) or the label value "
    "that means untested (`untested_value`), or state that testing was not recorded "
    "(`positives_only`). Then audit again. If everybody really was tested, state that: "
    "tested = [] in dcem.toml or in Python.",
    "few-tests": "Collect more tests before you conclude anything.",
    "no-groups": "Name the column with the group (`group`).",
    "group-too-small": "Merge small groups, or learn more about them; do not report them as equal.",
    "features-determine-group": "If such a column is the group under another name, leave it out "
    "(`exclude`) and audit again. If it is a reason to test, report the plain rates: the table "
    "cannot tell the reason from the group.",
    "group-withheld": "Ask somebody who may see all counts how many of these people were tested.",
    "tested-less": "Ask those who decide what might explain it; if nothing does, the rule has to "
    "change. Until then, do not train on the record as it is.",
    "tested-more": "Ask those who decide what might explain it, and whether tests help these "
    "people or burden them.",
    "beside-others": "To compare every group with one of them, name that one (`reference_group`).",
    "depends-on-model": "Report that the answer depends on the model.",
    "unmeasured-cause": "List unrecorded causes of testing. Could any of them be that strong?",
    "overlap": "Claim nothing about people unlike the tested, or test some of them.",
    "overlap-groups": "Claim nothing about these groups that rests on weighting, or test more of "
    "them.",
    "calibration": "Add columns that are known to affect testing, and audit again.",
    "predictable": "Find out whether a rule decides, or whether a column records the decision.",
    "model-leaves": "Add columns that are known to affect testing, and audit again.",
    "one-driver": "Ask those who record it whether it was known before the decision. If it was, "
    "keep it: it is a ground of the decision, and without it unequal people would be compared. "
    "Leave it out (`exclude`) only if it was recorded afterwards.",
    "drives-testing": "Ask those who decide why it matters more for their decision than for what "
    "tests show.",
    "missing-by-testing": "Find out whether these columns are filled in because of the test.",
    "yield-at-margin": "Read it together with who is tested at equal features.",
    "higher-bar": "Review the rule: at equal risk these people are tested too little or others "
    "too much.",
    "lower-bar": "Review the rule: these people bear tests that find less.",
    "safer-tested": "Do not count the untested as negative. Learn from the tested, and evaluate "
    "models by estimates for everybody.",
    "stricter-bar": "Review the rule: these people are tested only at a lower risk than others.",
    "laxer-bar": "Review the rule: these people are tested even at a higher risk than others.",
    "excluded": "Wherever it is used, say why it is unrelated to the outcome.",
    "excluded-weak": "Name another column (`testing_only`), or do without one.",
    "prevalence": "Do not take the recorded rate for the prevalence, and do not train on the "
    "record.",
    "prevalence-unknown": "Report the limits, not a number; test some of those out of reach.",
    "hidden-unequal": "Do not train on the record as it is: a model would learn this difference.",
    "tests-needed": "Only tests drawn at random within the group would give a better estimate; "
    "until then, report the interval.",
    "depends-on-group": "Prefer methods that do not assume independence, or add features that "
    "differ between groups.",
    "test-errs": "State where the rates come from wherever these numbers are used.",
    "test-could-explain": "Find out what share of cases the test finds in each group, and state it "
    "(`test_sensitivity`).",
    "late-results": "Find out how long results take. If they are not in yet, leave the last rows "
    "out (`until`); if testing stopped, ask why.",
    "testing-changed": "Ask what changed; evaluate models on the latest rows.",
    "outcome-changed": "Do not rely on old numbers: evaluate and recalibrate models on the latest "
    "rows, and monitor the model in use.",
    "earlier-results": "Add to every row what was known of earlier results (`dcem history` does "
    "this), and audit again.",
    "known-rate": "State where the prevalence comes from wherever these numbers are used.",
    "known-rate-disagrees": "Find out what else decides who is tested, and record it; until then, "
    "fit and compare with the prevalence stated (`prevalence`).",
    "known-rate-unused": "Check that it refers to these people. Test some of those out of reach, "
    "state it for groups within reach, or leave it out.",
    "fragile": "Say so wherever this conclusion is used.",
    "bounds": "Have somebody review the cases in which one cannot say, or test some of them.",
    "bounds-unequal": "Do not let undecided cases fall mainly on one group: test more of its "
    "people.",
    "deciders-differ": "Ask deciders at both extremes what they base their decisions on. Who is "
    "tested should not depend on who decides.",
    "deciders-mix": "Add features that explain who goes to which decider, or compare deciders who "
    "take turns.",
    "deciders-find-unequally": "Look at what deciders who find more at equal rates do differently, "
    "or whether they see different people.",
    "deciders-order": "Do not call deciders strict or lenient overall; look at each part of the "
    "people separately.",
    "deciders-refuted": "Do not use the bounds by decider. Find out how people are assigned to "
    "deciders, and record it.",
    "deciders-not-monotone": "Do not interpret what deciders find at equal rates as their skill.",
    "features-refuted": "Do not use estimates for the untested that assume that features explain "
    "testing. Report the bounds by decider, or add what deciders see.",
    **dict.fromkeys(NOTHING_TO_DO, ""),
}

NOT_RISK = (
    "Equal testing probability is not equal risk: this can also arise if groups differ in a "
    "feature that affects only testing or only the outcome."
)
# Key -> what is said of several groups at once, and after their numbers.
OF_SEVERAL_GROUPS = {
    **{
        f"tested-{how}": (
            f"{{groups}} are tested {how} often than {{others}} with the same features",
            "Recorded features do not explain the differences; something unrecorded might.",
        )
        for how in ("less", "more")
    },
    "small-difference": (
        "Small differences in testing at equal features: {groups}",
        "They are more than chance, but too small to be counted as disparities.",
    ),
    "beside-others": (
        "{groups} seem to be tested differently from others, but not with {others} left out",
        "Compared with the remaining groups alone, they do not differ clearly.",
    ),
    "depends-on-model": (
        "Whether {groups} are tested differently depends on the model",
        "A difference that one kind of model does not see is not a finding.",
    ),
    "yield-at-margin": (
        "At equal testing probability, tests are positive more or less often in {groups}",
        f"This comparison is closer to the margin than the plain rates. {NOT_RISK}",
    ),
    **{
        f"{bar}-bar": (
            f"Tested {tested} and positive {positive} often{where}: the signs point to a {bar} bar "
            "for {groups}",
            f"Differences in positive tests at equal testing probability. {NOT_RISK}",
        )
        for bar, tested, positive, where in (
            ("higher", "less", "more", ""),
            ("lower", "more", "less", ""),
            ("stricter", "less", "less", ", where testing prefers low risk"),
            ("laxer", "more", "more", ", where testing prefers low risk"),
        )
    },
}


def audit_finding(
    key: str,
    severity: str,
    about: str,
    headline: str,
    text: str,
    groups: Sequence[str] = (),
    /,
    **values: Any,
) -> Finding:
    """A finding of an audit with what to do about it, and the values behind its sentences."""
    remedy = "" if severity == "fine" else TO_DO[key]
    return Finding(key, severity, about, tuple(groups), values, headline, text, remedy)


def merge_findings(alike: Sequence[Finding]) -> Finding:
    """Findings of one key and attribute as one: with the worst severity, the groups of all."""
    first = alike[0]
    if len(alike) == 1:
        return replace(first, headline=first.headline.removesuffix("."))
    headline, after = OF_SEVERAL_GROUPS[first.key]
    named = [name for finding in alike for name in finding.groups]
    worst = min((finding.severity for finding in alike), key=SEVERITIES.index)
    each = [
        f"{groups(one.groups)} {points(gap.value)} ({points(gap.low)} to {points(gap.high)})"
        for one in alike
        for gap in [one.values["difference"]]
    ]
    numbers = in_short(each, joint="; ")
    reference, attribute = (first.values.get(name) for name in ("reference", "attribute"))
    others = first.values.get("beside") or [reference] * bool(reference)
    said = headline.format(
        groups=(f"{len(named)} groups" if len(named) > 3 else groups(named))
        + (f" of {attribute}" if attribute else ""),
        others=groups(others) if others else "others",
    )
    text = f"Percentage points, with 95 % intervals: {numbers}. {after}"
    headline = capitalised(said, named)
    return replace(first, severity=worst, groups=tuple(named), headline=headline, text=text)


def points_of(e: Estimate) -> str:
    """A difference in percentage points, with its interval."""
    return f"{points(e.value)} percentage points, {points(e.low)} to {points(e.high)}"


def within(e: Estimate) -> str:
    """The interval of a share; a rate may be stated without one."""
    exact = isclose(e.low, e.high, abs_tol=1e-9)
    return "without an interval" if exact else f"{percent(e.low)} to {percent(e.high)}"


def share_of(e: Estimate) -> str:
    """A share with its interval, to a tenth of a per cent."""
    low, high = (percent(end, 1) for end in (e.low, e.high))
    return f"{percent(e.value, 1)} ({low.removesuffix(' %')} to {high})"


def each_named(values: Mapping[str, Any], say: Callable[[Any], str] = str) -> str:
    """`a: 1; b: 2`; of many, the first."""
    return in_short([f"{name}: {say(one)}" for name, one in values.items()], joint="; ")


def each_group(values: Mapping[str, Any], say: Callable[[Any], str] = str) -> str:
    """`North: 1; group 2: 3`: a sentence or clause that goes through groups."""
    return capitalised(each_named({group(name): one for name, one in values.items()}, say), values)


def stands(b: Breakdown) -> str:
    """How strong the unseen has to be to overturn a conclusion, in words to be put behind it."""
    if b.with_interval <= 1:
        return "is not clear to begin with"
    if b.with_interval == inf:
        return "holds whatever the untested are like"
    return f"holds up to an odds ratio of {ratio(b.with_interval)}"
