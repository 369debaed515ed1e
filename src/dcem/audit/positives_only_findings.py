"""What an audit of found positives alone holds, and what to make of it.

Numbers; findings, worded; methods; what may be shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isinf, nan
from typing import Any, ClassVar

import numpy as np

from dcem.audit.results import CLEAR_P, HIDDEN, GroupCounts, MethodAdvice
from dcem.audit.sensitivity import Breakdown
from dcem.estimation.findings import Finding, by_severity
from dcem.estimation.results import WITHHELD
from dcem.hooks import ShowsItself
from dcem.methods.registry import ENTRIES, names
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import hide_groups
from dcem.text import capitalised, group, groups, listed, p_value, ratio

DEFAULT = "purple"  # what `dcem fit` takes where groups are compared
FOUND_ASSUMPTION = (
    "The outcome depends on the features in the same way in all groups, and whether a positive is "
    "found depends on the group alone."
)
UNKNOWN = (
    "How common the outcome is: everybody found is a positive, and nothing is known of the others.",
    "Whether a score is calibrated, and what a threshold on it means: both need the prevalence.",
    "Whether somebody who was not found was tested and negative, or never tested.",
    "Why a group is found less often: it may be tested less at equal features, or tested equally "
    "by a test that misses more.",
)


@dataclass(frozen=True)
class FoundGroup:
    """One group against the reference group. All but the found share rests on assumptions."""

    group: str
    found: Estimate  # share of the group that was found positive
    crude: Estimate  # that over the reference group's
    rate: Estimate  # share of positives that is found, over the reference group's
    prevalence: Estimate  # how common the outcome is, over the reference group's
    without_form: Estimate  # the same by flexible models, over shared features
    rate_p_value: float  # of equal rates, corrected for the number of groups
    prevalence_p_value: float  # of equal prevalence, likewise
    at_least: float  # prevalence, if being found has nothing to do with the features
    at_most: float
    at_stated: Estimate  # prevalence, by the stated share of positives that is found


@dataclass(frozen=True)
class FoundCurve:
    """Share found against what the model of all groups predicts, in one group (out of fold)."""

    group: str
    predicted: np.ndarray  # [bins]
    found: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Departure:
    """A column that bears on being found in one group otherwise than in the others."""

    column: str
    group: str
    more: bool  # whether the group is found more than assumed where the column is high
    p_value: float  # corrected for all features and groups


@dataclass(frozen=True)
class FoundCheck:
    """Do features bear on being found alike in all groups?"""

    p_value: float  # that they do, all features and groups together
    departures: tuple[Departure, ...]  # the clearest
    loss: Estimate  # held-out log loss of the common model minus that of one per group, nats / 1000
    curves: tuple[FoundCurve, ...]


@dataclass(frozen=True)
class FoundSensitivity:
    """The ratio of prevalences if being found depends on features, alike in all groups."""

    factor: np.ndarray  # [points] by which the rate may be more, or less, than its usual value
    low: Mapping[str, np.ndarray]  # by group, sampling included
    high: Mapping[str, np.ndarray]
    breakdown: Mapping[str, Breakdown]  # the factor at which the ratio may be 1


@dataclass(frozen=True, repr=False)
class FoundAudit(ShowsItself):
    """Everything that an audit of found positives alone has to say."""

    _document: ClassVar[str] = "found_document"

    counts: tuple[GroupCounts, ...]
    total: GroupCounts  # `tested` and `positive` are the found
    found: Estimate  # share of everybody
    groups: tuple[FoundGroup, ...]
    reference: str  # the group that the others are compared with; empty: there is one group
    check: FoundCheck | None
    sensitivity: FoundSensitivity | None
    methods: tuple[MethodAdvice, ...]
    findings: tuple[Finding, ...]
    learners: Mapping[str, str]
    configuration: Mapping[str, str]
    suspicious: Mapping[str, str] = field(default_factory=dict)
    stated_rates: str = ""  # of being found, in words; empty: none
    at_odds: Mapping[str, float] = field(default_factory=dict)  # group -> p-value that its stated
    # rate, against the reference group's, is the estimated one; corrected for their number
    withheld: tuple[str, ...] = ()

    @property
    def grouped(self) -> bool:
        """Whether there is more than one group to compare."""
        return len(self.counts) > 1


def conclude_found(audit: FoundAudit) -> FoundAudit:
    """The audit with its findings."""
    return replace(audit, findings=by_severity(_of_found(audit)))


def _of_found(audit: FoundAudit) -> Iterator[Finding]:
    for column, why in audit.suspicious.items():
        yield Finding(
            "leak",
            "serious",
            "found",
            values={"column": column},
            headline=f"`{column}` may have been recorded after somebody was found.",
            text=f"{capitalised(why)}. A column that is a consequence of being found predicts it, "
            "and makes the comparison of groups meaningless.",
            remedy="Leave it out (`exclude`), unless you know that it is recorded earlier.",
        )
    if audit.stated_rates:
        yield from _about_stated(audit)
    else:
        yield _no_record(audit)
    if not audit.grouped:
        yield Finding(
            "no-groups",
            "note",
            "relative",
            headline="There is only one group, so nothing can be compared.",
            text="From found positives alone, only comparisons between groups are possible.",
            remedy="Name the column with the group (`group`).",
        )
        return
    yield from _about_groups(audit)
    yield from _about_check(audit)
    few = [
        one.group
        for one in audit.groups
        if not one.prevalence.estimable and one.group != audit.reference
    ]
    if few:
        yield Finding(
            "group-too-small",
            "note",
            "relative",
            tuple(few),
            headline=f"Too few found to compare {groups(few)}.",
            text="A comparison needs at least ten people who were found in each group.",
            remedy="Merge small groups, or learn more about them; do not report them as equal.",
        )


def _about_stated(audit: FoundAudit) -> Iterator[Finding]:
    known = [one for one in audit.groups if one.at_stated.estimable]
    shares = [f"{one.group} {one.at_stated:percent}" for one in known]
    if shares:
        yield Finding(
            "test-errs",
            "note",
            "found",
            values={one.group: one.at_stated for one in known},
            headline=f"At the stated rates of being found the outcome is this common: "
            f"{listed(shares, most=20)}.",
            text=f"Stated share of positives that is found: {audit.stated_rates}. Right if, within "
            "a group, whether a positive is found does not depend on the features.",
            remedy="State where the rates come from wherever these numbers are used.",
        )
    odd = [name for name, p in audit.at_odds.items() if p < CLEAR_P]
    if odd:
        yield Finding(
            "rates-at-odds",
            "serious",
            "found",
            tuple(odd),
            values={name: audit.at_odds[name] for name in odd},
            headline=f"The stated rates do not fit what the features imply for {groups(odd)}.",
            text="At equal features, people are found in a proportion that differs from the stated "
            "rates, if the outcome depends on the features in the same way in all groups. Either "
            "this assumption or the rates are wrong.",
            remedy="Check where the rates come from, and whether they refer to these people.",
        )


def _no_record(audit: FoundAudit) -> Finding:
    return Finding(
        "no-record",
        "note",
        "found",
        values={"found": audit.found},
        headline="Nobody recorded who was tested, so how common the outcome is cannot be known.",
        text=f"Found positives are {audit.found:percent} of the people. "
        "Only comparisons between groups can be estimated, under assumptions.",
        remedy="Find out who was tested (`tested`), or what share of positives is found "
        "(`test_sensitivity`), and audit again.",
    )


def _about_groups(audit: FoundAudit) -> Iterator[Finding]:
    to = group(audit.reference)
    for less in (True, False):
        clear = [
            one
            for one in audit.groups
            if one.rate.estimable and one.rate_p_value < CLEAR_P and (one.rate.value < 1) == less
        ]
        if clear:
            which = listed([f"{one.group} {one.rate:ratio}" for one in clear])
            word = "less" if less else "more"
            yield Finding(
                f"found-{word}",
                "serious",
                "relative",
                tuple(one.group for one in clear),
                values={one.group: one.rate for one in clear},
                headline=f"Positives of {groups([one.group for one in clear])} are found {word} "
                f"than those of {to}: {which} times as often.",
                text=f"Right if: {FOUND_ASSUMPTION}",
                remedy="Ask how people come to be found in each group. Until this is understood, "
                "do not compare found shares between groups, and do not train on the record as it "
                "is.",
            )
    differ = [
        one for one in audit.groups if one.prevalence.estimable and one.prevalence_p_value < CLEAR_P
    ]
    for one in differ:
        hidden = one.crude.estimable and (one.crude.value - 1) * (one.prevalence.value - 1) < 0
        values = {"prevalence": one.prevalence, "crude": one.crude}
        other = ""
        if one.crude.estimable:
            other = f" Found shares say {one.crude:ratio}" + (
                ", the opposite." if hidden else ", which mixes prevalence and being found."
            )
        stands = audit.sensitivity.breakdown[one.group] if audit.sensitivity else None
        if stands is not None and stands.with_interval > 1:
            factor = stands.with_interval
            other += (
                " It holds however much being found depends on the features, if it does so equally "
                "in all groups."
                if isinf(factor)
                else " It holds as long as being found varies with the features, equally in all "
                f"groups, by a factor of less than {ratio(factor)} either way."
            )
        yield Finding(
            "prevalence-differs",
            "serious" if hidden else "caution",
            "relative",
            (one.group,),
            values=values,
            headline=f"The outcome is {one.prevalence:ratio} times as common in "
            f"group {one.group} as in group {audit.reference}.",
            text=f"Right if: {FOUND_ASSUMPTION}{other}",
            remedy="Wherever it is used, say what it assumes.",
        )
    for one in audit.groups:
        other_way = one.without_form
        apart = (
            other_way.estimable
            and one.prevalence.estimable
            and (other_way.low > one.prevalence.high or other_way.high < one.prevalence.low)
        )
        if apart:
            yield Finding(
                "form-matters",
                "caution",
                "relative",
                (one.group,),
                values={"logistic": one.prevalence, "flexible": other_way},
                headline=f"How common the outcome is in group {one.group} depends on the model.",
                text=f"By a logistic model: {one.prevalence:ratio} times as common as in "
                f"group {audit.reference}; by "
                f"flexible models, over the features that both groups have: {other_way:ratio}.",
                remedy="Report both, and look for features whose effect is not linear.",
            )


def _about_check(audit: FoundAudit) -> Iterator[Finding]:
    check = audit.check
    if check is None:
        return
    fails, better = check.p_value < CLEAR_P, check.loss.low > 0
    if check.departures and (fails or better):
        first = check.departures[0]
        where = "more" if first.more else "less"
        named = (
            f"Where `{first.column}` is high, {group(first.group)} is found {where} than assumed "
            f"({p_value(first.p_value)}, corrected for all features and groups)."
        )
        held = " Models of each group by itself predict held-out people better." * better
        yield Finding(
            "groups-unlike",
            "serious",
            "check",
            (first.group,) if fails else (),
            values={"p_value": check.p_value, "loss": check.loss},
            headline="Features affect being found differently in one group than in another.",
            text=f"{named if fails else ''}{held} So either the outcome or being found depends on "
            "the features differently, and ratios between groups mix both.".strip(),
            remedy="Do not rely on the ratios. Add what differs between the groups, leave out the "
            "column if it affects being found but not the outcome, or compare within parts of the "
            "people.",
        )
    else:
        yield Finding(
            "groups-alike",
            "fine",
            "check",
            values={"p_value": check.p_value, "loss": check.loss},
            headline="Nothing contradicts that features affect being found in the same way in all "
            "groups.",
            text=f"Score tests of every feature in every group: {p_value(check.p_value)}, "
            "corrected. That does not prove it, and a departure that is the same in all groups "
            "cannot be seen.",
        )


def advise_found(audit: FoundAudit) -> tuple[MethodAdvice, ...]:
    """A verdict on every method that needs no truth, the defensible ones first."""
    order = ("defensible", "with care", "not here")
    found = []
    check = audit.check
    fails = check is not None and (check.p_value < CLEAR_P or check.loss.low > 0)
    for name in names(usable=True):
        entry = ENTRIES[name]
        if audit.stated_rates and entry.kind in ("tested", "mixed"):
            verdict = "defensible", "right if positives are found at the stated rates"
        elif entry.needs_record:
            verdict = "not here", "it needs a record of who was tested"
        elif name == DEFAULT and fails:
            verdict = "with care", "features affect being found differently in one of the groups"
        elif name == DEFAULT and not audit.grouped:
            verdict = "with care", "with one group it learns who is found, as `y-obs` does"
        elif name == DEFAULT:
            verdict = "defensible", "the default here; its assumption is not contradicted"
        elif entry.kind == "found":
            verdict = "with care", "the record cannot separate its two parts"
        elif entry.kind == "imputed":
            learns = "it learns who is found: right within a group, if features do not affect "
            verdict = "with care", f"{learns}being found"
        else:
            verdict = "with care", entry.caution
        found.append(MethodAdvice(name, *verdict))
    return tuple(sorted(found, key=lambda advice: order.index(advice.verdict)))


def without_small_found(audit: FoundAudit) -> FoundAudit:
    """The same audit; what would show a count under ten is NaN with the reason."""
    items = (*audit.counts, audit.total)
    shown = hide_groups(
        [{"rows": item.rows, "tested": item.tested} for item in audit.counts],
        [item.few & {"rows", "tested", "untested"} for item in items],
    )
    hidden = {
        item.group: {cell for cell in ("rows", "tested") if isinstance(one[cell], str)}
        for item, one in zip(items, shown, strict=True)
    }

    def counts(item: GroupCounts) -> GroupCounts:
        gone = hidden[item.group]
        cells = {"rows": "rows", "tested": "tested", "positive": "tested", "people": "rows"}
        changed: Any = {cell: HIDDEN for cell, of in cells.items() if of in gone}
        return replace(item, **changed)

    def of_group(one: FoundGroup) -> FoundGroup:
        if hidden.get(audit.reference):
            one = replace(one, crude=WITHHELD if one.crude.estimable else one.crude)
        if not hidden[one.group]:
            return one
        withheld: Any = {
            name: WITHHELD
            for name in ("crude", "rate", "without_form")
            if getattr(one, name).estimable
        }
        if one.at_stated.estimable:
            withheld["at_stated"] = WITHHELD
        return replace(one, found=WITHHELD, at_least=nan, at_most=nan, **withheld)

    masked = replace(
        audit,
        counts=tuple(counts(item) for item in audit.counts),
        total=counts(audit.total),
        found=WITHHELD if hidden[audit.total.group] else audit.found,
        groups=tuple(map(of_group, audit.groups)),
        check=audit.check
        and replace(
            audit.check,  # shares of all parts of a group add up to its own
            curves=tuple(one for one in audit.check.curves if not hidden[one.group]),
        ),
        withheld=tuple(item.group for item in audit.counts if hidden[item.group]),
    )
    return conclude_found(masked)
