"""Extremely randomised trees: cautious, smooth averages that extrapolate little."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.ensemble import ExtraTreesRegressor

from dcem.learners.learner import Sample, as_logit, smallest_leaf
from dcem.learners.trees import TreeLearner, Trees

TREES = 300
MOST_LEAVES = 2000  # about; in longer tables a leaf holds more rows
# Rows from which on half, and a quarter, of the trees do: their leaves are means of many.
LONG, VERY_LONG = 50_000, 150_000
# Rows are put in an order by so many features, each in so many parts.
LOOKED_AT, LOOKED_AT_IN = 3, 16


class LargeTreesScorer:
    """The sums of trees, by scikit-learn, for rows in float32 without gaps.

    All rows pass one tree before the next, which stays in the cache meanwhile; and rows that are
    alike in the features that trees ask for most follow each other, so that they take the same
    turns. For trees of a hundred leaves and more this takes a third of the time, and gives the same
    sums.
    """

    def __init__(self, trees: Trees, n_features: int):
        self._trees = list(trees.for_sklearn(n_features))
        often = np.bincount(trees.feature, minlength=n_features).argsort(kind="stable")[::-1]
        parts = np.arange(1, LOOKED_AT_IN) / LOOKED_AT_IN
        self._cuts = {
            int(feature): np.quantile(trees.threshold[trees.feature == feature], parts)
            for feature in often[:LOOKED_AT]
            if feature in trees.feature
        }

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The sum over all trees `[n]`."""
        place = np.zeros(len(X), np.int16)
        for feature, cuts in self._cuts.items():
            place = place * LOOKED_AT_IN + np.searchsorted(cuts, X[:, feature]).astype(np.int16)
        order = place.argsort(kind="stable")
        rows, total = X[order], np.zeros(len(X))
        for tree in self._trees:
            total += tree.predict(rows)[:, 0]
        total[order] = total.copy()
        return total


class Forest(TreeLearner):
    """The mean of many trees whose splits are drawn at random, each leaf of ten people or more.

    Missing values are filled with the median, and an indicator says so. (The probability of a class
    is the mean label of a leaf, so that a forest of regressions on 0 and 1 is what a forest of
    classifications is.)
    """

    name = "forest"
    words = "a forest"
    scorer = LargeTreesScorer

    def __init__(
        self,
        seed: int = 0,
        squared: bool = False,
        trees: int = TREES,
        share: float | None = None,
        threads: int = 1,
    ):
        """`share` of the columns is looked at for each split; None takes the square root."""
        super().__init__(seed, squared)
        self.n_trees, self.share, self.threads = trees, share, threads

    def _learn(self, sample: Sample, held: Sample | None) -> None:
        """Rows held out are not needed. Where a test errs, a leaf is the mean of the truth."""
        y, rows = sample.true_labels, self.preprocessor.transform(sample.X)
        fewer = 1 if len(y) < LONG else 2 if len(y) < VERY_LONG else 4
        n_trees, n_columns = -(-self.n_trees // fewer), rows.shape[1]
        looked_at = np.sqrt(n_columns) if self.share is None else self.share * n_columns
        forest = ExtraTreesRegressor(
            n_estimators=n_trees,
            min_samples_leaf=max(smallest_leaf(sample.person, len(y)), len(y) // MOST_LEAVES),
            max_features=max(1, round(looked_at)),
            random_state=self.seed % 2**32,
            n_jobs=self.threads,
        ).fit(rows, y, sample_weight=sample.weight)
        trees = [tree.tree_ for tree in forest.estimators_]
        self._set(Trees.from_sklearn(trees, [tree.value.ravel() / n_trees for tree in trees]))

    @property
    def _n_inputs(self) -> int:
        return self.preprocessor.n_outputs

    def _say(self, value: float) -> None:
        super()._say(value if self.squared else float(expit(value)))

    def predict_logit(self, X: np.ndarray) -> np.ndarray:
        """See `LearnerBase`."""
        return as_logit(self._scorer(self.preprocessor.transform(X)))
