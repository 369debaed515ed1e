"""Boosted trees: LightGBM, stopped by held-out rows; missing values go in as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from joblib import cpu_count
from scipy.special import expit

from dcem.learners.learner import (
    FEWEST,
    Batches,
    Rows,
    Sample,
    as_logit,
    base_rate,
    log_loss,
    smallest_leaf,
    true_labels,
)
from dcem.learners.preprocess import Preprocessor
from dcem.learners.small_trees import MOST_LEAVES, SmallTreesScorer
from dcem.learners.trees import Scorer, TreeLearner, Trees

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
PEOPLE = 1 << 24  # places that people of a table that is not in memory are counted in


def _behind_results(told: np.ndarray, weight: np.ndarray) -> Callable[..., Any]:
    """The objective of the truth behind results, by their evidence: slopes and curvatures."""

    def objective(z: np.ndarray, _: Any) -> tuple[np.ndarray, np.ndarray]:
        risk = expit(z)
        # as if the truth were known: an upper bound, so that steps stay safe
        return weight * (risk - expit(z + told)), weight * np.maximum(risk * (1 - risk), 1e-6)

    return objective


def _all(base: float | None, like: np.ndarray) -> np.ndarray | None:
    return None if base is None else np.full(len(like), base)


class Boost(TreeLearner):
    """Gradient-boosted trees of the log-odds, as many as validation rows call for.

    A column that is never missing among the training rows but is later gets their median.
    """

    name = "boost"

    @staticmethod
    def scorer(trees: Trees, n_features: int) -> Any:
        """What sums up so large trees soonest."""
        small = trees.leaves.max(initial=1) <= MOST_LEAVES
        return (SmallTreesScorer if small else Scorer)(trees, n_features)

    words = "boosted trees"

    def __init__(self, seed: int = 0, squared: bool = False, quick: bool = False):
        """`quick` takes fewer, smaller trees: enough for one of several models."""
        super().__init__(seed, squared)
        self.quick = quick

    def _learn(self, sample: Sample, validation: Rows | None) -> None:
        import lightgbm

        X, y, weight, person, _ = sample
        settings, told, base = self._settings(smallest_leaf(person, len(y))), sample.evidence, None
        if told is not None:
            base = base_rate(true_labels(sample), weight)
            settings |= {"objective": _behind_results(told, weight), "metric": "none"}
        data = lightgbm.Dataset(X, y, weight=weight, init_score=_all(base, y), params=settings)
        self._grow(data, settings, validation, base)

    def _settings(self, leaf: int) -> dict[str, Any]:
        """LightGBM's parameters where a leaf must hold so many rows."""
        return (
            SETTINGS
            | (QUICK if self.quick else {})
            | {
                "objective": "regression" if self.squared else "binary",
                "min_data_in_leaf": max(LEAF, leaf),
                "seed": self.seed % 2**31,
            }
        )

    def _grow(
        self,
        data: Any,
        settings: dict[str, Any],
        validation: Rows | None,
        base: float | None = None,
    ) -> None:
        """Grow trees on a data set until validation rows call for no more.

        Of results of a test that errs, from the log-odds `base` on.
        """
        import lightgbm

        rounds = WITHOUT_VALIDATION
        watch: dict[str, Any] = {}
        if validation is not None:
            rounds = QUICK_ROUNDS if self.quick else ROUNDS
            patience = QUICK_PATIENCE if self.quick else PATIENCE
            held, labels, weights, *rates = validation
            start = _all(base, labels)
            held_out = data.create_valid(
                self._filled(held), labels, weight=weights, init_score=start
            )
            watch = {
                "valid_sets": [held_out],
                "callbacks": [lightgbm.early_stopping(patience, verbose=False)],
            }
            if base is not None:
                watch["feval"] = lambda z, _: ("loss", log_loss(z, labels, weights, *rates), False)
        booster = lightgbm.train(settings, data, rounds, **watch)
        text = booster.model_to_string(num_iteration=booster.best_iteration or -1)
        trees = Trees.from_text(text)
        self._set(trees if base is None else trees.plus(base))

    @classmethod
    def of_batches(
        cls, seeds: Sequence[int], sample: Sample, held: Rows | None, batches: Batches
    ) -> list[Self]:
        """Models of rows that are not in memory, one for each seed and row of the weights.

        The `sample` says where features are cut into bins; of all rows, the bins are kept, a byte
        for each feature, and the labels and weights.
        """
        import lightgbm

        labels, weights, rows_of = [], [], np.zeros(PEOPLE, np.int64)
        for batch in batches(features=False):
            labels.append(batch.y.astype(np.float32))
            weights.append(batch.weight.astype(np.float32))
            rows_of += np.bincount((batch.number * PEOPLE).astype(np.int64), minlength=PEOPLE)
        y, weight = np.concatenate(labels), np.concatenate(weights, axis=1)
        del labels, weights
        # People who share a place count as one: a leaf holds ten of them all the more.
        leaf = int(np.sort(rows_of)[-(FEWEST - 1) :].sum()) + 1
        made = [cls(seed) for seed in seeds]
        for one in made:
            one.n_features = sample.X.shape[1]
            one.preprocessor = Preprocessor.fit(sample.X, "standard", person=sample.person)
        if len(np.unique(y)) < 2:
            for one, counted in zip(made, weight, strict=True):
                one._say(base_rate(y, counted))
            return made
        settings = made[0]._settings(leaf) | {
            "num_threads": cpu_count(),
            "feature_pre_filter": False,
        }
        passing = _passing(batches, len(y), made[0]._filled)
        bins = lightgbm.Dataset(made[0]._filled(sample.X), sample.y, params=settings)
        data = lightgbm.Dataset(passing, y, reference=bins, params=settings).construct()
        for one, counted in zip(made, weight, strict=True):
            data.set_weight(counted / counted.mean())
            one._grow(data, settings | {"seed": one.seed % 2**31}, held)
        return made

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


def _passing(batches: Batches, n_rows: int, filled: Callable[[np.ndarray], np.ndarray]) -> Any:
    """So many rows for LightGBM, which asks for slices of them in order."""
    import lightgbm

    class Passing(lightgbm.Sequence):
        batch_size = 1 << 16

        def __init__(self) -> None:
            self.batches = batches()
            self.waiting = np.empty((0, 0))

        def __len__(self) -> int:
            return n_rows

        def __getitem__(self, place: Any) -> np.ndarray:
            size, parts = place.stop - place.start, [self.waiting]
            while sum(map(len, parts)) < size:
                parts.append(filled(next(self.batches).X))
            rows = np.concatenate([part for part in parts if len(part)])
            self.waiting = rows[size:]
            return rows[:size]

    return Passing()
