"""The metrics of every result table by name: a function of a sorted score, words, and a sense.

Benchmarks measure what is entered here, and leaderboards show it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from dcem.metrics.groups import Sorted


class Metric(NamedTuple):
    """What a reader must know of a metric, and how it is computed."""

    words: str
    better: Literal["higher", "lower"]
    value: Callable[[Sorted], float]


RANKING = {
    "auc": Metric("AUC", "higher", Sorted.auc),
    "roc_gap": Metric("ROC gap (exact)", "lower", Sorted.roc_gap),
    "roc_gap_grid": Metric("ROC gap (as published)", "lower", lambda one: one.roc_gap("grid")),
    "xauc_difference": Metric("xAUC difference", "lower", Sorted.xauc_difference),
    "auc_difference": Metric(
        "AUC difference of the groups, absolute", "lower", Sorted.auc_difference
    ),
}


def ranking(y: Any, score: Any, group: Any, *, weight: Any = None) -> dict[str, float]:
    """What the functions of this package say of one score, by the names of `RANKING`, rows sorted
    once. `roc_gap_grid` is ``method="grid"``, `auc_difference` that of the first pair of groups.
    """
    rows = Sorted.of(y, score, group, weight)
    return {name: metric.value(rows) for name, metric in RANKING.items()}
