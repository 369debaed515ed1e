"""Folds of whole people, and scores that can be compared across them."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from dcem.table import checks
from dcem.table.labels import SelectiveLabels


def person_folds(
    problem: SelectiveLabels, n_folds: int, random_state: int | np.random.Generator
) -> np.ndarray:
    """The fold of each row [n], 0 to `n_folds` - 1; a person's rows are in one of them.

    Folds share out tested positives, tested negatives and the untested of every group alike: people
    are dealt out in turn, those of a kind one after the other.
    """
    person = problem.person
    n_people = int(person.max()) + 1 if len(person) else 0
    if not 2 <= n_folds <= n_people:
        raise checks.InputError(
            f"{n_folds} folds of {n_people} people: give from 2 to as many folds as people."
        )
    # A person is as informative as her best row: untested 0, tested negative 1, positive 2.
    seen = np.where(problem.tested, 1 + problem.y_imputed, 0).astype(np.int64)
    kind = np.zeros(n_people, np.int64)
    np.maximum.at(kind, person, seen)
    group = problem.group[np.unique(person, return_index=True)[1]]
    draw = np.random.default_rng(random_state).random(n_people)
    fold = np.empty(n_people, np.int64)
    fold[np.lexsort((draw, kind, group))] = np.arange(n_people) % n_folds
    return fold[person]


def percentiles(score: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Where each score stands within its fold, in (0, 1) [n]; ties share a place.

    Models of different folds may put the same risk at different numbers. A place among the people
    that one model scored means the same in every fold, so ranks can be pooled.
    """
    place = np.empty(len(score))
    for number in np.unique(fold):
        rows = fold == number
        place[rows] = (rankdata(score[rows]) - 0.5) / rows.sum()
    return place
