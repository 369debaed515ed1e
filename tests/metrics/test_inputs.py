"""Bad input stops with a message that names the argument, the rows and the remedy."""

from datetime import datetime

import numpy as np
import pandas as pd
import pytest

from dcem import DataWarning, InputError, metrics
from dcem.metrics import auc, bootstrap, calibration_error, group_auc, roc_gap, xauc

Y, SCORE, GROUP = [0, 1, 0, 1], [0.1, 0.9, 0.4, 0.3], ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [0, 1, 0]}, "'y' has 3 rows but 'score' has 4"),
        ({"y": [0, 1, 2, -1]}, r"must be 0 or 1, but holds -1, 2 in 2 of 4 rows \(first: 2, 3\)"),
        ({"y": [0, 1, np.nan, 1]}, r"'y' is missing \(NaN\) in 1 of 4 row.*pass the truth"),
        ({"y": pd.array([0, 1, pd.NA, 1])}, r"'y' is missing \(NaN\) in 1 of 4 row"),
        ({"score": [0.1, None, 0.2, 0.3]}, r"'score' is NaN in 1 of 4 row"),
        ({"y": ["no", "yes", "no", "no"]}, "'y' holds values that are not numbers"),
        ({"score": [0.1, np.nan, 0.2, np.nan]}, r"'score' is NaN in 2 of 4 rows \(first: 1, 3\)"),
        ({"score": np.ones((4, 2))}, r"shape \(4, 2\).*predict_proba\(X\)\[:, 1\]"),
        ({"score": ["high", "low", "low", "low"]}, "'score' holds values that are not numbers"),
        ({"score": np.array(SCORE) + 1j}, "'score' holds values that are not numbers: complex"),
        ({"score": pd.to_datetime(SCORE)}, "'score' holds values that are not numbers: datetime"),
        ({"y": np.ma.array(Y, mask=[0, 1, 0, 0])}, r"'y' is missing \(NaN\) in 1 of 4 rows"),
        ({"score": np.ma.array(SCORE, mask=[0, 0, 0, 1])}, r"'score' is NaN in 1 of 4 rows"),
        ({"weight": [1, -1, 1, np.inf]}, r"'weight' is negative, infinite or NaN in 2 of 4 rows"),
        ({"weight": [1, 2]}, "'weight' has 2 rows but 'score' has 4"),
        ({"weight": [0, 0, 0, 0]}, "'weight' is 0 in every row"),
        ({"group": ["a", "b"]}, "'group' has 2 rows but 'score' has 4"),
        ({"group": np.ones((4, 2))}, "'group' must be one-dimensional.*cross several"),
    ],
)
@pytest.mark.parametrize("metric", [roc_gap, xauc, group_auc, bootstrap])
def test_errors_say_what_to_do(metric, arguments, message):
    with pytest.raises(InputError, match=message):
        metric(**{"y": Y, "score": SCORE, "group": GROUP, **arguments})


@pytest.mark.parametrize("metric", [auc, calibration_error])
def test_no_rows(metric):
    with pytest.raises(InputError, match="No rows"):
        metric([], [])


def test_rows_with_different_indices_are_not_matched_by_position():
    y = pd.Series(Y, index=[10, 11, 12, 13])
    score = pd.Series(SCORE, index=[13, 12, 11, 10])
    with pytest.raises(InputError, match="'y' and 'score' have different pandas indices"):
        auc(y, score)
    with pytest.raises(InputError, match="'y' and 'group' have different pandas indices"):
        roc_gap(y, SCORE, pd.Series(GROUP))
    assert auc(y, score.to_numpy()) == auc(Y, SCORE)
    assert auc(y, pd.Series(SCORE, index=y.index)) == auc(Y, SCORE)


def test_what_is_passed_is_not_changed():
    columns = [np.tile(c, 10) for c in (Y, SCORE, GROUP)] + [np.ones(40)]
    before = [column.copy() for column in columns]
    roc_gap(*columns[:3], weight=columns[3])
    bootstrap(*columns[:3], weight=columns[3], n_resamples=2)
    for column, untouched in zip(columns, before, strict=True):
        np.testing.assert_array_equal(column, untouched)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_every_row_needs_its_person(missing):
    with pytest.raises(InputError, match=r"'id' is missing in 1 of 4 row.*first: 2"):
        bootstrap(Y, SCORE, GROUP, id=np.array([1, 1, missing, 2], dtype=object))
    with pytest.raises(InputError, match="'id' has 2 rows"):
        bootstrap(Y, SCORE, GROUP, id=[1, 2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 95}, r"`level` must lie between 0 and 1, such as 0\.95; got 95"),
        ({"n_resamples": 1}, "n_resamples must be a whole number from 2 on; got 1"),
        ({"n_resamples": 20.0}, "n_resamples must be a whole number from 2 on; got 20.0"),
    ],
)
def test_bootstrap_settings(arguments, message):
    with pytest.raises(InputError, match=message):
        bootstrap(Y, SCORE, GROUP, **arguments)


def test_every_pandas_column_must_be_of_the_same_rows():
    """Also where `y` is an array, and cannot tell."""
    score, group = pd.Series(SCORE), pd.Series(["a", "a", "b", "b"], index=[3, 2, 1, 0])
    for call in (
        lambda: metrics.roc_gap(Y, score, group),
        lambda: metrics.group_auc(Y, SCORE, group, weight=pd.Series([1.0] * 4)),
        lambda: metrics.group_calibration_error(Y, score, group),
        lambda: metrics.bootstrap(Y, score, id=group),
        lambda: metrics.kickout(Y, score > 0, group == "a"),
    ):
        with pytest.raises(InputError, match="different pandas indices"):
            call()


def test_a_missing_name_in_a_list_is_missing():
    with pytest.warns(DataWarning, match="missing in 2 of 4"):
        found = metrics.group_auc(Y, SCORE, ["a", "a", float("nan"), None])
    assert list(found) == ["(missing)", "a"]
    dates = np.array(["2020-01-01", "2020-01-01", "NaT", "NaT"], "datetime64[ns]")
    with pytest.warns(DataWarning, match="missing in 2 of 4"):
        assert list(metrics.group_auc(Y, SCORE, dates)) == [datetime(2020, 1, 1), "(missing)"]
    with pytest.raises(InputError, match="'id' is missing"):
        metrics.bootstrap(Y, SCORE, id=["u", "u", "v", float("nan")])
