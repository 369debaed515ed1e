"""Methods fitted with learners that are not networks: the same lessons, one model at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dcem.learners import make_learner
from dcem.learners.learner import Rows, Sample
from dcem.methods.fitting import Prepared
from dcem.methods.support import with_group
from dcem.methods.tables import Table
from dcem.methods.weighting import halves

if TYPE_CHECKING:
    from dcem.methods.supervised import LearnerClassifier
    from dcem.methods.weighting import DoublyRobustClassifier

FOLDS = 5  # of a cross-fitted model of testing
Columns = dict[str, np.ndarray]


def fit_members(
    method: LearnerClassifier,
    data: Prepared,
    more: Columns | None = None,
    watched_more: Columns | None = None,
) -> list[Any]:
    """One model per member, of the method's lesson.

    The first sees the rows as they are. In the others each person counts by a random number of mean
    1 (the Bayesian bootstrap), so that they disagree where little is known. `more` are columns that
    the lesson needs besides those of the tables.
    """
    sample, held = lessons(method, data, more, watched_more)
    X, y, weight, person, rates = sample
    return [
        make_learner(method.learner, seed).fit(
            X, y, weight * lot(person, len(y), seed) if number else weight, held, person, rates
        )
        for number, seed in enumerate(data.seeds)
    ]


def lessons(
    method: LearnerClassifier,
    data: Prepared,
    more: Columns | None = None,
    watched_more: Columns | None = None,
) -> tuple[Sample, Rows | None]:
    """What a learner learns from, and what it chooses by."""
    train, watched = data.tables(raw=True)
    held: Rows | None = None
    if watched is not None:
        seen = _taught(method, watched, data.n_groups, watched_more or {})
        if (seen.weight > 0).any():
            held = seen.X, seen.y, seen.weight, seen.rates
    return _taught(method, train, data.n_groups, more or {}), held


def _taught(method: LearnerClassifier, table: Table, n_groups: int, more: Columns) -> Sample:
    """The rows that a lesson keeps."""
    lesson = method._lesson(table.columns() | more, n_groups)
    kept = np.ones(len(table), bool) if lesson.keep is None else np.asarray(lesson.keep) > 0
    X, y, weight = method._inputs(table, n_groups)[kept], lesson.target[kept], table.weight[kept]
    if lesson.factor is not None:
        weight = weight * lesson.factor[kept]
    person = None if table.person is None else table.person[kept]
    rates = None if table.rates is None or lesson.known else table.rates[kept]
    return Sample(X, y, weight, person, rates)


def _rates(table: Table, column: str, rows: np.ndarray) -> np.ndarray | None:
    """Rates of the test behind a column, if it holds results of one that errs."""
    return table.rates[rows] if column == "y" and table.rates is not None else None


def lot(person: np.ndarray | None, n_rows: int, seed: int) -> np.ndarray:
    """How much each row counts by lot `[n]`; the rows of a person alike."""
    person = np.arange(n_rows) if person is None else person
    return np.random.default_rng(seed).exponential(size=int(person.max()) + 1)[person]


def propensities(
    method: LearnerClassifier, data: Prepared
) -> tuple[np.ndarray, np.ndarray | None, Any]:
    """P(tested | x, a) of the rows to learn from and to watch, and the model behind it.

    The first comes out of fold: nobody's number is of a model that saw whether she was tested. The
    model, which scores all others, is of all rows.
    """
    train, watched = data.tables()
    seed = data.seeds[0]
    person = np.arange(len(train)) if train.person is None else train.person
    fold = np.random.default_rng(seed).permutation(int(person.max()) + 1)[person] % FOLDS
    X = with_group(train.X, train.group, data.n_groups)
    held = None
    if watched is not None:
        held_X = with_group(watched.X, watched.group, data.n_groups)
        held = held_X, watched.tested, watched.weight

    def fitted(rows: np.ndarray) -> Any:
        return make_learner(method.learner, seed).fit(
            X[rows], train.tested[rows], train.weight[rows], held, person[rows]
        )

    e = np.empty(len(train))
    for number in np.unique(fold):
        out = fold == number
        if not out.all():
            e[out] = fitted(~out).predict_proba(X[out])[:, 1]
    whole = fitted(np.ones(len(train), bool))
    if len(np.unique(fold)) == 1:
        e = whole.predict_proba(X)[:, 1]
    e_held = None if held is None else whole.predict_proba(held[0])[:, 1]
    if train.chance is not None:  # tests were drawn by a known design
        e, e_held = train.chance, None if watched is None else watched.chance
    return e, e_held, whole


def fit_doubly_robust(method: DoublyRobustClassifier, data: Prepared) -> None:
    """Nuisances of either half, pseudo-outcomes of the other, and a model of each.

    `models_` holds two models per member; `propensity_model_` is of the first half.
    """
    train, watched = data.tables(raw=True)
    standard = data.tables()
    tests = [
        with_group(table.X, table.group, data.n_groups) for table in standard if table is not None
    ]
    person = np.arange(len(train)) if train.person is None else train.person
    method.models_ = []
    for number, seed in enumerate(data.seeds):
        half = halves(train.tested, train.y, train.weight, train.person, seed)
        outcome, e_train = np.empty(len(train)), np.empty(len(train))
        for side in (0, 1):
            learns = half == side
            known = learns & (train.tested > 0)

            def model(X: list[np.ndarray], y: str, rows: np.ndarray, seed: int = seed) -> Any:
                held = None
                if watched is not None:
                    of = watched.tested > 0 if y == "y" else np.ones(len(watched), bool)
                    rates = _rates(watched, y, of)
                    held = X[1][of], watched[y][of], watched.weight[of], rates
                    held = held if of.any() else None
                return make_learner(method.learner, seed).fit(
                    X[0][rows],
                    train[y][rows],
                    train.weight[rows],
                    held,
                    person[rows],
                    _rates(train, y, rows),
                )

            parts = [train, *([] if watched is None else [watched])]
            features = [part.X for part in parts]
            testing, risk = model(tests, "tested", learns), model(features, "y", known)
            e = [
                testing.predict_proba(X)[:, 1] if part.chance is None else part.chance
                for part, X in zip(parts, tests, strict=True)
            ]
            m = [risk.predict_proba(X)[:, 1] for X in features]
            phi = [
                method._pseudo_outcome(part, *both) for part, *both in zip(parts, e, m, strict=True)
            ]
            held = None if watched is None else (watched.X, phi[1], watched.weight)
            final = make_learner(method.learner, seed, squared=True)
            rest = ~learns
            method.models_.append(
                final.fit(train.X[rest], phi[0][rest], train.weight[rest], held, person[rest])
            )
            outcome[rest], e_train[rest] = phi[0][rest], e[0][rest]
            if number == 0 and side == 0:
                method.propensity_model_ = testing
        if number == 0:
            method.pseudo_outcome_, method.propensity_ = outcome, e_train
