"""How strong would an unmeasured cause have to be to explain a disparity in testing away?

The first sensitivity analysis. Its estimand is the difference in testing rates between a group and
everybody else at equal features. Suppose something that is not in the table, tied to the group,
also drives testing. If it explains a share `r_g` of what the features leave open about the group
and a share `r_t` of what features and group leave open about testing (partial R²), the difference
is off by at most

    bias = S sqrt(r_t r_g / (1 - r_g)),   S = sd(testing left open) / sd(group left open).

The *robustness value* is the r_g = r_t at which the bias eats the whole difference, or its interval
(Cinelli and Hazlett, "Making sense of sensitivity", JRSS-B 2020; Chernozhukov et al., "Long story
short: omitted variable bias in causal machine learning", 2022). The *E-value* says the same as risk
ratios: an unmeasured cause would have to be tied to both group and testing by a ratio at least as
large (VanderWeele and Ding, Annals of Internal Medicine 2017). For scale, the strongest measured
columns are put on the same axes: how strong an unmeasured cause would be that is tied to group and
testing as a measured column is (Cinelli and Hazlett's benchmark bounds, from linear regressions).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan, sqrt

import numpy as np

from dcem.audit.results import ColumnStrength, TestingRate, TestingSensitivity
from dcem.audit.sensitivity import Breakdown
from dcem.audit.testing import compared_people
from dcem.estimation.bounds import standardized
from dcem.estimation.cross_fitting import draw_rows
from dcem.estimation.influence import People
from dcem.estimation.nuisances import Nuisances
from dcem.table.labels import SelectiveLabels

ROWS = 50_000  # at most so many rows tell how strong the measured columns are
STRONGEST = 3  # measured columns that are told of
STRENGTH = np.linspace(0, 0.3, 61)


def testing_sensitivity(
    problem: SelectiveLabels,
    people: People,
    rates: Sequence[TestingRate],
    nuisances: Nuisances,
    sources: Sequence[str],
    rng: np.random.Generator,
) -> TestingSensitivity | None:
    """For the group whose difference is the surest; None if no group has one."""
    usable = [rate for rate in rates if rate.difference.estimable]
    if not usable:
        return None
    # Of two groups one mirrors the other; then it is told of the one that is tested less.
    two = len(rates) == 2 and problem.reference_group is None
    rate = min(
        usable,  # p-values of a large table may all be 0
        key=lambda r: (r.difference.value, 0) if two else (r.p_value, -abs(r.difference.value)),
    )
    mine = problem.group == problem.group_names.index(rate.group)
    some, testing, member = compared_people(problem, people, nuisances, rate.group)
    scale = bias_scale(problem, some, testing, mine - member, rate.difference.value)
    others = f"group {problem.reference_group}" if problem.reference_group else "others"
    bias = np.array([scale * largest_bias(r, r) for r in STRENGTH])
    less = "less" if rate.difference.value < 0 else "more"
    ratio = rate.ratio
    return TestingSensitivity(
        group=rate.group,
        difference=rate.difference,
        strength=STRENGTH,
        low=rate.difference.value - bias,
        high=rate.difference.value + bias,
        breakdown=Breakdown(
            f"group {rate.group} is tested {less} often than {others} with the same features",
            robustness_value(abs(rate.difference.value) / scale),
            robustness_value(max(rate.difference.low, -rate.difference.high, 0.0) / scale),
            "partial R²",
        ),
        e_value=_e_value(ratio.value),
        e_value_of_interval=_e_value(float(np.clip(1.0, ratio.low, ratio.high))),
        benchmarks=measured_strength(problem, some, mine, sources, rng),
    )


def bias_scale(
    problem: SelectiveLabels,
    people: People,
    testing: np.ndarray,
    surplus: np.ndarray,
    difference: float,
) -> float:
    """S: what is left open about testing over what is left open about the group."""
    left = problem.tested - testing - difference * surplus
    return sqrt(people.mean(left**2).value / people.mean(surplus**2).value)


def largest_bias(with_group: float, with_testing: float) -> float:
    """The bias in units of S at these two partial R²."""
    return sqrt(with_testing * with_group / (1 - with_group))


def robustness_value(f: float) -> float:
    """The r with r / sqrt(1 - r) = f."""
    return (sqrt(f**4 + 4 * f**2) - f**2) / 2


def _e_value(ratio: float) -> float:
    if isnan(ratio):
        return nan
    up = max(ratio, 1 / ratio)
    return up + sqrt(up * (up - 1))


def measured_strength(
    problem: SelectiveLabels,
    people: People,
    mine: np.ndarray,
    sources: Sequence[str],
    rng: np.random.Generator,
) -> tuple[ColumnStrength, ...]:
    """Partial R² of each raw column with the group (given the rest) and with testing (given the
    rest and the group), by least squares; the strongest by their product."""
    rows = draw_rows(np.arange(len(problem)), ROWS, rng)
    X = standardized(problem.X[rows])
    weight = np.sqrt(people.weight[rows])[:, None]
    columns = [np.ones((len(rows), 1)), X, mine[rows, None], problem.tested[rows, None]]
    joined = np.concatenate(columns, axis=1) * weight
    gram = joined.T @ joined
    gram[np.diag_indices_from(gram)] += 1e-8 * len(rows)  # columns may repeat each other
    group, tested = len(gram) - 2, len(gram) - 1
    label = np.array(["", *sources], dtype=object)
    everything = np.arange(len(label))
    given_all = _left_open(gram, everything, group), _left_open(gram, [*everything, group], tested)
    found = []
    for source in dict.fromkeys(sources):
        rest = np.flatnonzero(label != source)
        with_group = 1 - given_all[0] / _left_open(gram, rest, group)
        with_testing = 1 - given_all[1] / _left_open(gram, [*rest, group], tested)
        found.append(ColumnStrength(source, *benchmark_bounds(with_group, with_testing)))
    found.sort(key=lambda b: b.with_group * b.with_testing, reverse=True)
    return tuple(found[:STRONGEST])


def benchmark_bounds(with_group: float, with_testing: float) -> tuple[float, float]:
    """Partial R² of an unmeasured cause as strong as a measured column, with group and testing.

    From the column's own partial R²: with the group given the other columns, and with testing given
    these and the group. It is as strong as the column, but stands *beside* it, so it explains more
    of what is then left (Cinelli and Hazlett 2020, section 4.4, with k = 1).
    """
    r, q = (min(max(share, 0.0), 0.999) for share in (with_group, with_testing))
    of_group = r / (1 - r)
    shared = r**2 / (1 - r) ** 2  # R² of the cause with the column, given the rest and the group
    if of_group >= 1 or shared >= 1:
        return 1.0, 1.0  # stronger than anything beside the column can be
    factor = (1 + sqrt(shared)) / sqrt(1 - shared)
    return of_group, min(factor**2 * q / (1 - q), 1.0)


def _left_open(gram: np.ndarray, given: Sequence[int] | np.ndarray, target: int) -> float:
    """Residual sum of squares of one column given others, from the matrix of products."""
    given = np.asarray(given)
    side = gram[given, target]
    return float(gram[target, target] - side @ np.linalg.solve(gram[np.ix_(given, given)], side))
