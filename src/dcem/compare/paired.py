"""Is one score better than another? Both on the same resampled people.

Two scores of the same test set share its luck: a resample with many easy people flatters both.
Comparing their separate intervals ignores this and calls real differences unclear. Here every
resample is scored by all, and the interval is that of the *difference*.

It describes the sampling of people for fixed scores, not how the models would change with other
training data. The ROC gap is an absolute value and noise pushes it up, the more the nearer it is
to zero; the interval of a difference of gaps therefore leans against the fairer score.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from dcem.metrics import Estimate, auc, roc_gap
from dcem.table.checks import DataWarning, InputError

METRICS = ("auc", "roc_gap")


def paired_differences(
    y: Any,
    scores: Mapping[str, Any],
    group: Any,
    *,
    reference: str,
    id: Any = None,
    n_replicates: int = 300,
    level: float = 0.95,
    random_state: int | np.random.Generator = 0,
) -> dict[str, dict[str, Estimate]]:
    """Differences in AUC and ROC gap of each score to the reference one.

    Args:
        y: true labels [n].
        scores: name -> score [n]; all for the same rows.
        group: the group of each row.
        reference: the name of the score the others are compared with.
        id: the person of each row; a person's rows are drawn together. Default: all distinct.
        n_replicates: resamples, drawn within groups.
        level: of the intervals (percentile).
        random_state: seed or generator of the resamples.

    Returns:
        name -> {"auc", "roc_gap"} -> interval of (score minus reference), without the reference.
    """
    if reference not in scores:
        raise InputError(f"no score named {reference!r}; there are {', '.join(scores)}")
    rng = np.random.default_rng(random_state)
    y, group = np.asarray(y), np.asarray(group)
    person = np.arange(len(y)) if id is None else np.unique(np.asarray(id), return_inverse=True)[1]
    first_row = np.unique(person, return_index=True)[1]
    strata = [np.flatnonzero(group[first_row] == value) for value in np.unique(group)]

    def measure(weight: np.ndarray | None) -> dict[str, np.ndarray]:
        return {
            name: np.array([auc(y, score, weight=weight), roc_gap(y, score, group, weight=weight)])
            for name, score in scores.items()
        }

    observed = measure(None)
    replicates = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # said once, for the observed rows
        for _ in range(n_replicates):
            drawn = np.concatenate([rng.choice(people, len(people)) for people in strata])
            replicates.append(measure(np.bincount(drawn, minlength=len(first_row))[person]))
    return {
        name: {
            metric: _interval(
                float(observed[name][i] - observed[reference][i]),
                np.array([one[name][i] - one[reference][i] for one in replicates]),
                level,
            )
            for i, metric in enumerate(METRICS)
        }
        for name in scores
        if name != reference
    }


def _interval(estimate: float, replicates: np.ndarray, level: float) -> Estimate:
    usable = replicates[~np.isnan(replicates)]
    if np.isnan(estimate) or not len(usable):
        why = "a group has only one class"
        return Estimate(np.nan, reason=why)
    low, high = np.quantile(usable, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(estimate, float(low), float(high))
