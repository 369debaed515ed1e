"""Does an audit call what is not there, and do its intervals hold?

    python experiments/coverage_audit.py run                    (200 repetitions, all cores)
    python experiments/coverage_audit.py run --repetitions 20 --only steep --jobs 1
    python experiments/coverage_audit.py run --resume           (after a time limit)
    python experiments/coverage_audit.py show

Worlds whose truth is known, a new sample each repetition. In all of them group, testing and outcome
depend on the features alone, so that every disparity and every dependence of the outcome on the
group is false. Told are: how often a disparity is called, how often independence is rejected
(nominal 5 %) and how often that is claimed without "the models disagree", how often residuals
still know something (`models_doubted`), how often the doubly robust prevalence holds the truth (of
everybody, or of those within reach where that is not everybody), how many people are within reach,
and how often nothing is estimated.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from _record import CORES, command, growing, record


@dataclass(frozen=True)
class World:
    """Where people come from, and who of them is tested."""

    name: str
    rows: int
    groups: int = 2
    columns: int = 6


WORLDS = (
    World("linear", 4_000),
    World("u-shaped", 4_000),
    World("sine and product", 4_000),
    World("sine and product", 4_000, columns=30),
    World("sine and product", 30_000),
    World("product", 4_000),
    World("linear", 4_000, groups=6),
    World("random sample of .8 %", 40_000),
    World("steep, half tested", 4_000),
    World("steep, a fifth tested", 4_000),
    World("a hole of a fifth", 4_000),
    World("a hole of a fifth", 30_000),
)


def draw(world: World, seed: int) -> tuple[np.ndarray, ...]:
    """Features [n, d], group [n], tested [n], truth [n] and its risk [n]."""
    rng = np.random.default_rng([seed, world.rows, world.groups, world.columns])
    n = world.rows
    x = rng.normal(size=(n, world.columns))
    f = {
        "u-shaped": 0.8 * (x[:, 0] ** 2 - 1),
        "sine and product": 1.2 * np.sin(2 * x[:, 0]) + 0.8 * x[:, 1] * x[:, 2],
        "product": x[:, 1] * x[:, 2],
    }.get(world.name, 0.8 * x[:, 0] - 0.5 * x[:, 1])
    testing = expit(-0.5 + f)
    if world.name.startswith("random"):
        testing = np.full(n, 0.008)
    elif world.name.startswith("steep"):
        testing = expit((0.0 if "half" in world.name else -3.0) + 3 * x[:, 0])
    elif world.name.startswith("a hole"):
        hole = (x[:, 0] > 0) & (x[:, 1] > -0.2533) & (x[:, 2] < 0.8416)
        testing = np.where(hole, 0.0, 0.3)
    risk = expit(-1 + f)
    group = (rng.random(n) < expit(-0.3 + f)) * rng.integers(1, world.groups, n)
    tested, truth = (rng.random(n) < p for p in (testing, risk))
    return x, group, tested, truth, risk


def repeat(world: World, seed: int) -> dict[str, Any]:
    """One audit: what it called, and whether its interval held."""
    from dcem.audit import audit_labels
    from dcem.estimation.folds import person_folds, usual_folds
    from dcem.estimation.nuisances import fit_nuisances
    from dcem.estimation.overlap import assess
    from dcem.table.labels import SelectiveLabels

    x, group, tested, truth, risk = draw(world, seed)
    problem = SelectiveLabels.from_arrays(x, np.where(tested, truth, np.nan), group=group)
    begin = time.perf_counter()
    found = audit_labels(problem, random_state=seed)
    seconds = time.perf_counter() - begin
    claimed = {finding.key: finding.severity for finding in found.findings}
    item, known = found.prevalence[0], risk.mean()
    estimate = item.doubly_robust
    if item.within.estimable:  # the same folds and models again, for who is within reach
        rng = np.random.default_rng(seed)
        fold = person_folds(problem, usual_folds(problem), rng)
        models = fit_nuisances(problem, fold, rng, groups=True)
        within = assess(problem, models.testing, models.testing_each.values()).within
        estimate, known = item.within, risk[within].mean()
    return {
        **asdict(world),
        "disparity": bool(claimed.keys() & {"tested-less", "tested-more"}),
        "dependence": bool(found.independence and found.independence.p_value < 0.05),
        "dependence_claimed": claimed.get("depends-on-group", "note") != "note",
        "models_doubted": "model-leaves" in claimed,
        "reach": found.overlap["everybody"].reach,
        "refused": not estimate.estimable,
        "covered": bool(estimate.low <= known <= estimate.high),
        "error": estimate.value - known,
        "width": estimate.high - estimate.low,
        "limits_hold": bool(item.limits[0] <= truth.mean() <= item.limits[1]),
        "seconds": seconds,
    }


def summarise(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Shares and means of each world; coverage among those that were estimated."""
    table = pd.DataFrame(rows)
    table["covered"] = table["covered"].astype(float).where(~table["refused"])
    keys = list(World.__dataclass_fields__)
    grouped = table.groupby(keys, sort=False)
    summary = grouped.mean(numeric_only=True).rename(columns={"covered": "coverage"})
    summary.insert(0, "repetitions", grouped.size())
    return summary.reset_index()


def together(summaries: list[pd.DataFrame]) -> pd.DataFrame:
    """Summaries of different repetitions as one."""
    keys = list(World.__dataclass_fields__)
    found = []
    for names, part in pd.concat(summaries).groupby(keys, sort=False):
        done = part["repetitions"].to_numpy()
        estimated = done * (1 - part["refused"].to_numpy())
        row = {**dict(zip(keys, names, strict=True)), "repetitions": done.sum()}
        for column in part.columns.drop(list(row)):
            weight = estimated if column in ("coverage", "error", "width") else done
            values = part[column].fillna(0).to_numpy()
            row[column] = weight @ values / weight.sum() if weight.any() else np.nan
        found.append(row)
    return pd.DataFrame(found)


def run(out: Path, repetitions: int, jobs: int, only: str, most_rows: int, resume: bool) -> None:
    before = [pd.read_csv(out / "coverage_audit.csv")] if resume else []
    worlds = [world for world in WORLDS if only in world.name and world.rows <= most_rows]
    first = int(before[0]["repetitions"].min()) if before else 0
    tasks = [(world, seed) for seed in range(first, repetitions) for world in worlds]
    begin = time.perf_counter()
    for rows in growing(repeat, tasks, jobs, 5 * len(worlds)):
        told = together([*before, summarise(rows)]).to_dict("records")
        about = {"workers": jobs, "first_repetition": first}
        record("coverage_audit", told, out, time.perf_counter() - begin, **about)


def show(out: Path) -> None:
    table = pd.read_csv(out / "coverage_audit.csv")
    print(table.drop(columns=["seconds"], errors="ignore").round(3).to_string(index=False))


if __name__ == "__main__":
    options = {"repetitions": 200, "jobs": CORES, "only": "", "most_rows": 40_000, "resume": False}
    command(__doc__, run, show, **options)
