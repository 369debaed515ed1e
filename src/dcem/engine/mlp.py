"""The multilayer perceptron of a fleet: Linear and ReLU blocks, then one linear layer of logits.

Parameters of one network are one vector `[P]`: weight `[out, in]` and bias `[out]` of each layer in
order, as in a `torch.nn.Sequential`; those of M networks are `[M, P]`. Three ways compute the same
logits `[M, N, k]`:

* *stacked*: batched products over all networks; differentiable in everything, any device.
* *blocked* (CPU, many rows): one network and a few thousand rows at a time, so that activations
  stay in the processor's cache between one layer and the next, and the gradient by hand.
* *fused* (CUDA): one kernel runs all layers for a block of rows and never writes activations to
  memory; see `dcem.engine.fused`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from dcem.engine import fused

# Rows a block: 4,096 rows of 64 float32 are 1 MiB, which a core's second-level cache holds.
BLOCK_ROWS = 4096
# Under this many rows a product is too small to fill the cores, and stacking M of them pays.
STACK_BELOW = 1024


class MLP:
    """Widths of a network, its initial weights, and its logits.

    Parameters
    ----------
    n_inputs, hidden, n_outputs
        Widths: inputs, each hidden layer, logits. Two logits and a softmax are the default, as in
        the published runs; a single logit and a sigmoid follow a different path under Adam.
    """

    def __init__(self, n_inputs: int, hidden: tuple[int, ...] = (64, 64), n_outputs: int = 2):
        self.sizes = (int(n_inputs), *(int(width) for width in hidden), int(n_outputs))
        self.shapes: list[tuple[int, ...]] = []
        for n_in, n_out in zip(self.sizes[:-1], self.sizes[1:], strict=True):
            self.shapes += [(n_out, n_in), (n_out,)]
        self.lengths = [math.prod(shape) for shape in self.shapes]
        self.n_parameters = sum(self.lengths)

    @property
    def n_outputs(self) -> int:
        """The number of logits."""
        return self.sizes[-1]

    def describe(self) -> dict[str, Any]:
        """What makes this architecture again; see `dcem.engine.architectures`."""
        n_inputs, *hidden, n_outputs = self.sizes
        return {"kind": "mlp", "n_inputs": n_inputs, "hidden": hidden, "n_outputs": n_outputs}

    def initial(self, seed: int) -> Tensor:
        """Initial parameters `[P]`: PyTorch's default for linear layers, drawn on the CPU.

        The draws are those of `torch.manual_seed(seed)` followed by the construction of the
        layers in order, without touching the global seed.
        """
        generator = torch.Generator().manual_seed(int(seed))
        pieces = []
        for n_in, n_out in zip(self.sizes[:-1], self.sizes[1:], strict=True):
            bound = math.sqrt(3.0) * math.sqrt(2.0 / (1 + 5)) / math.sqrt(n_in)
            pieces.append(torch.empty(n_out, n_in).uniform_(-bound, bound, generator=generator))
            bound = 1 / math.sqrt(n_in)
            pieces.append(torch.empty(n_out).uniform_(-bound, bound, generator=generator))
        return torch.cat([piece.reshape(-1) for piece in pieces])

    def layers(self, flat: Tensor) -> list[tuple[Tensor, Tensor]]:
        """The parameters `[M, P]` as (weight `[M, out, in]`, bias `[M, out]`) of each layer."""
        pieces = [
            piece.reshape(-1, *shape)
            for piece, shape in zip(flat.split(self.lengths, dim=1), self.shapes, strict=True)
        ]
        return list(zip(pieces[0::2], pieces[1::2], strict=True))

    def logits(self, flat: Tensor, X: Tensor) -> Tensor:
        """Logits `[M, N, k]` of M networks on shared rows `[N, d]` or own rows `[M, N, d]`."""
        if X.requires_grad:
            return self.stacked(flat, X)
        if fused.supports(self, flat, X):
            return fused.logits(self, flat, X)
        if flat.device.type == "cpu" and X.shape[-2] >= STACK_BELOW:
            blocked: Tensor = _Blocked.apply(flat, X, self)
            return blocked
        return self.stacked(flat, X)

    def stacked(self, flat: Tensor, X: Tensor) -> Tensor:
        """All networks in one batched product a layer; plain autograd."""
        hidden = X.expand(flat.shape[0], -1, -1) if X.dim() == 2 else X
        *inner, (weight, bias) = self.layers(flat)
        for inner_weight, inner_bias in inner:
            hidden = torch.baddbmm(inner_bias.unsqueeze(1), hidden, inner_weight.mT).relu()
        return torch.baddbmm(bias.unsqueeze(1), hidden, weight.mT)


class _Blocked(torch.autograd.Function):
    """Forward and backward, one network and one block of rows at a time."""

    @staticmethod
    def forward(ctx: Any, flat: Tensor, X: Tensor, mlp: MLP) -> Tensor:
        n_networks, n_rows = flat.shape[0], X.shape[-2]
        logits = flat.new_empty(n_networks, mlp.n_outputs, n_rows)
        keep = ctx.needs_input_grad[0]
        activations = [
            flat.new_empty(n_networks, n_rows, width) for width in mlp.sizes[1:-1] if keep
        ]
        layers = mlp.layers(flat.detach())
        for m in range(n_networks):
            rows = X if X.dim() == 2 else X[m]
            *inner, (last_weight, last_bias) = [(weight[m], bias[m]) for weight, bias in layers]
            kept = [activation[m] for activation in activations]
            for start in range(0, n_rows, BLOCK_ROWS):
                block = slice(start, start + BLOCK_ROWS)
                hidden = rows[block]  # [b, d]
                for depth, (weight, bias) in enumerate(inner):
                    out = kept[depth][block] if keep else None  # [b, width]
                    hidden = torch.addmm(bias, hidden, weight.T, out=out).clamp_min_(0)
                # a product with a narrow side runs several times faster with that side first
                torch.mm(last_weight, hidden.T, out=logits[m, :, block])
            logits[m] += last_bias.unsqueeze(1)
        ctx.mlp = mlp
        ctx.save_for_backward(flat, X, *activations)
        return logits.mT

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        flat, X, *activations = ctx.saved_tensors
        n_rows = X.shape[-2]
        grad_flat = torch.zeros_like(flat)
        grad_layers = ctx.mlp.layers(grad_flat)  # views: adding to them fills grad_flat
        layers = ctx.mlp.layers(flat)
        for m in range(flat.shape[0]):
            rows = X if X.dim() == 2 else X[m]
            weights = [weight[m] for weight, _ in layers]
            gradients = [(grad_weight[m], grad_bias[m]) for grad_weight, grad_bias in grad_layers]
            inputs = [rows, *(activation[m] for activation in activations)]  # of each layer
            for start in range(0, n_rows, BLOCK_ROWS):
                block = slice(start, start + BLOCK_ROWS)
                upstream = grads[0][m, block]  # [b, k]
                for depth in range(len(layers) - 1, -1, -1):
                    below = inputs[depth][block]
                    grad_weight, grad_bias = gradients[depth]
                    if below.shape[1] < upstream.shape[1]:
                        grad_weight += (below.T @ upstream).T
                    else:
                        grad_weight.addmm_(upstream.T, below)
                    grad_bias += upstream.sum(0)
                    if depth:
                        upstream = torch.ops.aten.threshold_backward(
                            upstream @ weights[depth], below, 0
                        )
        return grad_flat, None, None
