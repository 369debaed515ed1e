"""The first screen of a comparison: which model, how good for everybody, how fair, how sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isnan

from dcem.compare.findings import (
    clear_groups,
    clear_pairs,
    concerns,
    not_compared,
    recommended,
    rival_named,
    worse_or_better,
)
from dcem.compare.results import Judgement, MethodResult, TableComparison
from dcem.estimation.findings import Finding, clearly_off, too_high_or_low
from dcem.estimation.hidden_cause import in_words
from dcem.estimation.results import Target
from dcem.methods.choosing import DEFAULT, PREFERRED, SIMPLE_RIVALS
from dcem.metrics.estimate import Estimate
from dcem.report import document as doc
from dcem.report.shared import listed_findings, with_worst
from dcem.text import estimated as in_form
from dcem.text import group, listed, number, of_100, percent
from dcem.text import groups as named

# findings that the verdict words itself
TOLD = ("groups-differ", "curves-differ", "groups-off", "everybody-tested")
PRESSING = ("serious", "caution")
WIDE = 0.02  # a gain that may be as large as that is not ruled out
ALIKE = 0.05  # groups whose ROC gap is at most that are called about equally well ranked


def of_whom(target: Target) -> str:
    """Whom a number is about, after its name: "AUC of the tested alone"."""
    if target.key == "truth":
        return "of everybody, judged by the truth"
    whom, *_ = target.name.split(", ")
    return "of the tested alone" if target.key == "tested" else f"estimated for {whom}"


def estimated(target: Target) -> str:
    """Whom a picture is about, in its title; how they were estimated is in its footnote."""
    whom, *by = target.name.split(", ")
    return f"{whom}, estimated" if by else whom


def footnote(comparison: TableComparison, target: Target) -> str:
    """What the lines beside the points are, and which estimate it is."""
    _, *by = target.name.split(", ")
    return f"With {100 * comparison.level:g} % intervals{f'; estimates: {by[0]}' if by else ''}."


def ranked_right(auc: Estimate) -> str:
    """What an AUC means, without its full stop."""
    times, about = of_100(auc.value, auc.low, auc.high)
    return (
        "Of two people, one with the outcome and one without, it ranks the right one higher "
        f"{times} times in 100 ({about}; by chance, 50)"
    )


def shown_targets(comparison: TableComparison) -> list[Target]:
    """The targets that have numbers, the most telling first."""
    available = {target.key: target for target in comparison.targets if target.available}
    return [available[key] for key in PREFERRED if key in available]


def opening(comparison: TableComparison) -> doc.Opening:
    """The answer to the question that a comparison is asked."""
    targets = shown_targets(comparison)
    best = recommended(comparison)
    if not targets or best is None:
        reason = comparison.targets[0].reason or "no AUC could be estimated"
        answer = "No method can be judged on this table"
        verdict = doc.Verdict("serious", answer, (f"Why: {reason}.",), "Nothing can be estimated.")
        return doc.Opening(verdict, (), None, limits(comparison))
    target = targets[0]
    return doc.Opening(
        verdict_on(comparison, best, target),
        key_numbers(comparison, best, target),
        picture(comparison, best, target),
        limits(comparison),
    )


def verdict_on(comparison: TableComparison, best: MethodResult, target: Target) -> doc.Verdict:
    """Which method, how good, how fair, how sure."""
    judged = best.judgements[target.key]
    standing = comparison.standings[target.key]
    ahead = [standing.best, *standing.level_with]
    level = [name for name in ahead if name != best.name] if best.name in ahead else []
    everybody = target.key != "tested"
    sentences = [f"{ranked_right(judged.auc)}: AUC {of_whom(target)}."]
    if ahead == [best.name] and len(comparison.methods) > 1:
        oracle = any(method.uses_truth for method in comparison.methods)
        unlike = " that were not given the truth" * oracle
        sentences.append(f"It is clearly better than all others compared{unlike}.")
    sentences += filter(
        None, [of_the_record(comparison), fairness(judged, comparison), risks_of_groups(judged)]
    )
    if comparison.stated_rates and target.key != "truth":
        sentences.append(
            f"Numbers are corrected for the errors of the test: {comparison.stated_rates}."
        )
    if comparison.known_rates and target.key not in ("truth", "tested"):
        sentences.append(f"Numbers for {target.whom} use the known {comparison.known_rates}.")
    plain = _plain_rivals(comparison, best, target)
    if level:
        sentences.append(_rivals(best.name, standing.best, [] if plain else level))
    unfair = bool(clear_groups(judged, comparison.floor) or clear_pairs(judged))
    all_by_chance = _all_by_chance(comparison, target)
    if plain and not all_by_chance:
        sentences.insert(0, _difference(best, target, comparison.reference))
    maybe_chance = judged.auc.low <= 0.5
    lost = not_compared(judged)
    off = clearly_off(judged.calibration_in_the_large)
    doubted = unfair or maybe_chance or lost or off
    if all_by_chance:
        sentences[0] = f"`{best.name}` is the one to use, if any. {sentences[0]}"
    severity = "caution" if doubted else "note" if plain else "fine"
    severity = severity if everybody else "serious"
    verdict = doc.Verdict(
        severity, "", tuple(filter(None, sentences)), _certainty(comparison, best, target)
    )
    pressing = [f for f in about_method(comparison, best.name) if f.severity in PRESSING]
    verdict = with_worst(verdict, listed_findings(pressing), TOLD)
    cares = [
        *(["it may rank no better than chance"] if maybe_chance else []),
        *(["it does not serve all groups alike"] if unfair else []),
        *([f"its risks are off for {named(list(off))}"] if off else []),
        *([f"{named(lost)} cannot be judged"] if lost else []),
    ]
    worst = verdict.worst
    if worst is not None and worst.severity != "serious":
        verdict = replace(verdict, severity=worst.severity)
        if plain and not all_by_chance:  # which the first line says
            said = (*verdict.sentences[:1], f"{worst.headline}.", *verdict.sentences[1:])
            verdict = replace(verdict, worst=None, sentences=said)
    pressing.sort(key=lambda finding: PRESSING.index(finding.severity))
    why = cares or [_in_passing(finding) for finding in pressing[:1]]
    care = f", with care: {', and '.join(why)}" * bool(why)
    answer = f"Use `{best.name}`{care * (verdict.severity in PRESSING)}"
    if all_by_chance:
        answer = "No method is shown to rank people better than chance"
    elif plain:
        answer = rank_as_well(comparison, best, target, plain)
        answer += "; nothing is known of everybody else" * (not everybody)
    elif not everybody:
        by_rule = "" if best.name == standing.best else f"Use `{best.name}`, the default: "
        leads = f"`{standing.best}` ranks the tested best"
        answer = f"{by_rule}{leads}; nothing is known of everybody else"
    return replace(verdict, answer=answer)


def clear_gain(comparison: TableComparison, method: MethodResult, target: Target) -> bool:
    """Whether a method is clearly better than the simple rival that it is compared with.

    It is if its gain is clear, and if the rival is clearly behind the best method as well, by
    intervals that hold for all pairs at once: the first screen calls no lead both chance and more.
    """
    gain, standing = method.judgements[target.key].auc_gain, comparison.standings.get(target.key)
    if (
        gain is None
        or standing is None
        or comparison.reference in (standing.best, *standing.level_with)
    ):
        return False
    return bool(gain.low > 0 and gain.value >= comparison.floor)


def _plain_rivals(
    comparison: TableComparison, best: MethodResult, target: Target
) -> tuple[str, ...]:
    """The simple rivals that a method does not clearly beat; the best of them first."""
    gain, reference = best.judgements[target.key].auc_gain, comparison.reference
    if reference not in SIMPLE_RIVALS or gain is None or not gain.estimable:
        return ()
    if clear_gain(comparison, best, target):
        return ()
    standing = comparison.standings[target.key]
    ahead = [name for name in (standing.best, *standing.level_with) if name in SIMPLE_RIVALS]
    return tuple(dict.fromkeys([reference, *ahead]))


def rank_as_well(
    comparison: TableComparison, best: MethodResult, target: Target, plain: Sequence[str]
) -> str:
    """That these simple rivals rank as well as a method, and which is better calibrated."""
    judged, rival = best.judgements[target.key], SIMPLE_RIVALS[plain[0]]
    by_name = {one.name: one.judgements[target.key] for one in comparison.methods}
    errors = [by_name[name].calibration_error for name in plain]
    singular = len(plain) == 1 and not rival.endswith("s")
    gain = judged.auc_gain
    assert gain is not None
    as_well = "better" if gain.high < 0 else "as well"
    unsure = gain.high >= WIDE or gain.low > 0
    wide = ", as far as this table can tell" * (unsure and as_well == "as well")
    who = listed([SIMPLE_RIVALS[name] for name in plain])
    said = f"Plain {who} on the tested rank{'s' * singular} {as_well}{wide}"
    own = judged.calibration_error
    if not all(error.estimable for error in (own, *errors)):
        return said
    theirs = listed([briefly(error) for error in errors])
    if all(own.high < error.low for error in errors):
        return f"{said}; `{best.name}` is better calibrated ({briefly(own)} against {theirs})"
    if all(own.low > error.high for error in errors):
        they = "is" if singular else "are"
        return f"{said}, and {they} better calibrated ({theirs} against {briefly(own)})"
    known = not any("most" in briefly(error) for error in (own, *errors))
    return f"{said}; neither is clearly better calibrated" + (
        f" ({briefly(own)} against {theirs})" if known else ""
    )


def _in_passing(finding: Finding) -> str:
    """What a finding says, without its grounds, to follow a colon."""
    said = finding.headline.split(": ")[0].removesuffix(".")
    return said if said[:2].isupper() else said[:1].lower() + said[1:]


def beside_plain(
    comparison: TableComparison, method: MethodResult, target: Target
) -> tuple[str, ...]:
    """A sentence on how a method ranks beside the best simple rival; none for a rival itself."""
    gain = method.judgements[target.key].auc_gain
    if comparison.reference not in SIMPLE_RIVALS or gain is None or not gain.estimable:
        return ()
    if plain := _plain_rivals(comparison, method, target):
        said = rank_as_well(comparison, method, target, plain)
        return (f"{said}.", _difference(method, target, comparison.reference))
    return (f"It ranks better than {rival_named(comparison.reference)}: {gain:gain} in AUC.",)


def briefly(error: Estimate) -> str:
    """A calibration error without its interval."""
    return in_form(error.value, error.low, error.high, "error")[0]


def _difference(best: MethodResult, target: Target, reference: str) -> str:
    """The gain of a method over the simple rival, as a sentence."""
    gain = best.judgements[target.key].auc_gain
    assert gain is not None
    chance = ", which may be chance when all methods are compared at once" * (gain.low > 0)
    return f"AUC of `{best.name}` minus that of {rival_named(reference)}: {gain:gain}{chance}."


def _all_by_chance(comparison: TableComparison, target: Target) -> bool:
    """Whether no method is shown to rank people better than a coin does."""
    told = [m.judgements[target.key] for m in comparison.methods if target.key in m.judgements]
    return not any(one.auc.low > 0.5 for one in told)


def _rivals(best: str, first: str, level: list[str]) -> str:
    """Who may be as good as the method that is recommended, and why it is nevertheless."""
    said = listed([f"`{name}`" for name in level])
    chance = ""
    if level and first == best:
        chance = f"Its lead over {said} may be chance."
    elif level:
        chance = f"This table cannot tell it from {said}: the lead of `{first}` may be chance."
    why = (
        f" `{best}` is the default because, on 39 tables whose truth is known, its worst results "
        "were the best on average."
    )
    return (chance + why * (best == DEFAULT)).strip()


def about_method(comparison: TableComparison, method: str) -> list[Finding]:
    """The findings about a method, or about all, but for which one is the best."""
    every = (*comparison.warnings, *comparison.findings)
    return [one for one in every if one.key != "best" and concerns(one, method)]


def _certainty(comparison: TableComparison, best: MethodResult, target: Target) -> str:
    gain = best.judgements[target.key].auc_gain
    said = ""
    beaten = clear_gain(comparison, best, target)
    if gain is not None and beaten and comparison.reference in SIMPLE_RIVALS:
        rival = rival_named(comparison.reference)
        said = f"The gain over {rival}, {gain:gain}, is more than chance shows. "
    if target.key == "tested":
        why = next((t.reason for t in comparison.targets if not t.available and t.reason), "")
        return f"{said}Nothing can be said about people unlike the tested{': ' * bool(why)}{why}."
    return said + target.assumption


def fairness(judged: Judgement, comparison: TableComparison) -> str:
    """Whether it serves the groups alike, as far as can be seen; nothing without groups."""
    gap, pair = judged.roc_gap, judged.gap_pair
    if pair is None:
        return ""
    if not gap.estimable:
        return (
            "Whether it serves the groups alike cannot be determined: "
            f"{gap.reason or 'too few people'}."
        )
    groups, pairs = clear_groups(judged, comparison.floor), clear_pairs(judged)
    if groups:
        said = worse_or_better(groups)
        against = group(comparison.reference_group)
        return f"It does not serve the groups alike: {said} than {against}."
    if pairs:
        return (
            f"It does not serve the groups alike: the ROC curves of {named(pairs[0])} differ by "
            "more than chance, though neither is clearly ranked worse."
        )
    known = {name: one.value for name, one in judged.group_auc.items() if one.estimable}
    lowest = min(known, key=lambda name: known[name], default="")
    worst = f" Lowest AUC: {group(lowest)}, {number(known[lowest])}." if lowest else ""
    if left := not_compared(judged):
        worst += f" Not compared: {named(left)}."
    what = "ROC gap (area between two groups' curves, 0 if alike)"
    if gap.high <= ALIKE:
        return (
            "It ranks about equally well in all groups: the largest "
            f"{what} is {number(gap.value)}, at most {number(gap.high)}.{worst}"
        )
    chance = judged.gap_by_chance
    beside = f"is {'no' if gap.value <= chance else 'hardly'} larger than chance shows "
    limit = f"(below {number(chance)} in 95 % of cases)"
    beside = "may be chance" if isnan(chance) else beside + limit
    return (
        f"Whether it is equally good for all groups cannot be determined: the largest {what}, "
        f"{number(gap.value)}, {beside}, and up to {number(gap.high)} is possible.{worst}"
    )


def risks_of_groups(judged: Judgement) -> str:
    """For which groups its risks are clearly off, or nothing."""
    off = clearly_off(judged.calibration_in_the_large)
    return f"Read as risks, its scores are on average {too_high_or_low(off)}." if off else ""


def of_the_record(comparison: TableComparison) -> str:
    """That nobody is told apart as untested, if so: then it may all be about the record."""
    if not any(one.key == "everybody-tested" for one in comparison.warnings):
        return ""
    return (
        "Everybody counts as tested: if untested people were recorded as negative, this is about "
        "the record, not the outcome."
    )


def key_numbers(
    comparison: TableComparison, best: MethodResult, target: Target
) -> tuple[doc.KeyNumber, ...]:
    """How well it ranks, how alike it serves the groups, how much it gains."""
    judged = best.judgements[target.key]
    label = f"AUC of `{best.name}`, {of_whom(target)}"
    if judged.hidden_cause is not None:
        label += f"; {in_words(judged.hidden_cause, at_worst=True)}"
    found = [doc.KeyNumber(doc.estimate(judged.auc), label)]
    if len(comparison.groups) > 1:
        label = "largest ROC gap between groups"
        if not isnan(judged.gap_by_chance):
            limit = number(judged.gap_by_chance)
            label += f"; chance alone stays below {limit} in 95 % of cases"
        found.append(doc.KeyNumber(doc.estimate(judged.roc_gap), label))
    if judged.auc_gain is not None and comparison.reference in SIMPLE_RIVALS:
        gain = doc.estimate(judged.auc_gain, "gain")
        label = f"gain in AUC over {rival_named(comparison.reference)}"
        return (*found, doc.KeyNumber(gain, label))
    off = "calibration error: how far its risks are off"
    return (*found, how_far_off(judged.calibration_error, off))


def how_far_off(error: Estimate, what: str) -> doc.KeyNumber:
    """A calibration error; where chance explains all that is seen, how large it may be."""
    chance = "; chance alone would show as much as is seen" * (error.value < 0.0005)
    return doc.KeyNumber(doc.estimate(error, "error"), f"{what}, on average{chance}")


def picture(comparison: TableComparison, best: MethodResult, target: Target) -> doc.Dots:
    """AUC and ROC gap of every method, the recommended one marked."""
    grouped = len(comparison.groups) > 1
    rows = []
    taken = "" if _all_by_chance(comparison, target) else "recommended"
    for method in comparison.methods:
        judged = method.judgements[target.key]
        tag = taken if method is best else "given the truth" if method.uses_truth else ""
        values = (doc.briefly(judged.auc), doc.briefly(judged.roc_gap))
        rows.append(
            doc.DotRow(
                doc.Code(method.name, tag, method.in_short),
                values if grouped else values[:1],
                (doc.NOTHING, doc.estimate(judged.gap_by_chance)) if grouped else (),
                "muted" if method.uses_truth else "ink",
                method is best,
            )
        )
    columns = ("AUC: more is better", "ROC gap: less is more alike")
    return doc.Dots(
        f"How good{grouped * ', and how alike for the groups'} ({estimated(target)})",
        columns if grouped else columns[:1],
        tuple(rows),
        f"{footnote(comparison, target)} A gap is never quite zero.",
        "limit of chance (95 %)" if grouped else "",
    )


def not_of_everybody(target: Target) -> tuple[str, ...]:
    """That numbers of those within reach say nothing of the others, where there are any."""
    if not target.reach < 1:
        return ()
    return (
        f"Not that it holds for everybody: {percent(1 - target.reach)} of the people are out of "
        "reach of the tests, and nothing is known of them. Their share is estimated anew each "
        "time, so an audit or another comparison may differ.",
    )


def limits(comparison: TableComparison) -> tuple[str, ...]:
    """What a hasty reader might take from it, and must not."""
    shown = shown_targets(comparison)[:1]
    found = [one for target in shown for one in not_of_everybody(target)]
    if [target.key for target in shown] == ["tested"] and not comparison.known_rates:
        found.append("Anything about people who were not tested: these numbers are of the tested.")
    elif not any(target.key == "truth" for target in comparison.targets):
        rests = "the recorded features explain who was tested"
        if comparison.known_rates:
            rests = "the stated prevalence is right, and untested people differ by one factor"
        found.append(
            f"Not that these numbers are the truth: they hold if {rests}, which no table can show."
        )
    else:
        found.append(
            "Not that the same order holds elsewhere: other tables, and other rules of testing, "
            "change the numbers and can change the order."
        )
    found.append(
        "Not that a small gap is fairness: it compares ranking, and ignores what the label leaves "
        "out."
    )
    return tuple(found)
