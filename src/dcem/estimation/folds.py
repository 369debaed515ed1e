"""Whole people drawn and in folds, blocks of time, and scores that can be compared across them."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.utils.metadata_routing import MetadataRequest

from dcem.table.checks import check_binary
from dcem.table.frames import as_series, check_aligned
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError, notice, rows_text
from dcem.table.times import time_words

FIRST = 0.5  # share of the rows that are only learnt from, where models are judged in the future


def person_folds(
    problem: SelectiveLabels, n_folds: int, random_state: int | np.random.Generator
) -> np.ndarray:
    """The fold of each row [n], 0 to `n_folds` - 1; a person's rows are in one of them.

    Folds share out tested positives, tested negatives and the untested of every group alike: people
    take turns, those of a kind one after the other.
    """
    seen = np.where(problem.tested, problem.y_obs, np.nan)  # labels of the untested are nobody's
    return _by_kind(seen, problem.person, problem.group, n_folds, random_state)


def time_blocks(problem: SelectiveLabels, n_folds: int) -> np.ndarray:
    """The block of each row [n] along time: 0 learns only, 1 to `n_folds` are judged in turn.

    The first half of the rows is block 0; the others are shared out over as many blocks as asked
    for. Rows of one time are in one block, so there may be fewer.
    """
    assert problem.time is not None
    shares = np.linspace(FIRST, 1, n_folds + 1)[:-1]
    starts = np.sort(problem.time)[np.ceil(shares * len(problem)).astype(np.int64)]
    block = np.searchsorted(np.unique(starts), problem.time, side="right")
    block = np.unique(block, return_inverse=True)[1]
    if block.max() == 0:
        raise InputError(
            "There are too few different times to train on earlier rows and judge on later ones. "
            "Give finer times, or leave out `time`."
        )
    for number in range(1, int(block.max()) + 1):
        learns = (block < number) & problem.tested
        if len(np.unique(problem.y_obs[learns])) < 2:
            since = time_words(problem.time[block == number].min())
            raise InputError(
                f"Before {since} the tested do not include both classes, so no model can be "
                "trained on those rows and judged on later ones. Leave out the rows before testing "
                "began, or leave out `time`."
            )
    return block


def within_budget(problem: SelectiveLabels, max_rows: int | None, random_state: int) -> np.ndarray:
    """Positions of at most `max_rows` rows, whole people drawn at random, in the table's order."""
    if max_rows is None or len(problem) <= max_rows:
        return np.arange(len(problem))
    if max_rows < 100:
        raise InputError(f"`max_rows` must be 100 or more; got {max_rows}.")
    person = problem.person
    sizes = np.bincount(person)
    order = np.random.default_rng(random_state).permutation(len(sizes))
    order = order[sizes[order] <= max_rows]  # who has more rows would keep out all others
    if not len(order):
        raise InputError(
            f"Everybody has more than {max_rows} rows. Raise `max_rows`, or check `id`."
        )
    taken = np.zeros(len(sizes), bool)
    taken[order[np.cumsum(sizes[order]) <= max_rows]] = True
    return np.flatnonzero(taken[person])


def rows_that_count(problem: SelectiveLabels) -> np.ndarray | None:
    """Rows of a weight above 0 (a mask [n]), or None if that is all of them.

    The others teach nothing, and are nobody where people are counted.
    """
    kept = problem.weights > 0
    if kept.all() or not kept.any():
        return None
    notice(f"{(~kept).sum():,} of {len(kept):,} rows have a weight of 0 and are left out.")
    return kept


def usual_folds(problem: SelectiveLabels) -> int:
    """How many folds models are cross-fitted on: more where rows are few and every one counts."""
    n_people = int(problem.person.max()) + 1 if len(problem) else 0
    return 2 if n_people < 100 else 5 if n_people < 10_000 else 3


