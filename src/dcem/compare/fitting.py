"""Methods fitted to parts of a table, and the scores of the people they did not see."""

from __future__ import annotations

import inspect
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed, parallel_config

from dcem import methods
from dcem.compare.results import FitHistory
from dcem.estimation.effects import PartQuestions
from dcem.estimation.folds import percentiles
from dcem.learners import LEARNERS, make_learner
from dcem.methods.choosing import DEFAULT, NETWORK_OF_TESTED, RIVALS, SIMPLE_RIVALS
from dcem.methods.registry import MEMBERS, METHODS, delivered, entry_of, works_here
from dcem.ray_cluster import shared_out
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import DataWarning, InputError, notice

Announce = Callable[[str], None]
TABLES_PER_FLEET = 4  # tables whose single networks are fitted as one fleet, at half the cost
FEW = 10_000  # rows to fit to, in all, below which networks of all tables are one fleet
WORTH_PROCESSES = 10.0  # seconds of fitting, which are more than it takes to start them
TAKES_A_WHILE = 2_000_000  # bytes of a file, to be read
# How long a fit takes, in units of three networks': for estimates of the time that is left.
COSTS = {"ensemble": 7.5, "ipw": 1.8, "dr-learner": 5.0, "self": 9.0, "dividemix": 9.0}
COSTS |= dict.fromkeys(("fuzzy-augmentation", "parcelling", "heckman"), 0.6)
COST_OF_EM, COST_WITHOUT_NETWORK = 3.0, 0.5
COST_OF_SINGLE = 0.32  # of it where models are single, the ensemble of two folds
_LOSSES = {
    "train_loss": "training",
    "validation_loss": "validation, everybody",
    "tested_validation_loss": "validation, the tested",
}
_ENDINGS = {
    "max_iter": "All allowed iterations were used.",
    "no_improvement": "Training stopped when the loss on tested validation rows no longer fell.",
}


@dataclass(frozen=True)
class Scored:
    """A method's scores of people it was not fitted to, and what is reported of its models."""

    members: np.ndarray  # [members, n] probability by each fit of the method
    fold: np.ndarray  # [n] whose models scored a person; people are ranked within it
    fills_in: bool = False  # whether the method gives the untested labels of its own
    history: FitHistory | None = None  # of the first fold
    seconds: float = 0.0  # of fitting
    answers: np.ndarray | None = None  # to the questions of its part
    notes: tuple[str, ...] = ()  # what fitting it had to say

    @property
    def score(self) -> np.ndarray:
        """The mean probability [n]: what is delivered."""
        return self.members.mean(axis=0)

    @cached_property
    def rank(self) -> np.ndarray:
        """By which people are ordered [n], comparable across folds."""
        return percentiles(self.score, self.fold)

    @property
    def without(self) -> np.ndarray:
        """Ranks where one fold lacks one member [folds, members, n]; none without repeated fits."""
        folds = np.unique(self.fold)
        n_members, n = self.members.shape
        if n_members < 2:
            return np.empty((0, 0, n))
        total = self.members.sum(axis=0)
        ranks = np.stack([percentiles(total - one, self.fold) for one in self.members])
        inside = self.fold == folds[:, None]  # [folds, n]
        return np.where(inside[:, None], ranks, self.rank)


@dataclass(frozen=True)
class Part:
    """People to learn from, and people to score."""

    train: SelectiveLabels
    rows: SelectiveLabels
    validation: SelectiveLabels | None = None
    truth: Any = None  # (train, validation), for oracles
    asked: PartQuestions | None = None  # of whom of `rows` it is asked what the models rely on


def default_methods(deciders: bool = False) -> tuple[str, ...]:
    """What is compared unless methods are named: the default and its rivals, if they work here.

    `deciders`: whether it is known who decided.
    """
    wanted = (DEFAULT, *RIVALS, *["instrument"] * deciders)
    if left_out := [name for name in wanted if not works_here(name)]:
        notice(
            f"Not compared: {', '.join(left_out)}. They train networks, and torch is not "
            "installed: pip install 'dcem[networks]'."
        )
    return tuple(name for name in wanted if name not in left_out)


