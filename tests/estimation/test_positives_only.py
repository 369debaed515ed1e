"""Relative prevalence from found positives, against a plain maximum likelihood."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from tests.support.found import found_table

from dcem.estimation.influence import People
from dcem.estimation.positives_only import failures, fit_found, ratios


def plain_likelihood(problem):
    """log c_b / c_a and log prevalence ratio, by scipy from the likelihood alone."""
    X = (problem.X - problem.X.mean(axis=0)) / problem.X.std(axis=0)
    weight = np.ones(len(X)) if problem.weight is None else problem.weight / problem.weight.mean()

    def loss(at):
        p = expit(at[:2])[problem.group] * expit(at[2] + X @ at[3:])
        likelihood = np.where(problem.tested, np.log(p), np.log1p(-p))
        return -weight @ likelihood + 0.125 * at[:2] @ at[:2] + 0.5 * at[3:] @ at[3:]

    at = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-4}).x
    f = expit(at[2] + X @ at[3:])
    means = [np.average(f[problem.group == code], weights=weight[problem.group == code])
             for code in (0, 1)]  # fmt: skip
    c = expit(at[:2])
    return np.log(c[1] / c[0]), np.log(means[1] / means[0])


@pytest.mark.parametrize("weighted", [False, True])
def test_ratios_are_those_of_a_plain_likelihood(weighted):
    weight = np.random.default_rng(1).uniform(0.5, 2, 4_000) if weighted else None
    problem, _ = found_table(weight=weight)
    got = ratios(fit_found(problem), problem, People.of(problem), 0)
    rate, prevalence = plain_likelihood(problem)
    assert got.rate[1].value == pytest.approx(rate, abs=1e-3)
    assert got.prevalence[1].value == pytest.approx(prevalence, abs=1e-3)


def test_intervals_hold_the_truth_for_five_unequal_groups_and_rare_outcomes():
    world = {"rates": (0.7, 0.5, 0.4, 0.3, 0.2), "intercept": -3.0}
    world["shares"] = (0.4, 0.2, 0.2, 0.1, 0.1)
    large, y = found_table(200_000, seed=99, **world)
    prevalence = np.array([y[large.group == code].mean() for code in range(5)])
    wanted = np.log(prevalence / prevalence[0])
    held = []
    for seed in range(20):
        problem, _ = found_table(5_000, seed=seed, **world)
        people = People.of(problem)
        for code, one in ratios(fit_found(problem), problem, people, 0).prevalence.items():
            interval = people.interval(one)
            held.append(interval.low <= wanted[code] <= interval.high)
    assert 0.88 <= np.mean(held) < 1


def test_a_person_counts_once_however_many_rows():
    problem, _ = found_table(1_000)
    thrice = problem.subset(np.repeat(np.arange(1_000), 3))
    thrice = replace(thrice, id=np.repeat(np.arange(1_000), 3))
    errors = []
    for one in (problem, thrice):
        people = People.of(one)
        got = ratios(fit_found(one, ridge=1e-3), one, people, 0).prevalence[1]
        errors.append(people.error(got))
    assert errors[1] == pytest.approx(errors[0], rel=0.02)


def test_where_the_outcome_depends_on_features_otherwise_in_a_group_the_feature_is_named():
    alike, _ = found_table()
    assert failures(fit_found(alike), alike, People.of(alike), 0)[0].p_value > 0.05
    bent, _ = found_table(bent=1.5)
    worst = failures(fit_found(bent), bent, People.of(bent), 0)[0]
    assert (worst.feature, worst.group) == (1, 1)
    assert worst.z > 0
    assert worst.p_value < 0.001


def test_many_features_are_penalised_by_held_out_people():
    problem, _ = found_table(600)
    noise = np.random.default_rng(3).normal(size=(600, 60))
    wide = replace(
        problem,
        X=np.hstack([problem.X, noise]),
        feature_names=[f"x{i}" for i in range(63)],
    )
    assert fit_found(wide, np.arange(600) % 3).ridge > 1
    assert fit_found(wide).ridge == 1
