"""A comparison in findings: all its sentences, and the rules by which they are said.

Sentences say what the intervals support: a difference whose interval holds zero, or that is smaller
than the stated floor, is not called a difference. They speak of the most telling target there is:
the truth, else everybody (doubly robust), else the tested, and say which. Where the best of several
methods, or several groups, are spoken of, the intervals hold for all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dcem.compare.results import (
    ComparedGroup,
    Judgement,
    MethodResult,
    Standing,
    TableComparison,
    shown_group_counts,
)
from dcem.estimation.effects import drives_testing_more
from dcem.estimation.findings import Finding, clearly_off, too_high_or_low
from dcem.estimation.results import EVERYBODY, Effect
from dcem.methods.choosing import DEFAULT, PREFERRED, SIMPLE_RIVALS, Choice, choose
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import SMALL, WITHHELD
from dcem.text import group, listed, number, percent
from dcem.text import groups as named

# Whom each target is about.
AMONG = {
    "truth": "Against the truth",
    "dr": "Among everybody (doubly robust)",
    "ipw": "Among everybody (inverse propensity)",
    "tested": "Among the tested",
}
CLEAR = 0.05  # p-values below it are called clear

_OUTSIDE = "Claim nothing about people unlike the tested, or test some of them."
_BY_GROUP = "Look at every group before you set a threshold."

# Key of a finding -> the part of a report it belongs to, how serious it is, and what to do.
KEYS = {
    "tested": ("testing", "fine", ""),
    "everybody-tested": (
        "testing",
        "caution",
        "Unless everybody really was tested, say who was (`tested`) or which label value means "
        "untested (`untested_value`), and compare again.",
    ),
    "choice": ("methods", "fine", ""),
    "best": ("methods", "fine", ""),
    "not-estimable": ("methods", "serious", "Look at who was tested before you choose a method."),
    "gain": ("methods", "fine", ""),
    "loss": ("methods", "fine", ""),
    "gain-small": ("methods", "fine", ""),
    "gain-unclear": ("methods", "fine", ""),
    "gain-unknown": ("methods", "caution", "Do not choose it for its gain."),
    "groups-differ": ("groups", "caution", f"Say for whom it is worse. {_BY_GROUP}"),
    "curves-differ": ("groups", "caution", _BY_GROUP),
    "groups-alike": ("groups", "fine", ""),
    "small-groups": (
        "groups",
        "caution",
        "Merge small groups, or learn more about them; do not report them as equal.",
    ),
    "small-draw": (
        "groups",
        "caution",
        "Compare again with more rows (`max_rows`); until then, do not report them as equal.",
    ),
    "groups-beyond": (
        "groups",
        "caution",
        "Claim nothing about untested people of these groups, or test more of them.",
    ),
    "calibration": (
        "calibration",
        "caution",
        "Use such scores to rank people; recalibrate them before they are read as risks.",
    ),
    "neither-risk-nor-rank": (
        "calibration",
        "caution",
        "Do not use such scores: they do not clearly rank people better than chance either.",
    ),
    "groups-off": (
        "groups",
        "caution",
        "Say for whom its risks are off, and do not use the same threshold for all groups.",
    ),
    "flattered": ("methods", "caution", "Judge it by the estimates for everybody."),
    "leak": (
        "features",
        "serious",
        "Leave it out (`exclude`), unless you know that it is recorded before the decision.",
    ),
    "no-overlap": ("overlap", "serious", _OUTSIDE),
    "little-overlap": (
        "overlap",
        "caution",
        "Rely on the intervals, not on the point estimates; test people who are seldom tested.",
    ),
    "reach": ("overlap", "note", "Run an audit before you say for whom this holds."),
    "judged-later": ("methods", "note", ""),
    "row-budget": ("methods", "note", "Compare again with more rows (`max_rows`)."),
    "unpredictable": ("methods", "caution", "Look for features that predict the outcome better."),
    "estimates-disagree": (
        "methods",
        "caution",
        "Trust neither number alone; look at who had a chance of being tested.",
    ),
    "swap-set": ("methods", "note", ""),
    "other-assumption": (
        "methods",
        "caution",
        "Say which of the two you assume; these numbers cannot decide it.",
    ),
    "drives-testing": (
        "features",
        "note",
        "Ask those who decide why it matters more for their decision than for the outcome.",
    ),
    "bounds": ("bounds", "note", "Have somebody review the cases in which one cannot say."),
    "bounds-best": ("bounds", "note", ""),
    "bounds-unknown": ("bounds", "caution", "Do not ask for bounds, or test people out of reach."),
    "lead-by-decider": ("deciders", "note", ""),
    "contraction": ("deciders", "fine", ""),
    "deciders-refuted": ("deciders", "caution", "Record how people are assigned to deciders."),
    "beyond-deciders": ("deciders", "caution", "Report the bounds by decider, not this number."),
    "planted": ("planted", "fine", ""),
    "planted-nothing": ("planted", "caution", ""),
    "planted-summary": ("planted", "fine", ""),
    "planted-harm": ("planted", "caution", "Use it only where you know that its assumption holds."),
    "planted-limits": ("planted", "fine", ""),
}


def found(key: str, headline: str, text: str = "", severity: str = "", /, **values: Any) -> Finding:
    """A finding of a comparison, with the values behind its sentence."""
    about, usual, remedy = KEYS[key]
    groups = tuple(values.get("groups", ()))
    return Finding(key, severity or usual, about, groups, values, headline, text, remedy)


def conclusions(comparison: TableComparison) -> Iterator[Finding]:
    """Who is tested, which method ranks best, and how alike they serve the groups."""
    floor, chosen = comparison.floor, told_by(comparison)
    yield from about_testing(comparison.groups)
    methods = recommended_first(comparison)
    if chosen is None:
        why = comparison.targets[0].reason or "no AUC could be estimated"
        yield found("not-estimable", f"No method can be judged on this table: {why}.")
        return
    standing = comparison.standings[chosen]
    judged = {method.name: method.judgements[chosen] for method in methods}
    whom = whom_beyond(comparison)
    single = [method.name for method in methods if method.members < 2]
    yield about_best(judged, standing, chosen, floor, whom, single)
    taken = methods[0].name
    if DEFAULT in judged:
        reason = _choice(standing, list(judged), chosen).reason
        sentence = f"Take `{taken}`: {reason}."
        yield found("choice", sentence, method=taken, reason=reason)
    own = judged[taken]
    if own.auc_gain is not None and comparison.reference in SIMPLE_RIVALS:
        ahead = (standing.best, *standing.level_with)
        yield about_gain(taken, own, comparison.reference, floor, comparison.reference in ahead)
    yield from about_groups(taken, own, comparison.reference_group, floor)
    yield from about_calibration(judged, taken)
    yield from about_group_risks(taken, own)
    if {"dr", "tested"} <= {target.key for target in comparison.targets if target.available}:
        yield from about_selection(methods[0], whom)
    whose = f"the score of `{taken}`"
    yield from about_drivers(whose, comparison.testing_effects, methods[0].effects)


def told_by(comparison: TableComparison) -> str | None:
    """The most telling target that orders the methods; None without any."""
    ordered = {t.key for t in comparison.targets if t.available} & comparison.standings.keys()
    return next((key for key in PREFERRED if key in ordered), None)


def recommended(comparison: TableComparison) -> MethodResult | None:
    """The method to take, by the target that tells most; none that was given the truth.

    The rule is that of `dcem fit`. Where the default was not compared, it is the best of the rest.
    """
    target = told_by(comparison)
    if target is None:
        return None
    standing = comparison.standings[target]
    by_name = {method.name: method for method in comparison.methods}
    taken = _choice(standing, list(by_name), target).method
    return by_name.get(taken, by_name[standing.best])


def _choice(standing: Standing, compared: Sequence[str], target: str) -> Choice:
    return choose(standing.best, standing.level_with, compared, everybody=target != "tested")


def recommended_first(comparison: TableComparison) -> list[MethodResult]:
    """All methods, the one to take first: what is said of it comes before the rest."""
    taken = recommended(comparison)
    return sorted(comparison.methods, key=lambda one: one is not taken)


def concerns(finding: Finding, method: str) -> bool:
    """Whether a finding is about this method or about all, rather than about others."""
    of, several = (finding.values.get(key) for key in ("method", "methods"))
    return of in (None, method) and method in (several or [method])


def whom_beyond(comparison: TableComparison) -> str:
    """Of whom the estimates speak that let the tested represent others."""
    robust = (target.whom for target in comparison.targets if target.key == "dr")
    return next(robust, EVERYBODY)


def about_testing(groups: Sequence[ComparedGroup]) -> list[Finding]:
    """Testing rates, from the group tested least to the one tested most, as the counts show."""
    counts = zip(groups, shown_group_counts(groups)[:-1], strict=True)
    shown = [g for g, one in counts if not {SMALL, WITHHELD} & {one["people"], one["tested"]}]
    rates = {g.name: g.tested / g.people for g in sorted(shown, key=lambda g: g.tested / g.people)}
    if not rates:
        return []
    (least, low), *_, (most, high) = [*rates.items()] * 2
    whose = "of the rows" if least == "all" else f"of group {least}"
    sentence = f"{percent(low)} {whose} were tested."
    if len(rates) > 1:
        sentence = (
            f"In group {least}, {percent(low)} were tested; in group {most}, {percent(high)}."
        )
    return [found("tested", sentence, **rates)]


def about_best(
    judged: Mapping[str, Judgement],
    standing: Standing,
    target: str,
    floor: float,
    whom: str = EVERYBODY,
    single: Sequence[str] = (),
) -> Finding:
    """The method that ranks best, and which others cannot be distinguished from it.

    `single` are the methods without repeated fits, which alone show chance in training.
    """
    best, level = standing.best, list(standing.level_with)
    behind = [name for name in standing.ahead_of if name not in level]
    among = AMONG[target].replace(EVERYBODY, whom)
    sentence = f"{among}, `{best}` has the highest AUC, {judged[best].auc:score}"
    sentence += f"; clearly higher than {methods_named(behind)}" if behind else ""
    sentence += (
        f"; {'but ' * bool(behind)}not clearly higher than {methods_named(level)}" if level else ""
    )
    text = (
        "Intervals of the differences hold for all pairs of methods at once"
        f"{_chance_included(list(judged), single)}. Differences below {number(floor)} are not "
        "called clear."
    )
    return found(
        "best",
        f"{sentence}.",
        text if standing.ahead_of else "",
        "note" if level else "fine",
        best=best,
        level_with=level,
        **{f"ahead_of_{name}": by for name, by in standing.ahead_of.items()},
    )


def _chance_included(methods: Sequence[str], single: Sequence[str]) -> str:
    """Whether chance in training is part of the intervals; it shows where fits are repeated."""
    if len(single) == len(methods):
        return ", but do not include chance in training"
    return " and include chance in training" + (
        f", except that of {methods_named(single)}" if single else ""
    )


def about_gain(
    name: str, judged: Judgement, reference: str, floor: float, level: bool = False
) -> Finding:
    """Whether a method ranks people better than the reference, as far as the interval allows.

    A reference that is `level` with the best of all methods is not clearly worse.
    """
    gain = judged.auc_gain
    assert gain is not None
    if not gain.estimable:
        why = f": {gain.reason}" if gain.reason else ""
        sentence = f"`{name}` cannot be compared with {rival_named(reference)}{why}."
        return found("gain-unknown", sentence, method=name)
    better, rival = "better" if gain.value > 0 else "worse", rival_named(reference)
    if not gain.excludes(0) or (level and gain.value > 0):
        key, says = "gain-unclear", f"about as well as {rival}, as far as this table can tell"
    elif abs(gain.value) < floor:
        key, says = "gain-small", f"{better} than {rival} by too little to matter"
    else:
        key, says = "gain" if gain.value > 0 else "loss", f"{better} than {rival}"
    auc = f"AUC {number(judged.auc.value)}, difference {gain:gain}"
    values = {"method": name, "reference": reference, "gain": gain}
    return found(key, f"`{name}` ranks people {says} ({auc}).", **values)


def rival_named(reference: str) -> str:
    """The method that gains are counted from: `boosted trees on the tested`."""
    plain = SIMPLE_RIVALS.get(reference)
    return f"{plain} on the tested" if plain else f"`{reference}`"


def methods_named(names: Sequence[str]) -> str:
    """Methods in a sentence."""
    return listed([f"`{name}`" for name in names])


# -- groups ------------------------------------------------------------------------------------


def clear_groups(judged: Judgement, floor: float) -> dict[str, Estimate]:
    """Groups ranked clearly worse or better than the reference group, by at least the floor."""
    return {
        name: by
        for name, by in judged.auc_against.items()
        if by.estimable and by.excludes(0) and abs(by.value) >= floor
    }


def clear_pairs(judged: Judgement) -> list[tuple[str, str]]:
    """Pairs of groups whose ROC curves differ by more than chance, the clearest first."""
    p_values = judged.gap_p_values
    return sorted(
        (pair for pair, p in p_values.items() if p < CLEAR), key=lambda one: p_values[one]
    )


def not_compared(judged: Judgement) -> list[str]:
    """Groups of which nothing could be estimated."""
    return [name for name, auc in judged.group_auc.items() if not auc.estimable]


def _but_for(left: Sequence[str]) -> str:
    return f"; {named(left)} could not be compared" if left else ""


def worse_or_better(groups: Mapping[str, Estimate]) -> str:
    """`b worse (-.067 [-.114, -.021] in AUC) and c better (...)`."""
    return listed(
        [
            f"{group(name)} {'worse' if by.value < 0 else 'better'} ({by:gain} in AUC)"
            for name, by in groups.items()
        ]
    )


def about_groups(
    name: str, judged: Judgement, reference_group: str, floor: float
) -> Iterator[Finding]:
    """Which groups a method ranks worse or better than the reference group, if that is known."""
    if not judged.roc_gap.estimable:
        return
    groups, pairs = clear_groups(judged, floor), clear_pairs(judged)
    text = ""
    if groups:
        said = f" ranks {worse_or_better(groups)} than {group(reference_group)}"
        key, says = "groups-differ", said
        text = "The intervals hold for all groups at once."
    elif pairs:
        key, says = (
            "curves-differ",
            f": the ROC curves of {named(pairs[0])} differ by more than chance, though neither is "
            "clearly ranked worse in AUC",
        )
    else:
        key, says = "groups-alike", ": no two groups' ROC curves differ by more than chance"
    left = not_compared(judged)
    yield found(
        key,
        f"`{name}`{says}; largest ROC gap {judged.roc_gap:score}{_but_for(left)}.",
        text,
        method=name,
        groups=list(groups) or sorted({group for pair in pairs for group in pair}),
        reference_group=reference_group,
        auc_against=groups,
        pairs=[list(pair) for pair in pairs],
        gap=judged.roc_gap,
        not_compared=left,
    )


def about_calibration(judged: Mapping[str, Judgement], taken: str) -> list[Finding]:
    """Methods whose predicted risks are clearly further off than the closest: intervals lie apart.

    Of these, scores whose AUC is not clearly above a half are not worth a recalibration. It is a
    caution for the method that is `taken`, and a note for the others.
    """
    errors = {name: one.calibration_error for name, one in judged.items()}
    errors = {name: error for name, error in errors.items() if error.estimable}
    best = min(errors, key=lambda name: errors[name].value, default="")
    worse = [name for name, error in errors.items() if error.low > errors[best].high]
    useful = [name for name in worse if judged[name].auc.low > 0.5]
    useless = [name for name in worse if name not in useful]
    findings = []
    for key, names in (("calibration", useful), ("neither-risk-nor-rank", useless)):
        own = taken in names
        names = [taken] if own else names
        if names:
            listing = listed([f"`{name}` ({errors[name]:error})" for name in names])
            sentence = (
                f"The risks predicted by {listing} are further off than those of `{best}` "
                f"({errors[best]:error}; mean absolute calibration error)."
            )
            severity = "" if own else "note"
            findings.append(found(key, sentence, "", severity, methods=names, errors=errors))
    return findings


def about_group_risks(name: str, judged: Judgement) -> list[Finding]:
    """Groups whose predicted risks are clearly off."""
    off = clearly_off(judged.calibration_in_the_large)
    if not off:
        return []
    sentence = f"Read as risks, the scores of `{name}` are on average {too_high_or_low(off)}."
    text = "Mean score minus the estimated share of positives in the group, with 95 % intervals."
    return [found("groups-off", sentence, text, method=name, groups=list(off), errors=off)]


def about_selection(method: MethodResult, whom: str = EVERYBODY) -> Iterator[Finding]:
    """That a method is clearly better among the tested than among everybody in reach, if so."""
    tested, everybody = (method.judgements[key].auc for key in ("tested", "dr"))
    if tested.low > everybody.high:
        sentence = (
            f"`{method.name}` looks better among the tested ({number(tested.value)}) than it "
            f"is estimated to be among {whom} ({number(everybody.value)})."
        )
        values = {"tested": tested.value, "dr": everybody.value}
        yield found("flattered", sentence, method=method.name, **values)


def about_drivers(whose: str, testing: Sequence[Effect], score: Sequence[Effect]) -> list[Finding]:
    """Columns that count for more in who is tested than in a score."""
    columns = drives_testing_more(testing, score)
    if not columns:
        return []
    listing = listed(
        [
            f"`{name}` ({percent(of)} against {percent(in_score)})"
            for name, (of, in_score) in columns.items()
        ]
    )
    sentence = (
        f"{listing} matter{'s' * (len(columns) == 1)} more for who is tested than for {whose}."
    )
    text = "Shares of the permutation importance. Every model that was examined agrees."
    return [found("drives-testing", sentence, text, columns=columns)]
