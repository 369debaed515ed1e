"""Models that predict every row without having seen its person.

The audit needs probabilities: of being tested, of belonging to a group, of a positive test. They
are means to an end (nuisances), so they should be flexible, need no tuning, and not have seen the
row they predict: a model that has would find every tested person likely to be tested. People are
dealt into folds; a fold is predicted by models fitted on the others.

Two learners compete, logistic regression and gradient boosted trees, and the one with the smaller
log loss on the held-out rows predicts (a discrete super learner: van der Laan, Polley and Hubbard
2007). Large tables are fitted on a random part of each training side, at most `row_budget` rows and
three million numbers; *all* rows are predicted, a chunk at a time.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcem.audit.people import People
from dcem.table.labels import SelectiveLabels

CHUNK = 250_000  # rows predicted at once
JUDGED = 20_000  # held-out rows a fold that decide between the learners
SMALL = 20_000  # up to so many rows, all folds decide between the learners; beyond, the first
MOST_CLASSES = 10  # trees grow one tree a class and step; beyond, logistic regression alone
LARGE = 5_000  # rows from which trees hold some out to know when to stop
CELLS = 3_000_000  # rows times columns that a model is fitted to, at most
TINY = 1e-6


@dataclass(frozen=True)
class Features:
    """Columns a model sees: the features, and the group as 0/1 columns if it may see that."""

    X: np.ndarray
    group: np.ndarray | None = None
    n_groups: int = 0

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The columns of these rows: [rows, d (+ groups)]."""
        X = self.X[rows]
        if self.group is None:
            return X
        member = self.group[rows][:, None] == np.arange(self.n_groups)
        return np.concatenate([X, member], axis=1)


@dataclass(frozen=True)
class CrossFit:
    """Out-of-fold probabilities and where they came from."""

    probability: np.ndarray  # [n] for two classes, [n, classes] for more
    learner: str
    loss: float  # mean log loss on held-out rows
    models: tuple[Any, ...]  # one a fold, for those who want to ask it more


def deal_folds(people: People, n_rows: int, n_folds: int, rng: np.random.Generator) -> np.ndarray:
    """The fold of each row; a person's rows share one."""
    order = rng.permutation(people.n_people) % n_folds
    return order if people.person is None else order[people.person]


def cross_fit(
    features: Features,
    target: np.ndarray,
    *,
    n_classes: int,
    among: np.ndarray,
    fold: np.ndarray,
    people: People,
    row_budget: int,
    rng: np.random.Generator,
    predict: np.ndarray | None = None,
) -> CrossFit:
    """Probabilities of the classes of `target` (codes), learnt `among` some rows (a mask).

    Every row is predicted, or those in the mask `predict`; rows left out are NaN.
    """
    folds = np.unique(fold)
    most = min(row_budget, CELLS // (features.X.shape[1] + features.n_groups))
    contest = folds if among.sum() <= SMALL else folds[:1]  # a large part decides for all
    fitted: dict[str, dict[int, Any]] = {name: {} for name in LEARNERS}
    loss: dict[str, list[float]] = {name: [] for name in LEARNERS}
    seeds = {held_out: int(rng.integers(2**31)) for held_out in folds}

    def train(name: str, held_out: int) -> None:
        draw = np.random.default_rng(seeds[held_out])
        rows = _some(np.flatnonzero(among & (fold != held_out)), most, draw)
        fitted[name][held_out] = _fit(
            name, features.take(rows), target[rows], people.weight[rows], seeds[held_out]
        )

    competing = list(LEARNERS) if n_classes <= MOST_CLASSES else ["logistic"]
    for held_out in contest:
        rows = _some(np.flatnonzero(among & (fold == held_out)), JUDGED, rng)
        outside = features.take(rows)
        for name in competing:
            train(name, held_out)
            guessed = _predict(fitted[name][held_out], outside, n_classes)
            loss[name].append(_log_loss(guessed, target[rows], people.weight[rows]))
    best = min(competing, key=lambda name: float(np.nanmean(loss[name])))
    for held_out in folds[len(contest) :]:
        train(best, held_out)
    probability = np.full((len(target), n_classes), np.nan)
    for held_out in folds:
        here, model = fold == held_out, fitted[best][held_out]
        rows = np.flatnonzero(here if predict is None else here & predict)
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            probability[part] = _predict(model, features.take(part), n_classes)
    return CrossFit(
        probability[:, 1] if n_classes == 2 else probability,
        LEARNERS[best],
        float(np.nanmean(loss[best])),
        tuple(fitted[best][held_out] for held_out in folds),
    )


def group_features(problem: SelectiveLabels) -> Features:
    """Features and group, where there is more than one."""
    if problem.n_groups < 2:
        return Features(problem.X)
    return Features(problem.X, problem.group, problem.n_groups)


LEARNERS = {"logistic": "logistic regression", "trees": "gradient boosted trees"}


def _fit(name: str, X: np.ndarray, y: np.ndarray, weight: np.ndarray, seed: int) -> Any:
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    empty = np.isnan(X).all(axis=0)
    if empty.any():  # trees refuse a column without a single value
        X = np.where(empty, 0.0, X)
    if len(np.unique(y)) < 2:
        return DummyClassifier(strategy="prior").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns without values, steps used up: loss will tell
        if name == "logistic":
            model = make_pipeline(
                SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
                StandardScaler(),
                LogisticRegression(C=1.0, max_iter=200),
            )
            return model.fit(X, y, logisticregression__sample_weight=weight)
        large = len(y) >= LARGE and np.bincount(y).min() >= 50
        most = 120 if y.max() == 1 else 40
        model = HistGradientBoostingClassifier(
            max_iter=most if large else 40,  # few rows: few, small trees instead of held-out rows
            max_leaf_nodes=15 if large else 8,
            learning_rate=0.1,
            min_samples_leaf=20,
            l2_regularization=1.0,
            early_stopping=large,
            n_iter_no_change=8,
            random_state=seed,
        )
        return model.fit(X, y, sample_weight=weight)


def _predict(model: Any, X: np.ndarray, n_classes: int) -> np.ndarray:
    """Probabilities [rows, classes]; a class that training did not hold gets (almost) none."""
    probability = np.zeros((len(X), n_classes))
    if len(X):
        probability[:, model.classes_.astype(int)] = model.predict_proba(X)
    probability = np.clip(probability, TINY, 1 - TINY)
    return probability / probability.sum(axis=1, keepdims=True)


def _log_loss(probability: np.ndarray, target: np.ndarray, weight: np.ndarray) -> float:
    if not len(target):
        return float("nan")
    own = probability[np.arange(len(target)), target]
    return float(-(weight @ np.log(own)) / weight.sum())


def _some(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    if len(rows) <= most:
        return rows
    return np.sort(rng.choice(rows, most, replace=False))
