"""DCEM's two schedules and its starts on the published data sets: the evidence for the default.

    python experiments/dcem_schedules.py run          # on a CUDA card: a few minutes
    python experiments/dcem_schedules.py show         # the comparison, from the recorded run

Settings: the four of the published figures, and (q_y .25, k 1, q_t 3). The fast schedule was chosen
on others, but after a first choice had failed at one of these; docs/fast-schedule.md tells it.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from _record import command, kept, record

SETTINGS = [(0.5, 1.0, 0.5), (0.5, 1.0, 1.0), (0.5, 1.0, 2.0), (0.5, 2.0, 2.0), (0.25, 1.0, 3.0)]
MAIN = (0.5, 1.0, 2.0)


def run(out: Path, phases: int, settings: int, only: list[str]) -> None:
    """`settings`: the first so many; `only`: run just these models again."""
    from dcem.methods import fit_many, make, published
    from dcem.tasks import make_sinusoid

    chosen_settings = SETTINGS[:settings]
    cells = [(s, 360 / phases * p) for s in chosen_settings for p in range(phases)]
    tasks = {
        (s, phase): make_sinusoid(q_y=s[0], k=s[1], q_t=s[2], phase=math.radians(phase))
        for s, phase in cells
    }
    models = {
        "published": (published("dcem"), chosen_settings),
        "fast": (make("dcem", random_state=42), chosen_settings),
        "published, Algorithm 1": (published("dcem").set_params(start="algorithm-1"), [MAIN]),
        "published, tested-only weights": (
            published("dcem").set_params(start="tested-only"),
            [MAIN],
        ),
        "tested-only, published": (published("tested-only"), chosen_settings),
        "tested-only, early stopping": (make("tested-only", random_state=42), chosen_settings),
    }
    models = {label: model for label, model in models.items() if not only or label in only}
    rows = kept("dcem_schedules", out, only)
    begin = time.perf_counter()
    for label, (model, where) in models.items():
        for setting in where:  # one fleet a setting, so that its time is that of the 12 phases
            chosen = [cell for cell in cells if cell[0] == setting]
            start = time.perf_counter()
            fitted = fit_many(
                model,
                [tasks[cell].train for cell in chosen],
                validations=[tasks[cell].validation for cell in chosen],
            )
            seconds = time.perf_counter() - start
            print(f"{label} {setting}: {len(chosen)} fits in {seconds:.1f} s", flush=True)
            rows += [
                describe(label, cell, tasks[cell], one, seconds)
                for cell, one in zip(chosen, fitted, strict=True)
            ]
    record("dcem_schedules", rows, out, time.perf_counter() - begin)


def describe(label: str, cell: Any, task: Any, one: Any, seconds: float) -> dict[str, Any]:
    from dcem.metrics import auc, roc_gap

    truth, score = task.truth["test"], one.predict_proba(task.test)[:, 1]
    (q_y, k, q_t), phase = cell
    return {
        "q_y": q_y, "k": k, "q_t": q_t, "phase": phase, "stream": "published",
        "seed": 42, "method": one.name, "model": label,
        "variant": getattr(one, "variant", ""),
        "schedule": getattr(one, "schedule", ""), "start": getattr(one, "start", ""),
        "auc": auc(truth, score), "roc_gap": roc_gap(truth, score, task.test.group),
        "n_iter": one.n_iter_, "termination": getattr(one, "termination_", ""),
        "fleet_seconds": seconds,
    }  # fmt: skip


def show(out: Path) -> None:
    table = pd.read_csv(out / "dcem_schedules.csv")
    print("median [min, max] over the phases")
    summary = table.groupby(["q_y", "k", "q_t", "model"])[["auc", "roc_gap"]].agg(
        ["median", "min", "max"]
    )
    print(summary.round(3).to_string())
    print("\nfast minus published schedule, paired by phase: 95 % bootstrap intervals")
    rng = np.random.default_rng(0)
    for setting, part in table.groupby(["q_y", "k", "q_t"]):
        if not {"fast", "published"} <= set(part["model"]):
            continue
        wide = part.pivot(index="phase", columns="model", values=["auc", "roc_gap"])
        wide = wide.dropna(subset=[("auc", "fast"), ("auc", "published")])
        if not len(wide):
            continue
        pick = rng.integers(len(wide), size=(10_000, len(wide)))
        line = []
        for metric, worst in (("auc", np.min), ("roc_gap", np.max)):
            fast, slow = wide[metric]["fast"].to_numpy(), wide[metric]["published"].to_numpy()
            for name, how in (("median", np.median), ("worst", worst)):
                drawn = how(fast[pick], axis=1) - how(slow[pick], axis=1)
                low, high = np.quantile(drawn, (0.025, 0.975))
                line.append(
                    f"{name} {metric} {how(fast) - how(slow):+.3f} [{low:+.3f}, {high:+.3f}]"
                )
        print(f"  q_y {setting[0]}, k {setting[1]}, q_t {setting[2]}: " + "; ".join(line))


if __name__ == "__main__":
    command(__doc__, run, show, phases=12, settings=len(SETTINGS), only=[])
