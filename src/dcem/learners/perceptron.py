"""A small multilayer perceptron in NumPy: minibatches, a gradient by hand, no torch.

Networks of a few thousand weights on batches of a few hundred rows spend their time between the
products, not in them; here a step costs a few dozen calls, however many networks are trained: M of
them move together, their parameters stacked as `[M, P]`. What they are trained towards is the
caller's affair: `train` is given the slope of a loss in the log-odds, and held-out losses to stop
by. (`dcem.engine` trains large fleets, on GPUs too.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from scipy.special import expit

from dcem.learners.learner import SCORED_AT_ONCE, LearnerBase, Sample, as_logit
from dcem.learners.preprocess import Scaling

HIDDEN = (64, 64, 64)

# (step, rows of the batch [M, B], log-odds [M, B]) -> derivative of each row's loss [M, B]
Slope = Callable[[int, np.ndarray, np.ndarray], np.ndarray]
Watch = Callable[[int, np.ndarray], float]  # (network, log-odds of its held-out rows) -> loss


@dataclass(frozen=True)
class Schedule:
    """How long, how fast, and when to stop."""

    steps: int = 1200
    batch: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    check_every: int = 20
    patience: int = 400  # steps without a lower held-out loss


class Stack:
    """M networks of one shape: parameters `[M, P]`, and views of them layer by layer."""

    def __init__(self, sizes: Sequence[int], flat: np.ndarray):
        self.sizes, self.flat = tuple(sizes), flat
        self.weights, self.biases = self.views(flat)

    @classmethod
    def initial(cls, sizes: Sequence[int], seeds: Sequence[int]) -> Stack:
        """Uniform weights, as wide as the square root of the inputs of a layer is small."""
        made = cls(sizes, np.empty((len(seeds), n_parameters(sizes)), np.float32))
        for m, seed in enumerate(seeds):
            rng = np.random.default_rng(seed)
            for weight, bias in zip(made.weights, made.biases, strict=True):
                bound = 1 / np.sqrt(weight.shape[1])
                weight[m] = rng.uniform(-bound, bound, weight.shape[1:])
                bias[m] = rng.uniform(-bound, bound, bias.shape[1:])
        return made

    def views(self, flat: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Weights `[M, in, out]` and biases `[M, 1, out]` within `flat [M, P]`."""
        weights, biases, at = [], [], 0
        for n_in, n_out in pairwise(self.sizes):
            weights.append(flat[:, at : at + n_in * n_out].reshape(len(flat), n_in, n_out))
            at += n_in * n_out
            biases.append(flat[:, None, at : at + n_out])
            at += n_out
        return weights, biases

    def forward(self, x: np.ndarray) -> list[np.ndarray]:
        """Activations `[M, B, width]` of each layer for inputs `[M, B, d]`; log-odds come last."""
        layers = [x]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = layers[-1] @ weight
            hidden += bias
            layers.append(np.maximum(hidden, 0, out=hidden))
        layers.append(layers[-1] @ self.weights[-1] + self.biases[-1])
        return layers

    def log_odds(self, x: np.ndarray) -> np.ndarray:
        """`[M, B]`."""
        return self.forward(x)[-1][..., 0]

    def gradient(self, layers: list[np.ndarray], slope: np.ndarray, out: np.ndarray) -> None:
        """Write the gradient `[M, P]`, given activations and the slope of the loss `[M, B]`."""
        weights, biases = self.views(out)
        upstream = slope[..., None]
        for depth in range(len(weights) - 1, -1, -1):
            np.matmul(layers[depth].transpose(0, 2, 1), upstream, out=weights[depth])
            biases[depth][:, 0] = upstream.sum(axis=1)
            if depth:
                upstream = upstream @ self.weights[depth].transpose(0, 2, 1)
                upstream *= layers[depth] > 0


def n_parameters(sizes: Sequence[int]) -> int:
    """Numbers that a network of these widths has."""
    return sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))


def train(
    stack: Stack,
    inputs: np.ndarray,
    batches: Iterator[np.ndarray],
    slope: Slope,
    held: Sequence[np.ndarray],
    watch: Watch,
    schedule: Schedule,
) -> None:
    """Train a stack in place by Adam, each network until its held-out loss falls no more.

    Parameters
    ----------
    inputs
        Rows `[n, d]`, shared by all networks.
    batches
        Rows of the next step `[M, B]`.
    held, watch
        Held-out inputs of each network, and its loss there; the weights of the lowest are kept.
    """
    patience = max(schedule.patience, schedule.check_every)  # or the first check comes too late
    flat, gradient = stack.flat, np.empty_like(stack.flat)
    mean, square = np.zeros_like(flat), np.zeros_like(flat)
    best, kept, at = np.full(len(flat), np.inf), flat.copy(), np.zeros(len(flat), int)
    for step in range(1, schedule.steps + 1):
        rows = next(batches)
        layers = stack.forward(inputs[rows])
        given = slope(step, rows, layers[-1][..., 0]) / rows.shape[1]
        stack.gradient(layers, given.astype(np.float32, copy=False), gradient)
        gradient += np.float32(schedule.weight_decay) * flat
        mean += np.float32(0.1) * (gradient - mean)
        gradient *= gradient
        square += np.float32(0.001) * (gradient - square)
        rate = schedule.learning_rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        flat -= np.float32(rate) * mean / (np.sqrt(square) + np.float32(1e-8))
        if step % schedule.check_every == 0 or step == schedule.steps:  # few steps count, too
            for m, rows_of in enumerate(held):
                if step - at[m] > patience:
                    continue
                loss = watch(m, Stack(stack.sizes, flat[m : m + 1]).log_odds(rows_of[None])[0])
                if loss < best[m]:
                    best[m], kept[m], at[m] = loss, flat[m], step
            if (step - at >= patience).all():
                break
    flat[:] = kept


