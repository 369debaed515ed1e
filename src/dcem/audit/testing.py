"""Who is tested: crude rates, and rates at equal features.

*Crude* rates mix two things: that groups differ in their features, and that people with the same
features are treated differently. The second is what a disparity in testing means.

*At equal features* a group is compared with everybody else, or with the reference group where one
is named, over the features that both have:
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

from collections.abc import Sequence
from math import nan

import numpy as np

from dcem.audit.results import TestingRate
from dcem.estimation.influence import (
    FEWEST_PEOPLE,
    FEWEST_TESTED,
    People,
    Statistic,
    against_others,
    kish,
    simultaneous,
)
from dcem.estimation.nuisances import Nuisances
from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels

REFERENCE = "the others are compared with it"


def testing_rates(
    problem: SelectiveLabels, people: People, nuisances: Nuisances | None
) -> tuple[TestingRate, ...]:
    """The rates of every group that has people; without models where testing does not vary."""
    masks = problem.by_group()
    pairs: dict[str, tuple[Statistic, Statistic]] = {}
    reasons: dict[str, str] = {}
    for name, mine in masks.items():
        reason = _why_not_comparable(problem, people, name, mine)
        if reason or nuisances is None or nuisances.membership is None:
            reasons[name] = reason or "testing does not vary"
            continue
        pair = _rates_under(nuisances, problem, people, name, mine)
        if isinstance(pair, str):
            reasons[name] = pair
        else:
            pairs[name] = pair
    gaps = {name: here - there for name, (here, there) in pairs.items()}
    compared = against_others(people, gaps)
    found = []
    for name, mine in masks.items():
        crude = people.proportion(problem.tested, mine)
        if name in reasons:
            none = Estimate(nan, reason=reasons[name])
            found.append(TestingRate(name, crude, none, none, none, none, nan))
            continue
        here, there = pairs[name]
        assert nuisances is not None
        found.append(
            TestingRate(
                group=name,
                crude=crude,
                equal=people.interval(here).clipped(),
                others=people.interval(there).clipped(),
                difference=compared[name].value,
                ratio=people.ratio(here, there),
                p_value=compared[name].p_value,
                each={
                    kind: people.interval(pair[0] - pair[1])
                    for kind, models in nuisances.each.items()
                    if not isinstance(
                        pair := _rates_under(models, problem, people, name, mine), str
                    )
                },
            )
        )
    return tuple(found)


def _rates_under(
    models: Nuisances, problem: SelectiveLabels, people: People, name: str, mine: np.ndarray
) -> tuple[Statistic, Statistic] | str:
    some, testing, member = compared_people(problem, people, models, name)
    return equal_features(some, mine, problem.tested, testing, member)


def compared_people(
    problem: SelectiveLabels, people: People, models: Nuisances, name: str
) -> tuple[People, np.ndarray, np.ndarray]:
    """Whom a group is compared in (itself and the others), P(tested | x) and P(group | x) there.

    The others are everybody else, or the reference group where one is named.
    """
    assert models.testing_alone is not None
    assert models.testing_as is not None
    assert models.membership is not None
    code = problem.group_names.index(name)
    if problem.reference_group is None:
        return people, models.testing_alone, models.membership[:, code]
    pair = [code, problem.group_names.index(problem.reference_group)]
    share = models.membership[:, pair]
    total = share.sum(axis=1)
    testing = (share * models.testing_as[:, pair]).sum(axis=1) / total
    return people.among(np.isin(problem.group, pair)), testing, share[:, 0] / total


def equal_features(
    people: People, mine: np.ndarray, tested: np.ndarray, testing: np.ndarray, member: np.ndarray
) -> tuple[Statistic, Statistic] | str:
    """Testing rates of a group and of the others over their shared features, or why there is none.

    With h = pi (1 - pi): everybody's rate under h, plus what each side is tested beyond what its
    features suggest. Both surpluses are per E[(A - pi)^2], which is E[h] if pi is right; their
    difference then is the residual-on-residual estimate.
    """
    here, there = mine * (1 - member), ~mine * member
    for side, who in ((here, "its own people"), (there, "other people")):
        if kish((people.weight * side)[side > 0]) < FEWEST_PEOPLE:
            return f"hardly any of {who} have features that occur in both groups"
    common = people.mean(tested.astype(float), member * (1 - member))
    surplus, spread = tested - testing, (mine - member) ** 2
    return (
        common + people.quotient(surplus * here, spread),
        common + people.quotient(surplus * there, spread),
    )


def missing_by_testing(
    problem: SelectiveLabels, people: People, sources: Sequence[str]
) -> dict[str, Estimate]:
    """Share missing among the tested minus among the untested, of every raw column with gaps.

    Intervals hold for all columns together; columns with under ten rows on a side are left out.
    A column that is filled in where people are tested is a trace of the decision, whatever its
    values say.
    """
    gaps = {}
    for number, source in enumerate(sources):
        missing = np.isnan(problem.X[:, number]).astype(float)
        cells = 2 * problem.tested + missing.astype(int)
        # a share would give a count away
        few = any(0 < people.count(cells == cell) < FEWEST_TESTED for cell in range(4))
        if missing.any() and not few and source not in gaps:
            among = people.mean(missing, problem.tested), people.mean(missing, ~problem.tested)
            gaps[source] = among[0] - among[1]
    return {source: one.simultaneous for source, one in simultaneous(people, gaps).items()}


def others(problem: SelectiveLabels, mine: np.ndarray) -> np.ndarray:
    """Whom a group is compared with [n]: everybody else, or the reference group."""
    if problem.reference_group is None:
        return ~mine
    return problem.group == problem.group_names.index(problem.reference_group)


def _why_not_comparable(
    problem: SelectiveLabels, people: People, name: str, mine: np.ndarray
) -> str:
    if name == problem.reference_group:
        return REFERENCE
    there = others(problem, mine)
    elsewhere = "outside the group" if problem.reference_group is None else "in the reference group"
    for side, who in ((mine, "in the group"), (there, elsewhere)):
        number = people.count(side)
        if number < FEWEST_PEOPLE:
            return f"fewer than {FEWEST_PEOPLE} people {who}"
    return ""
