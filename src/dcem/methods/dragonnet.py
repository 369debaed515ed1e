"""DragonNet: subtract the effect of the group on testing from the prediction of the record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from dcem.engine import MLP, Fleet, Rows, cross_entropy, supervised
from dcem.engine.architectures import register
from dcem.engine.fleet import cross_entropy_rows, margin, mean_or_zero, weighted_mean
from dcem.methods.base import GroupPredictor
from dcem.methods.fleets import FleetData, Trained
from dcem.methods.network import VARIANTS
from dcem.methods.registry import RELEASED, SINGLE, SLOW, renamed
from dcem.methods.supervised import SupervisedNetwork, require_code
from dcem.methods.training_stage import train_stage
from dcem.table.messages import InputError, notice, require_one_of

SMOOTH = 0.01  # keeps the group probabilities that targeted regularisation divides by off zero
SLIP = 0.01 / 1.02  # what the release adds to them instead: p + .01 / 1.02 for (p + .01) / 1.02
CLAMP = 1e-8


class DragonNetClassifier(GroupPredictor, SupervisedNetwork):
    """Subtract the effect of the group on testing from the prediction of the record.

    *Idea.* A network p(x) counts the untested as negative, and so reproduces the testing policy. A
    second one, DragonNet, estimates how much more often people with features x are tested in one
    group than in another. One *trunk* reads the features; it has a head that predicts the group
    and, for each group, a head for P(tested | x, group). The effect is subtracted: score(x) = p(x)
    - effect(x), kept between 0 and 1.

    *Assumption.* Nothing but the features affects both group *and* testing; and what the group adds
    to the probability of testing, it also adds to that of an observed positive.

    *When it fails.* The second assumption hardly ever holds: p is the probability of being tested
    *and* positive, but the effect is on the probability of being tested at all, so true negatives
    are corrected although their observed labels were right. Scores are not probabilities of the
    outcome; where the effect exceeds p they are cut off at 0 and tied. The choice of the reference
    group decides the sign. The method is included for comparison; do not choose it.

    *Variants.* "corrected" is as the paper writes it: the outcome of DragonNet is *testing*,
    targeted regularisation compares the perturbed prediction with the label (Shi et al.), everyone
    is corrected, and prediction needs no group. With more than two groups there is a head for each,
    and the effect is the mean of the others less the reference. "published" is what the plotted run
    did: the outcome is the *observed label*, no targeted term, and only the second of two groups
    is corrected, so that prediction needs `sensitive_features`. The released configuration has the
    term (`targeted_weight=1`), but its results are not the plotted ones. As released it compares
    the perturbed prediction with *itself*, which shrinks the perturbation, from a random start, and
    teaches nothing about the outcome.

    Without groups there is nothing to subtract, and this is y-obs.

    Parameters
    ----------
    variant
        "corrected" or "published".
    reference
        Code of the group that "corrected" measures the effect against: its place in `group_names_`.
    group_weight
        Weight of the loss of the head that predicts the group.
    targeted_weight
        Weight of targeted regularisation; None is the variant's: 1 if corrected, 0 if published. At
        0 nothing is perturbed.

    Attributes
    ----------
    n_iter_, effect_n_iter_
        Steps whose weights were kept, of p and of DragonNet.

    References
    ----------
    C. Shi, D. Blei and V. Veitch, "Adapting neural networks for the estimation of treatment
    effects", NeurIPS 2019.
    """

    variant: str = "corrected"
    reference: int = 0
    group_weight: float = 1.0
    targeted_weight: float | None = None

    name: ClassVar[str] = "dragonnet"
    in_short: ClassVar[str] = "subtracts the group's effect from the record"
    step_cost: ClassVar[float] = 4.0
    as_published: ClassVar[Mapping[str, Any]] = {
        "sinusoid": SINGLE | RELEASED | {"steps": 2000},
        "sepsis": SLOW,
    }

    @property
    def needs_group(self) -> bool:  # type: ignore[override]
        """The published correction is for one group only."""
        return self.variant == "published"

    @property
    def _targeted(self) -> float:
        if self.targeted_weight is not None:
            return self.targeted_weight
        return 0.0 if self.variant == "published" else 1.0

    def _train(self, data: FleetData) -> Trained:
        self._check_parameters(data)
        released = self.variant == "published" and self._targeted != 0 and data.n_groups == 2
        whole = CorrectedOutcome(
            Dragon(data.n_inputs, self.hidden, data.n_groups, self.reference, released)
        )
        outcome, dragon = whole.outcome, whole.dragon
        fleet = data.fleet(outcome)
        record = data.each(lambda part: self._rows(part, data))  # everybody, the untested negative
        loss = supervised(outcome, cross_entropy)
        steps = train_stage(self, data, fleet, loss, record.train, record.validation)
        effect = data.fleet(dragon)
        effect_steps = [0] * len(effect)
        if data.n_groups > 1:
            effect_steps = train_stage(
                self,
                data,
                effect,
                lambda flat, rows: self._dragon_loss(dragon, flat, rows),
                data.train,
                data.validation,
            )
        both = Fleet(whole, torch.cat([fleet.flat, effect.flat], dim=1))
        attributes = [
            {"n_iter_": first, "effect_n_iter_": second}
            for first, second in zip(steps, effect_steps, strict=True)
        ]
        return Trained(both, attributes)

    def _check_parameters(self, data: FleetData) -> None:
        require_one_of("variant", self.variant, VARIANTS)
        if self.network is not None or not self.hidden:
            raise ValueError(
                "dragonnet builds its trunk and heads from `hidden`, with at least one layer; your "
                "own `network` cannot be split that way."
            )
        if self.variant == "published" and data.n_groups > 2:
            raise InputError(
                f"The published dragonnet corrects the second of two groups, but there are "
                f"{data.n_groups}. Choose variant='corrected', or two groups."
            )
        if self.variant == "published" and self.reference != 0:
            raise ValueError(
                "The published dragonnet measures the effect against the first group: leave "
                "reference at 0, or choose variant='corrected'."
            )
        require_code("dragonnet", "reference", self.reference, data.n_groups)
        if data.n_groups == 1:
            notice(
                "dragonnet corrects for the effect of the group on testing; with a single group "
                "there is none, and it is the same as y-obs. Pass sensitive_features."
            )

    def _dragon_loss(self, dragon: Dragon, flat: Tensor, rows: Rows) -> Tensor:
        """The loss of trunk and heads, `[M]`."""
        published = self.variant == "published"
        target = rows["y"] if published else rows["tested"]
        weight = rows["weight"]
        groups, heads = dragon.outputs(flat, rows.X)  # [M, N, G], [M, N, G]
        group = rows["group"].expand(heads.shape[:2]).unsqueeze(-1)  # [M, N, 1]
        own = heads.gather(-1, group)  # each row's own head, a log-odds [M, N, 1]
        fit = cross_entropy_rows(own, target)
        log_share = groups.log_softmax(-1).gather(-1, group).squeeze(-1)
        loss = self.group_weight * weighted_mean(-log_share, weight)
        if published:
            # each group's mean counts alike, whatever its size
            for code in range(dragon.n_groups):
                loss = loss + mean_or_zero(fit, weight * (rows["group"] == code))
        else:
            loss = loss + weighted_mean(fit, weight)
        if self._targeted == 0:
            return loss
        distance = dragon.shift(flat, dragon.share(groups)).gather(-1, group).squeeze(-1)
        if not published:  # the released term leaves the label out
            distance = target - (torch.sigmoid(own.squeeze(-1)) + distance)
        return loss + self._targeted * weighted_mean(distance**2, weight)

    # -- predicting -------------------------------------------------------------------------

    def group_scores(self, X: np.ndarray, rows: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """Scores `[members, n]`; only the published variant asks for the group of each row."""
        corrected = self.members(X, rows)
        if codes is None:
            return corrected
        outcome = self.fleet_.architecture.outcome
        plain = Fleet(outcome, self.fleet_.flat[:, : outcome.n_parameters])
        record = plain.predict(torch.from_numpy(rows)).double().numpy()
        return np.where(codes == 1, corrected, record)

    def effect(self, X: Any) -> np.ndarray:
        """The estimated effect of the group at the features of each row, `[n]`."""
        rows = torch.from_numpy(self._prepare(X))
        architecture = self.fleet_.architecture
        flat = self.fleet_.flat[:, architecture.outcome.n_parameters :]
        with torch.no_grad():
            return architecture.dragon.effect(flat, rows.to(flat)).mean(0).double().numpy()


# -- its networks as architectures of a fleet: flat parameters in, logits out ------------------


class Dragon:
    """A trunk, a head that tells the groups apart, and an outcome head for each group.

    The trunk is the hidden layers of a network and the group head its last layer; an outcome head
    is a whole network of the same widths, with two logits, on the trunk's output. One number more,
    epsilon, belongs to targeted regularisation: it moves head g by epsilon c_g / P(g | x), where
    effect = sum over g of c_g P_g is the contrast that is wanted. Epsilon starts at zero; as
    `released`, at a standard normal number (Xavier's for a weight of one input and one output).

    Parameters
    ----------
    n_inputs, hidden, n_groups
        Features, widths of the hidden layers (at least one), and groups.
    reference
        The group with contrast -1; the others share +1 alike.
    released
        Epsilon as in the released code, for two groups: see `share` and `effect`.
    """

    def __init__(
        self,
        n_inputs: int,
        hidden: tuple[int, ...],
        n_groups: int,
        reference: int = 0,
        released: bool = False,
    ):
        self.n_inputs, self.hidden = int(n_inputs), tuple(int(width) for width in hidden)
        self.n_groups, self.reference = int(n_groups), int(reference)
        self.released = bool(released)
        self._whole = MLP(n_inputs, self.hidden, n_groups)  # trunk and group head
        self._trunk = MLP(n_inputs, self.hidden[:-1], self.hidden[-1])
        self._last = MLP(self.hidden[-1], (), n_groups)
        self._head = MLP(self.hidden[-1], self.hidden)
        self._lengths = [
            self._trunk.n_parameters,
            self._last.n_parameters,
            *[self._head.n_parameters] * n_groups,
            1,
        ]
        self.n_parameters = sum(self._lengths)
        self.n_outputs = 2 * self.n_groups  # logits of the groups, then log-odds of each head

    def initial(self, seed: int) -> Tensor:
        """Parameters `[P]`; all heads start alike, as in the published runs."""
        head = self._head.initial(seed)
        epsilon = torch.zeros(1)
        if self.released:
            epsilon.normal_(generator=torch.Generator().manual_seed(int(seed)))
        return torch.cat([self._whole.initial(seed), head.repeat(self.n_groups), epsilon])

    def outputs(self, flat: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the groups and log-odds of the outcome under each, both `[M, N, G]`."""
        trunk, last, *heads, _ = flat.split(self._lengths, dim=1)
        representation = self._trunk.logits(trunk, X).relu()  # [M, N, width]
        groups = self._last.stacked(last, representation)
        outcomes = [margin(self._head.logits(head, representation)) for head in heads]
        return groups, torch.stack(outcomes, dim=-1)

    def logits(self, flat: Tensor, X: Tensor) -> Tensor:
        """All outputs side by side, `[M, N, 2 G]`."""
        return torch.cat(self.outputs(flat, X), dim=-1)

    def contrast(self, like: Tensor) -> Tensor:
        """c_g `[G]`: -1 for the reference, the rest shared alike; nothing without other groups."""
        if self.n_groups == 1:
            return like.new_zeros(1)
        # no assignment to an element: that would copy from the host inside a captured graph
        reference = torch.arange(self.n_groups, device=like.device) == self.reference
        return torch.where(reference, -1.0, 1 / (self.n_groups - 1)).to(like.dtype)

    def share(self, groups: Tensor) -> Tensor:
        """P(g | x), off zero; as released the two do not sum to one, `[M, N, G]`."""
        if self.released:
            return groups.softmax(-1) + SLIP
        return (groups.softmax(-1) + SMOOTH) / (1 + self.n_groups * SMOOTH)

    def shift(self, flat: Tensor, share: Tensor) -> Tensor:
        """What targeted regularisation adds to each group's probability, `[M, N, G]`."""
        return flat[:, -1].reshape(-1, 1, 1) * self.contrast(share) / share

    def effect(self, flat: Tensor, X: Tensor) -> Tensor:
        """The contrast of the shifted probabilities, each kept in [0, 1]: `[M, N]`.

        As released they are not kept there, and the first group's share is one less the second's.
        """
        groups, outcomes = self.outputs(flat, X)
        share = self.share(groups)
        if self.released:
            share = torch.cat([1 - share[..., 1:], share[..., 1:]], dim=-1)
        probability = torch.sigmoid(outcomes) + self.shift(flat, share)
        if not self.released:
            probability = probability.clamp(0, 1)
        return (probability * self.contrast(groups)).sum(-1)


class CorrectedOutcome:
    """A network's probability less a dragon's effect, as two logits a softmax undoes."""

    n_outputs = 2

    def __init__(self, dragon: Dragon):
        self.dragon, self.outcome = dragon, MLP(dragon.n_inputs, dragon.hidden)
        self.n_parameters = self.outcome.n_parameters + self.dragon.n_parameters

    def describe(self) -> dict[str, Any]:
        """What makes this architecture again; see `dcem.engine.architectures`."""
        dragon = self.dragon
        return {
            "kind": "corrected-outcome",
            "n_inputs": dragon.n_inputs,
            "hidden": list(dragon.hidden),
            "n_groups": dragon.n_groups,
            "reference": dragon.reference,
            "released": dragon.released,
        }

    def initial(self, seed: int) -> Tensor:
        """Parameters `[P]` of both."""
        return torch.cat([self.outcome.initial(seed), self.dragon.initial(seed)])

    def logits(self, flat: Tensor, X: Tensor) -> Tensor:
        """Log-probabilities `[M, N, 2]` of the corrected score, clamped."""
        plain, effect = flat.split([self.outcome.n_parameters, self.dragon.n_parameters], dim=1)
        score = torch.sigmoid(margin(self.outcome.logits(plain, X))) - self.dragon.effect(effect, X)
        score = score.double().clamp(CLAMP, 1 - CLAMP)  # 1 - 1e-8 is 1 in single precision
        return torch.stack([torch.log1p(-score), score.log()], dim=-1).to(flat.dtype)


register("corrected-outcome", lambda **described: CorrectedOutcome(Dragon(**described)))

__getattr__ = renamed(__name__)
