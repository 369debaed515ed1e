"""The parts of the ensemble, each fitted once per fold, several at a time.

A part is a list of learners, one per fold: the k-th never saw the people of fold k. So there is a
score for every row by a model that does not know it, and the mean of the list is an ensemble.

Threads do the fitting. Boosted trees, forests and linear models leave Python while they work, and
all networks train as one stack: the time is about that of the networks, if there are two cores.
Their steps are too small for threads, so where there are many cores and rows, each network has a
process, which waits for the models of who is tested and for nothing else; only the forests, which
take longest, begin beside these models. Who fits a model also scores the rows that it did not see.
Every piece of work has its own seed, and threads share out trees alone, so that results do not
depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import current_process
from threading import Lock
from typing import Any, Self

import numpy as np
from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor
from scipy.special import expit

from dcem.estimation.folds import person_folds
from dcem.estimation.influence import FEWEST_PEOPLE, kish
from dcem.learners import Sample, make_learner
from dcem.learners.preprocess import Scaling
from dcem.methods.minibatches import (
    LearningRows,
    ScoredModel,
    Start,
    be_ready,
    first_guess,
    fit_networks,
)
from dcem.methods.support import with_group
from dcem.methods.training_table import TrainingTable
from dcem.parallel import one_thread
from dcem.table.labels import SelectiveLabels

PARTS = ("network", "boost", "forest", "linear", "smooth")
LONGEST_FIRST = ("forest", "boost", "smooth", "linear")
# One of several models, once per fold, can be smaller than a model that stands alone.
OPTIONS: dict[str, dict[str, Any]] = {
    "boost": {"quick": True},
    "forest": {"trees": 60, "share": 0.5},
    "linear": {"drawn_in": True},
}
# The models of testing learn from and stop by so many rows, and rows times columns, at most.
ROWS_FOR_TESTING, CELLS_FOR_TESTING = 60_000, 3_000_000
TESTING_TAKES, OTHERS_TAKE = 0.2, 0.1  # the time of a model, in that of all networks
ASKED = 1_000  # rows that every model is asked about, at most
ROWS_FOR_PROCESSES, CORES_FOR_PROCESSES = 100_000, 8  # below, starting them takes longer


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


class SharedProgress:
    """Work that several threads do, told to whoever waits; ended early where that fails."""

    def __init__(self, total: int, tell: Callable[[int, int], None] | None) -> None:
        self.total, self.tell = total, tell
        self.done, self.lock, self.ended = 0, Lock(), False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        self.ended = kind is not None

    def add(self, work: int) -> None:
        """So much more is done; whoever still works when nobody waits any more stops here."""
        if self.ended:
            raise CancelledError
        with self.lock:
            self.done = min(self.done + work, self.total)
            if self.tell is not None:
                self.tell(self.done, self.total)


def folds_of(problem: SelectiveLabels, n_folds: int, seed: int) -> np.ndarray | None:
    """The fold of each row `[n]`; None where too few were tested of a class to have any.

    People of very uneven weights are as few as tell as much if they all weigh the same.
    """
    fewest = min(
        _effective_people(problem, problem.tested & (problem.y_obs == value)) for value in (0, 1)
    )
    number = min(n_folds, fewest // 2)
    return person_folds(problem, number, seed) if number > 1 else None


def _effective_people(problem: SelectiveLabels, rows: np.ndarray) -> int:
    """How many people of equal weight tell as much as those of some rows.

    A person counts by the mean weight of their rows: how many these are makes nobody fewer.
    """
    person = np.unique(problem.person[rows], return_inverse=True)[1]
    of_person = np.bincount(person, problem.weights[rows]) / np.bincount(person)
    return int(kish(of_person) + 1e-6)  # of equal weights their number, whatever the rounding


def fit_parts(
    names: tuple[str, ...],
    table: TrainingTable,
    standard: TrainingTable,
    fold: np.ndarray | None,
    n_groups: int,
    *,
    seed: int,
    steps: int,
    n_jobs: int | None,
    start: Start | None = None,
    progress: Callable[[int, int], None] | None = None,
    beside: Callable[[], Any] = lambda: None,
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
    beside
        Other work on the same rows, to be done meanwhile.
    """
    numbers = np.array([0]) if fold is None else np.unique(fold)
    inside = [np.zeros(len(table), bool) if fold is None else fold == k for k in numbers]
    places = inside if len(numbers) > 1 else [~inside[0]]  # of the rows that each model scores
    tested = table.tested > 0
    asked = np.flatnonzero(~tested if (~tested).sum() >= FEWEST_PEOPLE else tested)
    asked = asked[:: -(-len(asked) // ASKED)]
    policy = with_group(standard.X, table.group, n_groups, interactions=False)

    most = min(ROWS_FOR_TESTING, max(CELLS_FOR_TESTING // policy.shape[1], 5_000))
    few = np.random.default_rng(seed).permutation(len(table)) < most

    policy_work, other_work = round(TESTING_TAKES * steps), round(OTHERS_TAKE * steps)
    n_others = sum(name != "network" for name in names)
    work = len(numbers) * (policy_work + n_others * other_work) + steps * ("network" in names)
    tally = SharedProgress(work, progress)

    def testing(k: int) -> tuple[Any, np.ndarray]:
        learns, held = ~inside[k] & few, inside[k] & few
        fitted = _fitted("boost", policy, table.tested, table, learns, held, seed + k)
        tally.add(policy_work)
        return fitted, fitted.predict_logit(policy[places[k]])

    cores = n_jobs or cpu_count()
    spare = max(1, cores // (2 * len(numbers)))  # threads of a forest, which takes longest

    def learner(name: str, k: int) -> ScoredModel:
        learns, held = ~inside[k] & tested, inside[k] & tested
        fitted = _fitted(name, table.X, table.y, table, learns, held, seed + k, spare)
        tally.add(other_work)
        z = [fitted.predict_logit(table.X[rows]) for rows in (places[k], asked)]
        return ScoredModel(fitted, *z)

    def inputs() -> tuple[Scaling, np.ndarray]:
        scaling = start.networks[0].scaling if start else Scaling.fit(table.X, table.person)
        return scaling, scaling(table.X)

    apart = None
    wide = cores >= CORES_FOR_PROCESSES and len(table) >= ROWS_FOR_PROCESSES
    if wide and "network" in names and not current_process().daemon:  # daemons have no children
        apart = _processes(len(numbers))
        for _ in numbers:
            apart.submit(be_ready)  # they import while the models of testing are fitted
    with (
        one_thread(),
        Threads(max(1, min(cores, 4 * len(numbers)))) as workers,
        tally,  # its end is what the threads see first
    ):
        of_testing = [workers.submit(testing, k) for k in range(len(numbers))]
        pending: dict[str, list[Future[ScoredModel]]] = {}

        def begin(part: str) -> None:
            pending[part] = [workers.submit(learner, part, k) for k in range(len(numbers))]

        others = sorted(set(names) - {"network"}, key=LONGEST_FIRST.index)
        scaled = workers.submit(inputs) if "network" in names else None
        early = others[: spare - 1]  # for which there is room
        for part in early:
            begin(part)
        policies, z_tested = [one.result() for one in of_testing], np.empty(len(table))
        for rows, (_, z) in zip(places, policies, strict=True):
            z_tested[rows] = z
        networks: list[Future[list[ScoredModel]]] = []
        if scaled is not None:
            scaling, made = scaled.result()
            given = scaling, LearningRows.of(table, made, z_tested)
            each, guess = range(len(numbers)), first_guess(table, z_tested)
            # all untested rows may be in one fold, and then its network has none to learn from
            untested = not any(tested[~one].all() for one in inside)
            fit: Callable[..., list[ScoredModel]] = fit_networks
            if apart is None:
                fit = partial(fit_networks, tell=tally.add)
            for stack in [each] if apart is None else [[k] for k in each]:
                own = [inside[k] for k in stack], [places[k] for k in stack], asked
                how = seed + stack[0], steps, start.of(stack) if start else None, guess, untested
                networks.append((apart or workers).submit(fit, *given, *own, *how))
        for part in others[len(early) :]:
            begin(part)
        workers.submit(beside)
        found = {name: [one.result() for one in of_part] for name, of_part in pending.items()}
        if networks:
            found["network"] = [one for task in networks for one in task.result()]
            tally.add(0 if apart is None else steps)
    log_odds = {name: np.empty(len(table)) for name in names}
    for name, of_part in found.items():
        for rows, one in zip(places, of_part, strict=True):
            log_odds[name][rows] = one.held
    return Parts(
        {name: [one.model for one in of_part] for name, of_part in found.items()},
        log_odds,
        expit(z_tested),
        policies[0][0],
        asked,
        {name: np.stack([one.asked for one in of_part]) for name, of_part in found.items()},
    )


class Threads(ThreadPoolExecutor):
    """Threads that leave what they have not begun, if their work fails or is interrupted."""

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> bool | None:
        if kind is not None:
            self.shutdown(wait=False, cancel_futures=True)
        return super().__exit__(kind, *rest)


@lru_cache
def _processes(number: int) -> Executor:
    """Processes that end when they had nothing to do for a while, and start again when asked."""
    one_thread = dict.fromkeys((f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL")), "1")
    return ProcessPoolExecutor(number, timeout=10, env=one_thread)


def _fitted(
    name: str,
    X: np.ndarray,
    y: np.ndarray,
    table: TrainingTable,
    learns: np.ndarray,
    held: np.ndarray,
    seed: int,
    threads: int = 1,
) -> Any:
    """A learner of some rows, which chooses by others where there are any."""
    options = OPTIONS.get(name, {}) | ({"threads": threads} if name == "forest" else {})
    rates = table.rates if y is table.y else None
    sample = Sample(X, y, table.weight, table.person, rates)
    chosen_by = sample.take(held) if held.any() else None
    return make_learner(name, seed, **options).fit(sample.take(learns), chosen_by)
