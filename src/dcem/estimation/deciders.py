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

*Deciders of one place.* Judges sit in courts and doctors work on wards. Where a feature says so,
deciders of different places are never seen at equal features. They are compared with those of the
same place: Q is summed over places, each around its own mean, and each takes a degree of freedom
(the fixed effects of courts in studies of judges).

*Comparable people.* Do the risks that features predict differ between deciders? The model of risk
errs, by as much in all people of a kind: where a decider mostly sees one kind, no number of people
averages that out, and it looks like a difference in who comes. So its covariance is part of Q.

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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan, sqrt
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import chi2
from sklearn.preprocessing import StandardScaler

from dcem.estimation.cross_fitting import Features
from dcem.estimation.influence import FEWEST_PEOPLE, LEVEL, People, Z, clustered_covariance
from dcem.estimation.nuisance_learners import Medians
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import THRESHOLD, people_of
from dcem.table.labels import SelectiveLabels
from dcem.text import listed

HIGH_RISK = "people at higher risk"
FOR_A_CURVE = 4  # deciders beyond one of each place: what they find bends with how much they test
NESTED = 0.9  # share of the errors in guessing a column that knowing the decider avoids: a place


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
    left_out: float  # share of the rows whose decider is too small, alone or not recorded
    testing: Variation
    effects: tuple[DeciderEffect, ...]  # from the fewest tests to the most
    mix: Variation  # of the risk that features predict: do deciders get comparable people?
    mix_share: float  # of the variance of that risk that lies between deciders
    one_more_test: Estimate  # what it finds: the slope of found against tested
    at_equal_rates: Variation  # of what deciders find who test equally
    # part of the people -> of how much deciders test it who test the others equally
    order: Mapping[str, Variation]
    within: tuple[str, ...] = ()  # features that say where a decider works: compared at equal ones


def comparable_deciders(problem: SelectiveLabels) -> np.ndarray:
    """Codes of the deciders who have decided on enough people."""
    return np.flatnonzero(_people_per_decider(problem, problem.weights > 0) >= FEWEST_PEOPLE)


def _people_per_decider(problem: SelectiveLabels, rows: np.ndarray) -> np.ndarray:
    """How many people of some rows (a mask) each decider decided on."""
    assert problem.decider is not None
    rows = rows & (problem.decider >= 0)
    return people_of(problem.decider[rows], problem.person[rows], len(problem.decider_names))


