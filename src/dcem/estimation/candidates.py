"""The learners that compete to predict who is tested, what a test shows, and who is who.

A number about everybody is only as good as the models behind it, and a model that cannot bend
where the world does leaves a trace of the features in every comparison of groups. Three kinds
that fail in different places:

* a **logistic regression** of the columns as they are: hard to beat where policies are simple or
  rows few;
* **boosted trees**, for thresholds and many columns; how many trees is decided by a fifth of the
  rows held out inside the training rows;
* **splines**: a penalised logistic regression on the columns, on splines of the eight that matter
  most, and on products of splines of each two of the first six (which ones matter is asked of a
  few trees). Smooth curves and interactions are learnt from far fewer rows than trees need.

Anything with `fit(X, y, sample_weight)`, `predict_proba` and `classes_` can stand beside them or
in their place.

G. Wahba et al., "Smoothing spline ANOVA for exponential families", Annals of Statistics 1995 (main
effects and products of splines); G. Ke et al., "LightGBM", NeurIPS 2017.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

MOST_CLASSES = 10  # trees and splines grow with the classes; beyond, logistic regression alone
HELD_OUT = 0.2  # of the training rows, to decide how many trees
REACH = 2.3  # normal scores between which splines bend: all but two per cent of the rows


def candidates(n_classes: int, seed: int) -> Mapping[str, Any]:
    """The kinds of models, untrained."""
    linear = make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
        StandardScaler(),
        LogisticRegression(max_iter=300),
    )
    if n_classes > MOST_CLASSES:
        return {"logistic regression": linear}
    return {
        "logistic regression": linear,
        "splines": SplineLogistic(random_state=seed),
        "boosted trees": BoostedTrees(random_state=seed),
    }


class BoostedTrees(ClassifierMixin, BaseEstimator):
    """Gradient boosted trees whose number is decided inside the training rows.

    Parameters
    ----------
    rounds
        Trees (per class), at most.
    patience
        Trees without gain on the held-out rows after which no more are grown; None grows them all
        on all rows. The held-out rows are the *last* of those given: hand rows over in random
        order, a person's together.
    leaves, learning_rate
        Of each tree.
    random_state
        Seed.
    """

    def __init__(
        self,
        rounds: int = 400,
        patience: int | None = 25,
        leaves: int = 16,
        learning_rate: float = 0.08,
        random_state: int = 0,
    ) -> None:
        self.rounds = rounds
        self.patience = patience
        self.leaves = leaves
        self.learning_rate = learning_rate
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BoostedTrees:
        """Grow the trees."""
        import lightgbm

        self.classes_, code = np.unique(y, return_inverse=True)
        many = len(self.classes_) > 2
        settings = {
            "objective": "multiclass" if many else "binary",
            "num_class": len(self.classes_) if many else 1,
            "num_leaves": self.leaves,
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": 20,
            "lambda_l2": 1.0,
            "max_bin": 127,
            "num_threads": 1,
            "deterministic": True,
            "force_row_wise": True,
            "seed": self.random_state,
            "verbose": -1,
        }
        kept = len(code) if self.patience is None else int((1 - HELD_OUT) * len(code))
        if len(np.unique(code[:kept])) < len(self.classes_):
            kept = len(code)  # too few rows to hold any out

        def part(rows: slice, **like: Any) -> Any:
            weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
            return lightgbm.Dataset(X[rows], code[rows], weight=weight, params=settings, **like)

        train = part(slice(kept))
        stopping: dict[str, Any] = {}
        if self.patience is not None and kept < len(code):
            stopping["valid_sets"] = [part(slice(kept, None), reference=train)]
            stopping["callbacks"] = [lightgbm.early_stopping(self.patience, verbose=False)]
        self.model_ = lightgbm.train(settings, train, self.rounds, **stopping)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities [rows, classes]."""
        p = np.asarray(self.model_.predict(X, num_threads=1))
        return p if p.ndim == 2 else np.stack([1 - p, p], axis=1)

    @property
    def importance(self) -> np.ndarray:
        """How much each column lowered the loss [columns]."""
        return np.asarray(self.model_.feature_importance("gain"))


