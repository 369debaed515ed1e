"""What the networks of a fleet look like: layers of one's own making, or a user's module.

Parameters of one network are one vector `[P]`; those of M networks are `[M, P]`. An architecture
that can be saved has `describe()`, which returns its `kind` and the arguments that make it again,
as JSON knows them: nothing in a saved fleet runs code. `register` names who builds a kind:

    class TwoHeads:
        def __init__(self, n_inputs, width): ...
        def describe(self): return {"kind": "two-heads", "n_inputs": ..., "width": ...}

    register("two-heads", TwoHeads)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

from dcem.engine import fused
from dcem.engine.fleet import Architecture

# Rows a block: 4,096 rows of 64 float32 are 1 MiB, which a core's second-level cache holds.
BLOCK_ROWS = 4096
# Under this many rows a product is too small to fill the cores, and stacking M of them pays.
STACK_BELOW = 1024


class MLP:
    """A multilayer perceptron: Linear and ReLU blocks, then one linear layer of logits.

    Weight `[out, in]` and bias `[out]` of each layer follow each other in order, as in a
    `torch.nn.Sequential`. Three ways compute the same logits `[M, N, k]`:

    * *stacked*: batched products over all networks; differentiable in everything, any device.
    * *blocked* (CPU, many rows): one network and a few thousand rows at a time, so that activations
      stay in the processor's cache between one layer and the next, and the gradient by hand.
    * *fused* (CUDA): one kernel runs all layers for a block of rows and never writes activations to
      memory; see `dcem.engine.fused`.

    Parameters
    ----------
    n_inputs, hidden, n_outputs
        Widths: inputs, each hidden layer, logits. Two logits and a softmax are the default, as in
        the published runs; a single logit and a sigmoid follow a different path under Adam.
    """

    def __init__(self, n_inputs: int, hidden: tuple[int, ...] = (64, 64), n_outputs: int = 2):
        self.sizes = (int(n_inputs), *(int(width) for width in hidden), int(n_outputs))
        self.n_outputs = self.sizes[-1]
        self.shapes: list[tuple[int, ...]] = []
        for n_in, n_out in pairwise(self.sizes):
            self.shapes += [(n_out, n_in), (n_out,)]
        self.lengths = [math.prod(shape) for shape in self.shapes]
        self.n_parameters = sum(self.lengths)

    def describe(self) -> dict[str, Any]:
        """What makes this architecture again."""
        n_inputs, *hidden, n_outputs = self.sizes
        return {"kind": "mlp", "n_inputs": n_inputs, "hidden": hidden, "n_outputs": n_outputs}

    def initial(self, seed: int) -> Tensor:
        """Initial parameters `[P]`: PyTorch's default for linear layers, drawn on the CPU.

        The draws are those of `torch.manual_seed(seed)` followed by the construction of the
        layers in order, without touching the global seed.
        """
        generator = torch.Generator().manual_seed(int(seed))
        pieces = []
        for n_in, n_out in pairwise(self.sizes):
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
            return _Blocked.apply(flat, X, self)
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


class FromModule:
    """M copies of a module, trained as one.

    `factory(n_inputs)` builds the module; it must map rows `[N, d]` to one logit `[N]`, `[N, 1]` or
    two logits `[N, 2]`, and may not keep state between rows (batch normalisation does: it mixes
    rows, and its running averages are not parameters). Dropout is switched off, since a fleet
    evaluates the module as a pure function of its parameters.
    """

    def __init__(self, factory: Callable[[int], nn.Module], n_inputs: int):
        self.factory = factory
        self.n_inputs = n_inputs
        self._module = self._built(0)
        if any(True for _ in self._module.buffers()):
            raise ValueError(
                "the network module keeps buffers (batch normalisation does); a fleet needs a "
                "module whose output depends on its parameters and the row alone. "
                "Use LayerNorm or no normalisation instead."
            )
        self._names = [name for name, _ in self._module.named_parameters()]
        self._shapes = [parameter.shape for parameter in self._module.parameters()]
        self._lengths = [shape.numel() for shape in self._shapes]
        self.n_parameters = sum(self._lengths)
        with torch.no_grad():
            out = self._module(torch.zeros(2, n_inputs))
        self.n_outputs = 1 if out.dim() == 1 else int(out.shape[-1])
        if out.shape[0] != 2 or self.n_outputs not in (1, 2):
            raise ValueError(
                f"the network module maps [2, {n_inputs}] to {list(out.shape)}; "
                "it must give one logit per row, or two"
            )

    def describe(self) -> dict[str, Any]:
        """The parameters by name; making the module again takes its factory."""
        shapes = {name: list(shape) for name, shape in zip(self._names, self._shapes, strict=True)}
        return {"kind": "module", "n_inputs": self.n_inputs, "parameters": shapes}

    def module(self, parameters: Tensor) -> nn.Module:
        """An ordinary module with these parameters `[P]`."""
        module = self._built(0).to(parameters)
        vector_to_parameters(parameters, module.parameters())
        return module

    def initial(self, seed: int) -> Tensor:
        """Parameters `[P]` of a module built by the factory under this seed."""
        parameters = self._built(seed).parameters()
        return torch.cat([parameter.detach().reshape(-1) for parameter in parameters])

    def _built(self, seed: int) -> nn.Module:
        """A module of the factory; the user's own random numbers stay as they are."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seed))
            return self.factory(self.n_inputs).eval()

    def logits(self, flat: Tensor, X: Tensor) -> Tensor:
        """Logits `[M, N, k]`: the module as a function of its parameters, mapped over networks."""

        def one(parameters: Tensor, rows: Tensor) -> Tensor:
            pieces = parameters.split(self._lengths)
            named = {
                name: piece.reshape(shape)
                for name, piece, shape in zip(self._names, pieces, self._shapes, strict=True)
            }
            out: Tensor = torch.func.functional_call(self._module, named, (rows,))
            return out.unsqueeze(-1) if out.dim() == 1 else out

        return torch.vmap(one, in_dims=(0, None if X.dim() == 2 else 0))(flat, X)


# -- as plain data, and back ----------------------------------------------------------------------

_BUILDERS: dict[str, Callable[..., Architecture]] = {"mlp": MLP}


def register(kind: str, build: Callable[..., Architecture]) -> None:
    """Let `build(**arguments)` make architectures of this kind again."""
    _BUILDERS[kind] = build


def rebuild(description: dict[str, Any]) -> Architecture:
    """The architecture that gave this description; KeyError where its kind is not known."""
    arguments = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in description.items()
        if name != "kind"
    }
    return _BUILDERS[description["kind"]](**arguments)
