"""What the numbers say, no stronger than their intervals: findings about tests and features.

Two rules hold throughout. Statements that pick one of several groups, or the best and the worst of
them, are corrected for the number of comparisons (`estimation.influence.simultaneous`): a table
without any disparity should not find one because it has many groups. And an effect has to be large
enough to matter: differences under the audit's `least_difference`, or a tenth of the testing rate
where that is smaller, are noted and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan, nan
from typing import Any

from dcem.audit.bounds import about_bounds
from dcem.audit.deciders import about_deciders
from dcem.audit.drivers import GROUP, TIME
from dcem.audit.known_rates import about_known_rates
from dcem.audit.outcome_findings import (
    about_errors,
    about_independence,
    about_preference,
    about_prevalence,
    about_sensitivity,
    about_tests_needed,
    about_yields,
)
from dcem.audit.over_time import about_time
from dcem.audit.remedies import audit_finding, each_group, each_named, points_of
from dcem.audit.results import CLEAR_P, Audit, TestingRate
from dcem.estimation.determined import DETERMINED
from dcem.estimation.effects import MUCH, TIMES
from dcem.estimation.findings import Finding, by_severity
from dcem.estimation.results import COUNTED, EVERYBODY, EXTRAPOLATION, WITHHELD
from dcem.text import capitalised, groups, listed, named_groups, number, percent, ratio

FOUR_FIFTHS = 0.8  # a ratio of rates that counts as serious if the whole interval lies beyond
COMPATIBLE = 0.05  # a difference that may still be there, and "fine" be said
MOST = 0.5  # share of the importance that one column alone should not have
LEFT = 0.01  # share of the residual variance that a model should not leave to be found
PREDICTABLE = 0.95  # an AUC of the testing model beyond which testing looks like a rule
GAP_IN_MISSING = 0.1  # difference in the share missing that a reader should know of


def all_findings(audit: Audit) -> tuple[Finding, ...]:
    """All findings, the serious ones first."""
    return by_severity(finding for part in _PARTS for finding in part(audit))


def _leak(audit: Audit) -> Iterator[Finding]:
    if audit.suspicious:
        yield audit_finding(
            "leak",
            "serious",
            "features",
            f"{listed(list(audit.suspicious))} may have been recorded after the decision to test",
            f"{each_named(audit.suspicious)}. A column recorded after the decision hides "
            "disparities and makes every model look too good. While such a column is included, "
            "nothing below can be trusted.",
            columns=dict(audit.suspicious),
        )


def _extent(audit: Audit) -> Iterator[Finding]:
    if audit.extent == "nobody":
        yield audit_finding(
            "nobody-tested",
            "serious",
            "testing",
            "Nobody was tested",
            "There is not a single outcome in this table. Neither a model nor an estimate of "
            "anything about the outcome can be made from it.",
        )
    elif audit.extent == "everybody" and audit.tested_stated:
        yield audit_finding(
            "everybody-tested",
            "fine",
            "testing",
            "Everybody was tested, as stated",
            "No label is missing, so no group is tested less than another. If untested people were "
            "recorded as negative all the same, nothing below can show it.",
        )
    elif audit.extent == "everybody":
        yield audit_finding(
            "everybody-tested",
            "caution",
            "testing",
            "Everybody counts as tested",
            "No label is missing. If untested people were recorded as negative, that is the bias "
            "itself, and nothing below can show it. State who was tested, and audit again.",
        )
    elif 0 <= audit.total.tested < 100:
        yield audit_finding(
            "few-tests",
            "caution",
            "testing",
            "Fewer than 100 tests",
            "Intervals are wide, and real differences may well go unnoticed.",
        )
    if not audit.grouped:
        yield audit_finding(
            "no-groups",
            "note",
            "testing",
            "No groups were given",
            "This audit covers only overlap, prevalence and sensitivity. Name a group column to "
            "check whether groups are tested differently.",
        )
    lost = {
        rate.group: rate.difference.reason
        for rate in audit.testing
        if not rate.difference.estimable and rate.group != audit.reference
    }
    hidden = [name for name, reason in lost.items() if reason == WITHHELD.reason]
    told = {name: reason for name, reason in lost.items() if reason.startswith(DETERMINED)}
    small = {n: reason for n, reason in lost.items() if n not in hidden and n not in told}
    if told:
        alike = len(set(told.values())) == 1
        why = capitalised(next(iter(told.values()))) if alike else each_group(told)
        yield audit_finding(
            "features-determine-group",
            "caution",
            "groups",
            f"The features determine who is in {named_groups(list(told))}",
            f"{why}. Hardly anybody in another group has the same features, so no difference in "
            "testing at equal features can be estimated. This does not mean that these groups are "
            "treated alike.",
            tuple(told),
            reasons=told,
        )
    if audit.grouped and small and audit.extent == "some":
        yield audit_finding(
            "group-too-small",
            "caution",
            "groups",
            f"Too little is known about {named_groups(list(small))}",
            f"{each_group(small)}. This does not mean that these groups are treated alike.",
            tuple(small),
            reasons=small,
        )
    if audit.grouped and hidden and audit.extent == "some":
        yield audit_finding(
            "group-withheld",
            "caution",
            "groups",
            f"The numbers of {named_groups(hidden)} are withheld",
            "They would reveal a count under ten, possibly of untested people: nearly everybody "
            "may have been tested. This does not mean that groups are treated alike.",
            tuple(hidden),
        )


def _testing(audit: Audit) -> Iterator[Finding]:
    usable = [rate for rate in audit.testing if rate.difference.estimable]
    clear = audit.clear(audit.testing)
    yield from _disparities(audit, usable)
    for attribute, rates in audit.by_attribute.items():
        known = [rate for rate in rates if rate.difference.estimable]
        yield from _disparities(audit, known, attribute)
    if usable and not clear and not audit.clear_by_attribute:
        widest = audit.widest
        yield audit_finding(
            "tested-alike",
            "fine" if widest <= COMPATIBLE else "note",
            "testing",
            "No clear difference in testing at equal features",
            "No group's rate differs clearly from that of others with the same features. "
            f"Differences up to {percent(widest).removesuffix(' %')} percentage points are "
            "compatible with the data.",
            widest=widest,
        )
    found = audit.testing_sensitivity
    if found is not None and any(rate.group == found.group for rate in clear):
        at = found.breakdown
        strongest = max((min(b.with_group, b.with_testing) for b in found.benchmarks), default=0.0)
        reached = at.with_interval < strongest
        scale = (
            "A measured column is that strong, so an unmeasured cause might be too."
            if reached
            else "No measured column is that strong for both (the strongest: "
            f"{percent(strongest)})."
        )
        yield audit_finding(
            "unmeasured-cause",
            "caution" if reached or at.with_interval < 0.01 else "note",
            "testing",
            f"It takes an unmeasured cause of strength {percent(at.value)} to explain "
            f"away the difference for group {found.group}",
            f"It would have to explain {percent(at.value)} of what the features leave unexplained "
            f"about who is in group {found.group}, and as much about who is tested. At "
            f"{percent(at.with_interval)}, its interval would already include zero. {scale}",
            (found.group,),
            value=at.value,
            interval=at.with_interval,
            strongest=strongest,
        )


def _disparities(
    audit: Audit, usable: Sequence[TestingRate], attribute: str = ""
) -> Iterator[Finding]:
    """Of each group that differs from the others, the largest difference first."""
    reference = "" if attribute else audit.reference
    for rate in sorted(usable, key=lambda rate: -abs(rate.difference.value)):
        mirrored = len(usable) == 2 and not reference and rate.difference.value > 0
        if rate.p_value >= CLEAR_P or mirrored:
            continue  # of two groups one mirrors the other: told once, of the one tested less
        r = rate.ratio
        shown = (
            f"; ratio {ratio(r.value)}, {ratio(r.low)} to {ratio(r.high)}" if r.estimable else ""
        )
        rates = (
            f"{percent(rate.equal.value)} against {percent(rate.others.value)} (difference "
            f"{points_of(rate.difference)}{shown})"
        )
        who = f"group {rate.group}" + (f" of {attribute}" if attribute else "")
        if not audit.matters(rate.difference):
            key, severity = "small-difference", "note"
            headline = f"A small difference in testing of {who} at equal features"
            text = (
                f"{rates}. It is more than chance, but less than {percent(audit.least_difference)} "
                "of people, and is not counted as a disparity."
            )
        elif rate.beside:
            key, severity = "beside-others", "note"
            how = "less" if rate.difference.value < 0 else "more"
            headline = (
                f"{capitalised(who)} seems to be tested {how} often than others, but not with "
                f"{groups(rate.beside)} left out"
            )
            text = f"{rates}. Compared with the remaining groups alone, it does not differ clearly."
        elif rate.depends_on_model:
            key, severity = "depends-on-model", "note"
            headline = f"Whether {who} is tested differently depends on the model"
            text = (
                f"{rates} by all models together. By each kind of model alone: "
                f"{each_named(rate.each, points_of)}. A difference that one kind of model does not "
                "see is not a finding."
            )
        else:
            # Near zero the interval of a ratio is of little use, if there is one, and that of the
            # difference says the same.
            least = max(rate.difference.low, -rate.difference.high)
            beyond = least > (1 - FOUR_FIFTHS) * max(rate.equal.value, rate.others.value)
            beyond = beyond or r.high < FOUR_FIFTHS or r.low > 1 / FOUR_FIFTHS
            severity = "serious" if beyond else "caution"
            how = "less" if rate.difference.value < 0 else "more"
            others = f"group {reference}" if reference else "others"
            crude = f"Crude rate: {percent(rate.crude.value)}. " if rate.crude.estimable else ""
            key = f"tested-{how}"
            headline = (
                f"{capitalised(who)} is tested {how} often than {others} with the same features"
            )
            unseen = f"{audit.unseen_others} " if audit.unseen_others and not attribute else ""
            text = (
                f"{rates}. {crude}{unseen}Recorded features do not explain the difference; "
                "something unrecorded might."
            )
        names = ("crude", "equal", "others", "difference", "ratio", "p_value", "each")
        values: dict[str, Any] = {name: getattr(rate, name) for name in names}
        values |= {"least": audit.least_difference, "reference": reference}
        values |= {"attribute": attribute} if attribute else {}
        values |= {"beside": rate.beside} if rate.beside else {}
        yield audit_finding(key, severity, "testing", headline, text, (rate.group,), **values)


def _overlap(audit: Audit) -> Iterator[Finding]:
    if not audit.overlap:
        return
    every = audit.overlap[EVERYBODY]
    facts = (
        f"{percent(every.reach)} of people are within reach of the tests. Weighted to represent "
        "these people, the tests have an effective sample size of "
        f"{percent(every.effective_share)} of their number."
    )
    severity, headline = "fine", "Tested and untested people overlap"
    if every.reason:
        severity, headline = "serious", "The tested do not represent everybody"
        facts += (
            f" {COUNTED} For people unlike anybody tested, any score or estimate is "
            f"{EXTRAPOLATION}."
        )
    elif not every.complete:
        severity = "serious"
        headline = f"The tested do not represent {percent(1 - every.reach)} of the people"
        facts += (
            f" {COUNTED} A comparison fits its own model and may count a few more or fewer. "
            "Estimates refer to those within reach; for the rest there are limits that assume "
            f"nothing, and any score is {EXTRAPOLATION}."
        )
    elif every.thin:
        severity, headline = "caution", "Thin overlap of tested and untested people"
        facts += (
            f" The 1 % of tests with the largest weights carry {percent(every.heaviest)} of the "
            "total weight: weighted estimates rest on few people."
        )
    yield audit_finding(
        "overlap",
        severity,
        "overlap",
        headline,
        facts,
        reach=every.reach,
        effective=every.effective_share,
        heaviest=every.heaviest,
        reason=every.reason,
    )
    bad = {
        name: o.reason or f"{percent(1 - o.reach)} out of reach"
        for name, o in audit.overlap.items()
        if not o.complete and name != EVERYBODY
    }
    if bad and not every.reason:
        headline = f"No estimate for everybody in {named_groups(list(bad))}"
        text = f"{each_group(bad)}."
        yield audit_finding(
            "overlap-groups", "caution", "overlap", headline, text, tuple(bad), reasons=bad
        )


def _models(audit: Audit) -> Iterator[Finding]:
    found = audit.calibration
    if found is not None:
        slope = found.slope
        if not found.is_right:
            yield audit_finding(
                "calibration",
                "caution",
                "overlap",
                "The model of testing is not well calibrated",
                f"Slope {ratio(slope.value)} (ideal: 1), mean error "
                f"{percent(found.error).removesuffix(' %')} percentage points (by chance alone, "
                f"{percent(found.error_by_chance).removesuffix(' %')}). Numbers that use its "
                "probabilities, above all the weighted estimates, are less certain than their "
                "intervals say.",
                slope=slope,
                error=found.error,
                error_by_chance=found.error_by_chance,
            )
        if found.auc > PREDICTABLE:
            yield audit_finding(
                "predictable",
                "caution",
                "overlap",
                "Testing can be predicted almost perfectly",
                f"AUC {number(found.auc, 2)}. Either testing follows a rule, and nothing is known "
                "about those the rule leaves out; or a feature was recorded after the decision.",
                auc=found.auc,
            )
    left = {name: e for name, e in audit.left_over.items() if e.estimable and e.low > LEFT}
    if left:
        yield audit_finding(
            "model-leaves",
            "caution",
            "overlap",
            "The models miss something that the features could predict",
            "Share of each model's residual variance that trees can still predict: "
            f"{each_named(left, lambda e: percent(e.value))}. Differences at equal features and "
            f"estimates for {audit.whom} may be off by more than their intervals.",
            shares=left,
        )


def _features(audit: Audit) -> Iterator[Finding]:
    found = audit.calibration
    predicts = found is None or found.auc > found.auc_by_chance  # else nothing drives testing
    columns = [d for d in audit.drivers if predicts and d.column not in (GROUP, TIME)]
    first = columns[0] if len(columns) >= 3 else None  # of two, one always has more than half
    if first is not None and first.column in (*audit.suspicious, *audit.testing_only):
        first = None  # said already, by us or by the user
    if first is not None and first.share > MOST and first.loss.low > 0:
        yield audit_finding(
            "one-driver",
            "caution",
            "features",
            f"Testing is predicted mostly from {first.column}",
            f"It has {percent(first.share)} of the permutation importance of all columns. Was it "
            "known before the decision? Then it is a ground of the decision. If it was recorded "
            "afterwards, or records the test itself, it hides disparities: people with equal "
            "features were not equal when the decision was made.",
            column=first.column,
            share=first.share,
        )
    outcome = {driver.column: driver.share for driver in audit.outcome_drivers}
    whole = sum(max(driver.loss.value, 0) for driver in audit.outcome_drivers)
    # of few positive tests the shares are chance: what each may be at most
    most = {one.column: one.loss.high / whole for one in audit.outcome_drivers if whole > 0}
    more = {
        driver.column: (driver.share, outcome[driver.column])
        for driver in columns
        if driver.loss.low > 0
        and driver.share >= max(MUCH, TIMES * most.get(driver.column, 1))
        and driver.column not in audit.testing_only
    }
    if more:
        verb, each = ("matters", "It") if len(more) == 1 else ("matter", "Each of them")
        shares = each_named(more, lambda both: f"{percent(both[0])} against {percent(both[1])}")
        yield audit_finding(
            "drives-testing",
            "note",
            "features",
            f"{listed(list(more))} {verb} more for who is tested than for what tests show",
            f"Shares of the permutation importances: {shares}. {each} may send people to a test "
            "for reasons other than their risk.",
            columns=more,
        )
    yield from _excluded(audit, outcome)
    traces = {
        name: gap
        for name, gap in audit.missing.items()
        if gap.low > GAP_IN_MISSING or gap.high < -GAP_IN_MISSING
    }
    if traces:
        yield audit_finding(
            "missing-by-testing",
            "caution",
            "features",
            f"Whether {listed(list(traces))} {'is' if len(traces) == 1 else 'are'} filled in is "
            "related to testing",
            "Share missing among the tested minus that among the untested: "
            f"{each_named(traces, points_of)}. Values measured together with the test, or because "
            "of it, tell a model who was tested.",
            columns=traces,
        )


def _excluded(audit: Audit, outcome: dict[str, float]) -> Iterator[Finding]:
    """Whether columns that are said to drive testing alone do drive it.

    `outcome`: the share of each column in the prediction of what a test would show.
    """
    drivers = {driver.column: driver for driver in audit.drivers}
    known = [drivers[name] for name in audit.testing_only if name in drivers]
    if not known:
        return
    shares = {one.column: (one.share, outcome.get(one.column, nan)) for one in known}
    names = listed(list(shares))
    importances = "; ".join(
        f"{name}: {percent(a)} of the importances for testing"
        + ("" if isnan(b) else f", {percent(b)} for what a test would show")
        for name, (a, b) in shares.items()
    )
    if any(one.loss.low > 0 for one in known):
        key, severity = "excluded", "note"
        headline = f"Who is tested depends on {names}, stated to be unrelated to the outcome"
        text = (
            f"{importances}. The table cannot show that it is unrelated to the outcome at equal "
            "features: among the tested the two are related whenever something unrecorded affects "
            "both testing and outcome."
        )
    else:
        key, severity = "excluded-weak", "caution"
        headline = f"Who is tested hardly depends on {names}"
        text = f"{importances}. Methods that rely on it (`heckman`) learn little from it."
    yield audit_finding(key, severity, "features", headline, text, columns=shares)


_PARTS = (
    _leak,
    _extent,
    _testing,
    _overlap,
    _models,
    _features,
    about_preference,
    about_yields,
    about_deciders,
    about_prevalence,
    about_errors,
    about_time,
    about_known_rates,
    about_independence,
    about_sensitivity,
    about_bounds,
    about_tests_needed,
)
