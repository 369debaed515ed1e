"""The training loop of a fleet: one step for all networks, repeated.

An *objective* maps parameters `[M, P]` and rows to one loss per network `[M]`. The sum of the
losses is differentiated once: since network m appears in loss m alone, that gives every network its
own gradient. On CUDA the step is captured as a graph and replayed (see `replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from dcem.engine.batches import Batches
from dcem.engine.fleet import Architecture, Fleet, Rows
from dcem.engine.replay import Replay
from dcem.engine.stopping import Patience

Objective = Callable[[Tensor, Rows], Tensor]
Loss = Callable[[Tensor, Rows], Tensor]
Progress = Callable[[int, int], None]

# How often the host asks whether any network is still training.
ASK_EVERY = 50


class Optimizer(Protocol):
    """What the loop asks of an optimiser."""

    state: dict[str, Tensor]

    def bind(self, flat: Tensor) -> None:
        """Make the state for these parameters."""
        ...

    def reset(self) -> None:
        """Forget the past, in place."""
        ...

    def update(self, flat: Tensor, grad: Tensor) -> None:
        """One step, in place."""
        ...


def supervised(architecture: Architecture, loss: Loss) -> Objective:
    """The objective of a plain network: a loss of its logits."""
    return lambda flat, rows: loss(architecture.logits(flat, rows.X), rows)


class Trainer:
    """Moves a fleet's parameters along the gradient of an objective.

    Parameters
    ----------
    fleet, rows, objective, optimizer
        What is trained, on what, towards what, and how. Rows and fleet share a device. Columns of
        `rows` may be overwritten in place between runs (EM does so with its pseudo-labels).
    batch_size
        Rows per step; None, or no fewer than there are: all of them, always in the same order.
    seeds
        One for each network; they choose its batches. Needed with `batch_size`.
    generators
        Generators that the objective draws from on CUDA, so that a captured graph advances them.
    """

    def __init__(
        self,
        fleet: Fleet,
        rows: Rows,
        objective: Objective,
        optimizer: Optimizer,
        *,
        batch_size: int | None = None,
        seeds: Sequence[int] | None = None,
        generators: Sequence[torch.Generator] = (),
    ):
        self.fleet, self.rows, self.objective, self.optimizer = fleet, rows, objective, optimizer
        optimizer.bind(fleet.flat)
        self.losses = torch.full((len(fleet),), torch.nan, device=fleet.flat.device)
        self.losses = self.losses.to(fleet.flat.dtype)
        self.steps_done = 0
        self._generators = generators
        self._stopping: Patience | None = None
        self._replay_step, self._replay_check = self._replays()
        self._batches: Batches | None = None
        if batch_size is not None and batch_size < len(rows):
            if seeds is None:
                raise ValueError("minibatches need seeds: one for each network of the fleet")
            self._batches = Batches(len(rows), batch_size, seeds, fleet.flat.device)

    def run(
        self,
        steps: int,
        *,
        stopping: Patience | None = None,
        validation: Rows | None = None,
        watch: Objective | None = None,
        check_every: int = 1,
        progress: Progress | None = None,
    ) -> None:
        """Take `steps` steps; with `stopping`, check each network on `validation` as it goes.

        `watch` is the objective of the check (default: the one trained). Best weights are not put
        back here: `stopping.restore` does that, for those who want it.
        """
        if stopping is not self._stopping:
            self._stopping = stopping
            self._replay_step, self._replay_check = self._replays()
        for done in range(1, steps + 1):
            if self._batches is not None:
                self._batches.advance()
            self._replay_step(self._step)
            self.steps_done += 1
            if stopping is not None and validation is not None and done % check_every == 0:
                self._replay_check(partial(self._check, validation, watch or self.objective))
                if (done // check_every) % ASK_EVERY == 0 and not bool(stopping.active.any()):
                    break
            if progress is not None:
                progress(done, steps)

    def _step(self) -> None:
        rows = self.rows if self._batches is None else self.rows.take(self._batches.index)
        flat = self.fleet.flat.detach().requires_grad_()
        losses = self.objective(flat, rows)
        (grad,) = torch.autograd.grad(losses.sum(), flat)
        with torch.no_grad():
            target = self.fleet.flat
            before = target.clone() if self._stopping is not None else None
            self.optimizer.update(target, grad)
            if self._stopping is not None and before is not None:
                target.copy_(torch.where(self._stopping.active.unsqueeze(1), target, before))
            self.losses.copy_(losses.detach())

    def _check(self, rows: Rows, objective: Objective) -> None:
        assert self._stopping is not None
        with torch.no_grad():
            self._stopping.update(objective(self.fleet.flat, rows), self.fleet.flat)

    def _replays(self) -> tuple[Replay, Replay]:
        device = self.fleet.flat.device
        return Replay(device, self._generators), Replay(device, self._generators)

    def state(self) -> dict[str, Any]:
        """Everything a later process needs to go on from here, as copies."""
        state: dict[str, Any] = {"flat": self.fleet.flat.clone(), "steps_done": self.steps_done}
        state |= {f"optimizer.{name}": t.clone() for name, t in self.optimizer.state.items()}
        if self._batches is not None:
            state |= self._batches.state()
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state, in place."""
        self.fleet.load(state["flat"])
        self.steps_done = int(state["steps_done"])
        for name, tensor in self.optimizer.state.items():
            tensor.copy_(state[f"optimizer.{name}"])
        if self._batches is not None:
            self._batches.load_state(state)
