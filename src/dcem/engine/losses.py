"""Losses of a fleet: from logits `[M, N, k]` and rows to one number a network, `[M]`.

Every loss is a weighted mean over rows: column `weight` of the rows, where there is one (`[N]` or
`[M, N]`), else all rows alike. Rows of weight 0 take no part, which is how tables of different
lengths share one fleet.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from dcem.engine.fleet import Rows, margin


def weighted_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    """The mean of `values [M, N]` over rows, weighted: `[M]`.

    Where all weights are 0 (a minibatch without a tested row, say) the mean does not exist: NaN,
    with gradient 0, so that the network stays what it is instead of turning into NaN itself.
    """
    if weight is None:
        return values.mean(-1)
    total = weight.expand_as(values).sum(-1)
    mean = (values * weight).sum(-1) / total.clamp_min(torch.finfo(values.dtype).tiny)
    return torch.where(total > 0, mean, torch.nan)


def mean_or_zero(values: Tensor, weight: Tensor) -> Tensor:
    """The same, for a part of the rows that may be empty: a mean over nothing is zero."""
    total = weight.expand_as(values).sum(-1)
    return (values * weight).sum(-1) / torch.where(total > 0, total, 1.0)


class _SoftCrossEntropy(torch.autograd.Function):
    """Cross-entropy `[M, N]` of log-odds `z` against probabilities `q`; its gradient is p - q."""

    @staticmethod
    def forward(ctx, z: Tensor, q: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(z, q)
        return softplus(z) - q * z

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        z, q = ctx.saved_tensors
        return grads[0] * (torch.sigmoid(z) - q), None


def cross_entropy_rows(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of each row, `[M, N]`, against a label or a probability in `target`."""
    z = margin(logits)
    result: Tensor = _SoftCrossEntropy.apply(z, target.expand_as(z))
    return result


def cross_entropy(logits: Tensor, rows: Rows) -> Tensor:
    """Mean cross-entropy `[M]` against column `target`, a label or a probability."""
    return weighted_mean(cross_entropy_rows(logits, rows["target"]), rows.get("weight"))
