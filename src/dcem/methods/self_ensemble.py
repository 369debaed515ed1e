"""SELF: learn, look which labels the running ensemble confirms, and learn again from those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from dcem.engine import SGD, Fleet, Rows, Trainer
from dcem.engine.losses import cross_entropy_rows, mean_or_zero
from dcem.methods.base import FleetData, NetworkClassifier, Trained
from dcem.methods.noise import Noise
from dcem.metrics import auc

VARIANTS = ("corrected", "published")


@dataclass(kw_only=True, eq=False, repr=False)
class SelfEnsemble(NetworkClassifier):
    """Self-ensemble label filtering: keep the labels that a moving ensemble agrees with.

    *Idea.* Untested people count as negative. A network (the student) learns the labels and, on
    disturbed inputs, to agree with a moving average of its own weights (the teacher), which is less
    swayed by single wrong labels. Labels that the teachers so far contradict on average are
    dropped, and a new student starts from the beginning, round after round, as long as the
    validation labels say that it helps.

    *Assumption.* Wrong labels are scattered, so that a smooth model contradicts them; and the
    validation labels, wrong in the same way, still rank two models correctly.

    *When it fails.* Zeros of a region that is never tested are not scattered: the teacher confirms
    them. With rare positives it hardly ever contradicts a zero, so little is dropped, and the
    result stays close to `y-obs`. Stopping rewards agreement with observed labels, that is, with
    the testing policy.

    *Variants.* "corrected": rounds are compared by the AUC of validation *probabilities*, the best
    round is returned, and dropped rows still take part, without their labels, in the agreement
    between student and teacher, as its authors mean. "published": rounds are compared by the AUC of
    *hard* predictions (the balanced accuracy, often a tie at one half) with the round just before,
    and dropped rows are gone.

    Parameters
    ----------
    max_iter, patience
        The most rounds of filtering, and rounds without improvement before it stops.
    steps, learning_rate, weight_decay, momentum
        Of each round; SGD with Nesterov momentum.
    consistency, noise
        Weight of the agreement between student and teacher (the mean squared difference of their
        logits), and the standard deviation of the noise on the inputs of both.
    teacher_decay, ensemble_decay
        Of the moving average of weights over steps, and of predictions over rounds.
    filter_positives
        Whether positive labels may be dropped too. They come from a test, so they are kept unless
        tests err.

    Attributes
    ----------
    n_iter_, best_iter_, termination_
        Rounds of filtering, the one returned (0: the first teacher, without filtering), and why it
        stopped ("max_iter" or "no_improvement").
    history_
        `validation_auc` of each round, from round 0.
    kept_
        Which training rows kept their label in the round returned (see `train_rows_`).

    References
    ----------
    D. T. Nguyen et al., "SELF: Learning to Filter Noisy Labels with Self-Ensembling", ICLR 2020.
    """

    variant: str = "corrected"
    max_iter: int = 50
    patience: int = 1
    steps: int = 1000
    learning_rate: float = 1e-2
    weight_decay: float = 1e-6
    momentum: float = 0.9
    consistency: float = 1.0
    noise: float = 0.05
    teacher_decay: float = 0.9
    ensemble_decay: float = 0.9
    filter_positives: bool = False

    name: ClassVar[str] = "self"

    def _train(self, data: FleetData) -> Trained:
        assert data.validation is not None
        if self.variant not in VARIANTS:
            raise ValueError(f"variant must be one of {', '.join(VARIANTS)}; got {self.variant!r}")
        n_networks, n_rows = len(data.seeds), len(data.train)
        positive = torch.atleast_2d(data.train["y"] > 0).expand(n_networks, -1)
        keep = torch.ones(n_networks, n_rows, device=data.device, dtype=data.train.X.dtype)
        everyone = list(range(n_networks))
        teacher = self._teach(data, keep, everyone)
        score = self._scores(teacher, data.validation, everyone)
        best, best_keep = teacher.flat.clone(), keep.clone()
        best_score, best_iter = score.copy(), np.zeros(n_networks, dtype=int)
        history = [{"validation_auc": [float(value)]} for value in score]
        predicted = teacher.predict(data.train.X)  # [M, N], of each network's latest round
        ensemble, total = torch.zeros_like(predicted), 0.0
        failures = np.zeros(n_networks, dtype=int)
        for iteration in range(1, self.max_iter + 1):
            active = [m for m in everyone if failures[m] < self.patience]
            if not active:
                break
            ensemble.lerp_(predicted, 1 - self.ensemble_decay)
            total += (1 - self.ensemble_decay) * (1 - total)
            confirmed = (ensemble > total / 2) == positive
            if not self.filter_positives:
                confirmed |= positive
            keep = confirmed.to(keep.dtype)
            teacher = self._teach(data, keep, active)
            predicted[active] = teacher.predict(_of_networks(data.train, active).X)
            for m, flat, new in zip(
                active, teacher.flat, self._scores(teacher, data.validation, active), strict=True
            ):
                history[m]["validation_auc"].append(float(new))
                if new > (score[m] if self.variant == "published" else best_score[m]):
                    best[m], best_keep[m] = flat, keep[m]
                    best_score[m], best_iter[m], failures[m] = new, iteration, 0
                else:
                    failures[m] += 1
                score[m] = new
            if data.progress is not None:
                data.progress(iteration, self.max_iter)
        kept = best_keep.cpu().numpy()
        attributes = [
            {
                "n_iter_": len(history[m]["validation_auc"]) - 1,
                "best_iter_": int(best_iter[m]),
                "termination_": "no_improvement" if failures[m] >= self.patience else "max_iter",
                "history_": history[m],
                "kept_": kept[m],
            }
            for m in everyone
        ]
        return Trained(Fleet(teacher.architecture, best), attributes)

    def _teach(self, data: FleetData, keep: Tensor, networks: list[int]) -> Fleet:
        """Train a student for each of `networks` from its first weights; the teachers."""
        seeds = [data.seeds[m] for m in networks]
        rows = _of_networks(data.train, networks)
        columns = {"target": rows["y"], "weight": rows["weight"], "keep": keep[networks]}
        columns["row"] = torch.arange(len(rows), device=rows.X.device)
        architecture = self._architecture(data.n_inputs)
        student = Fleet.initial(architecture, seeds, device=data.device, dtype=rows.X.dtype)
        teacher = student.clone()
        noise = Noise(seeds, data.device, rows.X.dtype)
        drops_rows = self.variant == "published"

        def objective(flat: Tensor, rows: Rows) -> Tensor:
            # The teacher follows the step just taken; before the first, student and teacher agree.
            with torch.no_grad():
                teacher.flat.lerp_(flat, 1 - self.teacher_decay)
                noise.advance()
            X = rows.X
            labelled = rows["weight"] * rows["keep"]
            label_loss = cross_entropy_rows(architecture.logits(flat, X), rows["target"])
            disturbed = [
                X + self.noise * noise.normal(rows["row"], X.shape[-1], stream=stream)
                for stream in (0, 1)
            ]
            said = architecture.logits(flat, disturbed[0])
            with torch.no_grad():
                taught = architecture.logits(teacher.flat, disturbed[1])
            gap = (said - taught).square().mean(-1)  # [M, N]
            return mean_or_zero(label_loss, labelled) + self.consistency * mean_or_zero(
                gap, labelled if drops_rows else rows["weight"]
            )

        trainer = Trainer(
            student,
            Rows(rows.X, columns),
            objective,
            SGD(
                self.learning_rate,
                weight_decay=self.weight_decay,
                momentum=self.momentum,
                nesterov=True,
            ),
            batch_size=data.batch_size,
            seeds=seeds,
        )
        trainer.run(self.steps)
        teacher.flat.lerp_(student.flat, 1 - self.teacher_decay)
        return teacher

    def _scores(self, fleet: Fleet, validation: Rows, networks: list[int]) -> np.ndarray:
        """AUC `[M]` of each network on its validation rows; NaN, never an improvement, where the
        labels are of one class."""
        rows = _of_networks(validation, networks)
        predicted = fleet.predict(rows.X).cpu().numpy()
        if self.variant == "published":
            predicted = (predicted > 0.5).astype(predicted.dtype)
        y, weight = (
            torch.atleast_2d(rows[name]).expand(len(networks), -1).cpu().numpy()
            for name in ("y", "weight")
        )
        out = np.full(len(networks), np.nan)
        for m in range(len(networks)):
            real = weight[m] > 0
            if len(np.unique(y[m, real])) == 2:
                out[m] = auc(y[m, real], predicted[m, real], weight=weight[m, real])
        return out


def _of_networks(rows: Rows, networks: list[int]) -> Rows:
    """The rows of some networks of a fleet; shared tables stay shared."""

    def chosen(tensor: Tensor, shared: int) -> Tensor:
        everyone = tensor.dim() == shared or len(tensor) == len(networks)
        return tensor if everyone else tensor[networks]

    return Rows(chosen(rows.X, 2), {name: chosen(v, 1) for name, v in rows.columns.items()})
