"""The propensity model of DCEM: who gets tested, given features and group.

Its input is `[x, x a_1, ..., x a_(G-1), a_1, ..., a_(G-1)]` with indicators a_g of every group
but the first: the policy of each group may use the features in its own way. With two groups these
are the published 2d + 1 columns. Only the log-odds of being tested are used afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter
from torch import Tensor
from torch.nn.functional import one_hot

from dcem.engine import MLP, Adam, Fleet, Rows, cross_entropy, train
from dcem.engine.fleet import margin
from dcem.methods.registry import PropensitySettings
from dcem.methods.support import positive_probability, with_group
from dcem.table.messages import notice

# Probabilities of a foreign model are kept this far from 0 and 1: log-odds must be finite.
CLIP = 1e-6
BLOCK = 65_536  # rows given their interactions at a time
BY_GROUP_FROM = 512  # features and interactions that are worth the sorting of rows by group


def architecture_of(settings: PropensitySettings, n_inputs: int, n_groups: int) -> MLP:
    """The network behind P(tested | x, a), for so many features and groups."""
    return MLP(n_inputs * n_groups + n_groups - 1, settings.hidden)


def fit_propensity(
    part: Rows,
    validation: Rows | None,
    settings: PropensitySettings,
    *,
    n_groups: int,
    seeds: list[int],
    batch_size: int | None = None,
) -> Fleet:
    """A network for P(tested | x, a) for each seed, on rows with columns `group` and `tested`."""

    minibatches = batch_size is not None and batch_size < len(part)

    def rows(part: Rows) -> Rows:
        columns = {"target": part["tested"], "weight": part["weight"]}
        if minibatches:  # a long table is not copied with its interactions
            return Rows(part.X, columns | {"group": part["group"]}, part.lengths)
        return Rows(with_group(part.X, part["group"], n_groups), columns)

    def objective(flat: Tensor, part: Rows) -> Tensor:
        if not minibatches:
            return cross_entropy(architecture.logits(flat, part.X), part)
        if flat.device.type == "cpu" and architecture.sizes[0] >= BY_GROUP_FROM:
            logits = logits_by_group(architecture, flat, part.X, part["group"], n_groups)
        else:
            logits = architecture.logits(flat, with_group(part.X, part["group"], n_groups))
        return cross_entropy(logits, part)

    architecture = architecture_of(settings, part.X.shape[-1], n_groups)
    fleet = Fleet.initial(architecture, seeds, device=part.X.device, dtype=part.X.dtype)
    train(
        fleet,
        rows(part),
        objective,
        Adam(settings.learning_rate),
        settings.steps,
        validation=None if validation is None else rows(validation),
        patience=settings.patience,
        check_every=settings.check_every,
        keep=settings.keep,
        batch_size=batch_size,
        seeds=seeds,
    )
    return fleet


def for_group(architecture: MLP, flat: Tensor, code: int, n_groups: int) -> tuple[MLP, Tensor]:
    """The propensity networks as they treat one group: the same logits from the features alone.

    With the group fixed, each interaction is either a feature again or zero, so that its weights
    can be added to the feature's once instead of multiplied for every row.
    """
    (weight, bias), *rest = architecture.layers(flat)  # [M, out, G d + G - 1], [M, out]
    n_inputs = (weight.shape[-1] - (n_groups - 1)) // n_groups
    own, shift = weight[..., :n_inputs], bias
    if code > 0:
        own = own + weight[..., code * n_inputs : (code + 1) * n_inputs]
        shift = shift + weight[..., n_groups * n_inputs + code - 1]
    pieces = [own, shift, *(piece for layer in rest for piece in layer)]
    small = MLP(n_inputs, architecture.sizes[1:-1], architecture.n_outputs)
    return small, torch.cat([piece.reshape(len(flat), -1) for piece in pieces], dim=1)


def logits_by_group(
    architecture: MLP, flat: Tensor, X: Tensor, group: Tensor, n_groups: int
) -> Tensor:
    """Logits `[M, N, k]` of rows with their groups, without the interactions ever being written.

    `X` is `[N, d]` or `[M, N, d]`, `group` `[N]` or `[M, N]`.
    """
    (weight, bias), *rest = architecture.layers(flat)
    hidden: Tensor = _ByGroup.apply(weight, bias, X, group, n_groups)
    for weight, bias in rest:
        hidden = torch.baddbmm(bias.unsqueeze(1), hidden.relu(), weight.mT)
    return hidden


class _ByGroup(torch.autograd.Function):
    """The first layer of the propensity networks, `[M, N, out]`, a group at a time.

    With the group fixed, each interaction is a feature again or zero: a G-th of the work. (On
    narrow tables autograd's plain products are as fast.)
    """

    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, bias: Tensor, X: Tensor, group: Tensor, n_groups: int
    ) -> Tensor:
        n_networks, d = len(weight), X.shape[-1]
        codes = torch.atleast_2d(group).expand(len(X) if X.dim() == 3 else -1, -1)
        order = codes.argsort(1)
        rows = Rows(X).take(order).X  # [M, N, d], or [1, N, d] where all networks have the same
        sizes = one_hot(codes, n_groups).sum(1).tolist()
        # the layer as each group has it; all networks at a time, as there are many small pieces
        own, *more = weight[..., : n_groups * d].split(d, dim=2)
        shifts = weight[..., n_groups * d :].unbind(2)
        weights = [own.unbind(), *((own + each).unbind() for each in more)]
        biases = [bias.unbind(), *((bias + shift).unbind() for shift in shifts)]
        out = weight.new_empty(n_networks, codes.shape[1], weight.shape[1])
        for m, to in enumerate(out.unbind()):
            counts = sizes[m % len(rows)]
            places = zip(to.split(counts), rows[m % len(rows)].split(counts), strict=True)
            for code, (place, given) in enumerate(places):
                if counts[code]:
                    torch.addmm(biases[code][m], given, weights[code][m].T, out=place)
        ctx.save_for_backward(rows, order)
        ctx.sizes, ctx.n_groups, ctx.shape = sizes, n_groups, weight.shape
        back = order.argsort(1).expand(n_networks, -1)
        return Rows(out).take(back).X

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        rows, order = ctx.saved_tensors
        d, n_groups = rows.shape[-1], ctx.n_groups
        upstream = Rows(grads[0]).take(order.expand(len(grads[0]), -1)).X
        grad = upstream.new_zeros(ctx.shape)
        for m, (of_network, above) in enumerate(zip(grad, upstream, strict=True)):
            counts = ctx.sizes[m % len(rows)]
            own, *more = of_network[:, : n_groups * d].split(d, dim=1)
            shifts = of_network[:, n_groups * d :].unbind(1)
            places = zip(above.split(counts), rows[m % len(rows)].split(counts), strict=True)
            for code, (place, given) in enumerate(places):
                if counts[code]:
                    found = place.T @ given  # [out, d]
                    own += found
                    if code:
                        more[code - 1].copy_(found)
                        shifts[code - 1].copy_(place.sum(0))
        return grad, upstream.sum(1), None, None, None


def log_odds(fleet: Fleet, rows: Rows, n_groups: int) -> Tensor:
    """Log-odds of being tested: `[M, N]`, block by block."""
    out = fleet.flat.new_empty(len(fleet), len(rows))
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        X = with_group(rows.X[..., block, :], rows["group"][..., block], n_groups)
        out[:, block] = margin(fleet.logits(X))
    return out


def foreign_log_odds(
    model: Any, train: Rows, parts: list[Rows], n_groups: int
) -> tuple[list[Tensor], list[Any]]:
    """The same from any scikit-learn classifier, one clone for each table; and the clones.

    Returns log-odds `[M, N]` (or `[1, N]` for a shared table) of each of `parts`.
    """

    def arrays(part: Rows) -> tuple[np.ndarray, np.ndarray]:
        X = with_group(part.X, part["group"], n_groups)
        X = X if X.dim() == 3 else X.unsqueeze(0)
        return X.cpu().numpy(), np.atleast_2d(part["weight"].cpu().numpy())

    X, weight = arrays(train)
    tested = np.atleast_2d(train["tested"].cpu().numpy())
    models = []
    for m in range(max(len(X), len(tested))):
        rows = weight[m % len(weight)] > 0  # not the padding
        target = tested[m % len(tested)][rows].astype(int)
        models.append(
            _fit_foreign(model, X[m % len(X)][rows], target, weight[m % len(weight)][rows])
        )
    out = []
    for part in parts:
        X, _ = arrays(part)
        p = np.stack([positive_probability(one, X[m % len(X)]) for m, one in enumerate(models)])
        p = np.clip(p, CLIP, 1 - CLIP)
        logit = np.log(p) - np.log1p(-p)
        out.append(torch.from_numpy(logit).to(part.X.device, part.X.dtype))
    return out, models


def _fit_foreign(model: Any, X: np.ndarray, target: np.ndarray, weight: np.ndarray) -> Any:
    """A fitted clone; it hears of weights where rows have different ones."""
    if np.ptp(weight) == 0:
        return clone(model).fit(X, target)
    if has_fit_parameter(model, "sample_weight"):
        return clone(model).fit(X, target, sample_weight=weight)
    notice(
        f"The propensity model {type(model).__name__} takes no sample_weight, so the rows count "
        "equally in it, although they have weights. Everything else uses the weights."
    )
    return clone(model).fit(X, target)


def by_group(fleet: Fleet, X: np.ndarray, n_groups: int) -> np.ndarray:
    """P(tested) of rows `[n, d]` if they belonged to each of the groups, `[n, G]`."""
    out = np.empty((len(X), n_groups))
    rows = torch.from_numpy(X)
    assert isinstance(fleet.architecture, MLP)
    for code in range(n_groups):
        own = Fleet(*for_group(fleet.architecture, fleet.flat, code, n_groups))
        out[:, code] = own.predict(rows).mean(0).double().numpy()
    return out
