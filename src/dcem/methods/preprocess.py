"""From a table with missing values to what a network can read; fitted on training rows alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Preprocessor:
    """Median for missing values, an indicator where training rows had any, then mean 0 and one sd.

    A column that training rows never missed but a later row does gets the median without an
    indicator. `identity` passes numbers through, as the published runs do.

    Attributes
    ----------
    median, mean, scale
        Of each column `[d]`; `scale` is what a column is divided by, 1 for a constant one.
    indicators
        Columns that get a missingness indicator, appended at the end.
    """

    median: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    indicators: np.ndarray
    identity: bool = False

    @classmethod
    def fit(cls, X: np.ndarray, kind: str | None, spread: float = 1.0) -> Preprocessor:
        """Learn from training rows `X [n, d]`; `kind` is "standard", which scales features to the
        standard deviation `spread`, or None."""
        d = X.shape[1]
        if kind is None:
            return cls(np.zeros(d), np.zeros(d), np.ones(d), np.zeros(0, np.int64), identity=True)
        if kind != "standard":
            raise ValueError(f'preprocess must be "standard" or None, got {kind!r}')
        missing = np.isnan(X)
        ever = missing.any(axis=0)
        median = np.zeros(d)
        for column in range(d):  # column by column: no second copy of a large table
            present = X[~missing[:, column], column] if ever[column] else X[:, column]
            median[column] = np.median(present) if len(present) else 0.0
        mean, scale = np.empty(d), np.empty(d)
        for column in range(d):
            values = X[:, column]
            if ever[column]:
                values = np.where(missing[:, column], median[column], values)
            mean[column], scale[column] = values.mean(), values.std()
        constant = scale <= 1e-12 * np.maximum(1.0, np.abs(mean))
        if spread <= 0:
            raise ValueError(f"input_scale must be positive, got {spread}")
        return cls(median, mean, np.where(constant, 1.0, scale) / spread, np.flatnonzero(ever))

    @property
    def n_outputs(self) -> int:
        """Columns after preprocessing."""
        return len(self.median) + len(self.indicators)

    def transform(self, X: np.ndarray, dtype: str = "float32") -> np.ndarray:
        """Rows `[n, d]` as `[n, d + indicators]`."""
        if self.identity:
            if np.isnan(X).any():
                raise ValueError(
                    "X holds missing values (NaN), and preprocess=None passes them to the "
                    'network as they are. Use preprocess="standard", or fill them first.'
                )
            return np.ascontiguousarray(X, dtype=dtype)
        out = np.empty((len(X), self.n_outputs), dtype=dtype)
        missing = np.isnan(X)
        filled = np.where(missing, self.median, X) if missing.any() else X
        out[:, : X.shape[1]] = (filled - self.mean) / self.scale
        out[:, X.shape[1] :] = missing[:, self.indicators]
        return out
