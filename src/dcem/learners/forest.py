"""Extremely randomised trees: cautious, smooth averages that extrapolate little."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.ensemble import ExtraTreesRegressor

from dcem.learners.learner import (
    LearnerBase,
    Rows,
    as_logit,
    base_rate,
    known_rows,
    smallest_leaf,
)
from dcem.learners.preprocess import Preprocessor
from dcem.learners.trees import Scorer, Trees

TREES = 300
MOST_LEAVES = 2000  # about; in longer tables a leaf holds more rows


class Forest(LearnerBase):
    """The mean of many trees whose splits are drawn at random, each leaf of ten people or more.

    Missing values are filled with the median, and an indicator says so. (The probability of a class
    is the mean label of a leaf, so that a forest of regressions on 0 and 1 is what a forest of
    classifications is.)
    """

    name = "forest"

    def __init__(
        self, seed: int = 0, squared: bool = False, trees: int = TREES, share: float | None = None
    ):
        """`share` of the columns is looked at for each split; None takes the square root."""
        super().__init__(seed, squared)
        self.n_trees, self.share = trees, share

    def fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        validation: Rows | None = None,
        person: np.ndarray | None = None,
    ) -> Self:
        """See `Learner`; validation rows are not needed."""
        X, y, weight, person = known_rows(X, y, weight, person)
        self.n_features = X.shape[1]
        self.preprocessor = Preprocessor.fit(X, "standard", person=person)
        rows = self.preprocessor.transform(X)
        if len(np.unique(y)) < 2:
            value = float(expit(base_rate(y, weight)))
            self._set(Trees.from_text(f"num_leaves=1\nleaf_value={value!r}"))
            return self
        forest = ExtraTreesRegressor(
            n_estimators=self.n_trees,
            min_samples_leaf=max(smallest_leaf(person, len(y)), len(y) // MOST_LEAVES),
            max_features=max(1, round(self._looked_at(rows.shape[1]))),
            random_state=self.seed % 2**32,
            n_jobs=1,
        ).fit(rows, y, sample_weight=weight)
        trees = [tree.tree_ for tree in forest.estimators_]
        self._set(Trees.from_sklearn(trees, [tree.value.ravel() / self.n_trees for tree in trees]))
        return self

    def _looked_at(self, n_columns: int) -> float:
        return np.sqrt(n_columns) if self.share is None else self.share * n_columns

    def _set(self, trees: Trees) -> None:
        n_inputs = self.preprocessor.n_outputs
        trees.check(n_inputs)
        self.trees, self._scorer = trees, Scorer(trees, n_inputs)

    def predict_logit(self, X: np.ndarray) -> np.ndarray:
        """See `Learner`."""
        return as_logit(self._scorer(self.preprocessor.transform(X)))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_scorer"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._scorer = Scorer(self.trees, self.preprocessor.n_outputs)

    def arrays(self) -> dict[str, np.ndarray]:
        """All that was learnt."""
        return self.trees.arrays() | self.preprocessor.arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_features: int) -> Self:
        """The inverse of `arrays`."""
        made = cls()
        made.n_features = n_features
        made.preprocessor = Preprocessor.from_arrays(arrays, n_features)
        made._set(Trees.from_arrays(arrays, made.preprocessor.n_outputs))
        return made
