"""SAR-EM: learning from positive and unlabelled rows, labels selected at random given features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from dcem.engine import MLP, Adam, Fleet, Patience, Rows, Trainer, supervised
from dcem.engine.fleet import cross_entropy_rows, weighted_mean
from dcem.methods.em import alternate
from dcem.methods.em_networks import FleetSteps
from dcem.methods.fleets import FleetData, Trained, saves_of
from dcem.methods.network import VARIANTS, NetworkClassifier
from dcem.methods.registry import RELEASED, SLOW, renamed
from dcem.methods.support import with_group
from dcem.table.messages import InputError, require_one_of

CLAMP = 1e-6  # a classifier's probabilities stay this far from 0 and 1 in the E-step
LOSSES = ("classifier_loss", "propensity_loss")


class SarEMClassifier(NetworkClassifier):
    """Learn from found positives alone: EM over who else is positive.

    *Idea.* A found positive (tested, and positive) is certain. Everyone else, a tested negative
    included, is *unlabelled*: negative, or a positive that nobody found. With a classifier f(x) and
    the probability e(x, a) that a positive is found, an unlabelled row is positive with probability
    f (1 - e) / (1 - f e). EM alternates between this guess Q and fitting both networks to it.

    *Assumption.* Whether a positive is found depends on features and group alone (selected at
    random, SAR), and the two networks can be distinguished: their product f e is all that the
    record shows, and any split of it explains the record equally well.

    *When it fails.* It discards information that disparate censorship offers: a tested negative is
    a known negative, but counts as unknown here. The split between f and e then depends on the
    architecture and the starting weights of the networks, and the ranking can be worse than by
    counting the untested as negative.

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
    in_short: ClassVar[str] = "guesses which of the others are positive"
    step_cost: ClassVar[float] = 2.0
    usual_rounds: ClassVar[int | None] = 15
    resumable: ClassVar[bool] = True
    as_published: ClassVar[Mapping[str, Any]] = {
        "sinusoid": RELEASED | {"steps": 1000},
        "sepsis": SLOW | {"propensity_learning_rate": 1e-3},
    }

    @property
    def uses_truth(self) -> bool:  # type: ignore[override]
        """The published stopping rule looks at the truth of validation rows."""
        return self.variant == "published"

    def _train(self, data: FleetData) -> Trained:
        require_one_of("variant", self.variant, VARIANTS)
        assert data.validation is not None
        if self.uses_truth and data.validation.get("truth") is None:
            raise InputError(
                "The published sar-em stops by the truth of validation rows: pass "
                "truth=(train, validation), or choose variant='corrected'."
            )
        steps, saves = _SarSteps(self, data), saves_of(self, data)
        done = saves.resume(steps.load)
        if done is None:
            if self.variant == "corrected":
                self._balanced_start(steps)
            done = 0
            saves.write(done, steps.state)
        alternate(steps, self.max_iter, saves, done=done, progress=data.progress)
        return steps.result()

    def _balanced_start(self, steps: _SarSteps) -> None:
        """Found positives against the rest with equal total weight; then e, given that guess."""
        rows, classifier = steps.train.rows, steps.classifier
        y, weight = rows["y"], rows["weight"]
        found = weighted_mean(y, weight).unsqueeze(-1)  # the share of found positives
        balance = weight * torch.where(y > 0, 1 - found, found)
        Trainer(
            classifier,
            Rows(rows.X, {"q": y, "weight": balance}),
            supervised(classifier.architecture, classifier_loss),
            Adam(self.learning_rate, weight_decay=self.weight_decay),
            **steps.options,
        ).run(self.steps)
        steps.q.copy_(y + (1 - y) * classifier.predict(rows.X))
        steps.trainers["finder"].run(self.steps)


class _SarSteps(FleetSteps):
    """The steps of EM for both networks of every problem: who is positive, and who gets found."""

    def __init__(self, method: SarEMClassifier, data: FleetData):
        assert data.validation is not None
        self.published = method.variant == "published"
        self.train, self.validation = _Split(data.train, data), _Split(data.validation, data)
        self.classifier = data.fleet(method._architecture(data.n_inputs))
        self.finder = data.fleet(MLP(self.train.with_group.shape[-1], method.hidden))
        # [M, N], overwritten in place by each E-step
        self.q = self.train.e_step(self.classifier, self.finder)
        weight, y = self.train.rows["weight"], self.train.rows["y"]
        self.options: dict[str, Any] = {"batch_size": data.batch_size, "seeds": data.seeds}
        trainers = {
            "finder": Trainer(
                self.finder,
                Rows(self.train.with_group, {"y": y, "q": self.q, "weight": weight}),
                supervised(self.finder.architecture, propensity_loss),
                Adam(method.propensity_learning_rate, weight_decay=method.weight_decay),
                **self.options,
            ),
            "classifier": Trainer(
                self.classifier,
                Rows(self.train.rows.X, {"q": self.q, "weight": weight}),
                supervised(self.classifier.architecture, classifier_loss),
                Adam(method.learning_rate, weight_decay=method.weight_decay),
                **self.options,
            ),
        }
        # as published, either loss may improve; else their sum
        watched: dict[str, Any] = {"min_delta": 0.0, "n_losses": 2} if self.published else {}
        super().__init__(
            trainers,
            Patience(self._both(), method.patience, **watched),
            LOSSES,
            steps=method.steps,
            carry_weights=method.carry_weights,
        )

    def _both(self) -> Tensor:
        """The parameters of both networks, `[M, P + P']`."""
        return torch.cat([self.classifier.flat, self.finder.flat], dim=1)

    def e_step(self, iteration: int) -> None:
        self.q.copy_(self.train.e_step(self.classifier, self.finder))

    def look(self) -> None:
        losses = self.validation.losses(  # [2, M]
            self.classifier, self.finder, truth=self.published
        )
        watched = losses if self.published else losses.sum(0)
        self.note(dict(zip(LOSSES, losses, strict=True)), watched, self._both())

    def result(self) -> Trained:
        """The last iterate of the published variant, the best of the corrected one."""
        classifier, finder = self.classifier, self.finder
        if not self.published:
            both = self._both()
            self.rule.restore(both)
            classifier.load(both[:, : classifier.flat.shape[1]])
            finder.load(both[:, classifier.flat.shape[1] :])
        labels = self.train.e_step(classifier, finder).cpu().numpy()
        probability = finder.predict(self.train.with_group).cpu().numpy()
        attributes = [
            one
            | {
                "pseudo_labels_": labels[m],
                "propensity_": probability[m],
                "propensity_model_": finder[m : m + 1],
            }
            for m, one in enumerate(self.endings())
        ]
        return Trained(classifier, attributes)


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
