"""Peer losses: compare a row's loss with the loss of an unrelated pair of features and label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from dcem.engine import Rows
from dcem.engine.fleet import cross_entropy_rows, margin, weighted_mean
from dcem.methods.fleets import FleetData, Trained
from dcem.methods.network import VARIANTS
from dcem.methods.registry import RELEASED, SINGLE, SLOW, WIDE, renamed
from dcem.methods.supervised import SupervisedNetwork, TestedOnlyClassifier
from dcem.table.messages import InputError, require_one_of

# Added to a probability before its logarithm: the peer term is subtracted, so it needs a bound.
FLOOR = 1e-8


class _PeerNetwork(SupervisedNetwork):
    """What the two peer losses share; `by_group` tells them apart."""

    variant: str = "corrected"

    by_group: ClassVar[bool]
    as_published: ClassVar[Mapping[str, Any]] = {
        "sinusoid": SINGLE | RELEASED,
        "sepsis": WIDE | SLOW,
    }

    @property
    def uses_truth(self) -> bool:  # type: ignore[override]
        """The released code computes noise rates from the truth."""
        return self.variant == "published"

    def _given_rates(self, n_groups: int) -> Sequence[float] | None:
        raise NotImplementedError

    def _train(self, data: FleetData) -> Trained:
        require_one_of("variant", self.variant, VARIANTS)
        n_groups = data.n_groups if self.by_group else 1
        if self.variant == "published" and self._given_rates(n_groups) is not None:
            raise ValueError(
                f"The published {self.name} computes its noise rates from the truth: give none, or "
                "choose variant='corrected'."
            )
        base = _mean_by_group(data.train["y"], data.train, n_groups)
        present = _mean_by_group(torch.ones_like(data.train["y"]), data.train, n_groups)
        blank = (base == 0) & (present > 0)
        if self.by_group and self._given_rates(n_groups) is None and bool(blank.any()):
            unseen = ", ".join(map(str, sorted(set(blank.nonzero()[:, 1].tolist()))))
            raise InputError(
                f"No positive was ever seen among training rows of group {unseen} (numbered in "
                "the order of the group names), so the share of positives missed there cannot be "
                "estimated. Pass noise_rates, merge groups, or choose peer-loss."
            )
        rate = self._rates(data, n_groups)  # [M, G], or [1, G] where networks share it
        alpha = torch.where(base < 0.5, rate / (1 - 2 * base), 0.0).clamp(0, 1)
        if self.variant == "published":
            alpha = torch.zeros_like(alpha)
        scale = 1 / (1 - rate) if self.by_group else torch.ones_like(rate)

        def with_peers(part: Rows) -> Rows:
            code = _codes(part, n_groups)
            spread = {
                name: values.expand(max(len(values), len(code)), -1).gather(
                    1, code.expand(max(len(values), len(code)), -1)
                )
                for name, values in (("base", base), ("alpha", alpha), ("scale", scale))
            }
            return part.plus(**spread)

        trained = super()._train(data.each(with_peers))
        for name, values in (("noise_rate_", rate), ("alpha_", alpha)):
            found = values.expand(len(data.seeds), -1).cpu().numpy()
            for record, value in zip(trained.attributes, found, strict=True):
                record[name] = value if self.by_group else float(value[0])
        return trained

    def _rows(self, part: Rows, data: FleetData) -> Rows:
        columns = {name: part[name] for name in ("base", "alpha", "scale", "weight")}
        return Rows(part.X, columns | {"target": part["y"]})

    def _loss(self, logits: Tensor, rows: Rows) -> Tensor:
        if self.variant == "published":  # no gradient flows through the peer term: leave it out
            own = cross_entropy_rows(logits, rows["target"])
            return weighted_mean(rows["scale"] * own, rows["weight"])
        z = margin(logits)
        own, peer = (_bounded_cross_entropy(z, rows[name]) for name in ("target", "base"))
        return weighted_mean(rows["scale"] * (own - rows["alpha"] * peer), rows["weight"])

    def _rates(self, data: FleetData, n_groups: int) -> Tensor:
        """The share of positives that are missed, `[M, G]` or `[1, G]`."""
        train = data.train
        y, tested = train["y"], train["tested"]
        if self.variant == "published":
            positive = train.plus(weight=train["weight"] * train["truth"])
            caught = _mean_by_group(y, positive, n_groups)
            return 1 - caught.clamp(1e-8, 1 - 1e-8)
        given = self._given_rates(n_groups)
        if given is not None:
            if not all(0 <= rate < 1 for rate in given):
                raise InputError(
                    f"A noise rate is the share of positives that are missed: from 0 to below 1, "
                    f"got {', '.join(map(str, given))}."
                )
            return torch.tensor([list(given)], dtype=y.dtype, device=y.device)
        teacher = TestedOnlyClassifier(
            hidden=self.hidden,
            network=self.network,
            steps=self.steps,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            patience=self.patience,
        )
        predicted = teacher._train(replace(data, progress=None)).fleet.predict(train.X)
        expected = _mean_by_group(torch.where(tested > 0, y, predicted), train, n_groups)
        seen = _mean_by_group(y, train, n_groups)
        return (1 - seen / expected.clamp_min(FLOOR)).clamp(0, 1 - FLOOR)


class PeerLossClassifier(_PeerNetwork):
    """Cross-entropy minus what a model could earn by guessing from label frequencies alone.

    *Idea.* Untested people count as negative. Each row's loss is compared with that of an unrelated
    pair: the features of one random row and the label of another, its *peers*. A model that merely
    reproduces the frequencies of the observed labels gains nothing. The loss is `l(x, y) - alpha
    l(x_j, y_k)`; here its mean over all pairs of peers is computed exactly (it is the cross-entropy
    against the base rate of the observed labels), whereas the authors estimate it by shuffling
    features and labels anew in every epoch.

    *Assumption.* A positive is missed with probability e, the same for all positives, and nobody
    is positive by mistake. Then `alpha = e / (1 - 2 P(observed 1))` makes the expected loss that of
    the truth, up to a factor, for losses with `l(x, 0) + l(x, 1)` constant. (The paper writes
    `1 - (1 - e)(2 P(y) - 1) / (2 P(observed 1) - 1)`, which is the same, since
    `P(observed 1) = (1 - e) P(y)`.) It is clipped to [0, 1]; it reaches 1 where half of the people
    are truly positive.

    *When it fails.* Under disparate censorship positives are missed depending on features and
    group, not at random: the model still ranks by P(positive and tested). And the subtracted term
    rewards confidence without limit (until probabilities reach a floor of 1e-8), so scores
    saturate.

    *Variants.* In the released code no gradient flows through the peer term, which makes it a
    constant: "published" is exactly `y-obs`, and so are its published points. It requires the
    truth, from which the release computes e, although the model does not depend on it.

    Parameters
    ----------
    noise_rate
        e, the share of true positives recorded as zero. None estimates it without truth: one minus
        observed positives over expected positives, the latter being tested positives plus the
        predictions of a tested-only network for the untested. This stays within [0, 1) and assumes
        no more than tested-only does; weighting by a propensity instead would divide by numbers
        near zero where hardly anybody is tested. Not for "published", which asks the truth.

    Attributes
    ----------
    noise_rate_, alpha_
        e, and the weight of the peer term (0 if published).

    References
    ----------
    Y. Liu and H. Guo, "Peer Loss Functions: Learning from Noisy Labels without Knowing Noise
    Rates", ICML 2020.
    """

    noise_rate: float | None = None

    name: ClassVar[str] = "peer-loss"
    in_short: ClassVar[str] = "treats missed positives as noise"
    by_group: ClassVar[bool] = False

    def _given_rates(self, n_groups: int) -> Sequence[float] | None:
        return None if self.noise_rate is None else [self.noise_rate]


class GroupPeerLossClassifier(_PeerNetwork):
    """Peer loss with a noise rate for each group, and more weight for the less observed group.

    *Idea.* Peers come from a row's own group, and a row has the weight `1 / (1 - e_a)`: in a rarely
    tested group fewer positives are seen, so those that are seen count more. With alpha chosen in
    each group as in peer loss, every group contributes the loss on its true labels.

    *Assumption.* Within a group, every positive is missed with the same probability.

    *When it fails.* As for peer loss, because testing depends on features too. If the estimated
    rates are wrong, so are the weights.

    *Variants.* In the released code no gradient flows through the peer term: "published" is
    cross-entropy on observed labels with weights `1 / P(observed | positive, a)` from the truth.

    Parameters
    ----------
    noise_rates
        e_a, one for each group in the order of `group_names_`. None estimates each as
        `peer-loss` does, within the group. Not for "published", which asks the truth.

    Attributes
    ----------
    noise_rate_, alpha_
        Of each group, `[G]`.

    References
    ----------
    J. Wang, Y. Liu and C. Levy, "Fair Classification with Group-Dependent Label Noise", FAccT 2021.
    """

    noise_rates: Sequence[float] | None = None

    name: ClassVar[str] = "group-peer-loss"
    in_short: ClassVar[str] = "treats missed positives as noise, by group"
    by_group: ClassVar[bool] = True

    def _given_rates(self, n_groups: int) -> Sequence[float] | None:
        if self.noise_rates is not None and len(self.noise_rates) != n_groups:
            raise InputError(
                f"noise_rates has {len(self.noise_rates)} values for {n_groups} groups: give one "
                "per group, in the order of the group names."
            )
        return self.noise_rates


def _codes(part: Rows, n_groups: int) -> Tensor:
    """Group codes `[M, N]` or `[1, N]`; all zero where groups are not told apart."""
    return torch.atleast_2d(part["group"] if n_groups > 1 else torch.zeros_like(part["group"]))


def _mean_by_group(values: Tensor, part: Rows, n_groups: int) -> Tensor:
    """Weighted means of `values` (`[N]` or `[M, N]`) in each group, `[M, G]` or `[1, G]`."""
    levels = torch.arange(n_groups, device=values.device)
    member = (_codes(part, n_groups).unsqueeze(-1) == levels).to(values.dtype)  # [M, N, G]
    member = member * torch.atleast_2d(part["weight"]).unsqueeze(-1)
    sums = (torch.atleast_2d(values).unsqueeze(-1) * member).sum(1)
    return sums / member.sum(1).clamp_min(torch.finfo(values.dtype).tiny)


def _bounded_cross_entropy(z: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy `[M, N]` of log-odds `z` that stops growing at -log(1e-8)."""
    positive = (torch.sigmoid(z) + FLOOR).log()
    negative = (torch.sigmoid(-z) + FLOOR).log()
    return -(target * positive + (1 - target) * negative)


__getattr__ = renamed(__name__)
