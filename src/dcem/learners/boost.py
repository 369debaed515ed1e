"""Boosted trees: LightGBM, stopped by held-out rows; missing values go in as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from dcem.learners.learner import (
    FEWEST,
    LearnerBase,
    Rows,
    as_logit,
    base_rate,
    known_rows,
    smallest_leaf,
)
from dcem.learners.preprocess import Preprocessor
from dcem.learners.trees import Scorer, Trees

ROUNDS = 1000  # at most
WITHOUT_VALIDATION = 100
PATIENCE = 50  # rounds without a lower loss on validation rows
SETTINGS: dict[str, Any] = {
    "learning_rate": 0.05,
    "num_leaves": 31,
    "lambda_l2": 1.0,
    "min_data_in_bin": FEWEST,
    "feature_fraction": 0.8,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,  # several fits run side by side; small ones gain nothing from more
    "verbosity": -1,
}
QUICK = {"learning_rate": 0.07, "num_leaves": 15, "max_bin": 127}
QUICK_ROUNDS, QUICK_PATIENCE = 300, 30
LEAF = 20  # rows at least, and never fewer than ten people


class Boost(LearnerBase):
    """Gradient-boosted trees of the log-odds, as many as validation rows call for.

    A column that is never missing among the training rows but is later gets their median.
    """

    name = "boost"

    def __init__(self, seed: int = 0, squared: bool = False, quick: bool = False):
        """`quick` takes fewer, smaller trees: enough for one of several models."""
        super().__init__(seed, squared)
        self.quick = quick

    def fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        validation: Rows | None = None,
        person: np.ndarray | None = None,
    ) -> Self:
        """See `Learner`."""
        import lightgbm

        X, y, weight, person = known_rows(X, y, weight, person)
        self.n_features = X.shape[1]
        self.preprocessor = Preprocessor.fit(X, "standard", person=person)
        if len(np.unique(y)) < 2:
            self._set(_constant(base_rate(y, weight)))
            return self
        settings = (
            SETTINGS
            | (QUICK if self.quick else {})
            | {
                "objective": "regression" if self.squared else "binary",
                "min_data_in_leaf": max(LEAF, smallest_leaf(person, len(y))),
                "seed": self.seed % 2**31,
            }
        )
        data = lightgbm.Dataset(X, y, weight=weight, params=settings)
        rounds = WITHOUT_VALIDATION
        watch: dict[str, Any] = {}
        if validation is not None:
            rounds = QUICK_ROUNDS if self.quick else ROUNDS
            patience = QUICK_PATIENCE if self.quick else PATIENCE
            held, labels, weights = validation
            watch = {
                "valid_sets": [data.create_valid(self._filled(held), labels, weight=weights)],
                "callbacks": [lightgbm.early_stopping(patience, verbose=False)],
            }
        booster = lightgbm.train(settings, data, rounds, **watch)
        text = booster.model_to_string(num_iteration=booster.best_iteration or -1)
        self._set(Trees.from_text(text))
        return self

    def _set(self, trees: Trees) -> None:
        trees.check(self.n_features)
        self.trees, self._scorer = trees, Scorer(trees, self.n_features)

    def _filled(self, X: np.ndarray) -> np.ndarray:
        """Medians where a column is missing that never was before."""
        known = self.preprocessor
        missing = np.isnan(X)
        missing[:, known.indicators] = False
        return np.where(missing, known.median, X) if missing.any() else X

    def predict_logit(self, X: np.ndarray) -> np.ndarray:
        """See `Learner`."""
        total = self._scorer(self._filled(X))
        return as_logit(total) if self.squared else total

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_scorer"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._scorer = Scorer(self.trees, self.n_features)

    def arrays(self) -> dict[str, np.ndarray]:
        """All that was learnt."""
        flags = {"squared": np.array([float(self.squared)])}
        return flags | self.trees.arrays() | self.preprocessor.arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_features: int) -> Self:
        """The inverse of `arrays`."""
        made = cls(squared=bool(arrays["squared"].any()))
        made.n_features = n_features
        made.preprocessor = Preprocessor.from_arrays(arrays, n_features)
        made._set(Trees.from_arrays(arrays, n_features))
        return made


def _constant(value: float) -> Trees:
    """One tree that says the same of everybody."""
    return Trees.from_text(f"num_leaves=1\nleaf_value={value!r}")
