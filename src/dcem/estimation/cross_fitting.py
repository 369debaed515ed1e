"""Models of one target that predict everybody without having seen them (cross-fitting).

People are shared out over folds; a fold is predicted by models fitted on the others. Several kinds
of models are mixed in the proportions that predict held-out rows best (see `nuisances`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone

from dcem.estimation.influence import FEWEST_PEOPLE
from dcem.estimation.nuisance_learners import candidate_models
from dcem.estimation.results import Nuisance
from dcem.parallel import one_thread
from dcem.table.disclosure import MANY_GROUPS, people_of
from dcem.table.labels import SelectiveLabels

FITTED_ROWS = 50_000  # rows a model is fitted to, at most
FITTED_CELLS = 3_000_000  # rows times columns that a model is fitted to, at most
CHUNK = 50_000  # rows predicted at once
JUDGED = 20_000  # held-out rows per fold that decide the proportions
LEAST_SHARE = 0.05  # kinds of models with less are left out of the mixture
CERTAIN = 1e-4  # predictions are kept this far from 0 and 1
MIXED = "all, mixed"

Learners = Callable[[int, int], Mapping[str, Any]]  # (classes, seed) -> name -> untrained model


@dataclass(frozen=True)
class Features:
    """Columns a model sees: features, time, and the group as 0/1 columns if it may see that.

    Where rows have a time it is always seen: who is tested, and what tests show, may change.
    """

    X: np.ndarray
    group: np.ndarray | None = None  # [n] codes
    n_groups: int = 0
    time: np.ndarray | None = None  # [n]

    @classmethod
    def of(cls, problem: SelectiveLabels) -> Features:
        """Features and time, and the group where there is more than one to learn of."""
        place, n_groups = learnt_groups(problem)
        if n_groups < 2:
            return cls(problem.X, time=problem.moment)
        return cls(problem.X, place[problem.group], n_groups, problem.moment)

    def without_group(self) -> Features:
        """Without the group."""
        return Features(self.X, time=self.time)

    @property
    def width(self) -> int:
        """Columns a model sees."""
        return self.X.shape[1] + (self.time is not None) + self.n_groups

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The columns of these rows: [rows, d (+ 1) (+ groups)]."""
        parts = [self.X[rows]]
        if self.time is not None:
            parts.append(self.time[rows, None])
        if self.group is not None:
            parts.append(self.group[rows][:, None] == np.arange(self.n_groups))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def as_group(self, code: int) -> Features:
        """The same people, all called members of one group."""
        return replace(self, group=np.full(len(self.X), code))


def learnt_groups(problem: SelectiveLabels) -> tuple[np.ndarray, int]:
    """The class in which models learn of each group [groups], and how many classes there are.

    Each is its own. Of more than `MANY_GROUPS`, those with too few people for any number are one,
    the last.
    """
    place = np.arange(problem.n_groups)
    if problem.n_groups > MANY_GROUPS:
        few = people_of(problem.group, problem.person, problem.n_groups) < FEWEST_PEOPLE
        place = np.where(few, (~few).sum(), np.cumsum(~few) - 1)
    return place, int(place.max(initial=-1)) + 1


