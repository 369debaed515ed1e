"""Triton kernels of `dcem.engine.fused`: forward and backward of a network with two hidden layers.

Shapes inside a program: B rows of a block; D inputs, H1 and H2 hidden units and K logits, each
padded to a power of two of at least 16, the smallest side of a tensor-core product. Padding is
masked to zero on loading, so padded units are relu(0) = 0 and padded gradients vanish.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# Programs wanted on the card; each network's rows are split until there are about this many.
PROGRAMS = 1056


def _pad(width: int) -> int:
    return max(16, triton.next_power_of_2(width))


@triton.jit
def _matrix(base, n_out, n_in, OUT: tl.constexpr, IN: tl.constexpr):  # type: ignore[no-untyped-def]
    """A weight [out, in] at `base`, transposed on loading: [IN, OUT]."""
    i = tl.arange(0, IN)[:, None]
    o = tl.arange(0, OUT)[None, :]
    return tl.load(base + o * n_in + i, mask=(i < n_in) & (o < n_out), other=0.0)


@triton.jit
def _vector(base, n, WIDTH: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, WIDTH)
    return tl.load(base + i, mask=i < n, other=0.0)


@triton.jit
def _forward(  # type: ignore[no-untyped-def]
    flat, X, out, n_rows, x_stride, n_parameters, rows_each,
    d, h1, h2, k,
    D: tl.constexpr, H1: tl.constexpr, H2: tl.constexpr, K: tl.constexpr,
    B: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0).to(tl.int64)
    p = flat + m * n_parameters
    W1 = _matrix(p, h1, d, H1, D)
    b1 = _vector(p + h1 * d, h1, H1)
    p += h1 * d + h1
    W2 = _matrix(p, h2, h1, H2, H1)
    b2 = _vector(p + h2 * h1, h2, H2)
    p += h2 * h1 + h2
    W3 = _matrix(p, k, h2, K, H2)
    b3 = _vector(p + k * h2, k, K)
    first = tl.program_id(1) * rows_each
    last = tl.minimum(first + rows_each, n_rows)
    for start in range(first, last, B):
        row = start + tl.arange(0, B)
        inside = row < last
        col = tl.arange(0, D)
        x = tl.load(
            X + m * x_stride + row[:, None].to(tl.int64) * d + col[None, :],
            mask=inside[:, None] & (col[None, :] < d), other=0.0,
        )  # fmt: skip
        a1 = tl.maximum(tl.dot(x, W1, input_precision=PRECISION) + b1[None, :], 0.0)
        a2 = tl.maximum(tl.dot(a1, W2, input_precision=PRECISION) + b2[None, :], 0.0)
        o = tl.dot(a2, W3, input_precision=PRECISION) + b3[None, :]
        c = tl.arange(0, K)
        tl.store(
            out + (m * n_rows + row[:, None].to(tl.int64)) * k + c[None, :], o,
            mask=inside[:, None] & (c[None, :] < k),
        )  # fmt: skip


@triton.jit
def _store_gradient(base, gradient, n_out, n_in, OUT: tl.constexpr, IN: tl.constexpr):  # type: ignore[no-untyped-def]
    """A gradient [OUT, IN] into the flat layout [out, in]."""
    o = tl.arange(0, OUT)[:, None]
    i = tl.arange(0, IN)[None, :]
    tl.store(base + o * n_in + i, gradient, mask=(o < n_out) & (i < n_in))


@triton.jit
def _backward(  # type: ignore[no-untyped-def]
    flat, X, grad, partial, n_networks, n_rows, x_stride, n_parameters, rows_each,
    d, h1, h2, k,
    D: tl.constexpr, H1: tl.constexpr, H2: tl.constexpr, K: tl.constexpr,
    B: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0).to(tl.int64)
    s = tl.program_id(1).to(tl.int64)
    p = flat + m * n_parameters
    W1 = _matrix(p, h1, d, H1, D)
    b1 = _vector(p + h1 * d, h1, H1)
    p += h1 * d + h1
    W2 = _matrix(p, h2, h1, H2, H1)  # [H1, H2]
    b2 = _vector(p + h2 * h1, h2, H2)
    p += h2 * h1 + h2
    W3 = _matrix(p, k, h2, K, H2)  # [H2, K]
    gW1 = tl.zeros([H1, D], tl.float32)
    gb1 = tl.zeros([H1], tl.float32)
    gW2 = tl.zeros([H2, H1], tl.float32)
    gb2 = tl.zeros([H2], tl.float32)
    gW3 = tl.zeros([K, H2], tl.float32)
    gb3 = tl.zeros([K], tl.float32)
    first = tl.program_id(1) * rows_each
    last = tl.minimum(first + rows_each, n_rows)
    for start in range(first, last, B):
        row = start + tl.arange(0, B)
        inside = row < last
        col = tl.arange(0, D)
        x = tl.load(
            X + m * x_stride + row[:, None].to(tl.int64) * d + col[None, :],
            mask=inside[:, None] & (col[None, :] < d), other=0.0,
        )  # fmt: skip
        c = tl.arange(0, K)
        g = tl.load(
            grad + (m * n_rows + row[:, None].to(tl.int64)) * k + c[None, :],
            mask=inside[:, None] & (c[None, :] < k), other=0.0,
        )  # fmt: skip
        a1 = tl.maximum(tl.dot(x, W1, input_precision=PRECISION) + b1[None, :], 0.0)  # [B, H1]
        a2 = tl.maximum(tl.dot(a1, W2, input_precision=PRECISION) + b2[None, :], 0.0)  # [B, H2]
        gW3 += tl.dot(tl.trans(g), a2, input_precision=PRECISION)
        gb3 += tl.sum(g, 0)
        g2 = tl.where(a2 > 0, tl.dot(g, tl.trans(W3), input_precision=PRECISION), 0.0)
        gW2 += tl.dot(tl.trans(g2), a1, input_precision=PRECISION)
        gb2 += tl.sum(g2, 0)
        g1 = tl.where(a1 > 0, tl.dot(g2, tl.trans(W2), input_precision=PRECISION), 0.0)
        gW1 += tl.dot(tl.trans(g1), x, input_precision=PRECISION)
        gb1 += tl.sum(g1, 0)
    q = partial + (s * n_networks + m) * n_parameters
    _store_gradient(q, gW1, h1, d, H1, D)
    tl.store(q + h1 * d + tl.arange(0, H1), gb1, mask=tl.arange(0, H1) < h1)
    q += h1 * d + h1
    _store_gradient(q, gW2, h2, h1, H2, H1)
    tl.store(q + h2 * h1 + tl.arange(0, H2), gb2, mask=tl.arange(0, H2) < h2)
    q += h2 * h1 + h2
    _store_gradient(q, gW3, k, h2, K, H2)
    tl.store(q + k * h2 + tl.arange(0, K), gb3, mask=tl.arange(0, K) < k)


def _launch(n_networks: int, n_rows: int, block: int) -> tuple[int, int]:
    """How many ways each network's rows are split, and rows in each part."""
    blocks = triton.cdiv(n_rows, block)
    splits = max(1, min(blocks, PROGRAMS // max(1, n_networks)))
    each = triton.cdiv(blocks, splits) * block
    return triton.cdiv(n_rows, each), each


def _block(sizes: tuple[int, ...]) -> int:
    """Rows a block: fewer for wide networks, whose weights fill the shared memory."""
    return 64 if max(sizes) <= 64 else 32


def forward(flat: Tensor, X: Tensor, sizes: tuple[int, ...], precision: str) -> Tensor:
    """Logits [M, N, k]."""
    n_networks, n_rows = flat.shape[0], X.shape[-2]
    out = torch.empty(n_networks, n_rows, sizes[-1], device=flat.device)
    block = _block(sizes)
    splits, each = _launch(n_networks, n_rows, block)
    stride = X.stride(0) if X.dim() == 3 else 0
    D, H1, H2, K = map(_pad, sizes)
    _forward[(n_networks, splits)](
        flat, X, out, n_rows, stride, flat.shape[1], each, *sizes,
        D=D, H1=H1, H2=H2, K=K, B=block, PRECISION=precision, num_warps=4, num_stages=1,
    )  # fmt: skip
    return out


def backward(
    flat: Tensor, X: Tensor, grad: Tensor, sizes: tuple[int, ...], precision: str
) -> Tensor:
    """Shares of the gradient, one slot a split: [S, M, P]."""
    n_networks, n_rows = flat.shape[0], X.shape[-2]
    block = _block(sizes)
    splits, each = _launch(n_networks, n_rows, block)
    partial = torch.empty(splits, n_networks, flat.shape[1], device=flat.device)
    stride = X.stride(0) if X.dim() == 3 else 0
    D, H1, H2, K = map(_pad, sizes)
    _backward[(n_networks, splits)](
        flat, X, grad, partial, n_networks, n_rows, stride, flat.shape[1], each, *sizes,
        D=D, H1=H1, H2=H2, K=K, B=block, PRECISION=precision,
        num_warps=4 if max(sizes) <= 64 else 8, num_stages=1,
    )  # fmt: skip
    return partial
