"""The ROC gap and its relatives, against exact fractions, fine integration and plain counting."""

import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dcem import DataWarning, InputError
from dcem.metrics import (
    auc,
    auc_differences,
    group_auc,
    group_roc_curves,
    ranking,
    roc_gap,
    roc_gaps,
    worst_group_auc,
    xauc,
    xauc_difference,
)


def simulated(n=3000, seed=0, decimals=17, n_groups=2):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    y = rng.random(n) < 0.2 + 0.2 * group / n_groups
    score = (rng.normal(size=n) + y * (0.5 + group)).round(decimals)
    return y, score, group


# Reference 1: rational arithmetic, nothing rounded.


def vertices(y, score, weight):
    """Corners of the ROC curve as fractions."""
    total = [sum(int(w) for w, v in zip(weight, y, strict=True) if v == c) for c in (0, 1)]
    x = t = Fraction(0)
    corners = [(x, t)]
    for value in sorted(set(score), reverse=True):
        for w, v, s in zip(weight, y, score, strict=True):
            if s == value and v:
                t += Fraction(int(w), total[1])
            elif s == value:
                x += Fraction(int(w), total[0])
        corners.append((x, t))
    return corners


def height_just_beside(corners, x, side):
    """Limit of the curve at x from the right (side=1) or the left (side=-1)."""
    for (x0, t0), (x1, t1) in pairwise(corners):
        if (x0 <= x < x1) if side == 1 else (x0 < x <= x1):
            return t0 + (t1 - t0) * (x - x0) / (x1 - x0)
    raise AssertionError(x)


def exact_gap(one, other):
    area = Fraction(0)
    for left, right in pairwise(sorted({x for x, _ in one} | {x for x, _ in other})):
        d = height_just_beside(one, left, 1) - height_just_beside(other, left, 1)
        e = height_just_beside(one, right, -1) - height_just_beside(other, right, -1)
        mean = (d * d + e * e) / (abs(d) + abs(e)) if d * e < 0 else abs(d) + abs(e)
        area += (right - left) * mean / 2
    return float(area)


@st.composite
def grouped(draw):
    n = draw(st.integers(4, 30))
    y = draw(hnp.arrays(bool, n))
    group = draw(hnp.arrays(bool, n)).astype(int)
    y[:4], group[:4] = [0, 1, 0, 1], [0, 0, 1, 1]
    score = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 9))) / 7
    weight = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 4)))
    weight[:4] += 1
    return y, score, group, weight


@settings(max_examples=200)
@given(grouped())
def test_gap_equals_rational_arithmetic(data):
    y, score, group, weight = data
    for w in (np.ones(len(y), int), weight):
        curves = [vertices(y[group == g], score[group == g], w[group == g]) for g in (0, 1)]
        assert roc_gap(y, score, group, weight=w) == pytest.approx(exact_gap(*curves), abs=1e-12)


@given(grouped())
def test_gap_is_symmetric_and_between_0_and_1(data):
    y, score, group, weight = data
    gap = roc_gap(y, score, group, weight=weight)
    assert 0 <= gap <= 1
    assert gap == roc_gap(y, score, 1 - group, weight=weight)
    assert gap >= abs(auc_differences(y, score, group, weight=weight)[0, 1]) - 1e-12


@given(grouped())
def test_gap_of_identical_groups_is_exactly_zero(data):
    y, score, _, weight = data
    twice = [np.tile(column, 2) for column in (y, score, weight)]
    copies = np.repeat(["here", "there"], len(y))
    assert roc_gap(twice[0], twice[1], copies) == 0
    assert roc_gap(twice[0], twice[1], copies, weight=twice[2]) == 0
    # three copies on one side are the same curve too
    thrice = np.concatenate([copies, np.repeat("there", len(y))])
    assert roc_gap(np.tile(y, 3), np.tile(score, 3), thrice) == 0


@given(grouped())
def test_grid_and_exact_differ_by_less_than_two_steps(data):
    y, score, group, weight = data
    exact, grid = (
        roc_gap(y, score, group, weight=weight, method=method) for method in ("exact", "grid")
    )
    assert abs(exact - grid) < 2e-4


@given(grouped())
def test_whole_weights_are_repeated_rows(data):
    y, score, group, weight = data
    again = np.repeat(np.arange(len(y)), weight)
    assert roc_gap(y, score, group, weight=weight) == pytest.approx(
        roc_gap(y[again], score[again], group[again]), abs=1e-12
    )


# Reference 2: brute force, on curves from scikit-learn.


def integrate_finely(y, score, group, weight=None, pieces=20_000):
    curves = [
        sklearn.metrics.roc_curve(
            y[group == g],
            score[group == g],
            sample_weight=None if weight is None else weight[group == g],
            drop_intermediate=False,
        )[:2]
        for g in (0, 1)
    ]
    edges = np.unique(np.concatenate([fpr for fpr, _ in curves]))
    middles = (np.arange(pieces) + 0.5) / pieces
    area = 0.0
    for left, right in pairwise(edges):  # no jump lies inside, so the midpoint rule converges
        x = left + (right - left) * middles
        heights = [np.interp(x, fpr, tpr) for fpr, tpr in curves]
        area += (right - left) * np.abs(heights[0] - heights[1]).mean()
    return area


