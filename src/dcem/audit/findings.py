"""What the numbers say, no stronger than their intervals: findings as values.

How they are worded is in `dcem.audit.wording`. Two rules hold throughout. Statements that pick one
of several groups, or the best and the worst of them, are corrected for the number of comparisons
(`dcem.estimation.influence.together`): a table without any disparity should not find one because it
has many groups. And an effect has to be large enough to matter: differences under the audit's
`least_difference`, or a tenth of the testing rate where that is smaller, are noted and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, isnan, nan
from typing import Any

from dcem.audit.bounds import about_bounds
from dcem.audit.decider_findings import about_deciders
from dcem.audit.drivers import GROUP, TIME
from dcem.audit.known import of_known_rates
from dcem.audit.results import Audit, Breakdown, TestingRate
from dcem.audit.wording import word
from dcem.estimation.effects import MUCH, TIMES
from dcem.estimation.findings import Finding, in_order
from dcem.estimation.results import EVERYBODY
from dcem.metrics.estimate import Estimate
from dcem.text import percent

CLEAR = 0.05  # p-values, corrected for the number of comparisons
FOUR_FIFTHS = 0.8  # a ratio of rates that counts as serious if the whole interval lies beyond
COMPATIBLE = 0.05  # a difference that may still be there, and "fine" be said
MOST = 0.5  # share of the importance that one column alone should not have
FRAGILE = 1.5  # an odds ratio that unrecorded causes reach easily
FAR = 1.25  # an odds ratio of the outcome that is serious if the whole interval lies beyond
LEFT = 0.01  # share of the residual variance that a model should not leave to be found
PREDICTABLE = 0.95  # an AUC of the testing model beyond which testing looks like a rule
NEAR = 0.7  # a ratio of two groups' sensitivities that nobody need be surprised at
GAP_IN_MISSING = 0.1  # difference in the share missing that a reader should know of


def find(audit: Audit) -> tuple[Finding, ...]:
    """All findings, the serious ones first."""
    return in_order(word(finding) for part in _PARTS for finding in part(audit))


def clear_disparities(audit: Audit) -> list[TestingRate]:
    """Groups tested clearly more or less often than others with the same features.

    Clear: beyond chance, large enough to matter, and so under every kind of model that the
    mixture of models rests on.
    """
    clear = _clearly(audit, audit.testing)
    return [rate for rate in audit.testing if rate.group in clear]


def matters(difference: Estimate, audit: Audit) -> bool:
    """Whether a difference in rates is large enough to be more than a note."""
    return abs(difference.value) >= audit.least_difference


def depends_on_model(rate: TestingRate) -> bool:
    """Whether some kind of model finds no difference, or the opposite one."""
    return any(
        not one.excludes(0) or (one.value > 0) != (rate.difference.value > 0)
        for one in rate.each.values()
    )


def _leak(audit: Audit) -> Iterator[Finding]:
    if audit.suspicious:
        values = {"columns": dict(audit.suspicious)}
        yield Finding("leak", "serious", "features", values=values)


def _extent(audit: Audit) -> Iterator[Finding]:
    if audit.extent == "nobody":
        yield Finding("nobody-tested", "serious", "testing")
    elif audit.extent == "everybody":
        yield Finding("everybody-tested", "caution", "testing")
    elif 0 <= audit.total.tested < 100:
        yield Finding("few-tests", "caution", "testing")
    if not audit.grouped:
        yield Finding("no-groups", "note", "testing")
    lost = {
        rate.group: rate.difference.reason
        for rate in audit.testing
        if not rate.difference.estimable and rate.group != audit.reference
    }
    if audit.grouped and lost and audit.extent == "some":
        yield Finding(
            "group-too-small",
            "caution",
            "groups",
            groups=tuple(lost),
            values={"reasons": lost},
        )


def _testing(audit: Audit) -> Iterator[Finding]:
    usable = [rate for rate in audit.testing if rate.difference.estimable]
    clear = clear_disparities(audit)
    yield from _disparities(audit, usable)
    for attribute, rates in audit.by_attribute.items():
        known = [rate for rate in rates if rate.difference.estimable]
        yield from _disparities(audit, known, attribute)
    if usable and not clear:
        widest = max(max(abs(r.difference.low), abs(r.difference.high)) for r in usable)
        severity = "fine" if widest <= COMPATIBLE else "note"
        yield Finding("tested-alike", severity, "testing", values={"widest": widest})
    found = audit.testing_sensitivity
    if found is not None and any(rate.group == found.group for rate in clear):
        at = found.breakdown
        strongest = max((min(b.with_group, b.with_testing) for b in found.benchmarks), default=0.0)
        reached = at.with_interval < strongest
        yield Finding(
            "unmeasured-cause",
            "caution" if reached or at.with_interval < 0.01 else "note",
            "testing",
            (found.group,),
            {"value": at.value, "interval": at.with_interval, "strongest": strongest},
        )


def _disparities(
    audit: Audit, usable: Sequence[TestingRate], attribute: str = ""
) -> Iterator[Finding]:
    """Of each group that differs from the others, among groups that can be compared."""
    reference = "" if attribute else audit.reference
    for rate in usable:
        mirrored = len(usable) == 2 and not reference and rate.difference.value > 0
        if rate.p_value >= CLEAR or mirrored:
            continue  # of two groups one mirrors the other: told once, of the one tested less
        values = {**_numbers(rate), "each": rate.each, "least": audit.least_difference}
        values["reference"] = reference
        if attribute:
            values["attribute"] = attribute
        if not matters(rate.difference, audit):
            yield Finding("small-difference", "note", "testing", (rate.group,), values)
        elif depends_on_model(rate):
            yield Finding("depends-on-model", "note", "testing", (rate.group,), values)
        else:
            ratio = rate.ratio
            # Without a ratio one side is hardly ever tested at all.
            beyond = ratio.high < FOUR_FIFTHS or ratio.low > 1 / FOUR_FIFTHS
            large = beyond or not ratio.estimable
            yield Finding(
                "tested-less" if rate.difference.value < 0 else "tested-more",
                "serious" if large else "caution",
                "testing",
                (rate.group,),
                values,
                "collect" if rate.difference.value < 0 else "",
            )


def _numbers(rate: TestingRate) -> dict[str, Any]:
    names = ("crude", "equal", "others", "difference", "ratio", "p_value")
    return {name: getattr(rate, name) for name in names}


def _overlap(audit: Audit) -> Iterator[Finding]:
    if not audit.overlap:
        return
    every = audit.overlap[EVERYBODY]
    severity = "serious" if not every.complete else "caution" if every.thin else "fine"
    values = {
        "reach": every.reach,
        "effective": every.effective_share,
        "heaviest": every.heaviest,
        "reason": every.reason,
    }
    yield Finding("overlap", severity, "overlap", values=values)
    bad = {
        name: o.reason or f"{percent(1 - o.reach)} out of reach"
        for name, o in audit.overlap.items()
        if not o.complete and name != EVERYBODY
    }
    if bad and not every.reason:
        yield Finding(
            "overlap-groups", "caution", "overlap", tuple(bad), {"reasons": bad}, "collect"
        )


def _models(audit: Audit) -> Iterator[Finding]:
    found = audit.calibration
    if found is not None:
        slope = found.slope
        off = slope.estimable and (slope.high < 0.8 or slope.low > 1.25)
        if off or found.error > 0.05:
            values = {"slope": slope, "error": found.error}
            yield Finding("calibration", "caution", "overlap", values=values)
        if found.auc > PREDICTABLE:
            yield Finding("predictable", "caution", "overlap", values={"auc": found.auc})
    left = {name: e for name, e in audit.left_over.items() if e.estimable and e.low > LEFT}
    if left:
        yield Finding("model-leaves", "caution", "overlap", values={"shares": left})


def _features(audit: Audit) -> Iterator[Finding]:
    columns = [driver for driver in audit.drivers if driver.column not in (GROUP, TIME)]
    first = columns[0] if len(columns) >= 3 else None  # of two, one always has more than half
    if first is not None and first.column in audit.suspicious:
        first = None  # told already
    if first is not None and first.share > MOST and first.loss.low > 0:
        values = {"column": first.column, "share": first.share}
        yield Finding("one-driver", "caution", "features", values=values)
    outcome = {driver.column: driver.share for driver in audit.outcome_drivers}
    more = {
        driver.column: (driver.share, outcome[driver.column])
        for driver in columns
        if driver.loss.low > 0 and driver.share >= max(MUCH, TIMES * outcome.get(driver.column, 1))
    }
    more = {name: shares for name, shares in more.items() if name not in audit.testing_only}
    if more:
        yield Finding("drives-testing", "note", "features", values={"columns": more})
    yield from _excluded(audit)
    traces = {
        name: gap
        for name, gap in audit.missing.items()
        if gap.low > GAP_IN_MISSING or gap.high < -GAP_IN_MISSING
    }
    if traces:
        yield Finding(
            "missing-by-testing",
            "caution",
            "features",
            values={"columns": traces},
        )


def _excluded(audit: Audit) -> Iterator[Finding]:
    """Whether columns that are said to drive testing alone do drive it."""
    told = {driver.column: driver for driver in audit.drivers}
    known = [told[name] for name in audit.testing_only if name in told]
    if not known:
        return
    outcome = {driver.column: driver.share for driver in audit.outcome_drivers}
    shares = {one.column: (one.share, outcome.get(one.column, nan)) for one in known}
    strong = any(one.loss.low > 0 for one in known)
    key, severity = ("excluded", "note") if strong else ("excluded-weak", "caution")
    yield Finding(key, severity, "features", values={"columns": shares})


def _preference(audit: Audit) -> Iterator[Finding]:
    found = audit.preference
    if found is None or not audit.prefers_low_risk:
        return
    # NaN is on neither side
    serious = found.record_auc.high < found.risk_auc.low
    yield Finding(
        "safer-tested", "serious" if serious else "caution", "prevalence", values=vars(found)
    )


def _outcome_test(audit: Audit) -> Iterator[Finding]:
    usable = [item for item in audit.yields if item.difference.estimable]
    if not audit.grouped or not usable:
        return
    if any(item.p_value < CLEAR for item in usable):
        rates = {item.group: item.rate for item in audit.yields if item.rate.estimable}
        yield Finding("yields-differ", "note", "yield", tuple(rates), {"rates": rates})
    disparity = {r.group: r.difference.value for r in clear_disparities(audit)}
    for item in usable:
        gap = item.at_equal_probability
        if not item.p_value_equal < CLEAR or abs(gap.value) < audit.least_difference:
            continue
        tested = disparity.get(item.group, 0.0)
        # Where testing prefers low risk, who is tested less and found less often met a higher bar.
        low = audit.prefers_low_risk
        first = gap.value > 0 if not low or tested == 0 else tested < 0
        if len(usable) == 2 and not audit.reference and not first:
            continue  # told of the other group
        against = tested * gap.value * (-1 if low else 1) < 0
        bars = ("stricter-bar", "laxer-bar") if low else ("higher-bar", "lower-bar")
        key = bars[int(tested > 0)] if against else "yield-at-margin"
        # Fewer tests and a higher yield, plain and at equal probability: the robust outcome test.
        robust = against and item.p_value < CLEAR and item.difference.value * gap.value > 0
        values = {"difference": gap, "plain": item.difference, "robust": robust}
        severity = "serious" if robust else "caution"
        yield Finding(key, severity, "yield", (item.group,), values)


def _prevalence(audit: Audit) -> Iterator[Finding]:
    if not audit.prevalence or audit.extent != "some":
        return
    every = audit.prevalence[0]
    names = ("recorded", "tested_only", "doubly_robust", "within", "bounds", "limits")
    values = {name: getattr(every, name) for name in names}
    values["known"] = _known(audit)
    if every.doubly_robust.estimable:
        yield Finding("prevalence", "note", "prevalence", values=values)
    else:
        yield Finding("prevalence-unknown", "caution", "prevalence", values=values)
    hidden = audit.hidden_gap
    if hidden is not None and hidden.p_value < CLEAR:
        shares = {p.group: p.hidden for p in audit.prevalence if p.group in hidden.pair}
        more, less = hidden.pair
        if shares[more].value - shares[less].value >= audit.least_difference:
            yield Finding(
                "hidden-unequal",
                "caution",
                "prevalence",
                hidden.pair,
                {"shares": shares, "rates": audit.stated_rates},
            )


def _test(audit: Audit) -> Iterator[Finding]:
    found = audit.test_errors
    if found is None:
        return
    every = audit.prevalence[0].doubly_robust
    if found.stated:
        values = {"rates": found.stated, "as_shown": found.as_shown, "corrected": every}
        values["known"] = _known(audit)
        cut = every.estimable and every.value in (0, 1)
        yield Finding("test-errs", "caution" if cut else "note", "prevalence", values=values)
    if found.pair is not None and found.p_value < CLEAR:
        more, less = (found.prevalence[name] for name in found.pair)
        if more.value - less.value >= audit.least_difference:
            values = {"prevalence": found.prevalence, "equal_at": found.equal_at}
            near = found.equal_at > NEAR
            yield Finding(
                "test-could-explain",
                "caution" if near else "note",
                "prevalence",
                found.pair,
                values,
            )


def _time(audit: Audit) -> Iterator[Finding]:
    found = audit.over_time
    if found is None:
        return
    if found.late is not None:
        yield Finding("late-results", "caution", "time", values=vars(found.late))
    if changed := _clearly(audit, found.testing):
        yield Finding("testing-changed", "note", "time", values={"periods": changed})
    outcome = found.outcome
    if outcome is not None and outcome.p_value < CLEAR:
        ratios = {name: e for name, e in outcome.odds_ratio.items() if e.excludes(1)}
        far = any(e.low > FAR or e.high < 1 / FAR for e in ratios.values())
        values = {"odds_ratios": ratios, "p_value": outcome.p_value}
        yield Finding("outcome-changed", "caution" if far else "note", "time", values=values)
    if driven := _clearly(audit, found.earlier):
        yield Finding("earlier-results", "caution", "time", values={"history": driven})


def _clearly(audit: Audit, rates: Sequence[TestingRate]) -> dict[str, Estimate]:
    """Differences at equal features that are clear, as those between groups are."""
    return {
        rate.group: rate.difference
        for rate in rates
        if rate.p_value < CLEAR and matters(rate.difference, audit) and not depends_on_model(rate)
    }


def _independence(audit: Audit) -> Iterator[Finding]:
    found = audit.independence
    if found is None:
        return
    if isnan(found.p_value):
        yield Finding(
            "independence-untested", "caution", "outcome", values={"reason": found.reason}
        )
        return
    usable = {name: e for name, e in found.odds_ratio.items() if e.estimable}
    if found.p_value >= CLEAR:
        limits = [found.detectable[name] for name in usable]
        yield Finding(
            "no-dependence-seen",
            "note",
            "outcome",
            values={"p_value": found.p_value, "least": min(limits), "most": max(limits)},
        )
        return
    far = [name for name, e in usable.items() if e.low > FAR or e.high < 1 / FAR]
    named = far or [name for name, e in usable.items() if e.excludes(1)]
    agree = all(p < CLEAR for p in found.each.values())
    yield Finding(
        "depends-on-group",
        "serious" if far and agree else "caution" if agree else "note",
        "outcome",
        tuple(named),
        {"p_value": found.p_value, "odds_ratios": {n: usable[n] for n in named}, "agree": agree},
    )


def _known(audit: Audit) -> bool:
    """Whether numbers for everybody are at the odds that meet a known prevalence."""
    return any(one.odds_ratio.estimable for one in audit.known)


def _sensitivity(audit: Audit) -> Iterator[Finding]:
    known = _known(audit)
    for found, about in (
        (audit.prevalence_sensitivity, "prevalence"),
        (audit.performance_sensitivity, "performance"),
    ):
        if found is not None:
            yield _fragile(found.breakdown, about, known)


def _fragile(b: Breakdown, about: str, known: bool) -> Finding:
    values: Mapping[str, Any] = {
        "conclusion": b.conclusion,
        "value": b.value,
        "interval": b.with_interval,
        "reason": b.reason,
        "known": known,
    }
    if isnan(b.value):
        return Finding("not-tried", "note", about, values=values)
    if b.with_interval <= 1:
        return Finding("not-clear", "note", about, values=values)
    if b.value == inf and b.with_interval == inf:
        return Finding("holds-anyway", "fine", about, values=values)
    weak = b.with_interval < FRAGILE
    return Finding(
        "fragile" if weak else "stands", "caution" if weak else "note", about, values=values
    )


def _needed(audit: Audit) -> Iterator[Finding]:
    short = {n.group: n for n in audit.needed if n.more > 0}
    if short and audit.extent == "some":
        values = {"precision": next(iter(short.values())).precision, "tests": short}
        yield Finding("tests-needed", "note", "prevalence", tuple(short), values, "collect")


_PARTS = (
    _leak,
    _extent,
    _testing,
    _overlap,
    _models,
    _features,
    _preference,
    _outcome_test,
    about_deciders,
    _prevalence,
    _test,
    _time,
    of_known_rates,
    _independence,
    _sensitivity,
    about_bounds,
    _needed,
)
