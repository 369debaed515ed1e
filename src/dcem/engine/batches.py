"""Which rows each network of a fleet sees in each step of minibatch training.

Every network walks through permutations of its own, drawn from its own seed, so that its batches do
not depend on which other networks share the fleet. A batch that reaches the end of one permutation
goes on into the next: all batches have the same size, and each row is seen once in an epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


class Batches:
    """`index [M, B]` holds the rows of the current step; `advance` moves to the next."""

    def __init__(self, n_rows: int, size: int, seeds: Sequence[int], device: torch.device):
        self.n_rows, self.size = n_rows, size
        self.index = torch.zeros(len(seeds), size, dtype=torch.int64, device=device)
        self._generators = [torch.Generator().manual_seed(int(seed)) for seed in seeds]
        self._waiting = torch.empty(len(seeds), 0, dtype=torch.int32)  # drawn, not yet used
        self._position = 0

    def advance(self) -> None:
        """Fill `index` with the next batch, in place."""
        if self._waiting.shape[1] - self._position < self.size:
            fresh = torch.stack(
                [
                    torch.randperm(self.n_rows, generator=generator, dtype=torch.int32)
                    for generator in self._generators
                ]
            )
            self._waiting = torch.cat([self._waiting[:, self._position :], fresh], dim=1)
            self._position = 0
        end = self._position + self.size
        self.index.copy_(self._waiting[:, self._position : end])
        self._position = end

    def state(self) -> dict[str, Any]:
        """Where the walk stands."""
        return {
            "batches.waiting": self._waiting[:, self._position :].clone(),
            "batches.generators": torch.stack([g.get_state() for g in self._generators]),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from where the walk stood."""
        self._waiting, self._position = state["batches.waiting"].clone(), 0
        for generator, saved in zip(
            self._generators, state["batches.generators"].cpu(), strict=True
        ):
            generator.set_state(saved.clone())  # a view into the stack would crash torch
