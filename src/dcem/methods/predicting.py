"""Scores of many fitted estimators: what `predict_proba` gives, for a whole fleet at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from dcem.engine import Fleet
from dcem.methods.network import NetworkClassifier
from dcem.table.labels import SelectiveLabels

# The most numbers that are stacked: 80 MB of features. Long tables gain nothing from company.
MOST = 10_000_000


def score_many(
    estimators: Sequence[NetworkClassifier], problems: Sequence[SelectiveLabels]
) -> list[np.ndarray]:
    """The probability of class 1 `[n]` of each problem's rows by its own estimator.

    Estimators of one method, fitted by one `fit_many`, go through their networks together.
    """
    if not _alike(estimators, problems):
        return [_score(*pair) for pair in zip(estimators, problems, strict=True)]
    members = len(estimators[0].fleet_)
    X = np.stack(
        [one.preprocessor_.transform(problem.X, one.dtype)
         for one, problem in zip(estimators, problems, strict=True)]
    )  # fmt: skip
    flat = torch.cat([one.fleet_.flat for one in estimators])
    rows = torch.from_numpy(X).repeat_interleave(members, 0)  # [K members, n, d]
    scores = Fleet(estimators[0].fleet_.architecture, flat).predict(rows).double().numpy()
    return list(scores.reshape(len(estimators), members, -1).mean(axis=1))


def _alike(estimators: Sequence[NetworkClassifier], problems: Sequence[SelectiveLabels]) -> bool:
    """Whether plain networks of one shape meet tables of one shape, and not too long ones."""
    first, shape = estimators[0], problems[0].X.shape
    return (
        type(first).predict_proba is NetworkClassifier.predict_proba
        and hasattr(first, "fleet_")
        and len(problems) * shape[0] * shape[1] <= MOST
        and all(problem.X.shape == shape for problem in problems)
        and all(
            one.fleet_.architecture is first.fleet_.architecture
            and len(one.fleet_) == len(first.fleet_)
            for one in estimators
        )
    )


def _score(estimator: NetworkClassifier, problem: SelectiveLabels) -> np.ndarray:
    group: dict[str, Any] = {}
    if estimator.needs_group:
        group = {"sensitive_features": np.asarray(problem.group_names)[problem.group]}
    positive: np.ndarray = estimator.predict_proba(problem, **group)[:, 1]
    return positive
