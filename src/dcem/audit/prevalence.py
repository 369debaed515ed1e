"""How common is the outcome? Four answers, and the limits within which all of them must lie.

| estimate | is the prevalence if |
|---|---|
| recorded | nobody untested has it |
| tested only | the tested are like everybody |
| weighted | testing depends on features and group alone, and its model is right |
| doubly robust | the same, and the model of testing *or* that of the outcome is right |
| limits | nothing is assumed: all untested negative, all untested positive (Manski 1989) |

The weighted estimate lets every tested person stand for 1/probability people (Hájek's ratio). The
doubly robust one starts from predicted outcomes and corrects them by the weighted errors among the
tested (Robins, Rotnitzky and Zhao 1994). What the record *hides* is the share of the doubly robust
prevalence that it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan

import numpy as np

from dcem.audit.overlap import FLOOR
from dcem.audit.results import EVERYBODY, Overlap, Prevalence
from dcem.estimation.influence import FEWEST_TESTED, People, Statistic
from dcem.estimation.outcomes import Unseen
from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels


def prevalences(
    problem: SelectiveLabels,
    people: People,
    probability: np.ndarray | None,
    unseen: Unseen | None,
    overlap: Mapping[str, Overlap],
) -> tuple[Prevalence, ...]:
    """Everybody, then every group that has people; None where there is no model to use."""
    parts = {EVERYBODY: np.ones(len(problem), bool)}
    if problem.n_groups > 1:
        parts |= {name: problem.group == code for code, name in enumerate(problem.group_names)}
    found = []
    pseudo = None if unseen is None else unseen.outcomes(1.0)
    for name, mine in parts.items():
        if not mine.any():
            continue
        tested = problem.tested & mine
        reason = overlap[name].reason if name in overlap else "no model of testing"
        weighted = robust = hidden = Estimate(nan, reason=reason or "too few outcomes to model")
        if not reason and probability is not None:
            inverse = tested / np.maximum(probability, FLOOR)
            weighted = people.interval(people.mean(problem.y_imputed, inverse))
            if pseudo is not None:
                estimated = people.mean(pseudo, mine.astype(float))
                robust = people.interval(estimated)
                hidden = _hidden(people, problem.y_imputed, mine, estimated)
        if tested.sum() == mine.sum():  # nobody is missing: all answers agree
            weighted = robust = people.proportion(problem.y_imputed, mine)
            hidden = Estimate(nan, reason="nobody is untested")
        few = Estimate(nan, reason=f"fewer than {FEWEST_TESTED} people of the group were tested")
        recorded = people.proportion(problem.y_imputed, mine)
        untested = people.mean((~problem.tested).astype(float), mine.astype(float)).value
        found.append(
            Prevalence(
                group=name,
                recorded=recorded,
                tested_only=people.proportion(problem.y_imputed, tested)
                if tested.sum() >= FEWEST_TESTED
                else few,
                weighted=_cut(weighted),
                doubly_robust=_cut(robust),
                hidden=_cut(hidden),
                bounds=(recorded.value, recorded.value + untested),
            )
        )
    return tuple(found)


def _hidden(people: People, y: np.ndarray, mine: np.ndarray, estimated: Statistic) -> Estimate:
    """1 - recorded / estimated; the interval knows that both come from the same people."""
    if not people.interval(estimated).low > 0:
        return Estimate(nan, reason="the estimated prevalence may be zero")
    ratio = people.ratio(people.mean(y, mine.astype(float)), estimated)
    if not ratio.estimable:
        return Estimate(nan, reason="nothing is recorded")
    return Estimate(1 - ratio.value, 1 - ratio.high, 1 - ratio.low)


def _cut(e: Estimate) -> Estimate:
    """Cut at 0 and 1, where a prevalence ends."""
    value, low, high = (min(max(v, 0.0), 1.0) if v == v else v for v in (e.value, e.low, e.high))
    return Estimate(value, low, high, e.reason if e.value != e.value else "")
