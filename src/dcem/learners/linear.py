"""Penalised logistic regression: the plainest learner, and hard to beat on small tables."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge

from dcem.learners.learner import BatchSource, LearnerBase, Sample, as_logit, by_block, losses
from dcem.learners.preprocess import Preprocessor, Scaling

PENALTIES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)  # per row; chosen on validation rows
PENALTY = 1e-3  # where there are none
MOST_PASSES = 12  # over rows that are not in memory
SMALL_STEP = 1e-5  # of a coefficient of a standardised feature


def _behind_results(rows: np.ndarray, sample: Sample, penalty: float) -> tuple[np.ndarray, float]:
    """Coefficients and intercept of the truth behind results of an imperfect test."""
    evidence, share = np.asarray(sample.evidence), sample.weight / sample.weight.sum()

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        z = rows @ at[1:] + at[0]
        slope = share * (expit(z) - expit(z + evidence))
        value = share @ losses(z, sample.y, evidence) + penalty / 2 * at[1:] @ at[1:]
        return float(value), np.append(slope.sum(), slope @ rows + penalty * at[1:])

    start = np.zeros(rows.shape[1] + 1)
    start[0] = sample.base_rate
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    return found[1:], float(found[0])


def span(rows: np.ndarray) -> np.ndarray | None:
    """Of fewer rows than columns `[n, d]`, orthonormal directions `[d, n]`; else None.

    Whatever is learnt from rows under a ridge penalty lies in their span: along these directions
    it is the same model of n columns, found in a fraction of the time.
    """
    return np.linalg.qr(rows.T)[0] if rows.shape[0] < rows.shape[1] else None


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
        self.scaling: Scaling | None = None

    def _learn(self, sample: Sample, held: Sample | None) -> None:
        if self.drawn_in:
            self.scaling = Scaling.fit(sample.X, preprocessor=self.preprocessor)
        rows, best = self._inputs(sample.X), np.inf
        rows_held = rows if held is None else self._inputs(held.X)
        basis = span(rows)
        if basis is not None:
            rows, rows_held = rows @ basis, rows_held @ basis
        for penalty in PENALTIES if held is not None else (PENALTY,):
            coefficients, intercept = self._fitted(rows, sample, penalty)
            z = rows_held @ coefficients + intercept
            loss = -np.inf if held is None else self._loss(z, held)
            if loss < best:
                best, self.penalty = loss, penalty
                self.coefficients, self.intercept = coefficients, intercept
        if basis is not None:
            self.coefficients = basis @ self.coefficients

    @classmethod
    def of_batches(
        cls, seeds: Sequence[int], sample: Sample, held: Sample | None, batches: BatchSource
    ) -> list[Self]:
        """Models of rows that are not in memory, one for each seed and row of the weights.

        A model of the `sample` gives scales, the penalty and a start; Newton's method goes on from
        there, a pass over all rows for each step. Of more rows, each adds less to the penalty.
        """
        first = cls(seeds[0]).fit(sample, held)
        one = np.append(first.coefficients, first.intercept)
        in_all = len(sample.counted().y) * getattr(first, "penalty", PENALTY)
        lines = np.tile(one, (len(seeds), 1))  # [members, inputs + 1]
        kept, lowest = lines.copy(), np.full(len(lines), np.inf)
        for _ in range(MOST_PASSES):
            loss, slope, curvature, n_rows = _expansion(first, lines, batches)
            penalty = np.append(np.full(len(one) - 1, in_all / n_rows), 0.0)
            loss += 0.5 * lines**2 @ penalty
            steps = np.zeros_like(lines)
            for m, line in enumerate(lines):
                if loss[m] > lowest[m] + 1e-12:  # too far: half the way
                    steps[m] = (line - kept[m]) / 2
                else:
                    kept[m], lowest[m] = line, loss[m]
                    change = slope[m] + penalty * line
                    steps[m] = np.linalg.solve(curvature[m] + np.diag(penalty), change)
            lines = lines - steps
            if np.abs(steps).max() < SMALL_STEP:
                break
        made = [copy(first) for _ in seeds]
        for model, seed, line in zip(made, seeds, lines, strict=True):
            model.seed, model.coefficients, model.intercept = seed, line[:-1], float(line[-1])
        return made

    def _say(self, value: float) -> None:
        self.intercept = value
        self.coefficients = np.zeros(self.preprocessor.n_outputs)

    def _fitted(self, rows: np.ndarray, sample: Sample, penalty: float) -> tuple[np.ndarray, float]:
        """Coefficients and intercept."""
        y, weight = sample.y, sample.weight
        if sample.rates is not None:
            return _behind_results(rows, sample, penalty)
        total = penalty * len(y)
        model: Any = Ridge(alpha=total)
        if not self.squared:
            model = LogisticRegression(C=1 / total, solver="newton-cholesky", max_iter=200)
            y = y.astype(int)
        with warnings.catch_warnings():  # nearly separable: the penalty decides, and that is fine
            warnings.simplefilter("ignore")
            model.fit(rows, y, sample_weight=weight)
        return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])

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


def _expansion(
    scaled: Linear, lines: np.ndarray, batches: BatchSource
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Mean loss `[M]`, gradient `[M, p]` and curvature `[M, p, p]` at M lines; how many rows."""
    (n_members, p), n_rows = lines.shape, 0
    loss, total = np.zeros(n_members), np.zeros(n_members)
    slope, curvature = np.zeros((n_members, p)), np.zeros((n_members, p, p))
    for batch in batches():
        rows = np.column_stack([scaled._inputs(batch.X), np.ones(len(batch.y))])
        n_rows += len(rows)
        for m, weight in enumerate(batch.weight):
            z = rows @ lines[m]
            risk = expit(z)
            loss[m] += weight @ (np.logaddexp(0, z) - batch.y * z)
            slope[m] += (weight * (risk - batch.y)) @ rows
            root = rows * np.sqrt(weight * risk * (1 - risk))[:, None]
            curvature[m] += root.T @ root
            total[m] += weight.sum()
    return loss / total, slope / total[:, None], curvature / total[:, None, None], n_rows
