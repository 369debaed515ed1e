"""A comparison in findings: all its sentences, and the rules by which they are said.

Sentences say what the intervals support: a difference whose interval holds zero, or that is smaller
than the stated floor, is not called a difference. They speak of the most telling target there is:
the truth, else everybody (doubly robust), else the tested, and say which. Where the best of several
methods, or several groups, are spoken of, the intervals hold for all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np
from scipy.stats import t as student

from dcem.compare.results import GroupCounts, Judgement, MethodResult, PlantedFamily, Standing
from dcem.estimation.findings import Finding
from dcem.estimation.results import EVERYBODY, Nuisance, Overlap, Target
from dcem.methods.choosing import DEFAULT, choose
from dcem.metrics.estimate import Estimate
from dcem.text import interval, listed, number, percent

PREFERRED = {
    "truth": "Against the truth",
    "dr": "Among everybody (doubly robust)",
    "tested": "Among the tested",
}
MANY = 10  # counts under it are not given away in a sentence
CLEAR = 0.05  # p-values below it are called clear


def conclude(
    methods: Sequence[MethodResult],
    targets: Sequence[Target],
    groups: Sequence[GroupCounts],
    standings: Mapping[str, Standing],
    reference: str,
    reference_group: str,
    floor: float,
) -> tuple[Finding, ...]:
    """Who is tested, which method ranks best, and how alike they serve the groups."""
    available = {target.key: target for target in targets if target.available}
    chosen = next((key for key in PREFERRED if key in available and key in standings), None)
    found = [about_testing(groups)]
    if chosen is None:
        why = targets[0].reason or "no AUC could be estimated"
        sentence = f"No method can be judged on this table: {why}."
        return tuple(filter(None, (*found, _found("not-estimable", "serious", sentence))))
    judged = {method.name: method.judgements[chosen] for method in methods}
    found.append(about_best(judged, standings[chosen], chosen, floor))
    if DEFAULT in judged:
        found.append(about_choice(standings[chosen], list(judged)))
    found += [
        about_gain(name, one, reference, floor)
        for name, one in judged.items()
        if one.auc_gain is not None
    ]
    found += about_groups(judged, reference_group, floor)
    found.append(about_calibration(judged))
    found += about_selection(methods, available)
    return tuple(finding for finding in found if finding is not None)


def about_testing(groups: Sequence[GroupCounts]) -> Finding | None:
    """Testing rates, from the group tested least to the one tested most."""
    told = [g for g in groups if g.tested >= MANY and g.people - g.tested >= MANY]
    if not told:
        return None
    ordered = sorted(told, key=lambda g: g.tested / g.people)
    rates = {g.name: g.tested / g.people for g in ordered}
    if len(told) == 1:
        sentence = f"{_rate(told[0])} of the rows were tested."
    else:
        sentence = (
            f"In group {ordered[0].name}, {_rate(ordered[0])} were tested; in group "
            f"{ordered[-1].name}, {_rate(ordered[-1])}."
        )
    return _found("tested", "fine", sentence, values=rates)


def about_choice(standing: Standing, compared: Sequence[str]) -> Finding:
    """Which method to take, by the rule that the fit follows too."""
    choice = choose(standing.best, standing.level_with, compared)
    values = {"method": choice.method, "reason": choice.reason}
    return _found("choice", "fine", f"Take `{choice.method}`: {choice.reason}.", values=values)


def about_best(
    judged: Mapping[str, Judgement], standing: Standing, target: str, floor: float
) -> Finding:
    """The method that ranks best, and which others cannot be told from it."""
    auc = judged[standing.best].auc
    sentence = f"{PREFERRED[target]}, `{standing.best}` has the highest AUC, {_with_interval(auc)}"
    behind = [name for name in standing.ahead_of if name not in standing.level_with]
    if behind:
        sentence += f"; clearly higher than {_names(behind)}"
    if standing.level_with:
        sentence += (
            f"; {'but ' * bool(behind)}not clearly higher than {_names(standing.level_with)}"
        )
    values = {
        "best": standing.best,
        "level_with": list(standing.level_with),
        **{f"ahead_of_{name}": _plain(by) for name, by in standing.ahead_of.items()},
    }
    severity = "caution" if standing.level_with else "fine"
    text = (
        "Differences hold for all pairs of methods at once, count the luck of training, and are "
        f"called clear from {number(floor)} upwards."
    )
    return _found("best", severity, f"{sentence}.", text if standing.ahead_of else "", "", values)


def about_gain(name: str, judged: Judgement, reference: str, floor: float) -> Finding:
    """Whether a method ranks people better than the reference, as far as the interval allows."""
    gain = judged.auc_gain
    assert gain is not None
    if not gain.estimable:
        why = f": {gain.reason}" if gain.reason else ""
        sentence = f"`{name}` cannot be compared with `{reference}`{why}."
        return _found("gain-unknown", "caution", sentence, values={"method": name})
    auc = f"AUC {number(judged.auc.value)}, difference {_with_interval(gain, signed=True)}"
    values = {"method": name, "gain": _plain(gain)}
    if not gain.excludes(0):
        sentence = (
            f"`{name}` ranks people about as well as `{reference}`, or the table does not tell "
            f"({auc})."
        )
        return _found("gain-unclear", "fine", sentence, values=values)
    direction = "better" if gain.value > 0 else "worse"
    if abs(gain.value) < floor:
        sentence = (
            f"`{name}` ranks people {direction} than `{reference}` by too little to matter ({auc})."
        )
        return _found("gain-small", "fine", sentence, values=values)
    key = "gain" if gain.value > 0 else "loss"
    return _found(
        key, "fine", f"`{name}` ranks people {direction} than `{reference}` ({auc}).", values=values
    )


# -- groups ------------------------------------------------------------------------------------


def clear_groups(judged: Judgement, floor: float) -> dict[str, Estimate]:
    """Groups ranked clearly worse or better than the reference group, by at least the floor."""
    return {
        name: by
        for name, by in judged.auc_against.items()
        if by.estimable and by.excludes(0) and abs(by.value) >= floor
    }


def clear_pairs(judged: Judgement) -> list[tuple[str, str]]:
    """Pairs of groups whose ROC curves differ by more than chance, adjusted for their number."""
    return [pair for pair, p in judged.gap_p_values.items() if p < CLEAR]


def about_groups(
    judged: Mapping[str, Judgement], reference_group: str, floor: float
) -> list[Finding]:
    """How alike the groups are served: a finding per method, or one if all are within chance."""
    told = {name: one for name, one in judged.items() if one.roc_gap.estimable}
    if not told:
        return []
    clear = [name for name, one in told.items() if clear_groups(one, floor) or clear_pairs(one)]
    if clear:
        return [about_fairness(name, told[name], reference_group, floor) for name in told]
    name, widest = max(told.items(), key=lambda pair: pair[1].roc_gap.value)
    assert widest.gap_pair is not None
    whose = "every method" if len(told) == len(judged) else "every method that has one here"
    if len(told) == 1:
        whose = f"`{name}`"
    sentence = (
        f"The ROC curves of no two groups differ by more than chance, for {whose}; the largest "
        f"gap, {_with_interval(widest.roc_gap)}, is that of `{name}` between "
        f"{widest.gap_pair[0]} and {widest.gap_pair[1]}."
    )
    return [_found("groups-alike", "fine", sentence, values={"gap": _plain(widest.roc_gap)})]


def about_fairness(name: str, judged: Judgement, reference_group: str, floor: float) -> Finding:
    """Which groups a method ranks worse or better than the reference group."""
    groups, pairs = clear_groups(judged, floor), clear_pairs(judged)
    values = {
        "method": name,
        "groups": list(groups) or sorted({group for pair in pairs for group in pair}),
        "reference_group": reference_group,
        "auc_against": {group: _plain(by) for group, by in groups.items()},
        "pairs": [list(pair) for pair in pairs],
        "gap": _plain(judged.roc_gap),
    }
    gap = f"largest ROC gap {_with_interval(judged.roc_gap)}"
    if groups:
        said = listed(
            [
                f"{group} {'worse' if by.value < 0 else 'better'} "
                f"({_with_interval(by, signed=True)} in AUC)"
                for group, by in groups.items()
            ]
        )
        sentence = f"`{name}` ranks {said} than {reference_group}; {gap}."
        text = "The intervals hold for all groups at once."
        return _found("groups-differ", "serious", sentence, text, _REMEDY, values)
    if pairs:
        a, b = max(pairs, key=lambda pair: -judged.gap_p_values[pair])
        sentence = (
            f"`{name}`: the ROC curves of {a} and {b} differ by more than chance, though neither "
            f"is clearly ranked worse in AUC; {gap}."
        )
        return _found("curves-differ", "caution", sentence, "", _REMEDY, values)
    sentence = f"`{name}`: no two groups' ROC curves differ by more than chance; {gap}."
    return _found("groups-alike", "fine", sentence, values=values)


_REMEDY = "look-by-group"


def about_calibration(judged: Mapping[str, Judgement]) -> Finding | None:
    """Whose predicted risks are clearly further off than the closest: intervals lie apart."""
    errors = {name: one.calibration_error for name, one in judged.items()}
    errors = {name: error for name, error in errors.items() if error.estimable}
    if not errors:
        return None
    best = min(errors, key=lambda name: errors[name].value)
    worse = [name for name, error in errors.items() if error.low > errors[best].high]
    if not worse:
        return None
    told = listed([f"`{name}` ({_with_interval(errors[name])})" for name in worse])
    sentence = (
        f"The risks predicted by {told} are further off than those of `{best}` "
        f"({_with_interval(errors[best])}; mean absolute calibration error)."
    )
    values = {name: _plain(error) for name, error in errors.items()}
    return _found("calibration", "caution", sentence, values=values)


def about_selection(
    methods: Sequence[MethodResult], available: Mapping[str, Target]
) -> list[Finding]:
    """Methods whose quality among the tested is clearly not that among everybody."""
    if "dr" not in available or "tested" not in available:
        return []
    told = []
    for method in methods:
        tested, everybody = (method.judgements[key].auc for key in ("tested", "dr"))
        if tested.low > everybody.high:
            sentence = (
                f"`{method.name}` looks better among the tested ({number(tested.value)}) than it "
                f"is estimated to be among everybody ({number(everybody.value)})."
            )
            values = {"method": method.name, "tested": tested.value, "dr": everybody.value}
            told.append(_found("flattered", "caution", sentence, values=values))
    return told


# -- warnings ----------------------------------------------------------------------------------


def warn(
    overlap: Overlap,
    nuisances: Sequence[Nuisance],
    methods: Sequence[MethodResult],
    targets: Sequence[Target],
    groups: Sequence[GroupCounts],
    rows: int,
    rows_used: int,
    suspicious: Mapping[str, str],
) -> tuple[Finding, ...]:
    """What a reader must know before believing a number."""
    warnings = [
        _found(
            "leak",
            "serious",
            f"Column {name!r} may have been recorded after the decision to test: {sign}.",
            "If so, what is seen here overstates what a model could do at that time.",
            "exclude",
            {"column": name},
        )
        for name, sign in suspicious.items()
    ]
    if not overlap.estimable:
        warnings.append(
            _found(
                "no-overlap",
                "serious",
                f"What holds for everybody is not estimable here ({overlap.reason}).",
                "The numbers among the tested say nothing of people unlike them.",
            )
        )
    elif overlap.effective_share < 0.2:
        warnings.append(
            _found(
                "little-overlap",
                "caution",
                "A few tested people stand for many: the effective sample size is "
                f"{percent(overlap.effective_share)} of the number tested.",
                "The intervals are wide.",
                values={"effective_share": overlap.effective_share},
            )
        )
    if rows_used < rows:
        warnings.append(
            _found(
                "row-budget",
                "caution",
                f"{rows_used:,} of {rows:,} rows were used (the row budget).",
                "Models fitted to all rows may be better than shown.",
                "more-rows",
                {"rows": rows, "rows_used": rows_used},
            )
        )
    outcome = next((one for one in nuisances if one.name == "what a test would show"), None)
    if outcome is not None and outcome.log_loss >= outcome.log_loss_of_rate:
        warnings.append(
            _found(
                "unpredictable",
                "caution",
                "The features hardly predict what a test shows.",
                "No method can rank people well, and differences between methods mean little.",
            )
        )
    small = _too_small(methods, targets, groups)
    if small:
        warnings.append(
            _found(
                "small-groups",
                "caution",
                f"Too few people were tested positive, or negative, to judge {', '.join(small)}.",
                "That is not a sign of fairness to them.",
                values={"groups": small},
            )
        )
    for method in methods:
        if "ipw" not in method.judgements or "dr" not in method.judgements:
            continue
        ipw, dr = (method.judgements[key].auc for key in ("ipw", "dr"))
        if ipw.low > dr.high or ipw.high < dr.low:
            warnings.append(
                _found(
                    "estimates-disagree",
                    "caution",
                    f"The two estimates for everybody disagree on `{method.name}` "
                    f"({number(ipw.value)} by inverse propensity, {number(dr.value)} doubly "
                    "robust).",
                    "One of the models behind them is wrong.",
                    values={"method": method.name, "ipw": ipw.value, "dr": dr.value},
                )
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


# -- planted outcomes --------------------------------------------------------------------------

Recovered = Mapping[str, np.ndarray]  # method -> AUC of each repetition


def advise(
    families: Sequence[PlantedFamily],
    recovered: Mapping[str, Recovered],
    ceilings: Mapping[str, float],
    level: float,
    plain: str,
) -> tuple[Finding, ...]:
    """One finding per family of planted outcomes, then what they amount to.

    Parameters
    ----------
    families
        What was planted.
    recovered
        Family -> method -> AUC of each repetition, paired across methods.
    ceilings
        Family -> mean AUC of the planted risk itself: nobody can do better.
    level
        At which something counts as clear, for all comparisons of all families together
        (Bonferroni). The spread of a difference over repetitions is pooled over families.
    plain
        The family that those in which an assumption fails are compared with.
    """
    found, leaders = [], {}
    known = {name: complete(scores) for name, scores in recovered.items()}
    known = {name: scores for name, scores in known.items() if _repetitions(scores) >= 2}
    n_methods = len(next(iter(recovered.values())))
    # the best of each family is picked by looking: all pairs count
    strict = 1 - (1 - level) / max(len(known) * n_methods * (n_methods - 1) // 2, 1)
    for family in families:
        if family.name not in known:
            sentence = (
                f"{family.name.capitalize()}: the planted tables held too few of one outcome to "
                "rank people by it, so this family says nothing."
            )
            found.append(_found("planted-nothing", "caution", sentence))
            continue
        scores = known[family.name]
        best, beaten, level_with = leading(family.name, known, strict)
        leaders[family.name] = {best, *level_with}
        sentence = (
            f"{family.name.capitalize()}: `{best}` has the highest AUC, "
            f"{number(scores[best].mean())} of the {number(ceilings[family.name])} possible"
        )
        if level_with:
            sentence += f"; not clearly better than {_names(level_with)}"
        if beaten:
            sentence += f"; clearly better than {_names(beaten)}"
        values = {"family": family.name, "best": best, "beaten": beaten, "level_with": level_with}
        found.append(_found("planted", "fine", f"{sentence}.", values=values))
    kept = [f.name for f in families if not f.violates and f.name in leaders]
    always = sorted(set.intersection(*(leaders[name] for name in kept)) if kept else set())
    if not kept:
        sentence = "Where all assumptions hold, nothing can be said of any method."
    elif always:
        sentence = (
            f"Where all assumptions hold, {_names(always)} "
            f"{'is' if len(always) == 1 else 'are'} among the best in each family planted here."
        )
    else:
        sentence = (
            "Where all assumptions hold, no method is among the best in every family: which one "
            "serves this table depends on the kind of outcome."
        )
    found.append(_found("planted-summary", "fine", sentence, values={"always": always}))
    broken = [f for f in families if f.violates and {f.name, plain} <= leaders.keys()]
    found += _harms(broken, recovered, plain, level)
    sentence = (
        "Planted outcomes are not the real one: a method that fails here should not be trusted, "
        "one that succeeds may still fail on an outcome of another kind."
    )
    found.append(_found("planted-limits", "fine", sentence))
    return tuple(found)


def leading(
    family: str, known: Mapping[str, Recovered], level: float
) -> tuple[str, list[str], list[str]]:
    """The method with the highest mean, those clearly below it, and those that are not."""
    scores = known[family]
    best = max(scores, key=lambda name: float(scores[name].mean()))
    beaten: list[str] = []
    level_with: list[str] = []
    for name in scores:
        if name != best:
            differences = [of[best] - of[name] for of in known.values()]
            here = scores[best] - scores[name]
            clear = here.mean() > _reach(differences, len(here), level)
            (beaten if clear else level_with).append(name)
    return best, beaten, level_with


def _harms(
    broken: Sequence[PlantedFamily],
    recovered: Mapping[str, Recovered],
    plain: str,
    level: float,
) -> list[Finding]:
    """What happens when an assumption fails, against the same outcomes without that."""
    lost = {
        (family.name, method): recovered[plain][method] - values
        for family in broken
        for method, values in recovered[family.name].items()
    }
    lost = {key: values[~np.isnan(values)] for key, values in lost.items()}
    lost = {key: values for key, values in lost.items() if len(values) >= 2}
    strict = 1 - (1 - level) / max(len(lost), 1)
    found = []
    for family in broken:
        mine = {method: values for (name, method), values in lost.items() if name == family.name}
        clearly = [
            method
            for method, values in mine.items()
            if values.mean() > _reach(list(lost.values()), len(values), strict)
        ]
        if clearly and len(clearly) == len(mine):
            sentence = (
                f"Where {family.violates}, every method recovers less: no method repairs that."
            )
        elif clearly:
            sentence = (
                f"Where {family.violates}, {_names(clearly)} clearly "
                f"recover{'s' if len(clearly) == 1 else ''} less; for the others the repetitions "
                "do not tell."
            )
        else:
            sentence = (
                f"Where {family.violates}, these repetitions show no clear loss in ranking; "
                "predicted risks can still be wrong."
            )
        values = {"family": family.name, "lose": clearly}
        found.append(_found("planted-harm", "caution", sentence, values=values))
    return found


def _reach(differences: Sequence[np.ndarray], repetitions: int, level: float) -> float:
    """Half the width of Student's interval of a mean, its spread pooled over several."""
    freedom = sum(len(one) - 1 for one in differences)
    square = sum(float(np.sum((one - one.mean()) ** 2)) for one in differences)
    error = np.sqrt(square / freedom / repetitions)
    return float(student.ppf((1 + level) / 2, freedom) * error)


