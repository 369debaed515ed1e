"""DivideMix: two networks sort each other's labels into clean and doubtful, and mix the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from dcem.engine import Adam, Fleet, Replay, Rows, Trainer
from dcem.engine.fit import Objective
from dcem.engine.fleet import margin, mean_or_zero
from dcem.methods.fleets import FleetData, Trained
from dcem.methods.mixture import fit_two_normals
from dcem.methods.network import VARIANTS, NetworkClassifier
from dcem.methods.noise import Noise, partners, slots_of
from dcem.methods.registry import RELEASED, SLOW, WIDE, renamed
from dcem.table.messages import require_one_of

# Settings of the mixture fits: scikit-learn's defaults, and those of DivideMix's authors.
MIXTURES: dict[str, dict[str, Any]] = {
    "published": {"max_iter": 100, "tol": 1e-3, "reg_covar": 1e-6},
    "corrected": {"max_iter": 10, "tol": 1e-2, "reg_covar": 5e-4},
}
MIXTURE_STREAM = 1  # of the random numbers; partners in mixing take stream 0


class DivideMixClassifier(NetworkClassifier):
    """Split the rows by their loss into clean and doubtful, and learn semi-supervised.

    *Idea.* Untested people count as negative. Wrong labels are learnt later, so that early in
    training their losses are higher: a mixture of two normal distributions, fitted to the losses of
    all rows, gives each label a probability w of being clean. There are two networks, and each
    learns from the split made by the other, so that it does not confirm its own mistakes. Clean
    labels are refined to `w y + (1 - w) p`; doubtful ones are replaced by what both networks
    predict; both are sharpened, and every row is mixed with another one (MixUp). The networks take
    turns: the second learns from the updated first. The score is the mean of both networks.

    *Assumption.* Wrong labels are a scattered minority with distinct losses; classes are equally
    frequent (a penalty draws the mean prediction to `prior`).

    *When it fails.* Under disparate censorship observed positives are rare, so *they* have the high
    losses and are mistaken for errors: right labels are discarded and wrong zeros kept. The
    published runs rank against the truth (AUC below one half). `protect_positives` keeps them,
    since a positive label comes from a test; which zeros are doubtful remains a guess.

    *Variants.* "corrected" follows its authors: each network's own losses, refined labels, a
    mixture that is kept from collapsing (its variances get 5e-4 added). "published": both networks
    are split by the same losses, those of the *sum* of their logits; the sharpened mean prediction
    is the target of *every* row, so that observed labels only decide the split; scikit-learn's
    default mixture, whose random start decides the final result at some boundaries.

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
    in_short: ClassVar[str] = "sorts labels into clean and doubtful"
    step_cost: ClassVar[float] = 8.0
    uses_validation: ClassVar[bool] = False  # all steps are taken and the last weights kept
    as_published: ClassVar[Mapping[str, Any]] = {
        "sinusoid": RELEASED | {"unlabelled_weight": 50.0},
        "sepsis": WIDE | SLOW | {"weight_decay": 5e-4},
    }

    def _train(self, data: FleetData) -> Trained:
        require_one_of("variant", self.variant, VARIANTS)
        if not 0 < self.prior < 1 or self.temperature <= 0 or self.mixup <= 0:
            raise ValueError(
                "prior must lie between 0 and 1; temperature and mixup must be positive"
            )
        # Problem m is learnt by a pair: network m of the first fleet and network m of the second.
        pair = _Learner(self, data, 0), _Learner(self, data, 1)
        for learner in pair:
            learner.warm_up(min(self.warm_up, self.steps))
        mixing = pair[0].mixing(pair[1].fleet), pair[1].mixing(pair[0].fleet)
        replay = Replay(data.device)
        n_rows, batch = len(data.train), data.batch_size or len(data.train)
        per_split = math.ceil(n_rows / batch)
        for done in range(self.warm_up, self.steps, per_split):
            replay(partial(self._divide, *pair))
            for trainer in mixing:  # one after the other: the second sees what the first has learnt
                trainer.run(min(per_split, self.steps - done))
            if data.progress is not None:
                data.progress(min(done + per_split, self.steps), self.steps)
        clean = self._split(*pair)  # [2, K, N]
        flat = torch.stack([learner.fleet.flat for learner in pair], 1).flatten(0, 1)  # [2K, P]
        return Trained(
            Fleet(pair[0].fleet.architecture, flat),
            [{"n_iter_": self.steps, "clean_": one} for one in clean.mean(0).cpu().numpy()],
        )

    def _divide(self, first: _Learner, second: _Learner) -> None:
        """Give each network the other's view of which labels are clean."""
        by_first, by_second = self._split(first, second)
        first.rows["clean"].copy_(by_second)
        second.rows["clean"].copy_(by_first)

    @torch.no_grad()
    def _split(self, first: _Learner, second: _Learner) -> Tensor:
        """Probability that each label is clean by each network's own view, `[2, K, N]`."""
        z = torch.stack([margin(one.fleet.logits(one.rows.X)) for one in (first, second)])
        y, weight = (first.rows[name].expand_as(z) for name in ("y", "weight"))
        settings = MIXTURES[self.variant]
        if self.variant == "published":
            # the same losses for both, by the sum of the pair's logits; only the starts differ
            z = z.sum(0).expand_as(z)
            draws = torch.arange(3, device=z.device)
            chance = [one.noise.uniform(draws, stream=MIXTURE_STREAM) for one in (first, second)]
            settings = settings | {"chance": torch.cat(chance)}  # [2K, 3]
        loss = softplus(z) - y * z
        clean = _low_loss(loss.flatten(0, 1), weight.flatten(0, 1), settings).view_as(z)
        return torch.where(y > 0, 1.0, clean) if self.protect_positives else clean


