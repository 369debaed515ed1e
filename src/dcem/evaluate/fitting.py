"""Methods fitted to parts of a table, and the scores of the people they did not see."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcem import checks, methods
from dcem.evaluate.results import History
from dcem.methods.registry import METHODS
from dcem.problem import SelectiveLabels

DEFAULT_METHODS = ("y-obs", "tested-only", "ipw", "peer-loss", "dcem")
Progress = Callable[[str], None]
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


def fit_and_score(
    name: str,
    parts: Sequence[tuple[SelectiveLabels, SelectiveLabels]],
    random_state: int,
    params: Mapping[str, Any] | None = None,
) -> tuple[list[np.ndarray], list[Any]]:
    """Fit a method to the first of each pair, all at once; score the second.

    Returns the scores of each pair and the fitted models.
    """
    model = methods.make(name, random_state=random_state, **(params or {}))
    fitted = methods.fit_many(model, [train for train, _ in parts])
    return [
        one.predict_proba(rows, **_group_of(one, rows))[:, 1]
        for one, (_, rows) in zip(fitted, parts, strict=True)
    ], fitted


def out_of_fold(
    name: str,
    problem: SelectiveLabels,
    fold: np.ndarray,
    random_state: int,
    params: Mapping[str, Any] | None = None,
) -> OutOfFold:
    """Score every row by a model of the other folds; the folds train as one fleet."""
    begun = time.perf_counter()
    numbers = np.unique(fold)
    parts = [(problem.subset(fold != k), problem.subset(fold == k)) for k in numbers]
    scores, fitted = fit_and_score(name, parts, random_state, params)
    score = np.empty(len(problem))
    for k, values in zip(numbers, scores, strict=True):
        score[fold == k] = values
    return OutOfFold(
        score=score,
        seconds=time.perf_counter() - begun,
        fills_in=hasattr(fitted[0], "pseudo_labels_"),
        history=history_of(fitted[0]),
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
