"""DivideMix: two networks sort each other's labels into clean and doubtful, and mix the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from dcem.engine import Adam, Fleet, Rows, Trainer
from dcem.engine.fit import Objective
from dcem.engine.fleet import Architecture, margin
from dcem.engine.losses import mean_or_zero
from dcem.methods.base import FleetData, NetworkClassifier, Trained
from dcem.methods.mixture import fit_two_normals
from dcem.methods.noise import Noise, partners, slots_of

# Settings of the mixture fits: scikit-learn's defaults, and those of DivideMix's authors.
MIXTURES: dict[str, dict[str, Any]] = {
    "published": {"max_iter": 100, "tol": 1e-3, "reg_covar": 1e-6},
    "corrected": {"max_iter": 10, "tol": 1e-2, "reg_covar": 5e-4},
}
MIXTURE_STREAM = 1  # of the random numbers; partners in mixing take stream 0


@dataclass(kw_only=True, eq=False, repr=False)
class DivideMix(NetworkClassifier):
    """Split the rows by their loss into clean and doubtful, and learn half-supervised.

    *Idea.* Untested people count as negative. Wrong labels are learnt later, so that early in
    training their losses are higher: a mixture of two normal distributions, fitted to the losses of
    all rows, gives each label a probability w of being clean. Of two networks each learns from the
    split of the other, lest it confirm its own mistakes. Clean labels are refined to
    `w y + (1 - w) p`; doubtful ones are replaced by what both networks think; both are sharpened,
    and every row is mixed with another one (MixUp). The score is the mean of both networks.

    *Assumption.* Wrong labels are a scattered minority, with losses of their own; classes are
    equally frequent (a penalty draws the mean prediction to `prior`).

    *When it fails.* Under disparate censorship observed positives are rare, so *they* have the high
    losses, and are taken for the mistakes: the right labels are thrown away and the wrong zeros
    kept. The published runs rank against the truth (AUC below one half). `protect_positives` keeps
    them, since a positive label comes from a test; doubtful zeros remain a guess.

    *Variants.* "corrected" follows its authors: each network's own losses, refined labels, a
    mixture that is kept from collapsing (its variances get 5e-4 added). "published": both networks
    are split by the same losses, those of the *sum* of their logits; the sharpened mean prediction
    is the target of *every* row, so that observed labels only decide the split; scikit-learn's
    default mixture, whose random start decides, at some boundaries, what all of it ends in.

    Parameters
    ----------
    steps, learning_rate, weight_decay
        Of Adam. All rows make one step, and each step has a split of its own; with minibatches the
        rows are split once in a pass through the table.
    warm_up
        Steps of plain learning before the first split, with a penalty on confidence.
    unlabelled_weight, ramp
        Weight of the doubtful rows, and the steps over which it grows from zero to that.
    temperature
        Of the sharpening; 1 leaves probabilities alone.
    mixup
        Both parameters of the beta distribution that draws the proportions of mixing.
    prior
        The mean prediction that the penalty draws to.
    protect_positives
        Count every positive label as clean.

    Attributes
    ----------
    clean_
        Probability of each training row's label to be clean, mean of both networks, at the end.

    References
    ----------
    J. Li, R. Socher and S. Hoi, "DivideMix: Learning with Noisy Labels as Semi-supervised
    Learning", ICLR 2020.
    """

    variant: str = "corrected"
    steps: int = 1000
    learning_rate: float = 1e-3
    weight_decay: float = 5e-4
    warm_up: int = 20
    unlabelled_weight: float = 25.0
    ramp: int = 16
    temperature: float = 0.5
    mixup: float = 4.0
    prior: float = 0.5
    protect_positives: bool = False

    name: ClassVar[str] = "dividemix"

    @property
    def uses_validation(self) -> bool:
        """All steps are taken and the last weights kept."""
        return False

    def _train(self, data: FleetData) -> Trained:
        if self.variant not in MIXTURES:
            raise ValueError(f"variant must be one of {', '.join(MIXTURES)}; got {self.variant!r}")
        if not 0 < self.prior < 1 or self.temperature <= 0 or self.mixup <= 0:
            raise ValueError("prior must lie between 0 and 1; temperature and mixup be positive")
        # Networks 2m and 2m + 1 are the pair of problem m.
        seeds = [seed for first in data.seeds for seed in (first, first + 1)]
        rows = _in_pairs(data.train)
        architecture = self._architecture(data.n_inputs)
        fleet = Fleet.initial(architecture, seeds, device=data.device, dtype=rows.X.dtype)

        def trainer(objective: Objective) -> Trainer:
            optimizer = Adam(self.learning_rate, weight_decay=self.weight_decay)
            return Trainer(
                fleet, rows, objective, optimizer, batch_size=data.batch_size, seeds=seeds
            )

        first = trainer(lambda flat, rows: _warm_up_loss(architecture, flat, rows))
        first.run(min(self.warm_up, self.steps))
        noise = Noise(seeds, data.device, rows.X.dtype)
        per_split = 1
        if data.batch_size is not None and data.batch_size < len(rows):
            per_split = math.ceil(len(rows) / data.batch_size)
            rows.columns["clean"] = self._split(margin(fleet.logits(rows.X)), rows, noise)
        second = trainer(_Mixing(self, architecture, seeds, rows, noise))
        second.load_state(first.state())
        for done in range(self.warm_up, self.steps, per_split):
            if per_split > 1 and done > self.warm_up:
                rows["clean"].copy_(self._split(margin(fleet.logits(rows.X)), rows, noise))
            second.run(min(per_split, self.steps - done))
            if data.progress is not None:
                data.progress(done + 1, self.steps)
        clean = self._split(margin(fleet.logits(rows.X)), rows, noise)
        clean = clean.unflatten(0, (-1, 2)).mean(1).cpu().numpy()
        return Trained(fleet, [{"n_iter_": self.steps, "clean_": one} for one in clean])

    def _split(self, z: Tensor, rows: Rows, noise: Noise) -> Tensor:
        """Probability that each label is clean by each network's own view, `[2K, N]`, from the
        log-odds `z` of all rows."""
        y, weight = rows["y"].expand_as(z), rows["weight"].expand_as(z)
        if self.variant == "published":
            # the same losses for both, by the sum of the pair's logits; only the starts differ
            z = z.unflatten(0, (-1, 2)).sum(1).repeat_interleave(2, 0)
            draws = torch.arange(3, device=z.device)
            chance = noise.uniform(draws, stream=MIXTURE_STREAM)  # [2K, 3]
            settings = MIXTURES["published"] | {"chance": chance}
            clean = _low_loss((softplus(z) - y * z).detach(), weight, settings)
        else:
            loss = (softplus(z) - y * z).detach()
            clean = _low_loss(loss, weight, MIXTURES["corrected"])
        return torch.where(y > 0, 1.0, clean) if self.protect_positives else clean


class _Mixing:
    """The objective after the warm-up: split, guess, mix, and compare."""

    def __init__(
        self,
        method: DivideMix,
        architecture: Architecture,
        seeds: list[int],
        rows: Rows,
        noise: Noise,
    ):
        self.method, self.architecture, self.noise = method, architecture, noise
        self.shares = _mixing_shares(method, seeds, rows.X)  # [steps, 2K]
        self.slots = slots_of(torch.atleast_2d(rows["weight"]))

    def __call__(self, flat: Tensor, rows: Rows) -> Tensor:
        method = self.method
        with torch.no_grad():
            z = margin(self.architecture.logits(flat, rows.X))  # [2K, N]
            clean = rows.get("clean")
            clean = method._split(z, rows, self.noise) if clean is None else clean
            clean = _swap(clean)  # each network learns from the split of the other
            X, target = self._mix(rows, self._targets(z, clean, rows))
        z = margin(self.architecture.logits(flat, X))
        p = torch.sigmoid(z)
        weight = rows["weight"].expand_as(z)
        trusted = weight * (clean > 0.5)
        labelled = mean_or_zero(softplus(z) - target * z, trusted)
        unlabelled = mean_or_zero((p - target).square(), weight - trusted)
        ramp = ((self.noise.step - 1) / max(method.ramp, 1)).clamp(0, 1)
        return labelled + method.unlabelled_weight * ramp * unlabelled + self._penalty(p, weight)

    def _targets(self, z: Tensor, clean: Tensor, rows: Rows) -> Tensor:
        """What each row should be predicted as, `[2K, N]`, before mixing."""
        p = torch.sigmoid(z)
        target = p.unflatten(0, (-1, 2)).mean(1).repeat_interleave(2, 0)  # both networks' guess
        if self.method.variant == "corrected":
            target = torch.where(clean > 0.5, clean * rows["y"] + (1 - clean) * p, target)
        return torch.sigmoid(torch.logit(target, eps=1e-7) / self.method.temperature)

    def _mix(self, rows: Rows, target: Tensor) -> tuple[Tensor, Tensor]:
        """Every row mixed with a random partner: features `[2K, N, d]` and targets `[2K, N]`."""
        self.noise.advance()
        share = self.shares.index_select(0, self.noise.step - 1).T  # [2K, 1]
        weight = torch.atleast_2d(rows["weight"]).expand_as(target)
        slots = self.slots if weight.shape[-1] == self.slots.shape[-1] else slots_of(weight)
        partner = partners(self.noise, weight, slots)
        other = rows.X[partner] if rows.X.dim() == 2 else Rows(rows.X).take(partner).X
        X = share.unsqueeze(-1) * rows.X + (1 - share).unsqueeze(-1) * other
        return X, share * target + (1 - share) * target.gather(1, partner)

    def _penalty(self, p: Tensor, weight: Tensor) -> Tensor:
        """Divergence of the mean prediction from the prior, `[2K]`."""
        prior, mean = self.method.prior, mean_or_zero(p, weight).clamp(1e-7, 1 - 1e-7)
        return prior * (prior / mean).log() + (1 - prior) * ((1 - prior) / (1 - mean)).log()


def _warm_up_loss(architecture: Architecture, flat: Tensor, rows: Rows) -> Tensor:
    """Cross-entropy minus the entropy of the predictions, `[2K]`: learn, but stay unsure."""
    z = margin(architecture.logits(flat, rows.X))
    return mean_or_zero(torch.sigmoid(z) * z - rows["y"] * z, rows["weight"])


def _low_loss(loss: Tensor, weight: Tensor, settings: dict[str, Any]) -> Tensor:
    """Probability `[M, N]` that a row belongs to the mixture component of low loss."""
    real = weight > 0
    low = torch.where(real, loss, torch.inf).amin(1, keepdim=True)
    high = torch.where(real, loss, -torch.inf).amax(1, keepdim=True)
    scaled = (loss - low) / (high - low).clamp_min(torch.finfo(loss.dtype).tiny)
    scaled = torch.where(real, scaled, 0.0)
    return fit_two_normals(scaled, weight, **settings).probability_of_lower(scaled)


def _mixing_shares(method: DivideMix, seeds: list[int], like: Tensor) -> Tensor:
    """The larger share in each step's mixture, for each network's seed: `[steps, 2K]`."""
    n_steps = max(1, method.steps - method.warm_up)
    drawn = {seed: np.random.default_rng(seed) for seed in set(seeds)}
    beta = {seed: rng.beta(method.mixup, method.mixup, n_steps) for seed, rng in drawn.items()}
    share = np.stack([np.maximum(beta[seed], 1 - beta[seed]) for seed in seeds], axis=1)
    return torch.from_numpy(share).to(like)


def _in_pairs(rows: Rows) -> Rows:
    """Rows of K problems for two networks each; a shared table stays shared."""

    def twice(tensor: Tensor, shared: int) -> Tensor:
        return tensor if tensor.dim() == shared else tensor.repeat_interleave(2, 0)

    return Rows(twice(rows.X, 2), {name: twice(rows[name], 1) for name in ("y", "weight")})


def _swap(values: Tensor) -> Tensor:
    """Values `[2K, N]` of each network's partner."""
    return values.unflatten(0, (-1, 2)).flip(1).flatten(0, 1)
