"""The AUC and the ROC curve, against pair counting and against scikit-learn."""

import warnings

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dcem import DataWarning
from dcem.metrics import auc, roc_curve


def count_pairs(y, score, weight):
    """The AUC by its definition: every positive against every negative."""
    y = np.asarray(y, bool)
    won = (score[y][:, None] > score[~y]) + 0.5 * (score[y][:, None] == score[~y])
    pairs = weight[y][:, None] * weight[~y]
    return (won * pairs).sum() / pairs.sum()


@st.composite
def rows(draw):
    """Few distinct scores, so that ties are the rule; both classes; whole weights."""
    n = draw(st.integers(2, 40))
    y = draw(hnp.arrays(bool, n))
    y[:2] = [False, True]
    score = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 6))) / 4 - 0.5
    weight = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 3)))
    weight[:2] += 1
    return y, score, weight


@given(rows())
def test_auc_counts_pairs(data):
    y, score, weight = data
    assert auc(y, score) == pytest.approx(count_pairs(y, score, np.ones(len(y))), abs=1e-12)
    assert auc(y, score, weight=weight) == pytest.approx(count_pairs(y, score, weight), abs=1e-12)


@given(rows())
def test_whole_weights_are_repeated_rows(data):
    y, score, weight = data
    again = np.repeat(np.arange(len(y)), weight)
    assert auc(y, score, weight=weight) == pytest.approx(auc(y[again], score[again]), abs=1e-12)


@given(rows(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(data, random):
    y, score, _ = data
    shuffled = np.array(random.sample(range(len(y)), len(y)))
    assert auc(y, score) == auc(y[shuffled], score[shuffled])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool])
@pytest.mark.parametrize("decimals", [1, 17])
def test_agrees_with_sklearn(dtype, decimals):
    rng = np.random.default_rng(1)
    y = rng.random(5000) < 0.2
    score = (rng.normal(size=5000) + y).round(decimals).astype(dtype)
    weight = rng.exponential(size=5000)
    assert auc(y, score) == pytest.approx(sklearn.metrics.roc_auc_score(y, score), abs=1e-12)
    assert auc(y, score, weight=weight) == pytest.approx(
        sklearn.metrics.roc_auc_score(y, score, sample_weight=weight), abs=1e-12
    )


@pytest.mark.parametrize("decimals", [1, 3, 17])
def test_curve_is_sklearns_bit_for_bit(decimals):
    rng = np.random.default_rng(2)
    y = rng.random(2000) < 0.3
    score = (rng.normal(size=2000) + y).round(decimals)
    ours = roc_curve(y, score)
    fpr, tpr, threshold = sklearn.metrics.roc_curve(y, score)
    np.testing.assert_array_equal(ours.fpr, fpr)
    np.testing.assert_array_equal(ours.tpr, tpr)
    np.testing.assert_array_equal(ours.threshold, threshold)
    weight = rng.exponential(size=2000)
    ours = roc_curve(y, score, weight=weight)
    assert np.trapezoid(ours.tpr, ours.fpr) == pytest.approx(
        auc(y, score, weight=weight), abs=1e-12
    )


def test_infinite_scores_can_be_ranked():
    assert auc([0, 1, 0, 1], [-np.inf, np.inf, 0.0, 0.5]) == 1.0


@pytest.mark.parametrize(("label", "lacking"), [(0, "no positives"), (1, "no negatives")])
def test_one_class_is_not_estimable(label, lacking):
    with pytest.warns(DataWarning, match=lacking):
        assert np.isnan(auc([label] * 3, [0.1, 0.2, 0.3]))
    with pytest.warns(DataWarning, match=lacking):
        curve = roc_curve([label] * 3, [0.1, 0.2, 0.3])
    assert np.isnan(curve.tpr if label == 0 else curve.fpr).all()


def test_rows_of_weight_zero_make_no_class():
    with pytest.warns(DataWarning, match="no positives"):
        assert np.isnan(auc([0, 0, 1], [0.1, 0.2, 0.3], weight=[1, 1, 0]))


def test_ordinary_input_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert auc([0, 1, 1], [0.1, 0.2, 0.2]) == 1.0
        assert "AUC 1.000" in repr(roc_curve([0, 1], [0.1, 0.2]))
