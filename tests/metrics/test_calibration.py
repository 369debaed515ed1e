"""Calibration against plain loops, and its behaviour with ties, weights and groups."""

import numpy as np
import pytest
import sklearn.calibration
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dcem import DataWarning, InputError
from dcem.metrics import (
    calibration_curve,
    calibration_error,
    group_calibration_curves,
    group_calibration_error,
    worst_group_calibration_error,
)


def simulated(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    risk = rng.beta(1, 3, n)
    return rng.random(n) < risk, risk


def test_uniform_bins_are_sklearns():
    y, risk = simulated()
    ours = calibration_curve(y, risk, n_bins=12, strategy="uniform")
    observed, predicted = sklearn.calibration.calibration_curve(y, risk, n_bins=12)
    np.testing.assert_allclose(ours.predicted, predicted, atol=1e-12)
    np.testing.assert_allclose(ours.observed, observed, atol=1e-12)


def test_quantile_bins_hold_the_same_number_of_people():
    y, risk = simulated()
    curve = calibration_curve(y, risk, n_bins=10)
    assert curve.count.tolist() == [500] * 10
    assert curve.share.tolist() == pytest.approx([0.1] * 10)
    order = np.argsort(risk).reshape(10, -1)
    np.testing.assert_allclose(curve.predicted, risk[order].mean(axis=1))
    np.testing.assert_allclose(curve.observed, y[order].mean(axis=1))
    by_hand = np.abs(risk[order].mean(axis=1) - y[order].mean(axis=1)).mean()
    assert calibration_error(y, risk) == pytest.approx(by_hand)
    assert f"error {by_hand:.3f}" in repr(curve)


@given(
    hnp.arrays(np.int64, 30, elements=st.integers(0, 8)),
    hnp.arrays(bool, 30),
    hnp.arrays(np.int64, 30, elements=st.integers(0, 3)).filter(np.any),
    st.permutations(range(30)),
    st.sampled_from(["quantile", "uniform"]),
)
def test_ties_share_a_bin_and_weights_are_repeats(eighths, y, weight, shuffled, strategy):
    score = eighths / 8
    error = calibration_error(y, score, weight=weight, n_bins=4, strategy=strategy)
    again = np.repeat(shuffled, weight[shuffled])
    repeated = calibration_error(y[again], score[again], n_bins=4, strategy=strategy)
    assert error == pytest.approx(repeated, abs=1e-12)
    assert 0 <= error <= 1
    curve = calibration_curve(y, score, weight=weight, n_bins=4, strategy=strategy)
    assert curve.share.sum() == pytest.approx(1)
    assert (np.diff(curve.predicted) > 0).all()


def test_a_tie_across_a_bin_edge_goes_where_the_middle_of_its_mass_lies():
    score = np.repeat([0.2, 0.5, 0.8], [3, 5, 2])  # the five lie at 30 to 80 %, their middle at 55
    assert calibration_curve(score > 0.3, score, n_bins=2).count.tolist() == [3, 7]


def test_a_calibrated_score_is_told_from_an_overconfident_one():
    y, risk = simulated(50_000)
    assert calibration_error(y, risk) < 0.01
    assert calibration_error(y, np.clip(1.5 * risk, 0, 1)) > 0.1
    assert calibration_error(y, y.astype(float)) == 0


def test_groups_that_err_in_opposite_directions_do_not_cancel():
    y, risk = simulated(20_000)
    group = np.where(np.arange(len(y)) % 2, "over", "under")
    shifted = np.where(group == "over", np.minimum(risk + 0.05, 1), np.maximum(risk - 0.05, 0))
    errors = group_calibration_error(y, shifted, group)
    assert min(errors.values()) > 2 * calibration_error(y, shifted)
    assert worst_group_calibration_error(y, shifted, group) == max(errors.values())
    own = group == "over"
    assert errors["over"] == calibration_error(y[own], shifted[own])
    assert group_calibration_curves(y, shifted, group)["over"].error == errors["over"]


def test_one_class_can_be_calibrated():
    assert calibration_error([0, 0, 0, 0], [0.1, 0.1, 0.1, 0.1]) == pytest.approx(0.1)


def test_a_group_of_weight_zero_is_not_calibrated_but_unknown():
    y, risk = simulated(100)
    group = np.arange(100) % 2
    with pytest.warns(DataWarning, match="group 1: all its weights are 0"):
        assert np.isnan(group_calibration_error(y, risk, group, weight=1 - group)[1])
    with pytest.warns(DataWarning, match="group 1"):
        assert np.isnan(worst_group_calibration_error(y, risk, group, weight=1 - group))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"score": [0.1, 1.2, -1]}, r"outside \[0, 1\] in 2 of 3 rows \(first: 1, 2\)"),
        ({"n_bins": 0}, "n_bins must be a whole number of at least 1"),
        ({"n_bins": 2.5}, "n_bins must be a whole number"),
        ({"strategy": "quantiles"}, "Did you mean 'quantile'"),
    ],
)
def test_errors_say_what_to_do(arguments, message):
    with pytest.raises(InputError, match=message):
        calibration_error(**{"y": [0, 1, 1], "score": [0.1, 0.2, 0.3], **arguments})
