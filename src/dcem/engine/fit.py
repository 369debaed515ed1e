"""The training loop of a fleet: one step for all networks; batches; optimisers; early stopping.

An *objective* maps parameters `[M, P]` and rows to one loss per network `[M]`. The sum of the
losses is differentiated once: since network m appears in loss m alone, that gives every network its
own gradient. On CUDA the step is captured as a graph and replayed (see `Replay`).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from dcem.engine.fleet import Architecture, Fleet, Rows

Objective = Callable[[Tensor, Rows], Tensor]
Loss = Callable[[Tensor, Rows], Tensor]
Progress = Callable[[int, int], None]

# Checks between two questions of the host whether any network is still training: on CUDA the answer
# waits for all that was queued.
ASK_EVERY = 50
RISEN = 1.05  # times the best loss, from which a network does not come back
# Runs of a piece of work before it is captured: kernels get compiled, workspaces made. They count.
WARM_UP = 3


def supervised(architecture: Architecture, loss: Loss) -> Objective:
    """The objective of a plain network: a loss of its logits."""
    return lambda flat, rows: loss(architecture.logits(flat, rows.X), rows)


class Batches:
    """Which rows each network sees in a step: `index [M, B]`; `advance` moves to the next.

    Every network walks through permutations of its own, drawn from its own seed, so that its
    batches do not depend on which other networks share the fleet. A batch that reaches the end of
    one permutation goes on into the next: all have the same size, and each row is seen once in an
    epoch.
    """

    def __init__(
        self, n_rows: int | Sequence[int], size: int, seeds: Sequence[int], device: torch.device
    ):
        """`n_rows` of all networks, or of each."""
        self.n_rows = [n_rows] * len(seeds) if isinstance(n_rows, int) else list(n_rows)
        self.size = size
        self.index = torch.zeros(len(seeds), size, dtype=torch.int64, device=device)
        self._generators = [torch.Generator().manual_seed(int(seed)) for seed in seeds]
        self._waiting = [torch.empty(0, dtype=torch.int32) for _ in seeds]  # drawn, not yet used

    def advance(self) -> None:
        """Fill `index` with the next batch, in place."""
        for m, (n_rows, generator) in enumerate(zip(self.n_rows, self._generators, strict=True)):
            while len(self._waiting[m]) < self.size:
                fresh = torch.randperm(n_rows, generator=generator, dtype=torch.int32)
                self._waiting[m] = torch.cat([self._waiting[m], fresh])
        self.index.copy_(torch.stack([rows[: self.size] for rows in self._waiting]))
        self._waiting = [rows[self.size :] for rows in self._waiting]

    def state(self) -> dict[str, Any]:
        """Where the walk stands."""
        padded = torch.nn.utils.rnn.pad_sequence(self._waiting, batch_first=True, padding_value=-1)
        return {
            "batches.waiting": padded,
            "batches.generators": torch.stack([g.get_state() for g in self._generators]),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from where the walk stood."""
        self._waiting = [rows[rows >= 0].clone() for rows in state["batches.waiting"]]
        for generator, saved in zip(
            self._generators, state["batches.generators"].cpu(), strict=True
        ):
            generator.set_state(saved.clone())  # a view into the stack would crash torch


class Optimizer:
    """Moves stacked parameters `[M, P]` in place: `bind` once, then `update` step by step.

    The updates are those of `torch.optim` (weight decay is an L2 term in the gradient, as in Adam,
    not AdamW). State lives in tensors that never move, so that a captured CUDA graph can replay the
    step; `reset` starts anew without moving them.
    """

    state: dict[str, Tensor]

    def __init__(self, learning_rate: float = 1e-3, *, weight_decay: float = 0.0):
        self.learning_rate, self.weight_decay = learning_rate, weight_decay

    def bind(self, flat: Tensor) -> None:
        """Make the state for these parameters."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget the past, in place."""
        for name, tensor in self.state.items():
            tensor.fill_(1.0 if name.startswith("power") else 0.0)

    def update(self, flat: Tensor, grad: Tensor) -> None:
        """One step, in place."""
        raise NotImplementedError

    def _decayed(self, flat: Tensor, grad: Tensor) -> Tensor:
        return grad + self.weight_decay * flat if self.weight_decay else grad


