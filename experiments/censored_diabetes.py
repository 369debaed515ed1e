"""A real table with weak signal, censored: does the default know when to stop?

    python experiments/censored_diabetes.py run --data diabetes130.csv.gz
    python experiments/censored_diabetes.py show

Readmission in the Diabetes 130-US Hospitals table (16,000 training rows, 39 features), labels seen
only where a linear policy on two columns tested (k .5, q_t 2, slope 5), eleven weightings of the
two. The truth is known, so that every method can be scored on everybody.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pandas as pd

from _record import command, kept, record


def run(data: Path, out: Path, only: list[str]) -> None:
    from dcem.methods import fit_many, make
    from dcem.metrics import auc, roc_gap
    from dcem.tasks import load_diabetes_readmission

    betas = [beta / 10 for beta in range(11)]
    tasks = [load_diabetes_readmission(data, beta=beta) for beta in betas]
    seeds = (0, 1, 2)
    fixed: dict[str, Any] = {"patience": None}
    models = {
        "y-model (oracle), early stopping": make("y-model"),
        "y-obs, early stopping": make("y-obs"),
        "tested-only, early stopping": make("tested-only"),
        **{
            f"tested-only, {steps} steps": make("tested-only", steps=steps, **fixed)
            for steps in (25, 50, 100, 150, 300, 1000)
        },
        "dcem (default)": make("dcem"),
        "dcem, last iterate": make("dcem", variant="published", patience=10**6),
        "dcem, published schedule": make("dcem", variant="published", schedule="published"),
        "dcem, published schedule, best iterate": make("dcem", schedule="published"),
    }
    models = {label: model for label, model in models.items() if not only or label in only}
    rows = kept("censored_diabetes", out, only)
    begin = time.perf_counter()
    for label, model in models.items():
        start = time.perf_counter()
        runs = [
            (task, beta, seed) for seed in seeds for task, beta in zip(tasks, betas, strict=True)
        ]
        fitted = fit_many(
            model,
            [task.train for task, _, _ in runs],
            validations=[task.validation for task, _, _ in runs],
            truths=[
                (task.truth["train"], task.truth["validation"]) if model.uses_truth else None
                for task, _, _ in runs
            ],
            random_states=[seed for _, _, seed in runs],
        )
        seconds = time.perf_counter() - start
        print(f"{label}: {len(runs)} fits in {seconds:.1f} s", flush=True)
        for (task, beta, seed), one in zip(runs, fitted, strict=True):
            truth, score = task.truth["test"], one.predict_proba(task.test)[:, 1]
            rows.append(
                {
                    "beta": beta, "seed": seed, "method": one.name, "model": label,
                    "auc": auc(truth, score), "roc_gap": roc_gap(truth, score, task.test.group),
                    "n_iter": one.n_iter_, "best_iter": getattr(one, "best_iter_", ""),
                }
            )  # fmt: skip
    record("censored_diabetes", rows, out, time.perf_counter() - begin)


def show(out: Path) -> None:
    table = pd.read_csv(out / "censored_diabetes.csv")
    by_beta = table.groupby(["model", "beta"], sort=False)[["auc", "roc_gap"]].mean().reset_index()
    summary = by_beta.groupby("model", sort=False)[["auc", "roc_gap"]].agg(["median", "min", "max"])
    print("mean over seeds; median [min, max] over the eleven policies")
    print(summary.round(3).to_string())
    tested = summary[("auc", "median")].filter(like="tested-only")
    print(
        f"\nbest tested-only {tested.max():.3f} ({tested.idxmax()}), "
        f"dcem (default) {summary.loc['dcem (default)', ('auc', 'median')]:.3f}"
    )


if __name__ == "__main__":
    command(__doc__, run, show, data=None, only=[])
