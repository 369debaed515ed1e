"""Methods fitted to parts of a table, and the scores of the people they did not see."""

from __future__ import annotations

import inspect
import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config

from dcem import methods
from dcem.compare.results import History
from dcem.methods.registry import METHODS
from dcem.table import checks
from dcem.table.labels import SelectiveLabels

DEFAULT_METHODS = ("y-obs", "tested-only", "ipw", "peer-loss", "dcem")
Progress = Callable[[str], None]
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
class OutOfFold:
    """What a method says of people that it was not fitted to."""

    score: np.ndarray  # [n] probability
    seconds: float
    fills_in: bool  # whether the method gives the untested labels of its own
    history: History | None  # of the first fold


def check_methods(names: Sequence[str]) -> tuple[str, ...]:
    """The names, each known, once, and usable without the truth."""
    if not names:
        raise checks.InputError("No method was named. Give at least one, such as dcem.")
    for name in names:
        if methods.make(name).uses_truth:
            usable = ", ".join(methods.names(usable=True))
            raise checks.InputError(
                f"{name!r} learns from the truth of everybody, which this table does not have. "
                f"Choose among: {usable}."
            )
    return tuple(dict.fromkeys(names))


def describe(name: str) -> str:
    """What a method does, in one sentence."""
    return (inspect.getdoc(METHODS[name]) or name).splitlines()[0]


@dataclass(frozen=True)
class Fitted:
    """The scores of rows that a model did not see, and what is told of the model."""

    score: np.ndarray  # [rows] probability
    fills_in: bool
    history: History | None


def fit_and_score(
    name: str,
    parts: Sequence[tuple[SelectiveLabels, SelectiveLabels]],
    random_state: int,
    params: Mapping[str, Any] | None = None,
) -> list[Fitted]:
    """Fit a method to the first of each pair and score the second.

    Where batches make every pair a fit of its own, the pairs are shared out over the cores.
    """
    model = methods.make(name, random_state=random_state, **(params or {}))
    workers = min(os.cpu_count() or 1, len(parts))
    if workers == 1 or sum(len(train) for train, _ in parts) < WORTH_A_PROCESS:
        return _fit_and_score(model, parts)
    shares = [list(range(start, len(parts), workers)) for start in range(workers)]
    # one thread each: small products gain nothing from more
    with parallel_config("loky", n_jobs=workers, inner_max_num_threads=1):
        done = Parallel()(
            delayed(_fit_and_score)(model, [parts[i] for i in share]) for share in shares
        )
    by_position = dict(zip(itertools.chain(*shares), itertools.chain(*done), strict=True))
    return [by_position[i] for i in range(len(parts))]


def _fit_and_score(
    model: Any, parts: Sequence[tuple[SelectiveLabels, SelectiveLabels]]
) -> list[Fitted]:
    fitted = methods.fit_many(model, [train for train, _ in parts])
    return [
        Fitted(
            one.predict_proba(rows, **_group_of(one, rows))[:, 1],
            hasattr(one, "pseudo_labels_"),
            history_of(one),
        )
        for one, (_, rows) in zip(fitted, parts, strict=True)
    ]


def out_of_fold(
    name: str,
    problem: SelectiveLabels,
    fold: np.ndarray,
    random_state: int,
    params: Mapping[str, Any] | None = None,
) -> OutOfFold:
    """Score every row by a model of the other folds."""
    begun = time.perf_counter()
    numbers = np.unique(fold)
    parts = [(problem.subset(fold != k), problem.subset(fold == k)) for k in numbers]
    fitted = fit_and_score(name, parts, random_state, params)
    score = np.empty(len(problem))
    for k, one in zip(numbers, fitted, strict=True):
        score[fold == k] = one.score
    return OutOfFold(
        score=score,
        seconds=time.perf_counter() - begun,
        fills_in=fitted[0].fills_in,
        history=fitted[0].history,
    )


def _group_of(model: Any, rows: SelectiveLabels) -> dict[str, Any]:
    if not model.needs_group:
        return {}
    return {"sensitive_features": np.asarray(rows.group_names)[rows.group]}


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
