"""How far a row lies from what was ever tested.

A model can only have learnt about people like those who were tested. Two measures say how far a row
is from them, and neither needs its group:

* *distance* to the nearest cluster of tested training rows, in units of the distance that 99 % of
  tested rows keep themselves; above 1 a row is unlike anything tested;
* *testing probability*, averaged over the groups by their share, for methods that model it.

The spread of an ensemble is no such measure: networks can agree confidently where there is no data.
Clusters are means of at least ten rows, so that a saved model holds no individual's features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from dcem.engine import MLP, Fleet
from dcem.methods.propensity import for_group, positive_probability, with_group

CLUSTERS = 256
SMALLEST = 10  # rows a cluster
SAMPLE = 50_000  # tested rows looked at, at most
UNLIKELY = 0.01  # a testing probability below this is no support
BLOCK = 1024  # rows whose distances stay in the cache


@dataclass(frozen=True)
class Support:
    """Clusters of tested rows, in preprocessed features, and the shares of the groups."""

    centers: np.ndarray  # [c, d]
    radius: float
    group_shares: np.ndarray  # [G]

    @classmethod
    def fit(cls, X: np.ndarray, tested: np.ndarray, group: np.ndarray, n_groups: int) -> Support:
        """From preprocessed training rows."""
        rng = np.random.default_rng(0)
        chosen = np.flatnonzero(tested > 0)
        if len(chosen) > SAMPLE:
            chosen = rng.choice(chosen, SAMPLE, replace=False)
        rows = X[chosen]
        n_clusters = int(np.clip(len(rows) // (2 * SMALLEST), 1, CLUSTERS))
        centers = rows[rng.choice(len(rows), n_clusters, replace=False)]
        for _ in range(3):  # a few rounds of k-means; small clusters dissolve into their neighbours
            nearest, _ = _nearest(rows, centers)
            sizes = np.bincount(nearest, minlength=len(centers))
            sums = np.stack(
                [np.bincount(nearest, column, minlength=len(centers)) for column in rows.T], axis=1
            )
            kept = sizes >= min(SMALLEST, sizes.max())
            centers = (sums[kept] / sizes[kept, None]).astype(np.float32)
        _, distance = _nearest(rows, centers)
        radius = float(np.quantile(distance, 0.99))
        sizes = np.bincount(group, minlength=n_groups)
        sizes[(sizes > 0) & (sizes < SMALLEST)] = SMALLEST  # a saved share tells no small count
        return cls(centers, radius or 1.0, sizes / sizes.sum())

    def of(self, X: np.ndarray, propensity: Any = None) -> pd.DataFrame:
        """`distance`, `testing_probability` and `supported` of preprocessed rows.

        `propensity` is a fleet or a fitted scikit-learn classifier on features with group, or None.
        """
        _, distance = _nearest(X, self.centers)
        distance = distance / self.radius
        probability = np.full(len(X), np.nan)
        if propensity is not None:
            probability = self.testing_probability(X, propensity) @ self.group_shares
        supported = (distance <= 1) & ~(probability < UNLIKELY)
        return pd.DataFrame(
            {"distance": distance, "testing_probability": probability, "supported": supported}
        )

    def testing_probability(self, X: np.ndarray, propensity: Any) -> np.ndarray:
        """P(tested) of preprocessed rows if they belonged to each of the groups, `[n, G]`."""
        n_groups = len(self.group_shares)
        out = np.empty((len(X), n_groups))
        for code in range(n_groups):
            if isinstance(propensity, Fleet) and isinstance(propensity.architecture, MLP):
                flat = propensity.flat
                network = Fleet(*for_group(propensity.architecture, flat, code, n_groups))
                out[:, code] = network.predict(torch.from_numpy(X)).mean(0).double().numpy()
                continue
            group = torch.full((len(X),), code)
            inputs = with_group(torch.from_numpy(X), group, n_groups)
            if isinstance(propensity, Fleet):
                out[:, code] = propensity.predict(inputs).mean(0).double().numpy()
            else:
                out[:, code] = positive_probability(propensity, inputs.numpy())
        return out


def _nearest(rows: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest center of each row, and the distance to it; block by block."""
    nearest, distance = np.empty(len(rows), np.int64), np.empty(len(rows))
    # |x - c|^2 = |x|^2 - 2 x c + |c|^2, of which the first part is the same for all centers
    centers = centers.astype(rows.dtype, copy=False)
    twice = torch.from_numpy(np.ascontiguousarray(-2 * centers.T))
    norm = torch.from_numpy((centers.astype(np.float64) ** 2).sum(1).astype(rows.dtype))
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        best = torch.addmm(norm, torch.from_numpy(block), twice).numpy().argmin(1)
        nearest[start : start + BLOCK] = best
        # From the difference itself: the sum above would lose the digits of a small distance.
        difference = block - centers[best]
        distance[start : start + BLOCK] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    return nearest, distance
