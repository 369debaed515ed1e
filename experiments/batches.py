"""What `dcem fit` and `dcem compare` give up by small batches and few members: nothing?

    python experiments/batches.py run --data FOLDER [--workers 4]
    python experiments/batches.py show

Networks of four methods, as they are delivered (three members, batches of 512 or 256 rows) and with
all rows in every step (five members), on tables and policies of `experiments/default.py`.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pandas as pd

import default
from _record import CORES, command, record

METHODS = ("dcem", "tested-only", "ipw", "y-obs")
TABLES = ("credit default", "prediabetes", "readmission", "clusters 1")
POLICIES = (0, 3, 5, 6, 8)
WAYS: dict[str, dict[str, Any]] = {
    "512 x3": {"batch_size": 512, "n_members": 3},
    "256 x3": {"batch_size": 256, "n_members": 3},
    "512 x3, 5e-4": {"batch_size": 512, "n_members": 3, "learning_rate": 5e-4},
}
FULL = {"batch_size": None, "n_members": 5}


def run_one(spec: tuple[str, int]) -> list[dict[str, Any]]:
    """All methods in small batches, on one task."""
    import torch

    from dcem.methods import make

    torch.set_num_threads(1)
    task, rows = default.make(spec), []
    problem = default.problem_of(task)
    for name in METHODS:
        for way, params in WAYS.items():
            begun = time.process_time()
            model = make(name, random_state=0, device="cpu", **params).fit_problem(problem)
            seconds = time.process_time() - begun
            score = model.predict_proba(task["X_test"])[:, 1]
            rows.append(
                default._judged(task, name, score) | {"way": way, "seconds": round(seconds, 2)}
            )
    return rows


def run(data: Path, out: Path, workers: int) -> None:
    from dcem.methods import fit_many, make

    default.DATA = os.environ["DCEM_DATA"] = str(data)
    begun, rows = time.time(), []
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        waiting = pool.imap_unordered(run_one, [(t, p) for p in POLICIES for t in TABLES])
        for table in TABLES:
            tasks = [default.make((table, policy)) for policy in POLICIES]
            for name in METHODS:
                method = make(name, random_state=0, **FULL)
                fitted = fit_many(method, [default.problem_of(task) for task in tasks])
                for task, one in zip(tasks, fitted, strict=True):
                    score = one.predict_proba(task["X_test"])[:, 1]
                    rows.append(default._judged(task, name, score) | {"way": "all rows x5"})
        for found in waiting:
            rows += found
    record("batches", rows, out, time.time() - begun)


def show(out: Path) -> None:
    """Mean AUC over policies, and mean seconds of one core."""
    found = pd.read_csv(out / "batches.csv")
    print(found.pivot_table(index=["task", "method"], columns="way", values="auc").round(4))
    print(found.pivot_table(index="method", columns="way", values=["auc", "seconds"]).round(3))


if __name__ == "__main__":
    command(__doc__, run, show, data=Path("."), workers=CORES)
