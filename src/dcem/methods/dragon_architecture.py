"""The networks of DragonNet as architectures of a fleet: flat parameters in, logits out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dcem.engine import MLP
from dcem.engine.architectures import register
from dcem.engine.fleet import margin

SMOOTH = 0.01  # keeps the group probabilities that targeted regularisation divides by off zero
SLIP = 0.01 / 1.02  # what the release adds to them instead: p + .01 / 1.02 for (p + .01) / 1.02
CLAMP = 1e-8


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

    @property
    def n_outputs(self) -> int:
        """Logits of the groups, then the log-odds of each group's head."""
        return 2 * self.n_groups

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

    @property
    def n_outputs(self) -> int:
        """The number of logits."""
        return 2

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
