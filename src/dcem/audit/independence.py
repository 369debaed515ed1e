"""Does the outcome depend on the group, given the features? Asked of the tested.

Several methods, DCEM among them, let the group matter for testing but not for the outcome: given
the features, Y is independent of A. That can be looked at where labels are. If it held, what the
features leave unexplained of the outcome, y - E[y | x], would be uncorrelated with what they leave
unexplained of the group, 1{A = g} - P(A = g | x). The test asks whether it is (the generalised
covariance measure: Shah and Peters, "The hardness of conditional independence testing", Annals of
Statistics 2020). Both models are cross-fitted among the tested; persons are kept together.

The effect is given as an odds ratio of the group against everybody else at equal features, or
against the reference group where one is named; the test is of all groups jointly either way. An
interval around 1 does not prove independence: `detectable` says how large an odds ratio would have
been noticed four times out of five. And the question is put to the tested only: if testing depends
on causes of the outcome that are not in the features, differently in the groups, the answer among
the tested differs from that among all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan

import numpy as np
from scipy.special import logit
from scipy.stats import chi2

from dcem.audit.results import Independence
from dcem.audit.testing import REFERENCE, both_sides, determined_groups, others, share_of
from dcem.estimation.influence import (
    FEWEST_PEOPLE,
    FEWEST_TESTED,
    People,
    Statistic,
    Z,
    correlated,
    critical_value,
    logistic,
)
from dcem.estimation.nuisances import Nuisances
from dcem.estimation.outcomes import Moved, at_other_rates, seen_outcomes
from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels

POWER = 1.96 + 0.84  # standard errors away from 1 that are noticed with probability 0.8


def enough_results(problem: SelectiveLabels) -> bool:
    """Whether enough people have positive, and enough negative results to learn from."""
    people = People.of(problem)
    return min(people.count(problem.y_obs == outcome) for outcome in (0, 1)) >= FEWEST_TESTED


def check_independence(
    problem: SelectiveLabels,
    people: People,
    nuisances: Nuisances,
    sources: Sequence[str] | None = None,
) -> Independence:
    """The odds ratio of every group, and the joint test; the test under each kind of model too.

    The intervals of the odds ratios hold for all groups together. Of groups that the features
    determine among the tested nothing can be said; `sources` is the raw column of each feature.
    """
    reason = "" if enough_results(problem) else "too few positives or negatives among the tested"
    if not reason and nuisances.membership_tested is None:
        reason = f"no group has {FEWEST_PEOPLE} people"
    if reason:
        none = dict.fromkeys(problem.group_names, Estimate(nan, reason=reason))
        return Independence(none, dict.fromkeys(problem.group_names, nan), nan, reason)
    told = _determined(problem, people, nuisances, sources)
    found, p_value, reason = _log_odds_ratios(problem, people, nuisances, told)
    each = {
        kind: _log_odds_ratios(problem, people, one, told)[1]
        for kind, one in nuisances.each.items()
    }
    shifts = {name: one for name, one in found.items() if isinstance(one, Statistic)}
    reach = critical_value(people, shifts) if len(shifts) > 2 else Z
    odds_ratio: dict[str, Estimate] = {}
    detectable: dict[str, float] = {}
    for name, one in found.items():
        if isinstance(one, str):
            odds_ratio[name], detectable[name] = Estimate(nan, reason=one), nan
            continue
        error = people.error(one)
        ends = one.value - reach * error, one.value + reach * error
        odds_ratio[name] = Estimate(one.value, *ends).exp()
        detectable[name] = float(np.exp(POWER * error))
    return Independence(odds_ratio, detectable, p_value, reason, each)


def _determined(
    problem: SelectiveLabels,
    people: People,
    nuisances: Nuisances,
    sources: Sequence[str] | None,
) -> dict[str, str]:
    """The groups that the features determine among the tested, and why."""
    among = replace(
        nuisances,
        membership=nuisances.membership_tested,
        each={
            kind: replace(one, membership=one.membership_tested)
            for kind, one in nuisances.each.items()
        },
    )
    asked = [
        name
        for name, mine in problem.by_group().items()
        if name != problem.reference_group and people.count(problem.tested & mine) >= FEWEST_PEOPLE
    ]
    return determined_groups(problem, people.among(problem.tested), among, asked, sources)


def _log_odds_ratios(
    problem: SelectiveLabels, people: People, nuisances: Nuisances, told: Mapping[str, str]
) -> tuple[dict[str, Statistic | str], float, str]:
    """Log odds ratio of every group, and the joint p-value; or why there is none."""
    risk, membership = nuisances.outcome_alone, nuisances.membership_tested
    assert risk is not None
    assert membership is not None
    tested, y = problem.tested, seen_outcomes(problem)
    other_rates = at_other_rates(problem, seen_outcomes)
    found: dict[str, Statistic | str] = {}
    scores: list[np.ndarray] = []
    for code, name in enumerate(problem.group_names):
        mine = problem.group == code
        seen = problem.y_imputed
        reason = _too_few_tests(people, seen, tested & mine, "in the group") or _too_few_tests(
            people, seen, tested & ~mine, "outside it"
        )
        reason = reason or told.get(name, "")
        if reason:
            found[name] = reason
            continue
        counted = people.weight * np.where(tested, mine - membership[:, code], 0.0)
        found[name] = _log_odds_ratio(problem, people, nuisances, name, y, other_rates)
        shifts = [counted @ (up - down) / 2 for up, down, _ in other_rates]
        scores.append(np.append(counted * (y - risk), shifts))
    if not scores and any(found.get(name) == why for name, why in told.items()):
        return found, nan, next(why for name, why in told.items() if found.get(name) == why)
    return found, *_jointly(people, scores)


def _log_odds_ratio(
    problem: SelectiveLabels,
    people: People,
    nuisances: Nuisances,
    name: str,
    y: np.ndarray,
    other_rates: Sequence[Moved],
) -> Statistic | str:
    """Log odds ratio of a group against the others at equal features, or why there is none."""
    risk, membership = nuisances.outcome_alone, nuisances.membership_tested
    assert risk is not None
    assert membership is not None
    assert nuisances.outcome_as is not None
    tested, code = problem.tested, problem.group_names.index(name)
    mine = problem.group == code
    member = membership[:, code]
    if problem.reference_group is not None:
        if name == problem.reference_group:
            return REFERENCE
        there = tested & others(problem, mine)
        if reason := _too_few_tests(people, problem.y_imputed, there, "in the reference group"):
            return reason
        people, both = both_sides(problem, people, name)
        share = membership[:, both]
        total = np.maximum(share.sum(axis=1), 1e-300)
        risk = (share * nuisances.outcome_as[:, both]).sum(axis=1) / total
        member = share_of(membership, both)
    base = logit(np.clip(risk, 1e-6, 1 - 1e-6))
    surplus = np.where(tested & (people.weight > 0), mine - member, 0.0)
    ends = [
        [_regress(people, values, base, surplus, tested).value for values in (up, down)]
        for up, down, _ in other_rates  # of an imperfect test
    ]
    plain = _regress(people, y, base, surplus, tested)
    return plain.plus([(up - down) / 2 for up, down in ends])


def _too_few_tests(people: People, y: np.ndarray, rows: np.ndarray, where: str) -> str:
    if people.count(rows) < FEWEST_PEOPLE:
        return f"fewer than {FEWEST_PEOPLE} tested people {where}"
    if min(people.count(rows & (y == outcome)) for outcome in (0, 1)) < FEWEST_TESTED:
        return f"fewer than {FEWEST_TESTED} people are positive, or negative, {where}"
    return ""


def _regress(
    people: People, y: np.ndarray, base: np.ndarray, surplus: np.ndarray, tested: np.ndarray
) -> Statistic:
    """Logistic regression of y on the surplus of membership, predicted logit as offset."""
    weight = people.weight * tested
    at, pull, curvature = logistic(surplus[:, None], weight * y, weight, offset=base)
    return Statistic(float(at[0]), pull[:, 0] / curvature[0, 0])


def _jointly(people: People, scores: list[np.ndarray]) -> tuple[float, str]:
    """Chi-square of all groups' scores; they sum to about zero, so one rank is lost."""
    if not scores:
        return nan, "too few positive or negative tests in the groups"
    rows = np.stack(scores)  # [groups, n and what else is uncertain]
    correlation, scale = correlated(rows, people.person)
    total = rows[:, : len(people.weight)].sum(axis=1) / scale
    rank = int(np.linalg.matrix_rank(correlation, tol=1e-3, hermitian=True))
    if not rank:
        return nan, "the features leave nothing open about the group"
    statistic = float(total @ np.linalg.pinv(correlation, rcond=1e-3, hermitian=True) @ total)
    return float(chi2.sf(statistic, rank)), ""
