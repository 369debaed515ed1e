"""Expectation-maximisation: guess what is missing, fit to the guess, look, repeat.

The loop knows neither networks nor rows. What it alternates over has an *E-step* (guess the missing
outcomes with the models as they are), an *M-step* (fit the models to record and guess) and a *look*
(which of them still improve). `dcem.methods.em_networks` is DCEM's, `dcem.methods.sar_em` another;
a model that is fitted in closed form, or by trees, is a third.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dcem.engine.checkpoint import Saves
    from dcem.methods.em_networks import FleetSteps

PACES = (5, 10, 20, 40)  # steps between two renewals of the pseudo-labels
STEPS_IF_ALL_TESTED = 80


def pace_of(tested: np.ndarray, weight: np.ndarray) -> int:
    """Steps per M-step: of `PACES`, the nearest to `STEPS_IF_ALL_TESTED` times the share tested.

    Between two E-steps untested rows hold the model at its last guess; the fewer labels there are
    to move it, the sooner that guess has to be renewed.
    """
    share = float(np.average(tested, weights=weight))
    distance = np.abs(np.log(PACES) - np.log(max(share * STEPS_IF_ALL_TESTED, 1)))
    return PACES[int(distance.argmin())]


@dataclass(frozen=True)
class EMSettings:
    """How long, how fast, and when to stop."""

    max_iter: int = 50
    steps: int = 1000  # per M-step
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    fresh_optimizer: bool = True  # forget Adam's moments at each M-step
    strength: float = 1.0  # lambda, the weight of the causal regularisation
    hard_t: bool = False
    carry_weights: bool = True  # an M-step starts from the weights of the one before
    patience: int = 3
    watch: str = "self"
    keep: str = "last"  # or "best": the iterate with the lowest watched loss
    batch_size: int | None = None


def alternate(
    steps: FleetSteps,
    max_iter: int,
    saves: Saves,
    *,
    done: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Iterate until nothing improves or `max_iter` iterations are done; how many there are.

    Parameters
    ----------
    done
        Iterations behind us, of a run that goes on.
    progress
        Called with `(done, max_iter)`.
    """
    while done < max_iter and steps.is_active():
        steps.e_step(done)
        steps.m_step()
        steps.look()
        done += 1
        with saves.after(done, steps.state):
            if progress is not None:
                progress(done, max_iter)
    saves.write(done, steps.state)
    return done


class History:
    """Losses of each model after each iteration in which it was active."""

    def __init__(self, models: int, names: tuple[str, ...]):
        self.records: list[dict[str, list[float]]] = [
            {name: [] for name in names} for _ in range(models)
        ]

    def note(self, losses: dict[str, list[float]], active: list[bool]) -> None:
        """One loss per model and name; only of those that are active."""
        for name, values in losses.items():
            for record, value, on in zip(self.records, values, active, strict=True):
                if on:
                    record[name].append(value)

    def endings(self, best: list[int], active: list[bool]) -> list[dict[str, Any]]:
        """Fitted attributes of each model: its best iteration is given, and whether it went on."""
        return [
            {
                "n_iter_": len(next(iter(record.values()))),
                "best_iter_": number,  # 1 is the first
                "termination_": "max_iter" if on else "no_improvement",
                "history_": record,
            }
            for record, number, on in zip(self.records, best, active, strict=True)
        ]
