"""What planted outcomes say of methods: who recovers them, what a broken assumption costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import t as student

from dcem.compare.findings import found, methods_named
from dcem.compare.results import PlantedFamily
from dcem.estimation.findings import Finding
from dcem.text import number

Recovered = Mapping[str, np.ndarray]  # method -> AUC of each repetition
FAINT = 0.25  # of the way from chance to the ceiling, below which nothing much is recovered


def about_recovery(
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
    findings, leaders = [], {}
    known = {name: complete_repetitions(scores) for name, scores in recovered.items()}
    known = {name: of for name, of in known.items() if len(next(iter(of.values()))) >= 2}
    n_methods = len(next(iter(recovered.values())))
    # the best of each family is picked by looking: all pairs count
    strict = 1 - (1 - level) / max(len(known) * n_methods * (n_methods - 1) // 2, 1)
    for family in families:
        if family.name not in known:
            sentence = (
                f"{family.name.capitalize()}: the planted tables had too few positives or too few "
                "negatives to judge a ranking, so this family says nothing."
            )
            findings.append(found("planted-nothing", sentence))
            continue
        scores = known[family.name]
        best, beaten, level_with = leading(family.name, known, strict)
        leaders[family.name] = {best, *level_with}
        sentence = (
            f"{family.name.capitalize()}: `{best}` has the highest AUC, "
            f"{number(scores[best].mean())} of the {number(ceilings[family.name])} possible"
        )
        sentence += f"; not clearly better than {methods_named(level_with)}" if level_with else ""
        sentence += f"; clearly better than {methods_named(beaten)}" if beaten else ""
        share = (scores[best].mean() - 0.5) / (ceilings[family.name] - 0.5)
        sentence += "; hardly better than chance" if share < FAINT else ""
        values = {"best": best, "beaten": beaten, "level_with": level_with, "share": float(share)}
        findings.append(found("planted", f"{sentence}.", family=family.name, **values))
    kept = [f.name for f in families if not f.violates and f.name in leaders]
    always = sorted(set.intersection(*(leaders[name] for name in kept)) if kept else set())
    if not kept:
        sentence = "Where all assumptions hold, nothing can be said about any method."
    elif always:
        sentence = (
            f"Where all assumptions hold, {methods_named(always)} "
            f"{'is' if len(always) == 1 else 'are'} among the best in each family planted here."
        )
    else:
        sentence = (
            "Where all assumptions hold, no method is among the best in every family: which one "
            "suits this table depends on the kind of outcome."
        )
    findings.append(found("planted-summary", sentence, always=always))
    broken = [f for f in families if f.violates and {f.name, plain} <= leaders.keys()]
    findings += _harms(broken, recovered, plain, level)
    sentence = (
        "Planted outcomes are not the real one: a method that fails here should not be trusted, "
        "but one that succeeds may still fail on an outcome of another kind."
    )
    findings.append(found("planted-limits", sentence))
    return tuple(findings)


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
            clear = here.mean() > _half_width(differences, len(here), level)
            (beaten if clear else level_with).append(name)
    return best, beaten, level_with


def _harms(
    broken: Sequence[PlantedFamily], recovered: Mapping[str, Recovered], plain: str, level: float
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
    findings = []
    for family in broken:
        mine = {method: values for (name, method), values in lost.items() if name == family.name}
        clearly = [
            method
            for method, values in mine.items()
            if values.mean() > _half_width(list(lost.values()), len(values), strict)
        ]
        if clearly and len(clearly) == len(mine):
            says = "every method recovers less: none of these methods clearly corrects for this"
        elif clearly:
            says = (
                f"{methods_named(clearly)} clearly recover{'s' * (len(clearly) == 1)} less; for "
                "the others, these repetitions show no clear loss"
            )
        else:
            says = (
                "these repetitions show no clear loss in ranking; predicted risks can still be "
                "wrong"
            )
        sentence = f"Where {family.violates}, {says}."
        findings.append(found("planted-harm", sentence, family=family.name, lose=clearly))
    return findings


def _half_width(differences: Sequence[np.ndarray], repetitions: int, level: float) -> float:
    """Half the width of Student's interval of a mean, its spread pooled over several."""
    freedom = sum(len(one) - 1 for one in differences)
    square = sum(float(np.sum((one - one.mean()) ** 2)) for one in differences)
    error = np.sqrt(square / freedom / repetitions)
    return float(student.ppf((1 + level) / 2, freedom) * error)


def complete_repetitions(scores: Recovered) -> Recovered:
    """The repetitions in which every method has an AUC: one of a single outcome has none."""
    kept = ~np.isnan(np.stack(list(scores.values()))).any(axis=0)
    return {name: values[kept] for name, values in scores.items()}
