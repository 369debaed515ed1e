"""Models that audit and comparison lean on, each fitted to other people than it speaks of.

Three probabilities are needed, and all else follows from them:

* *who is tested*: e(x, a) = P(tested | features, group), from all rows;
* *what a test would show*: m(x, a) = P(positive | features, group, tested), from the tested;
* *who belongs to which group*: pi(a | x), from all rows, where groups are compared.

Testing given the features alone is sum_a pi(a | x) e(x, a), the group among the tested follows by
Bayes' rule, and the outcome given the features alone from both: no model is fitted for them.

They are means to an end (nuisances), so they should be flexible, need no tuning, and not have seen
the row they predict: a model that has would find every tested person likely to be tested. People
are shared out over folds; a fold is predicted by models fitted on the others. Several kinds of
models (`candidates`) are mixed in the proportions that predict held-out rows best, by log loss
(super learner; mixed once over all folds: short-stacking). What a number would be under each kind
alone stands beside it (`Nuisances.each`).

Large tables are fitted on a random part of each training side, at most `row_budget` rows and three
million numbers; *all* rows are predicted, a chunk at a time.

References: V. Chernozhukov et al., "Double/debiased machine learning for treatment and structural
parameters", Econometrics Journal 2018 (cross-fitting); M. van der Laan, E. Polley and A. Hubbard,
"Super learner", 2007; A. Ahrens et al., "Model averaging and double machine learning", Journal of
Applied Econometrics 2025 (short-stacking).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from dcem.estimation.candidates import candidates
from dcem.estimation.results import Nuisance
from dcem.table.labels import SelectiveLabels

FLOOR = 0.01  # of the mean rate: the smallest probability of a test that is divided by
ROW_BUDGET = 50_000  # rows a model is fitted to, at most
CELLS = 3_000_000  # rows times columns that a model is fitted to, at most
CHUNK = 50_000  # rows predicted at once
JUDGED = 20_000  # held-out rows per fold that decide the proportions
LEAST_SHARE = 0.05  # kinds of models with less are left out of the mixture
CERTAIN = 1e-4  # predictions are kept this far from 0 and 1
MIXED = "all, mixed"

Learners = Callable[[int, int], Mapping[str, Any]]  # (classes, seed) -> name -> untrained model


@dataclass(frozen=True)
class Features:
    """Columns a model sees: the features, and the group as 0/1 columns if it may see that."""

    X: np.ndarray
    group: np.ndarray | None = None  # [n] codes
    n_groups: int = 0

    @classmethod
    def of(cls, problem: SelectiveLabels) -> Features:
        """Features and group, where there is more than one."""
        if problem.n_groups < 2:
            return cls(problem.X)
        return cls(problem.X, problem.group, problem.n_groups)

    @property
    def width(self) -> int:
        """Columns a model sees."""
        return self.X.shape[1] + self.n_groups

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The columns of these rows: [rows, d (+ groups)]."""
        X = self.X[rows]
        if self.group is None:
            return X
        member = self.group[rows][:, None] == np.arange(self.n_groups)
        return np.concatenate([X, member], axis=1)

    def as_group(self, code: int) -> Features:
        """The same people, all called members of one group."""
        return Features(self.X, np.full(len(self.X), code), self.n_groups)


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
        found = {name: np.empty((len(self.fold), n_classes)) for name in asked}
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

    @property
    def unused(self) -> tuple[str, ...]:
        """Kinds of models without a share of the mixture."""
        kinds = next(iter(self.models.values())).models
        return tuple(name for name in kinds if name not in self.shares)


