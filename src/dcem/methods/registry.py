"""All methods by name."""

from __future__ import annotations

from typing import Any

from dcem import checks
from dcem.methods.base import NetworkClassifier
from dcem.methods.dcem import DCEMClassifier, ImputationOnly, NoCausalRegularization
from dcem.methods.dividemix import DivideMix
from dcem.methods.dragonnet import DragonNet
from dcem.methods.peer_loss import GroupPeerLoss, PeerLoss
from dcem.methods.robust_losses import GeneralizedJensenShannon, TruncatedLq
from dcem.methods.sar_em import SarEM
from dcem.methods.self_ensemble import SelfEnsemble
from dcem.methods.supervised import (
    GroupOnly,
    ObservedLabels,
    Oracle,
    TestedOnly,
    TestedOnlyPlusGroup,
)
from dcem.methods.weighting import DoublyRobustLearner, InversePropensity

METHODS: dict[str, type[NetworkClassifier]] = {
    cls.name: cls
    for cls in (
        ObservedLabels,
        Oracle,
        GroupOnly,
        TestedOnly,
        TestedOnlyPlusGroup,
        InversePropensity,
        DoublyRobustLearner,
        DragonNet,
        PeerLoss,
        GroupPeerLoss,
        TruncatedLq,
        GeneralizedJensenShannon,
        SelfEnsemble,
        DivideMix,
        SarEM,
        ImputationOnly,
        NoCausalRegularization,
        DCEMClassifier,
    )
}


def names(*, usable: bool | None = None) -> list[str]:
    """Names of the methods; with `usable=True` those that a user can run without the truth."""
    found = [name for name, cls in METHODS.items() if usable is None or usable != cls().uses_truth]
    return found


def make(name: str, **params: Any) -> NetworkClassifier:
    """The method of that name, with these parameters."""
    if name not in METHODS:
        near = checks.nearest(name, METHODS)
        hint = f" Did you mean {near!r}?" if near else ""
        raise checks.InputError(f"There is no method {name!r}.{hint} Known: {', '.join(METHODS)}.")
    return METHODS[name](**params)