@dataclass(frozen=True)
class Mixture:
    """Models fitted to the same rows, and the proportions in which they are mixed."""

    models: Mapping[str, Any]
    shares: Mapping[str, float]
    n_classes: int

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probabilities of the mixture [rows, classes]."""
        each = (
            share * _probability(self.models[name], X, self.n_classes)
            for name, share in self.shares.items()
        )
        return np.asarray(sum(each))


@dataclass(frozen=True)
class CrossFit:
    """Models of one target, each of which predicts people that it has not seen."""

    shares: Mapping[str, float]  # kind of model -> its share of the mixture
    fold: np.ndarray  # [n]
    models: Mapping[int, Mixture]  # by fold: fitted to the others
    report: Nuisance

    def at(self, features: Features, kinds: Sequence[str] = ()) -> dict[str, np.ndarray]:
        """Out-of-fold probabilities with these columns: kind of model -> [n, classes].

        Of `kinds`, or of those that have a share; the mixture then is under `MIXED`.
        """
        n_classes = next(iter(self.models.values())).n_classes
        asked = kinds or tuple(self.shares)
        # a row without a model of other folds has no probability, and not what memory held before
        found = {name: np.full((len(self.fold), n_classes), np.nan) for name in asked}
        for number, mixture in self.models.items():
            rows = np.flatnonzero(self.fold == number)
            for start in range(0, len(rows), CHUNK):
                part = rows[start : start + CHUNK]
                X = features.take(part)
                for name in asked:
                    found[name][part] = _probability(mixture.models[name], X, n_classes)
        if not kinds:
            mixed = sum(share * found[name] for name, share in self.shares.items())
            found[MIXED] = np.asarray(mixed)
        return found

    def chance(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Out-of-fold P(1) of rows (positions) of the table, were their columns `X` [rows, d]."""
        found, fold = np.full(len(X), np.nan), self.fold[rows]
        for number, mixture in self.models.items():
            here = np.flatnonzero(fold == number)
            if len(here):
                found[here] = mixture.predict_proba(X[here])[:, 1]
        return found

    @property
    def unused(self) -> tuple[str, ...]:
        """Kinds of models without a share of the mixture."""
        kinds = next(iter(self.models.values())).models
        return tuple(name for name in kinds if name not in self.shares)


on_one_thread = one_thread()  # decorates functions