def cross_fit(
    name: str,
    features: Features,
    target: np.ndarray,
    *,
    n_classes: int = 2,
    among: np.ndarray | None = None,
    fold: np.ndarray,
    person: np.ndarray,
    weight: np.ndarray | None = None,
    learners: Learners = candidates,
    row_budget: int = ROW_BUDGET,
    random_state: int | np.random.Generator = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> CrossFit:
    """Models of the classes of `target`, one mixture per fold, fitted to the rows of the others.

    Parameters
    ----------
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
    person
        Code of each row's person [n].
    weight
        How much each row counts [n].
    learners
        Makes the kinds of models: (classes, seed) -> name -> untrained classifier.
    row_budget
        Rows a model is fitted to, at most.
    random_state
        Seed of subsamples and trees.
    progress
        Called with a few words before each fold.
    """
    rng = np.random.default_rng(random_state)
    seen = np.ones(len(target), bool) if among is None else among
    if weight is None:
        weight = np.ones(len(target))
    seen = seen & (weight > 0)
    most = min(row_budget, CELLS // features.width)
    target = target.astype(np.int64)
    fitted: dict[int, dict[str, Any]] = {}
    own: dict[int, tuple[np.ndarray, dict[str, np.ndarray]]] = {}
    folds = np.unique(fold)
    for count, number in enumerate(folds, start=1):
        progress(f"modelling {name}, part {count} of {len(folds)}")
        seed = int(rng.integers(2**31))
        rows = _in_random_order(np.flatnonzero(seen & (fold != number)), person, most, rng)
        X, y, w = features.take(rows), target[rows], weight[rows]
        fitted[int(number)] = {
            kind: fit(model, X, y, w) for kind, model in learners(n_classes, seed).items()
        }
        judged = _some(np.flatnonzero(seen & (fold == number)), JUDGED, rng)
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


def fit(model: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> Any:
    """A fitted copy of a classifier, or the constant where only one class is there to learn."""
    if len(np.unique(y)) < 2:
        return Constant(y)
    weighted = {}
    if np.ptp(weight) > 0:
        last = model.steps[-1][0] + "__" if hasattr(model, "steps") else ""
        weighted = {f"{last}sample_weight": weight / weight.mean()}
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


@dataclass(frozen=True)
class Nuisances:
    """Out-of-fold predictions for every row, and how good they are.

    What is *alone* is given the features and not the group; None where groups are not compared.
    """

    testing: np.ndarray  # [n] P(tested | x, a), as predicted
    outcome: np.ndarray  # [n] P(positive | x, a, tested)
    reports: tuple[Nuisance, ...] = ()
    membership: np.ndarray | None = None  # [n, groups] P(group | x)
    testing_alone: np.ndarray | None = None  # [n] P(tested | x)
    outcome_alone: np.ndarray | None = None  # [n] P(positive | x, tested)
    membership_tested: np.ndarray | None = None  # [n, groups] P(group | x, tested)
    each: Mapping[str, Nuisances] = field(default_factory=dict)  # by one kind of model alone
    testing_each: Mapping[str, np.ndarray] = field(default_factory=dict)  # [n], all kinds
    testing_model: CrossFit | None = None
    known: bool = False  # whether `testing` are the probabilities of a design

    @property
    def truncated_testing(self) -> np.ndarray:
        """P(tested | x, a), no less than `FLOOR` of its mean [n]: what is divided by."""
        return np.maximum(self.testing, FLOOR * self.testing.mean())


def fit_nuisances(
    problem: SelectiveLabels,
    fold: np.ndarray,
    random_state: int | np.random.Generator = 0,
    *,
    groups: bool = False,
    outcomes: bool = True,
    learners: Learners = candidates,
    row_budget: int = ROW_BUDGET,
    progress: Callable[[str], None] = lambda text: None,
) -> Nuisances:
    """All models of a table for every row, from the rows of the other folds.

    Parameters
    ----------
    problem
        The rows. Where it knows the probability of each test (`testing_probability`), that takes
        the place of the modelled one.
    fold
        The fold of each row [n]; a person's rows in one fold.
    random_state
        Seed of subsamples and trees.
    groups
        Whether groups are to be compared at equal features: then who belongs to which is modelled
        too, and what follows from it.
    outcomes
        Whether what a test would show is modelled at all.
    learners, row_budget, progress
        As for `cross_fit`.
    """
    rng = np.random.default_rng(random_state)
    tested = problem.tested
    seen = problem.y_obs[tested]
    features = Features.of(problem)
    groups = groups and problem.n_groups > 1

    def fit(name: str, features: Features, target: np.ndarray, **how: Any) -> CrossFit:
        return cross_fit(
            name,
            features,
            target,
            fold=fold,
            person=problem.person,
            weight=problem.weight,
            learners=learners,
            row_budget=row_budget,
            random_state=rng,
            progress=progress,
            **how,
        )

    testing = outcome = member = None
    if tested.any() and not tested.all():
        testing = fit("who is tested", features, tested)
    if outcomes and len(np.unique(seen)) == 2:
        outcome = fit("what a test would show", features, problem.y_imputed, among=tested)
    if groups and tested.any():
        member = fit("the group", Features(problem.X), problem.group, n_classes=problem.n_groups)
    fitted = [one for one in (testing, outcome, member) if one is not None]
    kinds = dict.fromkeys(name for one in fitted for name in one.shares)
    constant = float(tested.mean()), float(seen.mean()) if len(seen) else 0.5
    predicted = [
        {MIXED: np.full((len(problem), 1), value)}
        if one is None
        else _predict(one, features, member is not None)
        for one, value in zip((testing, outcome), constant, strict=True)
    ]
    belongs = None if member is None else member.at(Features(problem.X))
    made = {
        kind: _combine(
            problem,
            _under(kind, predicted[0]),
            _under(kind, predicted[1]),
            None if belongs is None else _under(kind, belongs),
        )
        for kind in (*kinds, MIXED)
    }
    found = made.pop(MIXED)
    by_kind = {kind: one.testing for kind, one in made.items()}
    if testing is not None and testing.unused:
        more = testing.at(features, testing.unused)
        by_kind |= {kind: p[:, 1] for kind, p in more.items()}
    if problem.testing_probability is not None:
        found, by_kind = replace(found, testing=problem.testing_probability, known=True), {}
    return replace(
        found,
        reports=tuple(one.report for one in fitted),
        each=made,
        testing_each=by_kind,
        testing_model=testing,
    )


def _predict(model: CrossFit, features: Features, each_group: bool) -> dict[str, np.ndarray]:
    """P(1) of each row as a member of each group [n, groups], or of its own alone [n, 1]."""
    views = [features]
    if each_group:
        views = [features.as_group(code) for code in range(features.n_groups)]
    found = [model.at(view) for view in views]
    return {kind: np.stack([one[kind][:, 1] for one in found], axis=1) for kind in found[0]}


def _under(kind: str, found: Mapping[str, np.ndarray]) -> np.ndarray:
    """By one kind of model, or by the mixture if it does not use that kind."""
    return found.get(kind, found[MIXED])


def _combine(
    problem: SelectiveLabels,
    testing: np.ndarray,
    outcome: np.ndarray,
    member: np.ndarray | None,
) -> Nuisances:
    """What follows from P(tested | x, a), P(positive | x, a) and P(a | x), each [n, groups]."""

    def own(p: np.ndarray) -> np.ndarray:
        return p[:, 0] if p.shape[1] == 1 else p[np.arange(len(p)), problem.group]

    if member is None:
        return Nuisances(own(testing), own(outcome))
    joint = member * testing  # P(a, tested | x)
    alone = joint.sum(axis=1)
    among_tested = joint / alone[:, None]
    return Nuisances(
        own(testing),
        own(outcome),
        membership=member,
        testing_alone=alone,
        outcome_alone=(among_tested * outcome).sum(axis=1),
        membership_tested=among_tested,
    )


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


def _in_random_order(
    rows: np.ndarray, person: np.ndarray, most: int, rng: np.random.Generator
) -> np.ndarray:
    """At most `most` of the rows, people in random order, a person's rows together."""
    if not len(rows):
        return rows
    place = rng.permutation(int(person.max()) + 1)[person[rows]]
    return rows[np.argsort(place, kind="stable")][:most]


def _some(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))
