"""Who is tested: crude rates, and rates at equal features.

*Crude* rates mix two things: that groups differ in their features, and that people with the same
features are treated differently. The second is what a disparity in testing means.

*At equal features* a group is compared with everybody else over the features that both have:
each person counts as much as the other side has people like them (overlap weights pi (1 - pi), with
pi the probability of belonging to the group given the features). Where only one side has people,
nothing can be compared, and nothing is. The estimand is the difference in testing rates averaged
over this shared population. It is estimated residual on residual: with e(x) the probability of
being tested and A, T for belonging to the group and being tested,

    difference = E[(T - e)(A - pi)] / E[(A - pi)^2].

It is right if the model of the group is. And it is orthogonal: small errors of the two models enter
as the square of the group model's and as the product of both, so that models that learn slowly do
little harm. That holds for the *difference*; each of the two rates beside it moves in proportion to
an error of the group model (both in the same direction), and is right if that model is.

It fails where a cause of testing is missing from the features and differs between groups; how
strong it would have to be is the first sensitivity analysis.

F. Li, K. L. Morgan and A. M. Zaslavsky, "Balancing covariates via propensity score weighting",
JASA 2018 (the population). P. M. Robinson, "Root-N-consistent semiparametric regression",
Econometrica 1988 (the estimate). J. D. Angrist, "Estimating the labor market impact of voluntary
military service", Econometrica 1998 (its weights where the difference depends on the features).
"""

from __future__ import annotations

from math import nan

import numpy as np

from dcem.audit.results import RiskCurve, TestingRate
from dcem.estimation.bins import equal_mass, rates
from dcem.estimation.influence import FEWEST_PEOPLE, People, Statistic, kish, two_sided
from dcem.estimation.nuisances import Nuisances
from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels


def testing_rates(
    problem: SelectiveLabels, people: People, nuisances: Nuisances | None
) -> tuple[TestingRate, ...]:
    """The rates of every group that has people; without models where testing does not vary."""
    testing = None if nuisances is None else nuisances.testing_alone
    membership = None if nuisances is None else nuisances.membership
    found = []
    for code, name in enumerate(problem.group_names):
        mine = problem.group == code
        if not mine.any():
            continue
        crude = people.proportion(problem.tested, mine)
        reason = _why_not(people, mine)
        if reason or testing is None or membership is None:
            found.append(_nothing(name, crude, reason or "testing does not vary"))
            continue
        pair = equal_features(people, mine, problem.tested, testing, membership[:, code])
        found.append(
            _nothing(name, crude, pair)
            if isinstance(pair, str)
            else _compared(people, name, crude, *pair)
        )
    return tuple(found)


def equal_features(
    people: People, mine: np.ndarray, tested: np.ndarray, testing: np.ndarray, member: np.ndarray
) -> tuple[Statistic, Statistic] | str:
    """Testing rates of a group and of the others over their shared features, or why there is none.

    With h = pi (1 - pi): everybody's rate under h, plus what each side is tested beyond what its
    features let expect. Both surpluses are per E[(A - pi)^2], which is E[h] if pi is right; their
    difference then is the residual-on-residual estimate.
    """
    here, there = mine * (1 - member), ~mine * member
    for side, who in ((here, "its own people"), (there, "other people")):
        if kish((people.weight * side)[side > 0]) < FEWEST_PEOPLE:
            return f"hardly any of {who} have features that occur on both sides"
    common = people.mean(tested.astype(float), member * (1 - member))
    surplus, spread = tested - testing, (mine - member) ** 2
    return (
        common + people.quotient(surplus * here, spread),
        common + people.quotient(surplus * there, spread),
    )


def risk_curves(
    problem: SelectiveLabels, people: People, risk: np.ndarray, n_bins: int = 10
) -> tuple[RiskCurve, ...]:
    """Share tested in parts of equal size by predicted risk, each group."""
    part = equal_mass(risk, people.weight, n_bins)
    curves = []
    for code, name in enumerate(problem.group_names):
        points = rates(people, problem.tested, risk, problem.group == code, part)
        if points.size:
            curves.append(RiskCurve(name, *points))
    return tuple(curves)


def _nothing(name: str, crude: Estimate, reason: str) -> TestingRate:
    none = Estimate(nan, reason=reason)
    return TestingRate(name, crude, none, none, none, none, nan)


def _compared(
    people: People, name: str, crude: Estimate, here: Statistic, there: Statistic
) -> TestingRate:
    gap = here - there
    return TestingRate(
        group=name,
        crude=crude,
        equal=_within(people.interval(here)),
        others=_within(people.interval(there)),
        difference=people.interval(gap),
        ratio=people.ratio(here, there),
        p_value=two_sided(gap.value / people.error(gap)),
    )


def _why_not(people: People, mine: np.ndarray) -> str:
    for side, who in ((mine, "in the group"), (~mine, "outside the group")):
        number = people.count(side)
        if number < FEWEST_PEOPLE:
            return f"fewer than {FEWEST_PEOPLE} people {who}"
    return ""


def _within(estimate: Estimate) -> Estimate:
    """A rate with its interval cut at 0 and 1."""
    low, high = max(estimate.low, 0.0), min(estimate.high, 1.0)
    return Estimate(min(max(estimate.value, 0.0), 1.0), low, high)
