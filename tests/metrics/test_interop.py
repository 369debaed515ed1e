"""The metrics inside scikit-learn's cross-validation and fairlearn's MetricFrame."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import StratifiedKFold, cross_validate

from dcem.metrics import (
    auc,
    calibration_error,
    group_auc,
    roc_gap,
    worst_group_auc,
    worst_group_calibration_error,
    xauc_difference,
)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    index = rng.permutation(1000)
    group = pd.Series(np.where(rng.random(1000) < 0.4, "a", "b"), index=index)
    X = pd.DataFrame(rng.normal(size=(1000, 3)), index=index)
    y = (X[0] + (group == "a") * X[1] + rng.normal(size=1000) > 0.5).astype(int)
    return X, y, group, pd.Series(rng.exponential(size=1000), index=index)


def test_auc_as_a_scorer(table):
    X, y, _, _ = table
    scoring = {"ours": make_scorer(auc, response_method="predict_proba"), "theirs": "roc_auc"}
    scores = cross_validate(LogisticRegression(), X, y, scoring=scoring)
    np.testing.assert_allclose(scores["test_ours"], scores["test_theirs"], atol=1e-12)


@pytest.mark.parametrize(
    "metric", [roc_gap, worst_group_auc, xauc_difference, worst_group_calibration_error]
)
def test_group_metrics_as_scorers_get_the_group_of_their_fold(table, metric):
    X, y, group, weight = table
    folds = StratifiedKFold(4)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(metric, response_method="predict_proba")
        scorer = scorer.set_score_request(group=True, weight=True)
        scores = cross_validate(
            LogisticRegression(),
            X,
            y,
            scoring=scorer,
            cv=folds,
            params={"group": group, "weight": weight},
            error_score="raise",
        )["test_score"]
    for (train, test), score in zip(folds.split(X, y), scores, strict=True):
        model = LogisticRegression().fit(X.iloc[train], y.iloc[train])
        risk = model.predict_proba(X.iloc[test])[:, 1]
        rows = (y.iloc[test], risk, group.iloc[test])
        assert score == pytest.approx(metric(*rows, weight=weight.iloc[test]), abs=1e-12)


def test_metrics_in_a_metric_frame(table):
    fairlearn = pytest.importorskip("fairlearn.metrics")
    X, y, group, weight = table
    risk = LogisticRegression().fit(X, y).predict_proba(X)[:, 1]
    frame = fairlearn.MetricFrame(
        metrics={"auc": auc, "calibration": calibration_error},
        y_true=y,
        y_pred=risk,
        sensitive_features=group,
        sample_params={"auc": {"weight": weight}, "calibration": {"weight": weight}},
    )
    assert frame.by_group["auc"].to_dict() == pytest.approx(
        group_auc(y, risk, group, weight=weight), abs=1e-12
    )
    assert frame.overall["auc"] == pytest.approx(auc(y, risk, weight=weight))
    assert frame.group_min()["auc"] == worst_group_auc(y, risk, group, weight=weight)
    assert frame.group_max()["calibration"] == worst_group_calibration_error(
        y, risk, group, weight=weight
    )


def test_gap_within_the_levels_of_another_attribute(table):
    fairlearn = pytest.importorskip("fairlearn.metrics")
    X, y, group, _ = table
    risk = LogisticRegression().fit(X, y).predict_proba(X)[:, 1]
    ward = np.where(np.arange(1000) % 2, "north", "south")
    frame = fairlearn.MetricFrame(
        metrics={"gap": roc_gap},
        y_true=y,
        y_pred=risk,
        sensitive_features=ward,
        sample_params={"gap": {"group": group}},
    )
    north = ward == "north"
    assert frame.by_group["gap"]["north"] == roc_gap(y[north], risk[north], group[north])


@pytest.mark.filterwarnings("ignore:The AUC is not estimable:dcem.DataWarning")
def test_a_one_class_group_stays_visible_in_a_metric_frame():
    fairlearn = pytest.importorskip("fairlearn.metrics")
    frame = fairlearn.MetricFrame(
        metrics=auc,
        y_true=[0, 1, 0, 0],
        y_pred=[0.1, 0.9, 0.2, 0.3],
        sensitive_features=["a", "a", "b", "b"],
    )
    assert np.isnan(frame.by_group["b"])


def test_metrics_import_neither_torch_nor_sklearn():
    code = "import sys, dcem.metrics; sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
