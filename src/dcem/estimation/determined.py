"""Do the features determine the group? Then nobody can be compared at equal features.

The rule is that of overlap of testing (`dcem.estimation.overlap`), put to the group. A person is
out of reach of the other side if hardly anybody like them is there: their chance of belonging to it
is under a tenth of the mean, by a model that has not seen them, and no more of the people of whom
it says so do belong to it. Where more than half of *both* sides are out of reach, the features
determine the group, and a difference at equal features would be one between people who do not
exist. If half of one side have people like them on the other, it can be compared with those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dcem.estimation.cross_fitting import draw_rows
from dcem.estimation.influence import People
from dcem.estimation.overlap import LEAST_REACH, RARE

DETERMINED = "not estimable, the features determine the group"
ROWS = 5_000  # that a tree learns from, to name the columns
MOST_NAMED = 3
MUCH = 0.15  # of what all columns add to the prediction, from which on one is named


def reach_between(people: People, mine: np.ndarray, member: np.ndarray) -> float:
    """Share of a group with people like them among the others, or the reverse if that is more.

    `mine [n]` is a mask, `member [n]` P(group | x). Rows without weight do not count.
    """
    here = people.weight > 0
    sides = []
    for own, crossed in ((here & mine, 1 - member), (here & ~mine, member)):
        others, everybody = here & ~own, people.weight[here].sum()
        if not own.any() or not others.any():
            return 0.0
        rare = RARE * people.weight[others].sum() / everybody
        seldom = here & (crossed < rare)
        as_said = people.weight[seldom & others].sum() <= rare * people.weight[seldom].sum()
        lost = people.weight[seldom & own].sum() if as_said else 0.0
        sides.append(1 - float(lost / people.weight[own].sum()))
    return max(sides)


def is_determined(people: People, mine: np.ndarray, members: Iterable[np.ndarray]) -> bool:
    """Whether the features determine a group, by any of several models of P(group | x)."""
    return any(reach_between(people, mine, one) < LEAST_REACH for one in members)


def because(columns: Sequence[str]) -> str:
    """The reason that stands in place of a number, with the columns that determine the group."""
    return f"{DETERMINED} ({' and '.join(columns)})" if columns else DETERMINED


def membership_by_tree(
    X: np.ndarray, group: np.ndarray, fold: np.ndarray, n_groups: int, rows: np.ndarray
) -> np.ndarray:
    """P(group | x) of every row [n, groups], by a tree that has not seen it.

    It sees the cut-offs and the pairs of columns that a logistic regression of many groups does
    not. `fold [n]` keeps a person's rows together; it learns from `rows`, positions.
    """
    member = np.zeros((len(X), n_groups))
    half = fold % 2 == 0
    for out in (half, ~half):
        train = rows[~out[rows]]
        if not len(train) or not out.any():
            return np.full((len(X), n_groups), 1 / n_groups)
        tree = _tree().fit(X[train], group[train])
        member[np.ix_(out, tree.classes_)] = tree.predict_proba(X[out])
    return member


def membership_by_level(
    level: np.ndarray, group: np.ndarray, fold: np.ndarray, n_groups: int, weight: np.ndarray
) -> np.ndarray:
    """P(group | level) of every row [n, groups]: shares of the same level in the other half.

    `level [n]` is a code of a raw value, -1 where missing. A level that the other half lacks has
    the shares of all rows.
    """
    member = np.zeros((len(level), n_groups))
    half, place = fold % 2 == 0, level + 1
    overall = np.bincount(group, weight, n_groups) / weight.sum()
    for out in (half, ~half):
        cell = place[~out] * n_groups + group[~out]
        size = (place.max() + 1) * n_groups
        count = np.bincount(cell, weight[~out], size).reshape(-1, n_groups)
        total = count.sum(axis=1, keepdims=True)
        share = np.divide(count, total, out=np.tile(overall, (len(count), 1)), where=total > 0)
        member[out] = share[place[out]]
    return member


def who_tells(
    X: np.ndarray,
    sources: Sequence[str],
    people: People,
    mine: np.ndarray,
    known: Sequence[str] = (),
    seed: int = 0,
) -> tuple[str, ...]:
    """The raw columns that determine a group: those that do so alone, or else some together.

    `sources` is the raw column of each feature; those that are `known` to determine other groups
    are asked first.
    """
    rng = np.random.default_rng(seed)
    rows = draw_rows(np.flatnonzero(people.weight > 0), ROWS, rng)
    own, X = mine[rows], X[rows]
    person = np.arange(len(rows)) if people.person is None else people.person[rows]
    some = People(people.weight[rows], None, len(rows))
    half = rng.permutation(int(person.max()) + 1)[person] % 2
    label, everything = np.array(sources, dtype=object), np.arange(len(rows))

    def member(columns: np.ndarray) -> np.ndarray:
        return membership_by_tree(X[:, columns], own.astype(int), half, 2, everything)[:, 1]

    for asked in (known, sources):
        alone = {
            name: reach
            for name in dict.fromkeys(asked)
            if (reach := reach_between(some, own, member(label == name))) < LEAST_REACH
        }
        if alone:
            return tuple(sorted(alone, key=lambda name: alone[name])[:MOST_NAMED])
    return _together(X, label, own, half, rng)


def _together(
    X: np.ndarray, label: np.ndarray, own: np.ndarray, half: np.ndarray, rng: np.random.Generator
) -> tuple[str, ...]:
    """The columns without which a forest predicts the group worst, of those held out."""
    from sklearn.ensemble import RandomForestClassifier

    learnt, held = half == 0, half == 1
    if len(np.unique(own[learnt])) < 2 or not held.any():
        return ()
    forest = RandomForestClassifier(40, min_samples_leaf=5, random_state=0, n_jobs=1)
    forest.fit(X[learnt], own[learnt])

    def off(values: np.ndarray) -> float:
        return float(((forest.predict_proba(values)[:, 1] - own[held]) ** 2).mean())

    base, rises = off(X[held]), {}
    for name in dict.fromkeys(label):
        shuffled, columns = X[held].copy(), np.flatnonzero(label == name)
        shuffled[:, columns] = shuffled[rng.permutation(held.sum())][:, columns]
        rises[name] = max(off(shuffled) - base, 0.0)
    least = MUCH * sum(rises.values())
    most = sorted((name for name in rises if rises[name] > least), key=lambda name: -rises[name])
    return tuple(name for name in rises if name in most[:MOST_NAMED])  # as in the table


def _tree() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(min_samples_leaf=10, random_state=0)
