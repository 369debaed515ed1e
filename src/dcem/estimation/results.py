"""What estimates without the truth rest on: whom they speak of, overlap, nuisance models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

EVERYBODY = "everybody"  # the key of curves and estimates that are not of one group


@dataclass(frozen=True)
class Target:
    """Whom a number is about, and what has to hold for it."""

    key: str  # "tested", "ipw", "dr" or "truth"
    name: str  # "among the tested", "everybody, doubly robust", ...: a table's heading
    assumption: str  # one sentence: when the number is right
    available: bool = True  # False: nothing of this target is estimable here, and `reason` why
    reason: str = ""


@dataclass(frozen=True)
class Histogram:
    """Shares of people by a probability; bins of under ten people are shown as empty (0)."""

    edges: np.ndarray  # [bins + 1] from 0 to 1
    share: Mapping[str, np.ndarray]  # by group -> [bins], of that group's people counted


@dataclass(frozen=True)
class Overlap:
    """Could everybody have been tested? Without it the population cannot be estimated."""

    estimable: bool  # whether population estimates are given
    reason: str  # why not, with numbers; empty if they are
    effective_share: float  # effective sample size of the weights over the number tested
    hardly_ever: float  # share of people whose probability of a test is under `floor`
    floor: float
    probability: Histogram  # estimated probability of being tested, by group


@dataclass(frozen=True)
class Nuisance:
    """One of the models that the population estimates lean on."""

    name: str  # "who is tested" or "what a test would show"
    chosen: str  # the kind of model, with its share if several were combined
    log_loss: float  # out of fold
    log_loss_of_rate: float  # of predicting everybody the overall rate
    auc: float  # out of fold; NaN if there are more than two classes
    each: Mapping[str, float] = field(default_factory=dict)  # log loss of each kind on its own
