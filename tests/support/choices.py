"""What tests take where anything would do: a part of many parameters, and the quickest learner.

Methods, learners and layouts cross into hundreds of cases that take the same path. A plain run
takes each value once, and `--slow` all.
"""

from collections.abc import Collection, Sequence
from typing import Any

import pytest

from dcem.estimation.nuisance_learners import candidate_models

SLOW = pytest.mark.slow


def some(values: Sequence[Any], now: Collection[Any]) -> list[Any]:
    """All values; those that are not in `now` run with `--slow`."""
    assert set(now) <= set(values), set(now) - set(values)
    return [one if one in now else pytest.param(one, marks=SLOW) for one in values]


def each_once(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """All pairs; a plain run takes those in which every value of both comes at least once."""
    now = {
        (first[i % len(first)], second[i % len(second)])
        for i in range(max(len(first), len(second)))
    }
    pairs = [(one, other) for one in first for other in second]
    return [pair if pair in now else pytest.param(*pair, marks=SLOW) for pair in pairs]


def linear(n_classes: int, seed: int) -> dict[str, Any]:
    """The quickest of the usual models, where the truth is a line or nothing hangs on it."""
    name = "logistic regression"
    return {name: candidate_models(n_classes, seed)[name]}