def complete(scores: Recovered) -> Recovered:
    """The repetitions in which every method has an AUC: one of a single outcome has none."""
    kept = ~np.isnan(np.stack(list(scores.values()))).any(axis=0)
    return {name: values[kept] for name, values in scores.items()}


def _repetitions(scores: Recovered) -> int:
    return len(next(iter(scores.values())))


# -- words -------------------------------------------------------------------------------------


def _found(
    key: str,
    severity: str,
    headline: str,
    text: str = "",
    remedy: str = "",
    values: Mapping[str, Any] | None = None,
) -> Finding:
    groups = tuple((values or {}).get("groups", ()))
    return Finding(
        key, severity, _ABOUT.get(key, "methods"), groups, values or {}, remedy, headline, text
    )


# What a finding is about, where it is not the methods and how they rank people.
_ABOUT = {
    "tested": "testing",
    "leak": "features",
    "no-overlap": "overlap",
    "little-overlap": "overlap",
    "groups-differ": "groups",
    "curves-differ": "groups",
    "groups-alike": "groups",
    "small-groups": "groups",
    "calibration": "calibration",
    **dict.fromkeys(
        ("planted", "planted-nothing", "planted-summary", "planted-harm", "planted-limits"),
        "planted",
    ),
}


def _rate(group: GroupCounts) -> str:
    return percent(group.tested / group.people)


def _names(names: Sequence[str]) -> str:
    return listed([f"`{name}`" for name in names])


def _with_interval(estimate: Estimate, signed: bool = False) -> str:
    ends = interval(estimate.low, estimate.high, "gain" if signed else "score")
    return f"{number(estimate.value, sign=signed)} {ends}".rstrip()


def _plain(estimate: Estimate) -> dict[str, float]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}
