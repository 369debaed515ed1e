"""The closed forms of the M-step against optimisers that know nothing of them."""

import numpy as np
import pytest

from dcem.paper import theory

EDGE_TO_EDGE = np.linspace(0, 1, 201)
Q, T = np.meshgrid(EDGE_TO_EDGE, EDGE_TO_EDGE, indexing="ij")  # both [201, 201], rows are Q
REGS = (0.0, 0.5, 1.0, 3.0)


def golden_section(loss, shape):
    """Minimise an elementwise unimodal function on [0, 1] from its values alone."""
    ratio = (np.sqrt(5) - 1) / 2
    low, high = np.zeros(shape), np.ones(shape)
    for _ in range(60):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        keep_left = loss(left) <= loss(right)
        low, high = np.where(keep_left, low, left), np.where(keep_left, right, high)
    return (low + high) / 2


@pytest.mark.parametrize("reg", REGS)
def test_optimum_minimises_the_loss_over_the_whole_square(reg):
    best = theory.m_step_optimum(Q, T, reg)
    found = golden_section(lambda f: theory.m_step_row_loss(f, Q, T, reg=reg), Q.shape)
    # A search by values cannot see below the square root of float64's 2e-16.
    np.testing.assert_allclose(best, found, rtol=0, atol=2e-7)
    # The closed form is at least as good as what the search found.
    at_best, at_found = (theory.m_step_row_loss(f, Q, T, reg=reg) for f in (best, found))
    assert np.all(at_best <= at_found + 1e-14)


@pytest.mark.parametrize("reg", REGS)
def test_optimum_is_where_the_derivative_changes_sign(reg):
    def minus_derivative(f):
        return Q / f - (1 - Q) / (1 - f) - reg * Q * T / (1 - f * T)

    with np.errstate(invalid="ignore", divide="ignore"):  # f reaches 1 on the edge Q = 1
        found = theory.root_of_falling(minus_derivative, Q.shape)
    # Where two roots of the quadratic nearly meet (Q near 1, t near 1/(1+reg)) one digit in the
    # equation is half a digit in the root: hence not 1e-15.
    np.testing.assert_allclose(theory.m_step_optimum(Q, T, reg), found, rtol=0, atol=1e-12)


def test_optimum_has_no_cancellation_where_testing_is_rare():
    q, t = 0.3, 1e-13
    first_order = q - q**2 * (1 - q) * t
    assert theory.m_step_optimum(q, t) == pytest.approx(first_order, rel=1e-15)
    printed = (2 * q * t + 1 - np.sqrt((2 * q * t + 1) ** 2 - 4 * q * (q * t + t))) / (
        2 * (t + q * t)
    )
    assert abs(printed - first_order) > 1e-5  # the textbook root has lost its digits here


def test_optimum_is_the_printed_root():
    inside = T >= 0.01
    q, t = Q[inside], T[inside]
    b = 2 * q * t + 1
    printed = (b - np.sqrt(b**2 - 4 * q * (q * t + t))) / (2 * (t + q * t))
    # The printed discriminant loses half its digits where it vanishes, at Q = 1 and t = 1/2.
    np.testing.assert_allclose(theory.m_step_optimum(q, t), printed, rtol=0, atol=3e-8)


@pytest.mark.parametrize("reg", REGS[1:])
def test_strength_grows_with_the_testing_probability(reg):
    strength = theory.regularisation_strength(Q, T, reg)
    steps = np.diff(strength, axis=1)
    assert np.all(steps[1:-1] > 0)  # 0 < Q < 1: strictly (Theorem 3.4)
    assert np.all(steps >= -1e-15)  # the edges: never falling (the corollary)
    np.testing.assert_array_equal(strength[:, 0], 0)  # t = 0: the E-step estimate stays
    np.testing.assert_array_equal(strength[0], 0)  # Q = 0: nothing to lower
    t = EDGE_TO_EDGE[1:]
    flat_then_rising = np.where(t <= 1 / (1 + reg), 0, 1 - 1 / ((1 + reg) * t))
    np.testing.assert_allclose(strength[-1, 1:], flat_then_rising, atol=1e-15)  # Q = 1


def test_without_the_regulariser_nothing_moves():
    np.testing.assert_allclose(theory.regularisation_strength(Q, T, reg=0), 0, atol=1e-15)


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_tested_rows_are_fitted_to_their_label(y, reg):
    t = EDGE_TO_EDGE[1:]
    found = golden_section(lambda f: theory.m_step_row_loss(f, y, t, y, reg), t.shape)
    np.testing.assert_allclose(found, y, atol=1e-7)


def test_a_tested_positive_row_needs_a_positive_testing_probability():
    # Proposition 3.5 is empty at t-hat = 0: the model calls the row impossible whatever f is.
    assert np.all(np.isinf(theory.m_step_row_loss(EDGE_TO_EDGE, 1.0, 0.0, 1.0)))


