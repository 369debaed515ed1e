"""How the fast schedule was chosen: on settings that no result is reported on.

    python experiments/choose_schedule.py run --data diabetes130.csv.gz     # on a CUDA card
    python experiments/choose_schedule.py show

Eight simulation settings with phases between the paper's twelve and draws of their own, and the
censored diabetes table. Every candidate takes 2,000 outcome steps, 1 in 25 of the published
schedule. A candidate is `steps` a M-step, `weight_decay`, and the standard deviation `spread` that
features are scaled to; Adam's moments are kept between M-steps. Merit of a candidate in a setting:
median AUC + worst AUC - median gap - worst gap over the phases.

What it shows: no length of the M-step is best everywhere. At weight decay 3e-4 and spread .5, where
all four lengths were tried, 5 steps are best where 8 % are tested, 10 to 20 where 25 % are, 40
where 50 % are. So the schedule takes 80 steps times the share tested, rounded to 5, 10, 20 or 40.

How free that choice was. Before this run, 10 steps at weight decay 1e-3 had been chosen on other
tasks and evaluated: better than the published schedule at four of five settings, but worse in the
worst phase where half of the people are tested. This run was made with a rule stated beforehand,
the largest mean merit, which would have given 10 steps, weight decay 1e-4 and spread .25 (1.583;
five candidates lie within .006 of it). The table by setting showed something better than any
single candidate, and the rule was given up for it. The run ended at a time limit: 20 of 24
candidates were done, and the other four (one step a M-step, and Adam started anew at 10, 20 and 40)
are left out here. Products ran in tf32.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from _record import command, record

SETTINGS = [
    (0.5, 0.5, 2.0), (0.5, 1.0, 3.0), (0.25, 2.0, 0.5), (1.0, 1.0, 2.0),
    (0.5, 1 / 3, 1.0), (0.25, 1.0, 0.5), (0.5, 2.0, 3.0), (1 / 3, 2.0, 4.0),
]  # fmt: skip
OUTCOME_STEPS = 2000
CANDIDATES = [
    *((steps, decay, spread) for steps in (10, 20) for decay in (1e-4, 3e-4, 1e-3)
      for spread in (0.25, 0.5, 1.0)),
    (5, 3e-4, 0.5), (40, 3e-4, 0.5),
]  # fmt: skip


def scaled(problem: Any, like: Any, spread: float) -> Any:
    mean, sd = like.X.mean(0), like.X.std(0)
    return replace(problem, X=(problem.X - mean) / sd * spread)


def run(data: Path, out: Path, phases: int) -> None:
    import torch

    from dcem.methods import fit_many, make
    from dcem.metrics import auc, roc_gap
    from dcem.tasks import load_diabetes_readmission, make_sinusoid

    torch.backends.cuda.matmul.allow_tf32 = True
    simulated = {
        (setting, phase): make_sinusoid(
            *setting, phase=math.radians(phase), stream="independent", random_state=number
        )
        for number, (setting, phase) in enumerate(
            (setting, 15 + 360 / phases * p) for setting in SETTINGS for p in range(phases)
        )
    }
    real = {
        (("diabetes",), b / 10): load_diabetes_readmission(data, beta=b / 10) for b in range(11)
    }
    rows: list[dict[str, Any]] = []
    begin = time.perf_counter()
    for steps, decay, spread in CANDIDATES:
        model = make(
            "dcem", steps=steps, max_iter=OUTCOME_STEPS // steps, patience=500 // steps,
            weight_decay=decay, preprocess=None, random_state=42,
        )  # fmt: skip
        for tasks in (simulated, real):
            fitted = fit_many(
                model,
                [scaled(task.train, task.train, spread) for task in tasks.values()],
                validations=[
                    scaled(task.validation, task.train, spread) for task in tasks.values()
                ],
            )
            for (setting, where), task, one in zip(tasks, tasks.values(), fitted, strict=True):
                test = scaled(task.test, task.train, spread)
                score = one.predict_proba(test)[:, 1]
                truth = task.truth["test"]
                rows.append(
                    {
                        "steps": steps, "weight_decay": decay, "spread": spread,
                        "setting": " ".join(f"{value:.3g}" if value != "diabetes" else value
                                            for value in setting),
                        "where": where, "auc": auc(truth, score),
                        "roc_gap": roc_gap(truth, score, task.test.group), "n_iter": one.n_iter_,
                    }
                )  # fmt: skip
        print(steps, decay, spread, f"{time.perf_counter() - begin:.0f} s", flush=True)
        record("choose_schedule", rows, out, time.perf_counter() - begin)


def show(out: Path) -> None:
    table = pd.read_csv(out / "choose_schedule.csv")
    keys = ["spread", "weight_decay", "steps"]
    summary = table.groupby([*keys, "setting"]).agg(
        median_auc=("auc", "median"), worst_auc=("auc", "min"), mean_auc=("auc", "mean"),
        median_gap=("roc_gap", "median"), worst_gap=("roc_gap", "max"),
    )  # fmt: skip
    summary["merit"] = (
        summary.median_auc + summary.worst_auc - summary.median_gap - summary.worst_gap
    )
    merit = summary.merit.drop("diabetes", level="setting").unstack()
    merit["mean"] = merit.mean(axis=1)
    merit["diabetes AUC"] = summary.xs("diabetes", level="setting").mean_auc
    print("merit by setting (q_y k q_t)")
    print(merit.round(3).to_string())


if __name__ == "__main__":
    command(__doc__, run, show, data=None, phases=12)
