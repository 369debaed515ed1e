"""The learners that compete to predict who is tested, what a test shows, and who is who.

A number about everybody is only as good as the models behind it, and a model that cannot bend
where the world does leaves a trace of the features in every comparison of groups. Three kinds
that fail in different places:

* a **logistic regression** of the columns as they are: hard to beat where policies are simple or
  rows few;
* **boosted trees**, for thresholds and many columns; how many trees is decided by a fifth of the
  rows held out inside the training rows;
* **splines**: a penalised logistic regression on the columns, on splines of those along which the
  outcome bends, and on products of splines of pairs that act together. Smooth curves and
  interactions are learnt from far fewer rows than trees need.

Anything with `fit(X, y, sample_weight)`, `predict_proba` and `classes_` can stand beside them or
in their place.

G. Wahba et al., "Smoothing spline ANOVA for exponential families", Annals of Statistics 1995 (main
effects and products of splines); G. Ke et al., "LightGBM", NeurIPS 2017.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

MOST_CLASSES = 10  # trees and splines grow with the classes; beyond, logistic regression alone
HELD_OUT = 0.2  # of the training rows, to decide how many trees
REACH = 2.3  # normal scores between which splines bend: all but two per cent of the rows
BENDS = 2.5  # standard errors from which on residuals are said to bend along a column
SCREENED = 100  # columns whose pairs are tried
CURVED = 8  # columns that get a spline, at most
PAIRED = 12  # pairs of columns whose splines are multiplied, at most
# Inverse strength of the penalty on splines. It is weak on purpose: what a penalty shrinks away is
# the same for testing, outcome and group, and the estimates would mistake it for a difference; the
# noise of a model that bends too much averages out.
C = 10.0
PATIENCE = 25  # trees without gain on the held-out rows after which no more are grown
TREES = {
    "num_leaves": 16,
    "learning_rate": 0.08,
    "min_data_in_leaf": 20,
    "lambda_l2": 1.0,
    "max_bin": 127,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
}


def candidate_models(n_classes: int, seed: int) -> Mapping[str, Any]:
    """The kinds of models, untrained."""
    linear = make_pipeline(Medians(), StandardScaler(), LogisticRegression(max_iter=300))
    if n_classes > MOST_CLASSES:
        return {"logistic regression": linear}
    return {
        "logistic regression": linear,
        "splines": SplineLogistic(),
        "boosted trees": BoostedTrees(random_state=seed),
    }


class Medians(TransformerMixin, BaseEstimator):
    """Columns with medians where they are missing, and indicators of those that ever are.

    As `SimpleImputer` has them, in a quarter of its time.
    """

    def fit(self, X: np.ndarray, y: Any = None) -> Medians:
        """Learn the medians, 0 for a column that holds no number, and which columns have gaps."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            self.middle_ = np.nan_to_num(np.nanmedian(X, axis=0))
        self.gaps_ = np.isnan(X).any(axis=0)
        return self

    def filled(self, X: np.ndarray) -> np.ndarray:
        """The columns without their indicators."""
        missing = np.isnan(X)
        return np.where(missing, self.middle_, X) if missing.any() else X

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Columns, and then indicators."""
        return np.concatenate([self.filled(X), np.isnan(X[:, self.gaps_])], axis=1)


class BoostedTrees(ClassifierMixin, BaseEstimator):
    """Gradient boosted trees whose number is decided inside the training rows.

    The rows held out for it are the *last* of those given: hand rows over in random order, a
    person's together.

    Parameters
    ----------
    rounds
        Trees (per class), at most.
    random_state
        Seed.
    """

    def __init__(self, rounds: int = 400, random_state: int = 0) -> None:
        self.rounds, self.random_state = rounds, random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BoostedTrees:
        """Grow the trees."""
        import lightgbm

        self.classes_, code = np.unique(y, return_inverse=True)
        many = len(self.classes_) > 2
        settings = TREES | {
            "objective": "multiclass" if many else "binary",
            "num_class": len(self.classes_) if many else 1,
            "seed": self.random_state,
        }
        kept = int((1 - HELD_OUT) * len(code))
        if len(np.unique(code[:kept])) < len(self.classes_):
            kept = len(code)  # too few rows to hold any out

        def part(rows: slice, **like: Any) -> Any:
            weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
            return lightgbm.Dataset(X[rows], code[rows], weight=weight, params=settings, **like)

        train = part(slice(kept))
        stopping: dict[str, Any] = {}
        if kept < len(code):
            stopping["valid_sets"] = [part(slice(kept, None), reference=train)]
            stopping["callbacks"] = [lightgbm.early_stopping(PATIENCE, verbose=False)]
        self.model_ = lightgbm.train(
            settings, train, self.rounds, keep_training_booster=True, **stopping
        ).free_dataset()  # without the rows, as a copy by way of text would be
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities [rows, classes]."""
        p = np.asarray(self.model_.predict(X, num_threads=1))
        return p if p.ndim == 2 else np.stack([1 - p, p], axis=1)


