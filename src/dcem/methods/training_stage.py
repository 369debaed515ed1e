"""One stage of supervised training: the whole of a plain method, a part of others.

All steps and the last weights without `patience`; with it a look at validation rows every ten
steps, and the best weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn.functional import softplus

from dcem.engine import Adam, Fleet, Rows, train
from dcem.engine.fit import Objective
from dcem.engine.fleet import cross_entropy_rows, margin, weighted_mean
from dcem.methods.fleets import FleetData, select

if TYPE_CHECKING:
    from dcem.methods.supervised import Lesson, SupervisedNetwork


def train_stage(
    method: SupervisedNetwork,
    data: FleetData,
    fleet: Fleet,
    objective: Objective,
    rows: Rows,
    validation: Rows | None,
) -> list[int]:
    """Train `fleet` in place with the steps, rates and patience of `method`.

    `data` gives seeds, batch size and progress; `rows` and `validation` are what this stage sees.
    Returns the step whose weights each network kept.
    """
    return train(
        fleet,
        rows,
        objective,
        Adam(method.learning_rate, weight_decay=method.weight_decay),
        method.steps,
        validation=validation,
        patience=method.patience,
        batch_size=data.batch_size,
        seeds=data.seeds,
        progress=data.progress,
    )


def rows_of(part: Rows, lesson: Lesson) -> Rows:
    """The rows of a lesson, with columns `target`, `weight` and, if rows have one, `factor`."""
    columns = {"target": lesson.target, "weight": part["weight"]}
    if lesson.factor is not None:
        columns["factor"] = lesson.factor
    evidence = part.get("evidence")
    if evidence is not None and not lesson.known:
        columns["evidence"] = evidence
    rows = Rows(part.X, columns, part.lengths)
    if lesson.keep is not None:
        rows = select(rows, lesson.keep)
    if lesson.mean_one:
        mean = weighted_mean(rows["factor"], rows["weight"]).unsqueeze(-1)
        rows.columns["factor"] = rows["factor"] / mean
    return rows


def result_rows(z: Tensor, evidence: Tensor) -> Tensor:
    """The loss of each row's result `[M, N]`, by its evidence; see `dcem.learners.learner`."""
    return softplus(z) - softplus(z + evidence) + evidence.clamp_min(0)


def factored_cross_entropy(logits: Tensor, rows: Rows) -> Tensor:
    """The mean cross-entropy of each network, `[M]`, rows counted by their factors.

    Of results of an imperfect test (column `evidence`) it is -log P(result).
    """
    evidence, factor = rows.get("evidence"), rows.get("factor")
    values = (
        cross_entropy_rows(logits, rows["target"])
        if evidence is None
        else result_rows(margin(logits), evidence)
    )
    return weighted_mean(values if factor is None else values * factor, rows["weight"])
