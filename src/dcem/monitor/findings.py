"""What monitoring concludes: the verdict, findings, and how they are worded.

The verdict is the strongest thing to do that a clear change asks for. *Refit*: the model ranks
people clearly worse, everybody or a group, or no longer clearly better than chance. *Recalibrate*:
it ranks as before, but its risks are no longer calibrated. *Holds*: neither, and the numbers are
precise enough to have shown it; if risks are off in a group all the same, that is said with it.
*Cannot tell*: too few tests, or tests that reach other people than they did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dcem.estimation.findings import Finding, by_severity, clearly_off, too_high_or_low
from dcem.estimation.influence import Z
from dcem.estimation.results import EVERYBODY
from dcem.metrics.estimate import Estimate
from dcem.monitor.baseline import GROUP, UNLIKE, Baseline
from dcem.monitor.results import Change, Monitoring
from dcem.text import capitalised, decimal, group, groups, in_short, listed, number, percent

WIDE = 0.1  # half the width of an AUC's interval from which on it tells nothing
MUCH = 0.1  # population stability index from which on a column is called much changed
TO_DO = {
    "refit": "Fit the model again on recent rows, and compare methods on them.",
    "recalibrate": "Fit the model again with recent rows to update its risks; until then, use the "
    "scores only to rank people.",
    "holds": "",
    "cannot tell": "Wait for more tests, or test some people at random; until then, do not rely on "
    "the model more than before.",
}
RIGHT = {"calibration": 0.0, "slope": 1.0}  # of risks

STATED = "the prevalence is the one stated at the fit, and tests show that it has changed"


def with_verdict(
    found: Monitoring, then: Baseline, lacking: str, stated: frozenset[str] = frozenset()
) -> Monitoring:
    """The same with its verdict and findings.

    `stated`: the parts that are compared with a prevalence that was stated for the old rows.
    """
    auc = next(one for one in found.about("auc") if one.of == EVERYBODY)
    worse = [one for one in found.about("auc") if one.clear and one.difference.value < 0]
    off = [one for name in RIGHT for one in found.about(name) if _has_come_off(one)]
    wide = not auc.now.estimable or (auc.now.high - auc.now.low) / 2 > WIDE
    by_chance = found.ranks_by_chance and (bool(off) or not wide)  # else one can only wait
    verdict = "refit" if worse or by_chance else "recalibrate" if off else "holds"
    if (wide or found.not_comparable) and verdict == "holds":
        verdict, lacking = "cannot tell", lacking or found.not_comparable
    if any(one.clear and one.of in stated for one in found.about("prevalence")):
        verdict, lacking = "cannot tell", STATED
    groups_off = [*_groups_off(found, then, {one.of for one in off})]
    findings = [
        _verdict_finding(verdict, found, auc, worse, off, lacking, bool(groups_off)),
        *groups_off,
        *_who_comes(found),
        *_who_is_tested(found),
        *_what_is_found(found),
        *_others(found, then, auc),
        *_stated(then, stated),
    ]
    return replace(found, answer=verdict, findings=by_severity(findings))


def _verdict_finding(
    verdict: str,
    found: Monitoring,
    auc: Change,
    worse: list[Change],
    off: list[Change],
    lacking: str,
    groups_off: bool,
) -> Finding:
    known = f"{number(auc.then.value)} then" if auc.then.estimable else "not judged then"
    risks = (
        capitalised(f"{in_short([*map(_off, off)], joint='; ')}.", _groups_named(off))
        if off
        else ""
    )
    headline, text = {
        "refit": (
            "The model does not clearly rank people better than chance",
            f"AUC {auc.now:score}, {known}; by chance .500. {risks}".strip(),
        )
        if found.ranks_by_chance
        else (
            "The model ranks people worse than before",
            f"AUC: {in_short([*map(_worse, worse)], joint='; ')}.",
        ),
        "recalibrate": ("The model's risks are no longer calibrated", risks),
        "cannot tell": (
            "Too little is known about the new rows to tell",
            f"Why: {lacking or f'the AUC is only known to be {auc.now:score}'}.",
        ),
        "holds": (
            "No sign that the model "
            + ("ranks people worse than before" if groups_off else "no longer holds"),
            f"AUC {auc.now:score}, {known}.",
        ),
    }[verdict]
    severity = {"holds": "fine", "cannot tell": "caution"}.get(verdict, "serious")
    values = {"auc": auc.now, "then": auc.then}
    key, whom = verdict.replace(" ", "-"), _groups_named(worse or off)
    return Finding(key, severity, "holds", whom, values, headline, text, TO_DO[verdict])


def _worse(one: Change) -> str:
    return f"{_of_whom(one)} {number(one.now.value)} against {number(one.then.value)}"


def _groups_off(found: Monitoring, then: Baseline, named: set[str]) -> Iterator[Finding]:
    """Groups whose risks are off now, whether or not that changed; but for those `named` already.

    By more than is explained by what the model was fitted to, which was a sample.
    """
    now = {one.of: one.now for one in found.about("calibration")} | dict(found.by_attribute)
    reach = Z * then.doubt.get("calibration", 0.0)
    doubted = {name: by.minus(Estimate(0.0, -reach, reach)) for name, by in now.items()}
    off = {name: now[name] for name in clearly_off(doubted) if name not in named}
    if off:
        yield Finding(
            "groups-off",
            "caution",
            "holds",
            tuple(off),
            off,
            f"On average, the model's risks are {too_high_or_low(off)}",
            "Mean predicted risk minus the share of positives estimated now, with 95 % intervals. "
            "The error is not clearly larger than when the model was judged, if it was.",
            "Say for whom its risks are off, and do not use the same threshold for all groups.",
        )


def _has_come_off(one: Change) -> bool:
    """Whether risks moved away from what is right: some were off then, and are right now."""
    right = RIGHT[one.about]
    away = (one.now.value - right) * one.difference.value > 0
    return one.clear and away and not one.now.low <= right <= one.now.high


def _off(one: Change) -> str:
    if one.about == "slope":
        how = "extreme" if one.difference.value < 0 else "alike"
        return f"{_of_whom(one)}: risks are too {how} (slope {one.now:ratio})"
    side = "high" if one.now.value > 0 else "low"
    by = decimal(100 * abs(one.now.value), 1)
    then = f" ({100 * one.then.value:+.1f} then)" if one.then.estimable else ""
    return f"{_of_whom(one)}: risks are {by} percentage points too {side}{then}"


def _of_whom(one: Change) -> str:
    return one.of if one.of == EVERYBODY else group(one.of)


def _groups_named(changes: list[Change]) -> tuple[str, ...]:
    return tuple(one.of for one in changes if one.of != EVERYBODY)


def _called(column: str) -> str:
    """A column inside a sentence; two of them are made here, not in the table."""
    made = {UNLIKE: "the share unlike anybody tested", GROUP: "the groups"}
    return made.get(column, f"`{column}`")


def _who_comes(found: Monitoring) -> Iterator[Finding]:
    changed = [one for one in found.columns if one.clear]
    if not changed:
        return
    changes = "; ".join(
        f"{_called(one.column)}{f' {one.bin}' * (one.column != UNLIKE)}: "
        f"{one.said[0] or percent(one.then)} then, {one.said[1] or percent(one.now)} now"
        for one in changed[:4]
    )
    names = listed([_called(one.column) for one in changed])
    yield Finding(
        "who-comes",
        "caution" if changed[0].index >= MUCH else "note",
        "comes",
        values={one.column: one.index for one in changed},
        headline=f"Different people arrive: {names} changed",
        text=f"{changes}. The model may still hold for them: see whether it still ranks well and "
        "is calibrated.",
        remedy="Ask what changed in how people arrive, or in how the column is recorded.",
    )


def _who_is_tested(found: Monitoring) -> Iterator[Finding]:
    changed = [one for one in found.about("tested") if one.clear]
    if not changed:
        return
    shown = [one for one in changed if one.difference.estimable]
    changes = [f"{_of_whom(one)} {one.difference:points}" for one in shown]
    changes += [f"{_of_whom(one)} withheld" for one in changed if one not in shown]
    headline = "Who is tested at equal features changed"
    if shown:
        most = min(shown, key=lambda one: (one.p_value, -abs(one.difference.value)))
        was, now = percent(most.then.value), percent(most.now.value)
        headline += f": {_of_whom(most)} {now}, expected from the earlier decisions {was}"
    yield Finding(
        "who-is-tested",
        "caution",
        "tested",
        _groups_named(changed),
        {one.of: one.difference for one in changed},
        headline,
        "Share tested minus the share expected from the earlier decisions: "
        f"{in_short(changes, joint='; ')}.",
        "Ask those who decide what changed, and whether results are in; then audit the new rows.",
    )


def _what_is_found(found: Monitoring) -> Iterator[Finding]:
    changed = [one for one in found.about("prevalence") if one.clear]
    if not changed:
        return
    each = [
        f"{_of_whom(one)} {percent(one.then.value)} then, {percent(one.now.value)} now"
        for one in changed
    ]
    changes = in_short(each, joint="; ")
    ways = {"more" if one.difference.value > 0 else "less" for one in changed}
    for_whom = "" if any(one.of == EVERYBODY for one in changed) else " in some groups"
    if len(ways) > 1:
        headline = "The outcome is more common than it was in some groups, less in others"
    else:
        headline = f"The outcome is {ways.pop()} common than it was{for_whom}"
    yield Finding(
        "what-is-found",
        "note",
        "found",
        _groups_named(changed),
        {one.of: one.difference for one in changed},
        headline,
        f"Doubly robust: {changes}. If different people arrive, this need not mean that the model "
        "is wrong.",
        "Check whether the model's risks are still calibrated.",
    )


def _others(found: Monitoring, then: Baseline, auc: Change) -> Iterator[Finding]:
    late = found.late
    if late is not None:
        yield Finding(
            "late-results",
            "caution",
            "tested",
            values=vars(late),
            headline=f"Results after {late.until} may not have arrived yet",
            text=f"{late.words} Everything except who arrives refers to the rows until then.",
            remedy="If results are late, look again when they are in (`until` leaves rows out); if "
            "testing stopped, ask why.",
        )
    if not auc.then.estimable:
        yield Finding(
            "not-judged",
            "note",
            "holds",
            headline="How well the model ranked before is not known",
            text="The model was not evaluated when it was fitted. So only how well it ranks now is "
            "known, not whether it ranks worse.",
            remedy="Evaluate a model when it is fitted, or fit it next to a comparison.",
        )
    lost = [one.of for one in found.about("auc") if one.of != EVERYBODY and not one.now.estimable]
    if lost:
        yield Finding(
            "small-groups",
            "note",
            "holds",
            tuple(lost),
            headline=f"How well the model serves {groups(lost)} cannot be said",
            text=f"There are too few positive or negative tests of {groups(lost)}. This does not "
            "mean that the model serves these people well.",
            remedy="Monitor over a longer period, or test more of them.",
        )


def _stated(then: Baseline, stated: frozenset[str]) -> Iterator[Finding]:
    if stated:
        yield Finding(
            "stated-then",
            "note",
            "found",
            values={"stated": then.stated},
            headline="The prevalence was stated when the model was fitted",
            text=f"Numbers for everybody rest on the earlier {then.stated}. What tests show, then "
            "and now, is reported without using it.",
            remedy="State the prevalence of the new people (`prevalence`) if it may have changed.",
        )
