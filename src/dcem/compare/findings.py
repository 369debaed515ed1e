"""A comparison in plain sentences, and what a reader must know before believing it.

Sentences say what the intervals support: a difference whose interval holds zero is called unclear.
They speak of the most telling target there is: the truth, else everybody (doubly robust), else the
tested, and say which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan

from dcem.compare.results import GroupCounts, Judgement, MethodResult
from dcem.estimation.results import EVERYBODY, Nuisance, Overlap, Target
from dcem.metrics.estimate import Estimate

PREFERRED = {
    "truth": "Against the truth",
    "dr": "Among everybody (doubly robust)",
    "tested": "Among the tested",
}
MANY = 10  # counts under it are not given away in a sentence


def conclude(
    methods: Sequence[MethodResult], targets: Sequence[Target], groups: Sequence[GroupCounts]
) -> tuple[str, ...]:
    """Who is tested, how the methods rank people, and how alike they serve the groups."""
    available = {target.key: target for target in targets if target.available}
    chosen = next((available[key] for key in PREFERRED if key in available), None)
    sentences = [about_testing(groups)]
    if chosen is None:
        return (*sentences, f"No method can be judged on this table: {targets[0].reason}.")
    first, *others = methods
    leader = first.judgements[chosen.key]
    sentences.append(
        f"{PREFERRED[chosen.key]}, `{first.name}` has an AUC of {_with_interval(leader.auc)}."
    )
    for method in others:
        sentences.append(about_ranking(method, first, chosen.key))
    sentences += about_gaps(methods, chosen.key)
    sentences.append(about_calibration(methods, chosen.key))
    sentences += _about_selection(methods, available)
    return tuple(sentence for sentence in sentences if sentence)


def about_testing(groups: Sequence[GroupCounts]) -> str:
    """Testing rates, from the group tested least to the one tested most."""
    told = [g for g in groups if g.tested >= MANY and g.people - g.tested >= MANY]
    if not told:
        return ""
    if len(told) == 1:
        return f"{_rate(told[0])} of the rows were tested."
    ordered = sorted(told, key=lambda g: g.tested / g.people)
    return (
        f"In group {ordered[0].name}, {_rate(ordered[0])} were tested; in group "
        f"{ordered[-1].name}, {_rate(ordered[-1])}."
    )


def about_ranking(method: MethodResult, first: MethodResult, target: str) -> str:
    """Whether a method ranks people better than the first, as far as the interval allows."""
    judged = method.judgements[target]
    gain = judged.auc_gain
    if gain is None or not gain.estimable:
        why = f": {gain.reason}" if gain is not None and gain.reason else ""
        return f"`{method.name}` cannot be compared with `{first.name}`{why}."
    auc = f"AUC {_number(judged.auc.value)}, difference {_with_interval(gain)}"
    if not gain.excludes(0):
        return (
            f"`{method.name}` ranks people about as well as `{first.name}`, or the table does not "
            f"tell ({auc})."
        )
    direction = "better" if gain.value > 0 else "worse"
    return f"`{method.name}` ranks people {direction} than `{first.name}` ({auc})."


def about_gaps(methods: Sequence[MethodResult], target: str) -> list[str]:
    """How alike the groups are served: a sentence a method, or one if chance explains them all."""
    judged = [(m.name, m.judgements[target]) for m in methods if _has_gap(m.judgements[target])]
    if len(judged) < 2 or any(_beyond_chance(j) for _, j in judged):
        return [about_fairness(method, target) for method in methods]
    name, widest = max(judged, key=lambda pair: pair[1].roc_gap.value)
    assert widest.gap_pair is not None
    whose = "every method" if len(judged) == len(methods) else "every method that has one here"
    return [
        f"The ROC gaps of {whose} are within what groups dealt out at random would show; the "
        f"largest, {_with_interval(widest.roc_gap)}, is that of `{name}` between "
        f"{widest.gap_pair[0]} and {widest.gap_pair[1]}."
    ]


def about_calibration(methods: Sequence[MethodResult], target: str) -> str:
    """Whose predicted risks are clearly further off than the closest: intervals lie apart."""
    errors = {m.name: m.judgements[target].calibration_error for m in methods}
    errors = {name: error for name, error in errors.items() if error.estimable}
    if not errors:
        return ""
    best = min(errors, key=lambda name: errors[name].value)
    worse = [name for name, error in errors.items() if error.low > errors[best].high]
    if not worse:
        return ""
    told = [f"`{name}` ({_with_interval(errors[name])})" for name in worse]
    listed = told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
    return (
        f"The risks predicted by {listed} are further off than those of `{best}` "
        f"({_with_interval(errors[best])}; mean absolute calibration error)."
    )


def _has_gap(judged: Judgement) -> bool:
    return judged.roc_gap.estimable and judged.gap_pair is not None


def _beyond_chance(judged: Judgement) -> bool:
    return not judged.roc_gap.value <= judged.gap_by_chance


def about_fairness(method: MethodResult, target: str) -> str:
    """How differently a method ranks within the groups, against chance."""
    judged = method.judgements[target]
    if not _has_gap(judged):
        return ""
    assert judged.gap_pair is not None
    text = (
        f"`{method.name}`: the largest ROC gap, {_with_interval(judged.roc_gap)}, is between "
        f"{judged.gap_pair[0]} and {judged.gap_pair[1]}"
    )
    if isnan(judged.gap_by_chance):
        return f"{text}; what chance would show is not known."
    if not _beyond_chance(judged):
        return f"{text}; groups dealt out at random would show as much."
    signed = _signed(judged)
    return f"{text}, more than chance would show{signed}."


def _signed(judged: Judgement) -> str:
    assert judged.gap_pair is not None
    a, b = judged.gap_pair
    difference = judged.auc_differences.get((a, b))
    if difference is None or not difference.estimable or not difference.excludes(0):
        return ", though not clearly to the disadvantage of either in AUC"
    worse = b if difference.value > 0 else a
    return f"; {worse} is ranked worse (AUC difference {_with_interval(difference)})"


def _about_selection(methods: Sequence[MethodResult], available: dict[str, Target]) -> list[str]:
    """Methods whose quality among the tested is clearly not that among everybody."""
    if "dr" not in available or "tested" not in available:
        return []
    told = []
    for method in methods:
        tested, everybody = (method.judgements[key].auc for key in ("tested", "dr"))
        if tested.low > everybody.high:
            told.append(
                f"`{method.name}` looks better among the tested ({_number(tested.value)}) than it "
                f"is estimated to be among everybody ({_number(everybody.value)})."
            )
    return told


def warn(
    overlap: Overlap,
    nuisances: Sequence[Nuisance],
    methods: Sequence[MethodResult],
    targets: Sequence[Target],
    groups: Sequence[GroupCounts],
    rows: int,
    rows_used: int,
    suspicious: Mapping[str, str],
) -> tuple[str, ...]:
    """What a reader must know before believing a number."""
    warnings = [
        f"Column {name!r} may have been recorded after the decision to test: {sign}. If so, what "
        "is seen here overstates what a model could do at that time; leave it out: "
        f"--exclude {name}"
        for name, sign in suspicious.items()
    ]
    if not overlap.estimable:
        warnings.append(
            f"What holds for everybody is not estimable here ({overlap.reason}). The numbers among "
            "the tested say nothing of people unlike them."
        )
    elif overlap.effective_share < 0.2:
        warnings.append(
            "A few tested people stand for many: the effective number of tested people is "
            f"{100 * overlap.effective_share:.0f} % of the real one, and the intervals are wide."
        )
    if rows_used < rows:
        warnings.append(
            f"{rows_used:,} of {rows:,} rows were used (the row budget, --max-rows); models fitted "
            "to all rows may be better than shown."
        )
    outcome = nuisances[1]
    if outcome.log_loss >= outcome.log_loss_of_rate:
        warnings.append(
            "The features hardly predict what a test shows: no method can rank people well, and "
            "differences between methods mean little."
        )
    small = _too_small(methods, targets, groups)
    if small:
        warnings.append(
            f"Too few people were tested positive, or negative, to judge {', '.join(small)}: that "
            "is no sign of fairness to them."
        )
    for method in methods:
        if "ipw" not in method.judgements or "dr" not in method.judgements:
            continue
        ipw, dr = (method.judgements[key].auc for key in ("ipw", "dr"))
        if ipw.low > dr.high or ipw.high < dr.low:
            warnings.append(
                f"The two estimates for everybody disagree on `{method.name}` "
                f"({_number(ipw.value)} by inverse propensity, {_number(dr.value)} doubly robust): "
                "one of the models behind them is wrong."
            )
    return tuple(warnings)


def _too_small(
    methods: Sequence[MethodResult], targets: Sequence[Target], groups: Sequence[GroupCounts]
) -> list[str]:
    if len(groups) < 2 or not targets[0].available:
        return []
    judged = methods[0].judgements[targets[0].key]
    return [
        name for name, auc in judged.group_auc.items() if name != EVERYBODY and isnan(auc.value)
    ]


def _rate(group: GroupCounts) -> str:
    return f"{100 * group.tested / group.people:.0f} %"


def _number(value: float) -> str:
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def _with_interval(estimate: Estimate) -> str:
    return f"{_number(estimate.value)} [{_number(estimate.low)}, {_number(estimate.high)}]"
