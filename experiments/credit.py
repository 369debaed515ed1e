"""Lenders: which method where, and do the numbers of a swap set hold?

    python experiments/credit.py run --data FOLDER          (250 and 12 repetitions, all cores)
    python experiments/credit.py run --repetitions 2 --fits 1 --jobs 2 --out scratch
    python experiments/credit.py show

`FOLDER` holds credit-default.csv.gz (docs/data.md); without it the real worlds are left out.

`credit.csv`: methods fitted to the outcomes of the approved and judged by the truth of all others.
Simulated applicants have two probit equations, of approval and of default, whose errors share an
unrecorded cause or not; `queue` drives approval alone, or default too (an excluded variable that is
invalid), or is not named. Real applicants are those of the credit-default table, of whom a policy
approves the safest; in one world it looks at the last payment, which the table then lacks.

`credit_coverage.csv`: how often intervals hold the truth of two million applicants, for fixed
scores: Gini, KS, kickout, the default rates of those swapped in, left out and selected, the change
of the book, and the rate of the declined in an audit; at several sizes, default and approval rates,
and with an unrecorded cause, where they should not.
"""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from _record import CORES, command, means, record_means, show_tables

ROWS, TEST = 4_000, 20_000
METHODS = (
    "tested-only:linear",
    "tested-only:boost",
    "y-obs:linear",
    "dcem",
    "ensemble",
    "fuzzy-augmentation",
    "parcelling",
    "parcelling:boost",
    "bias-aware-self-learning",
    "heckman",
)
SEEN = ("LIMIT_BAL", "PAY_0", "PAY_2", "PAY_AMT1", "BILL_AMT1", "AGE")


@dataclass(frozen=True)
class World:
    """Two equations, or a policy for the real table."""

    name: str
    correlation: float = 0.0  # of what drives approval and default and is not recorded
    invalid: float = 0.0  # what `queue` does to default
    named: bool = True  # whether heckman is told of `queue`
    curved: bool = False
    strict: float = 1.0  # how much approval follows the features
    slope: float = 0.0  # of the policy for the real table
    lacks: str = ""  # column of the real table that only those who decide have


WORLDS = (
    World("features explain approval"),
    World("unrecorded cause, valid queue", -0.6),
    World("unrecorded cause, no queue named", -0.6, named=False),
    World("unrecorded cause, invalid queue", -0.6, 0.5),
    World("no unrecorded cause, invalid queue", 0.0, 0.5),
    World("unrecorded cause, valid queue, curved", -0.6, curved=True),
    World("real, low risk first", slope=2.0),
    World("real, low risk first, sharp", slope=8.0),
    World("real, the last payment is not recorded", slope=2.0, lacks="PAY_0"),
)


def draw(world: World, seed: int, rows: int, shift: float = -0.9) -> tuple[np.ndarray, ...]:
    """Features [n, 4] (the last is `queue`), group, approved, truth and its risk [n]."""
    rng = np.random.default_rng([seed, rows])
    X = rng.normal(size=(rows, 4))
    group = (rng.random(rows) < 0.3).astype(int)
    z = shift + 0.8 * X[:, 0] + 0.4 * X[:, 1] + world.invalid * X[:, 3]
    if world.curved:
        z = z + 0.6 * X[:, 1] * X[:, 2] - 0.3 * (X[:, 0] ** 2 - 1)
    u = rng.normal(size=rows)
    r = world.correlation
    v = r * u + np.sqrt(1 - r * r) * rng.normal(size=rows)
    index = -0.7 * X[:, 0] - 0.3 * X[:, 2] + 0.8 * X[:, 3]
    approved = 0.2 + world.strict * index - 0.4 * group + u > 0
    return X, group, approved, (z + v > 0).astype(float), ndtr(z)


@cache
def real() -> pd.DataFrame:
    """The credit-default table."""
    return pd.read_csv(Path(os.environ["DCEM_DATA"]) / "credit-default.csv.gz").drop(columns="ID")


