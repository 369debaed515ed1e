"""Mixtures of two normal distributions on the line, one for each network of a fleet, by EM.

What scikit-learn's `GaussianMixture(n_components=2)` does for one sample, for M samples `[M, N]` at
once and with weighted rows: start from the two clusters of least squared distance, iterate until
the mean log-likelihood moves by less than `tol`. A mixture that has converged is left alone while
the others go on. Nothing looks at the host on CUDA, so that a captured graph can hold a fit.

On the line the best two clusters can be had exactly: they are split by a threshold, and one sorted
pass evaluates every threshold. scikit-learn's k-means starts at random and may end in a worse
split; where EM then stops early, as with its default tolerance, that shows in the mixture. Pass
`chance` to start as it does.
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
    chance: Tensor | None = None,
) -> TwoNormals:
    """Fit M mixtures to values `x [M, N]` with weights `[M, N]`.

    Parameters
    ----------
    chance
        Uniform numbers `[M, 3]`: start from a run of k-means that these begin, as scikit-learn
        does, instead of the best two clusters.
    max_iter, tol, reg_covar
        As in scikit-learn, whose defaults these are: the most iterations, the change of the mean
        log-likelihood below which a mixture has converged, and what is added to each variance.
    """
    weight = weight.expand_as(x)
    total = weight.sum(1)
    split = _two_means(x, weight) if chance is None else _k_means(x, weight, chance)
    upper = (x > split).to(x.dtype)
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


def _k_means(
    x: Tensor, weight: Tensor, chance: Tensor, max_iter: int = 50, tol: float = 1e-4
) -> Tensor:
    """The split `[M, 1]` that one run of scikit-learn's k-means with two clusters ends at.

    Its start is k-means++: the first center a random row, the second the better of two rows drawn
    with odds of their squared distance from it. Then centers move to the means of their sides until
    they move by less than `tol` of the variance. `chance [M, 3]` takes the place of its generator.
    """
    ordered, order = torch.where(weight > 0, x, torch.inf).sort(dim=1)
    w = weight.gather(1, order).double()
    ordered = torch.where(w > 0, ordered, 0.0).double()  # padding, all at the end, weighs nothing
    u = chance.double()
    first = ordered.gather(1, _drawn(w, u[:, :1]))  # [M, 1]
    distance = w * (ordered - first).square()
    candidates = ordered.gather(1, _drawn(distance, u[:, 1:]))  # [M, 2]
    potential = torch.stack(
        [torch.minimum(distance, w * (ordered - one).square()).sum(1)
         for one in candidates.split(1, dim=1)], dim=1
    )  # fmt: skip
    second = candidates.gather(1, potential.argmin(1, keepdim=True))
    low, high = torch.minimum(first, second), torch.maximum(first, second)
    ordered = torch.where(w > 0, ordered, torch.inf)  # sorted again: a split is a position
    count, total = w.cumsum(1), (w * torch.where(w > 0, ordered, 0.0)).cumsum(1)
    mean = total[:, -1:] / count[:, -1:]
    square = (w * torch.where(w > 0, ordered - mean, 0.0).square()).sum(1, keepdim=True)
    enough = tol * square / count[:, -1:]
    moving = torch.ones_like(low, dtype=torch.bool)
    for _ in range(max_iter):
        last = (torch.searchsorted(ordered, (low + high) / 2, right=True) - 1).clamp_min(0)
        n, s = count.gather(1, last), total.gather(1, last)
        below = s / n
        above = torch.where(
            count[:, -1:] > n, (total[:, -1:] - s) / (count[:, -1:] - n).clamp_min(1e-300), high
        )
        shift = (below - low).square() + (above - high).square()
        low, high = torch.where(moving, below, low), torch.where(moving, above, high)
        moving = moving & (shift > enough)
    return ((low + high) / 2).to(x.dtype)


def _drawn(odds: Tensor, chance: Tensor) -> Tensor:
    """Positions `[M, k]` drawn with these odds `[M, N]`, one for each uniform number `[M, k]`."""
    total = odds.cumsum(1)
    found = torch.searchsorted(total, chance * total[:, -1:], right=True)
    return found.clamp_max(odds.shape[1] - 1)
