"""Plain supervised networks: which rows and which labels they take is all that tells them apart.

All take cross-entropy as their loss. With `patience` a network is checked on validation rows every
ten steps and keeps its best weights; with `patience=None` it takes all steps and keeps the last, as
the published runs do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from dcem.engine import Rows, cross_entropy, supervised
from dcem.engine.fit import Objective
from dcem.engine.fleet import Architecture
from dcem.methods.base import FleetData, NetworkClassifier, Trained
from dcem.methods.stage import train_stage
from dcem.methods.tables import select
from dcem.table import checks


@dataclass(kw_only=True, eq=False, repr=False)
class SupervisedNetwork(NetworkClassifier):
    """Base of the methods that train one network once.

    Parameters
    ----------
    steps, learning_rate, weight_decay
        Of Adam.
    patience
        Checks (one every ten steps) without a lower validation loss before a network stops and
        gets its best weights back; None takes all steps and keeps the last weights.
    """

    steps: int = 1000
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    patience: int | None = 10

    @property
    def uses_validation(self) -> bool:
        """Only stopping looks at validation rows."""
        return self.patience is not None

    def _rows(self, part: Rows, data: FleetData) -> Rows:
        """Features, `target` and `weight` of one split, as the loss wants them."""
        raise NotImplementedError

    def _loss(self, logits: Tensor, rows: Rows) -> Tensor:
        """The loss of each network, `[M]`."""
        return cross_entropy(logits, rows)

    def _objective(self, architecture: Architecture, data: FleetData) -> Objective:
        """From parameters and rows to the loss; overridden where rows pass the network in
        another way than once and as they are."""
        return supervised(architecture, self._loss)

    def _train(self, data: FleetData) -> Trained:
        train = self._rows(data.train, data)
        architecture = self._architecture(int(train.X.shape[-1]))
        fleet = data.fleet(architecture)
        watched = data.validation if self.uses_validation else None
        kept = train_stage(
            self,
            data,
            fleet,
            self._objective(architecture, data),
            train,
            None if watched is None else self._rows(watched, data),
        )
        return Trained(fleet, [{"n_iter_": steps} for steps in kept])


@dataclass(kw_only=True, eq=False, repr=False)
class ObservedLabels(SupervisedNetwork):
    """Count the untested as negative, and train on everybody.

    *Idea.* What is done by default: a label that nobody collected is a zero.

    *Assumption.* Whoever was not tested would have tested negative.

    *When it fails.* Under disparate censorship it learns P(positive and tested): it ranks by risk
    *and* by how likely one is to be tested, and so carries the testing policy into the model.

    References
    ----------
    T. Chang, M. Sjoding and J. Wiens, "Disparate Censorship & Undertesting: A Source of Label Bias
    in Clinical Machine Learning", MLHC 2022, on what this does; the baseline of T. Chang and
    J. Wiens, "From Biased Selective Labels to Pseudo-Labels: An Expectation-Maximization Framework
    for Learning from Biased Decisions", ICML 2024.
    """

    name: ClassVar[str] = "y-obs"

    def _rows(self, part: Rows, data: FleetData) -> Rows:
        return Rows(part.X, {"target": part["y"], "weight": part["weight"]})


@dataclass(kw_only=True, eq=False, repr=False)
class Oracle(SupervisedNetwork):
    """Train on the truth of everybody, tested or not.

    *Idea.* The ceiling: what the same network would learn if nobody were censored.

    *Assumption.* Somebody knows the truth of untested people. Nobody does outside a simulation, so
    this method takes `truth=` and is no choice for real data.

    *When it fails.* On every real table, for want of the truth. And it is a ceiling for *this*
    network and these rows, not for the problem: another network may do better, and on few rows it
    is as noisy as any other fit.

    References
    ----------
    T. Chang and J. Wiens, "From Biased Selective Labels to Pseudo-Labels: An
    Expectation-Maximization Framework for Learning from Biased Decisions", ICML 2024
    (the oracle of its figures).
    """

    name: ClassVar[str] = "y-model"

    @property
    def uses_truth(self) -> bool:
        """It is an oracle."""
        return True

    def _rows(self, part: Rows, data: FleetData) -> Rows:
        truth = part.get("truth")
        if truth is None:
            raise checks.InputError(
                "y-model stops by the truth of validation rows: pass truth=(train, validation), "
                "or patience=None."
            )
        return Rows(part.X, {"target": truth, "weight": part["weight"]})


@dataclass(kw_only=True, eq=False, repr=False)
class GroupOnly(SupervisedNetwork):
    """Count the untested as negative, train on one group, and apply to everybody.

    *Idea.* If one group is tested thoroughly, its observed labels are nearly complete.

    *Assumption.* That group's untested are negative, and the outcome depends on the features alone.

    *When it fails.* When no group is tested thoroughly, or the groups' features hardly overlap.

    Parameters
    ----------
    group
        Code of the group to learn from: its place in `group_names_` (levels in sorted order).

    References
    ----------
    T. Chang and J. Wiens, "From Biased Selective Labels to Pseudo-Labels: An
    Expectation-Maximization Framework for Learning from Biased Decisions", ICML 2024
    (a baseline of its figures).
    """

    group: int = 0

    name: ClassVar[str] = "group-only"

    def _rows(self, part: Rows, data: FleetData) -> Rows:
        if not 0 <= self.group < max(data.n_groups, 1):
            raise checks.InputError(
                f"group-only was asked for group {self.group}, but there are {data.n_groups} "
                f"groups, numbered 0 to {data.n_groups - 1}."
            )
        member = (part["group"] == self.group).to(part.X.dtype)
        if not bool((member * part["weight"]).sum(-1).gt(0).all()):
            raise checks.InputError(f"Nobody belongs to group {self.group}; choose another group.")
        if not bool((member * part["weight"] * part["tested"]).sum(-1).gt(0).all()):
            raise checks.InputError(
                f"Nobody in group {self.group} was tested, so it has no labels to learn from; "
                "choose another group, or a method that learns from all of them."
            )
        kept = select(part, member)
        return Rows(kept.X, {"target": kept["y"], "weight": kept["weight"]})


@dataclass(kw_only=True, eq=False, repr=False)
class TestedOnly(SupervisedNetwork):
    """Train on tested people only, and apply to everybody.

    *Idea.* Among the tested the labels are the truth.

    *Assumption.* What holds for the tested at given features holds for the untested too. That is
    right if features explain who is tested; but a network has to extrapolate to features at which
    hardly anybody was tested.

    *When it fails.* Where testing follows sharp rules, so that whole regions are never tested;
    where an unrecorded reason drives both testing and outcome.

    References
    ----------
    T. Chang and J. Wiens, "From Biased Selective Labels to Pseudo-Labels: An
    Expectation-Maximization Framework for Learning from Biased Decisions", ICML 2024
    (its strongest baseline); of the problem it answers to: H. Lakkaraju et al., "The Selective
    Labels Problem: Evaluating Algorithmic Predictions in the Presence of Unobservables", KDD 2017.
    """

    name: ClassVar[str] = "tested-only"
    __test__: ClassVar[bool] = False  # not a test class, whatever its name suggests to pytest

    def _rows(self, part: Rows, data: FleetData) -> Rows:
        kept = select(part, part["tested"])
        return Rows(kept.X, {"target": kept["y"], "weight": kept["weight"]})


@dataclass(kw_only=True, eq=False, repr=False)
class TestedOnlyPlusGroup(TestedOnly):
    """Tested-only with the group as an input: a model that knows to whom a row belongs.

    *Idea.* Let the model learn each group's own relation between features and outcome.

    *Assumption.* As tested-only; and that using the group to predict is acceptable where the model
    is used.

    *When it fails.* The group is a proxy for the testing policy: the model can learn who is tested
    rather than who is ill. Prediction needs `sensitive_features`. The paper's class was never
    released; this one appends group indicators `[x, a]`.

    References
    ----------
    T. Chang and J. Wiens, "From Biased Selective Labels to Pseudo-Labels: An
    Expectation-Maximization Framework for Learning from Biased Decisions", ICML 2024
    (appendix, among the causal estimators).
    """

    name: ClassVar[str] = "tested-only-plus-group"
    needs_group: ClassVar[bool] = True

    def _rows(self, part: Rows, data: FleetData) -> Rows:
        kept = select(part, part["tested"])
        X = append_group(kept.X, kept["group"], data.n_groups)
        return Rows(X, {"target": kept["y"], "weight": kept["weight"]})

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Probabilities `[n, 2]`, given the group of each row."""
        rows = torch.from_numpy(self._prepare(X))
        codes = self._group_codes(sensitive_features, len(rows))
        inputs = append_group(rows, torch.from_numpy(codes), len(self.group_names_))
        positive = self.fleet_.predict(inputs).double().mean(0).cpu().numpy()
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """The more probable class of each row, given its group."""
        positive = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1]
        return self.classes_[(positive > 0.5).astype(int)]


def append_group(X: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """Features with an indicator of every group but the first: `[..., N, d + G - 1]`."""
    indicators = [(group == g).to(X.dtype).unsqueeze(-1) for g in range(1, n_groups)]
    if X.dim() == 2 and group.dim() == 2:
        X = X.expand(group.shape[0], -1, -1)
    return torch.cat([X, *indicators], dim=-1)
