"""From a table with missing values to what a network can read; fitted on training rows alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dcem.table.disclosure import THRESHOLD, enough_people

BLOCK = 65_536  # rows worked on at a time: no second copy of a long table
CELLS = 32_768  # of a block that stays in the cache
SPREAD = 0.5  # the scale of inputs; smaller ones make smoother functions
REACH = 3.0  # units beyond which features are drawn in


@dataclass(frozen=True)
class Preprocessor:
    """Median for missing values, an indicator where training rows had any, then mean 0 and one sd.

    A column that training rows never missed but a later row does gets the median without an
    indicator. Of a column that fewer than ten people have, only the indicator is used: its median
    would tell what they have. A column in which fewer than ten people differ from all others is not
    used: its mean would tell how many they are, or what they have. `identity` passes numbers
    through, as the published runs do.

    Attributes
    ----------
    median, mean, scale
        Of each column `[d]`; `scale` is what a column is divided by, 1 for a constant one and
        infinity for one that is not used.
    indicators
        Columns that get a missingness indicator, appended at the end.
    """

    median: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    indicators: np.ndarray
    identity: bool = False

    @classmethod
    def fit(
        cls,
        X: np.ndarray,
        kind: str | None,
        spread: float = 1.0,
        rows: np.ndarray | None = None,
        person: np.ndarray | None = None,
    ) -> Preprocessor:
        """Learn from the training rows `rows` of `X [n, d]` (None: all), some columns at a time.

        `kind` is "standard", which scales features to the standard deviation `spread`, or None.
        `person [n]` says whose row it is; None, that each is somebody else's.
        """
        d = X.shape[1]
        if kind is None:
            return cls(np.zeros(d), np.zeros(d), np.ones(d), np.zeros(0, np.int64), identity=True)
        if kind != "standard":
            raise ValueError(f'preprocess must be "standard" or None, got {kind!r}')
        if spread <= 0:
            raise ValueError(f"input_scale must be positive, got {spread}")
        median, mean, scale = np.zeros(d), np.empty(d), np.empty(d)
        everybody = np.arange(len(X)) if person is None else person
        everybody = everybody if rows is None else everybody[rows]
        n = len(everybody)
        most = 1 if person is None or not n else np.unique(everybody, return_counts=True)[1].max()

        ever, shown = np.zeros(d, dtype=bool), np.ones(d, dtype=bool)
        size = max(1, BLOCK // max(n, 1))
        for first in range(0, d, size):
            block = slice(first, first + size)
            columns = X[:, block] if rows is None else X[rows, block]
            columns = np.array(columns.T, order="C")  # [columns, n]
            missing = np.isnan(columns)
            ever[block] = missing.any(axis=1)
            median[block] = np.median(columns, axis=1) if n else 0.0
            for column in np.flatnonzero(ever[block]):
                present = ~missing[column]
                shown[first + column] = enough_people(everybody, present, most)
                values = columns[column, present] if shown[first + column] else np.zeros(0)
                median[first + column] = np.median(values) if len(values) else 0.0
            others = ~missing & (columns != median[block, None])
            for column in np.flatnonzero(shown[block] & (n >= 2 * THRESHOLD)):
                shown[first + column] = enough_people(everybody, others[column], most)
            np.copyto(columns, median[block, None], where=missing | ~shown[block, None])
            mean[block], scale[block] = columns.mean(axis=1), columns.std(axis=1)
        constant = scale <= 1e-12 * np.abs(mean)  # whatever the unit: moles may be of size 1e-13
        scale = np.where(shown, np.where(constant, 1.0, scale) / spread, np.inf)
        return cls(median, mean, scale, np.flatnonzero(ever))

    def arrays(self) -> dict[str, np.ndarray]:
        """All numbers, by name, for a file."""
        return {name: getattr(self, name) for name in ("median", "mean", "scale", "indicators")}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], n_features: int, identity: bool = False
    ) -> Preprocessor:
        """The inverse of `arrays`; ValueError where they do not describe so many features."""
        median, mean, scale, indicators = (
            arrays[name] for name in ("median", "mean", "scale", "indicators")
        )
        if any(a.shape != (n_features,) or a.dtype.kind != "f" for a in (median, mean, scale)):
            raise ValueError(f"the preprocessing does not fit {n_features} features")
        if (
            indicators.ndim != 1
            or indicators.dtype.kind != "i"
            or len(np.unique(indicators[(indicators >= 0) & (indicators < n_features)]))
            != len(indicators)
        ):
            raise ValueError("the missing-value indicators do not fit the features")
        if not (np.isfinite(median).all() and np.isfinite(mean).all() and (scale > 0).all()):
            raise ValueError("the preprocessing contains invalid numbers")
        return cls(median, mean, scale, indicators, identity)

    @property
    def n_outputs(self) -> int:
        """Columns after preprocessing."""
        return len(self.median) + len(self.indicators)

    def transform(
        self, X: np.ndarray, dtype: str = "float32", rows: np.ndarray | None = None
    ) -> np.ndarray:
        """The rows `rows` of `X [n, d]` (None: all) as `[n, d + indicators]`, block by block."""
        n_rows = len(X) if rows is None else len(rows)
        out = np.empty((n_rows, self.n_outputs), dtype=dtype)
        size = max(1, CELLS // max(1, self.n_outputs))
        for start in range(0, n_rows, size):
            block = slice(start, start + size)
            values = X[block] if rows is None else X[rows[block]]
            missing = np.isnan(values)
            if self.identity:
                if missing.any():
                    raise ValueError(
                        "X holds missing values (NaN), and preprocess=None passes them to the "
                        'network as they are. Use preprocess="standard", or fill them first.'
                    )
                out[block] = values
                continue
            if missing.any():
                values = np.where(missing, self.median, values)
                out[block, X.shape[1] :] = missing[:, self.indicators]
            else:
                out[block, X.shape[1] :] = 0
            out[block, : X.shape[1]] = (values - self.mean) / self.scale
        return out


class Scaling:
    """Features `[n, d]` with gaps as inputs of a network `[n, inputs]`, float32.

    They are centred and scaled by median and interquartile range, and drawn in smoothly beyond
    three such units, so that a few extreme values cannot throw a model off where it extrapolates
    (D. Holzmüller, L. Grinsztajn and I. Steinwart, "Better by default", NeurIPS 2024).
    """

    def __init__(self, preprocessor: Preprocessor, center: np.ndarray, scale: np.ndarray):
        self.preprocessor, self.center, self.scale = preprocessor, center, scale

    @classmethod
    def fit(
        cls,
        X: np.ndarray,
        person: np.ndarray | None = None,
        preprocessor: Preprocessor | None = None,
    ) -> Scaling:
        """Of these rows; `person` says whose they are, or the `preprocessor` is of them already."""
        preprocessor = preprocessor or Preprocessor.fit(X, "standard", person=person)
        rows = preprocessor.transform(X, "float64")
        low, center, high = np.quantile(rows, (0.25, 0.5, 0.75), axis=0)
        scale = (high - low) / 1.349  # the standard deviation of a normal distribution
        flat = scale < 1e-12  # half of the rows are alike: a flag, or a count of rare events
        center = np.where(flat, rows.mean(axis=0), center)
        return cls(preprocessor, center, np.where(flat, np.maximum(rows.std(axis=0), 1e-12), scale))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The inputs of these rows."""
        rows = (self.preprocessor.transform(X, "float64") - self.center) / self.scale
        return (SPREAD * rows / np.sqrt(1 + (rows / REACH) ** 2)).astype(np.float32)

    def is_like(self, other: Scaling) -> bool:
        """Whether it makes the same of the same rows."""
        both = zip(self.arrays().values(), other.arrays().values(), strict=True)
        return self is other or all(np.array_equal(mine, theirs) for mine, theirs in both)

    def arrays(self) -> dict[str, np.ndarray]:
        """All numbers, by name, for a file."""
        return {"center": self.center, "spread": self.scale, **self.preprocessor.arrays()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_features: int) -> Scaling:
        """The inverse of `arrays`; ValueError where they do not describe so many features."""
        preprocessor = Preprocessor.from_arrays(arrays, n_features)
        center, scale = arrays["center"], arrays["spread"]
        shape = (preprocessor.n_outputs,)
        if center.shape != shape or scale.shape != shape or not (scale > 0).all():
            raise ValueError("the scaling of the inputs does not fit the features")
        return cls(preprocessor, center, scale)