class Adam(Optimizer):
    """Adam with bias correction."""

    BETAS, EPSILON = (0.9, 0.999), 1e-8

    def bind(self, flat: Tensor) -> None:
        """Make the state for these parameters."""
        self.state = {
            "mean": torch.zeros_like(flat),
            "square": torch.zeros_like(flat),
            # beta to the power of the step, for bias correction; float64 as it decays slowly
            "power1": torch.ones((), dtype=torch.float64, device=flat.device),
            "power2": torch.ones((), dtype=torch.float64, device=flat.device),
        }
        self._scratch = torch.empty_like(flat)

    def update(self, flat: Tensor, grad: Tensor) -> None:
        """One step, in place."""
        grad = self._decayed(flat, grad)
        mean, square = self.state["mean"], self.state["square"]
        beta1, beta2 = self.BETAS
        power1 = self.state["power1"].mul_(beta1)
        power2 = self.state["power2"].mul_(beta2)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        step = torch.sqrt(square, out=self._scratch)
        step.div_((1 - power2).sqrt().to(flat.dtype)).add_(self.EPSILON)
        torch.div(mean, step, out=step).mul_((1 / (1 - power1)).to(flat.dtype))
        flat.sub_(step.mul_(self.learning_rate))


class SGD(Optimizer):
    """Stochastic gradient descent with (Nesterov) momentum."""

    def __init__(
        self,
        learning_rate: float,
        *,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        nesterov: bool = False,
    ):
        super().__init__(learning_rate, weight_decay=weight_decay)
        self.momentum, self.nesterov = momentum, nesterov

    def bind(self, flat: Tensor) -> None:
        """Make the state for these parameters."""
        self.state = {"momentum": torch.zeros_like(flat)}

    def update(self, flat: Tensor, grad: Tensor) -> None:
        """One step, in place. From a zero buffer this is torch's rule, which starts at the
        first gradient: 0 times the momentum plus the gradient."""
        grad = self._decayed(flat, grad)
        buffer = self.state["momentum"].mul_(self.momentum).add_(grad)
        direction = grad + self.momentum * buffer if self.nesterov else buffer
        flat.sub_(direction * self.learning_rate)


