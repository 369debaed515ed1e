"""Numbers as people write them, and a comparison in plain sentences.

The sentences say only what the intervals support. A difference whose interval holds zero is
called unclear, however large its middle; a group with nothing to estimate is said to be so.
"""

from __future__ import annotations

from math import isnan

from dcem.compare.results import GroupCounts
from dcem.compare.truth_results import Comparison, MethodResult
from dcem.metrics.estimate import Estimate


def number(value: float, digits: int = 3) -> str:
    """A score or rate without its leading zero: .787, -.012, 1.000; a dash for NaN."""
    if isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = f"{0:.{digits}f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def with_interval(estimate: Estimate, digits: int = 3) -> str:
    """`.787 [.768, .823]`, or that it is not estimable and why."""
    if not estimate.estimable:
        return f"not estimable{': ' + estimate.reason if estimate.reason else ''}"
    if isnan(estimate.low):
        return number(estimate.value, digits)
    return (
        f"{number(estimate.value, digits)} "
        f"[{number(estimate.low, digits)}, {number(estimate.high, digits)}]"
    )


def percent(part: float, whole: float) -> str:
    """A share in whole per cent; one decimal where it is small."""
    if whole == 0:
        return "–"
    share = 100 * part / whole
    return f"{share:.1f} %" if 0 < share < 10 else f"{share:.0f} %"


def level(comparison: Comparison) -> str:
    """The level of the intervals: `95 %`."""
    return f"{100 * comparison.level:g} %"


def about_testing(groups: tuple[GroupCounts, ...]) -> str:
    """Who was tested, and what that hides, in one or two sentences."""
    ordered = sorted(groups, key=lambda group: group.tested / max(group.people, 1))
    least, most = ordered[0], ordered[-1]
    text = (
        f"In group {least.name}, {percent(least.tested, least.people)} of people were tested; "
        f"in group {most.name}, {percent(most.tested, most.people)}."
    )
    if least.positives and most.positives:
        text += (
            f" So {percent(least.positives - least.positives_seen, least.positives)} of the "
            f"positives in group {least.name} are recorded as negative, against "
            f"{percent(most.positives - most.positives_seen, most.positives)} in group {most.name}."
        )
    return text


def about_ranking(method: MethodResult, reference: MethodResult) -> str:
    """How well a method ranks people, against the reference, as far as the interval allows."""
    gain = method.auc_gain
    if gain is None or not gain.estimable:
        return f"`{method.name}` cannot be compared with `{reference.name}` in AUC here"
    against = f"AUC {number(method.auc.value)} against {number(reference.auc.value)}"
    if not gain.excludes(0):
        return (
            f"`{method.name}` ranks people about as well as `{reference.name}` ({against}; "
            f"the difference, {with_interval(gain)}, is not clear of zero)"
        )
    direction = "better" if gain.value > 0 else "worse"
    return (
        f"`{method.name}` ranks people {direction} than `{reference.name}` ({against}; "
        f"difference {with_interval(gain)})"
    )


def about_fairness(method: MethodResult, reference: MethodResult) -> str:
    """How equally a method serves the groups, against the reference and against chance."""
    gap, change = method.roc_gap, method.gap_change
    if change is None or not gap.estimable or not change.estimable:
        return f"its ROC gap is {with_interval(gap)}"
    against = f"{number(gap.value)} against {number(reference.roc_gap.value)}"
    if not change.excludes(0):
        text = f"the gap between the groups is not clearly different ({against})"
    elif change.value < 0:
        text = f"the gap between the groups is smaller ({against})"
    else:
        text = f"the gap between the groups is larger ({against})"
    if gap.value <= method.gap_by_chance:
        text += ", and no more than groups drawn at random would show"
    return text


def conclusions(comparison: Comparison) -> list[str]:
    """The comparison in sentences; the first method listed is the reference.

    Method names stand in backticks, for the writer to set in type.
    """
    reference, *others = [m for m in comparison.methods if not m.uses_truth]
    sentences = [about_testing(comparison.groups)]
    sentences += [
        f"{about_ranking(method, reference)}; {about_fairness(method, reference)}."
        for method in others
    ]
    oracles = [m for m in comparison.methods if m.uses_truth and m.auc.estimable]
    best = max((m for m in others if m.auc.estimable), key=lambda m: m.auc.value, default=None)
    if oracles and best is not None:
        sentences.append(
            f"Had every label been known, `{oracles[0].name}` would reach an AUC of "
            f"{number(oracles[0].auc.value)}; `{best.name}` comes within "
            f"{number(oracles[0].auc.value - best.auc.value)} of it."
        )
    return sentences
