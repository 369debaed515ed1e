"""What if untested people differ from tested people with the same features?

Every estimate for everybody assumes that, at equal features, being tested says nothing about the
outcome. Nobody can check this: the outcomes it speaks of were never seen. So it is given a number
instead. With mu(x) the risk of tested people with features x, let the odds of *untested* people
with the same features be

    odds(y = 1 | x, untested) = gamma * odds(y = 1 | x, tested).

gamma = 1 is the usual assumption. gamma < 1: whoever decided knew something, and those left out
were healthier than they look. gamma > 1: those left out were worse off, because people who could
not get a test were also sicker. gamma = 0 and infinity are the limits without any assumption
(Manski 1989). Given gamma, the prevalence is identified; only gamma is unknown (Robins, Rotnitzky
and Scharfstein 2000: exponential tilting).

Two readings. *One gamma for all*: a curve. *Every row its own* odds ratio within [1/gamma, gamma],
chosen by an adversary: a range. For an AUC the adversary's best choice is a threshold: the largest
odds to everybody who scores above it, the smallest to everybody below, or the reverse. `Unseen` (in
`dcem.estimation.outcomes`) gives the outcomes at each gamma.

Where a prevalence is known, so is gamma: the curves stay, and the adversary starts from there. The
prevalence of a part that is stated cannot be moved at all; where everybody's is, one of two groups
can only have less if the other has more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf, log, nan
from typing import TYPE_CHECKING

import numpy as np

from dcem.estimation.evaluator import Evaluator
from dcem.estimation.influence import (
    ROUNDING,
    People,
    Statistic,
    Z,
    critical_value,
    differences,
)
from dcem.estimation.outcomes import Unseen, uncertain
from dcem.estimation.results import EVERYBODY
from dcem.metrics.estimate import Estimate

if TYPE_CHECKING:
    from dcem.audit.results import Prevalence

GAMMAS = np.exp(np.linspace(-np.log(10), np.log(10), 21))
LARGEST = 1000.0  # no breakdown value is looked for beyond; the limit is tried instead
UNIT = "odds ratio"


@dataclass(frozen=True)
class Breakdown:
    """The strength of the unseen at which a conclusion no longer follows."""

    conclusion: str
    value: float  # the estimate itself reaches the turning point; inf if nothing does
    with_interval: float  # its interval does; at most `value`
    unit: str
    reason: str = ""


@dataclass(frozen=True)
class OddsRatioCurve:
    """An estimate along the odds ratio between outcome and *not* being tested."""

    value: np.ndarray  # [gammas]
    low: np.ndarray
    high: np.ndarray
    limits: tuple[float, float]  # worst cases, nothing assumed
    reason: str = ""  # why the curve is missing, if it is


@dataclass(frozen=True)
class PrevalenceSensitivity:
    """Prevalence when untested people differ from tested ones with the same features."""

    gamma: np.ndarray  # odds of the untested over those of the tested, at equal features
    curves: Mapping[str, OddsRatioCurve]  # EVERYBODY, then groups
    breakdown: Breakdown  # from where known rates put the untested


def prevalence_sensitivity(
    evaluator: Evaluator, prevalence: tuple[Prevalence, ...]
) -> PrevalenceSensitivity:
    """Prevalence of everybody and of every group along gamma, and where their order may turn.

    Of the people within reach of the tests: at a gamma of 1 it is the doubly robust estimate. The
    adversary starts from the outcomes that known rates ask for.
    """
    people, within, centre = evaluator.people, evaluator.reach.within, evaluator.unseen
    fixed = centre.known.met if centre.known is not None else frozenset()
    masks = {name: mine & within for name, mine in evaluator.problem.parts().items()}
    limits = {item.group: item.bounds for item in prevalence}

    def at(gamma: float, mine: np.ndarray, behind: int) -> Estimate:
        # with the interval that the same number has elsewhere; beyond 0 and 1 it is cut off
        found = prevalence_at(people, evaluator.unseen_alike, gamma, mine)
        beyond = not 0 < found.value < 1
        return found.estimate(
            evaluator.person, share=True, behind=behind, corrected=beyond
        ).clipped()

    curves = {
        name: curve(
            partial(at, mine=mine, behind=evaluator.known_people("dr", name)),
            limits[name],
            evaluator.lacking("dr", name),
        )
        for name, mine in masks.items()
    }
    groups = [
        p for p in prevalence if p.group != EVERYBODY and not evaluator.lacking("dr", p.group)
    ]
    usable = [p for p in groups if p.doubly_robust.estimable]
    if len(usable) >= 2:
        usable.sort(key=lambda p: p.doubly_robust.value)
        least, most = usable[0].group, usable[-1].group

        two = EVERYBODY in fixed and len(masks) == 3

        def gap(gamma: float) -> Statistic:
            # The adversary lowers the higher prevalence and raises the lower one.
            lowered, raised = (
                prevalence_at(people, centre, 1.0 if name in fixed else factor, masks[name])
                for name, factor in ((most, 1 / gamma), (least, gamma))
            )
            if not two:
                return lowered - raised
            # Both make up everybody: what the one loses the other has to take.
            shares = [people.mean(masks[name] * 1.0).value for name in (most, least)]
            every = prevalence_at(people, centre, 1.0, masks[EVERYBODY])
            ends = (
                lowered - (every - lowered * shares[0]) * (1 / shares[1]),
                (every - raised * shares[1]) * (1 / shares[0]) - raised,
            )
            return max(ends, key=lambda one: one.value)

        at_one = {p.group: prevalence_at(people, centre, 1.0, masks[p.group] * 1.0) for p in usable}
        breakdown = find_breakdown(
            gap,
            people,
            f"the outcome is more common in group {most} than in group {least}",
            reach=critical_value(people, differences(at_one)),
        )
    else:
        breakdown = _against_tested(
            people, centre, within, evaluator.lacking("dr"), fixed=EVERYBODY in fixed
        )
    return PrevalenceSensitivity(GAMMAS, curves, breakdown)


def prevalence_at(people: People, unseen: Unseen, gamma: float, mine: np.ndarray) -> Statistic:
    """How common the outcome is among some rows (a mask), at an odds ratio of gamma."""
    return uncertain(lambda one: people.mean(one.outcomes(gamma), mine), unseen)


def _against_tested(
    people: People, unseen: Unseen, within: np.ndarray, reason: str, *, fixed: bool
) -> Breakdown:
    """Without groups to order: are the untested positive less often than the tested?

    Both `within` reach of the tests [n]. `fixed`: how common the outcome is in all is known.
    """

    def difference(gamma: float) -> Statistic:
        gamma = 1.0 if fixed else gamma

        def at(one: Unseen) -> Statistic:
            # Untested outcomes with their share of the correction, over the share untested.
            rest = one.outcomes(gamma) - one.tested * one.y
            untested = people.mean((~one.tested).astype(float), within)
            tested = people.mean(one.y, (one.tested & within).astype(float))
            return tested - people.mean(rest, within) / untested

        return uncertain(at, unseen)

    if not people.weight @ (within & ~unseen.tested):
        reason = reason or "nobody untested is within reach of the tests"
    if reason:
        conclusion = "the outcome is not equally common in the tested and the untested"
        return Breakdown(conclusion, nan, nan, UNIT, reason)
    sign = 1.0 if difference(1.0).value > 0 else -1.0
    word = "less" if sign > 0 else "more"
    conclusion = f"the untested have the outcome {word} often than the tested"

    def kept(gamma: float) -> Statistic:
        return difference(gamma if sign > 0 else 1 / gamma) * sign

    return find_breakdown(kept, people, conclusion)


def curve(
    at: Callable[[float], Estimate], limits: tuple[float, float], reason: str = ""
) -> OddsRatioCurve:
    """Estimates along `GAMMAS` as arrays; NaN with the reason where there are none."""
    if reason:
        nothing = np.full(len(GAMMAS), nan)
        return OddsRatioCurve(nothing, nothing, nothing, limits, reason)
    points = [at(float(gamma)) for gamma in GAMMAS]
    value, low, high = np.array([(one.value, one.low, one.high) for one in points]).T
    return OddsRatioCurve(value, low, high, limits)


def find_breakdown(
    kept: Callable[[float], Statistic],
    people: People,
    conclusion: str,
    reach: float = Z,
) -> Breakdown:
    """The smallest gamma >= 1 at which `kept(gamma)`, positive at 1, reaches zero.

    `reach`: standard errors of its interval, more than 1.96 where it is one picked from several.
    """

    def lower(gamma: float) -> float:
        found = kept(gamma)
        return found.value - reach * people.error(found)

    value = _root(lambda gamma: kept(gamma).value)
    return Breakdown(conclusion, value, _root(lower, value), UNIT)


def _root(f: Callable[[float], float], most: float = inf) -> float:
    """Where a falling function crosses zero, by bisection of log gamma to one per cent."""
    if not f(1.0) > ROUNDING:
        return 1.0
    low, high = 0.0, log(min(most, LARGEST))
    if f(float(np.exp(high))) > 0:
        return most if most <= LARGEST else (LARGEST if f(inf) <= 0 else inf)
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (middle, high) if f(float(np.exp(middle))) > 0 else (low, middle)
    return float(np.exp((low + high) / 2))
