"""Findings about the outcome: what tests show, how common it is, and what could overturn it."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isnan
from typing import Any

from dcem.audit.remedies import (
    NOT_RISK,
    audit_finding,
    each_group,
    points_of,
    share_of,
    stands,
    within,
)
from dcem.audit.results import CLEAR_P, FAR_RATIO, Audit
from dcem.audit.sensitivity import Breakdown
from dcem.estimation.bounds import starting_odds
from dcem.estimation.findings import Finding
from dcem.table.imperfect import TEST_ASSUMPTION
from dcem.text import capitalised, group, in_short, number, p_value, percent, ratio

FRAGILE = 1.5  # an odds ratio that unrecorded causes reach easily
NEAR = 0.7  # a ratio of two groups' sensitivities that nobody need be surprised at
EXPLAINED = "assumes that features and group explain who was tested"


def about_preference(audit: Audit) -> Iterator[Finding]:
    """Are those at lower risk the ones tested?"""
    found = audit.preference
    if found is None or not audit.prefers_low_risk:
        return
    record, risk, taught = found.record_auc, found.risk_auc, ""
    if record.estimable and risk.estimable:
        wrong = " rank people the wrong way round, and" if record.value < 0.5 else ""
        taught = (
            f" A score trained on such a record would{wrong} have an AUC of about "
            f"{number(record.value, 2)}; the model of what a test would show has "
            f"{number(risk.value, 2)}."
        )
    yield audit_finding(
        "safer-tested",
        "serious" if record.high < risk.low else "caution",  # NaN is on neither side
        "prevalence",
        "Testing prefers people at lower risk",
        f"{percent(found.tested.value)} of the tested are positive; among the untested it would be "
        f"{percent(found.untested.value)} ({within(found.untested)}; doubly robust, within reach "
        "of the tests). Counting the untested as negative records the people at the highest risk "
        f"as safe.{taught}",
        **vars(found),
    )


def about_yields(audit: Audit) -> Iterator[Finding]:
    """Are tests of some groups positive more often, plainly and at equal probability?"""
    usable = [item for item in audit.yields if item.difference.estimable]
    if not audit.grouped or not usable:
        return
    if any(item.p_value < CLEAR_P for item in usable):
        rates = {item.group: item.rate for item in audit.yields if item.rate.estimable}
        shown = in_short([f"{group(name)}: {percent(e.value)}" for name, e in rates.items()])
        yield audit_finding(
            "yields-differ",
            "note",
            "yield",
            "Tests are positive more often in some groups",
            f"{capitalised(shown, rates)}. A difference in these rates alone is not yet bias: they "
            "average over everybody tested, not over those at the margin, and groups whose risk is "
            "distributed differently have different rates under the same rule (infra-marginality).",
            tuple(rates),
            rates=rates,
        )
    disparity = {r.group: r.difference.value for r in audit.clear(audit.testing)}
    for item in usable:
        gap = item.at_equal_probability
        if not item.p_value_equal < CLEAR_P or abs(gap.value) < audit.least_difference:
            continue
        tested = disparity.get(item.group, 0.0)
        # Where testing prefers low risk, who is tested less and found less often met a higher bar.
        low = audit.prefers_low_risk
        first = gap.value > 0 if not low or tested == 0 else tested < 0
        if len(usable) == 2 and not audit.reference and not first:
            continue  # told of the other group
        if item.beside:
            continue  # told of those that stand out
        against = tested * gap.value * (-1 if low else 1) < 0
        # Fewer tests and a higher yield, plain and at equal probability: the robust outcome test.
        robust = against and item.p_value < CLEAR_P and item.difference.value * gap.value > 0
        bars = ("stricter", "laxer") if low else ("higher", "lower")
        bar, often = (bars[1], "more") if tested > 0 else (bars[0], "fewer")
        plain = "The plain rates differ in the same way. " * robust
        if not against:
            text = (
                "This comparison is closer to the margin than the plain rates, as far as the "
                "features describe what the decision was based on."
            )
        elif low:
            text = (
                f"{plain}Testing prefers low risk here: together with {often} tests at equal "
                f"features, this points to a {bar} bar for this group, as far as the features "
                "describe what the decision was based on."
            )
        else:
            text = (
                f"{plain}Together with {often} tests at equal features, the signs point to a {bar} "
                "bar for this group."
            )
        more = "more" if gap.value > 0 else "less"
        yield audit_finding(
            f"{bar}-bar" if against else "yield-at-margin",
            "serious" if robust else "caution",
            "yield",
            f"At equal testing probability, tests of group {item.group} are positive {more} often",
            f"Difference {points_of(gap)}. {text} {NOT_RISK}",
            (item.group,),
            difference=gap,
            plain=item.difference,
            robust=robust,
        )


def about_prevalence(audit: Audit) -> Iterator[Finding]:
    """How common the outcome is, and where the record hides more of it."""
    if not audit.prevalence or audit.extent != "some":
        return
    every, known = audit.prevalence[0], audit.from_known
    names = ("recorded", "tested_only", "doubly_robust", "within", "bounds", "limits")
    values: dict[str, Any] = {name: getattr(every, name) for name in names}
    found, inside = every.doubly_robust, every.within
    low, high = map(percent, every.bounds)
    anyway = (
        f"Without any {'other ' * bool(audit.known)}assumption it lies between {low} and {high}."
    )
    if found.estimable:
        key, severity = "prevalence", "note"
        what, how = "estimate for everybody", "Doubly robust"
        rests = f"The estimate {'rests on the known prevalence' if known else EXPLAINED}. {anyway}"
        if audit.stated_for_everybody:
            what, how, rests = "known prevalence", "As stated", ""
        headline = (
            f"The record shows {percent(every.recorded.value)}, the {what} is "
            f"{percent(found.value)}"
        )
        text = (
            f"{how}, {within(found)}; among the tested it is {percent(every.tested_only.value)}. "
            f"{rests}".strip()
        )
    else:
        key, severity = "prevalence-unknown", "caution"
        headline = "How common the outcome is cannot be estimated for everybody"
        reach = ""
        if inside.estimable:
            near, far = map(percent, every.limits)
            reach = (
                f"Among those within reach it is {percent(inside.value)} ({within(inside)}), and "
                f"among everybody between {near} and {far}, {audit.limits_hold}. "
            )
        text = f"{capitalised(found.reason)}. {reach}{anyway}"
    yield audit_finding(key, severity, "prevalence", headline, text, **values, known=known)
    hidden = audit.hidden_gap
    if hidden is None or not hidden.p_value < CLEAR_P:
        return
    more, less = hidden.pair
    shares = {p.group: p.hidden for p in audit.prevalence if p.group in hidden.pair}
    if shares[more].value - shares[less].value >= audit.least_difference:
        rates = audit.stated_rates
        yield audit_finding(
            "hidden-unequal",
            "caution",
            "prevalence",
            f"{'The record' if rates else 'Counting the untested as negative'} hides more in group "
            f"{more} than in group {less}",
            f"By the doubly robust estimate, it hides {share_of(shares[more])} of the outcomes in "
            f"group {more} and {share_of(shares[less])} in group {less}.",
            hidden.pair,
            shares=shares,
            rates=rates,
        )


def about_errors(audit: Audit) -> Iterator[Finding]:
    """What it means that a test may err."""
    found = audit.test_errors
    if found is None:
        return
    every, known = audit.prevalence[0].doubly_robust, audit.from_known
    if found.stated:
        cut, taken = every.estimable and every.value in (0, 1), ""
        if every.estimable and not known:
            taken = (
                f"Without the correction, the test gives {percent(found.as_shown.value)} of people "
                f"with the outcome; at these rates it is {percent(every.value)} ({within(every)}). "
            )
            if cut:
                taken += (
                    "The results are about what such a test would show if nobody, or everybody, "
                    "had the outcome: the estimate stops at that limit. "
                )
        yield audit_finding(
            "test-errs",
            "caution" if cut else "note",
            "prevalence",
            f"Numbers are corrected for an imperfect test: {found.stated}",
            f"{taken}{TEST_ASSUMPTION} The table can confirm neither the rates nor this "
            "assumption.",
            rates=found.stated,
            as_shown=found.as_shown,
            corrected=every,
            known=known,
        )
    if found.pair is None or not found.p_value < CLEAR_P:
        return
    more, less = found.pair
    high, low = (found.prevalence[name].value for name in found.pair)
    if high - low >= audit.least_difference:
        yield audit_finding(
            "test-could-explain",
            "caution" if found.equal_at > NEAR else "note",
            "prevalence",
            f"A test that finds less in group {less} could be why the outcome looks rarer there",
            f"{percent(low)} in group {less}, {percent(high)} in group {more}. They would be equal "
            f"if, without false alarms, the share of cases that the test found in group {less} "
            f"were {number(found.equal_at, 2)} times that in group {more}. Nothing in the table "
            "shows how much a test misses.",
            found.pair,
            prevalence=found.prevalence,
            equal_at=found.equal_at,
        )


def about_independence(audit: Audit) -> Iterator[Finding]:
    """Does the outcome depend on the group at equal features?"""
    found = audit.independence
    if found is None:
        return
    if isnan(found.p_value):
        yield audit_finding(
            "independence-untested",
            "caution",
            "outcome",
            "Whether the outcome depends on the group could not be checked",
            f"{capitalised(found.reason)}. Methods that assume that it does not (DCEM) rest on an "
            "unchecked assumption here.",
            reason=found.reason,
        )
        return
    usable = {name: e for name, e in found.odds_ratio.items() if e.estimable}
    if found.p_value >= CLEAR_P:
        limits = [found.detectable[name] for name in usable]
        least, most = ratio(min(limits)), ratio(max(limits))
        unseen = f"depending on the group, odds ratios of {least} to {most}"
        if least == most:
            unseen = f"an odds ratio of {least}"
        yield audit_finding(
            "no-dependence-seen",
            "note",
            "outcome",
            "No sign that the outcome depends on the group at equal features",
            f"Among the tested, {p_value(found.p_value)}. That is not proof: {unseen} could have "
            "gone unnoticed, and only tested people could be examined.",
            p_value=found.p_value,
            least=min(limits),
            most=max(limits),
        )
        return
    far = [name for name, e in usable.items() if e.low > FAR_RATIO or e.high < 1 / FAR_RATIO]
    named = far or [name for name, e in usable.items() if e.excludes(1)]
    agree = all(p < CLEAR_P for p in found.each.values())
    ratios = {name: usable[name] for name in named}
    each = each_group(
        ratios, lambda e: f"odds ratio {ratio(e.value)} ({ratio(e.low)} to {ratio(e.high)})"
    )
    yield audit_finding(
        "depends-on-group",
        "serious" if far and agree else "caution" if agree else "note",
        "outcome",
        "The outcome depends on the group at equal features",
        f"Among the tested, {p_value(found.p_value)}. {each or 'No single group stands out'}. "
        "Either methods that assume independence (DCEM and its variants) are off by about that "
        "much, or the features lack something that differs between groups."
        + " Not every kind of model sees it."
        * (not agree),
        named,
        p_value=found.p_value,
        odds_ratios=ratios,
        agree=agree,
    )


def about_sensitivity(audit: Audit) -> Iterator[Finding]:
    """How much the untested would have to differ to overturn it."""
    for found, about in (
        (audit.prevalence_sensitivity, "prevalence"),
        (audit.performance_sensitivity, "performance"),
    ):
        if found is not None:
            yield _overturned(found.breakdown, about, audit.from_known)


def _overturned(b: Breakdown, about: str, known: bool) -> Finding:
    conclusion, odds = f"“{capitalised(b.conclusion)}”", starting_odds(known)
    headline, weak = f"{conclusion} {stands(b)}", b.with_interval < FRAGILE
    if isnan(b.value):
        key, severity = "not-tried", "note"
        headline, text = f"{conclusion} could not be put to the test", f"{capitalised(b.reason)}."
    elif b.with_interval <= 1:
        key, severity = "not-clear", "note"
        text = (
            f"Even if the odds of untested people are {odds}, the interval does not exclude the "
            "opposite."
        )
    elif b.with_interval == inf:
        key, severity = "holds-anyway", "fine"
        text = "It holds even at the limits that assume nothing."
    else:
        key, severity = ("fragile", "caution") if weak else ("stands", "note")
        turns = f"at {ratio(b.value)} the estimate itself reverses."
        if b.value == inf:
            turns = "the estimate itself reverses at no factor."
        text = (
            f"If the odds of untested people differ from {odds} by that factor, the interval no "
            f"longer excludes the opposite; {turns}" + " That is a small factor." * weak
        )
    values: dict[str, Any] = {"conclusion": b.conclusion, "value": b.value}
    values |= {"interval": b.with_interval, "reason": b.reason, "known": known}
    return audit_finding(key, severity, about, headline, text, **values)


def about_tests_needed(audit: Audit) -> Iterator[Finding]:
    """Whether more tests would tell how common the outcome is."""
    short = {n.group: n for n in audit.needed if n.more > 0}
    if short and audit.extent == "some":
        precision = next(iter(short.values())).precision
        yield audit_finding(
            "tests-needed",
            "note",
            "prevalence",
            "More tests would tell how common the outcome is, to within "
            f"{100 * precision:g} percentage points",
            "At random among the people of the group: "
            f"{'; '.join(f'{n.more:,} more in group {name}' for name, n in short.items())}.",
            tuple(short),
            precision=precision,
            tests=short,
        )
