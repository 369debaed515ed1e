"""Exact calibration against independent integration, over every feasible cell and phase."""

import itertools
import math

import numpy as np
import pytest
from choices import some
from scipy import integrate
from scipy.special import expit, roots_hermitenorm

from dcem import InputError
from dcem.tasks import PHASES, make_sinusoid, sinusoid_grid
from dcem.tasks.rates import rates_of_outcome, rates_of_testing
from dcem.tasks.sinusoid.exact_rates import (
    calibrate_exactly,
    rate_of_outcome,
    rate_of_testing,
    smoothed_sigmoid,
)
from dcem.tasks.sinusoid.process import AS_RELEASED, AS_WRITTEN
from dcem.tasks.sinusoid.published_stream import search_means


def outcome_by_hermite(process, group, nodes=120):
    """P(Y|a) by Gauss-Hermite in x itself: other nodes, other coordinates, the task's P(Y|x)."""
    g, w = roots_hermitenorm(nodes)
    sd = math.sqrt(process.constants.variance)
    x0, x1 = np.meshgrid(process.means[group] + sd * g, process.means[group] + sd * g)
    p = process.outcome_probability(np.column_stack([x0.ravel(), x1.ravel()]))
    weights = np.outer(w, w).ravel() / w.sum() ** 2
    return float(weights @ p)


def testing_by_simpson(process, group):
    """P(T|a) by Simpson's rule on a fine grid along the testing direction."""
    c = process.constants
    d = np.array(c.testing_direction)
    s = np.linspace(-9, 9, 4_001)
    x = process.means[group] + math.sqrt(c.variance) * s[:, None] * d / np.linalg.norm(d)
    density = np.exp(-(s**2) / 2) / math.sqrt(2 * math.pi)
    return float(integrate.simpson(density * process.testing_probability(x, group), x=s))


testing_by_simpson.__test__ = False


@pytest.mark.parametrize(
    "constants",
    [
        pytest.param(AS_RELEASED, id="as-released"),
        pytest.param(AS_WRITTEN, id="as-written", marks=pytest.mark.slow),  # other constants
    ],
)
def test_group_rates_are_met_in_every_feasible_cell_and_phase(constants):
    seen = set()
    for cell in sinusoid_grid():
        if not cell.feasible:
            continue
        targets = rates_of_outcome(0.25, cell.q_y), rates_of_testing(0.25, cell.k, cell.q_t)
        for phase in PHASES:
            process = calibrate_exactly(constants, phase, *targets)
            for group in (0, 1):
                mean, threshold = process.means[group], process.thresholds[group]
                if ("Y", mean, phase) not in seen:  # the mean does not depend on k and q_t
                    seen.add(("Y", mean, phase))
                    reached = outcome_by_hermite(process, group)
                    assert reached == pytest.approx(targets[0][group], abs=1e-6)
                if ("T", mean, threshold) not in seen:
                    seen.add(("T", mean, threshold))
                    reached = testing_by_simpson(process, group)
                    assert reached == pytest.approx(targets[1][group], abs=1e-6)
    assert len(seen) > 1_000


@pytest.mark.parametrize("q_y", some([0.25, 1 / 3, 0.5], [0.5]))
def test_exact_means_are_the_root_that_the_published_bisection_finds(q_y):
    """Equal up to the error of 100,000 draws: never another root of a rate that is not monotone."""
    targets = rates_of_outcome(0.25, q_y)
    for phase in PHASES:
        exact = calibrate_exactly(AS_RELEASED, phase, targets, (0.5, 0.5)).means
        published = search_means(AS_RELEASED, phase, targets)
        assert exact == pytest.approx(published, abs=0.004)


def test_where_several_means_fit_exact_calibration_takes_the_one_the_search_on_draws_takes():
    targets = rates_of_outcome(0.25, 0.5)
    for phase in PHASES:
        exact = calibrate_exactly(AS_WRITTEN, phase, targets, (0.5, 0.5))
        on_draws = search_means(exact.constants, phase, targets)
        assert exact.means == pytest.approx(on_draws, abs=0.01)


def test_the_written_prevalence_really_is_not_monotone_in_the_mean():
    """The reason why the calibration must follow a path and not just find some root."""
    c = AS_WRITTEN
    rates = [rate_of_outcome(c, 0.0, m, 0.66) for m in np.linspace(-0.9, 1.0, 400)]
    assert np.diff(rates).min() < -1e-3


@pytest.mark.parametrize("slope", [0.5, 10.0, 11.6, 300.0, 1e5])
def test_smoothed_sigmoid_against_adaptive_quadrature(slope):
    sd = 0.173
    for v in (-0.4, 0.0, 0.11):

        def integrand(g, v=v):
            return math.exp(-g * g / 2) / math.sqrt(2 * math.pi) * expit(slope * (v + sd * g))

        edge = -v / sd
        expected = sum(
            integrate.quad(integrand, a, b, epsabs=1e-13, epsrel=1e-13, limit=500)[0]
            for a, b in itertools.pairwise([-12, edge - 0.05, edge, edge + 0.05, 12])
        )
        assert smoothed_sigmoid(np.array([v]), slope, sd)[0] == pytest.approx(expected, abs=1e-11)


def test_rates_on_draws_agree_to_sampling_error():
    n = 200_000
    task = make_sinusoid(0.25, 0.5, 3.0, 1.0, stream="independent", random_state=3, n_train=n)
    for group in (0, 1):
        rows = task.train.group == group
        for values, target in [
            (task.truth["train"], rates_of_outcome(0.25, 0.25)[group]),
            (task.train.tested, rates_of_testing(0.25, 0.5, 3.0)[group]),
        ]:
            error = math.sqrt(target * (1 - target) / rows.sum())
            assert abs(values[rows].mean() - target) < 4 * error


def test_as_written_tunes_the_threshold_for_a_population_at_the_origin():
    task = make_sinusoid(q_y=1.0, preset="as-written", random_state=0, n_train=100)
    c = task.process.constants
    assert task.process.means[0] == task.process.means[1]
    assert rate_of_outcome(c, 0.0, 0.0, c.outcome_threshold) == pytest.approx(0.25, abs=1e-9)


def test_an_unreachable_prevalence_names_the_group():
    with pytest.raises(InputError, match=r"no mean of group 0 .* prevalence of 0\.1667"):
        make_sinusoid(stream="independent", random_state=0, outcome_threshold=-9.0)


def test_testing_rate_of_a_threshold_far_away():
    assert rate_of_testing(AS_RELEASED, 0.2, -9999.0) == pytest.approx(1.0, abs=1e-15)