class Patience:
    """Stop a network after `patience` checks without improvement; remember its best weights.

    A check compares the watched loss: `loss + min_delta < best` is an improvement. Where several
    losses `[k, M]` are watched, any of them may improve. A network that stops stays where it is
    while the others go on. Everything is arithmetic on tensors, with no look at the host, so that
    it can run inside a captured graph.

    In minibatches (`sooner`) a network need not wait so long whose best came early and whose loss
    has risen since, which a plateau's does not: twice as many checks as the best took, but at least
    half of `patience`.

    `restore` copies the best weights back, also for networks whose budget ran out before their
    patience did. (Keeping a reference instead of a copy would restore nothing: the released code
    of the paper does that, and so keeps the last weights.)
    """

    def __init__(
        self,
        flat: Tensor,
        patience: int,
        min_delta: float = 1e-8,
        n_losses: int = 1,
        *,
        sooner: bool = False,
    ):
        n_networks = flat.shape[0]
        self.patience, self.min_delta = patience, min_delta
        self.least = -(-patience // 2) if sooner else patience
        self.best_flat = flat.detach().clone()
        self.best_loss = flat.new_full((n_losses, n_networks), torch.inf)
        self.best_step = torch.zeros(n_networks, dtype=torch.int64, device=flat.device)
        self.failures = torch.zeros(n_networks, dtype=torch.int64, device=flat.device)
        self.checks = torch.zeros((), dtype=torch.int64, device=flat.device)
        self.active = torch.ones(n_networks, dtype=torch.bool, device=flat.device)

    def update(self, loss: Tensor, flat: Tensor) -> None:
        """Take note of the watched losses, `[M]` or `[k, M]`, of the current weights."""
        self.checks += 1
        fell = self.active & (loss + self.min_delta < self.best_loss)  # [k, M]
        self.best_loss.copy_(torch.where(fell, loss, self.best_loss))
        better = fell.any(0)
        self.best_step.copy_(torch.where(better, self.checks, self.best_step))
        self.best_flat.copy_(torch.where(better.unsqueeze(1), flat, self.best_flat))
        self.failures.copy_(torch.where(better, 0, self.failures + self.active))
        allowed = (2 * self.best_step).clamp(self.least, self.patience)
        risen = (loss > RISEN * self.best_loss).all(0)
        self.active.logical_and_(self.failures < torch.where(risen, allowed, self.patience))

    def restore(self, flat: Tensor) -> None:
        """Put the best weights back, network by network, wherever a check ever improved."""
        seen = (self.best_step > 0).unsqueeze(1)
        flat.copy_(torch.where(seen, self.best_flat, flat))

    def state(self) -> dict[str, Tensor]:
        """All of it, by name, for a checkpoint."""
        names = ("best_flat", "best_loss", "best_step", "failures", "checks", "active")
        return {name: getattr(self, name) for name in names}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go on from a checkpoint, in place."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])


class Replay:
    """Does one piece of work again and again; on CUDA captured as a graph after a few times.

    The host then launches one graph instead of dozens of small kernels. The work must read and
    write the same tensors each time, in place, and must not look at their values on the host.
    `device` is where these are: anywhere but on CUDA the work is just done.
    """

    def __init__(self, device: torch.device):
        self._device, self._runs = device, 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, work: Callable[[], None]) -> None:
        """Do `work`, which must be the same one every time."""
        if self._device.type != "cuda":
            work()
        elif self._graph is not None:
            self._graph.replay()
        else:
            self._run_and_perhaps_capture(work)

    def _run_and_perhaps_capture(self, work: Callable[[], None]) -> None:
        self._runs += 1
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            work()
        torch.cuda.current_stream().wait_stream(stream)
        if self._runs < WARM_UP:
            return
        graph = torch.cuda.CUDAGraph()
        gc.collect()  # an older graph that is let go during a capture would spoil it
        with torch.cuda.graph(graph):
            work()
        self._graph = graph


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
    ):
        self.fleet, self.rows, self.objective, self.optimizer = fleet, rows, objective, optimizer
        optimizer.bind(fleet.flat)
        self.losses = fleet.flat.new_full((len(fleet),), torch.nan)
        self.steps_done = 0
        self._stopping: Patience | None = None
        device = fleet.flat.device
        self._replay_step, self._replay_check = Replay(device), Replay(device)
        self._batches: Batches | None = None
        if batch_size is not None and batch_size < len(rows):
            if seeds is None:
                raise ValueError("minibatches need seeds: one for each network of the fleet")
            n_rows = rows.lengths or len(rows)
            self._batches = Batches(n_rows, batch_size, seeds, device)

    @property
    def in_batches(self) -> bool:
        """Whether a step sees some of the rows."""
        return self._batches is not None

    def run(
        self,
        steps: int,
        *,
        stopping: Patience | None = None,
        validation: Rows | None = None,
        check_every: int = 1,
        progress: Progress | None = None,
    ) -> None:
        """Take `steps` steps; with `stopping`, check each network on `validation` as it goes.

        Best weights are not put back here: `stopping.restore` does that, for those who want it.
        """
        device = self.fleet.flat.device
        if stopping is not self._stopping:
            self._stopping = stopping
            self._replay_step, self._replay_check = Replay(device), Replay(device)
        ask_every = ASK_EVERY if device.type == "cuda" else 1
        for done in range(1, steps + 1):
            if self._batches is not None:
                self._batches.advance()
            self._replay_step(self._step)
            self.steps_done += 1
            if stopping is not None and validation is not None and done % check_every == 0:
                self._replay_check(partial(self._check, validation))
                if (done // check_every) % ask_every == 0 and not bool(stopping.active.any()):
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
            active = None if self._stopping is None else self._stopping.active
            if active is not None and target.device.type == "cpu" and bool(active.all()):
                active = None  # a look at the host, which a captured graph could not take
            before = None if active is None else target.clone()
            self.optimizer.update(target, grad)
            if active is not None and before is not None:
                target.copy_(torch.where(active.unsqueeze(1), target, before))
            self.losses.copy_(losses.detach())

    def _check(self, rows: Rows) -> None:
        assert self._stopping is not None
        with torch.no_grad():
            self._stopping.update(self.objective(self.fleet.flat, rows), self.fleet.flat)

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


def train(
    fleet: Fleet,
    rows: Rows,
    objective: Objective,
    optimizer: Optimizer,
    steps: int,
    *,
    validation: Rows | None = None,
    patience: int | None = None,
    check_every: int = 10,
    keep: str = "best",
    batch_size: int | None = None,
    seeds: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> list[int]:
    """Train a fleet in place, from start to end; the best step of each network.

    Without `patience`, or rows to watch, all steps are taken and the last weights kept; else a
    network stops after so many checks without improvement, and gets its best weights back unless
    `keep` is "last". Where no check ever improved, the last step counts as the best.
    """
    trainer = Trainer(fleet, rows, objective, optimizer, batch_size=batch_size, seeds=seeds)
    if patience is None or validation is None:
        trainer.run(steps, progress=progress)
        return [steps] * len(fleet)
    rule = Patience(fleet.flat, patience, sooner=trainer.in_batches)
    trainer.run(
        steps, stopping=rule, validation=validation, check_every=check_every, progress=progress
    )
    if keep == "best":
        rule.restore(fleet.flat)
    return [step * check_every or trainer.steps_done for step in rule.best_step.tolist()]
