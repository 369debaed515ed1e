"""Numbers that know how each row moved them, and so how uncertain they are.

Every estimate of an audit or a comparison is, to first order, an average over people of an
*influence*: how much the number moves when a row counts a little more. Influences of the rows of
one person add up; the variance of the number is the sum of their squares. A difference or a ratio
of two numbers needs nothing new, because its influences are differences of influences, so
comparisons are paired without resampling. Rows may be correlated within a person in any way; people
are taken as independent. Whatever else a number owes its uncertainty to (a stated rate of a test,
the luck of training) is written behind the rows, as the influence of a person nobody met.

The models behind a number are fitted to other people than they speak of (cross-fitting), and the
numbers built on them are, where possible, insensitive to small errors in them, so that the
influence of fitting may be left out (Chernozhukov et al., "Double/debiased machine learning",
Econometrics Journal 2018).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import inf, isfinite, nan, sqrt
from typing import TypeVar

import numpy as np
from scipy.special import expit, stdtrit
from scipy.stats import norm

from dcem.metrics.estimate import Estimate, share_interval
from dcem.table.disclosure import THRESHOLD
from dcem.table.labels import SelectiveLabels

LEVEL = 0.95
Z = float(norm.ppf(0.5 + LEVEL / 2))
DRAWS = 20_000  # of the largest of several differences
FEWEST_PEOPLE = 30  # a model-based number about fewer people is not estimable
FEWEST_TESTED = THRESHOLD  # people of a class: intervals, and the privacy of the few, need as many
ROUNDING = 1e-9  # numbers that are met by construction, as stated rates are, are off by less
Key = TypeVar("Key", bound=Hashable)  # of a comparison: a group, or a pair of them


@dataclass(frozen=True)
class Statistic:
    """A value and the influence of each row on it [n]; influences sum to about zero.

    Entries behind those of the rows are independent of all rows and of each other.
    """

    value: float
    influence: np.ndarray

    def __add__(self, other: Statistic) -> Statistic:
        mine, others = _same_length(self.influence, other.influence)
        return Statistic(self.value + other.value, mine + others)

    def __sub__(self, other: Statistic) -> Statistic:
        mine, others = _same_length(self.influence, other.influence)
        return Statistic(self.value - other.value, mine - others)

    def __mul__(self, factor: float) -> Statistic:
        return Statistic(self.value * factor, self.influence * factor)

    def __truediv__(self, other: Statistic) -> Statistic:
        """The ratio, by the delta method."""
        value = self.value / other.value
        mine, others = _same_length(self.influence, other.influence)
        return Statistic(value, (mine - value * others) / other.value)

    def plus(self, more: Sequence[float] | np.ndarray) -> Statistic:
        """With more that moves it, each by so many of its own standard errors."""
        return Statistic(self.value, np.append(self.influence, more))

    def log(self) -> Statistic:
        """The logarithm, by the delta method."""
        return Statistic(float(np.log(self.value)), self.influence / self.value)

    def standard_error(self, person: np.ndarray | None) -> float:
        """Root of the summed squared influences of people (codes [n]; None: every row is one)."""
        return clustered_error(self.influence, person)

    def estimate(
        self,
        person: np.ndarray | None,
        level: float = LEVEL,
        *,
        share: bool = False,
        behind: int = 0,
        corrected: bool = False,
    ) -> Estimate:
        """With its interval; of a `share`, on the log-odds scale, so it stays in (0, 1).

        Where few people carry a number the interval takes Student's quantile (`freedom`); for a
        share, no less than that for the people `behind` it, those of the rarer class. Close to 0
        and 1, see `share_ends`. A share `corrected` for an imperfect test can leave 0 and 1
        although rows do move it: where its interval does, it is cut off there.
        """
        if share and corrected:
            plain = self.estimate(person, level)
            if plain.low <= 0 < plain.high or plain.low < 1 <= plain.high:
                return plain.clipped()
        if self.value == 0 and not share and not self.influence.any():
            return Estimate(0.0, 0.0, 0.0)  # a difference of two that are the same
        error = self.standard_error(person)
        if share and not isfinite(error) and (self.value <= 0 or self.value >= 1):
            error = 0.0  # all are alike, and nobody moves it
        if not isfinite(self.value) or not isfinite(error):
            return Estimate(nan, reason="it rests on too few people")
        left = freedom(self.influence, person)
        left = min(left, behind - 1) if share and behind > 1 else left
        reach = students(left, level) * error
        if share:
            ends = share_ends(self.value, reach, max(behind, 1), level)
            return Estimate(float(np.clip(self.value, 0, 1)), *ends)
        return Estimate(self.value, self.value - reach, self.value + reach)


def quotient(above: np.ndarray, below: np.ndarray) -> Statistic:
    """The sum of `above` over that of `below`, both [n]; NaN where that is not positive."""
    total = below.sum()
    if total <= 0:
        return Statistic(nan, np.zeros(len(below)))
    value = float(above.sum() / total)
    return Statistic(value, (above - value * below) / total)


def clustered_error(influence: np.ndarray, person: np.ndarray | None) -> float:
    """The standard error that goes with an influence [n], a person's rows taken together.

    People whom the number does not concern have no influence and are not counted.
    """
    if person is not None:
        moved = of_people(influence != 0, person) > 0
        influence = of_people(influence, person)[moved]
    else:
        influence = influence[influence != 0]
    people = len(influence)
    if people < 2:
        return nan
    return sqrt(float(influence @ influence) * people / (people - 1))


def freedom(influence: np.ndarray, person: np.ndarray | None, rows: int | None = None) -> float:
    """Degrees of freedom of the error that goes with an influence: few where few people carry it.

    Rare outcomes and heavy weights leave the squares of a few people to tell the error, and a
    normal interval would be too narrow. Their kurtosis tells how much it varies (Satterthwaite
    1946): n normal influences have about n, and no n have more than n - 1. What stands behind the
    `rows` (nothing, if neither they nor people are given) has a known error, and takes none away.
    """
    if person is not None:
        rows, influence = int(person.max()) + 1, of_people(influence, person)
    square = influence[:rows] ** 2
    met, own = max(int(np.count_nonzero(square)), 2), float(square.sum())
    spread = max(float(square @ square) - own**2 / met, 2 * own**2 / (met - 1))
    return max(2 * float(influence @ influence) ** 2 / spread, 2.0) if spread > 0 else inf


def students(freedom: float, level: float) -> float:
    """Standard errors that an interval reaches: Student's quantile, and n / (n - 1) for squares."""
    return float(stdtrit(freedom, (1 + level) / 2)) * sqrt(1 + 1 / freedom)


