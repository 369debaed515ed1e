"""Settings that methods share: how a propensity network trains, and what published runs chose.

The paper's runs are a lattice of switches; each class says in `as_published` which it takes.
Sources: the released code and configurations where they exist, the paper's appendix D elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WITHOUT_NETWORKS = (
    "The method ensemble works without, and methods such as tested-only take other learners, such "
    "as boost."
)


@dataclass(frozen=True)
class PropensitySettings:
    """How the propensity network is trained."""

    hidden: tuple[int, ...] = (64, 64)
    steps: int = 1000
    learning_rate: float = 1e-3
    check_every: int = 1
    patience: int | None = None  # checks without a better validation loss; None: all steps
    keep: str = "last"  # or "best"


# Every method: raw features, full batches, seed 42.
COMMON: dict[str, Any] = {"preprocess": None, "batch_size": None, "random_state": 42}
# One network, all steps, last weights.
SINGLE: dict[str, Any] = {"patience": None}
RELEASED: dict[str, Any] = {"variant": "published"}
# What sepsis changes: wider networks, ten times the steps, a hundredth of the learning rate.
# `hidden_sizes` did not reach nested networks in the release: dragonnet, sar-em and the propensity
# network of dcem stayed at (64, 64).
WIDE: dict[str, Any] = {"hidden": (128, 128, 16)}
SLOW: dict[str, Any] = {"steps": 10_000, "learning_rate": 1e-5, "weight_decay": 1e-3}