def decider_places(
    problem: SelectiveLabels, some: np.ndarray, names: Sequence[str]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Where each of `some` deciders works [deciders], codes from 0, and the features that say it.

    They are those in which a decider's people hardly ever differ, although others' do: knowing the
    decider avoids nearly all errors in guessing the value (lambda of Goodman and Kruskal 1954).
    `names` are those of the features, or of the columns that they come from.
    """
    assert problem.decider is not None
    inside = np.isin(problem.decider, some)
    who = np.searchsorted(some, problem.decider[inside])
    columns = [*zip(names, problem.X.T, strict=True)]
    if problem.n_groups > 1:
        columns.append(("group", problem.group))
    usual, said = [np.zeros(len(some), int)], {}
    for name, column in columns:
        values, code = np.unique(column[inside], return_inverse=True)
        both, rows = np.unique(who * len(values) + code, return_counts=True)
        both = both[np.argsort(rows, kind="stable")]
        own = np.zeros(len(some), int)
        own[both // len(values)] = both % len(values)  # the last of a decider's, the commonest
        missed = len(who) - np.bincount(code).max()
        if np.sum(own[who] != code) < (1 - NESTED) * missed:
            usual.append(own)
            said[name] = True
    place = np.unique(np.stack(usual, axis=1), axis=0, return_inverse=True)[1]
    return place.ravel(), tuple(said)


def compare_deciders(
    problem: SelectiveLabels,
    people: People,
    testing: np.ndarray,
    risk: np.ndarray,
    sources: Sequence[str] | None = None,
) -> Compared | str:
    """What sets deciders apart, or why no two of them can be compared.

    `testing` [n] is P(tested | x, a) and `risk` [n] P(positive | x, a, tested), out of fold, of
    models that know no decider. `sources` are the columns that features are called by; by default,
    they have names of their own.
    """
    some = comparable_deciders(problem)
    if len(some) < 2:
        return f"fewer than two deciders have decided on at least {FEWEST_PEOPLE} people"
    assert problem.decider is not None
    place, within = decider_places(problem, some, sources or problem.feature_names)
    alone = np.bincount(place)[place] == 1
    if alone.all():
        return f"no two deciders have the same {listed(within)}: to compare them, leave that out"
    some, place = some[~alone], np.unique(place[~alone], return_inverse=True)[1]
    number = np.full(len(problem.decider_names) + 1, -1)
    number[some] = np.arange(len(some))
    part = np.where(people.weight > 0, number[problem.decider], -1)  # [n], -1: not compared
    found = problem.y_imputed
    expected = testing * risk
    tests = _effects(people, part, place, problem.tested - testing, testing * (1 - testing))
    finds = _effects(people, part, place, found - expected, expected * (1 - expected))
    # the covariance of both errors: that of what no effect moves
    both = _effects(people, part, place, 0 * testing, expected * (1 - testing)).error ** 2
    common = _mean_there(people, part, place, risk)
    slope, equal = _found_per_test(tests, finds, both, common)
    spread = _spread_beyond_error(tests)
    mix = _spread_beyond_error(_mean_risks(problem, people, part, place, risk))
    shrink = spread.deviation.value**2 / (spread.deviation.value**2 + tests.error**2)
    order = np.argsort(tests.mean * shrink)
    sides = (problem.tested, ~problem.tested, problem.y_obs == 1, problem.y_obs == 0)
    fewest = np.min([_people_per_decider(problem, side) for side in sides], axis=0)[some]
    variance = people.mean((risk - common[part]) ** 2, part >= 0).value
    return Compared(
        number=len(some),
        left_out=float(people.mean((part < 0).astype(float)).value),
        testing=spread,
        effects=tuple(
            DeciderEffect(
                problem.decider_names[some[z]],
                _around(tests.mean[z], tests.error[z]),
                _around(tests.mean[z] * shrink[z], tests.error[z] * sqrt(shrink[z])),
                float(finds.mean[z]),
                bool(fewest[z] < THRESHOLD),
            )
            for z in order
        ),
        mix=mix,
        mix_share=mix.deviation.value**2 / variance if variance > 0 else 0.0,
        one_more_test=slope,
        at_equal_rates=equal,
        order=_order(problem, people, part, place, testing, risk),
        within=within,
    )


class Effects(NamedTuple):
    """By how much deciders differ from others of their place in something."""

    mean: np.ndarray  # [deciders]
    error: np.ndarray  # [deciders] standard errors
    base: np.ndarray  # [deciders, places] whether they work there: each place has its own mean

    @property
    def freedom(self) -> int:
        """Deciders beyond one of each place."""
        return int(np.subtract(*self.base.shape))


def _mean_there(
    people: People, part: np.ndarray, place: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """The mean of `values` [n] at the place where each decider works [deciders]."""
    inside = part >= 0
    where, weight = place[part[inside]], people.weight[inside]
    mean = np.bincount(where, weight * values[inside]) / np.bincount(where, weight)
    return np.asarray(mean[place])


def _around(value: float, error: float) -> Estimate:
    return Estimate(float(value), float(value - Z * error), float(value + Z * error))


def _effects(
    people: People,
    part: np.ndarray,
    place: np.ndarray,
    left: np.ndarray,
    variance: np.ndarray | None,
) -> Effects:
    """Mean of what is left over [n] by decider, around that of the place.

    Errors are those that the variance of each row predicts (if None: the variance of the place),
    since the few people of a small decider do not tell their own; as much larger, on the whole, as
    a person's rows under one decider go together.
    """
    inside, number = part >= 0, len(place)
    weight = np.where(inside, people.weight, 0.0)
    left = left - _mean_there(people, part, place, left)[part]
    if variance is None:
        variance = _mean_there(people, part, place, left**2)[part]
    size = np.bincount(part[inside], weight[inside], number)
    mean = np.bincount(part[inside], (weight * left)[inside], number) / size
    squares = np.bincount(part[inside], (weight**2 * variance)[inside], number)
    cluster = None  # a person's rows under one decider: those under others move other effects
    if people.person is not None:
        cluster = np.unique(people.person * (number + 1) + part, return_inverse=True)[1]
    wider = People(weight, cluster, len(weight)).design_effect(left - mean[part])
    error = np.maximum(np.sqrt(wider * squares) / size, 1e-9)
    return Effects(mean, error, place[:, None] == np.unique(place))


def _mean_risks(
    problem: SelectiveLabels, people: People, part: np.ndarray, place: np.ndarray, risk: np.ndarray
) -> Effects:
    """Those of deciders, errors of the model in their errors; turned so that no two share one.

    Errors of the model are those of a logistic regression with the penalty of `candidate_models`.
    They move a decider's mean by as much as the mean of their columns is off that of their place.
    What of that is chance is in the variance of risks already, and is drawn in (James and Stein
    1961).
    """
    columns = Features.of(problem).take(np.arange(len(problem)))
    columns = StandardScaler().fit_transform(Medians().fit_transform(columns))
    columns = np.append(columns, np.ones((len(columns), 1)), axis=1)
    slope, weight = risk * (1 - risk), people.weight * problem.tested
    penalty = np.diag(np.append(np.ones(columns.shape[1] - 1), 1e-9))
    curvature = (columns * (weight * slope)[:, None]).T @ columns + penalty
    pull = columns * (weight * (problem.y_imputed - risk))[:, None]
    moved = []  # [columns, deciders]
    for column in columns.T:
        means = _effects(people, part, place, slope * column, None)
        by_chance = means.freedom / max(_q(means, 0.0), means.freedom)
        moved.append((1 - by_chance) * means.mean)
    noise = clustered_covariance(pull, curvature, people.person)
    shared = np.transpose(moved) @ noise @ moved
    mixed = _effects(people, part, place, risk, None)
    variance, axes = np.linalg.eigh(np.diag(mixed.error**2) + shared)
    error = np.sqrt(np.maximum(variance, 1e-18))
    return Effects(axes.T @ mixed.mean, error, axes.T @ mixed.base)


def _q(found: Effects, tau: float) -> float:
    root = 1 / np.sqrt(found.error**2 + tau**2)
    base, mean = found.base * root[:, None], found.mean * root
    left = mean - base @ np.linalg.lstsq(base, mean, rcond=None)[0]
    return float(left @ left)


def _spread_beyond_error(found: Effects, used: int = 0) -> Variation:
    """Their spread beyond error; `used` numbers were fitted to them beside the means of places."""
    freedom, error = found.freedom - used, found.error
    if freedom < 1:
        return Variation(Estimate(nan, reason="too few deciders"), nan)
    far = 0.5  # no shares differ by more

    def seen(tau: float) -> float:
        return _q(found, tau)

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
    place: np.ndarray,
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
        where = np.unique(place[enough], return_inverse=True)[1]
        if len(where) - len(np.unique(where)) < FOR_A_CURVE:
            continue
        number = np.full(int(part.max()) + 2, -1)
        number[enough] = np.arange(len(enough))
        others, here = (
            _effects(
                people,
                np.where(rows, number[part], -1),
                where,
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


def _found_per_test(
    tests: Effects, finds: Effects, both: np.ndarray, common: np.ndarray | float = 0.0
) -> tuple[Estimate, Variation]:
    """What one more test finds, and the spread of what is found at equal rates.

    `common` [deciders] is how common the outcome is where they work: there, tests find more.
    """
    (x, x_error, base), (y, y_error, _) = tests, finds
    none = Estimate(nan, reason="too few deciders")
    if tests.freedom < 2:
        return none, Variation(none, nan)

    def error(slope: float) -> np.ndarray:
        variance = y_error**2 - 2 * slope * both + (slope * x_error) ** 2
        return np.sqrt(np.maximum(variance, 1e-12))

    def off(slope: float) -> float:
        return _q(Effects(y - slope * x, error(slope), base), 0.0)

    reach = 3.0  # one test finds between 0 and 1 where deciders test down one list
    slope = float(minimize_scalar(off, bounds=(-reach, reach), method="bounded").x)
    # deciders may differ in more than their rates
    wider = max(1.0, off(slope) / (tests.freedom - 1))
    limit = off(slope) + wider * chi2.ppf(LEVEL, 1)
    low, high = (
        side * reach
        if off(side * reach) <= limit
        else float(brentq(lambda b: off(b) - limit, *sorted((slope, side * reach))))
        for side in (-1, 1)
    )
    found = Estimate(slope, low, high)
    if tests.freedom < FOR_A_CURVE:
        return found, Variation(none, nan)
    # The likeliest are tested first, so that more tests find less and less.
    bent = np.column_stack([base, x, x**2, common * x])
    weight = 1 / error(slope)
    left = y - bent @ np.linalg.lstsq(bent * weight[:, None], y * weight, rcond=None)[0]
    used = int(np.linalg.matrix_rank(bent)) - base.shape[1]
    return found, _spread_beyond_error(Effects(left, error(slope), base), used)
