"""Simulated validation: how well a network answers for tables it never saw."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from pretraining.model import Network
from pretraining.prior import POLICIES, Batch, Shape, simulate

TESTED = (50, 100, 200, 500, 1000, 2000)
COLUMNS = (6, 12, 25, 60)
ROWS = 384  # rows to answer for


class Check(NamedTuple):
    """Tables of one shape, with what a logistic regression and the truth reach on them."""

    tested: int
    batch: Batch
    logistic: Tensor
    truth: Tensor


def auc(score: Tensor, y: Tensor) -> Tensor:
    """Return the area under the curve per table; ties count by their order."""
    rank = score.argsort(1).argsort(1).float() + 1
    positive = y.sum(1)
    pairs = positive * (y.shape[1] - positive)
    return ((rank * y).sum(1) - positive * (positive + 1) / 2) / pairs


def logistic(batch: Batch, tested: int, steps: int = 12) -> Tensor:
    """Return log-odds of a ridge logistic regression of the tested rows, all tables at once."""
    cells = batch.cells
    x = torch.cat([cells[..., 0], cells[..., 2], torch.ones_like(cells[..., :1, 0])], -1).double()
    a, y = x[:, :tested], batch.code[:, :tested].double()
    slope = x.new_zeros(x.shape[0], x.shape[2])
    ridge = torch.eye(x.shape[2], device=x.device, dtype=x.dtype)
    ridge[-1, -1] = 1e-3
    for _ in range(steps):
        p = torch.sigmoid((a @ slope[..., None])[..., 0]).clamp(1e-6, 1 - 1e-6)
        hessian = (a * (p * (1 - p))[..., None]).mT @ a + ridge
        gradient = (a.mT @ (y - p)[..., None])[..., 0] - slope @ ridge
        slope = slope + 0.9 * torch.linalg.solve(hessian, gradient)
    return (x[:, -batch.result.shape[1] :] @ slope[..., None])[..., 0].float()


def checks(
    tables: int,
    device: torch.device,
    tested: tuple[int, ...] = TESTED,
    columns: tuple[int, ...] = COLUMNS,
) -> list[Check]:
    """Draw the tables of the validation, the same ones every time on one kind of device."""
    torch.manual_seed(12345)
    out = []
    for count in tested:
        for width in columns:
            context = count + min(count, 256)
            shape = Shape(tables, context, ROWS, width, min(4 * count + 300, 4096 - ROWS))
            batch = simulate(shape, device, tested=count)
            positive = batch.result.sum(1)
            keep = (batch.weight > 0) & (positive > 3) & (positive < ROWS - 3)
            batch = Batch(*(part[keep] for part in batch))
            out.append(Check(count, batch, logistic(batch, count), batch.risk))
    return out


def scores(net: Network, check: Check, chunk: int = 16) -> Tensor:
    """Return the network's log-odds for the tables of a check."""
    context = check.batch.code.shape[1] - ROWS
    parts = zip(
        *(part.split(chunk) for part in check.batch[:3]), check.batch.tag.split(chunk), strict=True
    )
    with torch.no_grad():
        return torch.cat([net(*part, context) for part in parts])


def validate(net: Network, every: list[Check]) -> dict[str, list[float]]:
    """Return per group of tables: AUC and log loss of the network, of logistic, AUC of the truth.

    The groups are all tables, those by number of tests, by policy, and those with weak signals.
    """
    rows, groups = [], {"all": []}
    for check in every:
        y = check.batch.result
        answers = scores(net, check)
        losses = [
            functional.binary_cross_entropy_with_logits(z, y, reduction="none").mean(1)
            for z in (answers, check.logistic)
        ]
        truth = auc(check.truth, y)
        rows.append(
            torch.stack([auc(answers, y), losses[0], auc(check.logistic, y), losses[1], truth], 1)
        )
        inside = {"all": torch.ones_like(truth), "weak": truth < 0.65}
        inside |= {f"{n} tested": torch.full_like(truth, check.tested == n) for n in TESTED}
        inside |= {name: check.batch.policy == i for i, name in enumerate(POLICIES)}
        for name, member in inside.items():
            groups.setdefault(name, []).append(member.bool())
    table = torch.cat(rows)
    means = {name: table[torch.cat(member)] for name, member in groups.items()}
    return {n: [round(v, 4) for v in m.mean(0).tolist()] for n, m in means.items() if len(m)}
