"""Learners by name: made, written as plain arrays, and read again.

A new learner is a class and an entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from dcem.learners.learner import Foreign
from dcem.table.messages import InputError, did_you_mean

LEARNERS = {
    "linear": "dcem.learners.linear:Linear",
    "boost": "dcem.learners.boost:Boost",
    "forest": "dcem.learners.forest:Forest",
    "smooth": "dcem.learners.smooth:Smooth",
    "perceptron": "dcem.learners.perceptron:Perceptron",
}


def make_learner(learner: Any, seed: int, *, squared: bool = False, **options: Any) -> Any:
    """A fresh learner: one of `LEARNERS` by name, or a scikit-learn classifier to be cloned.

    `squared` fits a real number, such as a pseudo-outcome, by squared error, and calls what it
    predicts a probability; `options` are of the learner of that name.
    """
    if isinstance(learner, str):
        if learner not in LEARNERS:
            hint = did_you_mean(learner, [*LEARNERS, "network"])
            raise InputError(
                f"Unknown learner {learner!r}.{hint} Known: network, {', '.join(LEARNERS)}; or "
                "give a scikit-learn classifier."
            )
        return learner_class(learner)(seed, squared, **options)
    return Foreign(learner, seed, squared)


def learner_class(name: str) -> Any:
    """The class of a learner of `LEARNERS`."""
    module, _, cls = LEARNERS[name].partition(":")
    return getattr(import_module(module), cls)


def dump_learner(learner: Any) -> tuple[str, dict[str, np.ndarray]]:
    """The name of a fitted learner and all that it learnt; TypeError for a third-party model."""
    name = getattr(learner, "name", None)
    if name not in LEARNERS:
        model = type(getattr(learner, "model", learner)).__name__
        raise TypeError(
            f"{model} cannot be written without pickle, which would run code when it is loaded. "
            f"Choose a learner of dcem ({', '.join(LEARNERS)}, network)"
        )
    return name, learner.arrays()


def load_learner(name: str, arrays: Mapping[str, np.ndarray], n_features: int) -> Any:
    """The learner that `dump_learner` wrote; ValueError where the arrays do not fit together."""
    if name not in LEARNERS:
        raise ValueError(f"unknown learner {name!r}")
    return learner_class(name).from_arrays(arrays, n_features)