def check_methods(names: Sequence[str] | str, *, oracles: bool = False) -> tuple[str, ...]:
    """The names, each known, once, and (unless `oracles` are welcome) usable without the truth."""
    names = [names] if isinstance(names, str) else names
    if not names:
        raise InputError("No method was given. Name at least one, such as dcem.")
    for name in names:
        if methods.make(name).uses_truth and not oracles:
            usable = ", ".join(methods.names(usable=True))
            raise InputError(
                f"{name!r} learns from everybody's true outcome, which this table does not have. "
                f"Choose one of: {usable}."
            )
    return tuple(dict.fromkeys(names))


def what_it_does(name: str) -> str:
    """What a method does, in one sentence."""
    first = (inspect.getdoc(METHODS[name]) or name).splitlines()[0]
    learner = name.partition(":")[2]
    if learner in LEARNERS:
        learner = make_learner(learner, 0).words
    return f"{first.rstrip('.')}: {learner}." if learner else first


def in_short(name: str) -> str:
    """A few words about a method, other words for each of its learners."""
    short, learner = METHODS[name].in_short, name.partition(":")[2]
    words = SIMPLE_RIVALS.get(name, "")
    if learner in LEARNERS:
        words = words or make_learner(learner, 0).words
    elif name == NETWORK_OF_TESTED:
        words = "a network"
    return f"{short}: {words}" if words else short


