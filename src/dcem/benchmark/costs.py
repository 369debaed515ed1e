"""How long a cell will take, and how many fit into memory: what the size of a fleet follows from.

The first guess counts steps times rows; after the first fleet of a kind the store knows better. A
wrong guess costs little: a fleet too large for memory is split, one too long for the time left goes
on from its checkpoint, or is cut smaller the next time.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import torch

from dcem.benchmark.cells import Cell, estimator_of
from dcem.benchmark.fleets import REMOTE_CARD

# Rows times steps a second, of networks of two layers of 64; deliberately low.
_THROUGHPUT = {"cuda": 2e8, "cpu": 1e6}
# Methods that train more than one network a step, or refit something each epoch.
_BURDEN = {"dividemix": 8.0, "dragonnet": 4.0, "self": 6.0, "sar-em": 2.0, "dr-learner": 4.0}
# Rounds after which methods that stop by themselves usually have stopped.
_TYPICAL_ROUNDS = {"self": 5, "sar-em": 15}
# Methods whose fleets write a checkpoint as they go, so that stopping them loses little.
RESUMABLE = frozenset({"dcem", "no-causal-regularization", "sar-em", "self"})
_DEFAULT_ROWS = 20_000


@dataclass(frozen=True)
class Cost:
    """What one cell of a kind costs."""

    seconds: float
    bytes: float
    measured: bool
    resumable: bool


def guess(cell: Cell, device: str) -> Cost:
    """The cost of a cell, and of all others of its kind, before any was seen."""
    estimator = estimator_of(cell.method, cell.task["kind"])
    rows = int(cell.task.get("n_train") or _DEFAULT_ROWS)
    burden = _BURDEN.get(cell.method["name"], 1.0)
    throughput = _THROUGHPUT["cpu" if device == "cpu" else "cuda"]
    return Cost(
        seconds=max(1e-4, steps_of(estimator) * rows * burden / throughput),
        bytes=_bytes(estimator, rows),
        measured=False,
        resumable=cell.method["name"] in RESUMABLE,
    )


def learnt(cost: Cost, fleets: list[tuple[int, float, bool]]) -> Cost:
    """The cost after some fleets: (cells, seconds, ran to its end).

    A fleet that was stopped says that its cells take longer; half as long again is assumed.
    """
    whole = [(cells, seconds) for cells, seconds, ended in fleets if ended]
    if whole:
        seconds = sum(s for _, s in whole) / sum(n for n, _ in whole)
        return replace(cost, seconds=max(seconds, 1e-6), measured=True)
    cut = [max(seconds / cells, 1e-6) for cells, seconds, ended in fleets if not ended]
    return replace(cost, seconds=1.5 * max(cut)) if cut else cost


def steps_of(estimator: Any) -> int:
    """Gradient steps of one fit, roughly."""
    params = estimator.get_params(deep=False)
    iterations, steps = params.get("max_iter"), params.get("steps")
    if params.get("schedule") == "fast":
        return int((iterations or 200) * (steps or 10) + 300)
    rounds = iterations or (50 if "max_iter" in params else 1)
    rounds = min(rounds, _TYPICAL_ROUNDS.get(estimator.name, rounds))
    return int(rounds * (steps or params.get("epochs") or 1000))


def _bytes(estimator: Any, rows: int) -> float:
    """Bytes that one network needs while it trains: rows of two splits, activations, gradients."""
    widths = sum(estimator.hidden)
    return rows * 4.0 * (3 * widths + 64) * estimator.n_members


def free_memory(device: str) -> float:
    """Bytes to spare where the fleet will live."""
    if device == REMOTE_CARD:
        return 16e9  # most cards have more; one that has less splits its fleets
    if device != "cpu":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(torch.cuda.mem_get_info(device)[0] + kept)
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES"))
    except (ValueError, OSError):  # not every system says
        return 2e9


def fleet_size(cost: Cost, device: str, seconds: float, limit: int | None) -> int:
    """How many cells to train at once, so that a fleet takes about `seconds` and fits.

    On a card small fleets waste most of it, so there are at least a dozen.
    """
    by_time = int(seconds / cost.seconds)
    if device != "cpu":
        by_time = max(12, by_time)
    by_memory = int(0.5 * free_memory(device) / cost.bytes)
    return max(1, min(by_time, by_memory, limit or 2048))