class SplineLogistic(ClassifierMixin, BaseEstimator):
    """Penalised logistic regression on columns, splines of some, and products of splines of some.

    Built up in three steps, each of which asks what the residuals of the one before still know
    (score tests): the columns as they are; splines of the columns along which residuals bend;
    products of splines of the pairs whose products residuals know. A pair can be found although
    neither of its columns matters alone, and columns of noise cost next to nothing. Splines bend
    along normal scores (the place of a value among the training rows), so that a long tail does not
    use up the knots.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SplineLogistic:
        """Choose the columns and the pairs, fit."""
        self.medians_ = Medians().fit(X)
        filled = self.medians_.filled(X)
        spread = filled.std(axis=0)
        self.mean_, self.spread_ = filled.mean(axis=0), np.where(spread > 0, spread, 1.0)
        self.scores_ = [_normal_scores(column) for column in filled.T]
        self.columns_: list[int] = []
        self.pairs_: list[tuple[int, int]] = []
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        place = self._place(filled, range(X.shape[1]))
        square = place**2
        bends = np.stack([place, square - 1, (square - 3) * place])  # [degrees, rows, columns]
        bends -= bends.mean(axis=1, keepdims=True)
        left = self._fit(X, y, weight)  # [classes, rows]
        strength = np.max([[_strength(r, bend) for bend in bends] for r in left], axis=(0, 1))
        order = np.argsort(-strength, kind="stable")[:CURVED]
        self.columns_ = [int(column) for column in order if strength[column] > BENDS]
        if self.columns_:
            left = self._fit(X, y, weight)
        asked = np.argsort(-strength, kind="stable")[:SCREENED]
        self.pairs_ = _pairs(left, bends[:2, :, asked], asked)[:PAIRED]
        if self.pairs_:
            self._fit(X, y, weight)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities [rows, classes]."""
        return self.model_.predict_proba(self._basis(X))

    def _fit(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Fit the terms chosen so far; weighted residuals of each class [classes, rows]."""
        two = len(np.unique(y)) == 2
        basis = self._basis(X)
        solver = "newton-cholesky" if two else "lbfgs"
        self.model_ = LogisticRegression(C=C, solver=solver, max_iter=200, tol=1e-3)
        self.model_.fit(basis, y, weight)
        seen = y[:, None] == self.model_.classes_
        left: np.ndarray = (weight[:, None] * (seen - self.model_.predict_proba(basis))).T
        return left[1:] if two else left

    def _place(self, filled: np.ndarray, columns: Iterable[int]) -> np.ndarray:
        """Normal scores of some columns [rows, columns]."""
        return np.column_stack([np.interp(filled[:, one], *self.scores_[one]) for one in columns])

    def _basis(self, X: np.ndarray) -> np.ndarray:
        """Columns, which of them are missing, splines, products of splines: [rows, terms]."""
        filled, gaps = self.medians_.filled(X), np.isnan(X[:, self.medians_.gaps_])
        parts = [(filled - self.mean_) / self.spread_, gaps.astype(float)]
        if self.columns_:
            place = self._place(filled, self.columns_)
            curves = _splines(place, knots=8, degree=3, include_bias=False)
            parts.append(curves.reshape(len(X), -1))
        if self.pairs_:
            both = [column for pair in self.pairs_ for column in pair]
            factor = _splines(self._place(filled, both), knots=3, degree=2, include_bias=True)
            for i in range(0, len(both), 2):
                product = factor[:, i, :, None] * factor[:, i + 1, None, :]
                # twice: a product of two functions under 1 is small, and would be penalised
                parts.append(2 * product.reshape(len(X), -1))
        return np.concatenate(parts, axis=1)


def _normal_scores(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and their normal scores, to interpolate between; ties share a place."""
    share = np.linspace(0.005, 0.995, 100)
    known, place = np.unique(np.quantile(values, share), return_inverse=True)
    middle = np.bincount(place, share) / np.bincount(place)
    return known, ndtri(middle)


def _splines(place: np.ndarray, *, knots: int, degree: int, include_bias: bool) -> np.ndarray:
    """B-splines on evenly spaced normal scores [rows, columns, functions], flat beyond the ends."""
    values: np.ndarray = _bends(knots, degree, include_bias).transform(place.reshape(-1, 1))
    return values.reshape(*place.shape, -1)


@cache
def _bends(knots: int, degree: int, include_bias: bool) -> SplineTransformer:
    """The splines, which are the same for every column."""
    at = np.linspace(-REACH, REACH, knots)[:, None]
    made = SplineTransformer(
        n_knots=knots, degree=degree, knots=at, extrapolation="constant", include_bias=include_bias
    )
    return made.fit(at)


def _strength(left: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """Score tests: what residuals [rows] know of each term [rows, terms], in standard errors.

    At most the square root of the rows in which a term is not zero: a few rows prove nothing.
    """
    error = np.sqrt(left**2 @ terms**2)
    return np.abs(left @ terms) / np.where(error > 0, error, np.inf)


def _pairs(left: np.ndarray, bends: np.ndarray, names: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of columns whose products the residuals know, the clearest first.

    `left` [classes, rows]; `bends` [degrees, rows, columns]: all products of any two columns and
    degrees are tried at once, and compared with the largest of so many that chance would give.
    """
    degrees, rows, width = bends.shape
    if width < 2:
        return []
    flat = np.moveaxis(bends, 1, 0).reshape(rows, -1)  # [rows, degrees * columns]
    best = np.zeros((width, width))
    for one in left:
        error = np.sqrt((flat.T**2 * one**2) @ flat**2)
        tested = np.abs((flat.T * one) @ flat) / np.where(error > 0, error, np.inf)
        best = np.maximum(best, tested.reshape(degrees, width, degrees, width).max(axis=(0, 2)))
    first, second = np.triu_indices(width, 1)
    clear = best[first, second]
    chance = np.sqrt(2 * np.log(len(left) * degrees**2 * len(first)))
    order = np.argsort(-clear, kind="stable")
    return [(int(names[first[k]]), int(names[second[k]])) for k in order if clear[k] > chance]