def shuffled(
    choices: Sequence[np.ndarray], size: int, seeds: Sequence[int]
) -> Iterator[np.ndarray]:
    """Batches `[M, size]`: each network walks through permutations of the rows it may see."""
    generators = [np.random.default_rng(seed) for seed in seeds]
    waiting = [np.empty(0, np.int64) for _ in choices]
    while True:
        for m, (rows, rng) in enumerate(zip(choices, generators, strict=True)):
            while len(waiting[m]) < size:
                waiting[m] = np.concatenate([waiting[m], rng.permutation(rows)])
        yield np.stack([queue[:size] for queue in waiting])
        waiting = [queue[size:] for queue in waiting]


def _stacked_log_odds(
    networks: Sequence[Perceptron], X: np.ndarray, exact: bool, *, scaled: bool = False
) -> np.ndarray:
    """Log-odds `[M, n]` of networks whose inputs are scaled alike; of inputs, if `scaled`.

    Blocks are filled up to one size: what a product adds up in which order depends on its shape.
    """
    kind = np.float64 if exact else np.float32
    flat = np.concatenate([one.stack.flat for one in networks]).astype(kind)
    stack, z = Stack(networks[0].stack.sizes, flat), np.empty((len(networks), len(X)))
    for start in range(0, len(X), SCORED_AT_ONCE):
        rows = X[start : start + SCORED_AT_ONCE]
        rows = rows if scaled else networks[0].scaling(rows)
        inputs = np.zeros((SCORED_AT_ONCE, rows.shape[1]), kind)
        inputs[: len(rows)] = rows
        z[:, start : start + SCORED_AT_ONCE] = stack.log_odds(inputs[None])[:, : len(rows)]
    return as_logit(z) if networks[0].squared else z


class Perceptron(LearnerBase):
    """Three hidden layers of 64, stopped by held-out rows."""

    name = "perceptron"
    words = "a small network"

    @classmethod
    def of(cls, scaling: Scaling, stack: Stack, n_features: int) -> list[Self]:
        """One learner for each network of a trained stack."""
        made = []
        for m in range(len(stack.flat)):
            one = cls()
            one.scaling, one.n_features = scaling, n_features
            one.stack = Stack(stack.sizes, stack.flat[m : m + 1].copy())
            made.append(one)
        return made

    def _prepare(self, sample: Sample) -> None:
        self.scaling = Scaling.fit(sample.X, sample.person)
        self.stack = Stack.initial((len(self.scaling.center), *HIDDEN, 1), [self.seed])

    def _say(self, value: float) -> None:
        self.stack.flat[:] = 0
        self.stack.biases[-1][:] = value

    def _learn(self, sample: Sample, held: Sample | None) -> None:
        """Without rows held out it takes a quarter of the steps."""
        _, y, weight, *_ = sample
        evidence, watched = sample.evidence, sample if held is None else held
        schedule = Schedule() if held is not None else Schedule(steps=Schedule.steps // 4)

        def slope(step: int, rows: np.ndarray, z: np.ndarray) -> np.ndarray:
            known = y[rows] if evidence is None else expit(z + evidence[rows])
            return weight[rows] * ((z if self.squared else expit(z)) - known)

        def watch(network: int, z: np.ndarray) -> float:
            return self._loss(z, watched)

        size = min(schedule.batch, len(y))
        batches = shuffled([np.arange(len(y))], size, [self.seed])
        inputs, to_watch = self.scaling(sample.X), [self.scaling(watched.X)]
        train(self.stack, inputs, batches, slope, to_watch, watch, schedule)

    def predict_logit(self, X: np.ndarray) -> np.ndarray:
        """In float64, where the score of a row does not depend on its company."""
        return _stacked_log_odds([self], X, exact=True)[0]

    def predict_scaled(self, inputs: np.ndarray) -> np.ndarray:
        """`predict_logit` of rows that are inputs already, as `scaling` makes them."""
        return _stacked_log_odds([self], inputs, exact=True, scaled=True)[0]

    @classmethod
    def predict_logits(cls, networks: Sequence[Self], X: np.ndarray, *, exact: bool) -> np.ndarray:
        """Log-odds `[M, n]` of several networks; in float32 unless `exact` ones are asked for."""
        first = networks[0].scaling
        if all(first.is_like(one.scaling) for one in networks[1:]):
            return _stacked_log_odds(networks, X, exact)
        return np.concatenate([_stacked_log_odds([one], X, exact) for one in networks])

    def arrays(self) -> dict[str, np.ndarray]:
        """All that was learnt."""
        return {
            "sizes": np.array(self.stack.sizes),
            "flat": self.stack.flat,
            "squared": np.array([float(self.squared)]),
            **self.scaling.arrays(),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_features: int) -> Self:
        """The inverse of `arrays`."""
        made = cls(squared=bool(arrays["squared"].any()))
        scaling, flat = Scaling.from_arrays(arrays, n_features), arrays["flat"]
        sizes = arrays["sizes"].tolist()
        if len(sizes) < 2 or min(sizes) < 1 or (sizes[0], sizes[-1]) != (len(scaling.center), 1):
            raise ValueError("the layers of the network do not fit the features")
        if flat.dtype != np.float32 or flat.shape != (1, n_parameters(sizes)):
            raise ValueError("the parameters of the network do not fit its layers")
        made.n_features = n_features
        made.scaling, made.stack = scaling, Stack(sizes, flat)
        return made
