"""What the numbers say, in sentences no stronger than their intervals.

Severity is about consequences, not about p-values. *Serious*: a conclusion or a method that people
would reach for is not supported here. *Caution*: it needs a second look, or a sentence in the
paper. *Note*: worth knowing. *Fine*: it was looked for and not found. With several groups, a
difference counts as clear only after Bonferroni's correction: a table without any disparity should
not find one because it has many groups.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcem.audit import outcome_findings
from dcem.audit.drivers import GROUP
from dcem.audit.outcome_findings import clear_disparities
from dcem.audit.results import SEVERITIES, Audit, Finding
from dcem.audit.wording import listed, percent, points
from dcem.estimation.overlap import HARDLY, SELDOM
from dcem.estimation.results import EVERYBODY

MOST = 0.5  # share of the importance that one column alone should not have
FOUR_FIFTHS = 0.8  # a ratio of rates beyond which a disparity counts as serious
COMPATIBLE = 0.05  # a difference that may still be there, and "fine" be said


def find(audit: Audit) -> tuple[Finding, ...]:
    """All findings, the serious ones first."""
    found = [finding for part in _PARTS for finding in part(audit)]
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))


def _extent(audit: Audit) -> Iterator[Finding]:
    total = audit.total
    if audit.extent == "nobody":
        yield Finding(
            "serious",
            "testing",
            "Nobody was tested",
            "There is not a single outcome in this table. Neither a model nor an estimate of "
            "anything about the outcome can be made from it.",
        )
    elif audit.extent == "everybody":
        yield Finding(
            "caution",
            "testing",
            "Everybody counts as tested",
            "No label is missing. If untested people were recorded as negative, that is the bias "
            "itself, and nothing below shows it: say who was tested (`tested`) and audit again.",
        )
    elif total.tested < 100:
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
    if audit.grouped and lost and audit.extent == "some":
        yield Finding(
            "caution",
            "groups",
            f"Too little is known about group {listed(lost)}",
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
            "fine" if widest <= COMPATIBLE else "note",
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
    if not every.complete:
        yield Finding(
            "serious",
            "overlap",
            "The tested cannot speak for everybody",
            f"{facts} For people like nobody tested, any score or estimate is extrapolation.",
        )
    elif every.thin:
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
            f"No weighted estimate for group {listed(list(bad))}",
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
        reasons = "; ".join(f"{name}: {why}" for name, why in audit.suspicious.items())
        yield Finding(
            "caution",
            "features",
            f"{listed(list(audit.suspicious))} may have been recorded after the decision to test",
            f"{reasons}. A column that follows the decision hides disparities and overstates every "
            "model. Leave it out if so (`exclude`).",
        )


def _one_driver(audit: Audit) -> Iterator[Finding]:
    columns = [driver for driver in audit.drivers if driver.column != GROUP]
    if len(columns) < 3:  # of two columns, one always has more than half
        return
    first = columns[0]
    if first.share > MOST and first.loss.low > 0 and first.column not in audit.suspicious:
        yield Finding(
            "caution",
            "features",
            f"{first.column} carries most of the prediction of testing",
            f"{percent(first.share)} of the rises in loss, summed over all columns. It may simply "
            "be why people are tested. But it may also count the test itself, or be recorded after "
            "the decision; then it hides disparities, and people at equal features were not equal "
            "when it was made. Consider leaving it out (`exclude`), and compare.",
        )


_PARTS = (_extent, _testing, _overlap, _late_columns, _one_driver, *outcome_findings.PARTS)
