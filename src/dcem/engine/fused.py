"""The whole network in one CUDA kernel, written in Triton.

A step of a small network is bound by writing activations to memory and reading them back. Here one
program takes one network and a range of rows; for each block of rows it runs all layers in
registers and shared memory. The forward kernel writes only logits. The backward kernel recomputes
the activations from the rows, which costs a third more arithmetic and saves nearly all of the
traffic, and adds its share of the gradient into a slot of its own, `[S, M, P]`; summing the slots
in order keeps the result the same from run to run, which atomic additions would not.

Used for two hidden layers of up to 128 units, float32, on CUDA with Triton installed, where a block
of rows and the weights fit into the card's shared memory (tried once for each shape); everything
else takes the stacked path of `MLP`. Products run in tf32 on three terms, which is float32
accuracy, or in plain tf32 (`torch.backends.cuda.matmul.allow_tf32`, faster, 3e-4 relative).
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from dcem.engine.architectures import MLP

MAX_WIDTH = 128


@cache
def _kernels() -> Any:
    """The compiled kernels, or None where Triton or a card of compute capability 8 is missing."""
    try:
        from dcem.engine import _fused_kernels
    except ImportError:
        return None
    if torch.cuda.is_available() and torch.cuda.get_device_capability() < (8, 0):
        return None
    return _fused_kernels


def supports(mlp: MLP, flat: Tensor, X: Tensor) -> bool:
    """Whether the fused kernels can compute this."""
    return (
        flat.device.type == "cuda"
        and flat.dtype == torch.float32
        and X.dtype == torch.float32
        and len(mlp.sizes) == 4
        and max(mlp.sizes) <= MAX_WIDTH
        and mlp.sizes[3] <= 16
        and _kernels() is not None
        and _enough_memory(mlp.sizes, flat.device, _precision())
    )


@cache
def _enough_memory(sizes: tuple[int, ...], device: torch.device, precision: str) -> bool:
    """Whether this card has the shared memory that the kernels need for these widths."""
    from triton.runtime.errors import OutOfResources

    n_parameters = sum((n_in + 1) * n_out for n_in, n_out in itertools.pairwise(sizes))
    flat = torch.zeros(1, n_parameters, device=device)
    X, grad = torch.zeros(1, sizes[0], device=device), torch.zeros(1, 1, sizes[-1], device=device)
    try:
        _kernels().forward(flat, X, sizes, precision)
        _kernels().backward(flat, X, grad, sizes, precision)
    except OutOfResources:
        return False
    return True


def logits(mlp: MLP, flat: Tensor, X: Tensor) -> Tensor:
    """Logits `[M, N, k]`, differentiable in the parameters."""
    return _Fused.apply(flat, X, mlp.sizes)


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, flat: Tensor, X: Tensor, sizes: tuple[int, ...]) -> Tensor:
        flat, X = flat.contiguous(), X.contiguous()
        ctx.save_for_backward(flat, X)
        ctx.sizes = sizes
        return _kernels().forward(flat, X, sizes, _precision())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        flat, X = ctx.saved_tensors
        partial = _kernels().backward(flat, X, grads[0].contiguous(), ctx.sizes, _precision())
        return partial.sum(0), None, None


def _precision() -> str:
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3"
