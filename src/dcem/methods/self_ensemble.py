"""SELF: learn, look which labels the running ensemble confirms, and learn again from those."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from dcem.engine import SGD, Fleet, Rows, Trainer
from dcem.engine.checkpoint import State
from dcem.engine.fleet import cross_entropy_rows, mean_or_zero
from dcem.methods.fleets import FleetData, Trained, saves_of
from dcem.methods.network import VARIANTS, NetworkClassifier
from dcem.methods.noise import Noise
from dcem.methods.registry import RELEASED, WIDE, renamed
from dcem.metrics import auc
from dcem.table.messages import require_one_of


class SelfEnsembleClassifier(NetworkClassifier):
    """Self-ensemble label filtering: keep the labels that a moving ensemble agrees with.

    *Idea.* Untested people count as negative. A network (the student) learns the labels and, on
    perturbed inputs, to agree with a moving average of its own weights (the teacher), which is less
    affected by single wrong labels. Labels that the teachers so far contradict on average are
    dropped, and a new student starts from scratch. Rounds continue as long as the validation labels
    show an improvement.

    *Assumption.* Wrong labels are scattered, so that a smooth model contradicts them; and the
    validation labels, wrong in the same way, still rank two models correctly.

    *When it fails.* Zeros in a region that is never tested are not scattered: the teacher confirms
    them. With rare positives it hardly ever contradicts a zero, so little is dropped, and the
    result stays close to `y-obs`. Stopping rewards agreement with observed labels, that is, with
    the testing policy.

    *Variants.* "corrected": rounds are compared by the AUC of validation *probabilities*, the best
    round is returned, and dropped rows still take part, without their labels, in the agreement
    between student and teacher, as the authors intend. "published": rounds are compared by the AUC
    of *hard* predictions (the balanced accuracy, often a tie at one half) with the round just
    before, and dropped rows are gone.

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
    in_short: ClassVar[str] = "keeps the labels that it agrees with"
    step_cost: ClassVar[float] = 6.0
    usual_rounds: ClassVar[int | None] = 5
    resumable: ClassVar[bool] = True
    as_published: ClassVar[Mapping[str, Any]] = {
        # 2e-4 in the released configuration of phase 0 alone, 1e-6 in all others and in the text
        "sinusoid": RELEASED | {"weight_decay": 1e-6},
        "sepsis": WIDE | {"steps": 10_000, "learning_rate": 1e-8, "weight_decay": 2e-4},
    }

    def _train(self, data: FleetData) -> Trained:
        assert data.validation is not None
        require_one_of("variant", self.variant, VARIANTS)
        architecture = self._architecture(data.n_inputs)
        everyone = list(range(len(data.seeds)))
        positive = torch.atleast_2d(data.train["y"] > 0).expand(len(everyone), -1)
        now = _Standing(data.fleet(architecture), len(data.train))
        keep = torch.ones_like(now.best_keep)  # the first round learns from every label
        saves = saves_of(self, data)
        done = saves.resume(now.load) or 0  # rounds
        while done <= self.max_iter and (
            active := [m for m in everyone if now.failures[m] < self.patience]
        ):
            if done > 0:
                keep = self._confirmed(now, positive).to(keep.dtype)
            teacher = self._teach(data, keep, active)
            now.predicted[active] = teacher.predict(_of_networks(data.train, active).X)
            scores = self._scores(teacher, data.validation, active).tolist()
            for m, flat, new in zip(active, teacher.flat, scores, strict=True):
                now.history[m]["validation_auc"].append(new)
                rival = now.score if self.variant == "published" else now.best_score
                if done == 0 or new > rival[m]:
                    now.best[m], now.best_keep[m] = flat, keep[m]
                    now.best_score[m], now.best_iter[m], now.failures[m] = new, done, 0
                else:
                    now.failures[m] += 1
                now.score[m] = new
            done += 1
            with saves.after(done, now.state):
                if data.progress is not None:
                    data.progress(done, 1 + self.max_iter)
        saves.write(done, now.state)
        kept = now.best_keep.cpu().numpy()
        attributes = [
            {
                "n_iter_": len(now.history[m]["validation_auc"]) - 1,
                "best_iter_": now.best_iter[m],
                "termination_": "no_improvement"
                if now.failures[m] >= self.patience
                else "max_iter",
                "history_": now.history[m],
                "kept_": kept[m],
            }
            for m in everyone
        ]
        return Trained(Fleet(architecture, now.best), attributes)

    def _confirmed(self, now: _Standing, positive: Tensor) -> Tensor:
        """Take the last predictions into the ensemble; which labels `[M, N]` it then confirms."""
        now.ensemble.lerp_(now.predicted, 1 - self.ensemble_decay)
        now.total += (1 - self.ensemble_decay) * (1 - now.total)
        confirmed = (now.ensemble > now.total / 2) == positive
        return confirmed if self.filter_positives else confirmed | positive

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


class _Standing:
    """Where M networks stand between two rounds: all that the next one needs."""

    def __init__(self, untrained: Fleet, n_rows: int):
        n, flat = len(untrained), untrained.flat
        self.best = flat.clone()  # [M, P], weights of the best teacher
        self.best_keep = flat.new_ones(n, n_rows)  # the labels it learnt from
        self.predicted = flat.new_zeros(n, n_rows)  # by the last teacher
        self.ensemble = flat.new_zeros(n, n_rows)  # moving average of predictions, from 0
        self.total = 0.0  # how far that average's weights have come from 0 to 1
        self.score, self.best_score = [0.0] * n, [0.0] * n
        self.best_iter, self.failures = [0] * n, [0] * n  # failures: in a row
        self.history: list[dict[str, list[float]]] = [{"validation_auc": []} for _ in range(n)]

    def state(self) -> State:
        """All of it, for a checkpoint."""
        return dict(vars(self))

    def load(self, state: State) -> None:
        """Go on from a checkpoint."""
        for name, value in state.items():
            setattr(self, name, value.to(self.best) if isinstance(value, Tensor) else value)


def _of_networks(rows: Rows, networks: list[int]) -> Rows:
    """The rows of some networks of a fleet; shared tables stay shared."""

    def chosen(tensor: Tensor, shared: int) -> Tensor:
        everyone = tensor.dim() == shared or len(tensor) == len(networks)
        return tensor if everyone else tensor[networks]

    return Rows(chosen(rows.X, 2), {name: chosen(v, 1) for name, v in rows.columns.items()})


__getattr__ = renamed(__name__)
