"""Simulated validation: how well a network answers for tables it never saw."""

import torch
from torch import Tensor
from torch.nn import functional

from pretraining.model import Network
from pretraining.prior import POLICIES, Batch, Shape, simulate

COLUMNS = (6, 12, 25, 60)
ROWS = 384  # rows to answer for


def checks(tables: int, tested: tuple[int, ...], device: torch.device) -> list[tuple[int, Batch]]:
    """Draw the tables of the validation with their number of tests, the same ones every time."""
    torch.manual_seed(12345)
    out = []
    for count in tested:
        for columns in COLUMNS:
            pool = min(4 * count + 300, 4096 - ROWS)
            shape = Shape(tables, count + min(count, 256), ROWS, columns, pool)
            batch = simulate(shape, device, tested=count)
            positive = batch.result.sum(1)
            keep = (batch.weight > 0) & (positive > 3) & (positive < ROWS - 3)
            out.append((count, Batch(*(part[keep] for part in batch))))
    return out


def auc(score: Tensor, y: Tensor) -> Tensor:
    """Return the area under the curve per table; ties count by their order."""
    rank = score.argsort(1).argsort(1).float() + 1
    positive = y.sum(1)
    pairs = positive * (y.shape[1] - positive)
    return ((rank * y).sum(1) - positive * (positive + 1) / 2) / pairs


def answers(net: Network, batch: Batch) -> Tensor:
    """Return the network's log-odds, a few tables at a time."""
    context = batch.code.shape[1] - ROWS
    parts = zip(*(part.split(16) for part in batch[:4]), strict=True)
    with torch.no_grad():
        return torch.cat([net(*part, context) for part in parts])


def validate(net: Network, every: list[tuple[int, Batch]]) -> dict[str, list[float]]:
    """Return per group of tables AUC and log loss, of the network and of the true risks.

    The groups are all tables, those with weak signals, by policy and by number of tests.
    """
    means: dict[str, list[Tensor]] = {}
    loss = functional.binary_cross_entropy
    for tested, batch in every:
        y = batch.result
        pair = torch.sigmoid(answers(net, batch)), batch.risk
        values = [f for p in pair for f in (auc(p, y), loss(p, y, reduction="none").mean(1))]
        groups = {"all": values[2] > 0, f"{tested} tested": values[2] > 0}
        groups |= {"weak": values[2] < 0.65}
        groups |= {name: batch.policy == i for i, name in enumerate(POLICIES)}
        for name, member in groups.items():
            means.setdefault(name, []).append(torch.stack(values, 1)[member])
    return {n: [round(v, 4) for v in torch.cat(m).mean(0).tolist()] for n, m in means.items()}
