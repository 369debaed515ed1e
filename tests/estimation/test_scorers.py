"""Scores and folds for scikit-learn's model selection, with labels that are missing."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import dcem
from dcem import metrics
from dcem.estimation import SelectiveKFold, scorer
from dcem.table.messages import DataWarning, InputError

pytestmark = pytest.mark.usefixtures("linear_models")


class TestedOnly(ClassifierMixin, BaseEstimator):
    """Logistic regression of the tested on one column."""

    __test__ = False

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def fit(self, X, y):
        seen = ~np.isnan(y)
        self.model_ = LogisticRegression().fit(X[seen][:, [self.column]], y[seen])
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X[:, [self.column]])


@pytest.fixture(scope="module")
def world():
    """Column 0 drives risk, column 1 drives testing: the record is predicted best by column 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    truth = rng.random(3000) < 1 / (1 + np.exp(-X[:, 0] + 0.4 * X[:, 1]))
    tested = rng.random(3000) < 1 / (1 + np.exp(-2.5 * X[:, 1]))
    return X, np.where(tested, truth, np.nan), truth


def test_a_search_with_missing_labels_finds_the_column_that_matters(world) -> None:
    X, y, _ = world
    search = GridSearchCV(
        TestedOnly(), {"column": [0, 1]}, scoring=scorer("dr-auc"), cv=SelectiveKFold(2)
    ).fit(X, y)
    assert search.best_params_ == {"column": 0}


def test_scores_for_everybody_are_those_of_the_truth(world) -> None:
    X, y, truth = world
    cv = SelectiveKFold(2)
    found = cross_val_score(TestedOnly(), X, y, scoring=scorer("dr-auc"), cv=cv).mean()
    known = np.mean(
        [
            metrics.auc(
                truth[test], TestedOnly().fit(X[train], y[train]).predict_proba(X[test])[:, 1]
            )
            for train, test in cv.split(X, y)
        ]
    )
    assert found == pytest.approx(known, abs=0.04)


def test_the_tested_alone(world) -> None:
    X, y, _ = world
    model = TestedOnly().fit(X, y)
    seen = ~np.isnan(y)
    known = metrics.auc(y[seen], model.predict_proba(X[seen])[:, 1])
    assert scorer("tested-auc")(model, X, y) == pytest.approx(known)
    assert scorer("dr-auc")(model, X, y) != pytest.approx(known)


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="dr-auc"):
        scorer("auc")


def test_folds_share_out_what_was_seen_and_keep_people_together() -> None:
    rng = np.random.default_rng(1)
    y = rng.choice([0, 1, np.nan], 400, p=[0.1, 0.05, 0.85])
    person = rng.integers(150, size=400)
    held = np.zeros(400, int)
    for train, test in SelectiveKFold(4).split(np.zeros((400, 1)), y, person):
        assert not set(person[train]) & set(person[test])
        assert 2 <= np.nansum(y[test]) <= 9
        held[test] += 1
    assert (held == 1).all()
    with pytest.raises(InputError, match="between 2 and 400; got 1"):
        next(SelectiveKFold(1).split(np.zeros((400, 1)), y))


def test_imputed_zeros_are_not_results(world) -> None:
    """With `tested` the score is that of missing labels; without it, that is pointed out."""
    X, y, _ = world
    tested, imputed = ~np.isnan(y), np.nan_to_num(y)
    model, judge = TestedOnly().fit(X, y), scorer("dr-auc")
    known = judge(model, X, y)
    assert judge(model, X, imputed, tested=tested) == known
    with pytest.warns(DataWarning, match="all of them count as tested"):
        assert judge(model, X, imputed) != known


