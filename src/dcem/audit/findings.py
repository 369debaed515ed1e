"""What the numbers say, in sentences no stronger than their intervals.

Severity is about consequences, not about p-values. *Serious*: a conclusion or a method that people
would reach for is not supported here. *Caution*: it needs a second look, or a sentence in the
paper. *Note*: worth knowing. *Fine*: it was looked for and not found. With several groups, a
difference counts as clear only after Bonferroni's correction: a table without any disparity should
not find one because it has many groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isnan

from dcem.audit.overlap import HARDLY, SELDOM, is_thin
from dcem.audit.results import (
    EVERYBODY,
    SEVERITIES,
    Audit,
    Breakdown,
    Finding,
    Prevalence,
    TestingRate,
)
from dcem.metrics.estimate import Estimate

CLEAR = 0.05
FOUR_FIFTHS = 0.8  # a ratio of rates beyond which a disparity counts as serious
FRAGILE = 1.5  # an odds ratio that unrecorded causes reach easily


def find(audit: Audit) -> tuple[Finding, ...]:
    """All findings, the serious ones first."""
    found = [finding for part in _PARTS for finding in part(audit)]
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))


def clear_disparities(audit: Audit) -> list[TestingRate]:
    """Groups tested clearly more or less often than others with the same features."""
    usable = [rate for rate in audit.testing if rate.difference.estimable]
    tries = len(usable) if len(usable) > 2 else 1
    return [rate for rate in usable if rate.p_value * tries < CLEAR]


def percent(value: float) -> str:
    """A share in per cent, with a decimal where it is small."""
    shown = 100 * value
    return f"{shown:.0f} %" if abs(shown) >= 10 else f"{shown:.1f} %"


def points(estimate: Estimate) -> str:
    """A difference of shares, in percentage points."""
    value, low, high = (100 * v for v in (estimate.value, estimate.low, estimate.high))
    return f"{value:+.1f} percentage points, {low:+.1f} to {high:+.1f}"


def between(estimate: Estimate) -> str:
    """An interval in per cent."""
    return f"{percent(estimate.low)} to {percent(estimate.high)}"


def _extent(audit: Audit) -> Iterator[Finding]:
    total = audit.total
    if total.tested == 0:
        yield Finding(
            "serious",
            "testing",
            "Nobody was tested",
            "There is not a single outcome in this table. Neither a model nor an estimate of "
            "anything about the outcome can be made from it.",
        )
    elif total.tested == total.rows:
        yield Finding(
            "note",
            "testing",
            "Everybody was tested",
            "No label is missing, so no label was selected. If untested people were recorded as "
            "negative, say who was tested (`--tested`), and audit again.",
        )
    elif 0 < total.tested < 100:
        yield Finding(
            "caution",
            "testing",
            "Fewer than 100 tests",
            "Intervals are wide, and a difference that is not seen may well be there.",
        )
    if not audit.grouped:
        yield Finding(
            "note",
            "testing",
            "No groups were given",
            "This audit looks at overlap, prevalence and sensitivity only. Name a group column to "
            "ask whether groups are tested differently.",
        )
    lost = [rate.group for rate in audit.testing if not rate.difference.estimable]
    if audit.grouped and lost and 0 < total.tested < total.rows:
        yield Finding(
            "caution",
            "groups",
            f"Too little is known about group {_listed(lost)}",
            "At equal features: "
            + "; ".join(
                f"{rate.group}: {rate.difference.reason}"
                for rate in audit.testing
                if not rate.difference.estimable
            )
            + ". This does not mean that these groups are treated alike.",
        )


def _testing(audit: Audit) -> Iterator[Finding]:
    usable = [rate for rate in audit.testing if rate.difference.estimable]
    clear = clear_disparities(audit)
    for rate in clear:
        if len(usable) == 2 and rate.difference.value > 0:
            continue  # of two groups one mirrors the other: told once, of the one tested less
        less = rate.difference.value < 0
        large = rate.ratio.estimable and (
            rate.ratio.value < FOUR_FIFTHS or rate.ratio.value > 1 / FOUR_FIFTHS
        )
        yield Finding(
            "serious" if large else "caution",
            "testing",
            f"Group {rate.group} is tested {'less' if less else 'more'} often than others with the "
            "same features",
            f"{percent(rate.equal.value)} against {percent(rate.others.value)} "
            f"(difference {points(rate.difference)}; ratio {rate.ratio.value:.2f}, "
            f"{rate.ratio.low:.2f} to {rate.ratio.high:.2f}). Crude rate: "
            f"{percent(rate.crude.value)}. Recorded features do not explain the difference; "
            "something unrecorded might.",
        )
    if usable and not clear:
        widest = max(max(abs(r.difference.low), abs(r.difference.high)) for r in usable)
        yield Finding(
            "fine",
            "testing",
            "No clear difference in testing at equal features",
            f"No group's rate differs clearly from that of others with the same features. "
            f"Differences up to {100 * widest:.1f} percentage points are compatible with the data.",
        )
    found = audit.testing_sensitivity
    if found is not None and any(rate.group == found.group for rate in clear):
        at = found.breakdown
        strongest = max((min(b.with_group, b.with_testing) for b in found.benchmarks), default=0.0)
        reached = at.with_interval < strongest
        scale = (
            "A measured column is that strong, so an unmeasured one might be."
            if reached
            else f"No measured column is that strong on both (the strongest: {percent(strongest)})."
        )
        yield Finding(
            "caution" if reached or at.with_interval < 0.01 else "note",
            "testing",
            f"It takes an unmeasured cause of strength {percent(at.value)} to explain the "
            "difference away",
            f"Something unrecorded that explains {percent(at.value)} of what the features leave "
            f"open both of belonging to group {found.group} and of being tested would account for "
            f"all of it ({percent(at.with_interval)} for its interval). {scale}",
        )


def _overlap(audit: Audit) -> Iterator[Finding]:
    if not audit.overlap:
        return
    every = audit.overlap[EVERYBODY]
    bad = {n: o.reason for n, o in audit.overlap.items() if o.reason and n != EVERYBODY}
    ratio = every.effective / every.tested if every.tested > 0 else 0.0
    facts = (
        f"{percent(every.under[HARDLY])} of people have a testing probability under "
        f"{100 * HARDLY:g} %, {percent(every.under[SELDOM])} under {100 * SELDOM:g} %. Weighted to "
        f"represent everybody, the tests are worth {percent(ratio)} of their number."
    )
    if every.reason:
        yield Finding(
            "serious",
            "overlap",
            "The tested cannot speak for everybody",
            f"{facts} For people like nobody tested, any score or estimate is extrapolation.",
        )
    elif is_thin(every):
        yield Finding(
            "caution",
            "overlap",
            "Thin overlap of tested and untested people",
            f"{facts} Weighted estimates rest on few people.",
        )
    else:
        yield Finding("fine", "overlap", "Tested and untested people overlap", facts)
    if bad and not every.reason:
        yield Finding(
            "caution",
            "overlap",
            f"No weighted estimate for group {_listed(list(bad))}",
            "; ".join(f"{name}: {reason}" for name, reason in bad.items()) + ".",
        )
    calibration = audit.calibration
    if calibration is None:
        return
    slope = calibration.slope
    off = slope.estimable and slope.excludes(1) and not 0.8 <= slope.value <= 1.25
    if off or calibration.error > 0.05:
        yield Finding(
            "caution",
            "overlap",
            "The model of testing is not well calibrated",
            f"Slope {slope.value:.2f} (1 is right), mean error "
            f"{100 * calibration.error:.1f} percentage points. What rests on its probabilities, "
            "the weighted estimates above all, is less sure than the intervals say.",
        )
    if calibration.auc > 0.95:
        yield Finding(
            "caution",
            "overlap",
            "Testing can be predicted almost perfectly",
            f"AUC {calibration.auc:.2f}. Either testing follows a rule, and nothing is known about "
            "those the rule leaves out; or a feature was recorded after the decision.",
        )


def _late_columns(audit: Audit) -> Iterator[Finding]:
    if audit.suspicious:
        listed = "; ".join(f"{name}: {why}" for name, why in audit.suspicious.items())
        yield Finding(
            "caution",
            "features",
            f"{_listed(list(audit.suspicious))} may have been recorded after the decision to test",
            f"{listed}. A column that follows the decision hides disparities and overstates every "
            "model. Exclude it if so (`--exclude`).",
        )


def _outcome_test(audit: Audit) -> Iterator[Finding]:
    if not audit.grouped:
        return
    usable = [item for item in audit.yields if item.difference.estimable]
    clear = [item for item in usable if item.difference.excludes(0)]
    caveat = (
        "A difference in these rates alone is not yet bias: they average over everybody tested, "
        "not over those at the margin, and groups whose risk is distributed differently have "
        "different rates under one and the same rule (infra-marginality)."
    )
    if clear:
        rates = ", ".join(f"{i.group} {percent(i.rate.value)}" for i in usable)
        yield Finding(
            "note", "yield", "Tests are positive more often in some groups", f"{rates}. {caveat}"
        )
    nearer = [i for i in usable if i.at_equal_probability.excludes(0)]
    tested_less = {r.group for r in clear_disparities(audit) if r.difference.value < 0}
    told_twice = len(usable) == 2
    for item in nearer:
        if item.at_equal_probability.value < 0 and told_twice:
            continue
        gap = item.at_equal_probability
        both = item.group in tested_less and gap.value > 0
        yield Finding(
            "serious" if both else "caution",
            "yield",
            f"At equal testing probability, tests of group {item.group} are positive "
            f"{'more' if gap.value > 0 else 'less'} often",
            f"Difference {points(gap)}. "
            + (
                "Together with fewer tests at equal features, both signs point to a higher bar "
                "for this group."
                if both
                else "This is nearer to a comparison at the margin than the plain rates, as far "
                "as the features describe what the decision was based on."
            ),
        )


def _prevalence(audit: Audit) -> Iterator[Finding]:
    if not audit.prevalence:
        return
    every, *groups = audit.prevalence
    if audit.total.tested in (0, audit.total.rows):
        return
    if every.doubly_robust.estimable:
        yield Finding(
            "note",
            "prevalence",
            f"The record shows {percent(every.recorded.value)}, the estimate for everybody is "
            f"{percent(every.doubly_robust.value)}",
            f"Doubly robust, {between(every.doubly_robust)}; among the tested "
            f"{percent(every.tested_only.value)}. It assumes that features and group explain who "
            f"was tested. Without any assumption it lies between {percent(every.bounds[0])} and "
            f"{percent(every.bounds[1])}.",
        )
    else:
        yield Finding(
            "caution",
            "prevalence",
            "How common the outcome is cannot be estimated for everybody",
            f"{every.doubly_robust.reason}. Without any assumption it lies between "
            f"{percent(every.bounds[0])} and {percent(every.bounds[1])}.",
        )
    missed = {g.group: _missed(g) for g in groups if g.doubly_robust.estimable}
    spans = {name: span for name, span in missed.items() if span is not None}
    if len(spans) >= 2:
        worst = max(spans, key=lambda name: spans[name].value)
        best = min(spans, key=lambda name: spans[name].value)
        if spans[worst].low > spans[best].high:
            yield Finding(
                "caution",
                "prevalence",
                f"Counting the untested as negative hides more in group {worst} than in {best}",
                f"{percent(spans[worst].value)} of the outcomes in group {worst} "
                f"({between(spans[worst])}), {percent(spans[best].value)} in group {best} "
                f"({between(spans[best])}), by the doubly robust estimate.",
            )


def _missed(item: Prevalence) -> Estimate | None:
    """Share of the estimated outcomes that the record lacks."""
    e, recorded = item.doubly_robust, item.recorded.value
    if not e.low > 0:
        return None
    value, low, high = (max(1 - recorded / v, 0.0) for v in (e.value, e.low, e.high))
    return Estimate(value, low, high)


def _independence(audit: Audit) -> Iterator[Finding]:
    found = audit.independence
    if found is None:
        return
    if isnan(found.p_value):
        yield Finding(
            "caution",
            "outcome",
            "Whether the outcome depends on the group could not be tested",
            f"{found.reason}. Methods that assume it does not (DCEM) rest on faith here.",
        )
        return
    usable = {name: e for name, e in found.odds_ratio.items() if e.estimable}
    if found.p_value < CLEAR:
        far = [n for n, e in usable.items() if e.low > 1.25 or e.high < 0.8]
        named = far or [n for n, e in usable.items() if e.excludes(1)]
        listed = "; ".join(
            f"{n}: odds ratio {usable[n].value:.2f} ({usable[n].low:.2f} to {usable[n].high:.2f})"
            for n in named
        )
        yield Finding(
            "serious" if far else "caution",
            "outcome",
            "The outcome depends on the group at equal features",
            f"Among the tested, p = {found.p_value:.2g}. {listed or 'No single group stands out'}. "
            "Methods that assume independence (DCEM and its kin) are off by about that much; or "
            "the features lack something that differs between groups.",
        )
        return
    limits = [found.detectable[n] for n in usable]
    yield Finding(
        "note",
        "outcome",
        "No sign that the outcome depends on the group at equal features",
        f"Among the tested, p = {found.p_value:.2g}. That is no proof: depending on the group, "
        f"odds ratios of {min(limits):.2f} to {max(limits):.2f} could have gone unnoticed, and "
        "only tested people could be asked.",
    )


def _sensitivity(audit: Audit) -> Iterator[Finding]:
    for found, what in (
        (audit.prevalence_sensitivity, "prevalence"),
        (audit.performance_sensitivity, "performance"),
    ):
        if found is not None:
            yield _fragile(found.breakdown, what)


def _fragile(b: Breakdown, about: str) -> Finding:
    conclusion = b.conclusion[0].upper() + b.conclusion[1:]
    if isnan(b.value):
        return Finding(
            "note", about, f"“{conclusion}” could not be put to the test", f"{b.reason}."
        )
    if b.with_interval <= 1:
        return Finding(
            "note",
            about,
            f"“{conclusion}” is not clear to begin with",
            "Even if untested people are like tested people with the same features, the interval "
            "holds no difference.",
        )
    if b.value == inf and b.with_interval == inf:
        return Finding(
            "fine",
            about,
            f"“{conclusion}” holds whatever the untested are like",
            "Even the limits without any assumption leave it standing.",
        )
    weak = b.with_interval < FRAGILE
    return Finding(
        "caution" if weak else "note",
        about,
        f"“{conclusion}” stands up to an odds ratio of {_times(b.with_interval)}",
        "If the odds of untested people differ from those of tested people with the same features "
        f"by that factor, the interval no longer excludes the opposite; at {_times(b.value)} the "
        "estimate itself turns." + (" That is little." if weak else ""),
    )


def _times(value: float) -> str:
    return "any size" if value == inf else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _listed(names: list[str]) -> str:
    shown = names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


_PARTS = (
    _extent,
    _testing,
    _overlap,
    _late_columns,
    _outcome_test,
    _prevalence,
    _independence,
    _sensitivity,
)
