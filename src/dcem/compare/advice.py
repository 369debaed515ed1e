"""What planted outcomes say about the methods, in sentences no stronger than their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import t as student

from dcem.compare.results import PlantedFamily

Recovered = Mapping[str, np.ndarray]  # method -> AUC of each repetition


def advise(
    families: Sequence[PlantedFamily],
    recovered: Mapping[str, Recovered],
    ceilings: Mapping[str, float],
    level: float,
) -> tuple[str, ...]:
    """One sentence a family, then what they amount to.

    Args:
        families: what was planted.
        recovered: family -> method -> AUC of each repetition, paired across methods.
        ceilings: family -> mean AUC of the planted risk itself: nobody can do better.
        level: at which two methods count as different (Student's t on paired repetitions).
    """
    sentences, leaders = [], {}
    for family in families:
        scores = complete(recovered[family.name])
        if _repetitions(scores) < 2:
            sentences.append(
                f"{family.name.capitalize()}: the planted tables held too few of one outcome to "
                "rank people by it, so this family says nothing."
            )
            continue
        best, beaten, level_with = leading(scores, level)
        leaders[family.name] = {best, *level_with}
        text = (
            f"{family.name.capitalize()}: `{best}` has the highest AUC, "
            f"{_number(scores[best].mean())} of the {_number(ceilings[family.name])} possible"
        )
        if level_with:
            text += f"; not clearly better than {_listed(level_with)}"
        if beaten:
            text += f"; clearly better than {_listed(beaten)}"
        sentences.append(text + ".")
    explained = [f.name for f in families if not f.outcome_dependent and f.name in leaders]
    always = set.intersection(*(leaders[name] for name in explained)) if explained else set()
    if not explained:
        sentences.append("Where features explain testing, nothing can be said of any method.")
    elif always:
        sentences.append(
            f"Where features explain testing, {_listed(sorted(always))} "
            f"{'is' if len(always) == 1 else 'are'} among the best in each family planted here."
        )
    else:
        sentences.append(
            "Where features explain testing, no method is among the best in every family: which "
            "one serves this table depends on the kind of outcome."
        )
    sentences += [
        _dependent(f.name, recovered, level)
        for f in families
        if f.outcome_dependent and {f.name, "linear"} <= leaders.keys()
    ]
    sentences.append(
        "Planted outcomes are not the real one: a method that fails here should not be trusted, "
        "one that succeeds may still fail on an outcome of another kind."
    )
    return tuple(sentences)


def complete(scores: Recovered) -> Recovered:
    """The repetitions in which every method has an AUC: one of a single outcome has none."""
    kept = ~np.isnan(np.stack(list(scores.values()))).any(axis=0)
    return {name: values[kept] for name, values in scores.items()}


def _repetitions(scores: Recovered) -> int:
    return len(next(iter(scores.values())))


def leading(scores: Recovered, level: float) -> tuple[str, list[str], list[str]]:
    """The method with the highest mean, those clearly below it, and those that are not.

    Needs two or more `complete` repetitions; others are not looked at.
    """
    scores = complete(scores)
    best = max(scores, key=lambda name: float(scores[name].mean()))
    beaten: list[str] = []
    level_with: list[str] = []
    for name, values in scores.items():
        if name != best:
            low = _low(scores[best] - values, level)
            (beaten if low > 0 else level_with).append(name)
    return best, beaten, level_with


def _dependent(name: str, recovered: Mapping[str, Recovered], level: float) -> str:
    """What happens when the outcome itself drives testing, against the same without it."""
    lost = {
        method: recovered["linear"][method] - values for method, values in recovered[name].items()
    }
    clearly = [method for method, values in lost.items() if _low(values, level) > 0]
    if len(clearly) == len(lost):
        return (
            "When the outcome itself drives testing, every method recovers less than without it: "
            "no method here repairs that."
        )
    if clearly:
        return (
            f"When the outcome itself drives testing, {_listed(clearly)} clearly "
            f"recover{'s' if len(clearly) == 1 else ''} less than without it; for the others the "
            "repetitions do not tell."
        )
    return (
        "When the outcome itself drives testing, these repetitions show no clear loss in ranking; "
        "predicted risks can still be wrong."
    )


def _low(differences: np.ndarray, level: float) -> float:
    """Lower end of Student's interval of a mean; minus infinity where two values are wanting."""
    differences = differences[~np.isnan(differences)]
    n = len(differences)
    if n < 2:
        return -np.inf
    error = float(differences.std(ddof=1)) / np.sqrt(n)
    return float(differences.mean() - student.ppf((1 + level) / 2, n - 1) * error)


def _listed(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _number(value: float) -> str:
    return f"{value:.3f}".lstrip("0") if value < 1 else f"{value:.3f}"