def of_people(influence: np.ndarray, person: np.ndarray) -> np.ndarray:
    """Influences of people, from those of their rows; what stands behind the rows stays."""
    rows = len(person)
    return np.append(np.bincount(person, influence[:rows]), influence[rows:])


def covariance(influences: np.ndarray, person: np.ndarray | None) -> np.ndarray:
    """Of numbers with these influences [numbers, n]; those of a person add up."""
    if person is not None:
        influences = np.stack([of_people(one, person) for one in influences])
    return np.asarray(influences @ influences.T)


def correlated(influences: np.ndarray, person: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The correlation of numbers with these influences [numbers, n], and the size of each."""
    joint = covariance(influences, person)
    size = np.sqrt(np.diag(joint))
    return joint / np.outer(size, size), size


def _same_length(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two influences, the shorter filled up: what is not in it does not move it."""
    if len(one) == len(other):
        return one, other
    longest = max(len(one), len(other))
    return np.pad(one, (0, longest - len(one))), np.pad(other, (0, longest - len(other)))


@dataclass(frozen=True)
class People:
    """Who the rows belong to and how much each counts."""

    weight: np.ndarray  # [n]
    person: np.ndarray | None  # [n] codes, None if every row is a person
    n_people: int

    @classmethod
    def of(cls, problem: SelectiveLabels) -> People:
        """The people of a table."""
        if problem.id is None:
            return cls(problem.weights, None, len(problem))
        person = problem.person
        return cls(problem.weights, person, int(person.max()) + 1 if len(person) else 0)

    def among(self, rows: np.ndarray) -> People:
        """The same people, rows outside (a mask) without weight."""
        return People(self.weight * rows, self.person, self.n_people)

    def count(self, among: np.ndarray) -> int:
        """Number of different people among these rows (a mask)."""
        if self.person is None:
            return int(among.sum())
        return int(np.bincount(self.person[among], minlength=1).astype(bool).sum())

    def mean(self, values: np.ndarray, among: np.ndarray | None = None) -> Statistic:
        """The weighted mean of `values`, each row counting `among` (a mask or more weights)."""
        one = np.ones(len(values)) if among is None else among
        return self.quotient(values * one, one)

    def quotient(self, above: np.ndarray, below: np.ndarray) -> Statistic:
        """The weighted sum of `above` over that of `below`, both [n]."""
        return quotient(self.weight * above, self.weight * below)

    def error(self, statistic: Statistic) -> float:
        """The standard error of a statistic of these people, for normal quantiles.

        Where few of them carry it, it is larger by as much as Student's quantile is.
        """
        left = freedom(statistic.influence, self.person, len(self.weight))
        return statistic.standard_error(self.person) * students(left, LEVEL) / Z

    def hidden_error(
        self, surplus: Statistic, counts: np.ndarray, tested: np.ndarray, chance: np.ndarray
    ) -> float:
        """The error of a surplus of tests over their `chance` [n] that its rows do not show.

        Rows of which few are tested, or all but a few, hardly vary, and the error looks smaller
        than it is: none of forty people, where two were expected, would be beyond chance. So the
        variance is drawn towards the one that the chances give (a row `counts` [n] so much), by as
        much as the z² people that Wilson's interval adds weigh against those of the rarer class.
        """
        seen = min(self.count((counts > 0) & yes) for yes in (tested, ~tested))
        by_chance = counts**2 @ (chance * (1 - chance)) * self.design_effect(tested - chance)
        hidden = by_chance - surplus.standard_error(self.person) ** 2
        return sqrt(max(float(hidden), 0.0) * Z**2 / (Z**2 + seen))

    def design_effect(self, values: np.ndarray) -> float:
        """How many times the variance of a mean of `values` [n] is that of independent rows.

        It is 1 if every row is a person, and never less (Kish 1965): visits of a person are alike.
        """
        moved = self.mean(values).influence
        together, apart = (clustered_error(moved, one) for one in (self.person, None))
        return max(1.0, together / apart) ** 2 if apart > 0 else 1.0

    def interval(self, statistic: Statistic) -> Estimate:
        """Estimate with a normal interval."""
        if np.isnan(statistic.value):
            return Estimate(nan, reason="there is nobody to estimate it from")
        error = self.error(statistic)
        reach = Z * (0.0 if np.isnan(error) else error)  # nobody moves it: it is exact
        return Estimate(statistic.value, statistic.value - reach, statistic.value + reach)

    def ratio(self, above: Statistic, below: Statistic) -> Estimate:
        """The ratio of two clearly positive estimates, its interval made on the log scale."""
        if not min(self.interval(above).low, self.interval(below).low) > 0:
            return Estimate(nan, reason="no ratio: one of the rates may be zero")
        return self.interval(above.log() - below.log()).exp()

    def proportion(self, yes: np.ndarray, among: np.ndarray, level: float = LEVEL) -> Estimate:
        """A share with Wilson's interval, at its effective sample size.

        That is the number of independent people that would give the same variance (Korn and
        Graubard 1998). Unlike the normal interval it stays inside 0 and 1, and is not a point at 0.
        """
        share = self.mean(yes.astype(float), among)
        if np.isnan(share.value):
            return Estimate(nan, reason="there is nobody to estimate it from")
        p, error = share.value, share.standard_error(self.person)
        if error > 0:
            size = p * (1 - p) / error**2
        else:  # all alike: as many people, however many rows they have
            weight = self.weight * among
            size = kish(weight if self.person is None else np.bincount(self.person, weight))
        low, high = wilson(p, max(size, 1.0), level)
        return Estimate(p, min(low, p), max(high, p))

    def rates(
        self, yes: np.ndarray, score: np.ndarray, mine: np.ndarray, part: np.ndarray
    ) -> np.ndarray:
        """Mean score, share of `yes` and its interval in each part of the rows `mine`: [4, parts].

        `part` [n] says which part a row is in. Parts in which fewer than ten people stand on a side
        are put together with their neighbours: left out, they would follow from the totals.
        """
        points, ends = [], [-1]
        for number in (numbers := np.unique(part[mine])):
            here = mine & (part > ends[-1]) & (part <= number)
            if min(self.count(here & yes), self.count(here & ~yes)) >= FEWEST_TESTED:
                ends.append(number)
        ends[-1] = numbers[-1] if len(ends) > 1 else -1  # what is left goes to the last
        for after, last in pairwise(ends):
            here = mine & (part > after) & (part <= last)
            share = self.proportion(yes, here)
            points.append((self.mean(score, here).value, share.value, share.low, share.high))
        return np.array(points).reshape(-1, 4).T


@dataclass(frozen=True)
class Comparison:
    """A difference between two groups, among several that were looked at."""

    value: Estimate  # on its own
    simultaneous: Estimate  # with the interval that holds for all comparisons at once
    p_value: float  # corrected for the number of comparisons


def simultaneous(
    people: People,
    statistics: Mapping[Key, Statistic],
    *,
    level: float = LEVEL,
    draws: int = DRAWS,
) -> dict[Key, Comparison]:
    """Several differences of one table at once: intervals and p-values of the family.

    Of many comparisons some look large by chance, and the largest always does. The largest of the
    standardised differences, if none were real, has a distribution that follows from their
    correlation; it is simulated, and each difference is compared with it (single-step max-t:
    Hothorn, Bretz and Westfall, "Simultaneous inference in general parametric models", Biometrical
    Journal 2008). For all pairs of groups that is Tukey's procedure, for all against one Dunnett's,
    without their assumption of equal variances.
    """
    found = {
        key: Comparison(people.interval(one), people.interval(one), nan)
        for key, one in statistics.items()
    }
    usable = _usable(people, statistics)
    if not usable:
        return found
    largest = _largest_by_chance(people, usable, draws)
    reach = _quantile(largest, level)
    for key, one in usable.items():
        error = people.error(one)
        single = two_sided(one.value / error)
        # beyond what any draw reaches, Bonferroni bounds it
        p = max(single, float(np.mean(largest >= abs(one.value) / error)))
        p = p if p > 50 / draws else min(1.0, single * len(usable))
        wide = Estimate(one.value, one.value - reach * error, one.value + reach * error)
        found[key] = Comparison(found[key].value, wide, p)
    return found


def against_others(people: People, statistics: Mapping[str, Statistic]) -> dict[str, Comparison]:
    """Each group's difference from the others, corrected for the number of groups.

    Of two groups one mirrors the other, and there is one comparison; unless both are compared with
    a third.
    """
    values = [one.value for one in statistics.values()]
    if len(values) != 2 or abs(sum(values)) > 1e-6 * abs(values[0]):
        return simultaneous(people, statistics)
    return {name: simultaneous(people, {name: one})[name] for name, one in statistics.items()}


def differences(statistics: Mapping[str, Statistic]) -> dict[tuple[str, str], Statistic]:
    """Differences of every two: what the best and the worst were picked from."""
    return {(a, b): statistics[a] - statistics[b] for a, b in combinations(statistics, 2)}


def most_and_least(statistics: Mapping[str, Statistic]) -> tuple[str, str] | None:
    """Which is the largest and which the smallest, if there are two."""
    ordered = sorted(statistics, key=lambda name: -statistics[name].value)
    return (ordered[0], ordered[-1]) if len(ordered) > 1 else None


def widest_gap(
    people: People, statistics: Mapping[str, Statistic]
) -> tuple[tuple[str, str] | None, float]:
    """The largest and the smallest, and the p-value of no difference, corrected for all pairs."""
    pair = most_and_least(statistics)
    if pair is None:
        return None, nan
    found = simultaneous(people, differences(statistics))
    return pair, (found.get(pair) or found[pair[::-1]]).p_value


def critical_value(people: People, statistics: Mapping[Key, Statistic]) -> float:
    """How many standard errors the largest of several differences has to be away from zero."""
    usable = _usable(people, statistics)
    return _quantile(_largest_by_chance(people, usable, DRAWS), LEVEL) if usable else Z


def _usable(people: People, statistics: Mapping[Key, Statistic]) -> dict[Key, Statistic]:
    return {
        key: one
        for key, one in statistics.items()
        if isfinite(one.value) and people.error(one) > ROUNDING
    }


def _quantile(largest: np.ndarray, level: float) -> float:
    """Of the simulated maxima; never less than that of a single normal."""
    return max(float(np.quantile(largest, level)), float(norm.ppf((1 + level) / 2)))


def _largest_by_chance(
    people: People, statistics: Mapping[Key, Statistic], draws: int
) -> np.ndarray:
    """Draws of the largest |z| if no difference were real [draws]."""
    longest = max(len(one.influence) for one in statistics.values())
    rows = np.stack(
        [np.pad(one.influence, (0, longest - len(one.influence))) for one in statistics.values()]
    )
    correlation, _ = correlated(rows, people.person)
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0))
    normal = np.random.default_rng(0).standard_normal((draws, len(values)))
    return np.abs(normal @ root.T).max(axis=1)


