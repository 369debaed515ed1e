"""Boosted trees: LightGBM, stopped by held-out rows; missing values go in as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from dcem.learners.learner import FEWEST, Rows, Sample, as_logit, smallest_leaf
from dcem.learners.trees import TreeLearner, Trees

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


class Boost(TreeLearner):
    """Gradient-boosted trees of the log-odds, as many as validation rows call for.

    A column that is never missing among the training rows but is later gets their median.
    """

    name = "boost"
    words = "boosted trees"

    def __init__(self, seed: int = 0, squared: bool = False, quick: bool = False):
        """`quick` takes fewer, smaller trees: enough for one of several models."""
        super().__init__(seed, squared)
        self.quick = quick

    def _learn(self, sample: Sample, validation: Rows | None) -> None:
        import lightgbm

        X, y, weight, person = sample
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

    def _filled(self, X: np.ndarray) -> np.ndarray:
        """Medians where a column is missing that never was before."""
        known = self.preprocessor
        missing = np.isnan(X)
        missing[:, known.indicators] = False
        return np.where(missing, known.median, X) if missing.any() else X

    def predict_logit(self, X: np.ndarray) -> np.ndarray:
        """See `LearnerBase`."""
        total = self._scorer(self._filled(X))
        return as_logit(total) if self.squared else total

    def arrays(self) -> dict[str, np.ndarray]:
        """All that was learnt."""
        return {"squared": np.array([float(self.squared)])} | super().arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_features: int) -> Self:
        """The inverse of `arrays`."""
        made = super().from_arrays(arrays, n_features)
        made.squared = bool(arrays["squared"].any())
        return made
