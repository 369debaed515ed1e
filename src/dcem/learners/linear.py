"""Penalised logistic regression: the plainest learner, and hard to beat on small tables."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from dcem.learners.learner import LearnerBase, Rows, Sample, as_logit, by_block, log_loss
from dcem.learners.preprocess import Preprocessor, Scaling

PENALTIES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)  # per row; chosen on validation rows
PENALTY = 1e-3  # where there are none


class Linear(LearnerBase):
    """Log-odds linear in standardised features and missing-value indicators.

    The ridge penalty is the one with the lowest loss on validation rows.
    """

    name = "linear"
    words = "a linear model"

    def __init__(self, seed: int = 0, squared: bool = False, drawn_in: bool = False):
        """`drawn_in` scales features as networks have them: extreme values count less."""
        super().__init__(seed, squared)
        self.drawn_in = drawn_in

    def _learn(self, sample: Sample, validation: Rows | None) -> None:
        X, y, weight, person = sample
        self.scaling = Scaling.fit(X, person) if self.drawn_in else None
        rows = self._inputs(X)
        best = np.inf
        for penalty in PENALTIES if validation is not None else (PENALTY,):
            fitted = self._fitted(rows, y, weight, penalty)
            coefficients, intercept = np.ravel(fitted.coef_), float(np.ravel(fitted.intercept_)[0])
            loss = -np.inf
            if validation is not None:
                held = self._inputs(validation[0])
                loss = self._loss(held @ coefficients + intercept, *validation[1:])
            if loss < best:
                best, self.penalty = loss, penalty
                self.coefficients, self.intercept = coefficients, intercept

    def _say(self, log_odds: float) -> None:
        self.scaling, self.intercept = None, log_odds
        self.coefficients = np.zeros(self.preprocessor.n_outputs)

    def _fitted(self, rows: np.ndarray, y: np.ndarray, weight: np.ndarray, penalty: float) -> Any:
        total = penalty * len(y)
        if self.squared:
            return Ridge(alpha=total).fit(rows, y, sample_weight=weight)
        with warnings.catch_warnings():  # nearly separable: the penalty decides, and that is fine
            warnings.simplefilter("ignore")
            model = LogisticRegression(C=1 / total, solver="newton-cholesky", max_iter=200)
            return model.fit(rows, y.astype(int), sample_weight=weight)

    def _loss(self, z: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
        if self.squared:
            return float(np.average((np.clip(z, 0, 1) - y) ** 2, weights=weight))
        return log_loss(z, y, weight)

    def _inputs(self, X: np.ndarray) -> np.ndarray:
        if self.scaling is not None:
            return self.scaling(X).astype(np.float64)
        return self.preprocessor.transform(X, "float64")

    def predict_logit(self, X: np.ndarray) -> np.ndarray:
        """See `LearnerBase`."""
        z = by_block(lambda rows: self._inputs(rows) @ self.coefficients, X) + self.intercept
        return as_logit(z) if self.squared else z

    def arrays(self) -> dict[str, np.ndarray]:
        """All that was learnt."""
        return {
            "coefficients": self.coefficients,
            "intercept": np.array([self.intercept, float(self.squared)]),
            **(self.preprocessor if self.scaling is None else self.scaling).arrays(),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_features: int) -> Self:
        """The inverse of `arrays`."""
        made = cls()
        made.n_features = n_features
        made.preprocessor = Preprocessor.from_arrays(arrays, n_features)
        made.scaling = Scaling.from_arrays(arrays, n_features) if "center" in arrays else None
        made.coefficients = arrays["coefficients"]
        numbers = arrays["intercept"]
        if made.coefficients.shape != (made.preprocessor.n_outputs,) or numbers.shape != (2,):
            raise ValueError("the coefficients do not fit the features")
        made.intercept, made.squared = float(numbers[0]), bool(numbers[1])
        return made
