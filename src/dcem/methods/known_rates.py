"""A fitted model moved to a known prevalence: one place for every method and learner.

A model of the tested, m(x), is also one of everybody if features explain who is tested. Where a
known prevalence says that the odds of the untested are gamma times as high
(`estimation.known_rates`), the risk of everybody is

    r(x) = e(x) m(x) + (1 - e(x)) gamma m(x) / (1 + (gamma - 1) m(x)),

with e(x) the probability of a test. Its log-odds differ from those of m by something between 0
(everybody like this is tested) and log gamma (nobody is): people who are seldom tested move most,
so ranks change. This difference, computed for each row from cross-fitted models, its group
included, is learnt as a line in the standardised features and added to the model's log-odds:
prediction needs neither the group nor a model of testing. What is learnt otherwise (the untested
as negatives, as noise, or filled in) is moved alike for all. Last, one more shift makes the mean
risk over the table the known one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from dcem.estimation.folds import person_folds
from dcem.estimation.nuisances import fit_nuisances
from dcem.estimation.outcomes import Unseen, tilted
from dcem.methods.registry import ENTRIES
from dcem.table.known_rates import concerned
from dcem.table.labels import SelectiveLabels

FOLLOWS = ("tested", "grouped", "weighted", "mixed")  # kinds of methods that model m(x)
ROWS = 20_000  # a model of who is tested is fitted to, at most
SCORED = 100_000  # rows whose mean risk is made the known one, at most
RIDGE = 10.0  # rows that would say: no difference
NEAR = 1e-9  # to 0 and 1, that probabilities stay away
FARTHEST = 30.0  # a shift of log-odds


def shift_to_known(estimator: Any, problem: SelectiveLabels, seed: int = 0) -> dict[str, Any]:
    """What moves a fitted model's log-odds: a line in its standardised rows, and its limits."""
    rng = np.random.default_rng(seed)
    difference, rate = _asked_for(problem, seed)
    some = problem
    if len(problem) > SCORED:
        chosen = np.sort(rng.choice(len(problem), SCORED, replace=False))
        some, difference = problem.subset(chosen), difference[chosen]
    standard = estimator.standardized(some.X)
    rows = standard.astype(np.float64)
    weight = some.weights
    line = {"intercept": 0.0, "slope": [0.0] * rows.shape[1], "low": 0.0, "high": 0.0, "shift": 0.0}
    entry = ENTRIES.get(estimator.name)
    if entry is not None and entry.kind in FOLLOWS and np.ptp(difference) > 0:
        intercept, slope = _weighted_line(rows, difference, weight)
        line |= {"intercept": intercept, "slope": slope.tolist()}
        line |= {"low": float(difference.min()), "high": float(difference.max())}
    if estimator.needs_group:
        members = estimator.group_scores(some.X, standard, some.group)
    else:
        members = estimator.members(some.X, standard)

    def above(shift: float) -> float:
        score = estimator.combined(moved(members, rows, line | {"shift": shift}))
        return float(weight @ score / weight.sum()) - rate

    line["shift"] = float(brentq(above, -FARTHEST, FARTHEST, xtol=1e-10))
    return line


def moved(members: np.ndarray, rows: np.ndarray, line: dict[str, Any]) -> np.ndarray:
    """Scores `[members, n]` moved along, given standardised rows `[n, inputs]`."""
    by = line["intercept"] + rows @ np.asarray(line["slope"])
    by = np.clip(by, line["low"], line["high"]) + line["shift"]
    odds = logit(np.clip(np.asarray(members, np.float64), NEAR, 1 - NEAR))
    return expit(odds + by)


def _asked_for(problem: SelectiveLabels, seed: int) -> tuple[np.ndarray, float]:
    """By how much the log-odds of everybody differ from those of the tested [n], and the mean risk.

    Of parts whose rate is not stated the mean risk is the doubly robust estimate.
    """
    nuisances = fit_nuisances(problem, person_folds(problem, 2, seed), seed, max_rows=ROWS)
    unseen = Unseen.of(problem, nuisances.outcome, nuisances.truncated_testing)
    testing, risk = np.clip(nuisances.testing, 0, 1), unseen.risk
    everybody = testing * risk + (1 - testing) * tilted(risk, unseen.tilt)
    weight = problem.weights
    outcome = unseen.outcomes(1.0)
    for one in problem.known_prevalence:  # met already, unless no odds ratio does
        mine = concerned(one, problem.group, problem.group_names)
        if problem.tested[mine].all():
            continue
        outcome[mine] += one.value - weight[mine] @ outcome[mine] / max(weight[mine].sum(), 1e-300)
    rate = float(np.clip(weight @ outcome / weight.sum(), NEAR, 1 - NEAR))
    return logit(everybody) - logit(risk), rate


def _weighted_line(
    rows: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> tuple[float, np.ndarray]:
    """Weighted least squares with a small penalty on the slope."""
    share = weight / weight.mean()
    middle, mean = share @ rows / len(rows), float(share @ target / len(rows))
    centred = rows - middle
    gram = (centred * share[:, None]).T @ centred + RIDGE * np.eye(rows.shape[1])
    slope = np.linalg.solve(gram, centred.T @ (share * (target - mean)))
    return mean - float(middle @ slope), slope
