"""Which method would recover the truth *here*? Plant one, and see.

Nobody knows the outcome of the untested, so no estimate can say for sure which method serves this
table best. But one can invent outcomes, in the table's own features and as frequent and as strongly
tied to them as the real ones seem to be, censor them by the testing policy estimated from the
table, fit every method, and look who finds what was planted. A method that fails on outcomes of
every kind should not be trusted with the real one; that it succeeds is not a proof, since the real
outcome may be of a kind that was not tried.

Families of outcomes, P(Y=1 | x) = sigmoid(a + b z(x)), with z of mean 0 and standard deviation 1,
b the spread of the log-odds that the table's outcome model predicts, and a for its prevalence:

* *as fitted*: z is what the table's own outcome model predicts from the features.
* *sharpened*: the same with `SHARPER` times the spread: outcomes that features tell better.
* *smooth*: random cosine waves over `FEATURES` of the features; *interactions*: random two-way
  rules (one of two features high, but not both). Both are mixed with the policy's score, as far as
  features tell it, until they go along with testing as much as the fitted outcome does.

No outcome depends on features that are said to affect testing alone. Where it is known who decided,
planted tests depend on it as much as the real ones do.

And three in which an assumption of dcem fails, made from *as fitted* so that the loss can be seen:

* *testing depends on the outcome*: a positive's odds of being tested are `GAMMA` times those of a
  negative with the same features, each group's testing rate kept.
* *outcome depends on the group*: all groups but the largest have odds `GROUP_ODDS` times as high at
  equal features.
* *wrong labels*: `WRONG` of the tests show the opposite.

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
from dcem.compare.fitting import Announce, Part, check_methods, collected, fit_and_score
from dcem.compare.recovery import about_recovery
from dcem.compare.results import Planted, PlantedFamily, PlantedScore
from dcem.estimation.bounds import standardized
from dcem.estimation.deciders import comparable_deciders
from dcem.estimation.nuisances import Nuisances
from dcem.estimation.outcomes import true_risk
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import THRESHOLD
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError

GAMMA = 4.0
GROUP_ODDS = 3.0
WRONG = 0.1
SHARPER = 2.0
CEILING = "the planted risk"  # the name under which the best possible score stands
TRAIN_SHARE = 0.7
PLANTED_ROWS = 4_000
PLANTING = "fitting methods to planted outcomes"
FOLDS = 2  # of the ensemble: like single networks, enough for many tables
FEATURES = 8  # that an outcome depends on: as with real ones, most columns do not matter
_SPREADS = (0.5, 4.0)  # b is kept between these

FAMILIES = (
    PlantedFamily("as fitted", "The log-odds are those of the table's own outcome model.", ""),
    PlantedFamily("sharpened", f"As fitted, with {SHARPER:g} times the spread of log-odds.", ""),
    PlantedFamily("smooth", "The log-odds are a sum of waves over the features.", ""),
    PlantedFamily("interactions", "The log-odds are a sum of rules on two features each.", ""),
    PlantedFamily(
        "testing depends on the outcome",
        f"As fitted, but positives have {GAMMA:g} times the odds of a test at equal features.",
        "testing depends on the outcome beyond the features",
    ),
    PlantedFamily(
        "outcome depends on the group",
        f"As fitted, but all groups except the largest have {GROUP_ODDS:g} times the odds at equal "
        "features.",
        "the outcome depends on the group beyond the features",
    ),
    PlantedFamily(
        "wrong labels",
        f"As fitted, but {100 * WRONG:g} % of the tests show the opposite.",
        "tests are sometimes wrong",
    ),
)


@dataclass(frozen=True)
class PlantedTask:
    """A table with a planted outcome, in two parts; all know its truth but the methods."""

    train: SelectiveLabels
    test: SelectiveLabels
    truth: np.ndarray  # of the test part
    risk: np.ndarray  # of the test part: P(Y=1 | x), the best score there is


def planting(
    problem: SelectiveLabels,
    nuisances: Nuisances,
    methods: Sequence[str],
    *,
    repetitions: int = 3,
    max_rows: int = PLANTED_ROWS,
    level: float = 0.95,
    random_state: int = 0,
    params: Mapping[str, Any] | None = None,
    progress: Announce = lambda text: None,
    ray: Any = None,
) -> Callable[..., Planted]:
    """Plant outcomes, censor them by the fitted policy, and begin to fit: the answer when called.

    The fits go on in other processes meanwhile, where there is enough to fit. The answer takes the
    method that gains are counted from; without one it is the first.

    Parameters
    ----------
    problem
        The table; its labels serve only through the nuisance models.
    nuisances
        Models of the same rows, out of fold.
    methods
        Names; since many tables are planted, each is fitted as a single model, the ensemble in
        two folds and its networks in a quarter of the steps.
    repetitions
        How often each family is planted, with new outcomes and new people.
    max_rows
        Rows of a planted table, drawn anew each time.
    level
        Of the intervals over repetitions (Student's t).
    random_state
        Seed of everything.
    params
        For every method, besides the defaults.
    progress
        Told in words what is being done: `fit_steps`.
    ray
        Connected to the cluster that fits; None fits here.
    """
    if repetitions < 2:
        raise InputError(
            f"`repetitions` must be 2 or more, or there are no intervals; got {repetitions}."
        )
    methods = check_methods(methods)
    begun = time.perf_counter()
    indices = fitted_index(problem, nuisances), policy_index(problem, nuisances)
    nuisances = replace(nuisances, testing=by_decider(problem, nuisances.testing))
    seeds = np.random.SeedSequence(random_state).spawn(repetitions)
    tasks = [
        # families of one repetition share people and draws: what differs is the family
        plant_task(family.name, problem, nuisances, indices, np.random.default_rng(seed), max_rows)
        for seed in seeds
        for family in FAMILIES
    ]
    parts = [Part(task.train, task.test) for task in tasks]
    fits = fit_and_score(methods, parts, random_state, params, n_members=1, n_folds=FOLDS, ray=ray)

    def answer(reference: str | None = None) -> Planted:
        found = collected(fits, methods, len(parts), PLANTING, progress, aloud=False)
        scores = {name: [one.score for one in of] for name, of in found.items()}
        return _recovered(tasks, scores, reference or methods[0], level, begun)

    return answer


def _recovered(
    tasks: Sequence[PlantedTask],
    scores: Mapping[str, list[np.ndarray]],
    reference: str,
    level: float,
    begun: float,
) -> Planted:
    """How near the scores of each method came, family by family."""
    repetitions = len(tasks) // len(FAMILIES)
    measured = {  # name -> [repetitions, families, (AUC, ROC gap)]
        name: np.reshape(
            [_measure(*one) for one in zip(tasks, of, strict=True)], (repetitions, -1, 2)
        )
        for name, of in {CEILING: [task.risk for task in tasks], **scores}.items()
    }
    results, recovered, ceilings = [], {}, {}
    for number, family in enumerate(FAMILIES):
        auc = {name: values[:, number, 0] for name, values in measured.items()}
        results += [
            PlantedScore(
                family.name,
                name,
                auc=over_repetitions(auc[name], level, bounds=(0, 1)),
                roc_gap=over_repetitions(values[:, number, 1], level, bounds=(0, 1)),
                auc_gain=over_repetitions(auc[name] - auc[reference], level),
            )
            for name, values in measured.items()
        ]
        recovered[family.name] = {name: auc[name] for name in scores}
        ceilings[family.name] = over_repetitions(auc[CEILING], level).value
    return Planted(
        families=FAMILIES,
        scores=tuple(results),
        repetitions=repetitions,
        findings=about_recovery(FAMILIES, recovered, ceilings, level, plain=FAMILIES[0].name),
        seconds=time.perf_counter() - begun,
    )


def fitted_index(problem: SelectiveLabels, nuisances: Nuisances) -> np.ndarray:
    """Log-odds [n] of the table's outcome model as a function of the outcome's features alone.

    The model sees the group too; trees that do not are fitted to what it predicts.
    """
    return _told_by_features(problem, logit(true_risk(problem, nuisances.outcome)))


def policy_index(problem: SelectiveLabels, nuisances: Nuisances) -> np.ndarray:
    """The same of the model of who is tested."""
    return _told_by_features(problem, logit(np.clip(nuisances.testing, 1e-6, 1 - 1e-6)))


def _told_by_features(problem: SelectiveLabels, log_odds: np.ndarray) -> np.ndarray:
    from lightgbm import LGBMRegressor

    X = problem.X[:, _of_outcome(problem)]
    if not X.shape[1]:
        return np.full(len(X), log_odds.mean())
    trees = LGBMRegressor(n_estimators=60, n_jobs=1, random_state=0, verbose=-1)
    return np.asarray(trees.fit(X, log_odds).predict(X))


def _of_outcome(problem: SelectiveLabels) -> np.ndarray:
    """Which features an outcome may depend on (a mask): not those said to affect testing alone."""
    return ~np.isin(problem.feature_names, problem.testing_only)


def by_decider(problem: SelectiveLabels, testing: np.ndarray) -> np.ndarray:
    """Testing probabilities [n], the odds of each decider's people moved by as much as tests tell.

    Deciders differ from what is expected of their people by chance too: their differences are
    shrunk towards 0 (DerSimonian and Laird 1986).
    """
    if problem.decider is None or not len(some := comparable_deciders(problem)):
        return testing
    moved = testing.copy()
    mine = [problem.decider == code for code in some]
    off = np.array([(problem.tested[rows] - testing[rows]).mean() for rows in mine])
    error = np.array([np.mean(testing[rows] * (1 - testing[rows])) / rows.sum() for rows in mine])
    spread = max(0.0, float(np.var(off) - error.mean()))
    for rows, by in zip(mine, off * spread / np.maximum(spread + error, 1e-12), strict=True):
        odds = logit(np.clip(testing[rows], 1e-6, 1 - 1e-6))
        rate = float(np.clip(testing[rows].mean() + by, 1e-6, 1 - 1e-6))
        moved[rows] = expit(odds + _shift(odds, rate))
    return moved


def plant_task(
    family: str,
    problem: SelectiveLabels,
    nuisances: Nuisances,
    indices: tuple[np.ndarray, np.ndarray],
    rng: np.random.Generator,
    max_rows: int = PLANTED_ROWS,
) -> PlantedTask:
    """One planted table: the features, groups and people of `problem`, other outcomes and tests.

    `indices` are those of the outcome and of the policy (`fitted_index`, `policy_index`).
    """
    share = TRAIN_SHARE * min(1.0, max_rows / len(problem))
    rest = min(1.0, max_rows / len(problem)) - share
    shares = [share, rest] + ([1 - share - rest] if 1 - share - rest > 1e-9 else [])
    positions = replace(problem, row=np.arange(len(problem)))
    train_rows, test_rows = (part.row for part in positions.split(shares, rng)[:2])
    rows = np.concatenate([train_rows, test_rows])
    group, testing = problem.group[rows], nuisances.testing[rows]
    modelled = true_risk(problem, nuisances.outcome)[rows]
    wanted = float(np.clip(modelled.mean(), 0.02, 0.98))
    fitted, policy = (one[rows] for one in indices)
    index = _unit(fitted)
    if family in _INDICES:
        X = standardized(problem.X[rows][:, _of_outcome(problem)])
        X = np.clip(X[:, X.any(axis=0)], -3, 3)  # columns that vary
        drawn = _INDICES[family](X, rng) if X.size else index
        index = along(drawn, policy, index)
    spread = float(np.clip(np.std(logit(modelled)), *_SPREADS))
    log_odds = spread * (SHARPER if family == "sharpened" else 1.0) * index
    if family == "outcome depends on the group":
        log_odds = log_odds + np.log(GROUP_ODDS) * (group != np.bincount(group).argmax())
    risk = expit(log_odds + _shift(log_odds, wanted))
    y = (rng.random(len(rows)) < risk).astype(float)
    if family == "testing depends on the outcome":
        testing = outcome_dependent(testing, y, group)
    tested = rng.random(len(rows)) < testing
    shown = np.where(rng.random(len(rows)) < WRONG, 1 - y, y) if family == "wrong labels" else y
    planted = problem.subset(rows)
    if planted.imperfect_test is not None:  # planted tests err, as the real ones do
        sensitivity, specificity = planted.imperfect_test.rates.T
        positive = np.where(shown == 1, sensitivity, 1 - specificity)
        shown = (rng.random(len(rows)) < positive).astype(float)
    planted = replace(
        planted, tested=tested, y_obs=np.where(tested, shown, np.nan), known_prevalence=()
    )
    cut = len(train_rows)
    here = np.arange(len(rows))
    parts = planted.subset(here < cut), planted.subset(here >= cut)
    return PlantedTask(*parts, y[cut:].astype(np.int64), risk[cut:])


def along(drawn: np.ndarray, policy: np.ndarray, fitted: np.ndarray) -> np.ndarray:
    """A drawn index [n], mixed with the policy's until it goes along with it as `fitted` does."""
    policy, wanted = _unit(policy), _unit(fitted)
    correlation = float(policy @ wanted) / len(policy)
    rest = _unit(drawn)
    rest = _unit(rest - policy * float(policy @ rest) / len(policy))
    return correlation * policy + np.sqrt(max(1 - correlation**2, 0.0)) * rest


def _unit(index: np.ndarray) -> np.ndarray:
    """With mean 0 and standard deviation 1."""
    return (index - index.mean()) / max(float(index.std()), 1e-12)


def outcome_dependent(testing: np.ndarray, y: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Testing probabilities with the odds of positives multiplied, each group's rate kept."""
    odds = logit(np.clip(testing, 1e-6, 1 - 1e-6)) + np.log(GAMMA) * y
    changed = np.empty(len(testing))
    for code in np.unique(group):
        mine = group == code
        changed[mine] = expit(odds[mine] + _shift(odds[mine], float(testing[mine].mean())))
    return changed


def _some_columns(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Some columns, those that vary among many people rather than those of a rare trait."""
    varies = X.var(axis=0)
    count = min(FEATURES, X.shape[1])
    return X[:, rng.choice(X.shape[1], count, replace=False, p=varies / varies.sum())]


def _smooth(X: np.ndarray, rng: np.random.Generator, waves: int = 12) -> np.ndarray:
    few = _some_columns(X, rng)
    # about one wave over the range of the features taken together
    frequency = rng.normal(size=(few.shape[1], waves)) * 1.5 / np.sqrt(few.shape[1])
    phase = rng.uniform(0, 2 * np.pi, waves)
    return np.cos(few @ frequency + phase) @ rng.normal(size=waves)


def _interactions(X: np.ndarray, rng: np.random.Generator, rules: int = 8) -> np.ndarray:
    few = _some_columns(X, rng)
    z = np.zeros(len(X))
    for _ in range(rules):
        one, other = (few[:, i] for i in rng.integers(few.shape[1], size=2))
        z += rng.normal() * ((one > rng.choice(one)) ^ (other > rng.choice(other)))
    return z


_INDICES = {"smooth": _smooth, "interactions": _interactions}


def _shift(log_odds: np.ndarray, rate: float) -> float:
    """What to add for the mean probability to be `rate`."""
    return float(brentq(lambda a: expit(log_odds + a).mean() - rate, -60, 60))


def _measure(task: PlantedTask, score: np.ndarray) -> tuple[float, float]:
    gap = float("nan")
    # groups too small to have a curve are left out: they would make every gap not estimable
    group = task.test.group
    enough = [
        code
        for code in np.unique(group)
        if np.bincount(task.truth[group == code], minlength=2).min() >= THRESHOLD
    ]
    large = np.isin(group, enough)
    if len(enough) > 1:
        gap = metrics.roc_gap(task.truth[large], score[large], group[large])
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
