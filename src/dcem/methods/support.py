"""How far a row lies from what was ever tested.

A model can only have learnt about people like those who were tested. Two measures say how far a row
is from them, and neither needs its group:

* *distance* to the nearest cluster of tested training rows, in units of the distance that 99 % of
  tested rows keep themselves; above 1 a row is unlike anything tested;
* *testing probability*, averaged over the groups by their share, for methods that model it. What is
  too little depends on how many are tested, as for audit and comparison (`estimation.overlap`):
  everybody has a small one in a small random sample.

The spread of an ensemble is not such a measure: its members can agree confidently where there is no
data. Clusters are means over at least ten people, so that a saved model holds nobody's features;
where fewer were tested there is none, no distance either, and nobody counts as supported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dcem.estimation.overlap import RARE
from dcem.table.disclosure import THRESHOLD, people_of

CLUSTERS = 256
SAMPLE = 50_000  # tested rows looked at, at most
UNLIKELY = 0.01  # testing probability below which, and under `RARE` of the rate, is no support
BLOCK = 1024  # rows whose distances stay in the cache


@dataclass(frozen=True)
class Support:
    """Clusters of tested rows, in preprocessed features; shares of the groups; share tested."""

    centers: np.ndarray  # [c, d]
    radius: float
    group_shares: np.ndarray  # [G]
    rate: float = 1.0  # share of the rows that were tested

    @classmethod
    def fit(
        cls,
        X: np.ndarray,
        tested: np.ndarray,
        group: np.ndarray,
        n_groups: int,
        person: np.ndarray | None = None,
        weight: np.ndarray | None = None,
    ) -> Support:
        """From preprocessed training rows; `person` holds codes, None if each row is its own."""
        rate = float(np.average(tested > 0, weights=weight))
        rng = np.random.default_rng(0)
        chosen = np.flatnonzero(tested > 0)
        if len(chosen) > SAMPLE:
            chosen = rng.choice(chosen, SAMPLE, replace=False)
        rows, people = X[chosen], chosen if person is None else person[chosen]
        n_clusters = int(np.clip(len(rows) // (2 * THRESHOLD), 1, CLUSTERS))
        centers = rows[rng.choice(len(rows), n_clusters, replace=False)]
        for _ in range(3):  # a few rounds of k-means; small clusters dissolve into their neighbours
            nearest, _ = _nearest(rows, centers)
            sizes = np.bincount(nearest, minlength=len(centers))
            sums = np.stack(
                [np.bincount(nearest, column, minlength=len(centers)) for column in rows.T], axis=1
            )
            kept = people_of(nearest, people, len(centers)) >= THRESHOLD
            if not kept.any():  # all in one, if they are enough
                sums, sizes = rows.sum(axis=0, dtype=np.float64)[None], np.array([len(rows)])
                kept = np.array([len(np.unique(people)) >= THRESHOLD])
            centers = (sums[kept] / sizes[kept, None]).astype(np.float32)
            if not len(centers):
                break
        _, distance = _nearest(rows, centers)
        radius = (float(np.quantile(distance, 0.99)) if len(centers) else 0.0) or 1.0
        sizes = np.bincount(group, minlength=n_groups)
        # in tens, since exact shares would tell a small count
        shares = np.where(sizes > 0, np.maximum(np.round(sizes / THRESHOLD), 1), 0)
        seen = (tested > 0).sum()
        rate *= max(np.round(seen / THRESHOLD), 1) * THRESHOLD / seen
        return cls(centers, radius, shares / shares.sum(), min(rate, 1.0))

    def arrays(self) -> dict[str, np.ndarray]:
        """What is not a single number, by name, for a file."""
        return {"centers": self.centers, "group_shares": self.group_shares}

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, np.ndarray],
        radius: float,
        rate: float,
        n_inputs: int,
        n_groups: int,
    ) -> Support:
        """The inverse of `arrays`; ValueError where they do not fit together."""
        centers, shares = arrays["centers"], arrays["group_shares"]
        if centers.ndim != 2 or centers.shape[1] != n_inputs or centers.dtype != np.float32:
            raise ValueError("the clusters of tested rows are not of these features")
        if shares.shape != (n_groups,) or not (shares >= 0).all() or not 0 < radius < np.inf:
            raise ValueError("the shares of the groups or the reach of the tested cannot be")
        if not 0 < rate <= 1:
            raise ValueError("the share of rows that were tested cannot be")
        return cls(centers, radius, shares, rate)

    def of(self, X: np.ndarray, propensity: Any = None) -> pd.DataFrame:
        """`distance`, `testing_probability` and `supported` of preprocessed rows.

        `propensity` is a model of P(tested) on features with group: a fleet, a learner or a fitted
        scikit-learn classifier; or None.
        """
        _, distance = _nearest(X, self.centers)
        distance = distance / self.radius
        probability = np.full(len(X), np.nan)
        if propensity is not None:
            probability = self.testing_probability(X, propensity) @ self.group_shares
        supported = (distance <= 1) & ~(probability < min(UNLIKELY, RARE * self.rate))
        return pd.DataFrame(
            {"distance": distance, "testing_probability": probability, "supported": supported}
        )

    def testing_probability(self, X: np.ndarray, propensity: Any) -> np.ndarray:
        """P(tested) of preprocessed rows if they belonged to each of the groups, `[n, G]`."""
        n_groups = len(self.group_shares)
        if hasattr(propensity, "architecture"):
            from dcem.methods.propensity import by_group

            return by_group(propensity, X, n_groups)
        # a model that was fitted without interactions reads so many columns
        plain = getattr(propensity, "n_features", None) == X.shape[1] + n_groups - 1
        if not plain:
            each = (with_group(X, np.full(len(X), code), n_groups) for code in range(n_groups))
            return np.stack([positive_probability(propensity, one) for one in each], axis=1)
        inputs = with_group(X, np.zeros(len(X)), n_groups, interactions=False)
        as_first = positive_probability(propensity, inputs)
        found = np.repeat(as_first[:, None], n_groups, axis=1)
        reads = getattr(propensity, "reads", range(X.shape[1], inputs.shape[1]))
        for column in reads:  # of the others the indicator says nothing
            if column >= X.shape[1]:
                inputs[:, column] = 1
                found[:, column - X.shape[1] + 1] = positive_probability(propensity, inputs)
                inputs[:, column] = 0
        return found


def with_group(X: Any, group: Any, n_groups: int, *, interactions: bool = True) -> Any:
    """Features with an indicator of every group but the first and their interactions.

    `[n, G d + G - 1]`: what a model of testing reads, so that each group may have its own policy.
    Trees find the interactions by themselves: for them `[n, d + G - 1]` are enough. Arrays, or
    tensors of M networks: `X [n, d]` or `[M, n, d]`, `group [n]` or `[M, n]`.
    """
    indicators = [(group == g)[..., None] for g in range(1, n_groups)]
    if isinstance(X, np.ndarray):
        products = [X * a for a in indicators] if interactions else []
        return np.concatenate([X, *products, *indicators], axis=-1)
    import torch

    if X.dim() == group.dim():
        X = X.expand(len(group), -1, -1)
    products = [X * a for a in indicators] if interactions else []
    return torch.cat([X, *products, *indicators], dim=-1)


def positive_probability(model: Any, X: np.ndarray) -> np.ndarray:
    """P(tested) from a fitted classifier, also where everybody or nobody was tested."""
    probability = np.zeros(len(X))
    classes = list(model.classes_)
    if 1 in classes:
        probability = model.predict_proba(X)[:, classes.index(1)]
    return np.asarray(probability, dtype=np.float64)


def _nearest(rows: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest center of each row, and the distance to it (NaN without any); block by block."""
    nearest, distance = np.zeros(len(rows), np.int64), np.full(len(rows), np.nan)
    if not len(centers):
        return nearest, distance
    # |x - c|^2 = |x|^2 - 2 x c + |c|^2, of which the first part is the same for all centers
    centers = centers.astype(rows.dtype, copy=False)
    twice = np.ascontiguousarray(-2 * centers.T)
    norm = (centers.astype(np.float64) ** 2).sum(1).astype(rows.dtype)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        best = (block @ twice + norm).argmin(1)
        nearest[start : start + BLOCK] = best
        # From the difference itself: the sum above would lose the digits of a small distance.
        difference = block - centers[best]
        distance[start : start + BLOCK] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    return nearest, distance
