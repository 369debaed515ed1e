"""The methods of `weighting` as networks: all members, and both halves, in one fleet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from dcem.engine import Fleet, Rows, supervised
from dcem.engine.fleet import margin, weighted_mean
from dcem.methods.dcem import SCHEDULES
from dcem.methods.fleets import FleetData, Trained, select
from dcem.methods.propensity import fit_propensity, log_odds
from dcem.methods.supervised import Lesson
from dcem.methods.training_stage import factored_cross_entropy, rows_of, train_stage
from dcem.methods.weighting import halves

if TYPE_CHECKING:
    from dcem.methods.weighting import DoublyRobustClassifier, InversePropensityClassifier

PUBLISHED, EARLY_STOPPED = SCHEDULES["published"][1], SCHEDULES["fast"][1]


def train_ipw(
    method: InversePropensityClassifier, data: FleetData, train_network: Callable[..., Trained]
) -> Trained:
    """P(tested) first, as a column `e` of the rows; then the outcome networks.

    Corrected: of each half of the rows by a network of the other half, so that nobody's weight
    comes from a model that saw whether she was tested. Published: by one network of all rows.
    """
    published = method.variant == "published"
    both, half, learns = (data, None, None) if published else _by_halves(data)
    model = fit_propensity(
        both.train if learns is None else select(both.train, learns),
        both.validation,
        method.propensity_settings or (PUBLISHED if published else EARLY_STOPPED),
        n_groups=data.n_groups,
        seeds=both.seeds,
        batch_size=data.batch_size,
    )

    def with_propensity(part: Rows, rows: Rows, unseen: bool) -> Rows:
        e = torch.sigmoid(log_odds(model, rows, data.n_groups))  # [M, N], or [2M, N]
        if half is not None:
            e = _of_other_half(half, e) if unseen else (e[0::2] + e[1::2]) / 2
            e = _as_designed(part, e)
        return part.plus(e=e[0] if len(e) == 1 else e)

    train, validation = with_propensity(data.train, both.train, True), None
    if data.validation is not None and both.validation is not None:
        validation = with_propensity(data.validation, both.validation, False)
    trained = train_network(replace(data, train=train, validation=validation))
    e = np.atleast_2d(train["e"].cpu().numpy())
    size = len(both.seeds) // len(data.seeds)
    for m, attributes in enumerate(trained.attributes):
        own = model[size * m : size * (m + 1)]
        attributes |= {"propensity_": e[m], "propensity_model_": own}
    return trained


def train_doubly_robust(method: DoublyRobustClassifier, data: FleetData) -> Trained:
    """Nuisances of either half, pseudo-outcomes of the other, and a network for each."""
    both, half, learns = _by_halves(data)
    e, m, propensity = _nuisances(method, both, learns)
    architecture = method._architecture(data.n_inputs)
    fleet = both.fleet(architecture)
    parts = [part for part in (both.train, both.validation) if part is not None]
    rows, *watched = (
        Rows(part.X, {"outcome": method._pseudo_outcome(part, *told), "weight": part["weight"]})
        for part, *told in zip(parts, e, m, strict=True)
    )
    loss, learnt = supervised(architecture, squared_error), select(rows, 1 - learns)
    kept = train_stage(method, both, fleet, loss, learnt, watched[0] if watched else None)
    unseen = [_of_other_half(half, values).cpu().numpy() for values in (rows["outcome"], e[0])]
    attributes = [
        {
            "n_iter_": max(kept[2 * number : 2 * number + 2]),
            "pseudo_outcome_": unseen[0][number],
            "propensity_": unseen[1][number],
            "propensity_model_": propensity[2 * number : 2 * number + 2],
        }
        for number in range(len(data.seeds))
    ]
    return Trained(fleet, attributes)


def _nuisances(
    method: DoublyRobustClassifier, both: FleetData, learns: Tensor
) -> tuple[list[Tensor], list[Tensor], Fleet]:
    """P(tested) and the tested-only prediction, `[2M, N]`, of training and validation rows."""
    own = select(both.train, learns)
    settings = PUBLISHED if method.patience is None else EARLY_STOPPED
    propensity = fit_propensity(
        own,
        both.validation,
        method.propensity_settings or settings,
        n_groups=both.n_groups,
        seeds=both.seeds,
        batch_size=both.batch_size,
    )
    architecture = method._architecture(both.n_inputs)
    outcome = both.fleet(architecture)
    learnt, watched = (
        None if part is None else rows_of(part, Lesson(part["y"], keep=part["tested"]))
        for part in (own, both.validation)
    )
    assert learnt is not None
    loss = supervised(architecture, factored_cross_entropy)
    train_stage(method, both, outcome, loss, learnt, watched)
    parts = [part for part in (both.train, both.validation) if part is not None]
    e = [
        _as_designed(part, torch.sigmoid(log_odds(propensity, part, both.n_groups)))
        for part in parts
    ]
    return e, [outcome.predict(part.X) for part in parts], propensity


def squared_error(logits: Tensor, rows: Rows) -> Tensor:
    """Mean squared distance `[M]` of the probability of class 1 from column `outcome`."""
    return weighted_mean((torch.sigmoid(margin(logits)) - rows["outcome"]) ** 2, rows["weight"])


def _by_halves(data: FleetData) -> tuple[FleetData, Tensor, Tensor]:
    """Two networks per member, one for each half that it learns from.

    The rows for all of them; each row's half `[M, N]`; and 1 where a network learns `[2M, N]`.
    """
    half = _halves(data)
    both = replace(data.each(_twice), seeds=[seed for seed in data.seeds for _ in range(2)])
    side = torch.tensor([[0], [1]], device=data.device).repeat(len(half), 1)
    learns = half.repeat_interleave(2, dim=0) == side
    return both, half, learns.to(data.train.X.dtype)


def _as_designed(part: Rows, e: Tensor) -> Tensor:
    """The probabilities of the design by which tests were drawn, if known, else of the model."""
    known = part.columns.get("chance")
    return e if known is None else known.expand_as(e)


def _of_other_half(half: Tensor, values: Tensor) -> Tensor:
    """Of `[2M, N]`, what the network that did not learn from a row says of it `[M, N]`."""
    return torch.where(half == 0, values[1::2], values[0::2])


def _twice(rows: Rows) -> Rows:
    """Each network's rows for two networks in succession; what is shared stays shared."""
    X = rows.X if rows.X.dim() == 2 else rows.X.repeat_interleave(2, dim=0)
    columns = {
        name: column if column.dim() == 1 else column.repeat_interleave(2, dim=0)
        for name, column in rows.columns.items()
    }
    return Rows(X, columns)


def _halves(data: FleetData) -> Tensor:
    """0 or 1 for each row of each network, `[M, N]`, by its seed."""
    shape = len(data.seeds), len(data.train)
    rows = {"person": np.broadcast_to(np.arange(shape[1]), shape)} | {
        name: np.broadcast_to(np.atleast_2d(column.cpu().numpy()), shape)
        for name, column in data.train.columns.items()
    }
    half = [
        halves(rows["tested"][m], rows["y"][m], rows["weight"][m], rows["person"][m], seed)
        for m, seed in enumerate(data.seeds)
    ]
    return torch.from_numpy(np.stack(half)).to(data.device)
