"""A score's AUC when untested people differ from tested ones with the same features.

The third sensitivity analysis. Its estimand is the AUC in the whole population (a random positive
outranks a random negative, seen or not), of everybody and of each group, and the difference
between two groups, as functions of the odds ratio of `dcem.audit.sensitivity`. At an odds ratio of
1 these are the doubly robust estimates; the limits assume nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import inf, nan

import numpy as np

from dcem.audit.sensitivity import (
    GAMMAS,
    UNIT,
    Breakdown,
    OddsRatioCurve,
    curve,
    find_breakdown,
)
from dcem.estimation.bounds import auc_range, extreme_auc
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.influence import Statistic, critical_value, differences, most_and_least
from dcem.estimation.outcomes import Unseen, uncertain
from dcem.estimation.ranking import RankedScore
from dcem.estimation.results import EVERYBODY
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import MANY_GROUPS

STRENGTHS = np.exp(np.linspace(0, np.log(10), 11))
BETTER = "the score ranks people better than chance"


@dataclass(frozen=True)
class WorstCase:
    """The range of a measure when each row may have its own odds ratio in [1/gamma, gamma]."""

    low: np.ndarray  # [strengths]
    high: np.ndarray


@dataclass(frozen=True)
class PerformanceSensitivity:
    """AUC, and its difference between groups, under the same dependence."""

    score: str  # what was scored
    gamma: np.ndarray  # one odds ratio for all rows
    auc: Mapping[str, OddsRatioCurve]
    strength: np.ndarray  # >= 1: every row its own odds ratio within 1/strength and strength
    auc_range: Mapping[str, WorstCase]
    pair: tuple[str, str] | None
    difference: OddsRatioCurve | None  # AUC of the first of `pair` minus that of the second
    difference_range: WorstCase | None
    breakdown: Breakdown


def performance_sensitivity(
    evaluator: Evaluator, score: np.ndarray, name: str
) -> PerformanceSensitivity:
    """AUC of a score [n], called `name`, if testing and outcome depend given the features.

    Of the people within reach of the tests. The adversary starts from the outcomes that known rates
    ask for; where the prevalence of a part is known, outcomes can be moved about, and their sum
    stays.
    """
    people, centre = evaluator.people, evaluator.unseen
    fixed = centre.known.met if centre.known is not None else frozenset()
    ranked = RankedScore(score, people.weight)
    masks = {n: mine & evaluator.reach.within for n, mine in evaluator.problem.parts().items()}
    lacking = {part: evaluator.lacking("dr", part) for part in masks}
    if len(masks) > MANY_GROUPS:  # of the others there are limits alone
        masks = {n: mine for n, mine in masks.items() if n == EVERYBODY or not lacking[n]}
    ranges: dict[str, WorstCase] = {}
    limits: dict[str, tuple[float, float]] = {}
    for part, mine in masks.items():
        *reached, limits[part] = (
            auc_range(ranked, centre, float(g), mine, part in fixed) for g in (*STRENGTHS, inf)
        )
        low, high = np.array(reached).T
        if lacking[part]:  # limits alone
            low, high = np.full((2, len(STRENGTHS)), nan)
        ranges[part] = WorstCase(low, high)

    def auc(gamma: float, mine: np.ndarray) -> Estimate:
        return people.interval(_auc_at(ranked, evaluator.unseen_alike, gamma, mine)).clipped()

    curves = {
        part: curve(partial(auc, mine=mine), limits[part], lacking[part])
        for part, mine in masks.items()
    }
    known = {
        part: _auc_at(ranked, centre, 1.0, mine)
        for part, mine in masks.items()
        if part != EVERYBODY and not lacking[part]
    }
    known = {part: area for part, area in known.items() if np.isfinite(area.value)}
    pair = most_and_least(known)
    difference = difference_range = None

    def worst(part: str, strength: float, up: bool) -> Statistic:
        return uncertain(
            lambda one: extreme_auc(ranked, one, strength, up, masks[part], part in fixed), centre
        )

    if pair is not None:
        better, poorer = pair

        def gap(gamma: float) -> Estimate:
            ends = [_auc_at(ranked, evaluator.unseen_alike, gamma, masks[part]) for part in pair]
            return people.interval(ends[0] - ends[1])

        (low, high), (lower, higher) = limits[better], limits[poorer]
        difference = curve(gap, (low - higher, high - lower))
        one, other = ranges[better], ranges[poorer]
        difference_range = WorstCase(one.low - other.high, one.high - other.low)
        breakdown = find_breakdown(
            lambda strength: worst(better, strength, False) - worst(poorer, strength, True),
            people,
            f"the score ranks group {better} better than group {poorer}",
            reach=critical_value(people, differences(known)),
        )
    elif lacking[EVERYBODY]:
        breakdown = Breakdown(BETTER, nan, nan, UNIT, lacking[EVERYBODY])
    else:
        chance = Statistic(0.5, np.zeros(len(score)))
        breakdown = find_breakdown(
            lambda strength: worst(EVERYBODY, strength, False) - chance, people, BETTER
        )
    return PerformanceSensitivity(
        score=name,
        gamma=GAMMAS,
        auc=curves,
        strength=STRENGTHS,
        auc_range=ranges,
        pair=pair,
        difference=difference,
        difference_range=difference_range,
        breakdown=breakdown,
    )


def _auc_at(ranked: RankedScore, unseen: Unseen, gamma: float, mine: np.ndarray) -> Statistic:
    return uncertain(lambda one: ranked.auc(one.outcomes(gamma), mine), unseen)