def wilson(share: float, people: float, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's interval of a share among so many people."""
    z = float(norm.ppf((1 + level) / 2))
    room = z * z / people
    middle = (share + room / 2) / (1 + room)
    reach = z / (1 + room) * sqrt(share * (1 - share) / people + room / (4 * people))
    return max(middle - reach, 0.0), min(middle + reach, 1.0)


def share_ends(
    share: float, reach: float, people: float, level: float = LEVEL
) -> tuple[float, float]:
    """The interval of a share that reaches so far to either side, known of so many people.

    It is made on the log-odds scale. Nearer to 0 than it reaches, that scale would stretch the
    other end without bound; and at 0, where nobody was seen to be positive, the error tells nothing
    of how little that proves. Towards 0, that end becomes the further of Wilson's and the plain
    one. Towards 1 likewise.
    """
    return 1 - _upper_end(1 - share, reach, people, level), _upper_end(share, reach, people, level)


def _upper_end(share: float, reach: float, people: float, level: float) -> float:
    if share >= 1:
        return 1.0
    plain = max(wilson(max(share, 0.0), people, level)[1], min(share + reach, 1.0))
    if share <= 0:
        return plain
    near = 1 - share / reach if reach > share else 0.0
    _, stretched = share_interval(max(share, min(reach, 0.5)), reach)
    return near * plain + (1 - near) * stretched


def logistic(
    X: np.ndarray,
    positive: np.ndarray,
    total: np.ndarray,
    *,
    offset: np.ndarray | float = 0.0,
    ridge: np.ndarray | float = 0.0,
    start: Sequence[float] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients [p] of a logistic regression, each row's pull on them [n, p], the curvature.

    `positive` and `total` are masses of rows [n]: labels and ones by their weights, or what stands
    for them. `ridge` [p] is the penalty of each coefficient. Coefficients are NaN where there is no
    root: classes are apart, or columns alike.
    """
    at, change = np.zeros(X.shape[1]) if start is None else np.array(start), inf
    for _ in range(50):
        risk = expit(offset + X @ at)
        left = positive - total * risk
        curvature = (X * (total * risk * (1 - risk))[:, None]).T @ X
        curvature += ridge * np.eye(len(at))
        if not np.isfinite(curvature).all() or np.linalg.cond(curvature) > 1e12:
            change = inf
            break
        step = np.linalg.solve(curvature, left @ X - ridge * at)
        change = float(np.abs(step).max())
        at = at + step / max(change, 1)  # a long step is shortened, and keeps its direction
        if change < 1e-9:
            break
    return at if change < 1e-6 else np.full(len(at), nan), X * left[:, None], curvature


def clustered_covariance(
    pull: np.ndarray, curvature: np.ndarray, person: np.ndarray | None = None
) -> np.ndarray:
    """The covariance [p, p] of coefficients with these pulls [n, p]; those of a person add up."""
    bread = np.linalg.inv(curvature)
    return bread @ covariance(pull.T, person) @ bread


def kish(weights: np.ndarray) -> float:
    """Effective sample size: how many equally weighted rows tell as much (Kish 1965)."""
    square = float(weights @ weights)
    return float(weights.sum()) ** 2 / square if square > 0 else 0.0


def two_sided(z: float) -> float:
    """The p-value of a standard normal statistic."""
    return float(2 * norm.sf(abs(z)))


def survey_error(influence: np.ndarray, stratum: np.ndarray, unit: np.ndarray) -> float:
    """The standard error of a number from a survey, given the influence of each row [n].

    Sampling units were drawn within strata: their totals vary around the mean of their stratum.
    A stratum with a single unit is compared with the mean of all (Taylor linearisation, with
    replacement). `stratum` and `unit` are codes; units are unique over strata.
    """
    totals = np.bincount(unit, influence)
    of_unit = np.zeros(len(totals), np.int64)
    of_unit[unit] = stratum
    counts = np.bincount(of_unit)
    middle = np.where(
        counts > 1, np.bincount(of_unit, totals) / np.maximum(counts, 1), totals.mean()
    )
    factor = np.where(counts > 1, counts / np.maximum(counts - 1, 1), 1.0)
    return float(np.sqrt(factor[of_unit] @ (totals - middle[of_unit]) ** 2))
