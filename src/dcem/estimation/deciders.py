"""How much deciders differ at equal features, and whether they find alike at equal rates.

A decider (a clinic, an officer, a judge) who tests more than the features of their people predict
has an *effect* on testing: the mean of what the model of testing, which knows no decider, leaves
over. Effects of small deciders are mostly noise, so they are taken together: effects are spread
with a standard deviation tau around zero, and seen with a known error of their own,

    seen effect = true effect + error,   Q(tau) = sum over deciders of effect² / (error² + tau²).

Q(0) tells whether there is more spread than chance makes (chi-squared); tau is where Q(tau) is what
it should be (Paule and Mandel 1982), its interval where Q(tau) is at the quantiles (Viechtbauer
2007), or its upper end where Q would be without any spread, if that is further. Each effect is then
drawn towards zero by as much as it is noise (empirical Bayes).

*Found at equal rates.* If deciders get comparable people and differ only in how far down one
common list they test, what they find is a curve of how much they test: those who test equally find
equally much. The slope of a line through deciders is what one more test finds; both coordinates are
noisy, and the line is the one that makes Q smallest, with the errors of both in it (the limited
information estimator of instrumental variables; Anderson and Rubin 1949). What Q is left over tells
deciders who find more at equal rates: of more skill, or of other people.

D. Arnold, W. Dobbie and P. Hull, "Measuring racial discrimination in bail decisions", American
Economic Review 2022; D. Chan, M. Gentzkow and C. Yu, "Selection with variation in diagnostic
skill", Quarterly Journal of Economics 2022; B. Frandsen, L. Lefgren and E. Leslie, "Judging judge
fixed effects", American Economic Review 2023; W. Viechtbauer, "Confidence intervals for the amount
of heterogeneity in meta-analysis", Statistics in Medicine 2007.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import chi2

from dcem.estimation.influence import FEWEST_PEOPLE, LEVEL, People, Z, clustered_error
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import THRESHOLD, people_of
from dcem.table.labels import SelectiveLabels

HIGH_RISK = "people at higher risk"
FOR_A_CURVE = 5  # deciders: how much they find bends with how much they test


@dataclass(frozen=True)
class Variation:
    """How widely effects of deciders are spread, sampling noise removed."""

    deviation: Estimate  # standard deviation of the true effects
    p_value: float  # of none but chance


@dataclass(frozen=True)
class DeciderEffect:
    """How much more one decider tests than the features predict."""

    decider: str
    testing: Estimate  # as seen
    shrunken: Estimate  # drawn in by as much as it is noise
    found: float  # the same of people found positive
    few: bool  # whether fewer than ten people were tested, not tested, found or cleared


@dataclass(frozen=True)
class Compared:
    """All deciders of a table that can be compared."""

    number: int  # of deciders
    left_out: float  # share of the rows whose decider is too small, or not recorded
    testing: Variation
    effects: tuple[DeciderEffect, ...]  # from the fewest tests to the most
    mix: Variation  # of the risk that features predict: do deciders get comparable people?
    mix_share: float  # of the variance of that risk that lies between deciders
    one_more_test: Estimate  # what it finds: the slope of found against tested
    at_equal_rates: Variation  # of what deciders find who test equally
    order: Mapping[
        str, Variation
    ]  # part of the people -> of how much deciders test it who test the
    # others equally


def comparable_deciders(problem: SelectiveLabels) -> np.ndarray:
    """Codes of the deciders who have decided on enough people."""
    return np.flatnonzero(
        _people_per_decider(problem, np.ones(len(problem), bool)) >= FEWEST_PEOPLE
    )


def _people_per_decider(problem: SelectiveLabels, rows: np.ndarray) -> np.ndarray:
    """How many people of some rows (a mask) each decider decided on."""
    assert problem.decider is not None
    rows = rows & (problem.decider >= 0)
    return people_of(problem.decider[rows], problem.person[rows], len(problem.decider_names))


def compare_deciders(
    problem: SelectiveLabels, people: People, testing: np.ndarray, risk: np.ndarray
) -> Compared | None:
    """What sets deciders apart; None if fewer than two can be compared.

    `testing` [n] is P(tested | x, a) and `risk` [n] P(positive | x, a, tested), out of fold, of
    models that know no decider.
    """
    some = comparable_deciders(problem)
    if len(some) < 2:
        return None
    assert problem.decider is not None
    place = np.full(len(problem.decider_names) + 1, -1)
    place[some] = np.arange(len(some))
    part = place[problem.decider]  # [n], -1: not compared
    found = problem.y_imputed
    expected = testing * risk
    tests = _effects(people, part, len(some), problem.tested - testing, testing * (1 - testing))
    finds = _effects(people, part, len(some), found - expected, expected * (1 - expected))
    mixed = _effects(people, part, len(some), risk - people.mean(risk).value, None)
    # the covariance of both errors: that of what no effect moves
    both = _effects(people, part, len(some), 0 * testing, expected * (1 - testing))[1] ** 2
    slope, equal = _found_per_test(tests, finds, both)
    spread, mix = _spread_beyond_error(*tests), _spread_beyond_error(*mixed)
    shrink = spread.deviation.value**2 / (spread.deviation.value**2 + tests[1] ** 2)
    order = np.argsort(tests[0] * shrink)
    sides = (problem.tested, ~problem.tested, problem.y_obs == 1, problem.y_obs == 0)
    fewest = np.min([_people_per_decider(problem, side) for side in sides], axis=0)[some]
    variance = people.mean((risk - people.mean(risk).value) ** 2).value
    return Compared(
        number=len(some),
        left_out=float(people.mean((part < 0).astype(float)).value),
        testing=spread,
        effects=tuple(
            DeciderEffect(
                problem.decider_names[some[z]],
                _around(tests[0][z], tests[1][z]),
                _around(tests[0][z] * shrink[z], tests[1][z] * sqrt(shrink[z])),
                float(finds[0][z]),
                bool(fewest[z] < THRESHOLD),
            )
            for z in order
        ),
        mix=mix,
        mix_share=mix.deviation.value**2 / variance if variance > 0 else 0.0,
        one_more_test=slope,
        at_equal_rates=equal,
        order=_order(problem, people, part, testing, risk),
    )


Effects = tuple[np.ndarray, np.ndarray]  # effects [deciders] and their standard errors


def _around(value: float, error: float) -> Estimate:
    return Estimate(float(value), float(value - Z * error), float(value + Z * error))


def _effects(
    people: People, part: np.ndarray, number: int, left: np.ndarray, variance: np.ndarray | None
) -> Effects:
    """Mean of what is left over [n] by decider, around that of all who are compared.

    Errors are those that the variance of each row predicts, since the few people of a small
    decider do not tell their own; as much larger, on the whole, as a person's rows under one
    decider go together.
    """
    inside = part >= 0
    weight = np.where(inside, people.weight, 0.0)
    left = left - (weight @ left) / weight.sum()
    if variance is None:
        variance = np.full(len(left), (weight @ left**2) / weight.sum())
    size = np.bincount(part[inside], weight[inside], number)
    mean = np.bincount(part[inside], (weight * left)[inside], number) / size
    squares = np.bincount(part[inside], (weight**2 * variance)[inside], number)
    within = np.where(inside, weight * (left - mean[part]), 0.0)
    cluster = None  # a person's rows under one decider: those under others move other effects
    if people.person is not None:
        cluster = np.unique(people.person * (number + 1) + part, return_inverse=True)[1]
    together, apart = (clustered_error(within, one) for one in (cluster, None))
    wider = max(together / apart, 1.0) if apart > 0 else 1.0  # nothing varies where it is 0
    return mean, np.maximum(wider * np.sqrt(squares) / size, 1e-9)


def _q(effect: np.ndarray, error: np.ndarray, tau: float) -> float:
    weight = 1 / (error**2 + tau**2)
    return float(weight @ (effect - weight @ effect / weight.sum()) ** 2)


def _spread_beyond_error(effect: np.ndarray, error: np.ndarray, used: int = 1) -> Variation:
    """Their spread beyond error; `used` numbers were fitted to them."""
    freedom = len(effect) - used
    if freedom < 1:
        return Variation(Estimate(nan, reason="too few deciders"), nan)
    far = 0.5  # no shares differ by more

    def seen(tau: float) -> float:
        return _q(effect, error, tau)

    def by_chance(tau: float) -> float:  # what Q would be without any spread
        return float(freedom * np.mean(error**2 / (error**2 + tau**2)))

    def at(wanted: float, q: Callable[[float], float] = seen) -> float:
        if q(0.0) <= wanted:
            return 0.0
        if q(far) >= wanted:
            return float(far)
        return float(brentq(lambda tau: q(tau) - wanted, 0.0, far))

    low, high = (chi2.ppf(level, freedom) for level in ((1 + LEVEL) / 2, (1 - LEVEL) / 2))
    # Effects that happen to be more alike than chance makes them rule out no more than usual ones.
    most = max(at(high), at(high, by_chance))
    return Variation(Estimate(at(freedom), at(low), most), float(chi2.sf(seen(0.0), freedom)))


def _order(
    problem: SelectiveLabels,
    people: People,
    part: np.ndarray,
    testing: np.ndarray,
    risk: np.ndarray,
) -> dict[str, Variation]:
    """Do deciders who test more of some people test more of the others?

    Asked of each group, and of those above the middle of the risk that features predict.
    """
    asked = {HIGH_RISK: risk > np.median(risk)}
    if problem.n_groups > 1:
        asked |= {name: problem.group == code for code, name in enumerate(problem.group_names)}
    if problem.n_groups == 2:  # one mirrors the other
        del asked[problem.group_names[1]]
    found = {}
    for name, mine in asked.items():
        sizes = [
            np.bincount(part[rows & (part >= 0)], minlength=int(part.max()) + 1)
            for rows in (mine, ~mine)
        ]
        enough = np.flatnonzero(np.minimum(*sizes) >= THRESHOLD)
        if len(enough) < FOR_A_CURVE:
            continue
        place = np.full(int(part.max()) + 2, -1)
        place[enough] = np.arange(len(enough))
        others, here = (
            _effects(
                people,
                np.where(rows, place[part], -1),
                len(enough),
                problem.tested - testing,
                testing * (1 - testing),
            )
            for rows in (~mine, mine)
        )
        _, spread = _found_per_test(others, here, np.zeros(len(enough)))
        found[name] = spread
    checks = max(len(found), 1)
    return {
        name: Variation(one.deviation, min(1.0, one.p_value * checks))
        for name, one in found.items()
    }


def _found_per_test(tests: Effects, finds: Effects, both: np.ndarray) -> tuple[Estimate, Variation]:
    """What one more test finds, and the spread of what is found at equal rates."""
    (x, x_error), (y, y_error) = tests, finds
    if len(x) < 3:
        none = Estimate(nan, reason="fewer than three deciders")
        return none, Variation(none, nan)

    def error(slope: float) -> np.ndarray:
        variance = y_error**2 - 2 * slope * both + (slope * x_error) ** 2
        return np.sqrt(np.maximum(variance, 1e-12))

    def off(slope: float) -> float:
        return _q(y - slope * x, error(slope), 0.0)

    reach = 3.0  # one test finds between 0 and 1 where deciders test down one list
    slope = float(minimize_scalar(off, bounds=(-reach, reach), method="bounded").x)
    wider = max(1.0, off(slope) / (len(x) - 2))  # deciders may differ in more than their rates
    limit = off(slope) + wider * chi2.ppf(LEVEL, 1)
    low, high = (
        side * reach
        if off(side * reach) <= limit
        else float(brentq(lambda b: off(b) - limit, *sorted((slope, side * reach))))
        for side in (-1, 1)
    )
    found = Estimate(slope, low, high)
    if len(x) < FOR_A_CURVE:
        return found, Variation(Estimate(nan, reason=f"fewer than {FOR_A_CURVE} deciders"), nan)
    # The likeliest are tested first, so that more tests find less and less.
    bent, weight = np.stack([np.ones(len(x)), x, x**2], axis=1), 1 / error(slope)
    left = y - bent @ np.linalg.lstsq(bent * weight[:, None], y * weight, rcond=None)[0]
    return found, _spread_beyond_error(left, error(slope), used=3)