def cross_fit(
    problem: SelectiveLabels,
    name: str,
    features: Features,
    target: np.ndarray,
    *,
    n_classes: int = 2,
    among: np.ndarray | None = None,
    fold: np.ndarray,
    only: int | None = None,
    learners: Learners = candidate_models,
    max_rows: int = FITTED_ROWS,
    random_state: int | np.random.Generator = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> CrossFit:
    """Models of the classes of `target`, one mixture per fold, fitted to the rows of the others.

    Parameters
    ----------
    problem
        The rows: whose they are, and how much each counts.
    name
        What is predicted, for the report.
    features
        What the models see.
    target
        Class of each row [n], codes from 0.
    n_classes
        How many there are.
    among
        Rows to learn from [n]; all of them by default.
    fold
        The fold of each row [n]; a person's rows in one fold.
    only
        The one fold that is to be predicted; all of them by default.
    learners
        Makes the kinds of models: (classes, seed) -> name -> untrained classifier.
    max_rows
        Rows a model is fitted to, at most.
    random_state
        Seed of subsamples and trees.
    progress
        Called with a few words before each fold.
    """
    rng = np.random.default_rng(random_state)
    seen = np.ones(len(target), bool) if among is None else among
    weight = problem.weights
    seen = seen & (weight > 0)
    most = min(max_rows, FITTED_CELLS // features.width)
    target = target.astype(np.int64)
    fitted: dict[int, dict[str, Any]] = {}
    own: dict[int, tuple[np.ndarray, dict[str, np.ndarray]]] = {}
    folds = np.unique(fold)
    for count, number in enumerate(folds, start=1):
        if only is not None and number != only:
            continue
        progress(modelling(name, count, len(folds)))
        seed = int(rng.integers(2**31))
        rows = in_random_order(np.flatnonzero(seen & (fold != number)), problem.person, rng, most)
        X, y, w = features.take(rows), target[rows], weight[rows]
        fitted[int(number)] = {
            kind: fit_copy(model, X, y, w) for kind, model in learners(n_classes, seed).items()
        }
        judged = draw_rows(np.flatnonzero(seen & (fold == number)), JUDGED, rng)
        X = features.take(judged)
        own[int(number)] = (
            judged,
            {kind: _probability(m, X, n_classes) for kind, m in fitted[int(number)].items()},
        )
    rows = np.concatenate([judged for judged, _ in own.values()])
    kinds = list(next(iter(fitted.values())))
    guesses = {kind: np.concatenate([p[kind] for _, p in own.values()]) for kind in kinds}
    shares = _shares(guesses, target[rows], weight[rows])
    models = {number: Mixture(made, shares, n_classes) for number, made in fitted.items()}
    mixed = np.asarray(sum(share * guesses[kind] for kind, share in shares.items()))
    report = _report(name, shares, guesses, mixed, target[rows], weight[rows])
    return CrossFit(shares, fold, models, report)


def modelling(name: str, part: int, parts: int) -> str:
    """What is said before a fold is left out and the others are learnt from."""
    return f"modelling {name}, part {part} of {parts}"


def fit_copy(model: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> Any:
    """A fitted copy of a classifier, or the constant where only one class is there to learn."""
    if len(np.unique(y)) < 2:
        return Constant(y)
    weighted = {}
    if np.ptp(weight) > 0:
        last = model.steps[-1][0] + "__" if hasattr(model, "steps") else ""
        weighted = {f"{last}sample_weight": weight / weight.mean()}
    with config_context(enable_metadata_routing=False):  # or a pipeline would refuse the weights
        return clone(model).fit(X, y, **weighted)


class Constant:
    """Predicts the one class it was given, or knows nothing of any."""

    def __init__(self, y: np.ndarray) -> None:
        self.classes_ = np.unique(y)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Certain of its class [rows, at most 1]."""
        return np.ones((len(X), len(self.classes_)))


def best_mixture(likelihood: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Shares of the models whose mixture makes what was seen most likely.

    `likelihood` [models, n] is the probability that each model gave to what happened. By
    expectation-maximisation: a model's share is its mean responsibility for what was seen.
    """
    shares = np.full(len(likelihood), 1 / len(likelihood))
    for _ in range(200):
        responsibility = shares[:, None] * likelihood
        responsibility /= responsibility.sum(axis=0)
        before, shares = shares, responsibility @ weight / weight.sum()
        if np.abs(shares - before).max() < 1e-4:
            break
    return shares


def _probability(model: Any, X: np.ndarray, n_classes: int) -> np.ndarray:
    """Probabilities [rows, classes]; a class that training did not hold gets (almost) none."""
    if not len(model.classes_):
        return np.full((len(X), n_classes), 1 / n_classes)
    probability = np.zeros((len(X), n_classes))
    if len(X):
        probability[:, np.asarray(model.classes_, np.int64)] = model.predict_proba(X)
    probability = np.clip(probability, CERTAIN, 1 - CERTAIN)
    return probability / probability.sum(axis=1, keepdims=True)


def _shares(
    guesses: Mapping[str, np.ndarray], truth: np.ndarray, weight: np.ndarray
) -> dict[str, float]:
    """The proportions that predict best; small ones are left out."""
    kinds = list(guesses)
    if not len(truth):
        return {kinds[0]: 1.0}
    own = np.stack([guesses[kind][np.arange(len(truth)), truth] for kind in kinds])
    found = best_mixture(own, weight)
    kept = np.where(found < LEAST_SHARE, 0.0, found)
    kept /= kept.sum()
    return {kind: float(share) for kind, share in zip(kinds, kept, strict=True) if share > 0}


def _report(
    name: str,
    shares: Mapping[str, float],
    guesses: Mapping[str, np.ndarray],
    mixed: np.ndarray,
    truth: np.ndarray,
    weight: np.ndarray,
) -> Nuisance:
    from dcem.metrics import auc

    def loss(p: np.ndarray) -> float:
        if not len(truth):
            return float("nan")
        return float(-np.average(np.log(p[np.arange(len(truth)), truth]), weights=weight))

    n_classes = mixed.shape[1]
    rate = np.bincount(truth, weight, minlength=n_classes) / max(weight.sum(), 1e-300)
    two = n_classes == 2 and 0 < truth.sum() < len(truth)
    return Nuisance(
        name=name,
        chosen=", ".join(f"{100 * share:.0f} % {kind}" for kind, share in shares.items()),
        log_loss=loss(mixed),
        log_loss_of_rate=loss(np.broadcast_to(np.maximum(rate, 1e-12), mixed.shape)),
        auc=auc(truth, mixed[:, 1], weight=weight) if two else float("nan"),
        each={kind: loss(p) for kind, p in guesses.items()},
    )


def in_random_order(
    rows: np.ndarray, person: np.ndarray, rng: np.random.Generator, most: int | None = None
) -> np.ndarray:
    """At most `most` of the rows, people in random order, a person's rows together."""
    if not len(rows):
        return rows
    place = rng.permutation(int(person.max()) + 1)[person[rows]]
    return rows[np.argsort(place, kind="stable")][:most]


def draw_rows(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """At most `most` of the rows, in their order."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))
