"""Are the models right that all else relies on? Two looks at them, both out of fold.

*Calibration*: do predicted probabilities of being tested happen that often? Every number that
weights by the probability of a test relies on it. A model that is calibrated may still be wrong;
one that is not is wrong.

*Residuals*: if a model has learnt all that the features tell, nothing can predict its residuals
from them. Trees try, on other people than they are judged by. Their covariance with the residuals,
squared and over both variances, is the share of the residual variance that the model has left to be
found. A share near zero proves nothing, since trees may miss it too; one that is clearly above zero
says that differences at equal features, and estimates for everybody, may be off by more than their
intervals.
"""

from __future__ import annotations

from math import copysign, nan

import numpy as np

from dcem.audit.results import Calibration
from dcem.estimation.cross_fitting import Features, draw_rows
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.influence import People, Z
from dcem.estimation.measures import calibration_slope
from dcem.estimation.outcomes import Masses
from dcem.metrics import auc
from dcem.metrics.calibration import equal_mass
from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels

BINS = 10
ROWS = 20_000
TREES = 60


def calibrate(problem: SelectiveLabels, people: People, probability: np.ndarray) -> Calibration:
    """Predicted against observed testing, in ten parts at most; and the slope of a logistic
    regression of testing on the predicted logit."""
    part = equal_mass(probability, people.weight, BINS)
    size, off = (
        np.bincount(part, people.weight * value, minlength=BINS)
        for value in (np.ones(len(problem)), problem.tested - probability)
    )
    spread = people.weight**2 * probability * (1 - probability)
    by_chance = np.sqrt(2 / np.pi * np.bincount(part, spread, minlength=BINS))  # E |normal|
    tests = problem.tested.sum()
    everybody = np.ones(len(problem), bool)
    slope = Estimate(nan, reason="all predicted probabilities are equal")
    if np.ptp(probability) > 1e-9:
        tested = people.weight * problem.tested
        slope = people.interval(
            calibration_slope(probability, Masses(tested, people.weight - tested))
        )
    predicted, observed, low, high = people.rates(problem.tested, probability, everybody, part)
    return Calibration(
        predicted=predicted,
        observed=observed,
        low=low,
        high=high,
        slope=slope,
        error=float(np.abs(off).sum() / size.sum()),
        error_by_chance=float(by_chance.sum() / size.sum()),
        auc=auc(problem.tested, probability, weight=people.weight),
        auc_by_chance=0.5 + Z * float(np.sqrt((1 / tests + 1 / (len(problem) - tests)) / 12)),
    )


def models_leave(
    evaluator: Evaluator, enough: bool, rng: np.random.Generator, *, shared: bool = True
) -> dict[str, Estimate]:
    """What the residuals of each model still know.

    `enough`: outcomes were modelled. `shared`: the features do not determine the groups; if they
    do, nothing rests on the model of the group.
    """
    problem, nuisances = evaluator.problem, evaluator.nuisances
    X = Features.of(problem).take(np.arange(len(problem)))
    asked = {"who is tested": (X, problem.tested - nuisances.testing)}
    if enough:
        asked["what a test would show"] = X, problem.y_obs - nuisances.outcome
    if nuisances.membership is not None and shared:
        largest = int(np.bincount(problem.group).argmax())
        belongs = (problem.group == largest) - nuisances.membership[:, largest]
        asked["the group"] = problem.X, belongs
    return {
        name: left_over(seen, residual, evaluator.fold, evaluator.people, rng)
        for name, (seen, residual) in asked.items()
    }


def left_over(
    X: np.ndarray, residual: np.ndarray, fold: np.ndarray, people: People, rng: np.random.Generator
) -> Estimate:
    """Share of the variance of `residual` [n] that trees predict from `X` [n, d], out of fold.

    `X` is what the model saw, `residual` what it left, NaN for rows that are not asked.
    """
    import lightgbm

    rows = draw_rows(np.flatnonzero(np.isfinite(residual)), ROWS, rng)
    if len(rows) < 200 or residual[rows].std() == 0:
        return Estimate(nan, reason="too few rows to check")
    settings = {
        "objective": "regression",
        "num_leaves": 8,
        "learning_rate": 0.1,
        "min_data_in_leaf": 50,
        "lambda_l2": 1.0,
        "max_bin": 63,
        "num_threads": 1,
        "verbose": -1,
        "seed": int(rng.integers(2**31)),
        "deterministic": True,
        "force_row_wise": True,
    }
    guess = np.zeros(len(rows))
    for number in np.unique(fold[rows]):
        out = fold[rows] == number
        if out.all():
            return Estimate(nan, reason="too few rows to check")
        train = lightgbm.Dataset(X[rows[~out]], residual[rows[~out]], params=settings)
        trees = lightgbm.train(settings, train, TREES, keep_training_booster=True)  # no copy
        guess[out] = trees.predict(X[rows[out]])
    person = None if people.person is None else people.person[rows]
    some = People(people.weight[rows], person, people.n_people)
    both = guess - guess.mean(), residual[rows] - residual[rows].mean()
    scale = float(both[0].std() * both[1].std())
    if scale == 0:
        return Estimate(0.0, 0.0, 0.0)
    correlation = some.mean(both[0] * both[1] / scale)
    found = some.interval(correlation)

    def share(r: float) -> float:  # the sign stays: what is predicted wrongly is not known
        return copysign(min(r * r, 1.0), r)

    return Estimate(share(found.value), share(found.low), share(found.high))
