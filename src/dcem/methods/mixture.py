"""Mixtures of two normal distributions on the line, one for each network of a fleet, by EM.

What scikit-learn's `GaussianMixture(n_components=2)` does for one sample, for M samples `[M, N]` at
once and with weighted rows: start from the two clusters of least squared distance, iterate until
the mean log-likelihood moves by less than `tol`. A mixture that has converged is left alone while
the others go on. Nothing looks at the host on CUDA, so that a captured graph can hold a fit.

On the line the best two clusters can be had exactly: they are split by a threshold, and one sorted
pass evaluates every threshold. scikit-learn's k-means reaches the same split from most starts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class TwoNormals:
    """Share, mean and variance of both components of M mixtures, each `[M, 2]`."""

    share: Tensor
    mean: Tensor
    variance: Tensor

    def log_density(self, x: Tensor) -> Tensor:
        """Log of share times density, `[M, 2, N]`."""
        gap = x.unsqueeze(1) - self.mean.unsqueeze(-1)
        scale = self.share.log() - 0.5 * (2 * math.pi * self.variance).log()
        return scale.unsqueeze(-1) - 0.5 * gap.square() / self.variance.unsqueeze(-1)

    def probability_of_lower(self, x: Tensor) -> Tensor:
        """Probability `[M, N]` that a value belongs to the component with the lower mean."""
        first, second = self.log_density(x).unbind(1)
        lower_first = (self.mean[:, 0] <= self.mean[:, 1]).unsqueeze(1)
        return torch.sigmoid(torch.where(lower_first, first - second, second - first))


def fit_two_normals(
    x: Tensor,
    weight: Tensor,
    *,
    max_iter: int = 100,
    tol: float = 1e-3,
    reg_covar: float = 1e-6,
) -> TwoNormals:
    """Fit M mixtures to values `x [M, N]` with weights `[M, N]`.

    Parameters
    ----------
    max_iter, tol, reg_covar
        As in scikit-learn, whose defaults these are: the most iterations, the change of the mean
        log-likelihood below which a mixture has converged, and what is added to each variance.
    """
    weight = weight.expand_as(x)
    total = weight.sum(1)
    upper = (x > _two_means(x, weight)).to(x.dtype)
    fitted = _maximise(x, weight, torch.stack([1 - upper, upper], 1), reg_covar)
    bound = torch.full_like(total, -torch.inf)
    active = torch.ones_like(total, dtype=torch.bool)
    for _ in range(max_iter):
        joint = fitted.log_density(x)
        likelihood = torch.logsumexp(joint, 1)  # [M, N]
        moved = _maximise(x, weight, (joint - likelihood.unsqueeze(1)).exp(), reg_covar)
        keep = active.unsqueeze(1)
        fitted = TwoNormals(
            torch.where(keep, moved.share, fitted.share),
            torch.where(keep, moved.mean, fitted.mean),
            torch.where(keep, moved.variance, fitted.variance),
        )
        fresh = (likelihood * weight).sum(1) / total
        active = active & ~((fresh - bound).abs() < tol)
        bound = fresh
        if x.device.type == "cpu" and not bool(active.any()):
            break
    return fitted


def _maximise(x: Tensor, weight: Tensor, share: Tensor, reg_covar: float) -> TwoNormals:
    """Shares, means and variances from each row's share in both components, `[M, 2, N]`."""
    share = share * weight.unsqueeze(1)
    n = share.sum(-1) + 10 * torch.finfo(x.dtype).eps  # [M, 2]; never zero
    mean = (share * x.unsqueeze(1)).sum(-1) / n
    gap = x.unsqueeze(1) - mean.unsqueeze(-1)
    variance = (share * gap.square()).sum(-1) / n + reg_covar
    return TwoNormals(n / n.sum(1, keepdim=True), mean, variance)


def _two_means(x: Tensor, weight: Tensor) -> Tensor:
    """The largest value of the lower cluster, `[M, 1]`, for the best split into two clusters."""
    ordered, order = torch.where(weight > 0, x, torch.inf).sort(dim=1)
    w = weight.gather(1, order).double()  # sums over many rows: rounding must not choose the split
    below = w.cumsum(1)
    sum_below = (w * torch.where(w > 0, ordered, 0.0)).cumsum(1)
    above = below[:, -1:] - below
    gain = (sum_below * below[:, -1:] - below * sum_below[:, -1:]).square() / (below * above)
    gain = torch.where((below > 0) & (above > 0), gain, -1.0)
    return ordered.gather(1, gain.argmax(1, keepdim=True))
