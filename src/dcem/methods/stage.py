"""One stage of supervised training: the whole of a plain method, a part of others.

All steps and the last weights without `patience`; with it a look at validation rows every ten
steps, and the best weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dcem.engine import Adam, Fleet, Patience, Rows, Trainer
from dcem.engine.fit import Objective
from dcem.methods.base import FleetData

if TYPE_CHECKING:
    from dcem.methods.supervised import SupervisedNetwork

CHECK_EVERY = 10


def train_stage(
    method: SupervisedNetwork,
    data: FleetData,
    fleet: Fleet,
    objective: Objective,
    train: Rows,
    validation: Rows | None,
) -> list[int]:
    """Train `fleet` in place with the steps, rates and patience of `method`.

    `data` gives seeds, batch size and progress; `train` and `validation` are what this stage sees.
    Returns the step whose weights each network kept.
    """
    trainer = Trainer(
        fleet,
        train,
        objective,
        Adam(method.learning_rate, weight_decay=method.weight_decay),
        batch_size=data.batch_size,
        seeds=data.seeds,
    )
    if method.patience is None or validation is None:
        trainer.run(method.steps, progress=data.progress)
        return [method.steps] * len(fleet)
    rule = Patience(fleet.flat, method.patience)
    trainer.run(
        method.steps,
        stopping=rule,
        validation=validation,
        check_every=CHECK_EVERY,
        progress=data.progress,
    )
    rule.restore(fleet.flat)
    return [int(step) for step in (rule.best_step * CHECK_EVERY).tolist()]
