"""A known prevalence: do numbers that rest on it hold, what if it is wrong, what is gained?

    python experiments/known_rates.py run                   (150 and 10 repetitions, all cores)
    python experiments/known_rates.py run --repetitions 4 --fits 1 --only "one ratio" --jobs 2
    python experiments/known_rates.py run --data nhanes.csv.gz --repetitions 0 --fits 0
    python experiments/known_rates.py show

Worlds whose truth is known; testing depends on features and group, and the odds of the untested
differ from those of tested people with the same features. `known_rates.csv`: for each world and
what is told (nothing, the prevalence, with an interval, by group, a third too high) how often
intervals hold the truth (odds ratio, prevalence of the second group, AUC, calibration error and ROC
gap of one fixed score), the mean errors, and how often the known rate is said to contradict that
features explain testing. `known_rates_training.csv`: methods told the prevalence, nothing, and a
wrong one: AUC for the truth and mean distance from the true risk, on 20,000 new people.
`known_rates_nhanes.csv` (with --data): the US survey NHANES, whose truth is known, told its true
prevalence: the odds ratio that it finds beside the measured one, and the default's risks.
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
from scipy.special import expit, logit, ndtr

from _record import (
    CORES,
    command,
    finished,
    means,
    record,
    record_means,
    scores_beside,
    show_tables,
)

UNSURE = 0.01  # standard error of a stated prevalence
METHODS = ("tested-only:linear", "tested-only:boost", "dcem", "ensemble", "unmeasured-cause")
FOLDS = 5


@dataclass(frozen=True)
class World:
    """How untested people differ, and what is told of the prevalence."""

    name: str
    ratios: tuple[float, float]  # odds of the untested over the tested, in either group
    told: tuple[str, ...] = ("nothing", "the rate")
    rows: int = 4_000
    base: float = -1.5  # log-odds of the outcome at the mean
    minority: float = -0.5  # log-odds of belonging to group 1
    cause: float = (
        0.0  # correlation of what is unmeasured in testing and outcome, instead of ratios
    )


WORLDS = (
    World(
        "one ratio of 2",
        (2.0, 2.0),
        ("nothing", "the rate", "an interval", "a third too high", "by group"),
    ),
    World("one ratio of .5", (0.5, 0.5), ("nothing", "the rate", "by group")),
    World("a ratio of 2, 1,500 people", (2.0, 2.0), ("the rate", "an interval"), rows=1_500),
    World("a ratio of 2, 12,000 people", (2.0, 2.0), ("the rate", "by group"), rows=12_000),
    World("a ratio of 2, rare outcome", (2.0, 2.0), ("nothing", "the rate"), 8_000, base=-3.6),
    World("a ratio of 2, a small group", (2.0, 2.0), ("the rate", "by group"), minority=-3.2),
    World("2.5 in one group, .6 in the other", (2.5, 0.6), ("nothing", "by group", "the rate")),
    World("features explain testing", (1.0, 1.0), ("nothing", "the rate", "a third too high")),
    World("an unmeasured cause", (1.0, 1.0), ("nothing", "the rate", "by group"), cause=0.5),
)


def draw(world: World, seed: int, rows: int = 0) -> tuple[np.ndarray, ...]:
    """Features [n, 4], group [n], result [n] (NaN if untested), truth [n] and its risk [n]."""
    rows = rows or world.rows
    rng = np.random.default_rng([seed, rows, len(world.name)])
    X = rng.normal(size=(rows, 4))
    group = (rng.random(rows) < expit(2.0 * X[:, 3] + world.minority)).astype(int)
    policy = 0.7 * X[:, 0] - 0.5 * X[:, 2] - 0.6 * group
    if world.cause:
        line = 0.6 * (world.base + X[:, 0] + 0.7 * X[:, 1])
        u, rest = rng.normal(size=(2, rows))
        truth = line + world.cause * u + np.sqrt(1 - world.cause**2) * rest > 0
        tested = 0.6 * policy + u > 0
        return X, group, np.where(tested, truth, np.nan), truth.astype(float), ndtr(line)
    testing, shown = expit(policy), expit(world.base + X[:, 0] + 0.7 * X[:, 1])
    unseen = expit(logit(shown) + np.log(np.array(world.ratios))[group])
    tested = rng.random(rows) < testing
    truth = rng.random(rows) < np.where(tested, shown, unseen)
    risk = testing * shown + (1 - testing) * unseen
    return X, group, np.where(tested, truth, np.nan), truth.astype(float), risk


def score_of(world: World, X: np.ndarray) -> np.ndarray:
    """A fixed score that ranks well and is off as a risk."""
    return np.asarray(expit(1.3 * (world.base + X[:, 0] + 0.7 * X[:, 1]) + 0.4))


@cache
def truths(number: int) -> dict[str, Any]:
    """What the numbers are in truth, from a million people."""
    from dcem.metrics import auc, roc_gap

    world = WORLDS[number]
    X, group, _, truth, risk = draw(world, 10**6, 1_000_000)
    score = score_of(world, X)
    part = np.minimum((10 * np.argsort(np.argsort(score)) / len(score)).astype(int), 9)
    return {
        "rates": [float(risk[group == g].mean()) for g in (0, 1)],
        "rate": float(risk.mean()),
        "auc": float(auc(truth, score)),
        "calibration": float(np.abs(np.bincount(part, score - risk) / len(score)).sum()),
        "gap": float(roc_gap(truth, score, group)),
    }


def stated(number: int, told: str, seed: int) -> Any:
    """What is told of the prevalence."""
    known = truths(number)
    if told == "an interval":
        middle = np.random.default_rng([seed, 1]).normal(known["rate"], UNSURE)
        return f"{middle - 1.96 * UNSURE:.5f}-{middle + 1.96 * UNSURE:.5f}"
    by_group = dict(zip("01", known["rates"], strict=True))
    given: Mapping[str, Any] = {"the rate": known["rate"], "by group": by_group}
    return given.get(told) if told != "a third too high" else 4 / 3 * known["rate"]


def told_problem(number: int, told: str, seed: int, drawn: tuple[np.ndarray, ...]) -> Any:
    """The table, with what is told."""
    from dcem.table.labels import SelectiveLabels

    X, group, result, *_ = drawn
    return SelectiveLabels.from_arrays(
        X, result, group=group.astype(str), prevalence=stated(number, told, seed)
    )


def judged(number: int, seed: int) -> list[dict[str, Any]]:
    """One table of a world, judged with everything that is told of its prevalence."""
    from dcem.audit.known_rates import known_rates
    from dcem.compare import judge as judging
    from dcem.compare.fitting import Scored
    from dcem.estimation.evaluator import Evaluator
    from dcem.estimation.folds import person_folds
    from dcem.estimation.nuisances import fit_nuisances

    warnings.simplefilter("ignore")
    world, known, rows = WORLDS[number], truths(number), []
    drawn = draw(world, seed)
    score = score_of(world, drawn[0])
    one_fold = np.zeros(world.rows, int)
    scored = Scored(score[None], one_fold)
    models = None
    for told in world.told:
        problem = told_problem(number, told, seed, drawn)
        fold = person_folds(problem, 5, seed)
        models = models or fit_nuisances(problem, fold, seed)  # they know nothing of it
        judge = Evaluator(problem, fold=fold, nuisances=models)
        gap, _ = judging._gap(judge, "dr", scored, 200, seed)
        found = {
            "prevalence": (judge.prevalence("dr", "1"), known["rates"][1]),
            "auc": (judge.auc("dr", score), known["auc"]),
            "calibration": (
                judging._calibration_error(judge, "dr", score, 200, seed),
                known["calibration"],
            ),
            "gap": (gap, known["gap"]),
        }
        row: dict[str, Any] = {"world": world.name, "told": told, "reach": judge.reach.within.all()}
        tests = known_rates(judge, judge.unseen_alike)
        if tests:
            row["contradicted"] = any(one.disagrees for one in tests)
        for place, one in enumerate(tests):
            ratio = one.odds_ratio
            true = world.ratios[place if told == "by group" else 0]
            single = told == "by group" or world.ratios[0] == world.ratios[1]
            if ratio.estimable and not world.cause and single:
                row[f"ratio{place}_holds"] = ratio.low <= true <= ratio.high
                row[f"ratio{place}_error"] = np.log(ratio.value / true)
        for name, (estimate, true) in found.items():
            if estimate.estimable and estimate.high - estimate.low > 1e-6:  # not what was told
                row[f"{name}_holds"] = estimate.low <= true <= estimate.high
                row[f"{name}_error"] = estimate.value - true
                row[f"{name}_width"] = estimate.high - estimate.low
        rows.append(row)
    return rows


TRAINED = (
    World("a ratio of 3", (3.0, 3.0)),
    World("a ratio of .3", (0.3, 0.3)),
    World("an unmeasured cause", (1.0, 1.0), cause=0.6),
    World("features explain testing", (1.0, 1.0)),
)


def trained(number: int, name: str, seed: int) -> list[dict[str, Any]]:
    """One method fitted to one table, told different things, scored on new people."""
    from dcem import methods
    from dcem.table.labels import SelectiveLabels

    warnings.simplefilter("ignore")
    world, rows = TRAINED[number], []
    X, group, result, *_ = draw(world, seed)
    new, *_, truth, risk = draw(world, seed + 10**7, 20_000)
    known = float(draw(world, 10**6, 1_000_000)[-1].mean())
    for told, rate in (("nothing", None), ("the rate", known), ("a third too high", 4 / 3 * known)):
        begin = time.perf_counter()
        problem = SelectiveLabels.from_arrays(X, result, group=group.astype(str), prevalence=rate)
        model = methods.make(name, random_state=seed).fit_problem(problem)
        score = model.predict_proba(new)[:, 1]
        row: dict[str, Any] = {"world": world.name, "told": told, "method": name}
        row |= scores_beside(truth, risk, score, begin)
        if name == "unmeasured-cause" and world.cause:
            low, high = model.correlation_interval_
            row["cause_holds"] = low <= world.cause <= high
            ends = model.risk_interval(new)
            row["risk_holds"] = float(np.mean((ends[0] <= risk) & (risk <= ends[1])))
        rows.append(row)
    return rows


def survey_problem(data: str, outcome: str, told: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """NHANES, told its prevalence or nothing; the truth of everybody, and folds."""
    from dataclasses import replace

    from dcem.table.labels import SelectiveLabels
    from dcem.tasks.nhanes import nhanes_problem, read_nhanes

    plain, truth = nhanes_problem(read_nhanes(data), outcome, weights=False)
    names = np.array(plain.group_names)[plain.group]
    by_group = {name: float(truth[names == name].mean()) for name in plain.group_names}
    rates = {"nothing": None, "the rate": float(truth.mean()), "by group": by_group}
    stated = SelectiveLabels.from_arrays(
        plain.X[:, :1], plain.y_obs, group=names, prevalence=rates[told]
    ).known_prevalence
    fold = np.random.default_rng(0).permutation(len(truth)) % FOLDS
    return replace(plain, known_prevalence=stated), truth, fold


def survey_fold(data: str, outcome: str, told: str, k: int) -> list[dict[str, Any]]:
    """The default's scores of one fold."""
    from dcem.methods import make

    warnings.simplefilter("ignore")
    problem, _, fold = survey_problem(data, outcome, told)
    model = make("ensemble", n_jobs=1, random_state=k).fit_problem(problem.subset(fold != k))
    score = model.predict_proba(problem.X[fold == k])[:, 1]
    return [{"case": (data, outcome, told), "fold": k, "score": score}]


