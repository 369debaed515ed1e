"""How far off the default's risks are where overlap is fair, and how far off they have to be.

    python experiments/default_calibration.py run --data FOLDER [--workers 15] [--minutes 8]
    python experiments/default_calibration.py show

`FOLDER` holds the tables of `default.py`, and those that `package_tables.py` wrote. Policies have a
seed of their own; those are kept under which at most three people in ten have a chance of a test
below .05. Three risks are judged before the same people:

* the default's, fitted to the tests that the policy ordered;
* the default's, fitted to as many tests *at random*: what is left is not due to who is tested;
* *perfect* risks: outcomes are drawn from the default's own risks. A calibration error is a mean of
  absolute differences, so it is above zero by chance, and the more so the fewer people judge it.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from _record import CORES, ONE_CORE, command, in_time, record
from default import FEWEST_TESTS, TABLES, censored, fitted_parts, problem_of
from package_tables import FRESH
from package_tables import TABLES as PACKAGE_TABLES

SEED = 30_264
N_POLICIES = 44  # per table, of which about one in five has fair overlap
FAIR = 0.3  # share of people with a chance of a test below .05, at most
DRAWS = 20  # of outcomes from risks
MANY = 5_000  # judges from which chance adds little


def run_one(spec: tuple[str, int], data: Path) -> list[dict[str, Any]]:
    """A policy with fair overlap: the default by its tests, and by as many at random."""
    import default

    default.DATA = str(data)
    name, number = spec
    task = censored(name, number, seed=SEED)
    if task["hardly_ever"] > FAIR:
        return []
    rng = np.random.default_rng([SEED, number])
    at_random = rng.permutation(task["tested"])
    rows = [judged(task, number, "by the policy", rng)]
    if np.bincount(task["y"][at_random], minlength=2).min() >= FEWEST_TESTS:
        rows.append(judged(task | {"tested": at_random}, number, "at random", rng))
    return rows


def judged(
    task: dict[str, Any], number: int, tests: str, rng: np.random.Generator
) -> dict[str, Any]:
    """The default fitted to these tests, and its calibration beside that of perfect risks."""
    from dcem.metrics import auc, calibration_error

    truth = task["truth"]
    scores, _ = fitted_parts(problem_of(task), task["X_test"], ("ensemble",))
    risk = scores["ensemble"]
    perfect = [calibration_error(rng.random(len(risk)) < risk, risk) for _ in range(DRAWS)]
    return {
        "task": task["task"], "number": number, "policy": task["policy"], "tests": tests,
        "hardly_ever": round(task["hardly_ever"], 4), "tested": int(task["tested"].sum()),
        "judges": len(truth), "auc": round(float(auc(truth, risk)), 5),
        "calibration_error": round(float(calibration_error(truth, risk)), 5),
        "perfect": round(float(np.mean(perfect)), 5),
        "mean_risk": round(float(risk.mean()), 5), "rate": round(float(truth.mean()), 5),
    }  # fmt: skip


def run(data: Path, out: Path, workers: int, minutes: float) -> None:
    begun, rows = time.time(), []
    os.environ |= ONE_CORE
    specs = [(name, n) for n in range(N_POLICIES) for name in (*TABLES, *PACKAGE_TABLES, *FRESH)]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        waiting = pool.imap_unordered(partial(run_one, data=data), specs)
        for found in in_time(waiting, len(specs), begun + 60 * minutes):
            rows += found
        pool.terminate()
    rows.sort(key=lambda row: (row["task"], row["number"], row["tests"]))
    record("default_calibration", rows, out, time.time() - begun)


def show(out: Path) -> None:
    """Mean calibration errors by overlap and by how many people judge."""
    found = pd.read_csv(out / "default_calibration.csv")
    found["off_on_average"] = (found["mean_risk"] - found["rate"]).abs()
    wide = found.pivot(index=["task", "number"], columns="tests").dropna()
    values = ["calibration_error", "perfect", "off_on_average", "auc"]
    policy = wide.xs("by the policy", level="tests", axis=1)
    random = wide.xs("at random", level="tests", axis=1)[values].add_suffix(", tests at random")
    table = (
        policy[values]
        .join(random)[[name for value in values for name in (value, f"{value}, tests at random")]]
        .drop(columns="perfect, tests at random")
    )
    overlap = pd.cut(policy["hardly_ever"].astype(float), [0, 0.2, FAIR], include_lowest=True)
    for title, rows in (
        ("all", policy["judges"] > 0),
        (f"{MANY:,} judges or more", policy["judges"] >= MANY),
    ):
        print(f"\n{title}: {rows.sum()} policies on {table[rows].index.unique(0).size} tables")
        means = table[rows].astype(float).groupby(overlap[rows], observed=False).mean().T
        means.columns = means.columns.astype(str)
        print(means.assign(all=table[rows].astype(float).mean()).round(4).to_string())
        print(rows.groupby(overlap, observed=False).sum().to_dict())


if __name__ == "__main__":
    command(__doc__, run, show, data=Path("."), workers=CORES, minutes=60.0)