def test_metadata_reach_the_scorer(world) -> None:
    X, y, _ = world
    group, tested, imputed = X[:, 0] > 0, ~np.isnan(y), np.nan_to_num(y)
    # the same folds for both
    cv = list(SelectiveKFold(2).split(X, y))
    model = dcem.methods.make("tested-only", learner="linear", random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        both = [
            cross_val_score(model, X, labels, cv=cv, scoring=scorer("dr-auc"), params=params)
            for labels, params in (
                (y, {"sensitive_features": group}),
                (imputed, {"sensitive_features": group, "tested": tested}),
            )
        ]
    np.testing.assert_array_equal(*both)


def test_weights_and_people_reach_scorer_and_folds(world) -> None:
    X, y, _ = (column[:600] for column in world)
    weight, person = np.where(X[:, 1] > 0, 3.0, 1.0), np.arange(600) // 3
    model, judge, cv = TestedOnly().fit(X, y), scorer("tested-auc"), SelectiveKFold(2)
    with sklearn.config_context(enable_metadata_routing=True):
        weighted = scorer("dr-auc")(model, X, y, sample_weight=weight)
        found = cross_val_score(
            TestedOnly(), X, y, cv=cv, scoring=judge, params={"groups": person}, error_score="raise"
        )
    assert weighted == scorer("dr-auc")(model, X, y, sample_weight=weight)
    assert weighted != scorer("dr-auc")(model, X, y)
    folds = cv.split(X, y, person)
    assert found.tolist() == [judge(model.fit(X[a], y[a]), X[b], y[b]) for a, b in folds]


def test_classes_may_have_names(world) -> None:
    X, y, _ = world
    model = TestedOnly().fit(X, y)
    known = scorer("dr-auc")(model, X, y)
    model.classes_ = np.array(["no", "yes"])
    names = np.where(np.isnan(y), None, np.where(y == 1, "yes", "no"))
    assert scorer("dr-auc")(model, X, names) == known
    for numbered, named in zip(
        SelectiveKFold(3).split(X, y), SelectiveKFold(3).split(X, names), strict=True
    ):
        np.testing.assert_array_equal(numbered[1], named[1])


def test_labels_of_any_kind_but_those_the_model_does_not_know(world) -> None:
    X, y, _ = world
    model, judge = TestedOnly().fit(X, y), scorer("dr-auc")
    known = judge(model, X, y)
    assert judge(model, X, pd.Series(y).astype("Int64")) == known
    assert judge(model, X, pd.DataFrame(y)) == known
    for coded in (np.where(np.isnan(y), -1, y), np.where(np.isnan(y), None, y.astype(str))):
        with pytest.raises(InputError, match="Write NaN for untested rows"):
            judge(model, X, coded)
    with pytest.raises(InputError, match="between 0 and 1"):
        scorer("dr-net-benefit", threshold=1)


def test_sparse_rows_are_split_and_scored_as_dense_ones(world) -> None:
    X, y, _ = world
    model, some = TestedOnly().fit(X, y), slice(800)
    dense, thin = X[some], csr_array(X[some])
    for one, other in zip(
        SelectiveKFold(2).split(dense, y[some]), SelectiveKFold(2).split(thin, y[some]), strict=True
    ):
        np.testing.assert_array_equal(one[1], other[1])
    model.predict_proba = lambda rows: TestedOnly.predict_proba(
        model, rows.toarray() if hasattr(rows, "toarray") else rows
    )
    judge = scorer("dr-auc")
    assert judge(model, thin, y[some]) == judge(model, dense, y[some])


def test_people_without_a_name_are_not_one_person() -> None:
    with pytest.raises(InputError, match="`groups` is missing in 1 of 4 rows"):
        next(SelectiveKFold(2).split(np.zeros((4, 1)), [1, 0, 1, 0], ["a", "b", None, "c"]))


@pytest.fixture(scope="module")
def mixed():
    """A frame with a number, a category, a date and a name for each row, and its labels."""
    rng = np.random.default_rng(3)
    n = 800
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(60, 10, n)),
            "ward": rng.choice(["ICU", "ED", None], n),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "name": [f"person {i}" for i in range(n)],
        }
    )
    frame.loc[rng.random(n) < 0.1, "day"] = pd.NaT
    risk = 1 / (1 + np.exp(-(frame["age"].fillna(60) - 60) / 10))
    y = np.where(rng.random(n) < 0.6, rng.random(n) < risk, np.nan)
    return frame, y, rng.choice(["f", "m"], n)


