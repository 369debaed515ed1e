"""Deciders in an audit: how they differ, and what the decider as an instrument bounds and refutes.

Two different assumptions meet here. The estimates of an audit take it that features explain who is
tested; the bounds take it that, at equal features, chance says who decides. Where the first puts
the outcome beyond what the second allows, one of them is wrong (`beyond`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any

import numpy as np
from scipy.stats import norm

from dcem.estimation.cross_fitting import ROW_BUDGET, Learners
from dcem.estimation.deciders import Compared, compare_deciders
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.influence import FEWEST_PEOPLE, People
from dcem.estimation.instrument import (
    Ends,
    Instrument,
    auc_bounds,
    fit_instrument,
    prevalence_bounds,
)
from dcem.estimation.instrument_checks import Check, check_exclusion, check_monotonicity
from dcem.estimation.nuisance_learners import candidates
from dcem.estimation.overlap import parts
from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels

ASSUMPTION = "At equal features, who decides has nothing to do with the outcome"
NAMED = 4  # deciders at either end who are named on a page, if they are clearly off


@dataclass(frozen=True)
class Level:
    """Deciders who test about equally often, at the features of everybody."""

    name: str
    tested: Estimate  # share of people whom they test
    found: Estimate  # share of people whom they find positive


@dataclass(frozen=True)
class Deciders:
    """Everything that an audit says of who decided."""

    reason: str  # why nothing is said, or nothing
    compared: Compared | None = None
    levels: tuple[Level, ...] = ()  # from the fewest tests to the most
    prevalence: Mapping[str, Ends] = field(default_factory=dict)  # EVERYBODY, then groups
    auc: Ends | None = None  # of the model of what a test would show
    exclusion: Mapping[str, Check] = field(default_factory=dict)  # EVERYBODY, then groups
    monotone: Mapping[str, Check] = field(default_factory=dict)  # tested, found, cleared
    beyond: Estimate | None = None  # by how much the doubly robust prevalence leaves the bounds
    p_value: float = nan  # of none


def audit_deciders(
    judge: Evaluator,
    people: People,
    risk: np.ndarray,
    rng: np.random.Generator,
    *,
    learners: Learners = candidates,
    row_budget: int = ROW_BUDGET,
    progress: Callable[[str], None] = lambda text: None,
) -> Deciders:
    """How deciders differ, and what they bound; `risk` [n] is the score whose AUC is bounded."""
    problem, nuisances = judge.problem, judge.nuisances
    compared = compare_deciders(problem, people, nuisances.testing, nuisances.outcome)
    if compared is None:
        return Deciders(f"fewer than two deciders have decided on {FEWEST_PEOPLE} people or more")
    instrument = fit_instrument(
        problem,
        judge.fold,
        nuisances.testing,
        rng,
        learners=learners,
        row_budget=row_budget,
        progress=progress,
    )
    if instrument is None:
        return Deciders("too few people for bounds by decider", compared)
    masks = {
        name: mine for name, mine in parts(problem).items() if people.count(mine) >= FEWEST_PEOPLE
    }
    beyond, p_value = _beyond(judge, people, instrument)
    return Deciders(
        "",
        compared,
        _levels(instrument, people),
        {name: prevalence_bounds(instrument, people, mine) for name, mine in masks.items()},
        auc_bounds(instrument, people, risk),
        check_exclusion(instrument, people, masks),
        check_monotonicity(instrument, people),
        beyond,
        p_value,
    )


def _levels(instrument: Instrument, people: People) -> tuple[Level, ...]:
    made = []
    for code, (name, why) in enumerate(zip(instrument.names, instrument.lacking, strict=True)):
        finds, clears = instrument.finds[:, code], instrument.clears[:, code]
        tested, found = (
            Estimate(nan, reason=why) if why else people.interval(people.mean(one))
            for one in (finds + clears, finds)
        )
        made.append(Level(name, tested, found))
    return tuple(made)


def _beyond(judge: Evaluator, people: People, instrument: Instrument) -> tuple[Estimate, float]:
    """By how much the doubly robust prevalence leaves the bounds, at the end that it is nearer to.

    Two ends are looked at: the p-value, of one side, counts twice.
    """
    known = judge.problem.known_prevalence  # then the estimate rests on that
    if judge.lacking("dr") or not judge.overlap.complete or known:
        return Estimate(nan, reason="what holds for everybody is not estimable"), nan
    found = judge.prevalence_of("dr", np.ones(len(judge.problem), bool))
    ends = [people.mean(instrument.least) - found, found - people.mean(instrument.most)]
    worst = max(ends, key=lambda one: one.value)
    error = people.error(worst)
    return people.interval(worst), min(1.0, 2 * float(norm.sf(worst.value / error)))


def shareable(deciders: Deciders | None, withheld: Mapping[str, bool]) -> Deciders | None:
    """Without groups of which counts are withheld, and without the names of most deciders.

    A decider with fewer than ten people on any side is left out. The others are named if what they
    do is clearly unlike what others do: a page should not name people without need.
    """
    if deciders is None or deciders.compared is None:
        return deciders
    effects = [one for one in deciders.compared.effects if not one.few]
    clear = [
        *[one for one in effects if one.shrunken.high < 0][:NAMED],
        *[one for one in effects if one.shrunken.low > 0][-NAMED:],
    ]
    kept = tuple(one if one in clear else replace(one, decider="") for one in effects)

    def of(parts: Mapping[str, Any]) -> dict[str, Any]:
        return {name: one for name, one in parts.items() if not withheld.get(name)}

    return replace(
        deciders,
        compared=replace(deciders.compared, effects=kept, order=of(deciders.compared.order)),
        prevalence=of(deciders.prevalence),
        exclusion=of(deciders.exclusion),
    )


def decider_steps(problem: SelectiveLabels) -> dict[str, float]:
    """The models behind it, and what each costs against one of who is tested."""
    return {} if problem.decider is None else {"what deciders find": 1.5, "who decides": 1.5}