def survey(
    data: str, outcome: str, told: str, folds: dict[int, np.ndarray]
) -> list[dict[str, Any]]:
    """Numbers without truth, and the default's risks, beside the truth."""
    from dcem.audit.known_rates import known_rates
    from dcem.estimation.evaluator import Evaluator
    from dcem.estimation.folds import percentiles
    from dcem.metrics import auc, calibration_error

    warnings.simplefilter("ignore")
    problem, truth, fold = survey_problem(data, outcome, told)
    names = np.array(problem.group_names)[problem.group]
    score = np.empty(len(truth))
    for k, one in folds.items():
        score[fold == k] = one
    judge = Evaluator(problem, truth=truth, fold=fold)
    rank = percentiles(score, fold)
    found, rate = judge.auc("dr", rank), judge.prevalence("dr")
    rows = [
        {
            "outcome": outcome, "told": told, "of": "everybody",
            "auc": auc(truth, rank), "auc_dr": found.value,
            "auc_dr_low": found.low, "auc_dr_high": found.high,
            "prevalence": truth.mean(), "prevalence_dr": rate.value,
            "prevalence_dr_low": rate.low, "prevalence_dr_high": rate.high,
            "mean_risk": score.mean(), "calibration_error": calibration_error(truth, score),
        }
    ]  # fmt: skip
    for name in problem.group_names:
        mine, rate = names == name, judge.prevalence("dr", name)
        rows.append(
            {
                "outcome": outcome, "told": told, "of": name,
                "prevalence": truth[mine].mean(), "prevalence_dr": rate.value,
                "prevalence_dr_low": rate.low, "prevalence_dr_high": rate.high,
                "mean_risk": score[mine].mean(),
            }
        )  # fmt: skip
    of = {row["of"]: row for row in rows}
    for one in known_rates(judge, judge.unseen_alike):
        ratio = one.odds_ratio
        of[one.group] |= {
            "odds_ratio": ratio.value, "odds_ratio_low": ratio.low, "odds_ratio_high": ratio.high,
            "p_value": one.p_value, "noticed_under": one.detectable[0],
            "noticed_over": one.detectable[1],
        }  # fmt: skip
    return rows