@pytest.mark.filterwarnings("ignore:Columns not used:dcem.DataWarning")
def test_frames_are_judged_by_the_features_that_methods_learn_from(mixed) -> None:
    """Of any library: numbers of a polars frame are not categories, nor is a date a number."""
    frame, y, _ = mixed
    model = dcem.methods.make("tested-only", learner="linear", random_state=0).fit(frame, y)
    judge = scorer("dr-auc")
    known = judge(model, frame, y)
    problem = next(iter(judge._known.values())).problem
    assert problem.X.shape[1] == len(model.encoder_.feature_names)  # none for each name
    assert np.isnan(problem.X).any(axis=0).sum() == 2  # an age and a day may be missing
    for other in (pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert judge(model, other, y) == known


@pytest.mark.filterwarnings("ignore:Columns not used:dcem.DataWarning")
@pytest.mark.parametrize("routed", [True, False])
def test_methods_that_predict_with_the_group_are_told_it(mixed, routed) -> None:
    frame, y, group = mixed
    method = dcem.methods.make("tested-only-plus-group", learner="linear", random_state=0)
    with sklearn.config_context(enable_metadata_routing=routed):
        for model in (method, make_pipeline("passthrough", method)):
            step = "" if model is method or routed else "testedonlyplusgroupclassifier__"
            model.fit(frame, y, **{f"{step}sensitive_features": group})
            found = scorer("tested-auc")(model, frame, y, sensitive_features=group)
            risk = model.predict_proba(frame, sensitive_features=group)[:, 1]
            seen = ~np.isnan(y)
            assert found == pytest.approx(metrics.auc(y[seen], risk[seen]))


def test_folds_are_of_labels_and_people_however_they_come() -> None:
    rng = np.random.default_rng(0)
    X, truth, tested = np.zeros((60, 1)), rng.integers(0, 2, 60), rng.random(60) < 0.4
    y, person = np.where(tested, truth, np.nan), np.arange(60) // 2

    def folds(*given, **more):
        return [test.tolist() for _, test in SelectiveKFold(3).split(X, *given, **more)]

    known = folds(y)
    for labels in (y[:, None], y.tolist(), pd.array(y, "Int64"), pl.Series(y), pd.DataFrame(y)):
        assert folds(labels) == known
    # zeros of the untested are no results where `tested` says so
    assert folds(np.nan_to_num(y), tested=tested) == folds(truth, tested=tested) == known
    assert folds(y, pd.DataFrame({"person": person})) == folds(y, person) != known
    with pytest.raises(InputError, match="'X' has 60, 'y' has 59"):
        folds(y[:-1])
    for number in (1, 61, 2.5, "3"):
        with pytest.raises(InputError, match="whole number between 2 and 60; got"):
            next(SelectiveKFold(number).split(X, y))


@pytest.mark.usefixtures("all_models")  # lines alone find no overlap among so few
def test_folds_are_told_who_was_tested(world) -> None:
    X, y, _ = (column[:900] for column in world)
    tested, model = ~np.isnan(y), dcem.methods.make("tested-only", learner="linear", random_state=0)
    given = {"cv": SelectiveKFold(3), "scoring": scorer("dr-auc"), "error_score": "raise"}
    with sklearn.config_context(enable_metadata_routing=True):
        told = cross_val_score(model, X, np.nan_to_num(y), params={"tested": tested}, **given)
    assert np.isfinite(told).all()
    np.testing.assert_array_equal(told, cross_val_score(model, X, y, **given))
