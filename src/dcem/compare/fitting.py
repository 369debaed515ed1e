"""Methods fitted to parts of a table, and the scores of the people they did not see."""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config

from dcem import methods
from dcem.compare.results import History
from dcem.methods.choosing import DEFAULT, RIVALS
from dcem.methods.registry import MEMBERS, METHODS, delivered
from dcem.table import checks
from dcem.table.labels import SelectiveLabels

DEFAULT_METHODS = (DEFAULT, *RIVALS)  # what is compared unless methods are named
Progress = Callable[[str], None]
LEARNT_BY = {"linear": "a linear model", "boost": "boosted trees", "forest": "a forest"}
WORTH_A_PROCESS = 10_000  # rows to fit to, in all: below, starting processes takes longer
_LOSSES = {
    "train_loss": "training",
    "validation_loss": "validation, everybody",
    "tested_validation_loss": "validation, the tested",
}
_ENDINGS = {
    "max_iter": "All iterations that were allowed were used.",
    "no_improvement": "It stopped when the loss on tested validation rows no longer fell.",
}


@dataclass(frozen=True)
class Fitted:
    """What a model says of rows that it did not see, and what is told of the model."""

    members: np.ndarray  # [members, rows] probability by each model of the ensemble
    fills_in: bool  # whether the method gives the untested labels of its own
    history: History | None

    @property
    def score(self) -> np.ndarray:
        """The ensemble's probability [rows]: what is delivered."""
        mean: np.ndarray = self.members.mean(axis=0)
        return mean


@dataclass(frozen=True)
class Part:
    """People to learn from, and people to score."""

    train: SelectiveLabels
    rows: SelectiveLabels
    validation: SelectiveLabels | None = None
    truth: Any = None  # (train, validation), for oracles


def check_methods(names: Sequence[str], *, oracles: bool = False) -> tuple[str, ...]:
    """The names, each known, once, and (unless `oracles` are welcome) usable without the truth."""
    if not names:
        raise checks.InputError("No method was named. Give at least one, such as dcem.")
    for name in names:
        if methods.make(name).uses_truth and not oracles:
            usable = ", ".join(methods.names(usable=True))
            raise checks.InputError(
                f"{name!r} learns from the truth of everybody, which this table does not have. "
                f"Choose among: {usable}."
            )
    return tuple(dict.fromkeys(names))


def describe(name: str) -> str:
    """What a method does, in one sentence."""
    first = (inspect.getdoc(METHODS[name]) or name).splitlines()[0]
    learner = name.partition(":")[2]
    return f"{first.rstrip('.')}: {LEARNT_BY.get(learner, learner)}." if learner else first


def fit_and_score(
    name: str,
    parts: Sequence[Part],
    random_state: int,
    params: Mapping[str, Any] | None = None,
    members: int = MEMBERS,
) -> list[Fitted]:
    """Fit a method, as it is delivered, to people and score others; each part has its own seed.

    Where batches make every part a fit of its own, the parts are shared out over the cores.
    """
    model = delivered(name, members=members, **(params or {}))
    seeds = [int(seed) for seed in np.random.SeedSequence(random_state).generate_state(len(parts))]
    seeded = list(zip(parts, seeds, strict=True))
    workers = min(os.cpu_count() or 1, len(parts))
    if workers == 1 or sum(len(part.train) for part in parts) < WORTH_A_PROCESS:
        return _fit_and_score(model, seeded)
    shares = [list(range(start, len(parts), workers)) for start in range(workers)]
    # one thread each: small products gain nothing from more
    with parallel_config("loky", n_jobs=workers, inner_max_num_threads=1):
        done = Parallel()(
            delayed(_fit_and_score)(model, [seeded[i] for i in share]) for share in shares
        )
    by_position = dict(zip(itertools.chain(*shares), itertools.chain(*done), strict=True))
    return [by_position[i] for i in range(len(parts))]


def _fit_and_score(model: Any, seeded: Sequence[tuple[Part, int]]) -> list[Fitted]:
    parts = [part for part, _ in seeded]
    fitted = methods.fit_many(
        model,
        [part.train for part in parts],
        validations=[part.validation for part in parts],
        truths=[part.truth if model.uses_truth else None for part in parts],
        random_states=[seed for _, seed in seeded],
    )
    return [
        Fitted(_members(one, part.rows), hasattr(one, "pseudo_labels_"), history_of(one))
        for one, part in zip(fitted, parts, strict=True)
    ]


def out_of_fold(
    name: str,
    problem: SelectiveLabels,
    fold: np.ndarray,
    random_state: int,
    params: Mapping[str, Any] | None = None,
    members: int = MEMBERS,
) -> Fitted:
    """Score every row by a model of the other folds; the history is that of the first."""
    numbers = np.unique(fold)
    parts = [Part(problem.subset(fold != k), problem.subset(fold == k)) for k in numbers]
    fitted = fit_and_score(name, parts, random_state, params, members)
    scores = np.empty((len(fitted[0].members), len(problem)))
    for k, one in zip(numbers, fitted, strict=True):
        scores[:, fold == k] = one.members
    return Fitted(scores, fitted[0].fills_in, fitted[0].history)


def _members(model: Any, rows: SelectiveLabels) -> np.ndarray:
    """Scores of each member [members, rows]; one of a model whose members are unlike parts."""
    if not model.members_alike:
        return model._combined(model._member_scores(rows))[None]
    if not model.needs_group:
        scores: np.ndarray = model._member_scores(rows)
    else:
        scores = model._group_scores(rows, np.asarray(rows.group_names)[rows.group])
    return scores


def history_of(model: Any) -> History | None:
    """The course of an EM fit; None for methods that do not iterate."""
    course = getattr(model, "history_", None)
    if not isinstance(course, Mapping) or not hasattr(model, "best_iter_"):
        return None
    loss = {label: np.asarray(course[key]) for key, label in _LOSSES.items() if key in course}
    if not loss:
        return None
    termination = getattr(model, "termination_", "")
    return History(loss, int(model.best_iter_), _ENDINGS.get(termination, termination))
