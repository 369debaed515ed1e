"""The quick calibration and draws against the released recipe, written out literally."""

import numpy as np
import pytest
from scipy.special import expit

from dcem import DataWarning
from dcem.tasks import PHASES, make_sinusoid
from dcem.tasks.rates import rates_of_outcome, rates_of_testing
from dcem.tasks.sinusoid.published_stream import _RealisedRate


def literal_draw(stream, means, thresholds, n, phase):
    """One data set as the released code draws it: X0, X1, then uniforms for T0, T1, Y0, Y1."""
    xs = [stream.multivariate_normal([m, m], 0.03 * np.eye(2), n) for m in means]
    us = [stream.uniform(size=n) for _ in range(4)]
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    tested, outcome = [], []
    for g, x in enumerate(xs):
        z0, z1 = c * x[:, 0] + s * x[:, 1] + 0.5, -s * x[:, 0] + c * x[:, 1] + 0.5
        s_t = x[:, 0] - x[:, 1] + 0.5 + 1e-8
        s_y = z0 - 0.25 * np.sin(4 * np.pi * z1 + phase) + 1e-8
        tested.append(us[g] < expit(30 * (s_t - thresholds[g])))
        outcome.append(us[2 + g] < expit(10 * (s_y - 1.0)))
    return xs, tested, outcome


def literal_search(q_y, k, q_t, phase):
    """Bisection in which every probe seeds with 42 and draws 100,000 rows per group anew."""

    def bisect(targets, interval, rising, rates):
        low, high = np.full(2, interval[0]), np.full(2, interval[1])
        while True:
            middle = (low + high) / 2
            off = rates(middle) - targets
            if np.all(np.abs(off) < 1e-12):
                return middle
            up = (off < 0) if rising else (off >= 0)
            low, high = np.where(up, middle, low), np.where(up, high, middle)
            if np.min(high - low) < 1e-12:
                return middle

    def draw(means, thresholds):
        return literal_draw(np.random.RandomState(42), means, thresholds, 100_000, phase)

    def outcome_at(means):
        return np.array([np.mean(y) for y in draw(means, (0, 0))[2]])

    p_y, p_t = rates_of_outcome(0.25, q_y), rates_of_testing(0.25, k, q_t)
    means = bisect(np.array(p_y), (-0.9, 1.0), True, outcome_at)
    if p_y[0] == p_y[1]:
        means[:] = means.mean()

    def tested_at(thresholds):
        return np.array([np.mean(t) for t in draw(means, thresholds)[1]])

    thresholds = bisect(np.array(p_t), (-10.0, 1.0), False, tested_at)
    thresholds = np.where(np.array(p_t) >= 1, -9999.0, thresholds)
    if p_t[0] == p_t[1] and means[0] == means[1]:
        thresholds[:] = thresholds.mean()
    return means, thresholds


SETTINGS = [(0.5, 1.0, 2.0, 0.0), (1.0, 2.0, 1.0, PHASES[7]), (0.25, 3.0, 0.5, PHASES[2])]


@pytest.mark.parametrize(
    ("q_y", "k", "q_t", "phase"),
    [SETTINGS[2], *(pytest.param(*one, marks=pytest.mark.slow) for one in SETTINGS[:2])],
)
def test_calibration_and_draws_equal_the_literal_recipe(q_y, k, q_t, phase):
    task = make_sinusoid(q_y, k, q_t, phase)
    means, thresholds = literal_search(q_y, k, q_t, phase)
    assert task.process.means == tuple(means)
    assert task.process.thresholds == tuple(thresholds)

    stream = np.random.RandomState(42)
    literal_draw(stream, means, thresholds, 50_000, phase)  # thrown away
    for split in ("train", "validation", "test"):
        xs, tested, outcome = literal_draw(stream, means, thresholds, 10_000, phase)
        problem = task.split(split)
        np.testing.assert_array_equal(problem.X, np.concatenate(xs))
        np.testing.assert_array_equal(problem.tested, np.concatenate(tested))
        np.testing.assert_array_equal(task.truth[split], np.concatenate(outcome))


def test_published_means_and_thresholds():
    process = make_sinusoid(q_y=0.5, k=1.0, q_t=2.0, phase=0.0).process
    assert process.means == pytest.approx((0.15656, 0.28719), abs=1e-5)
    assert process.thresholds == pytest.approx((0.61062, 0.74322), abs=1e-5)


def test_rows_stand_group_by_group_and_untested_labels_are_absent():
    task = make_sinusoid()
    for split in ("train", "validation", "test"):
        problem = task.split(split)
        assert problem.group.tolist() == [0] * 10_000 + [1] * 10_000
        np.testing.assert_array_equal(np.isnan(problem.y_obs), ~problem.tested)
        seen = problem.tested
        np.testing.assert_array_equal(problem.y_obs[seen], task.truth[split][seen])


def test_the_global_generator_is_left_alone():
    np.random.seed(7)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    make_sinusoid(q_y=0.25, n_train=2_000, n_validation=100, n_test=100)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_equal_prevalences_share_one_mean_and_equal_rates_one_threshold():
    process = make_sinusoid(q_y=1.0, q_t=1.0).process
    assert process.means[0] == process.means[1]
    assert process.thresholds[0] == process.thresholds[1]
    apart = make_sinusoid(q_y=0.5, q_t=1.0).process  # means differ, so no averaging
    assert apart.thresholds[0] != apart.thresholds[1]


@pytest.mark.parametrize(("q_t", "full_group"), [(0.5, 1), (2.0, 0)])
def test_a_fully_tested_group_has_the_published_threshold(q_t, full_group):
    task = make_sinusoid(k=3.0, q_t=q_t)
    assert task.process.thresholds[full_group] == -9999
    assert task.train.tested[task.train.group == full_group].all()
    assert task.train.tested[task.train.group != full_group].mean() == pytest.approx(0.5, abs=0.02)


def test_everybody_is_tested_at_k_4_whatever_q_t():
    for q_t in (0.25, 4.0):
        assert make_sinusoid(k=4.0, q_t=q_t).train.tested.all()


def test_a_border_of_the_published_search_is_reported():
    with pytest.warns(DataWarning, match=r"group [01] misses its testing rate of 0\.025"):
        make_sinusoid(k=0.1, q_t=1.0, group_share=0.5, testing_slope=4.0)


def test_realised_rate_forgets_no_row_that_could_still_change():
    """Narrowing down must give the same counts as evaluating every row each time."""
    rng = np.random.default_rng(0)
    u, x = rng.random(2_000), rng.normal(size=2_000)

    def probability(parameter, rows):
        return expit(3 * np.sin(4 * x[rows] + parameter))

    rate = _RealisedRate(probability, u, lipschitz=0.75)
    low, high = -2.0, 2.0
    for _ in range(30):
        middle = (low + high) / 2
        every = np.mean(u < probability(middle, np.arange(2_000)))
        assert rate.at(middle, (high - low) / 2) == every
        low, high = (middle, high) if rng.random() < 0.5 else (low, middle)
    assert len(rate._open) < 20  # and it did narrow down
