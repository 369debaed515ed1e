"""The parts of the ensemble, each fitted once per fold, several at a time.

A part is a list of learners, one per fold: the k-th never saw the people of fold k. So there is a
score for every row by a model that does not know it, and the mean of the list is an ensemble.

Threads do the fitting. Boosted trees, forests and linear models leave Python while they work, and
all networks train as one stack: the time is about that of the networks, if there are two cores.
Their steps are too small for threads, so where there are many cores and rows, each network has a
process; only they need to know who is tested, and the other parts begin beside the models of that.
Every piece of work has its own seed, and threads share out trees alone, so that results do not
depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import current_process
from threading import Lock
from typing import Any

import numpy as np
from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor
from scipy.special import expit
from threadpoolctl import threadpool_limits

from dcem.estimation.folds import person_folds
from dcem.estimation.influence import FEWEST_PEOPLE
from dcem.learners import make_learner
from dcem.learners.learner import losses
from dcem.learners.perceptron import (
    HIDDEN,
    Perceptron,
    Schedule,
    Stack,
    shuffled,
    train,
)
from dcem.learners.preprocess import Scaling
from dcem.methods.support import with_group
from dcem.methods.tables import Table
from dcem.table.labels import SelectiveLabels

PARTS = ("network", "boost", "forest", "linear")
LONGEST_FIRST = ("forest", "boost", "linear")
# One of several models, once per fold, can be smaller than a model that stands alone.
OPTIONS: dict[str, dict[str, Any]] = {
    "boost": {"quick": True},
    "forest": {"trees": 60, "share": 0.5},
    "linear": {"drawn_in": True},
}
# The models of testing learn from and stop by so many rows, and rows times columns, at most.
ROWS_FOR_TESTING, CELLS_FOR_TESTING = 60_000, 3_000_000
LARGEST_LOG_ODDS = 7.0  # of being tested
TESTED_SHARE = 0.5  # of a batch, at least
TWICE = np.float32(np.log(2))  # the M-step counts tested positives twice: undone for results
PACES = (5, 10, 20, 40)  # steps between two renewals of the pseudo-labels
TESTING_TAKES, OTHERS_TAKE = 0.2, 0.1  # the time of a model, in that of all networks
ASKED = 1_000  # rows that every model is asked about, at most
STOPPED_BY = 5_000  # held-out tests of a network, at most
ROWS_FOR_PROCESSES, CORES_FOR_PROCESSES = 100_000, 8  # below, starting them takes longer
STEPS_IF_ALL_TESTED = 80  # times the share tested, and the nearest of the paces


@dataclass(frozen=True, eq=False)
class Parts:
    """What came out of the folds.

    Attributes
    ----------
    models
        Part -> one learner per fold.
    log_odds
        Part -> out-of-fold log-odds of all rows `[n]`.
    testing
        Out-of-fold probability of being tested `[n]`.
    testing_model
        A model of it, fitted to all folds but one.
    asked, by_model
        Some rows, untested ones where there are enough, and part -> their log-odds by the model of
        each fold `[folds, asked]`.
    """

    models: dict[str, list[Any]]
    log_odds: dict[str, np.ndarray]
    testing: np.ndarray
    testing_model: Any
    asked: np.ndarray
    by_model: dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Start:
    """Earlier networks, and the rows whose tests they never saw `[n]`: only these may judge."""

    networks: list[Perceptron]
    unseen: np.ndarray

    def of(self, k: int) -> Start:
        """Where the network of fold `k` begins."""
        return Start([self.networks[k % len(self.networks)]], self.unseen)


class Tally:
    """Work that several threads do, told to whoever waits."""

    def __init__(self, total: int, tell: Callable[[int, int], None] | None) -> None:
        self.total, self.tell = total, tell
        self.done, self.lock = 0, Lock()

    def add(self, work: int) -> None:
        """So much more is done."""
        with self.lock:
            self.done = min(self.done + work, self.total)
            if self.tell is not None:
                self.tell(self.done, self.total)


def folds_of(problem: SelectiveLabels, n_folds: int, seed: int) -> np.ndarray | None:
    """The fold of each row `[n]`; None where too few were tested of a class to have any."""
    person, y = problem.person[problem.tested], problem.y_obs[problem.tested]
    fewest = min(len(np.unique(person[y == value])) for value in (0, 1))
    number = min(n_folds, fewest // 2)
    return person_folds(problem, number, seed) if number > 1 else None


def fit_parts(
    names: tuple[str, ...],
    table: Table,
    standard: Table,
    fold: np.ndarray | None,
    n_groups: int,
    *,
    seed: int,
    steps: int,
    n_jobs: int | None,
    start: Start | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Parts:
    """Fit every part in every fold.

    Parameters
    ----------
    table, standard
        The rows with their gaps, and as the method's preprocessor has them.
    fold
        Of each row; None fits every model to all rows.
    start
        Where the networks begin, if not at random weights.
    progress
        Told the work that is done, and all of it, in steps of the networks.
    """
    numbers = np.array([0]) if fold is None else np.unique(fold)
    inside = [np.zeros(len(table), bool) if fold is None else fold == k for k in numbers]
    tested = table.tested > 0
    policy = with_group(standard.X, table.group, n_groups, interactions=False)

    most = min(ROWS_FOR_TESTING, max(CELLS_FOR_TESTING // policy.shape[1], 5_000))
    few = np.random.default_rng(seed).permutation(len(table)) < most

    policy_work, other_work = round(TESTING_TAKES * steps), round(OTHERS_TAKE * steps)
    n_others = sum(name != "network" for name in names)
    work = len(numbers) * (policy_work + n_others * other_work) + steps * ("network" in names)
    tally = Tally(work, progress)

    def testing(k: int) -> Any:
        learns, held = ~inside[k] & few, inside[k] & few
        fitted = _fitted("boost", policy, table.tested, table, learns, held, seed + k)
        tally.add(policy_work)
        return fitted

    cores = n_jobs or cpu_count()
    spare = max(1, cores // (2 * len(numbers)))  # threads of a forest, which takes longest

    def learner(name: str, k: int) -> Any:
        learns, held = ~inside[k] & tested, inside[k] & tested
        fitted = _fitted(name, table.X, table.y, table, learns, held, seed + k, spare)
        tally.add(other_work)
        return fitted

    def inputs() -> tuple[Scaling, Table]:
        scaling = start.networks[0].scaling if start else Scaling.fit(table.X, table.person)
        return scaling, replace(table, X=scaling(table.X))

    apart = None
    wide = cores >= CORES_FOR_PROCESSES and len(table) >= ROWS_FOR_PROCESSES
    if wide and "network" in names and not current_process().daemon:  # daemons have no children
        apart = _processes(len(numbers))
        for _ in numbers:
            apart.submit(_network_apart)  # they import while the models of testing are fitted
    with (
        threadpool_limits(1),
        ThreadPoolExecutor(max(1, min(cores, 4 * len(numbers)))) as workers,
    ):
        of_testing = [workers.submit(testing, k) for k in range(len(numbers))]
        pending: dict[str, list[Future[Any]]] = {}

        def begin(part: str) -> None:
            pending[part] = [workers.submit(learner, part, k) for k in range(len(numbers))]

        others = sorted(set(names) - {"network"}, key=LONGEST_FIRST.index)
        scaled = workers.submit(inputs) if "network" in names else None
        early = others[: max(0, cores // len(numbers) - 1)]  # for which there is room
        for part in early:
            begin(part)
        policies = [one.result() for one in of_testing]
        z_tested = _out_of_fold(policies, inside, policy, workers)
        if scaled is not None:
            scaling, rows = scaled.result()
            if apart is None:
                args = scaling, rows, inside, z_tested, seed, steps, start
                pending["network"] = [workers.submit(fit_networks, *args, tally=tally)]
            else:
                pending["network"] = [
                    apart.submit(
                        _network_apart,
                        *(scaling, rows, [inside[k]], z_tested, seed + k, steps),
                        start.of(k) if start else None,
                    )
                    for k in range(len(numbers))
                ]
        for part in others[len(early) :]:
            begin(part)
        models = {name: [one.result() for one in pending[name]] for name in names}
        if "network" in names:  # a piece of work was a whole stack, if of one
            models["network"] = [network for stack in models["network"] for network in stack]
            tally.add(0 if apart is None else steps)
        log_odds = {name: _out_of_fold(models[name], inside, table.X, workers) for name in names}
        asked = np.flatnonzero(~tested if (~tested).sum() >= FEWEST_PEOPLE else tested)
        asked = asked[:: -(-len(asked) // ASKED)]
        by_model = {name: _by_model(models[name], table.X[asked]) for name in names}
    return Parts(models, log_odds, expit(z_tested), policies[0], asked, by_model)


def _fitted(
    name: str,
    X: np.ndarray,
    y: np.ndarray,
    table: Table,
    learns: np.ndarray,
    held: np.ndarray,
    seed: int,
    threads: int = 1,
) -> Any:
    """A learner of some rows, which chooses by others where there are any."""
    options = OPTIONS.get(name, {}) | ({"threads": threads} if name == "forest" else {})
    rates = None if table.rates is None or y is not table.y else table.rates
    of_held, of_learns = (None if rates is None else rates[rows] for rows in (held, learns))
    validation = (X[held], y[held], table.weight[held], of_held) if held.any() else None
    person = None if table.person is None else table.person[learns]
    return make_learner(name, seed, **options).fit(
        X[learns], y[learns], table.weight[learns], validation, person, of_learns
    )


def _out_of_fold(
    models: list[Any], inside: list[np.ndarray], X: np.ndarray, workers: Executor
) -> np.ndarray:
    """Log-odds of each row by the model that did not see it; by the only one, if there is one."""
    places = inside if len(models) > 1 else [~inside[0]]
    z = np.empty(len(X))
    scored = workers.map(lambda model, rows: model.predict_logit(X[rows]), models, places)
    for rows, found in zip(places, scored, strict=True):
        z[rows] = found
    return z


def _by_model(models: list[Any], X: np.ndarray) -> np.ndarray:
    return np.stack([model.predict_logit(X) for model in models])


# -- dcem in minibatches ----------------------------------------------------------------------


def fit_networks(
    scaling: Scaling,
    table: Table,
    inside: list[np.ndarray],
    testing: np.ndarray,
    seed: int,
    steps: int,
    start: Start | None = None,
    *,
    tally: Tally,
) -> list[Perceptron]:
    """DCEM with small networks: one per fold, which does not learn from the rows inside it.

    Pseudo-labels are renewed every few steps, as in `dcem`; batches are drawn so that at least
    half of their rows are tested, and weights undo that. Held-out tested rows say when to stop; for
    networks with a `start`, those among them that they have not seen before. The features of the
    `table` are inputs already, as `scaling` made them.
    """
    tested, y, told = table.tested > 0, table.y.astype(np.float32), table.get("evidence")
    weight = (table.weight / table.weight.mean()).astype(np.float32)
    u = np.clip(testing, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS).astype(np.float32)
    log_untested = -np.logaddexp(0, u)
    inputs = table.X
    seeds = [seed + k for k in range(len(inside))]
    stack = Stack.initial((inputs.shape[1], *HIDDEN, 1), seeds)
    if start:
        for k in range(len(inside)):
            stack.flat[k] = start.of(k).networks[0].stack.flat[0]
    teacher = Stack(stack.sizes, stack.flat.copy())
    schedule = Schedule(steps=steps, patience=Schedule.patience // (2 if start else 1))
    share = float(np.average(tested, weights=table.weight))
    distance = np.abs(np.log(PACES) - np.log(max(share * STEPS_IF_ALL_TESTED, 1)))
    pace = PACES[int(distance.argmin())]
    batches, n_tested, factors = _half_tested(inside, tested, schedule.batch, seeds)

    def slope(step: int, rows: np.ndarray, z: np.ndarray) -> np.ndarray:
        if step % pace == 0:
            teacher.flat[:] = stack.flat
            tally.add(pace)
        q = y[rows]  # [M, B]: first the tested, whose labels are known
        q[:, n_tested:] = expit(teacher.log_odds(inputs[rows[:, n_tested:]]))
        found = y[rows]
        if told is not None:  # ... or guessed given their results: as far as positive, found
            q[:, :n_tested] = expit(z[:, :n_tested] - TWICE + told[rows[:, :n_tested]])
            found[:, :n_tested] = 1
        return weight[rows] * factors * mstep_slope(z, q, found, log_untested[rows])

    judges = tested & start.unseen if start else tested
    held = [np.flatnonzero((rows if rows.any() else ~rows) & judges) for rows in inside]
    held = [
        np.sort(np.random.default_rng(own).permutation(rows)[:STOPPED_BY])
        for rows, own in zip(held, seeds, strict=True)
    ]

    def watch(network: int, z: np.ndarray) -> float:
        rows = held[network]
        if told is not None:
            return float(np.average(losses(z - TWICE, y[rows], told[rows]), weights=weight[rows]))
        return mstep_loss(z, y[rows], u[rows], weight[rows])

    train(stack, inputs, batches, slope, [inputs[rows] for rows in held], watch, schedule)
    return Perceptron.of(scaling, stack, len(scaling.preprocessor.median))


@lru_cache
def _processes(number: int) -> Executor:
    """Processes that end when they had nothing to do for a while, and start again when asked."""
    return ProcessPoolExecutor(number, timeout=10)


def _network_apart(*given: Any) -> list[Perceptron]:
    """`fit_networks` in a process of its own; without arguments, just be there."""
    if not given:
        return []
    with threadpool_limits(1):
        return fit_networks(*given, tally=Tally(0, None))


def _half_tested(
    inside: list[np.ndarray], tested: np.ndarray, size: int, seeds: list[int]
) -> tuple[Iterator[np.ndarray], int, np.ndarray]:
    """Batches `[M, B]`, tested rows first; how many these are; and what each row counts `[B]`."""
    share = float(tested.mean())
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
    """Derivative in the log-odds of the M-step loss of each row; see `dcem.methods.mstep`."""
    f = expit(z)
    return np.asarray(f - q + q * (f - np.where(y > 0, 1, expit(z + log_untested))))


def mstep_loss(z: np.ndarray, y: np.ndarray, u: np.ndarray, weight: np.ndarray) -> float:
    """The mean M-step loss of tested rows, whose pseudo-labels are their labels."""
    positive = np.logaddexp(0, z) - z
    return float(
        np.average(
            np.where(y > 0, 2 * positive + np.logaddexp(0, -u), np.logaddexp(0, z)), weights=weight
        )
    )
