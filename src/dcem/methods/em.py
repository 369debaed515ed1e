"""The EM loop of DCEM for a whole fleet: impute, maximise, look, repeat.

Rows carry the columns `y` (observed label, 0 where nobody looked), `tested` (0/1), `u` (log-odds of
being tested) and `weight`. One iteration:

1. *E-step*: the pseudo-label Q is the observed label of tested rows and the network's current
   prediction for the others. No gradient.
2. *M-step*: some steps of Adam, started anew, on the loss of `dcem.methods.mstep`.
3. *Look*: the watched loss on validation rows decides, network by network, whether to go on.

Two losses can be watched, both free of truth. `watch="self"`, the published one, is the M-step loss
on all validation rows with Q from the network itself; on untested rows it is an entropy plus the
penalty, so it rewards confidence and refers to itself. `watch="tested"` is the same loss on tested
validation rows, where the label is known: it sees overfitting, which the other cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dcem.engine import Adam, Fleet, Patience, Rows, Trainer
from dcem.engine.fleet import margin
from dcem.engine.fit import Progress
from dcem.methods.mstep import mstep_loss


@dataclass(frozen=True)
class EMSettings:
    """How long, how fast, and when to stop."""

    max_iter: int = 50
    steps: int = 1000  # a M-step
    learning_rate: float | Tensor = 1e-3
    weight_decay: float | Tensor = 0.0
    strength: float | Tensor = 1.0  # lambda, the weight of the causal regularisation
    hard_t: bool = False
    carry_weights: bool = True  # a M-step starts from the weights of the one before
    patience: int = 3
    watch: str = "self"
    keep: str = "last"  # or "best": the iterate with the lowest watched loss
    batch_size: int | None = None


@dataclass
class EMResult:
    """What EM leaves behind besides the trained fleet; one entry a network."""

    pseudo_labels: Tensor  # [M, N], of the training rows, by the returned network
    n_iter: list[int]
    best_iter: list[int]
    termination: list[str]
    history: list[dict[str, list[float]]] = field(default_factory=list)


def e_step(fleet: Fleet, rows: Rows) -> Tensor:
    """Pseudo-labels `[M, N]`: what was observed where somebody looked, else the prediction."""
    return torch.where(rows["tested"] > 0, rows["y"], fleet.predict(rows.X))


def run_em(
    fleet: Fleet,
    train: Rows,
    validation: Rows,
    settings: EMSettings,
    *,
    seeds: list[int],
    first_q: Fleet | None = None,
    progress: Progress | None = None,
    on_iteration: Callable[[int, Fleet], None] | None = None,
) -> EMResult:
    """Train `fleet` in place.

    `fleet` holds the weights the first M-step starts from; `first_q` the networks that give the
    first pseudo-labels (default: the same). An untrained `first_q` is the *uninformative start*:
    every untested row begins near one half.
    """
    teacher = (first_q or fleet).clone()  # the networks of the E-step
    initial = fleet.clone()
    full_batch = settings.batch_size is None or settings.batch_size >= len(train)
    if full_batch:
        train = Rows(train.X, dict(train.columns) | {"q": e_step(teacher, train)})

    def objective(flat: Tensor, rows: Rows) -> Tensor:
        architecture = fleet.architecture
        q = rows.get("q")
        if q is None:  # minibatches: the E-step of just these rows
            with torch.no_grad():
                guess = torch.sigmoid(margin(architecture.logits(teacher.flat, rows.X)))
                q = torch.where(rows["tested"] > 0, rows["y"], guess)
        logits = architecture.logits(flat, rows.X)
        return mstep_loss(logits, q, rows, hard_t=settings.hard_t, strength=settings.strength)

    def watched(rows: Rows, q: Tensor, tested_only: bool) -> Tensor:
        # the published rule watches the soft-t loss, whichever is trained
        weight = rows["weight"] * rows["tested"] if tested_only else rows["weight"]
        rows = Rows(rows.X, dict(rows.columns) | {"weight": weight})
        return mstep_loss(fleet.logits(rows.X), q, rows, strength=settings.strength)

    trainer = Trainer(
        fleet,
        train,
        objective,
        Adam(settings.learning_rate, weight_decay=settings.weight_decay),
        batch_size=settings.batch_size,
        seeds=seeds,
    )
    rule = Patience(fleet.flat, settings.patience, min_delta=0.0)
    names = ("train_loss", "validation_loss", "tested_validation_loss")
    history: list[dict[str, list[float]]] = [{name: [] for name in names} for _ in range(len(fleet))]
    for iteration in range(settings.max_iter):
        active = rule.active.tolist()
        if not any(active):
            break
        if iteration > 0:
            teacher.load(fleet.flat)
            if full_batch:
                train["q"].copy_(e_step(teacher, train))
            if not settings.carry_weights:
                fleet.load(torch.where(rule.active.unsqueeze(1), initial.flat, fleet.flat))
        trainer.optimizer.reset()
        trainer.run(settings.steps, stopping=rule)
        q = e_step(fleet, validation)
        losses = {
            "train_loss": trainer.losses,
            "validation_loss": watched(validation, q, tested_only=False),
            "tested_validation_loss": watched(validation, q, tested_only=True),
        }
        rule.update(losses["tested_validation_loss" if settings.watch == "tested" else "validation_loss"], fleet.flat)
        for name, values in losses.items():
            for m, value in enumerate(values.tolist()):
                if active[m]:
                    history[m][name].append(value)
        if on_iteration is not None:
            on_iteration(iteration, fleet)
        if progress is not None:
            progress(iteration + 1, settings.max_iter)
    if settings.keep == "best":
        rule.restore(fleet.flat)
    n_iter = [len(record["train_loss"]) for record in history]
    return EMResult(
        pseudo_labels=e_step(fleet, train),
        n_iter=n_iter,
        best_iter=rule.best_step.tolist(),
        termination=["max_iter" if on else "no_improvement" for on in rule.active.tolist()],
        history=history,
    )