def fit_and_score(
    names: Sequence[str],
    parts: Sequence[Part],
    random_state: int,
    params: Mapping[str, Any] | None = None,
    *,
    n_members: int = MEMBERS,
    n_folds: int | None = None,
    ray: Any = None,
) -> Iterator[tuple[str, int, Scored]]:
    """Fit methods, as they are delivered, to people and score others; each part has its own seed.

    Yields the method, the position of the part, and the scores, in any order. Fits are shared out
    over the cores, a process and a thread for each, or over the cluster that `ray` is connected
    to, and begin at once; where they are soon done, here when they are asked for. Networks of few
    rows are fitted to all parts together; single networks to a few parts together. Scores are the
    same wherever they are made.
    """
    models = {
        name: delivered(name, n_members=n_members, n_folds=n_folds, params=params) for name in names
    }
    seeds = [int(seed) for seed in np.random.SeedSequence(random_state).generate_state(len(parts))]
    rows, width = sum(len(part.train) for part in parts), parts[0].train.X.shape[1]
    # the same on every machine: it changes the last bits
    size = len(parts) if rows < FEW else TABLES_PER_FLEET if n_members == 1 else 1
    given = parts if ray is None else [ray.put(part) for part in parts]  # once for all methods
    jobs = [
        (name, model, group, seeds[group.start : group.stop], *given[group.start : group.stop])
        for name, model in sorted(models.items(), key=lambda one: -cost_of(one[0]))
        for group in _ranges(len(parts), size if model.members_alike else 1)
    ]  # the longest first: none of them is waited for at the end
    steps = fit_steps("", names, len(parts), rows // len(parts), width, single=n_members == 1)
    done: Iterable[list[tuple[str, int, Scored]]]
    if ray is not None:
        done = (found for _, found in shared_out(ray, _fit_job, jobs))
    elif at_once(steps) == 1:
        done = (_fit_job(*job) for job in jobs)
    else:
        for model in models.values():
            if getattr(model, "n_jobs", 0) is None:  # threads, where there are cores for them
                model.n_jobs = max(1, cpu_count() // len(jobs))
        done = _in_processes(delayed(_fit_job)(*job) for job in jobs)
    return chain.from_iterable(done)


def _ranges(number: int, size: int) -> list[range]:
    return [range(i, min(i + size, number)) for i in range(0, number, size)]


def _in_processes(calls: Iterable[Any]) -> Iterator[Any]:
    """What the calls return, in any order; they begin at once, in as many processes as cores."""
    # one thread each: small products gain nothing from more
    with parallel_config("loky", n_jobs=cpu_count(), inner_max_num_threads=1):
        # all are handed over at once, so that later ones, of others, come after them
        return Parallel(return_as="generator_unordered", pre_dispatch="all")(calls)


def be_ready(table: Path) -> None:
    """Start the processes that will fit, so that they import while a table is read.

    Not for a short file, which is read at once.
    """

    def start() -> None:
        list(_in_processes(delayed(_import)() for _ in range(cpu_count())))

    if cpu_count() > 1 and table.is_file() and table.stat().st_size > TAKES_A_WHILE:
        Thread(target=start, daemon=True).start()


def _import() -> None:
    if works_here("tested-only"):
        import_module("dcem.methods.em_networks")


def at_once(steps: Mapping[str, float]) -> int:
    """How many fits are made at a time, where they take so many seconds."""
    return cpu_count() if sum(steps.values()) >= WORTH_PROCESSES else 1


def collected(
    fits: Iterable[tuple[str, int, Scored]],
    names: Sequence[str],
    n_parts: int,
    doing: str,
    progress: Announce,
    *,
    aloud: bool = True,
) -> dict[str, list[Scored]]:
    """Method -> scores of each part, in order; `progress` hears of each (`fit_steps`).

    `aloud`: whether what fits had to say is told, as it is of the user's own rows.
    """
    found: dict[str, dict[int, Scored]] = {name: {} for name in names}
    steps = iter(step_names(doing, len(names) * n_parts))
    progress(next(steps))
    for name, position, one in fits:
        found[name][position] = one
        if step := next(steps, None):
            progress(step)
    ordered = {name: [of[position] for position in range(n_parts)] for name, of in found.items()}
    for of_method in ordered.values() if aloud else ():
        _say_once(of_method)
    return ordered


def _say_once(fits: Sequence[Scored]) -> None:
    """What fitting a method had to say, once: that parts differ in a figure is not news."""
    notes = [note for one in fits for note in one.notes]
    for note in {re.sub(r"[\d.]+", "", text): text for text in reversed(notes)}.values():
        notice(note)


def fit_steps(
    doing: str,
    names: Sequence[str],
    n_parts: int,
    rows: int,
    width: int,
    *,
    single: bool = False,
) -> dict[str, float]:
    """What is told before each fit to tables of so many rows and columns, and its seconds.

    Those of one core of the machine they were measured on. `single` models, as for planted
    outcomes, take less. Where networks are fitted to all parts at once, what is told first takes
    the time of all.
    """
    unit = (COST_OF_SINGLE if single else 1.0) * (0.0068 * rows**0.5 + 9e-4 * width)
    costs: list[float] = []
    usual = sum(map(cost_of, names)) / max(len(names), 1)
    for name in sorted(names, key=cost_of, reverse=True):
        # single models differ less: a third is what surrounds every fit alike
        cost = (2 * cost_of(name) + usual) / 3 if single else cost_of(name)
        own = [unit * cost] * n_parts
        if n_parts * rows < FEW and METHODS[name].members_alike:
            own = [sum(own)] + [0.0] * (n_parts - 1)
        costs += own
    return dict(zip(step_names(doing, len(costs)), costs, strict=True))


def step_names(doing: str, number: int) -> list[str]:
    """What is told of so many steps of one kind."""
    return [f"{doing}, {k} of {number}" for k in range(1, number + 1)]


def cost_of(name: str) -> float:
    """What a fit of a method costs, against one of a network."""
    bare, _, learner = name.partition(":")
    if entry_of(name).kind == "latent" or bare == "sar-em":
        return COST_OF_EM
    return COST_WITHOUT_NETWORK if learner else COSTS.get(bare, 1.0)


def _fit_job(
    name: str, model: Any, positions: Sequence[int], seeds: Sequence[int], *parts: Part
) -> list[tuple[str, int, Scored]]:
    """What one process does: fit a method to some of the parts, and score their people."""
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as heard:
        fitted = methods.fit_many(
            model,
            [part.train for part in parts],
            validations=[part.validation for part in parts],
            truths=[part.truth if model.uses_truth else None for part in parts],
            random_states=seeds,
        )
    seconds = (time.perf_counter() - begun) / len(parts)
    notes = tuple(str(one.message) for one in heard if issubclass(one.category, DataWarning))
    for one in heard:
        if not issubclass(one.category, DataWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    scored = [
        Scored(
            _members(one, part.rows),
            np.zeros(len(part.rows), np.int64),
            hasattr(one, "pseudo_labels_"),
            history_of(one),
            seconds,
            _answers(one, part),
            notes,
        )
        for one, part in zip(fitted, parts, strict=True)
    ]
    return [(name, position, one) for position, one in zip(positions, scored, strict=True)]


def _answers(model: Any, part: Part) -> np.ndarray | None:
    """What a model says of the people who are asked about, as they are and changed."""
    asked = part.asked
    if asked is None:
        return None

    def predict(X: np.ndarray, at: np.ndarray) -> np.ndarray:
        if model.needs_group:
            rows = replace(part.rows.subset(asked.places[at]), X=X)
            return _members(model, rows).mean(axis=0)
        # the features were checked when the people themselves were scored
        return model.combined(model.risks(X, model.standardized(X), exact=False))

    return asked.answers(predict)


def fold_parts(problem: SelectiveLabels, fold: np.ndarray) -> list[Part]:
    """For each fold, everybody else to learn from and its people to score."""
    return [Part(problem.subset(fold != k), problem.subset(fold == k)) for k in np.unique(fold)]


def later_parts(problem: SelectiveLabels, block: np.ndarray) -> list[Part]:
    """For each block of time but the first, all earlier rows to learn from and its own to score."""
    later = np.unique(block[block > 0])
    return [Part(problem.subset(block < k), problem.subset(block == k)) for k in later]


def pooled_folds(parts: Sequence[Scored], fold: np.ndarray) -> Scored:
    """Every row scored by the model of its part; the history is that of the first."""
    members = np.empty((len(parts[0].members), len(fold)))
    for k, one in zip(np.unique(fold), parts, strict=True):
        members[:, fold == k] = one.members
    seconds = sum(one.seconds for one in parts)
    return replace(parts[0], members=members, fold=fold, seconds=seconds)


def _members(model: Any, rows: SelectiveLabels) -> np.ndarray:
    """Scores of each member [members, rows]; one of a model whose members are unlike parts."""
    group = (np.asarray(rows.group_names)[rows.group],) if model.needs_group else ()
    scores: np.ndarray = model.member_scores(rows, *group)
    return scores if model.members_alike else model.combined(scores)[None]


def history_of(model: Any) -> FitHistory | None:
    """The course of an EM fit; None for methods that do not iterate."""
    course = getattr(model, "history_", None)
    if not isinstance(course, Mapping) or not hasattr(model, "best_iter_"):
        return None
    loss = {label: np.asarray(course[key]) for key, label in _LOSSES.items() if key in course}
    if not loss:
        return None
    termination = getattr(model, "termination_", "")
    return FitHistory(loss, int(model.best_iter_), _ENDINGS.get(termination, termination))


def joined_answers(scored: Sequence[Scored], parts: Sequence[Part]) -> np.ndarray:
    """The answers of all parts, in the order of the people who were asked about."""
    both = [(one.answers, part.asked) for one, part in zip(scored, parts, strict=True)]
    order = np.concatenate([asked.some for _, asked in both if asked is not None])
    answers = np.concatenate([answers for answers, _ in both if answers is not None], axis=1)
    return answers[:, np.argsort(order)]
