"""How often tests are positive, group by group: the outcome test, and what it cannot show.

If a group's tests are positive more often, those who decide seem to have asked more of that group
before they tested (Becker 1957). But a difference in rates alone is not yet bias: the rate averages
over all who were tested, not over those at the margin. Where the risk of two groups is distributed
differently, one threshold for both gives different rates, and equal rates can hide different
thresholds. This is the problem of *infra-marginality* (Ayres 2002; Simoiu, Corbett-Davies and Goel,
"The problem of infra-marginality in outcome tests for discrimination", Annals of Applied
Statistics 2017).

So two comparisons nearer the margin stand beside it. *At equal testing probability*: among people
who were equally likely to be looked at, a higher rate means that the group had to be at higher risk
to get there. Both the outcome and the group are freed of a smooth curve of that probability
(splines; strata would leave a part of it), and what is left of one is regressed on what is left of
the other. *The least expected tests*: the rate among the fifth of a group's tests with the smallest
probability. Both take the probability from the recorded features, and so see the margin only as
far as these describe what the decision was based on. Equal probability is not equal risk: where
groups differ in a feature that drives testing more than risk, or risk more than testing, their
rates truly differ at equal probability, with one margin for all. Strong is only the conjunction:
fewer tests at equal features *and* a higher rate, plain and at equal probability (the robust
outcome test: Gaebler and Goel, "A simple, statistically robust test of discrimination", PNAS 2025).

Where tests err at stated rates, the rate is that of the outcome among the tested, not of positive
results: a test that misses more in one group would look like a lower threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np
from scipy.special import expit, logit

from dcem.audit.results import Yield
from dcem.audit.testing import REFERENCE, differ_by_others, others
from dcem.estimation.influence import FEWEST_TESTED, People, Statistic, against_others
from dcem.estimation.outcomes import seen_outcomes
from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels

STEP = 0.1  # standard deviations by which a group is moved along that curve
LEFT_OPEN = 0.05  # share of the variance of a group that its testing probability must leave open
TELLS = "not estimable, the probability of a test determines the group"
KNOTS = 6  # of the curve along the logit of the testing probability


def yields(
    problem: SelectiveLabels, people: People, probability: np.ndarray | None
) -> tuple[Yield, ...]:
    """The rate among the tested of every group that has people."""
    y, tested = seen_outcomes(problem), problem.tested & (people.weight > 0)
    place = None if probability is None else logit(np.clip(probability, 1e-4, 1 - 1e-4))
    plain: dict[str, Statistic] = {}
    equal: dict[str, Statistic] = {}
    reasons: dict[str, str] = {}
    masks = problem.by_group()
    for name, mine in masks.items():
        here, there = mine & tested, others(problem, mine) & tested
        if name == problem.reference_group:
            reasons[name] = REFERENCE
        elif people.count(here) < FEWEST_TESTED:
            reasons[name] = f"fewer than {FEWEST_TESTED} people of the group were tested"
        elif people.count(there) < FEWEST_TESTED:
            reasons[name] = f"fewer than {FEWEST_TESTED} others were tested"
        else:
            found = people.mean(y, here * 1.0) - people.mean(y, there * 1.0)
            lever = here / (people.weight @ here) - there / (people.weight @ there)
            left = y - people.mean(y, (here | there) * 1.0).value
            plain[name] = _no_surer_than_by_chance(people, found, people.weight * lever, left)
            if place is not None:
                compared = mine | others(problem, mine)
                equal[name] = _at_equal_probability(people, y, tested, mine, compared, place)
    by_chance, by_chance_equal = against_others(people, plain), against_others(people, equal)
    beside: dict[str, tuple[str, ...]] = {}
    if problem.reference_group is None and place is not None:

        def again(name: str, aside: Sequence[str]) -> Statistic:
            left = [problem.group_names.index(one) for one in masks if one not in aside]
            compared = np.isin(problem.group, left)
            return _at_equal_probability(people, y, tested, masks[name], compared, place)

        beside = differ_by_others(problem, people, by_chance_equal, again)
    rows = []
    for name, mine in masks.items():
        none = Estimate(nan, reason=reasons.get(name, "testing does not vary"))
        here = mine & tested
        rate = _rate(problem, people, y, here) if here.any() else none
        if name in reasons:
            rows.append(Yield(name, rate, none, none, none))
            continue
        at_equal = by_chance_equal[name].value if name in equal else none
        if name in equal and not at_equal.estimable:
            at_equal = Estimate(nan, reason=TELLS)
        rows.append(
            Yield(
                name,
                rate,
                by_chance[name].value.clipped(-1.0),
                at_equal.clipped(-1.0),
                _marginal(problem, people, y, here, probability),
                by_chance[name].p_value,
                by_chance_equal[name].p_value if name in equal else nan,
                beside.get(name, ()),
            )
        )
    return tuple(rows)


def _at_equal_probability(
    people: People,
    y: np.ndarray,
    tested: np.ndarray,
    mine: np.ndarray,
    compared: np.ndarray,
    place: np.ndarray,
) -> Statistic:
    """Slope of the outcome on the group, both freed of a curve of the testing probability.

    Among the tested of those `compared` [n]; `place [n]` is the logit of the probability. Its model
    may be off by an error of the group's own, as large as the difference in testing is uncertain:
    that error would move the whole group along the curve. The influence counts what it does.
    """
    weight = people.weight * compared
    slope = _slope(y, mine, weight * tested, place, people)
    if not np.isfinite(slope.value):
        return slope
    chance = expit(place)
    surplus = mine - weight @ mine / weight.sum()
    information = weight @ (surplus**2 * chance * (1 - chance))
    shift = weight * surplus * (tested - chance) / max(information, 1e-300)
    step = STEP * float(place[compared].std()) + 1e-6
    ends = [_slope(y, mine, weight * tested, place + way * step * mine).value for way in (-1, 1)]
    shift *= (ends[1] - ends[0]) / (2 * step)
    return slope + Statistic(0.0, shift)


def _slope(
    y: np.ndarray,
    mine: np.ndarray,
    weight: np.ndarray,
    place: np.ndarray,
    people: People | None = None,
) -> Statistic:
    """What is left of the outcome on what is left of the group (a mask), of rows that count.

    With the error that it has for `people`, if given.
    """
    curve = _spline_basis(place, weight > 0)
    gram = (curve * weight[:, None]).T @ curve
    gram[np.diag_indices_from(gram)] += 1e-9 * max(gram.trace(), 1e-300)
    outcome, group = (
        np.where(weight > 0, values - curve @ np.linalg.solve(gram, curve.T @ (weight * values)), 0)
        for values in (y, mine.astype(float))
    )
    total = float(weight @ group**2)
    share = weight @ mine / max(weight.sum(), 1e-300)
    if total <= LEFT_OPEN * weight.sum() * share * (1 - share):
        return Statistic(nan, np.zeros(len(y)))
    slope = float(weight @ (outcome * group)) / total
    found = Statistic(slope, weight * group * (outcome - slope * group) / total)
    if people is None:
        return found
    return _no_surer_than_by_chance(people, found, weight * group / total, outcome)


def _no_surer_than_by_chance(
    people: People, found: Statistic, lever: np.ndarray, left: np.ndarray
) -> Statistic:
    """A difference with at least the error that it would have if there were none (score test).

    Ten tests of a group, none of them positive, do not vary: by themselves they would be certain.
    `lever` [n] times the outcome adds up to the difference; `left` [n] is what the outcome is off
    its mean, or its curve, whatever the group.
    """
    some = people.among(lever != 0)
    variance = some.mean(left**2).value * (lever @ lever) * some.design_effect(left)
    own = found.standard_error(people.person)
    return found.plus([max(variance - own**2, 0.0) ** 0.5])


def _spline_basis(place: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Splines of the logit of the testing probability [n, functions]; 0 for other rows."""
    from sklearn.preprocessing import SplineTransformer

    knots = np.unique(np.quantile(place[rows], np.linspace(0.02, 0.98, KNOTS)))
    found = np.zeros((len(rows), len(knots) + 2 if len(knots) > 1 else 1))
    found[rows] = 1.0
    if len(knots) > 1:
        splines = SplineTransformer(knots=knots[:, None], degree=3, extrapolation="linear")
        found[rows] = splines.fit_transform(place[rows][:, None])
    return found


def _rate(problem: SelectiveLabels, people: People, y: np.ndarray, here: np.ndarray) -> Estimate:
    """The share of positives among some of the tested."""
    if problem.imperfect_test is None:
        return people.proportion(y, here)
    return people.mean(y, here * 1.0).estimate(people.person, share=True, corrected=True)


def _marginal(
    problem: SelectiveLabels,
    people: People,
    y: np.ndarray,
    here: np.ndarray,
    p: np.ndarray | None,
) -> Estimate:
    if p is None:
        return Estimate(nan, reason="testing does not vary")
    least = here & (p <= np.quantile(p[here], 0.2))
    sides = [part & (problem.y_obs == value) for part in (least, here & ~least) for value in (0, 1)]
    if any(0 < people.count(side) < FEWEST_TESTED for side in sides):  # what is left follows, too
        of = "positive or negative such tests, or of the others"
        return Estimate(nan, reason=f"fewer than {FEWEST_TESTED} {of}")
    return _rate(problem, people, y, least)