def _by_kind(
    y: np.ndarray,
    person: np.ndarray,
    group: np.ndarray,
    n_folds: int,
    random_state: int | np.random.Generator,
) -> np.ndarray:
    """People in turn, those of a kind one after the other; `y` is NaN where untested."""
    n_people = int(person.max()) + 1 if len(person) else 0
    if not (isinstance(n_folds, Integral) and 2 <= n_folds <= n_people):
        raise InputError(
            f"There are {n_people} people, so the number of folds must be a whole number between 2 "
            f"and {n_people}; got {n_folds!r}."
        )
    # Untested 0, tested negative 1, positive 2.
    seen = np.where(np.isnan(y), 0, 1 + np.nan_to_num(y)).astype(np.int64)
    first = np.unique(person, return_index=True)[1]
    return in_turn(n_folds, random_state, best_rows(seen, person), group[first])[person]


def best_rows(of_row: np.ndarray, person: np.ndarray) -> np.ndarray:
    """What each person tells [people], in whole numbers: as much as the best of their rows [n]."""
    of_person = np.zeros(int(person.max()) + 1, np.int64)
    np.maximum.at(of_person, person, of_row)
    return of_person


def in_turn(
    n_folds: int, random_state: int | np.random.Generator, *kinds: np.ndarray
) -> np.ndarray:
    """The fold of each person [people]: those of a kind one after the other, in random order.

    `kinds` are codes [people]; the last matters first.
    """
    n_people = len(kinds[0])
    draw = np.random.default_rng(random_state).random(n_people)
    fold = np.empty(n_people, np.int64)
    fold[np.lexsort((draw, *kinds))] = np.arange(n_people) % n_folds
    return fold


class SelectiveKFold:
    """Folds for `cross_val_score` and `GridSearchCV` where labels are missing.

    scikit-learn's stratified splitters refuse missing labels, and plain ones may leave a fold
    without tests. These folds share out tested positives, tested negatives and the untested alike;
    rows of one of `groups` (people) stay in one fold.

    Parameters
    ----------
    n_splits
        Folds, at least 2.
    random_state
        Seed.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1, 0, np.nan, np.nan, 1, 0, np.nan, np.nan])
    >>> for train, test in SelectiveKFold(2).split(y[:, None], y):
    ...     print(int(np.nansum(y[test])), "positive,", int(np.isnan(y[test]).sum()), "untested")
    1 positive, 2 untested
    1 positive, 2 untested
    """

    def __init__(self, n_splits: int = 5, *, random_state: int = 0) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """How many folds there are."""
        return self.n_splits

    def get_metadata_routing(self) -> MetadataRequest:
        """That `groups` and `tested` are wanted, where scikit-learn routes metadata."""
        request = MetadataRequest(owner=self)
        for name in ("groups", "tested"):
            request.split.add_request(param=name, alias=True)
        return request

    def split(
        self, X: Any, y: Any = None, groups: Any = None, *, tested: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Positions of training and test rows, fold by fold.

        `y` is missing where nobody tested, unless `tested` says who was.
        """
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)  # a sparse matrix has no length
        given = {"y": y, "groups": groups, "tested": tested}
        check_aligned({"X": np.empty(n_rows), **given})
        y = np.zeros(n_rows) if y is None else pd.factorize(_objects(y, "y"), sort=True)[0]
        y = np.where(y < 0, np.nan, y)  # whatever the classes are called
        if tested is not None:
            y = np.where(check_binary(tested, "tested") == 1, y, np.nan)
        person = np.arange(n_rows)
        if groups is not None:
            names = _objects(groups, "groups")
            if (missing := pd.isna(names)).any():
                raise InputError(f"`groups` is missing in {rows_text(missing)}. Fill it in.")
            person = np.unique(names.astype(str), return_inverse=True)[1]
        fold = _by_kind(y, person, np.zeros(n_rows, int), self.n_splits, self.random_state)
        for number in range(self.n_splits):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def _objects(values: Any, name: str) -> np.ndarray:
    return as_series(values, name).to_numpy(object)


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
