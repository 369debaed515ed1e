"""The two models that population estimates lean on, each fitted to other rows than it speaks of.

*Who is tested*: e(x, a) = P(tested | features, group), from all rows. *What a test would show*:
m(x, a) = P(positive | features, group, tested), from the tested rows. Both see the group, although
the scored model may not: who is tested differs between groups, and that is the point.

They are of another kind than the networks they help to judge, so that the judge does not share the
accused's mistakes: a logistic regression, the same on a smooth kernel expansion of the features,
and boosted trees, mixed in the proportions that predict held-out rows best (by log-loss, each fold
predicted by models that did not see it). The first is hard to beat where policies are simple or
labels few, the others where neither holds.

*Truncation.* A probability of being tested under `FLOOR` is taken as `FLOOR`: no tested row stands
for more than 100 people. Where that matters for more than a few, `overlap` refuses to estimate.

References: V. Chernozhukov et al., "Double/debiased machine learning for treatment and structural
parameters", Econometrics Journal 2018 (cross-fitting); M. van der Laan, E. Polley and A. Hubbard,
"Super learner", 2007 (mixing by held-out loss).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dcem.estimation.results import Nuisance
from dcem.table.labels import SelectiveLabels

FLOOR = 0.01  # the smallest probability of a test that anything is divided by
_CERTAIN = 1e-4  # predictions are kept this far from 0 and 1


@dataclass(frozen=True)
class Nuisances:
    """Out-of-fold predictions for every row, and how good they are."""

    testing: np.ndarray  # [n] P(tested | x, a), as predicted
    outcome: np.ndarray  # [n] P(positive | x, a, tested)
    reports: tuple[Nuisance, Nuisance]

    @property
    def truncated_testing(self) -> np.ndarray:
        """P(tested | x, a), no less than `FLOOR` [n]: what is divided by."""
        return np.maximum(self.testing, FLOOR)


def cross_fit(
    problem: SelectiveLabels, fold: np.ndarray, random_state: int | np.random.Generator = 0
) -> Nuisances:
    """Both models for every row, from the rows of the other folds.

    Args:
        problem: the rows.
        fold: the fold of each row [n], codes from 0; a person's rows in one fold.
        random_state: seed of the trees.
    """
    rng = np.random.default_rng(random_state)
    X = with_group(problem)
    weight = np.ones(len(problem)) if problem.weight is None else problem.weight
    everybody = np.ones(len(problem), bool)
    seed = int(rng.integers(2**31))
    testing, of_testing = _predict(
        "who is tested", X, problem.tested.astype(int), everybody, weight, fold, seed
    )
    outcome, of_outcome = _predict(
        "what a test would show",
        X,
        problem.y_imputed.astype(int),
        problem.tested,
        weight,
        fold,
        seed + 1,
    )
    return Nuisances(testing, outcome, (of_testing, of_outcome))


def with_group(problem: SelectiveLabels) -> np.ndarray:
    """Features and one indicator a group [n, d + G]."""
    if problem.n_groups == 1:
        return problem.X
    return np.concatenate([problem.X, np.eye(problem.n_groups)[problem.group]], axis=1)


def candidates(n_rows: int, n_columns: int, seed: int) -> dict[str, Any]:
    """The kinds of models, untrained."""

    def scaled(*steps: Any) -> Any:
        fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        return make_pipeline(fill, StandardScaler(), *steps)

    kernel = Nystroem(
        gamma=2 / n_columns, n_components=min(100, max(n_rows // 4, 2)), random_state=seed
    )
    return {
        "logistic regression": scaled(LogisticRegression(max_iter=300)),
        "kernel regression": scaled(kernel, LogisticRegression(C=10.0, max_iter=300)),
        "boosted trees": HistGradientBoostingClassifier(
            max_iter=60 if n_rows < 2000 else 120,
            learning_rate=0.08,
            max_leaf_nodes=8 if n_rows < 2000 else 16,
            min_samples_leaf=20,
            early_stopping=False,
            random_state=seed,
        ),
    }


def _predict(
    name: str,
    X: np.ndarray,
    y: np.ndarray,
    learned_from: np.ndarray,
    weight: np.ndarray,
    fold: np.ndarray,
    seed: int,
) -> tuple[np.ndarray, Nuisance]:
    """Out-of-fold predictions of all rows [n], by models of `learned_from` rows."""
    width = X.shape[1]
    kinds = list(candidates(2, width, seed))
    guesses = np.empty((len(kinds), len(X)))
    for number in np.unique(fold):
        out, into = fold == number, learned_from & (fold != number)
        for i, model in enumerate(candidates(int(into.sum()), width, seed).values()):
            guesses[i, out] = fit_and_predict(model, X[into], y[into], weight[into], X[out])
    guesses = np.clip(guesses, _CERTAIN, 1 - _CERTAIN)
    seen = learned_from & (weight > 0)
    truth, counted = y[seen], weight[seen]
    shares = best_mixture(np.where(truth == 1, guesses[:, seen], 1 - guesses[:, seen]), counted)
    mixed = shares @ guesses

    def loss(p: Any) -> float:
        return float(log_loss(truth, p, sample_weight=counted, labels=[0, 1]))

    return mixed, Nuisance(
        name=name,
        chosen=", ".join(
            f"{100 * share:.0f} % {kind}"
            for kind, share in zip(kinds, shares, strict=True)
            if share >= 0.005
        ),
        log_loss=loss(mixed[seen]),
        log_loss_of_rate=loss(np.full(len(truth), np.average(truth, weights=counted))),
        auc=float(roc_auc_score(truth, mixed[seen], sample_weight=counted))
        if 0 < truth.sum() < len(truth)
        else float("nan"),
    )


def best_mixture(likelihood: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Shares of the models whose mixture makes what was seen most likely.

    `likelihood` [models, n] is the probability that each model gave to what happened. By
    expectation-maximisation: a model's share is the mean share of the blame it deserves.
    """
    shares = np.full(len(likelihood), 1 / len(likelihood))
    for _ in range(200):
        blame = shares[:, None] * likelihood
        shares = (blame / blame.sum(axis=0)) @ weight / weight.sum()
    return shares


def fit_and_predict(
    model: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """P(1) of `rows`; the constant where only one class is there to learn from."""
    if len(y) == 0:
        return np.full(len(rows), 0.5)
    if y.min() == y.max():
        return np.full(len(rows), float(y[0]))
    weighted = {}
    if np.ptp(weight) > 0:
        last = model.steps[-1][0] + "__" if hasattr(model, "steps") else ""
        weighted = {f"{last}sample_weight": weight}
    p: np.ndarray = model.fit(X, y, **weighted).predict_proba(rows)[:, 1]
    return p
