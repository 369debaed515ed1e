"""The M-step loss of DCEM, in log space, with its gradient in closed form.

For a row with log-odds z of the outcome network, f = sigmoid(z), testing probability t, observed
label y and pseudo-label Q, the loss is

    -[Q log f + (1 - Q) log(1 - f)]  +  lambda Q * -[y log(f t) + (1 - y) log(1 - f t)]

The second term is the *causal regularisation*: an untested person (y counts as 0) who was likely to
be tested and is predicted positive contradicts the record, and is pushed down. Nothing here
exponentiates a large number or takes the logarithm of a small one:

    log f = -softplus(-z)    log(1 - f) = -softplus(z)
    log(1 - f t) = softplus(z + log(1 - t)) - softplus(z)

and the derivative in z is  (f - Q) + lambda Q [y (f - 1) + (1 - y) (f - sigmoid(z + log(1 - t)))],
finite for every z and t.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from dcem.engine.fleet import Rows, margin, weighted_mean


class _MStep(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, q: Tensor, y: Tensor, u: Tensor, strength: float | Tensor
    ) -> Tensor:
        log_untested = logsigmoid(-u)  # log(1 - t)
        plus = softplus(z)
        observed = y * (plus - z - logsigmoid(u)) + (1 - y) * (plus - softplus(z + log_untested))
        ctx.save_for_backward(z, q, y, log_untested)
        ctx.strength = strength
        return plus - q * z + strength * q * observed

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        z, q, y, log_untested = ctx.saved_tensors
        f = torch.sigmoid(z)
        observed = f - torch.where(y > 0, 1.0, torch.sigmoid(z + log_untested))
        return grads[0] * (f - q + ctx.strength * q * observed), None, None, None, None


def mstep_rows(
    z: Tensor,
    q: Tensor,
    y: Tensor,
    u: Tensor,
    *,
    tested: Tensor | None = None,
    strength: float | Tensor = 1.0,
) -> Tensor:
    """The loss of each row, `[M, N]`.

    Parameters
    ----------
    z, u
        Log-odds of the outcome and of being tested (temperature applied already).
    q, y
        Pseudo-label, and the observed label with 0 where nobody looked.
    tested
        Where given, the *hard-t* variant: the regularisation of tested rows only, with the
        recorded decision in place of its probability (it cannot counterbalance anything).
    strength
        The weight lambda of the causal regularisation.
    """
    q, y, u = q.expand_as(z), y.expand_as(z), u.expand_as(z)
    if tested is not None:
        return softplus(z) - q * z + strength * q * tested * (softplus(z) - y * z)
    rows: Tensor = _MStep.apply(z, q, y, u, strength)
    return rows


def mstep_loss(
    logits: Tensor, q: Tensor, rows: Rows, *, hard_t: bool = False, strength: float | Tensor = 1.0
) -> Tensor:
    """The mean loss of each network, `[M]`; columns `y`, `u`, `tested`, `weight` of the rows."""
    tested = rows["tested"] if hard_t else None
    values = mstep_rows(margin(logits), q, rows["y"], rows["u"], tested=tested, strength=strength)
    return weighted_mean(values, rows.get("weight"))
