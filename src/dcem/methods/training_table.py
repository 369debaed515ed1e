"""Selectively labelled rows on their way into a method: split, preprocessed, in their roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dcem.estimation.folds import best_rows
from dcem.estimation.periods import latest_rows
from dcem.learners.learner import Sample
from dcem.learners.preprocess import Preprocessor
from dcem.table.imperfect import evidence, unbiased
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import notice, require_share

# The most rows held out: enough to choose a stopping point, however long the table.
MAX_VALIDATION = 50_000


@dataclass(frozen=True)
class TrainingTable:
    """Rows of one problem as a method reads them, and their roles; all arrays `[n, ...]`.

    Everything but the features is found by name too: `table["tested"]`.
    """

    X: np.ndarray
    y: np.ndarray  # observed label, 0 where nobody looked
    tested: np.ndarray
    group: np.ndarray
    weight: np.ndarray
    truth: np.ndarray | None = None
    person: np.ndarray | None = None  # codes from 0; None where every row is a person of its own
    chance: np.ndarray | None = None  # of a test, where tests were drawn by a known design
    rates: np.ndarray | None = None  # of an imperfect test [n, 2]; 1 where nobody looked

    @classmethod
    def of(
        cls,
        problem: SelectiveLabels,
        preprocessor: Preprocessor | None,
        truth: np.ndarray | None,
        dtype: str = "float32",
        rows: np.ndarray | None = None,
    ) -> TrainingTable:
        """The rows of a problem at the positions `rows` (None: all).

        Without a preprocessor the features stay as they are, missing values included.
        """
        chosen = slice(None) if rows is None else rows
        person = None
        if problem.id is not None:
            person = np.unique(problem.id[chosen], return_inverse=True)[1]
        weight = problem.weight if problem.weight is not None else np.ones(len(problem))
        chance = problem.testing_probability
        rates = None
        if problem.imperfect_test is not None:
            rates = np.where(problem.tested[:, None], problem.imperfect_test.rates, 1.0)[chosen]
        X = problem.X[chosen]
        if preprocessor is not None:
            X = preprocessor.transform(problem.X, dtype, rows)
        return cls(
            X=X,
            y=problem.y_imputed[chosen].astype(dtype),
            tested=problem.tested[chosen].astype(dtype),
            group=problem.group[chosen],
            weight=np.asarray(weight[chosen], dtype=dtype),
            truth=None if truth is None else np.asarray(truth[chosen], dtype=dtype),
            person=person,
            chance=None if chance is None else np.asarray(chance[chosen], dtype=dtype),
            rates=rates,
        )

    def columns(self) -> dict[str, np.ndarray]:
        """Everything but the features, by the name the methods use."""
        named = {"y": self.y, "tested": self.tested, "group": self.group, "weight": self.weight}
        optional = {"truth": self.truth, "person": self.person, "chance": self.chance}
        if self.rates is not None:
            for name, tells in (("evidence", evidence), ("unbiased", unbiased)):
                optional[name] = tells(self.y, self.rates).astype(self.y.dtype)
        return named | {name: column for name, column in optional.items() if column is not None}

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns()[name]

    def get(self, name: str) -> np.ndarray | None:
        """A column, or None where there is none of that name."""
        return self.columns().get(name)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def people(self) -> np.ndarray:
        """Whose row each is `[n]`, in codes from 0."""
        return np.arange(len(self)) if self.person is None else self.person

    def sample(self, rows: np.ndarray, target: str = "y", X: np.ndarray | None = None) -> Sample:
        """Some rows for a learner of a column, by these features or by `X [n, ...]`."""
        rates = self.rates if target == "y" else None
        X = self.X if X is None else X
        return Sample(X, self[target], self.weight, self.person, rates).take(rows)


def at_random(
    weight: np.ndarray, person: np.ndarray | None, seeds: Sequence[int]
) -> Iterator[tuple[int, np.ndarray]]:
    """The seed of each member, and how much each row counts for it `[n]`.

    The first sees the rows as they are. For the others each person counts by a random number of
    mean 1 (the Bayesian bootstrap), so that members disagree where little is known.
    """
    yield seeds[0], weight
    person = np.arange(len(weight)) if person is None else person
    for seed in seeds[1:]:
        lot = np.random.default_rng(seed).exponential(size=int(person.max()) + 1)
        yield seed, weight * lot[person]


def hold_out(problem: SelectiveLabels, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of training and of validation rows; a person's rows stay together.

    Rows are drawn within strata of tested and label, so that both parts hold tested positives and
    negatives; where rows have a time, the latest are held out, whoever's they are. Where there are
    too few for that, all rows serve as both, with a warning.
    """
    everything = np.arange(len(problem))
    require_share("validation_fraction", fraction, 0.2)
    fraction = min(fraction, MAX_VALIDATION / len(problem))
    rng = np.random.default_rng(seed)
    stratum = np.where(problem.tested, 1 + np.nan_to_num(problem.y_obs), 0).astype(np.int64)
    if problem.time is not None:
        held = latest_rows(problem, fraction)
    else:
        identifier = everything if problem.id is None else problem.id
        person = np.unique(identifier, return_inverse=True)[1]
        of_person = best_rows(stratum, person)
        people = np.zeros(len(of_person), dtype=bool)
        for level in np.unique(of_person):
            drawn = rng.permutation(np.flatnonzero(of_person == level))
            people[drawn[: round(fraction * len(drawn))]] = True
        held = people[person]
    for part in (held, ~held):
        if len(np.unique(stratum[part & problem.tested])) < 2:
            notice(
                "Too few tested rows of each class to hold some out: stopping is decided on the "
                "training rows themselves, which favours overfitting. Pass `validation`, or "
                "gather more labels."
            )
            return everything, everything
    return everything[~held], everything[held]
