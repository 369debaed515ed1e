"""Which method would recover the truth *here*? Plant one, and see.

Nobody knows the outcome of the untested, so no estimate can say for sure which method serves this
table best. But one can invent outcomes, in the table's own features and as frequent and as strongly
tied to them as the real ones seem to be, censor them by the testing policy estimated from the
table, fit every method, and look who finds what was planted. A method that fails on outcomes of
every kind should not be trusted with the real one; that it succeeds is no proof, since the real
outcome may be of a kind that was not tried.

Families of outcomes, P(Y=1 | x) = sigmoid(a + b z(x)), with z of mean 0 and standard deviation 1,
b the spread of the log-odds that the table's outcome model predicts, and a for its prevalence:

* *linear*: z is a random direction in `FEATURES` of the standardised features.
* *smooth*: z is a sum of random cosine waves over as many.
* *interactions*: z is a sum of random two-way rules (one of two features high, but not both).
* *outcome-dependent testing*: linear, but a positive's odds of being tested are `GAMMA` times those
  of a negative with the same features, each group's testing rate kept. Nothing in the features
  explains that, and the assumption behind every method fails.

Reference: judging methods by outcomes simulated on real covariates is "plasmode" simulation;
J. Franklin et al., Computational Statistics and Data Analysis 2014.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import t as student

from dcem import metrics
from dcem.compare.advice import advise
from dcem.compare.fitting import Progress, check_methods, fit_and_score
from dcem.compare.results import Planted, PlantedFamily, PlantedScore
from dcem.estimation.nuisances import Nuisances
from dcem.metrics.estimate import Estimate
from dcem.table import checks
from dcem.table.labels import SelectiveLabels

GAMMA = 4.0
CEILING = "the planted risk"  # the name under which the best possible score stands
TRAIN_SHARE = 0.7
MAX_ROWS = 6_000
BATCH = 512
FEATURES = 8  # that an outcome depends on: as with real ones, most columns do not matter
_SPREADS = (0.5, 4.0)  # b is kept between these

FAMILIES = (
    PlantedFamily("linear", "The log-odds are a random direction in the features.", False),
    PlantedFamily("smooth", "The log-odds are a sum of waves over the features.", False),
    PlantedFamily("interactions", "The log-odds are a sum of rules on two features each.", False),
    PlantedFamily(
        "outcome-dependent testing",
        f"Linear, but positives have {GAMMA:g} times the odds of being tested at equal features.",
        True,
    ),
)


@dataclass(frozen=True)
class PlantedTask:
    """A table with a planted outcome, in two parts; all know its truth but the methods."""

    family: str
    train: SelectiveLabels
    test: SelectiveLabels
    truth: np.ndarray  # of the test part
    risk: np.ndarray  # of the test part: P(Y=1 | x), the best score there is


def plant(
    problem: SelectiveLabels,
    nuisances: Nuisances,
    methods: Sequence[str],
    *,
    repetitions: int = 4,
    max_rows: int = MAX_ROWS,
    level: float = 0.95,
    random_state: int = 0,
    params: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Planted:
    """Plant outcomes, censor them by the fitted policy, and see which method recovers them.

    Args:
        problem: the table; its labels serve only through the nuisance models.
        nuisances: `nuisances.cross_fit` of the same rows.
        methods: names; the first is the reference of gains.
        repetitions: how often each family is planted, with new outcomes and new people.
        max_rows: rows of a planted table, drawn anew each time.
        level: of the intervals over repetitions (Student's t).
        random_state: seed of everything.
        params: for every method, besides the defaults (and batches of 512 rows).
        progress: told in words what is being done.
    """
    if repetitions < 2:
        raise checks.InputError(
            f"{repetitions} repetition of planted outcomes leaves no interval: give 2 or more."
        )
    methods = check_methods(methods)
    begun = time.perf_counter()
    seeds = np.random.SeedSequence(random_state).spawn(repetitions)
    tasks = [
        make_task(family.name, problem, nuisances, np.random.default_rng(seed), max_rows)
        for seed in seeds
        for family in FAMILIES
    ]
    scores = {CEILING: [task.risk for task in tasks]}
    for name in methods:
        if progress:
            progress(f"planted outcomes: fitting {name}")
        fitted = fit_and_score(
            name,
            [(task.train, task.test) for task in tasks],
            random_state,
            {"batch_size": BATCH, **(params or {})},
        )
        scores[name] = [one.score for one in fitted]
    found = {
        name: np.array([_measure(task, s) for task, s in zip(tasks, of, strict=True)])
        for name, of in scores.items()
    }  # name -> [repetitions * families, 2]: AUC and ROC gap
    results = []
    for number, family in enumerate(FAMILIES):
        here = slice(number, None, len(FAMILIES))
        base = found[methods[0]][here, 0]
        for name, measured in found.items():
            results.append(
                PlantedScore(
                    family.name,
                    name,
                    auc=over_repetitions(measured[here, 0], level, bounds=(0, 1)),
                    roc_gap=over_repetitions(measured[here, 1], level, bounds=(0, 1)),
                    auc_gain=over_repetitions(measured[here, 0] - base, level),
                )
            )
    by_family = {
        family.name: {name: found[name][i :: len(FAMILIES), 0] for name in methods}
        for i, family in enumerate(FAMILIES)
    }
    ceilings = {
        family.name: over_repetitions(found[CEILING][i :: len(FAMILIES), 0], level).value
        for i, family in enumerate(FAMILIES)
    }
    return Planted(
        families=FAMILIES,
        scores=tuple(results),
        repetitions=repetitions,
        sentences=advise(FAMILIES, by_family, ceilings, level),
        seconds=time.perf_counter() - begun,
    )


def make_task(
    family: str,
    problem: SelectiveLabels,
    nuisances: Nuisances,
    rng: np.random.Generator,
    max_rows: int = MAX_ROWS,
) -> PlantedTask:
    """One planted table: the features, groups and people of `problem`, other outcomes and tests."""
    share = TRAIN_SHARE * min(1.0, max_rows / len(problem))
    rest = min(1.0, max_rows / len(problem)) - share
    shares = [share, rest] + ([1 - share - rest] if 1 - share - rest > 1e-9 else [])
    positions = replace(problem, row=np.arange(len(problem)))
    train_rows, test_rows = (part.row for part in positions.split(shares, rng)[:2])
    rows = np.concatenate([train_rows, test_rows])
    X = standardised(problem.X[rows])
    index = _INDICES["linear" if family == FAMILIES[-1].name else family](X, rng)
    spread = float(np.clip(np.std(logit(nuisances.outcome[rows])), *_SPREADS))
    log_odds = spread * (index - index.mean()) / max(float(index.std()), 1e-12)
    wanted = float(np.clip(nuisances.outcome[rows].mean(), 0.02, 0.98))
    risk = expit(log_odds + _shift(log_odds, wanted))
    y = (rng.random(len(rows)) < risk).astype(float)
    testing = nuisances.testing[rows]
    if family == FAMILIES[-1].name:
        testing = outcome_dependent(testing, y, problem.group[rows])
    tested = rng.random(len(rows)) < testing
    seen = np.where(tested, y, np.nan)
    planted = replace(problem.subset(rows), tested=tested, y_obs=seen)
    cut = len(train_rows)
    here = np.arange(len(rows))
    return PlantedTask(
        family,
        planted.subset(here < cut),
        planted.subset(here >= cut),
        y[cut:].astype(np.int64),
        risk[cut:],
    )


def outcome_dependent(testing: np.ndarray, y: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Testing probabilities with the odds of positives multiplied, each group's rate kept."""
    odds = logit(np.clip(testing, 1e-6, 1 - 1e-6)) + np.log(GAMMA) * y
    changed = np.empty(len(testing))
    for code in np.unique(group):
        mine = group == code
        changed[mine] = expit(odds[mine] + _shift(odds[mine], float(testing[mine].mean())))
    return changed


def standardised(X: np.ndarray) -> np.ndarray:
    """Features with mean 0 and standard deviation 1, the missing at 0, no value beyond 3."""
    with np.errstate(invalid="ignore"):
        centre = np.nan_to_num(np.nanmean(np.where(np.isnan(X).all(axis=0), 0.0, X), axis=0))
    filled = np.where(np.isnan(X), centre, X) - centre
    spread = filled.std(axis=0)
    clipped: np.ndarray = np.clip(filled[:, spread > 0] / spread[spread > 0], -3, 3)
    return clipped


def _few(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Some columns, those that vary among many people rather than those of a rare trait."""
    varies = X.var(axis=0)
    count = min(FEATURES, X.shape[1])
    few: np.ndarray = X[:, rng.choice(X.shape[1], count, replace=False, p=varies / varies.sum())]
    return few


def _linear(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    few = _few(X, rng)
    z: np.ndarray = few @ rng.normal(size=few.shape[1])
    return z


def _smooth(X: np.ndarray, rng: np.random.Generator, waves: int = 12) -> np.ndarray:
    few = _few(X, rng)
    # about one wave over the range of the features taken together
    frequency = rng.normal(size=(few.shape[1], waves)) * 1.5 / np.sqrt(few.shape[1])
    phase = rng.uniform(0, 2 * np.pi, waves)
    z: np.ndarray = np.cos(few @ frequency + phase) @ rng.normal(size=waves)
    return z


def _interactions(X: np.ndarray, rng: np.random.Generator, rules: int = 8) -> np.ndarray:
    few = _few(X, rng)
    z = np.zeros(len(X))
    for _ in range(rules):
        one, other = (few[:, i] for i in rng.integers(few.shape[1], size=2))
        z += rng.normal() * ((one > rng.choice(one)) ^ (other > rng.choice(other)))
    return z


_INDICES: dict[str, Callable[..., np.ndarray]] = {
    "linear": _linear,
    "smooth": _smooth,
    "interactions": _interactions,
}


def _shift(log_odds: np.ndarray, rate: float) -> float:
    """What to add for the mean probability to be `rate`."""
    return float(brentq(lambda a: expit(log_odds + a).mean() - rate, -60, 60))


def _measure(task: PlantedTask, score: np.ndarray) -> tuple[float, float]:
    gap = float("nan")
    # groups too small to have a curve are left out: they would make every gap not estimable
    sizes = {
        code: np.bincount(task.truth[task.test.group == code], minlength=2).min()
        for code in np.unique(task.test.group)
    }
    large = np.isin(task.test.group, [code for code, n in sizes.items() if n >= 10])
    if len(np.unique(task.test.group[large])) > 1:
        gap = metrics.roc_gap(task.truth[large], score[large], task.test.group[large])
    if not 0 < task.truth.sum() < len(task.truth):
        return float("nan"), gap
    return metrics.auc(task.truth, score), gap


def over_repetitions(
    values: np.ndarray, level: float, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> Estimate:
    """The mean with Student's interval, cut at what the quantity can be."""
    values = values[~np.isnan(values)]
    if len(values) < 2:
        return Estimate(float("nan"), reason="not estimable in the planted tables")
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / np.sqrt(len(values))
    reach = float(student.ppf((1 + level) / 2, len(values) - 1)) * error
    return Estimate(mean, max(mean - reach, bounds[0]), min(mean + reach, bounds[1]))
