"""Tests that err: do corrected numbers hold, what if the rates are wrong, what does training gain?

    python experiments/wrong_tests.py run                   (150 and 20 repetitions, all cores)
    python experiments/wrong_tests.py run --repetitions 4 --fits 1 --only "misses half" --jobs 2
    python experiments/wrong_tests.py show

Worlds of 4,000 people whose truth is known; one feature tells the group, and neither has anything
to do with the outcome, so that every difference between groups is false. Testing depends on
features and group, and its results err. `wrong_tests.csv`: for each world and what is told of the
test (the rates as they are, with an interval, off by .1, nothing, ...) how often intervals hold the
truth (doubly robust prevalence, AUC, calibration error, ROC gap of one fixed score), the mean error
of the prevalence, and how often a difference between groups, of prevalence or of ROC curves, is
called. `wrong_tests_training.csv`: methods told the rates, told nothing, and told wrong ones: AUC
for the truth and mean distance from the true risk, on 20,000 new people.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

from _record import CORES, command, means, record_means, scores_beside, show_tables

ROWS = 4_000
UNSURE = 0.04  # standard error of a stated sensitivity
METHODS = (
    "tested-only:linear",
    "tested-only:boost",
    "tested-only:forest",
    "tested-only",
    "dcem",
    "ensemble",
)


@dataclass(frozen=True)
class World:
    """What the test does, and what is told of it: name -> (sensitivity, specificity)."""

    name: str
    sensitivity: tuple[float, float]  # in either group
    specificity: float
    told: Mapping[str, tuple[Any, Any]]
    by_feature: bool = False  # whether errors depend on the features, against the assumption


WORLDS = (
    World(
        "misses half",
        (0.5, 0.5),
        1.0,
        {
            "the rates": (0.5, None),
            "an interval": ("unsure", None),
            "nothing": (None, None),
            ".1 too high": (0.6, None),
        },
    ),
    World(
        "misses more in one group",
        (0.5, 0.8),
        0.98,
        {
            "the rates": ("0=.5,1=.8", 0.98),
            "nothing": (None, None),
            "one sensitivity for both": (0.65, 0.98),
        },
    ),
    World("misses and false alarms", (0.8, 0.8), 0.95, {"the rates": (0.8, 0.95)}),
    World("never errs", (1.0, 1.0), 1.0, {"nothing": (None, None), "sensitivity .8": (0.8, None)}),
    World(
        "misses half, most where risk is low",
        (0.5, 0.5),
        1.0,
        {"the mean rate": (0.5, None)},
        by_feature=True,
    ),
)


def draw(world: World, seed: int, rows: int = ROWS) -> tuple[np.ndarray, ...]:
    """Features [n, 4], group [n], result [n] (NaN if untested), truth [n] and its risk [n]."""
    rng = np.random.default_rng([seed, rows, len(world.name)])
    X = rng.normal(size=(rows, 4))
    group = (rng.random(rows) < expit(2.5 * X[:, 3] - 0.5)).astype(int)
    risk = expit(-1.5 + X[:, 0] + 0.7 * X[:, 1])
    truth = rng.random(rows) < risk
    sensitivity = np.array(world.sensitivity)[group]
    if world.by_feature:
        sensitivity = expit(logit(sensitivity) + 0.8 * (X[:, 0] - 0.8))
    positive = np.where(truth, sensitivity, 1 - world.specificity)
    result = (rng.random(rows) < positive).astype(float)
    tested = rng.random(rows) < expit(0.7 * X[:, 0] - 0.5 * X[:, 2] - 0.6 * group)
    return X, group, np.where(tested, result, np.nan), truth.astype(float), risk


def score_of(risk: np.ndarray) -> np.ndarray:
    """A fixed score that ranks well and is off as a risk."""
    return np.asarray(expit(1.3 * logit(risk) + 0.4))


@cache
def truths() -> dict[str, float]:
    """What the numbers are in truth, from two million people."""
    from dcem.metrics import auc

    *_, truth, risk = draw(WORLDS[0], 10**6, 2_000_000)
    score = score_of(risk)
    part = np.minimum((10 * np.argsort(np.argsort(score)) / len(score)).astype(int), 9)
    off = np.bincount(part, score - risk) / len(score)
    return {
        "prevalence": float(risk.mean()),
        "auc": float(auc(truth, score)),
        "calibration": float(np.abs(off).sum()),
        "gap": 0.0,
    }


def told_problem(world: World, told: str, seed: int, drawn: tuple[np.ndarray, ...]) -> Any:
    """The table, with what is told of its test."""
    from dcem.table.labels import SelectiveLabels

    X, group, result, *_ = drawn
    sensitivity, specificity = world.told[told]
    if sensitivity == "unsure":
        middle = np.random.default_rng([seed, 1]).normal(world.sensitivity[0], UNSURE)
        sensitivity = "-".join(f"{middle + side * 1.96 * UNSURE:.4f}" for side in (-1, 1))
    return SelectiveLabels.from_arrays(
        X,
        result,
        group=group.astype(str),
        test_sensitivity=sensitivity,
        test_specificity=specificity,
    )


def judged(number: int, seed: int) -> list[dict[str, Any]]:
    """One table of a world, judged with everything that is told of its test."""
    from dcem.compare import judge as judging
    from dcem.compare.fitting import Scored
    from dcem.estimation.evaluator import Evaluator
    from dcem.estimation.folds import person_folds
    from dcem.estimation.influence import People
    from dcem.estimation.nuisances import fit_nuisances

    warnings.simplefilter("ignore")
    world, known, rows = WORLDS[number], truths(), []
    drawn = draw(world, seed)
    score = score_of(drawn[-1])
    one_fold = np.zeros(ROWS, int)
    scored = Scored(score[None], one_fold)
    models = None
    for told in world.told:
        problem = told_problem(world, told, seed, drawn)
        fold = person_folds(problem, 5, seed)
        models = models or fit_nuisances(problem, fold, seed)  # of results: the same for all
        judge = Evaluator(problem, fold=fold, nuisances=models)
        gap, _ = judging._gap(judge, "dr", scored, 200, seed)
        found = {
            "prevalence": judge.prevalence("dr"),
            "auc": judge.auc("dr", score),
            "calibration": judging._calibration_error(judge, "dr", score, 200, seed),
            "gap": gap,
        }
        both = [judge.prevalence_of("dr", judge.rows_of(name)) for name in "01"]
        difference = People.of(problem).interval(both[0] - both[1])
        row: dict[str, Any] = {"world": world.name, "told": told}
        for name, estimate in found.items():
            row[f"{name}_holds"] = estimate.low <= known[name] <= estimate.high
        row["prevalence_error"] = found["prevalence"].value - known["prevalence"]
        row["prevalence_width"] = found["prevalence"].high - found["prevalence"].low
        row["auc_error"] = found["auc"].value - known["auc"]
        row["false_difference"] = difference.excludes(0)
        row["false_gap"] = gap.p_value < 0.05
        rows.append(row)
    return rows


def trained(number: int, name: str, seed: int) -> list[dict[str, Any]]:
    """One method fitted to one table, told different things, scored on new people."""
    from dcem import methods

    warnings.simplefilter("ignore")
    world, rows = WORLDS[number], []
    drawn = draw(world, seed)
    X, *_, truth, risk = draw(world, seed + 10**7, 20_000)
    for told in world.told:
        begin = time.perf_counter()
        model = methods.make(name, random_state=seed)
        model.fit_problem(told_problem(world, told, seed, drawn))
        score = model.predict_proba(X)[:, 1]
        row = {"world": world.name, "told": told, "method": name}
        rows.append(row | scores_beside(truth, risk, score, begin))
    return rows


def run(out: Path, repetitions: int, fits: int, jobs: int, only: str, seconds: float) -> None:
    worlds = [i for i, world in enumerate(WORLDS) if only in world.name]
    training = [
        (trained, i, name, seed) for seed in range(fits) for i in worlds for name in METHODS
    ]
    judging = [(judged, i, seed) for seed in range(repetitions) for i in worlds]
    tables = {"wrong_tests_training": (training, 0.35), "wrong_tests": (judging, 1.0)}
    record_means(tables, out, jobs, seconds, lambda rows: means(rows, ("world", "told", "method")))


if __name__ == "__main__":
    show = show_tables("wrong_tests", "wrong_tests_training")
    command(__doc__, run, show, repetitions=150, fits=20, jobs=CORES, only="", seconds=3600.0)