@pytest.mark.parametrize("decimals", [0, 1, 17])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
def test_gap_equals_fine_integration(decimals, seed, weighted):
    y, score, group = simulated(n=150, seed=seed, decimals=decimals)
    weight = np.random.default_rng(seed).exponential(size=len(y)) if weighted else None
    finely = integrate_finely(y, score, group, weight)
    assert roc_gap(y, score, group, weight=weight) == pytest.approx(finely, abs=1e-9)


def test_crossing_curves_have_a_gap_without_a_difference_in_auc():
    # group a: (0, 0) up to (0, 1/2), straight to (1, 1); group b: straight to (1/2, 1), then flat
    y = np.array([1, 0, 1, 0] * 2, bool)
    group = np.repeat(["a", "b"], 4)
    score = np.array([4, 1, 1, 1, 4, 4, 4, 1.0])
    assert auc_differences(y, score, group)["a", "b"] == 0
    assert roc_gap(y, score, group) == pytest.approx(1 / 6)  # 1/12 + 1/48 + 1/16, by hand


# The published computation.


def published_gap(y, score, group):
    grid = np.arange(0, 1, 1e-4)
    heights = []
    for g in (0, 1):
        fpr, tpr, _ = sklearn.metrics.roc_curve(y[group == g], score[group == g])
        heights.append(np.interp(grid, fpr, tpr))
    difference = heights[0] - heights[1]
    better = np.trapezoid(np.maximum(difference, 0), dx=1e-4)
    worse = np.trapezoid(np.minimum(difference, 0), dx=1e-4)
    return better - worse


@pytest.mark.parametrize("decimals", [1, 17])
@pytest.mark.parametrize("n", [60, 20_000])
def test_grid_is_the_published_computation(n, decimals):
    y, score, group = simulated(n=n, decimals=decimals)
    grid = roc_gap(y, score, group, method="grid")
    assert grid == pytest.approx(published_gap(y, score, group), abs=1e-15)
    assert grid == pytest.approx(roc_gap(y, score, group), abs=2e-4)
    assert grid != roc_gap(y, score, group)


# Several groups, labels of any kind.


def test_several_groups_give_all_pairs_and_the_largest():
    y, score, group = simulated(n_groups=4)
    gaps = roc_gaps(y, score, group)
    assert list(gaps) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    for (a, b), gap in gaps.items():
        two = np.isin(group, (a, b))
        assert gap == roc_gap(y[two], score[two], group[two])
    assert roc_gap(y, score, group) == max(gaps.values())
    within = {g: auc(y[group == g], score[group == g]) for g in range(4)}
    assert group_auc(y, score, group) == within
    assert worst_group_auc(y, score, group) == min(within.values())
    differences = auc_differences(y, score, group)
    assert differences[1, 3] == within[1] - within[3]
    curves = group_roc_curves(y, score, group)
    for g, curve in curves.items():
        assert np.trapezoid(curve.tpr, curve.fpr) == pytest.approx(within[g], abs=1e-12)


@pytest.mark.parametrize(
    "relabel",
    [
        pytest.param(lambda g: g, id="int"),
        pytest.param(lambda g: g == 1, id="bool"),
        pytest.param(lambda g: g.astype(np.int8), id="int8"),
        pytest.param(lambda g: g + 0.5, id="float"),
        pytest.param(lambda g: np.where(g == 1, "b", "a"), id="str"),
        pytest.param(lambda g: np.where(g == 1, "b", "a").astype(object), id="object"),
        pytest.param(lambda g: np.where(g == 1, "b", "a").tolist(), id="list"),
        pytest.param(lambda g: np.where(g == 1, "b", "a").astype("T"), id="StringDType"),
        pytest.param(lambda g: pd.Series(np.where(g == 1, "b", "a")), id="Series"),
        pytest.param(lambda g: pd.Categorical(np.where(g == 1, "b", "a")), id="Categorical"),
        pytest.param(lambda g: pd.Series(g, dtype="Int64"), id="Int64"),
        pytest.param(lambda g: np.array([7, "b"], dtype=object)[g], id="mixed"),
        pytest.param(lambda g: np.array(["2020", "2021"], "M8[Y]")[g], id="datetime"),
        pytest.param(lambda g: g[:, None], id="column"),
    ],
)
def test_groups_may_be_labelled_by_anything(relabel):
    y, score, group = simulated()
    assert roc_gap(y, score, relabel(group)) == roc_gap(y, score, group)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_group_is_a_group_of_its_own(missing):
    y, score, group = simulated(n_groups=3)
    names = np.array(["a", "b", missing], dtype=object)[group]
    with pytest.warns(DataWarning, match=r"missing in [\d,]+ of 3,000 rows"):
        gaps = roc_gaps(y, score, names)
    assert list(gaps.values()) == pytest.approx(
        [roc_gaps(y, score, np.array([1, 2, 0])[group])[p] for p in ((0, 1), (0, 2), (1, 2))]
    )
    assert ("(missing)", "a") in gaps