def censored(world: World, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """The real table under a policy: rows to learn from, and features and truth of others."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    from dcem.table.labels import SelectiveLabels
    from dcem.tasks import make_censored
    from dcem.tasks.policy import LinearPolicy

    frame = real()
    y = frame["class"].to_numpy()
    X = frame.drop(columns="class").assign(
        queue=np.random.default_rng([seed, 5]).normal(size=len(frame))
    )
    rows = StandardScaler().fit_transform(X[list(SEEN)])
    risk = LogisticRegression().fit(rows, y).coef_[0]
    risk = risk / np.std(rows @ risk)
    weights = {name: -float(w) for name, w in zip(SEEN, risk, strict=True)} | {"queue": 0.6}
    policy = LinearPolicy(weights, slope=world.slope, rates={"1": 0.6, "2": 0.45})
    task = make_censored(
        X, y, group=X["SEX"].astype(str), policy=policy, shares=(0.2, 0.05, 0.75),
        random_state=seed,
    )  # fmt: skip
    train, test = task.train, task.test
    kept = [i for i, name in enumerate(train.feature_names) if name != world.lacks]
    names = [train.feature_names[i] for i in kept]
    problem = SelectiveLabels.from_arrays(
        train.X[:, kept], train.y_obs, tested=train.tested, feature_names=names,
        group=np.array(train.group_names)[train.group], testing_only=["queue"],
    )  # fmt: skip
    return problem, test.X[:, kept], np.asarray(task.truth["test"])


def trained(number: int, name: str, seed: int) -> list[dict[str, Any]]:
    """One method fitted to one table, judged by the truth of others."""
    from dcem import methods, metrics
    from dcem.table.labels import SelectiveLabels

    warnings.simplefilter("ignore")
    world = WORLDS[number]
    if world.slope:
        problem, X, truth = censored(world, seed)
        best = float("nan")
    else:
        drawn, group, approved, y, _ = draw(world, seed, ROWS)
        problem = SelectiveLabels.from_arrays(
            drawn,
            np.where(approved, y, np.nan),
            group=group.astype(str),
            feature_names=["debt", "income", "age", "queue"],
            testing_only=["queue"] if world.named else [],
        )
        X, _, _, truth, risk = draw(world, seed + 10**7, TEST)
        best = float(metrics.auc(truth, risk))
    begin = time.perf_counter()
    model = methods.make(name, random_state=seed).fit_problem(problem)
    score = model.predict_proba(X)[:, 1]
    found = {
        "auc": float(metrics.auc(truth, score)),
        "best_auc": best,
        "ks": metrics.ks(truth, score),
        "calibration": metrics.calibration_error(truth, score),
        "mean_score": float(score.mean()),
        "rate": float(truth.mean()),
        "correlation": float(getattr(model, "correlation_", float("nan"))),
        "seconds": time.perf_counter() - begin,
    }
    return [{"world": world.name, "method": name, **found}]


# -- intervals ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """A world for intervals: how many applicants, how often they default."""

    name: str
    rows: int = 4_000
    shift: float = -0.9
    correlation: float = 0.0


SETTINGS = (
    Setting("4,000 applicants"),
    Setting("1,500 applicants", 1_500),
    Setting("10,000 applicants", 10_000),
    Setting("few defaults", shift=-1.8),
    Setting("many defaults", shift=-0.1),
    Setting("unrecorded cause", correlation=-0.6),
)


def scores(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two fixed scores: one that ranks well, and the reference."""
    return X[:, 0] + 0.4 * X[:, 1], X[:, 0] + 0.6 * X[:, 2]


@cache
def truths(number: int) -> dict[str, float]:
    """What the numbers are in truth, from two million people."""
    from dcem import metrics

    setting = SETTINGS[number]
    world = World("", setting.correlation, strict=0.5)  # nobody is out of reach
    X, _, approved, y, _ = draw(world, 10**6, 2_000_000, setting.shift)
    score, reference = scores(X)
    share = approved.mean()
    chosen = score <= np.quantile(score, share)
    first = reference <= np.quantile(reference, share)
    return {
        "gini": metrics.gini(y, score),
        "ks": metrics.ks(y, score),
        "kickout": metrics.kickout(y, first, chosen),
        "swapped_in": float(y[~approved & chosen].mean()),
        "left_out": float(y[~approved & ~chosen].mean()),
        "then": float(y[chosen].mean()),
        "change": float(y[chosen].mean() - y[approved].mean()),
        "declined": float(y[~approved].mean()),
    }


def judged(number: int, seed: int) -> list[dict[str, Any]]:
    """One table of a setting, and which intervals hold the truth."""
    from dcem.audit.prevalence import preference
    from dcem.compare import credit
    from dcem.compare.fitting import Scored
    from dcem.estimation.evaluator import Evaluator
    from dcem.estimation.folds import person_folds
    from dcem.estimation.nuisances import fit_nuisances
    from dcem.estimation.swap_sets import swap_set
    from dcem.table.labels import SelectiveLabels

    warnings.simplefilter("ignore")
    setting, known = SETTINGS[number], truths(number)
    world = World("", setting.correlation, strict=0.5)  # nobody is out of reach
    X, group, approved, y, _ = draw(world, seed, setting.rows, setting.shift)
    problem = SelectiveLabels.from_arrays(X, np.where(approved, y, np.nan), group=group.astype(str))
    fold = person_folds(problem, 5, seed)
    judge = Evaluator(problem, fold=fold, nuisances=fit_nuisances(problem, fold, seed))
    one_fold = np.zeros(setting.rows, int)
    rank, first = (Scored(one[None], one_fold) for one in scores(X))
    half = np.random.default_rng(seed).permutation(setting.rows) % 2 == 0
    swaps, asked = swap_set(judge, rank.rank), preference(judge)
    found = {
        "gini": credit._twice(judge.auc("dr", rank.rank)),
        "ks": credit._ks(judge, "dr", rank.rank, half),
        "kickout": credit._kickout(judge, "dr", rank, first),
        "swapped_in": swaps.rate["swapped in"],
        "left_out": swaps.rate["left out"],
        "then": swaps.then,
        "change": swaps.change,
        "declined": asked.untested,
    }
    row: dict[str, Any] = {"setting": setting.name}
    for name, told in found.items():
        row[f"{name}_holds"] = told.low <= known[name] <= told.high
        row[f"{name}_error"] = told.value - known[name]
        row[f"{name}_width"] = told.high - told.low
    row["called_safer"] = asked.low_risk
    row["reach"] = judge.overlap.reach
    return [row]


def averaged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over repetitions, in the order of the lists above."""
    order = [*(world.name for world in WORLDS), *METHODS, *(one.name for one in SETTINGS)]
    return means(rows, ("world", "setting", "method"), order)


def run(
    out: Path, data: str, repetitions: int, fits: int, jobs: int, only: str, seconds: float
) -> None:
    os.environ["DCEM_DATA"] = data  # read by the workers
    worlds = [i for i, w in enumerate(WORLDS) if only in w.name and (data or not w.slope)]
    training = [
        (trained, i, name, seed) for seed in range(fits) for i in worlds for name in METHODS
    ]
    judging = [(judged, i, seed) for seed in range(repetitions) for i in range(len(SETTINGS))]
    tables = {"credit": (training, 0.5), "credit_coverage": (judging, 1.0)}
    record_means(tables, out, jobs, seconds, averaged)


if __name__ == "__main__":
    show = show_tables("credit", "credit_coverage")
    options = {"repetitions": 250, "fits": 12, "jobs": CORES, "only": "", "seconds": 3600.0}
    command(__doc__, run, show, data="", **options)
