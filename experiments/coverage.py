"""Do the intervals without truth hold what they promise?

    python experiments/coverage.py run --diabetes diabetes130.csv.gz
    python experiments/coverage.py run --diabetes diabetes130.csv.gz --resume   (after a time limit)
    python experiments/coverage.py show
    python experiments/coverage.py bound     (widths if both models were known, simulated cells)

Tables whose truth is known are censored by a testing policy, and a score is judged without the
truth of the untested, as on a user's table. How often does the 95 % interval contain the value in
the population, and how wide is it against that with full truth? "Not estimable" counts as a miss.
Where part of the people is out of reach of the tests, estimates are about the others: the value is
then that of the population without the people least likely to be tested, as many of each group as
were left out of the sample.

Simulated cells draw 4,000 new people a repetition (`make_sinusoid`). Censored cells draw 4,000 rows
with replacement from a complete real table, which is the population: readmission by race and long
stay by sex in Diabetes 130-US Hospitals, features as in `load_diabetes_readmission`. A policy tests
with probability sigmoid(slope (score - threshold of the group)); what matters for overlap is slope
times the spread (standard deviation) of its score, .24 in the simulation. The score to judge is a
logistic regression fitted once to tested people of another sample, so a fixed function; in the
cells named "cross-validated" it is fitted anew in every repetition, fold by fold.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from _record import CORES, command, growing, record

ROWS = 4_000
POPULATION = 400_000  # simulated people whose truth stands for the population
FOLDS = 5


@dataclass(frozen=True)
class Cell:
    """A table, who is tested in it, and how it is scored."""

    table: str  # "simulated", "readmission by race" or "long stay by sex"
    slope: float
    spread: float  # standard deviation of the policy's score
    tested: float  # share of people
    overlap: str  # "yes": the promise holds; "little": wider than promised; "no"
    scores: str = "fixed"


CELLS = (
    Cell("simulated", 5, 0.24, 0.50, "yes"),
    Cell("simulated", 5, 0.24, 0.50, "yes", "cross-validated"),
    Cell("simulated", 3, 0.24, 0.50, "yes"),
    Cell("simulated", 2, 0.24, 0.25, "yes"),
    Cell("simulated", 1, 0.24, 0.25, "yes"),
    Cell("readmission by race", 5, 0.25, 0.50, "yes"),
    Cell("readmission by race", 5, 0.25, 0.50, "yes", "cross-validated"),
    Cell("readmission by race", 1, 1.0, 0.50, "yes"),
    Cell("long stay by sex", 5, 0.25, 0.50, "yes"),
    Cell("long stay by sex", 1, 1.0, 0.50, "yes"),
    Cell("simulated", 5, 0.24, 0.25, "little"),
    Cell("simulated", 30, 0.24, 0.25, "no"),
    Cell("simulated", 30, 0.24, 0.50, "no"),
    Cell("readmission by race", 5, 1.0, 0.50, "no"),
    Cell("readmission by race", 30, 0.25, 0.50, "no"),
)


# -- worlds: where people come from ----------------------------------------------------------


def simulation(cell: Cell, seed: int, n: int) -> Any:
    """A task of the paper's simulation."""
    from dcem.tasks import make_sinusoid

    return make_sinusoid(
        k=cell.tested / 0.25,
        testing_slope=cell.slope,
        stream="independent",
        random_state=seed,
        n_train=2,
        n_validation=2,
        n_test=n,
    )


@cache
def complete_table(name: str, path: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features [n, d], truth [n], group code [n] and the policy's score [n] (spread 1)."""
    from dcem.tasks.diabetes import diabetes_features, read_encounters

    table = read_encounters(path)
    X = diabetes_features(table)
    if name == "readmission by race":
        y, group = table["readmitted"] != "NO", table["race"] == "Caucasian"
        score = X["time_in_hospital"] + X["num_medications"]
    else:
        y, group = table["time_in_hospital"].astype(int) > 4, table["gender"] == "Male"
        X = X.drop(columns=["time_in_hospital", "male"])
        score = X["num_lab_procedures"] + X["age"]
    score = (score - score.mean()) / score.std()
    return X.to_numpy(), y.to_numpy(int), group.to_numpy(int), score.to_numpy()


@cache
def policy(cell: Cell, path: str) -> np.ndarray:
    """P(tested) of every row of the table; the first group is tested 1.5 times as often."""
    from scipy.optimize import brentq
    from scipy.special import expit

    _, _, group, score = complete_table(cell.table, path)
    share = (group == 0).mean()
    second = cell.tested / (1.5 * share + 1 - share)
    p = np.empty(len(score))
    for code, rate in enumerate((1.5 * second, second)):
        mine = cell.slope * cell.spread * score[group == code]

        def excess(threshold: float, mine: np.ndarray = mine, rate: float = rate) -> float:
            return float(expit(mine - threshold).mean() - rate)

        p[group == code] = expit(mine - brentq(excess, -200, 200))
    return p


def censored(cell: Cell, seed: int, n: int, path: str) -> tuple[Any, np.ndarray]:
    """People drawn from a complete table, censored; and their truth."""
    from dcem.table.labels import SelectiveLabels

    X, y, group, _ = complete_table(cell.table, path)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(y), size=n)
    tested = rng.random(n) < policy(cell, path)[drawn]
    problem = SelectiveLabels.from_arrays(
        X[drawn], np.where(tested, y[drawn], np.nan), group=group[drawn]
    )
    return problem, y[drawn]


