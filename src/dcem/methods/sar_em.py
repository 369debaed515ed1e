"""SAR-EM: learning from positive and unlabelled rows, labels selected at random given features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from dcem.engine import MLP, Adam, Fleet, Patience, Rows, Trainer, supervised
from dcem.engine.checkpoint import State, nested, part
from dcem.engine.losses import cross_entropy_rows, weighted_mean
from dcem.methods.fleets import FleetData, Trained
from dcem.methods.network import NetworkClassifier, check_variant
from dcem.methods.propensity import with_group
from dcem.methods.registry import renamed
from dcem.methods.resuming import saves_of
from dcem.methods.settings import RELEASED, SLOW
from dcem.table import checks

CLAMP = 1e-6  # a classifier's probabilities stay this far from 0 and 1 in the E-step
LOSSES = ("classifier_loss", "propensity_loss")


@dataclass(kw_only=True, eq=False, repr=False)
class SarEMClassifier(NetworkClassifier):
    """Positives that were found, and a mixture of the rest: EM over who else is positive.

    *Idea.* A found positive (tested, and positive) is certain. Everyone else, a tested negative
    included, is *unlabelled*: negative, or a positive that nobody found. With a classifier f(x) and
    the probability e(x, a) that a positive is found, an unlabelled row is positive with probability
    f (1 - e) / (1 - f e). EM alternates between this guess Q and fitting both networks to it.

    *Assumption.* Whether a positive is found depends on features and group alone (selected at
    random, SAR), and the two networks can be told apart: their product f e is all that the record
    shows, and any split of it explains the record equally well.

    *When it fails.* It throws away what disparate censorship offers: a tested negative is a known
    negative, and counts here as unknown. The split between f and e then rests on the networks'
    shapes and start, and ranks can come out worse than by counting the untested as negative.

    *Variants.* Both stop after `patience` iterations without improvement on validation rows.
    "corrected" starts from a classifier of found positives against the rest, both sides given equal
    weight, as the original does; watches the sum of both networks' Q-weighted losses, which needs
    no truth; and returns the best iterate. The watched loss still refers to the networks' own
    guesses. "published" starts from untrained networks, goes on while either the Q-weighted
    propensity loss or the classifier's loss *against the truth of the validation rows* falls, and
    returns the last iterate: it needs `truth=`, which real data do not have.

    Parameters
    ----------
    variant
        "corrected" or "published".
    max_iter, steps, patience
        EM iterations at most, steps of Adam for each network in an iteration, and iterations
        without improvement before stopping.
    learning_rate, propensity_learning_rate, weight_decay
        Of Adam; the propensity network has its own rate and the widths of `hidden`.
    carry_weights
        Whether an M-step starts from the weights of the one before, or from untrained ones.

    Attributes
    ----------
    n_iter_, best_iter_, termination_
        Iterations run, the last that improved, and why EM stopped ("max_iter" or
        "no_improvement").
    history_
        `classifier_loss` and `propensity_loss` on validation rows after each iteration.
    pseudo_labels_, propensity_, propensity_model_
        Q and e of each training row, and the network behind e.

    References
    ----------
    J. Bekker, P. Robberechts and J. Davis, "Beyond the selected completely at random assumption for
    learning from positive and unlabeled data", ECML PKDD 2019.
    """

    variant: str = "corrected"
    max_iter: int = 50
    steps: int = 100
    learning_rate: float = 1e-3
    propensity_learning_rate: float = 1e-3
    weight_decay: float = 0.0
    patience: int = 3
    carry_weights: bool = True

    name: ClassVar[str] = "sar-em"
    step_cost: ClassVar[float] = 2.0
    usual_rounds: ClassVar[int | None] = 15
    resumable: ClassVar[bool] = True
    as_published: ClassVar[Mapping[str, Any]] = {
        "sinusoid": RELEASED | {"steps": 1000},
        "sepsis": SLOW | {"propensity_learning_rate": 1e-3},
    }

    @property
    def uses_truth(self) -> bool:
        """The published stopping rule looks at the truth of validation rows."""
        return self.variant == "published"

    def _train(self, data: FleetData) -> Trained:
        check_variant(self.variant)
        assert data.validation is not None
        if self.uses_truth and data.validation.get("truth") is None:
            raise checks.InputError(
                "The published sar-em stops by the truth of validation rows: pass "
                "truth=(train, validation), or choose variant='corrected'."
            )
        train, validation = _Split(data.train, data), _Split(data.validation, data)
        architecture = self._architecture(data.n_inputs)
        classifier = data.fleet(architecture)
        finder_architecture = MLP(train.with_group.shape[-1], self.hidden)
        finder = data.fleet(finder_architecture)
        q = train.e_step(classifier, finder)  # [M, N], overwritten in place by each E-step
        weight, y = train.rows["weight"], train.rows["y"]
        options: dict[str, Any] = {"batch_size": data.batch_size, "seeds": data.seeds}
        trainers = [
            Trainer(
                finder,
                Rows(train.with_group, {"y": y, "q": q, "weight": weight}),
                supervised(finder_architecture, propensity_loss),
                Adam(self.propensity_learning_rate, weight_decay=self.weight_decay),
                **options,
            ),
            Trainer(
                classifier,
                Rows(train.rows.X, {"q": q, "weight": weight}),
                supervised(architecture, classifier_loss),
                Adam(self.learning_rate, weight_decay=self.weight_decay),
                **options,
            ),
        ]
        return self._em(classifier, finder, train, validation, q, trainers, options, data)

    def _balanced_start(
        self,
        classifier: Fleet,
        train: _Split,
        q: Tensor,
        finder_trainer: Trainer,
        options: dict[str, Any],
    ) -> None:
        """Found positives against the rest with equal total weight; then e, given that guess."""
        y, weight = train.rows["y"], train.rows["weight"]
        found = weighted_mean(y, weight).unsqueeze(-1)  # the share of found positives
        balance = weight * torch.where(y > 0, 1 - found, found)
        Trainer(
            classifier,
            Rows(train.rows.X, {"q": y, "weight": balance}),
            supervised(classifier.architecture, classifier_loss),
            Adam(self.learning_rate, weight_decay=self.weight_decay),
            **options,
        ).run(self.steps)
        q.copy_(y + (1 - y) * classifier.predict(train.rows.X))
        finder_trainer.run(self.steps)

    def _em(
        self,
        classifier: Fleet,
        finder: Fleet,
        train: _Split,
        validation: _Split,
        q: Tensor,
        trainers: list[Trainer],
        options: dict[str, Any],
        data: FleetData,
    ) -> Trained:
        published = self.variant == "published"
        untrained = [trainer.fleet.clone() for trainer in trainers]
        both = torch.cat([classifier.flat, finder.flat], dim=1)
        rule = NeitherImproves(both, self.patience) if published else Patience(both, self.patience)
        history: list[dict[str, list[float]]] = [{name: [] for name in LOSSES} for _ in data.seeds]
        saves = saves_of(self, data)

        def state() -> State:
            parts = [trainer.state() for trainer in trainers]
            return nested(finder=parts[0], classifier=parts[1], rule=rule.state()) | {
                "history": history
            }

        def load(saved: State) -> None:
            for trainer, name in zip(trainers, ("finder", "classifier"), strict=True):
                trainer.load_state(part(saved, name))
            rule.load_state(part(saved, "rule"))
            history[:] = saved["history"]

        done = saves.resume(load)
        if done is None:
            if not published:
                self._balanced_start(classifier, train, q, trainers[0], options)
            done = 0
            saves.write(done, state)
        while done < self.max_iter and any(active := rule.active.tolist()):
            q.copy_(train.e_step(classifier, finder))
            for trainer, first in zip(trainers, untrained, strict=True):
                if not self.carry_weights:
                    now = trainer.fleet.flat
                    trainer.fleet.load(torch.where(rule.active.unsqueeze(1), first.flat, now))
                trainer.optimizer.reset()
                trainer.run(self.steps, stopping=rule)
            losses = validation.losses(classifier, finder, truth=published)  # [2, M]
            both = torch.cat([classifier.flat, finder.flat], dim=1)
            rule.update(losses if published else losses.sum(0), both)
            for name, values in zip(LOSSES, losses.tolist(), strict=True):
                for record, value, on in zip(history, values, active, strict=True):
                    if on:
                        record[name].append(value)
            done += 1
            with saves.after(done, state):
                if data.progress is not None:
                    data.progress(done, self.max_iter)
        saves.write(done, state)
        if not published:
            both = torch.cat([classifier.flat, finder.flat], dim=1)
            rule.restore(both)
            classifier.load(both[:, : classifier.flat.shape[1]])
            finder.load(both[:, classifier.flat.shape[1] :])
        labels = train.e_step(classifier, finder).cpu().numpy()
        probability = finder.predict(train.with_group).cpu().numpy()
        attributes = [
            {
                "n_iter_": len(history[m][LOSSES[0]]),
                "best_iter_": best,
                "termination_": "max_iter" if on else "no_improvement",
                "history_": history[m],
                "pseudo_labels_": labels[m],
                "propensity_": probability[m],
                "propensity_model_": Fleet(
                    finder.architecture, finder.flat[m : m + 1].cpu().clone()
                ),
            }
            for m, (best, on) in enumerate(
                zip(rule.best_step.tolist(), rule.active.tolist(), strict=True)
            )
        ]
        return Trained(classifier, attributes)


class NeitherImproves(Patience):
    """Stop a network when for `patience` checks neither of its two losses fell below its best."""

    def __init__(self, flat: Tensor, patience: int):
        super().__init__(flat, patience, min_delta=0.0)
        self.best_loss = flat.new_full((2, flat.shape[0]), torch.inf)

    def update(self, loss: Tensor, flat: Tensor) -> None:
        """Take note of both losses `[2, M]`; any fall resets the count."""
        self.checks += 1
        fell = self.active & (loss < self.best_loss)  # [2, M]
        self.best_loss.copy_(torch.where(fell, loss, self.best_loss))
        better = fell.any(0)
        self.best_step.copy_(torch.where(better, self.checks, self.best_step))
        self.best_flat.copy_(torch.where(better.unsqueeze(1), flat, self.best_flat))
        self.failures.copy_(torch.where(better, 0, self.failures + self.active))
        self.active.logical_and_(self.failures < self.patience)


class _Split:
    """Rows of one split as the classifier sees them, and with the group as e sees them."""

    def __init__(self, rows: Rows, data: FleetData):
        self.rows = rows
        self.with_group = with_group(rows.X, rows["group"], data.n_groups)

    def e_step(self, classifier: Fleet, finder: Fleet) -> Tensor:
        """Q `[M, N]`: 1 for found positives, else the probability of a positive not found."""
        f = classifier.predict(self.rows.X).clamp(CLAMP, 1 - CLAMP)
        e = finder.predict(self.with_group)
        y = self.rows["y"]
        return y + (1 - y) * f * (1 - e) / (1 - f * e)

    def losses(self, classifier: Fleet, finder: Fleet, *, truth: bool) -> Tensor:
        """Losses of classifier and propensity network, `[2, M]`, with Q from these networks."""
        q = self.e_step(classifier, finder)
        weight, y = self.rows["weight"], self.rows["y"]
        logits = classifier.logits(self.rows.X)
        if truth:
            first = weighted_mean(cross_entropy_rows(logits, self.rows["truth"]), weight)
        else:
            first = weighted_mean(cross_entropy_rows(logits, q), weight)
        found = Rows(self.with_group, {"y": y, "q": q, "weight": weight})
        return torch.stack([first, propensity_loss(finder.logits(self.with_group), found)])


def propensity_loss(logits: Tensor, rows: Rows) -> Tensor:
    """Cross-entropy of being found, each row as far as it is positive: mean of Q CE(e, y)."""
    return weighted_mean(rows["q"] * cross_entropy_rows(logits, rows["y"]), rows["weight"])


def classifier_loss(logits: Tensor, rows: Rows) -> Tensor:
    """Every row twice, as a positive of weight Q and a negative of weight 1 - Q: the mean over
    these 2N, which is half the cross-entropy against Q."""
    return weighted_mean(cross_entropy_rows(logits, rows["q"]), rows["weight"]) / 2


__getattr__ = renamed(__name__)