def test_float_nan_is_a_group_of_its_own():
    y, score, group = simulated(n_groups=3)
    with pytest.warns(DataWarning, match="missing"):
        gaps = roc_gaps(y, score, np.array([0.0, 1.0, np.nan])[group])
    assert gaps[1.0, "(missing)"] == roc_gaps(y, score, group)[1, 2]


def test_many_groups():
    rng = np.random.default_rng(0)
    y, score = rng.random(6000) < 0.5, rng.random(6000)
    assert len(roc_gaps(y, score, rng.integers(0, 30, 6000))) == 30 * 29 / 2


# xAUC.


def test_xauc_counts_pairs_across_groups():
    y, score, group = simulated(n=400, decimals=1, n_groups=3)
    weight = np.random.default_rng(0).exponential(size=400)
    values = xauc(y, score, group, weight=weight)
    assert len(values) == 6
    for (a, b), value in values.items():
        above, below = (group == a) & y, (group == b) & ~y
        won = np.sign(score[above][:, None] - score[below]) / 2 + 0.5
        pairs = weight[above][:, None] * weight[below]
        assert value == pytest.approx((won * pairs).sum() / pairs.sum(), abs=1e-12)
    largest = max(abs(values[a, b] - values[b, a]) for a, b in values)
    assert xauc_difference(y, score, group, weight=weight) == largest


def test_xauc_sees_a_shift_that_no_curve_shows():
    y, score, _ = simulated()
    group = np.repeat(["low", "high"], len(y))
    y, score = np.tile(y, 2), np.concatenate([score, score + 10])
    assert roc_gap(y, score, group) == 0
    assert xauc(y, score, group) == {("high", "low"): 1.0, ("low", "high"): 0.0}
    assert xauc_difference(y, score, group) == 1.0


# Not estimable is an answer.


@pytest.mark.parametrize("method", ["exact", "grid"])
def test_a_group_with_one_class_is_never_fair(method):
    y, score, group = simulated(n_groups=3)
    names = np.array(["a", "b", "empty"])[group]
    y[names == "empty"] = False
    with pytest.warns(DataWarning, match="'empty', which has no positives"):
        gaps = roc_gaps(y, score, names, method=method)
    assert gaps["a", "b"] > 0
    assert np.isnan(gaps["a", "empty"])
    assert np.isnan(gaps["b", "empty"])
    for summary in (roc_gap, worst_group_auc):
        with pytest.warns(DataWarning, match="'empty', which has no positives"):
            assert np.isnan(summary(y, score, names))


def test_one_class_in_curves_and_xauc():
    y, score, group = simulated()
    y[group == 1] = True
    with pytest.warns(DataWarning, match="group 1, which has no negatives"):
        assert np.isnan(group_roc_curves(y, score, group)[1].fpr).all()
    with pytest.warns(DataWarning, match="group 1 has no negatives"):
        values = xauc(y, score, group)
    assert np.isnan(values[0, 1])
    assert 0 < values[1, 0] < 1
    with pytest.warns(DataWarning, match="group 1 has no negatives"):
        assert np.isnan(xauc_difference(y, score, group))


@pytest.mark.parametrize("metric", [roc_gap, xauc_difference])
def test_a_single_group_has_no_gap(metric):
    y, score, _ = simulated()
    with pytest.warns(DataWarning, match="only one group"):
        assert np.isnan(metric(y, score, np.zeros(len(y))))


def test_a_group_of_weight_zero_does_not_vanish():
    y, score, group = simulated(n_groups=3)
    with pytest.warns(DataWarning, match="group 2, which has no positives and no negatives"):
        assert np.isnan(roc_gap(y, score, group, weight=(group < 2).astype(float)))


def test_unknown_method_is_named():
    with pytest.raises(InputError, match="Did you mean 'grid'"):
        roc_gap([0, 1], [0.1, 0.2], [0, 1], method="gird")


def test_ordinary_input_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        roc_gap(*simulated())
        xauc(*simulated())


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n_groups", [1, 2, 3])
def test_all_at_once_is_one_by_one(ties, n_groups):
    rng = np.random.default_rng(n_groups)
    y, score = rng.integers(0, 2, 200), rng.random(200)
    score = np.round(score, 1) if ties else score
    group, weight = rng.integers(0, n_groups, 200), rng.random(200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one group has no gap: tested elsewhere
        found = ranking(y, score, group, weight=weight)
        expected = {
            "auc": auc(y, score, weight=weight),
            "roc_gap": roc_gap(y, score, group, weight=weight),
            "roc_gap_grid": roc_gap(y, score, group, weight=weight, method="grid"),
            "xauc_difference": xauc_difference(y, score, group, weight=weight),
            "auc_difference": next(
                iter(auc_differences(y, score, group, weight=weight).values()), np.nan
            ),
        }
    assert found.keys() == expected.keys()
    np.testing.assert_array_equal(list(found.values()), list(expected.values()))
