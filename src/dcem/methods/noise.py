"""Random numbers of a fleet that depend on seed, step and row alone.

Some methods disturb their inputs or mix rows in every step. Were the numbers drawn one after the
other, a network's noise would depend on who shares its fleet, on padding, and on the device. Here a
number is a *hash* (splitmix64, Steele, Lea and Flood 2014) of the network's seed, the step, a
stream and the row: a fleet of M gets the numbers of M single fits, in a few elementwise operations
that can be captured in a CUDA graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

# Streams of one step that must not share numbers get different codes below this.
STREAMS = 16


def _signed(word: int) -> int:
    """A 64-bit word as the signed integer with the same bits, which is what torch multiplies."""
    return word - (1 << 64) if word >= 1 << 63 else word


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_FIRST = _signed(0xBF58476D1CE4E5B9)
_SECOND = _signed(0x94D049BB133111EB)


def _right(word: Tensor, bits: int) -> Tensor:
    """Shift right, filling with zeros (torch fills with the sign)."""
    return (word >> bits) & ((1 << (64 - bits)) - 1)


def _mix(word: Tensor) -> Tensor:
    """The finaliser of splitmix64: every bit of the input moves half of the output's bits."""
    word = (word ^ _right(word, 30)) * _FIRST
    word = (word ^ _right(word, 27)) * _SECOND
    return word ^ _right(word, 31)


class Noise:
    """Noise of M networks; `advance` moves all of them to the next step, in place."""

    def __init__(self, seeds: Sequence[int], device: torch.device, dtype: torch.dtype):
        key = torch.tensor([_signed(int(seed) % (1 << 64)) for seed in seeds], dtype=torch.int64)
        self._key = _mix(key + _GOLDEN).to(device)  # [M]
        self.step = torch.zeros((), dtype=torch.int64, device=device)
        self.dtype = dtype

    def advance(self) -> None:
        """Go on to fresh numbers; without it, the same call gives the same ones."""
        self.step += 1

    def _words(self, row: Tensor, each: int, stream: int) -> Tensor:
        """64 random bits, `each` a row: `[M, N, each]`."""
        state = _mix(self._key + (self.step * STREAMS + stream) * _GOLDEN)  # [M]
        column = torch.arange(each, device=row.device)
        counter = row.unsqueeze(-1) * each + column  # [N, each] or [M, N, each]
        return _mix(state.reshape(-1, 1, 1) + (counter + 1) * _GOLDEN)

    def uniform(self, row: Tensor, *, stream: int = 0) -> Tensor:
        """Uniform in (0, 1), one per row: `[M, N]`; `row` holds row numbers `[N]` or `[M, N]`."""
        return self._fraction(self._words(row, 1, stream).squeeze(-1), 40)

    def normal(self, row: Tensor, n_columns: int, *, stream: int = 0) -> Tensor:
        """Standard normal, `[M, N, n_columns]`, by Box and Muller: two from every word."""
        words = self._words(row, (n_columns + 1) // 2, stream)
        radius = (-2 * self._fraction(words, 40).log()).sqrt()
        angle = 2 * math.pi * self._fraction(words, 8)
        return torch.cat([radius * angle.cos(), radius * angle.sin()], -1)[..., :n_columns]

    def _fraction(self, word: Tensor, bits: int) -> Tensor:
        """24 of the bits, above the lowest `bits`, as a fraction strictly between 0 and 1."""
        return ((word >> bits) & 0xFFFFFF).to(self.dtype) * 2.0**-24 + 2.0**-25


def partners(noise: Noise, weight: Tensor, slots: Tensor) -> Tensor:
    """For each row another of the same network, `[M, N]`: a random permutation of its rows.

    Rows of weight 0 (padding) are nobody's partner; `slots` is `slots_of(weight)`, `[M, N]`.
    """
    row = torch.arange(weight.shape[-1], device=weight.device)
    keys = noise.uniform(row)
    order = torch.where(weight > 0, keys, 2.0).argsort(dim=1, stable=True)
    return torch.zeros_like(order).scatter(1, slots.expand_as(order), order)


def slots_of(weight: Tensor) -> Tensor:
    """Row numbers `[M, N]`, those of positive weight first."""
    return (weight <= 0).to(torch.uint8).argsort(dim=1, stable=True)