@pytest.mark.parametrize("reg", REGS)
def test_sensitivity_is_the_derivative_of_the_optimum(reg):
    q, t = Q[:-1, 1:-1], T[:-1, 1:-1]  # leave out Q = 1 and its kink, and the ends of t
    step = 1e-6
    ahead, behind = (theory.m_step_optimum(q, t + s, reg) for s in (step, -step))
    numerical = (ahead - behind) / (2 * step)
    np.testing.assert_allclose(theory.optimum_sensitivity(q, t, reg), numerical, atol=2e-8)


@pytest.mark.parametrize("reg", REGS)
def test_sensitivity_is_bounded_by_one_plus_reg_and_no_smaller_bound_holds(reg):
    q, t = np.meshgrid(np.linspace(0, 1, 501), np.geomspace(1e-12, 1, 501), indexing="ij")
    slope = theory.optimum_sensitivity(q, t, reg)
    assert np.nanmax(slope) <= 1e-12
    assert np.nanmin(slope) >= -(1 + reg)
    kink = 1 / (1 + reg)
    if reg > 0:
        assert np.isnan(theory.optimum_sensitivity(1.0, 0.5, 1.0))
        beyond = theory.optimum_sensitivity(1.0, kink + 1e-9, reg)
        assert beyond == pytest.approx(-(1 + reg), rel=1e-6)
        assert theory.optimum_sensitivity(1.0, kink / 2, reg) == pytest.approx(0, abs=1e-12)


def test_sensitivity_is_the_expression_of_the_lemma_not_of_the_remark():
    q, t = Q[1:-1, 20:], T[1:-1, 20:]
    root = np.sqrt(4 * q**2 * t**2 - 4 * q**2 * t + 1)
    lemma = (1 - 2 * q**2 * t - root) / (2 * (q + 1) * t**2 * root)
    remark = (1 - 2 * q**2 * t**2 - root) / (2 * (q + 1) * t**2 * root)
    ours = theory.optimum_sensitivity(q, t)
    np.testing.assert_allclose(ours, lemma, atol=1e-12)
    assert remark.max() > 0.5  # printed with t² for t, it would say that the optimum rises


def test_ipw_sensitivity_has_no_bound():
    t = np.geomspace(1e-8, 1, 50)
    step = 1e-6 * t
    numerical = (1 / (t - step) - 1 / (t + step)) / (2 * step)
    np.testing.assert_allclose(theory.ipw_sensitivity(t), numerical, rtol=1e-6)
    assert theory.ipw_sensitivity(1e-8) > 1e15
    assert theory.ipw_sensitivity(0.0) == np.inf


@pytest.mark.parametrize("reg", REGS)
def test_the_least_loss_moves_no_faster_than_the_bound_either(reg):
    least = theory.m_step_row_loss(theory.m_step_optimum(Q, T, reg), Q, T, reg=reg)
    slope = np.diff(least, axis=1) / np.diff(T, axis=1)
    assert np.all(slope >= -1e-12)
    assert np.all(slope <= 1 + reg)


def test_on_tested_rows_the_testing_probability_cannot_move_the_fit():
    # log(f·t) = log f + log t: the loss shifts by a constant, its differences in f do not change.
    f, t = np.linspace(0.05, 0.95, 19)[:, None], np.geomspace(1e-6, 1, 13)
    for y in (0.0, 1.0):
        loss = theory.m_step_row_loss(f, y, t, y)
        shape_in_f = loss - loss[:1]
        np.testing.assert_allclose(shape_in_f, shape_in_f[:, :1] + 0 * t, atol=1e-12)


def test_fixed_point_is_the_truth_without_the_regulariser_only():
    p, t = Q[1:-1, 1:], T[1:-1, 1:]
    np.testing.assert_allclose(theory.saturated_fixed_point(p, t, reg=0), p, atol=1e-14)
    ends = theory.saturated_fixed_point(p, t, reg=1)
    assert np.all(np.diff(ends, axis=1) > 0)  # it rises with the testing probability
    assert np.all(np.diff(ends, axis=0) > 0)  # and keeps the order of p at equal testing
    np.testing.assert_allclose(ends[:, -1], 2 * p[:, -1] / (1 + p[:, -1]), atol=1e-14)
    np.testing.assert_array_less(p, ends)


def test_e_step_takes_the_record_where_there_is_one():
    q = theory.e_step([0.2, 0.4, 0.6], [1, 0, 0], [True, True, False])
    np.testing.assert_array_equal(q, [1.0, 0.0, 0.6])


def test_numbers_quoted_in_the_documentation():
    q, t = np.array([[0.2], [0.5], [0.8], [1.0]]), np.array([0, 0.1, 0.5, 0.9])
    table = [
        [0.200, 0.197, 0.184, 0.170],
        [0.500, 0.487, 0.423, 0.350],
        [0.800, 0.785, 0.667, 0.482],
        [1.000, 1.000, 1.000, 0.556],
    ]
    np.testing.assert_array_equal(theory.m_step_optimum(q, t).round(3), table)
    ends = theory.saturated_fixed_point(0.3, [0.05, 1.0]).round(3)
    np.testing.assert_array_equal(ends, [0.392, 0.462])
