"""Does the clamp of the released loss explain the temperature table at .01?

The released M-step adds the logits of outcome and testing, clamps each sum to about -87 to 88 and
exponentiates. Divided by a temperature of .01 the sums are larger, and a clamped one has no
gradient. `variant="published"` computes the same loss in log space, without a clamp. Here DCEM as
in the table (tested-only start, 12 boundaries at q_y 1/2, k 1, q_t 2) is written out with either.

    python experiments/temperature_clamp.py run          # an accelerator: two minutes
    python experiments/temperature_clamp.py show
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, softmax

from _record import command, record
from dcem import metrics, tasks
from dcem.engine import MLP, Adam, Fleet, Patience, Rows, Trainer, resolve_device
from dcem.methods.propensity import PropensitySettings, fit_propensity, with_group

TEMPERATURE = 0.01
PHASES = range(0, 360, 30)
LOSSES = ("clamped", "log space")
LOWEST = math.log(torch.finfo(torch.float32).tiny)
HIGHEST = math.log(torch.finfo(torch.float32).max / 3) - 1e-5


def regularised(o: Tensor, rows: Rows, clamp: Tensor) -> Tensor:
    """The M-step loss `[M]` from outcome logits `[M, N, 2]`; `clamp [M, 1, 1]`: for whom."""
    q, y, u = rows["q"], rows["y"], rows["u"]  # [M, N], [M, N], [M, N, 2]
    sums = o.unsqueeze(-1) + u.unsqueeze(-2)  # [M, N, 2, 2]: outcome, testing
    sums = sums.flatten(-2)
    sums = torch.where(clamp, sums.clamp(LOWEST, HIGHEST), sums)
    found, other = sums[..., 3], torch.logsumexp(sums[..., :3], -1)
    both = torch.logaddexp(found, other)
    observed = both - torch.where(y > 0, found, other)
    log_f = log_softmax(o, -1)
    return (q * (observed - log_f[..., 1]) - (1 - q) * log_f[..., 0]).mean(-1)


def run(out: Path, device: str, steps: int, iterations: int) -> None:
    """Each M-step takes so many steps, and there are so many iterations at most."""
    started = time.monotonic()
    cells = trained(resolve_device(device), steps, iterations)
    record("temperature_clamp", cells, out, time.monotonic() - started)


def trained(device: torch.device, steps: int, iterations: int) -> list[dict[str, object]]:
    """Twelve boundaries with either loss, 24 networks as one fleet."""
    problems = [tasks.make_sinusoid(q_y=0.5, k=1, q_t=2, phase=math.radians(p)) for p in PHASES]
    clamp = torch.tensor([loss == "clamped" for loss in LOSSES for _ in PHASES], device=device)
    clamp = clamp.reshape(-1, 1, 1)
    seeds = [42] * len(clamp)

    def rows(part: str) -> Rows:
        split = [getattr(one, part) for one in problems] * len(LOSSES)

        def stacked(values: list[np.ndarray], dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.tensor(np.stack(values), dtype=dtype, device=device)

        return Rows(
            stacked([one.X for one in split]),
            {
                "y": stacked([one.y_imputed for one in split]),
                "tested": stacked([one.tested for one in split]),
                "group": stacked([one.group for one in split], torch.int64),
                "weight": torch.ones(len(split), len(split[0]), device=device),
            },
        )

    train, validation = rows("train"), rows("validation")
    settings = PropensitySettings(steps=steps)
    testing = fit_propensity(train, None, settings, n_groups=2, seeds=seeds)
    for part in (train, validation):
        part.columns["u"] = testing.logits(with_group(part.X, part["group"], 2)) / TEMPERATURE

    def expect(fleet: Fleet, part: Rows) -> Tensor:
        return torch.where(part["tested"] > 0, part["y"], fleet.predict(part.X))

    architecture = MLP(2, (64, 64))
    fleet = Fleet.initial(architecture, seeds, device=device)
    for part in (train, validation):  # first pseudo-labels: those of the untrained network
        part.columns["q"] = expect(fleet, part)

    def tested_only(flat: Tensor, part: Rows) -> Tensor:
        o = architecture.logits(flat, part.X)
        losses = cross_entropy(o.movedim(-1, 1), part["y"].long(), reduction="none")
        return (losses * part["tested"]).sum(1) / part["tested"].sum(1)

    def objective(flat: Tensor, part: Rows) -> Tensor:
        return regularised(architecture.logits(flat, part.X), part, clamp)

    Trainer(fleet, train, tested_only, Adam(1e-3)).run(steps)
    optimizer = Adam(1e-3)
    trainer = Trainer(fleet, train, objective, optimizer)
    rule = Patience(fleet.flat, patience=3)
    for iteration in range(iterations):
        optimizer.reset()
        before = fleet.flat.clone()
        trainer.run(steps)
        fleet.load(torch.where(rule.active.unsqueeze(1), fleet.flat, before))
        for part in (train, validation):
            part["q"].copy_(expect(fleet, part))
        with torch.no_grad():
            rule.update(objective(fleet.flat, validation), fleet.flat)
        print(f"iteration {iteration + 1}: {int(rule.active.sum())} networks go on", flush=True)
        if not bool(rule.active.any()):
            break
    scores = softmax(fleet.logits(rows("test").X), -1)[..., 1].cpu().numpy()
    cells = [(loss, phase) for loss in LOSSES for phase in range(len(problems))]
    return [
        {
            "loss": loss,
            "phase": PHASES[i],
            "auc": round(metrics.auc(problems[i].truth["test"], score), 6),
            "roc_gap": round(
                metrics.roc_gap(problems[i].truth["test"], score, problems[i].test.group), 6
            ),
        }
        for (loss, i), score in zip(cells, scores, strict=True)
    ]


def show(out: Path) -> None:
    table = pd.read_csv(out / "temperature_clamp.csv")
    for phases, part in (("12 phases", table), ("without 0", table.query("phase > 0"))):
        print(phases)
        print(part.groupby("loss")[["auc", "roc_gap"]].agg(["median", "min", "max"]).round(3))


if __name__ == "__main__":
    command(__doc__, run, show, device="auto", steps=1000, iterations=50)