class _Learner:
    """One network of every pair: K networks, their rows, and what they learn by."""

    def __init__(self, method: DivideMixClassifier, data: FleetData, which: int):
        self.method = method
        self.seeds = [seed + which for seed in data.seeds]
        self.batch_size = data.batch_size
        X, columns = data.train.X, {name: data.train[name] for name in ("y", "weight")}
        self.fleet = Fleet.initial(
            method._architecture(data.n_inputs), self.seeds, device=data.device, dtype=X.dtype
        )
        columns["clean"] = X.new_zeros(len(self.seeds), len(data.train))  # filled in by `_divide`
        self.rows = Rows(X, columns)
        self.noise = Noise(self.seeds, data.device, X.dtype)
        self.shares = _mixing_shares(method, self.seeds, X)  # [steps, K]
        self.slots = slots_of(torch.atleast_2d(columns["weight"]))

    def warm_up(self, steps: int) -> None:
        """Learn from the labels as they are, but stay unsure."""
        self._warmed = self._trainer(self._warm_up_loss)
        self._warmed.run(steps)

    def mixing(self, partner: Fleet) -> Trainer:
        """What goes on from there with clean and doubtful labels, and with a partner's guesses."""
        trainer = self._trainer(partial(self._mixing_loss, partner))
        trainer.load_state(self._warmed.state())
        return trainer

    def _trainer(self, objective: Objective) -> Trainer:
        optimizer = Adam(self.method.learning_rate, weight_decay=self.method.weight_decay)
        return Trainer(
            self.fleet, self.rows, objective, optimizer,
            batch_size=self.batch_size, seeds=self.seeds,
        )  # fmt: skip

    def _log_odds(self, flat: Tensor, X: Tensor) -> Tensor:
        return margin(self.fleet.architecture.logits(flat, X))

    def _warm_up_loss(self, flat: Tensor, rows: Rows) -> Tensor:
        """Cross-entropy minus the entropy of the predictions, `[K]`."""
        z = self._log_odds(flat, rows.X)
        return mean_or_zero(torch.sigmoid(z) * z - rows["y"] * z, rows["weight"])

    def _mixing_loss(self, partner: Fleet, flat: Tensor, rows: Rows) -> Tensor:
        """Guess, mix, and compare: `[K]`."""
        method = self.method
        with torch.no_grad():
            p, q = (torch.sigmoid(self._log_odds(one, rows.X)) for one in (flat, partner.flat))
            X, target = self._mix(rows, self._targets(p, q, rows))
        z = self._log_odds(flat, X)
        p, weight = torch.sigmoid(z), rows["weight"].expand_as(z)
        trusted = weight * (rows["clean"] > 0.5)
        labelled = mean_or_zero(softplus(z) - target * z, trusted)
        unlabelled = mean_or_zero((p - target).square(), weight - trusted)
        ramp = ((self.noise.step - 1) / max(method.ramp, 1)).clamp(0, 1)
        return labelled + method.unlabelled_weight * ramp * unlabelled + self._penalty(p, weight)

    def _targets(self, own: Tensor, partner: Tensor, rows: Rows) -> Tensor:
        """What each row should be predicted as, `[K, N]`, before mixing."""
        target = (own + partner) / 2
        if self.method.variant == "corrected":
            clean = rows["clean"]
            target = torch.where(clean > 0.5, clean * rows["y"] + (1 - clean) * own, target)
        return torch.sigmoid(torch.logit(target, eps=1e-7) / self.method.temperature)

    def _mix(self, rows: Rows, target: Tensor) -> tuple[Tensor, Tensor]:
        """Every row mixed with a random partner: features `[K, N, d]` and targets `[K, N]`."""
        self.noise.advance()
        share = self.shares.index_select(0, self.noise.step - 1).T  # [K, 1]
        weight = torch.atleast_2d(rows["weight"]).expand_as(target)
        slots = self.slots if weight.shape[-1] == self.slots.shape[-1] else slots_of(weight)
        partner = partners(self.noise, weight, slots)
        other = rows.X[partner] if rows.X.dim() == 2 else Rows(rows.X).take(partner).X
        X = share.unsqueeze(-1) * rows.X + (1 - share).unsqueeze(-1) * other
        return X, share * target + (1 - share) * target.gather(1, partner)

    def _penalty(self, p: Tensor, weight: Tensor) -> Tensor:
        """Divergence of the mean prediction from the prior, `[K]`."""
        prior, mean = self.method.prior, mean_or_zero(p, weight).clamp(1e-7, 1 - 1e-7)
        return prior * (prior / mean).log() + (1 - prior) * ((1 - prior) / (1 - mean)).log()


def _low_loss(loss: Tensor, weight: Tensor, settings: dict[str, Any]) -> Tensor:
    """Probability `[M, N]` that a row belongs to the mixture component of low loss."""
    real = weight > 0
    low = torch.where(real, loss, torch.inf).amin(1, keepdim=True)
    high = torch.where(real, loss, -torch.inf).amax(1, keepdim=True)
    scaled = (loss - low) / (high - low).clamp_min(torch.finfo(loss.dtype).tiny)
    scaled = torch.where(real, scaled, 0.0)
    return fit_two_normals(scaled, weight, **settings).probability_of_lower(scaled)


def _mixing_shares(method: DivideMixClassifier, seeds: list[int], like: Tensor) -> Tensor:
    """The larger share in each step's mixture, for each network's seed: `[steps, K]`."""
    n_steps = max(1, method.steps - method.warm_up)
    drawn = {seed: np.random.default_rng(seed) for seed in set(seeds)}
    beta = {seed: rng.beta(method.mixup, method.mixup, n_steps) for seed, rng in drawn.items()}
    share = np.stack([np.maximum(beta[seed], 1 - beta[seed]) for seed in seeds], axis=1)
    return torch.from_numpy(share).to(like)


__getattr__ = renamed(__name__)
