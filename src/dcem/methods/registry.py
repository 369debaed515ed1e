"""All methods by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
from dcem.table import checks

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
    """The method of that name, with these parameters; the others keep their defaults.

    `dcem methods NAME` (or `help(METHODS[name])`) says what a method's parameters are.
    """
    if name not in METHODS:
        near = checks.nearest(name, METHODS)
        hint = f" Did you mean {near!r}?" if near else ""
        raise checks.InputError(f"There is no method {name!r}.{hint} Known: {', '.join(METHODS)}.")
    _check_names(METHODS[name], params)
    nested = {key: value for key, value in params.items() if "__" in key}  # "propensity__C"
    method = METHODS[name](**{key: params[key] for key in params.keys() - nested})
    return method.set_params(**nested) if nested else method


def with_params(method: NetworkClassifier, params: Mapping[str, Any]) -> NetworkClassifier:
    """The method with these parameters set, in place; a name that it does not have is explained."""
    _check_names(type(method), params)
    return method.set_params(**params) if params else method


def _check_names(cls: type[NetworkClassifier], params: Mapping[str, Any]) -> None:
    known = cls.__dataclass_fields__  # not get_params, which inspects signatures: slow in bulk
    for unknown in params:
        if unknown.split("__")[0] not in known:
            near = checks.nearest(unknown, known)
            hint = f" Did you mean {near!r}?" if near else ""
            raise checks.InputError(
                f"{cls.name} has no parameter {unknown!r}.{hint} Known: {', '.join(known)}."
            )