def run(
    out: Path,
    repetitions: int,
    fits: int,
    data: Path | None,
    jobs: int,
    only: str,
    seconds: float,
) -> None:
    worlds = [i for i, world in enumerate(WORLDS) if only in world.name]
    training = [
        (trained, i, name, seed)
        for seed in range(fits)
        for i in range(len(TRAINED))
        for name in METHODS
    ]
    judging = [(judged, i, seed) for seed in range(repetitions) for i in worlds]
    tables = {"known_rates_training": (training, 0.5), "known_rates": (judging, 1.0)}
    record_means(tables, out, jobs, seconds, lambda rows: means(rows, ("world", "told", "method")))
    if data is None:
        return
    begin = time.perf_counter()
    asked = [
        (str(data), outcome, told)
        for outcome in ("diabetes", "prediabetes")
        for told in ("nothing", "the rate", "by group")
    ]
    folds: dict[Any, dict[int, np.ndarray]] = {case: {} for case in asked}
    fitting = [(survey_fold, *case, k) for case in asked for k in range(FOLDS)]
    for one in finished(fitting, jobs, np.inf):
        folds[one["case"]][one["fold"]] = one["score"]
    rows = list(finished([(survey, *case, folds[case]) for case in asked], jobs, np.inf))
    rows.sort(key=lambda row: asked.index((str(data), row["outcome"], row["told"])))
    record("known_rates_nhanes", rows, out, time.perf_counter() - begin, workers=jobs)


if __name__ == "__main__":
    show = show_tables("known_rates", "known_rates_training", "known_rates_nhanes")
    options = {"repetitions": 150, "fits": 10, "jobs": CORES, "only": "", "seconds": 3600.0}
    command(__doc__, run, show, data=None, **options)