class SplineLogistic(ClassifierMixin, BaseEstimator):
    """Penalised logistic regression on columns, splines of the important ones, and products.

    Splines bend along normal scores (the place of a value among the training rows), so that a long
    tail does not use up the knots. With few rows fewer columns get splines.

    Parameters
    ----------
    curved
        Columns that get a spline, at most.
    paired
        Columns whose splines are multiplied, each with each, at most.
    C
        Inverse strength of the penalty. It is weak on purpose: what a penalty shrinks away is the
        same for testing, outcome and group, and the estimates would mistake it for a difference;
        the noise of a model that bends too much averages out.
    random_state
        Seed of the trees that say which columns matter.
    """

    def __init__(
        self, curved: int = 8, paired: int = 6, C: float = 3.0, random_state: int = 0
    ) -> None:
        self.curved = curved
        self.paired = paired
        self.C = C
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SplineLogistic:
        """Choose the columns, place the knots, fit."""
        trees = BoostedTrees(40, patience=None, learning_rate=0.1, random_state=self.random_state)
        gain = trees.fit(X, y, sample_weight).importance
        order = np.argsort(-gain, kind="stable")[: min(self.curved, len(y) // 50)]
        self.columns_ = order[gain[order] > 0.005 * gain.sum()]
        self.n_paired_ = min(self.paired, len(y) // 100, len(self.columns_))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column may hold no number at all
            self.middle_ = np.nan_to_num(np.nanmedian(X, axis=0))
        self.gaps_ = np.isnan(X).any(axis=0)
        filled = self._filled(X)
        spread = filled.std(axis=0)
        self.mean_, self.spread_ = filled.mean(axis=0), np.where(spread > 0, spread, 1.0)
        self.scores_ = [_normal_scores(filled[:, column]) for column in self.columns_]
        self.spline_ = _splines(len(self.columns_), knots=8, degree=3, include_bias=False)
        self.factor_ = _splines(self.n_paired_, knots=3, degree=2, include_bias=True)
        solver = "newton-cholesky" if len(np.unique(y)) == 2 else "lbfgs"
        self.model_ = LogisticRegression(C=self.C, solver=solver, max_iter=200, tol=1e-3)
        self.model_.fit(self._basis(X), y, sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities [rows, classes]."""
        p: np.ndarray = self.model_.predict_proba(self._basis(X))
        return p

    def _filled(self, X: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(X), self.middle_, X) if self.gaps_.any() else np.nan_to_num(X)

    def _basis(self, X: np.ndarray) -> np.ndarray:
        """Columns, which of them are missing, splines, products of splines: [rows, about 350]."""
        filled = self._filled(X)
        parts = [(filled - self.mean_) / self.spread_, np.isnan(X[:, self.gaps_]).astype(float)]
        if len(self.columns_):
            place = np.column_stack(
                [
                    np.interp(filled[:, column], *known)
                    for column, known in zip(self.columns_, self.scores_, strict=True)
                ]
            )
            parts.append(self.spline_.transform(place))
        if self.n_paired_ > 1:
            factor = self.factor_.transform(place[:, : self.n_paired_])
            factor = factor.reshape(len(X), self.n_paired_, -1)  # [rows, columns, functions]
            for i in range(1, self.n_paired_):
                for j in range(i):
                    product = factor[:, i, :, None] * factor[:, j, None, :]
                    # twice: a product of two functions under 1 is small, and would be penalised
                    parts.append(2 * product.reshape(len(X), -1))
        return np.concatenate(parts, axis=1)


def _normal_scores(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and their normal scores, to interpolate between; ties share a place."""
    share = np.linspace(0.005, 0.995, 100)
    known, place = np.unique(np.quantile(values, share), return_inverse=True)
    middle = np.bincount(place, share) / np.bincount(place)
    return known, norm.ppf(middle)


def _splines(columns: int, *, knots: int, degree: int, include_bias: bool) -> Any:
    """B-splines on evenly spaced normal scores, flat beyond the outermost."""
    if columns == 0:
        return None
    at = np.repeat(np.linspace(-REACH, REACH, knots)[:, None], columns, axis=1)
    return SplineTransformer(
        n_knots=knots,
        degree=degree,
        knots=at,
        extrapolation="constant",
        include_bias=include_bias,
    ).fit(at)
