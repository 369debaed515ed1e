"""DCEM with small networks in minibatches, which learn from the untested too.

Where there are many cores and rows, each network trains in a process of its own. Such a process
imports this file and what it needs, which is little, and so begins soon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from dcem.learners.learner import losses
from dcem.learners.perceptron import HIDDEN, Perceptron, Schedule, Stack, shuffled, train
from dcem.methods.em import pace_of

if TYPE_CHECKING:
    from dcem.learners.preprocess import Scaling
    from dcem.methods.training_table import TrainingTable

LARGEST_LOG_ODDS = 7.0  # of being tested
TESTED_SHARE = 0.5  # of a batch, at least
TWICE = np.float32(np.log(2))  # the M-step counts tested positives twice: undone for results
RARE, CLEARLY = 0.1, 2.0  # a share of tests; standard errors of a trend
STOPPED_BY = 5_000  # held-out tests of a network, at most


class LearningRows(NamedTuple):
    """What networks learn from; arrays `[n]`, and float32 but for `tested`."""

    inputs: np.ndarray  # [n, d]
    y: np.ndarray  # 0 where nobody looked
    tested: np.ndarray  # bool
    weight: np.ndarray  # of mean 1
    u: np.ndarray  # log-odds of being tested
    evidence: np.ndarray | None  # of results, where tests err

    @classmethod
    def of(cls, table: TrainingTable, inputs: np.ndarray, testing: np.ndarray) -> LearningRows:
        """The rows of a table, with their inputs and log-odds of being tested."""
        return cls(
            inputs,
            table.y.astype(np.float32),
            table.tested > 0,
            (table.weight / table.weight.mean()).astype(np.float32),
            np.clip(testing, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS).astype(np.float32),
            table.get("evidence"),
        )


def first_guess(table: TrainingTable, testing: np.ndarray) -> float:
    """The log-odds at which networks begin, given everybody's log-odds of being tested `[n]`.

    What they say first of people far from any test confirms itself, and the truth there is not
    known. So they begin at even odds, unless tests speak clearly against it: where one result is
    rare, and the rarer the less likely a test was, at the odds of the tests.
    """
    seen = table.tested > 0
    y, weight = table.y[seen], table.weight[seen]
    rate = np.average(y, weights=weight)
    if not 0 < min(rate, 1 - rate) < RARE:
        return 0.0
    u = np.clip(testing[seen], -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    together = weight * (u - np.average(u, weights=weight)) * (y - rate)
    people = together if table.person is None else np.bincount(table.person[seen], together)
    errors = together.sum() / max(np.sqrt(people @ people), 1e-12)
    return float(logit(rate)) if (errors if rate < 0.5 else -errors) > CLEARLY else 0.0


class ScoredModel(NamedTuple):
    """A model, and its log-odds of the rows it did not see and of those all are asked about."""

    model: Any
    held: np.ndarray
    asked: np.ndarray


@dataclass(frozen=True, eq=False)
class Start:
    """Earlier networks, and the rows whose tests they never saw `[n]`: only these may judge."""

    networks: list[Perceptron]
    unseen: np.ndarray

    def of(self, folds: Sequence[int]) -> Start:
        """Where the networks of these folds begin."""
        return Start([self.networks[k % len(self.networks)] for k in folds], self.unseen)


def fit_networks(
    scaling: Scaling,
    rows: LearningRows,
    inside: list[np.ndarray],
    places: list[np.ndarray],
    asked: np.ndarray,
    seed: int,
    steps: int,
    start: Start | None = None,
    guess: float = 0.0,
    untested: bool = True,
    tell: Callable[[int], None] = lambda steps: None,
) -> list[ScoredModel]:
    """One network per fold, which does not learn from the rows inside it, and scores its `places`.

    Pseudo-labels are renewed every few steps, as in `dcem`; batches are drawn so that at least
    half of their rows are tested, and weights undo that. Held-out tested rows say when to stop; for
    networks with a `start`, those among them that they have not seen before. The inputs of the rows
    are as `scaling` makes them; without a `start`, networks begin near the log-odds `guess`; they
    learn from the `untested` where there are any; `tell` hears of steps that are done.
    """
    inputs, y, tested, weight, u, evidence = rows
    log_untested = -np.logaddexp(0, u)
    seeds = [seed + k for k in range(len(inside))]
    stack = Stack.initial((inputs.shape[1], *HIDDEN, 1), seeds)
    stack.biases[-1] += guess
    if start:
        stack.flat[:] = [one.stack.flat[0] for one in start.networks]
    teacher = Stack(stack.sizes, stack.flat.copy())
    schedule = Schedule(steps=steps, patience=steps // (6 if start else 3))
    pace = pace_of(tested, weight)
    batches, n_tested, factors = _half_tested(inside, tested, schedule.batch, seeds, untested)

    def slope(step: int, at: np.ndarray, z: np.ndarray) -> np.ndarray:
        if step % pace == 0:
            teacher.flat[:] = stack.flat
            tell(pace)
        q = y[at]  # [M, B]: first the tested, whose labels are known
        q[:, n_tested:] = expit(teacher.log_odds(inputs[at[:, n_tested:]]))
        found = y[at]
        if evidence is not None:  # ... or guessed given their results: as far as positive, found
            q[:, :n_tested] = expit(z[:, :n_tested] - TWICE + evidence[at[:, :n_tested]])
            found[:, :n_tested] = 1
        return weight[at] * factors * mstep_slope(z, q, found, log_untested[at])

    judges = tested & start.unseen if start else tested
    held = [np.flatnonzero((own if own.any() else ~own) & judges) for own in inside]
    held = [
        np.sort(np.random.default_rng(own).permutation(at)[:STOPPED_BY])
        for at, own in zip(held, seeds, strict=True)
    ]

    def watch(network: int, z: np.ndarray) -> float:
        at = held[network]
        if evidence is not None:
            return float(np.average(losses(z - TWICE, y[at], evidence[at]), weights=weight[at]))
        return loss_of_tested(z, y[at], u[at], weight[at])

    train(stack, inputs, batches, slope, [inputs[at] for at in held], watch, schedule)
    networks = Perceptron.of(scaling, stack, len(scaling.preprocessor.median))
    return [
        ScoredModel(one, *(one.predict_scaled(inputs[at]) for at in (place, asked)))
        for one, place in zip(networks, places, strict=True)
    ]


def be_ready() -> None:
    """What a process is asked first: to be there, with this file imported."""


def _half_tested(
    inside: list[np.ndarray],
    tested: np.ndarray,
    size: int,
    seeds: list[int],
    untested: bool = True,
) -> tuple[Iterator[np.ndarray], int, np.ndarray]:
    """Batches `[M, B]`, tested rows first; how many these are; and what each row counts `[B]`."""
    share = float(tested.mean()) if untested else 1.0
    size = min(size, len(tested))
    n_tested = round(size * max(TESTED_SHARE, share)) if share < 1 else size
    factors = np.repeat(
        np.array([share * size / n_tested, (1 - share) * size / max(size - n_tested, 1)]),
        (n_tested, size - n_tested),
    ).astype(np.float32)

    def walk(rows: Callable[[np.ndarray], np.ndarray], n: int, offset: int) -> Iterator[np.ndarray]:
        own = [np.flatnonzero(rows(one)) for one in inside]
        return shuffled(own, n, [seed + offset for seed in seeds])

    known = walk(lambda one: ~one & tested, n_tested, 0)
    if n_tested == size:
        return known, n_tested, factors
    unknown = walk(lambda one: ~one & ~tested, size - n_tested, 1 << 16)
    both = (np.concatenate(pair, axis=1) for pair in zip(known, unknown, strict=True))
    return both, n_tested, factors


def mstep_slope(
    z: np.ndarray, q: np.ndarray, y: np.ndarray, log_untested: np.ndarray
) -> np.ndarray:
    """Derivative in the log-odds of the M-step loss of each row; see `dcem.methods.em_networks`."""
    f = expit(z)
    return f - q + q * (f - np.where(y > 0, 1, expit(z + log_untested)))


def loss_of_tested(z: np.ndarray, y: np.ndarray, u: np.ndarray, weight: np.ndarray) -> float:
    """The mean M-step loss of tested rows, whose pseudo-labels are their labels."""
    positive = np.logaddexp(0, z) - z
    return float(
        np.average(
            np.where(y > 0, 2 * positive + np.logaddexp(0, -u), np.logaddexp(0, z)), weights=weight
        )
    )