def draw(cell: Cell, seed: int, n: int, path: str) -> tuple[Any, np.ndarray]:
    """People, as a method may see them, and their truth."""
    if cell.table == "simulated":
        task = simulation(cell, seed, n)
        return task.test, task.truth["test"]
    return censored(cell, seed, n, path)


@cache
def population(cell: Cell, path: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, truth, group and place in the order of testing (0 to 1, of the group)."""
    if cell.table == "simulated":
        task = simulation(cell, 10**6, POPULATION)
        X, y, group = task.test.X, task.truth["test"], task.test.group
        tested = task.process.testing_probability(X, group)
    else:
        X, y, group, _ = complete_table(cell.table, path)
        tested = policy(cell, path)
    place = pd.Series(tested).groupby(group).rank(pct=True).to_numpy()
    return X, y, group, place


# -- scores, and their value in the population -------------------------------------------------


def fit_score(problem: Any, rows: Any = slice(None)) -> Callable[[np.ndarray], np.ndarray]:
    """A logistic regression of the tested among these rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    part = problem.subset(rows)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    model.fit(part.X[part.tested], part.y_obs[part.tested])
    return lambda X: model.predict_proba(X)[:, 1]


def values_of(
    score: Callable[[np.ndarray], np.ndarray],
    cell: Cell,
    path: str,
    lost: tuple[float, float] = (0, 0),
) -> np.ndarray:
    """AUC and signed AUC difference in the population, without the share of each group `lost`."""
    from dcem.metrics import auc

    X, y, group, place = population(cell, path)
    within = place > np.array(lost)[group]
    y, group, s = y[within], group[within], score(X[within])
    each = [auc(y[group == code], s[group == code]) for code in (0, 1)]
    return np.array([auc(y, s), each[0] - each[1]])


@cache
def fixed_score(cell: Cell, path: str) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """The score that all repetitions judge, and its value."""
    problem, _ = draw(cell, 10**6 + 1, ROWS, path)
    score = fit_score(problem)
    return score, values_of(score, cell, path)


# -- one repetition ----------------------------------------------------------------------------


def repeat(cell: Cell, seed: int, path: str) -> list[dict[str, Any]]:
    """Judge one sample for every target: was the value in the interval, and how wide is it?"""
    from dcem.estimation.evaluator import Evaluator
    from dcem.estimation.folds import percentiles, person_folds

    problem, truth = draw(cell, seed, ROWS, path)
    fold = person_folds(problem, FOLDS, seed)
    fixed, value = fixed_score(cell, path)
    if cell.scores == "fixed":
        models, scored = [fixed], fixed(problem.X)
    else:
        models = [fit_score(problem, fold != number) for number in range(FOLDS)]
        scored = np.empty(ROWS)
        for number, one in enumerate(models):
            scored[fold == number] = one(problem.X[fold == number])
        scored = percentiles(scored, fold)
        value = np.mean([values_of(one, cell, path) for one in models], axis=0)
    judge = Evaluator(problem, truth=truth, fold=fold, random_state=seed)
    within = judge.reach.within
    reached = value
    if not within.all():
        lost = tuple(float((~within)[problem.group == code].mean()) for code in (0, 1))
        reached = np.mean([values_of(one, cell, path, lost) for one in models], axis=0)
    rows = []
    for target in judge.masses:
        part = target in ("ipw", "dr")
        values = reached if part else value
        estimates = judge.auc(target, scored), *judge.auc_differences(target, scored).values()
        for metric, known, found in zip(("auc", "auc_difference"), values, estimates, strict=True):
            rows.append(
                {
                    **asdict(cell), "target": target, "metric": metric, "truth": known,
                    "reach": within.mean() if part else 1.0,
                    "estimate": found.value, "width": found.high - found.low,
                    "covered": bool(found.low <= known <= found.high),
                }
            )  # fmt: skip
    return rows


def run(out: Path, diabetes: str, repetitions: int, jobs: int, only: str, resume: bool) -> None:
    before = pd.read_csv(out / "coverage.csv") if resume else None
    cells = [cell for cell in CELLS if only in cell.table]
    first = 0 if before is None else int(before["repetitions"].min())
    # Samples in the outer loop: cells of different cost then fill all cores to the end.
    tasks = [(cell, seed, diabetes) for seed in range(first, repetitions) for cell in cells]
    begin = time.perf_counter()
    for found in growing(repeat, tasks, jobs, 20 * len(cells)):
        rows = pd.DataFrame([row for one in found for row in one])
        told = together(before, summarise(rows)).to_dict("records")
        about = {"rows_a_repetition": ROWS, "workers": jobs, "first_repetition": first}
        record("coverage", told, out, time.perf_counter() - begin, **about)


def together(before: pd.DataFrame | None, after: pd.DataFrame) -> pd.DataFrame:
    """Two summaries of different repetitions as one."""
    if before is None:
        return after
    keys = [*Cell.__dataclass_fields__, "target", "metric"]
    pair = before.merge(after, on=keys, suffixes=("", "_after"), validate="one_to_one")
    merged = pair[keys].copy()
    for count in ("repetitions", "covered", "not_estimable"):
        merged[count] = pair[count] + pair[f"{count}_after"]
    for mean in ("truth", "reach"):
        merged[mean] = _weighed(pair, mean, pair["repetitions"], pair["repetitions_after"])
    n, m = (pair[f"repetitions{s}"] - pair[f"not_estimable{s}"] for s in ("", "_after"))
    for mean in ("bias", "width"):
        merged[mean] = _weighed(pair, mean, n, m)
    square = {
        s: pair[f"sd{s}"] ** 2 * (k - 1).clip(lower=0) / k + pair[f"bias{s}"] ** 2
        for s, k in (("", n), ("_after", m))
    }
    second = _weighed(pd.DataFrame({"square": square[""], "square_after": square["_after"]}),
                      "square", n, m)  # fmt: skip
    merged["sd"] = ((second - merged["bias"] ** 2) * (n + m) / (n + m - 1)) ** 0.5
    return rated(merged)


def _weighed(pair: pd.DataFrame, name: str, n: pd.Series, m: pd.Series) -> pd.Series:
    return (pair[name].fillna(0) * n + pair[f"{name}_after"].fillna(0) * m) / (n + m)


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """Coverage and width of each cell, target and metric."""
    keys = [*Cell.__dataclass_fields__, "target", "metric"]
    table = table.assign(error=table["estimate"] - table["truth"])
    grouped = table.groupby(keys, sort=False)
    summary = grouped.agg(
        repetitions=("covered", "size"),
        covered=("covered", "sum"),
        not_estimable=("estimate", lambda values: int(values.isna().sum())),
        truth=("truth", "mean"),
        reach=("reach", "mean"),
        bias=("error", "mean"),
        sd=("error", "std"),
        width=("width", "mean"),
    ).reset_index()
    return rated(summary)


def rated(summary: pd.DataFrame) -> pd.DataFrame:
    """With coverage, and width against that of the same cell with full truth."""
    full = summary[summary["target"] == "truth"].set_index([*Cell.__dataclass_fields__, "metric"])
    index = pd.MultiIndex.from_frame(summary[[*Cell.__dataclass_fields__, "metric"]])
    summary["coverage"] = summary["covered"] / summary["repetitions"]
    summary["times_full_truth"] = summary["width"] / full["width"].reindex(index).to_numpy()
    return summary


def show(out: Path) -> None:
    table = pd.read_csv(out / "coverage.csv")
    shown = ["coverage", "not_estimable", "reach", "bias", "times_full_truth"]
    for target in ("dr", "ipw", "tested", "truth"):
        print(f"\n{target}")
        part = table[table["target"] == target].drop(columns=["target", "repetitions"])
        wide = part.pivot_table(
            index=list(Cell.__dataclass_fields__), columns="metric", values=shown, sort=False
        )
        print(wide.round(3).to_string())


def bound() -> None:
    """What no estimator can undercut by much: widths with known models, over full truth."""
    from dcem.estimation.evaluator import Evaluator
    from dcem.estimation.nuisances import Nuisances

    for cell in CELLS:
        if cell.table != "simulated" or cell.overlap == "no" or cell.scores != "fixed":
            continue
        task = simulation(cell, 1, 100_000)
        problem, score = task.test, fixed_score(cell, "")[0](task.test.X)
        known = Nuisances(
            task.process.testing_probability(problem.X, problem.group),
            task.process.outcome_probability(problem.X),
            (),  # type: ignore[arg-type]
        )
        judge = Evaluator(problem, truth=task.truth["test"], nuisances=known)
        widths = [
            [
                e.high - e.low
                for e in (judge.auc(t, score), *judge.auc_differences(t, score).values())
            ]
            for t in ("dr", "truth")
        ]
        ratios = [f"{a / b:.2f}" for a, b in zip(*widths, strict=True)]
        print(f"slope {cell.slope:g}, {100 * cell.tested:.0f} % tested: AUC {ratios[0]} times,"
              f" difference {ratios[1]} times")  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:] == ["bound"]:
        bound()
    else:
        options = {"repetitions": 200, "jobs": CORES, "only": "", "resume": False}
        command(__doc__, run, show, diabetes="", **options)
