"""Bounds of single people: do they hold the risk, decide anything, and what if gamma is wrong?

    python experiments/bounds.py run [--data nhanes.csv.gz]       (100 repetitions, all cores)
    python experiments/bounds.py run --repetitions 2 --only rare --jobs 2
    python experiments/bounds.py show

Worlds whose truth is known. Untested people's odds differ from those of tested people with the same
features by a known factor: everywhere up, up for some and down for others, or because of a hidden
cause of testing and outcome; in some a prevalence or the rates of a test are stated. `bounds.csv`:
for each world, table size and strength told, how many of 4,000 new people have their true risk
within their limits (of everybody, of the smallest group, of the tenth at highest risk), how wide
the limits are, of how many one cannot say at the risk that a tenth exceed, how many decisions that
are called certain are wrong, how often sets of outcomes hold the outcome (of the smallest group
also where it is not known who belongs to it), and whether the AUC of a fixed score in the whole
population lies within its limits.

`bounds_nhanes.csv`: NHANES, where untested people's odds of diabetes are about .7 of those of
tested people with the same features and everybody's outcome is known. Four fifths of the people are
learnt from, the others judged, in cells by risk and by group: how many cells' true share lies
within their mean limits (or no further away than two standard errors), and how often sets hold the
outcome.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

from _record import CORES, command, means, record_means, show_tables

NEW = 4_000  # people whom the limits are held against
NHANES = (1.0, 1 / 0.7, 2.0)


@dataclass(frozen=True)
class World:
    """How people are, what is unmeasured, and what is told of it."""

    name: str
    told: tuple[float, ...]
    rows: tuple[int, ...] = (1_500, 6_000)
    gamma: float = 2.0  # odds of the untested over those of the tested
    way: str = "up"  # up, either (by a feature) or hidden (a cause of testing and outcome)
    base: float = -1.2  # log-odds of the outcome in the middle
    curved: bool = False
    prevalence: float | None = None  # that is stated, as a multiple of the true one
    rates: tuple[float, float] | None = None  # sensitivity and specificity of a test, stated


WORLDS = (
    World("features explain testing", (1.0, 3.0), gamma=1.0),
    World("untested at the upper end", (2.0,), rows=(1_500, 6_000, 20_000)),
    World("up for some, down for others", (2.0,), way="either"),
    World("a hidden cause", (1.5,), way="hidden"),
    World("a rare outcome", (2.0,), base=-3.6, rows=(6_000, 20_000)),
    World("stronger than told", (1.5,), gamma=5.0),
    World("bends that are hard to learn", (2.0,), curved=True),
    World("twice the odds, prevalence stated", (1.0,), prevalence=1.0),
    World("stated prevalence a third too high", (1.0,), prevalence=4 / 3),
    World("a test that errs, rates stated", (1.0, 2.0), gamma=1.0, rates=(0.7, 0.95)),
    World("twice the odds, both stated", (1.0,), prevalence=1.0, rates=(0.7, 0.95)),
)


@dataclass(frozen=True)
class People:
    """People and their truth; all arrays are [n]."""

    X: np.ndarray
    group: np.ndarray
    tested: np.ndarray
    y: np.ndarray
    risk: np.ndarray
    factor: np.ndarray  # odds of the untested over those of the tested


def people(world: World, n: int, seed: int) -> People:
    """Five features, three groups that they tell of, the smallest with 8 % of the people."""
    rng = np.random.default_rng([seed, n])
    X = rng.normal(size=(n, 5))
    group = np.searchsorted([-0.2, 1.6], X[:, 0] + 0.5 * rng.normal(size=n))
    lean = -0.3 + 0.7 * X[:, 0] - 0.5 * X[:, 1] + 0.3 * X[:, 4]
    z = world.base + 0.8 * X[:, 0] + 0.6 * X[:, 2]
    if world.curved:
        z = z + 0.6 * np.sin(2 * X[:, 1]) + 0.4 * X[:, 2] * X[:, 3]
    if world.way == "hidden":
        cause = rng.random(n) < 0.5
        at = np.array([0.0, 1.0])[:, None]
        e_at, r_at = expit(lean + 1.2 * at - 0.6), expit(z + 1.2 * at - 0.6)  # [cause, n]
        e, risk = e_at.mean(axis=0), r_at.mean(axis=0)
        m, u = (e_at * r_at).mean(axis=0) / e, ((1 - e_at) * r_at).mean(axis=0) / (1 - e)
        tested = rng.random(n) < np.where(cause, e_at[1], e_at[0])
        y = rng.random(n) < np.where(cause, r_at[1], r_at[0])
    else:
        sign = np.where(X[:, 3] > 0, 1, -1) if world.way == "either" else 1
        e, m, u = expit(lean), expit(z), expit(z + sign * np.log(world.gamma))
        risk = e * m + (1 - e) * u
        tested = rng.random(n) < e
        y = rng.random(n) < np.where(tested, m, u)
    return People(X, group, tested, y.astype(float), risk, np.exp(logit(u) - logit(m)))


def judged(place: int, rows: int, seed: int) -> list[dict[str, Any]]:
    """One table of a world: what is learnt from it, held against new people."""
    from dcem.estimation import conformal
    from dcem.estimation.bounds import auc_range, decide
    from dcem.estimation.evaluator import Evaluator
    from dcem.estimation.ranking import RankedScore
    from dcem.estimation.risk_limits import learn_ends
    from dcem.metrics import auc
    from dcem.table.labels import SelectiveLabels

    world = WORLDS[place]
    drawn, new = people(world, rows, seed), people(world, NEW, 10_000 + seed)
    many = people(world, 200_000, 20_000)  # of whom the AUC of one fixed score is known
    result, stated = drawn.y, {}
    if world.prevalence is not None:
        rate = world.prevalence * many.y.mean()
        stated["prevalence"] = f"{rate - 0.01:.4f}-{rate + 0.01:.4f}"
    if world.rates is not None:
        sensitivity, specificity = world.rates
        stated |= {"test_sensitivity": sensitivity, "test_specificity": specificity}
        shown = np.where(drawn.y == 1, sensitivity, 1 - specificity)
        result = (np.random.default_rng([seed, rows, 3]).random(rows) < shown).astype(float)
    begin = time.process_time()
    problem = SelectiveLabels.from_arrays(
        drawn.X, result * drawn.tested, tested=drawn.tested, group=drawn.group, **stated
    )
    ends, _ = learn_ends(problem, seed)
    spent = time.process_time() - begin
    evaluator = Evaluator(problem, random_state=seed) if rows <= 6_000 and seed < 25 else None
    score = np.array([0.8, -0.3, 0.4, 0.0, 0.0])
    area = float(auc(many.y, many.X @ score))
    cut = float(np.quantile(new.risk, 0.9))
    found = []
    for gamma in world.told:
        low, high = ends.interval(new.X, gamma)
        held = (low <= new.risk) & (new.risk <= high)
        decided = decide(low, high, cut)
        right = (decided == 1) == (new.risk >= cut)
        sets = ends.sets(new.X, gamma, new.group)
        covered = conformal.covered(new.y, sets)
        pooled = conformal.covered(new.y, ends.sets(new.X, gamma))
        of_tested = conformal.covered(new.y, ends.sets(new.X, None, new.group))[new.tested]
        row = {
            "world": world.name,
            "rows": rows,
            "told": gamma,
            "true": float(np.quantile(np.exp(np.abs(np.log(new.factor))), 0.99)),
            "held": held.mean(),
            "held_smallest_group": held[new.group == 2].mean(),
            "held_highest_risk": held[new.risk >= cut].mean(),
            "tables_95": float(held.mean() >= 0.95),
            "width": (high - low).mean(),
            "cannot_say": (decided == 0).mean(),
            "certain_and_wrong": ((decided != 0) & ~right).sum() / max((decided != 0).sum(), 1),
            "set_holds": covered.mean(),
            "set_holds_positives": covered[new.y == 1].mean(),
            "set_holds_smallest_group": covered[new.group == 2].mean(),
            "set_holds_smallest_group_unknown": pooled[new.group == 2].mean(),
            "set_holds_tested": of_tested.mean(),
            "set_of_both": (sets == 3).mean(),
            "auc_held": np.nan,
            "seconds": spent,
        }
        if evaluator is not None:
            ranked = RankedScore(drawn.X @ score, np.ones(rows))
            least, most = auc_range(ranked, evaluator.unseen, gamma)
            error = evaluator.auc("dr", drawn.X @ score)
            row["auc_held"] = float(
                least - (error.value - error.low) <= area <= most + (error.high - error.value)
            )
        found.append(row)
    return found


def nhanes(data: Path, outcome: str, part: int) -> list[dict[str, Any]]:
    """One fifth of the people of NHANES, judged by limits learnt from the others."""
    from dcem.estimation import conformal
    from dcem.estimation.folds import person_folds
    from dcem.estimation.risk_limits import learn_ends
    from dcem.metrics.calibration import equal_mass
    from dcem.tasks.nhanes import nhanes_problem, read_nhanes

    problem, truth = nhanes_problem(read_nhanes(data), outcome, weights=False)
    y = truth.astype(float)
    fold = person_folds(problem, 5, 0)
    ends, _ = learn_ends(problem.subset(np.flatnonzero(fold != part)), part)
    here = np.flatnonzero(fold == part)
    X, y, group = problem.X[here], y[here], problem.group[here]
    middle = np.mean(ends.interval(X, 1.0), axis=0)
    rows: list[dict[str, Any]] = []
    for gamma in NHANES:
        low, high = ends.interval(X, gamma)
        sets = ends.sets(X, gamma, group)
        covered = conformal.covered(y, sets)
        cells = {"everybody": np.ones(len(y), bool)} | {
            name: group == code for code, name in enumerate(problem.group_names)
        }
        for name, mine in cells.items():
            place = equal_mass(middle[mine], np.ones(mine.sum()), 10)
            tally = [_cell(y[mine], low[mine], high[mine], place == one) for one in range(10)]
            within, near = (np.mean([one[k] for one in tally]) for k in (0, 1))
            rows.append(
                {
                    "outcome": outcome,
                    "told": gamma,
                    "of": name,
                    "cells_within": within,
                    "cells_near": near,
                    "mean_low": low[mine].mean(),
                    "truth": y[mine].mean(),
                    "mean_high": high[mine].mean(),
                    "width": (high - low)[mine].mean(),
                    "set_holds": covered[mine].mean(),
                    "set_holds_positives": covered[mine & (y == 1)].mean(),
                    "set_of_both": (sets[mine] == 3).mean(),
                }
            )
    return rows


def _cell(y: np.ndarray, low: np.ndarray, high: np.ndarray, here: np.ndarray) -> tuple[bool, bool]:
    """Whether the share of a cell lies within its mean limits, and within two errors of them."""
    share, count = y[here].mean(), here.sum()
    error = 2 * np.sqrt(max(share * (1 - share), 1 / count) / count)
    ends = low[here].mean(), high[here].mean()
    return ends[0] <= share <= ends[1], ends[0] - error <= share <= ends[1] + error


def run(
    out: Path, repetitions: int, jobs: int, only: str, seconds: float, data: Path | None
) -> None:
    if data is not None:
        tasks = [(nhanes, data, o, part) for o in ("prediabetes", "diabetes") for part in range(5)]
        table = {"bounds_nhanes": (tasks, 1.0)}
        record_means(table, out, jobs, seconds, lambda rows: means(rows, ("outcome", "told", "of")))
    worlds = [i for i, world in enumerate(WORLDS) if only in world.name]
    tasks = [
        (judged, i, n, seed) for seed in range(repetitions) for i in worlds for n in WORLDS[i].rows
    ]
    keys = ("world", "rows", "told")
    record_means({"bounds": (tasks, 1.0)}, out, jobs, seconds, lambda rows: means(rows, keys))


if __name__ == "__main__":
    show = show_tables("bounds", "bounds_nhanes")
    options = {"repetitions": 100, "jobs": CORES, "only": "", "seconds": 3600.0}
    command(__doc__, run, show, data=None, **options)
