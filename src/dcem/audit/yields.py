"""How often tests are positive, group by group: the outcome test, and what it cannot show.

If a group's tests are positive more often, those who decide seem to have asked more of that group
before they tested (Becker 1957). But a difference in rates alone is not yet bias: the rate averages
over all who were tested, not over those at the margin. Where the risk of two groups is distributed
differently, one threshold for both gives different rates, and equal rates can hide different
thresholds. This is the problem of *infra-marginality* (Ayres 2002; Simoiu, Corbett-Davies and Goel,
"The problem of infra-marginality in outcome tests for discrimination", Annals of Applied
Statistics 2017).

So two comparisons nearer the margin stand beside it. *At equal testing probability*: tested people
are put into strata of their probability of being tested; within a stratum everybody was about
equally likely to be looked at, and a higher rate means that the group had to be at higher risk to
get there. *The least expected tests*: the rate among the fifth of a group's tests with the smallest
probability. Both take the probability from the recorded features, and so see the margin only as
far as these describe what the decision was based on.
"""

from __future__ import annotations

from math import nan

import numpy as np

from dcem.audit.results import Yield
from dcem.estimation.influence import FEWEST_TESTED, People, Statistic
from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels

STRATA = 10


def yields(
    problem: SelectiveLabels, people: People, probability: np.ndarray | None
) -> tuple[Yield, ...]:
    """The rate among the tested of every group that has people."""
    y = problem.y_imputed
    found = []
    for code, name in enumerate(problem.group_names):
        mine = problem.group == code
        if not mine.any():
            continue
        here, there = mine & problem.tested, ~mine & problem.tested
        rate = people.proportion(y, here)
        if here.sum() < FEWEST_TESTED:
            few = f"fewer than {FEWEST_TESTED} people of the group were tested"
            none = Estimate(nan, reason=few)
            found.append(Yield(name, rate if here.any() else none, none, none, none))
            continue
        if there.sum() < FEWEST_TESTED:
            none = Estimate(nan, reason=f"fewer than {FEWEST_TESTED} others were tested")
            difference, equal = none, none
        else:
            difference = people.interval(
                people.mean(y, here.astype(float)) - people.mean(y, there.astype(float))
            )
            equal = _at_equal_probability(people, y, here, there, probability)
        found.append(Yield(name, rate, difference, equal, _marginal(people, y, here, probability)))
    return tuple(found)


def _at_equal_probability(
    people: People, y: np.ndarray, here: np.ndarray, there: np.ndarray, p: np.ndarray | None
) -> Estimate:
    """Difference in rates within strata, weighted as Mantel and Haenszel do: n m / (n + m)."""
    if p is None:
        return Estimate(nan, reason="testing does not vary")
    tested = here | there
    edges = np.quantile(p[tested], np.linspace(0, 1, STRATA + 1)[1:-1])
    stratum = np.searchsorted(edges, p, side="right")
    total, pieces = 0.0, []
    for number in range(STRATA):
        a, b = here & (stratum == number), there & (stratum == number)
        n, m = people.weight[a].sum(), people.weight[b].sum()
        if min(a.sum(), b.sum()) < 2:
            continue
        gap = people.mean(y, a.astype(float)) - people.mean(y, b.astype(float))
        pieces.append((n * m / (n + m), gap))
        total += n * m / (n + m)
    used = sum(weight for weight, _ in pieces)
    if used < FEWEST_TESTED:
        return Estimate(nan, reason="too few tested people with equal testing probabilities")
    value = sum(weight * gap.value for weight, gap in pieces) / total
    influence = np.zeros(len(y))
    for weight, gap in pieces:
        influence += weight / total * gap.influence
    return people.interval(Statistic(float(value), influence))


def _marginal(people: People, y: np.ndarray, here: np.ndarray, p: np.ndarray | None) -> Estimate:
    if p is None:
        return Estimate(nan, reason="testing does not vary")
    least = here & (p <= np.quantile(p[here], 0.2))
    if least.sum() < FEWEST_TESTED:
        return Estimate(nan, reason=f"fewer than {FEWEST_TESTED} such tests")
    return people.proportion(y, least)
