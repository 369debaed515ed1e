"""Scores and folds for scikit-learn's model selection, with labels that are missing."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from dcem import metrics
from dcem.estimation import SelectiveKFold, scorer
from dcem.table.messages import InputError


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
    with pytest.raises(InputError, match="n_splits"):
        next(SelectiveKFold(1).split(np.zeros((400, 1)), y))
