"""What the residuals of a model still know: a check of models that everything else leans on.

If a model has learnt all that the features tell, nothing can predict its residuals from them. Trees
try, on other people than they are judged by. Their covariance with the residuals, squared and over
both variances, is the share of the residual variance that the model has left to be found. A share
near zero proves nothing, since trees may miss it too; one that is clearly above zero says that
differences at equal features, and estimates for everybody, may be off by more than their intervals.
"""

from __future__ import annotations

from math import copysign, nan

import numpy as np

from dcem.estimation.influence import People
from dcem.metrics.estimate import Estimate

ROWS = 20_000
TREES = 60


def left_over(
    X: np.ndarray, residual: np.ndarray, fold: np.ndarray, people: People, rng: np.random.Generator
) -> Estimate:
    """Share of the variance of `residual` [n] that trees predict from `X` [n, d], out of fold.

    Parameters
    ----------
    X
        What the model saw.
    residual
        Seen minus predicted; NaN for rows that are not asked.
    fold
        The fold of each row [n]; a person's rows in one fold.
    people
        Of the rows.
    rng
        Draws the rows of large tables.
    """
    import lightgbm

    rows = np.flatnonzero(np.isfinite(residual))
    if len(rows) > ROWS:
        rows = np.sort(rng.choice(rows, ROWS, replace=False))
    if len(rows) < 200 or residual[rows].std() == 0:
        return Estimate(nan, reason="too few rows to look")
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
            return Estimate(nan, reason="too few rows to look")
        train = lightgbm.Dataset(X[rows[~out]], residual[rows[~out]], params=settings)
        guess[out] = lightgbm.train(settings, train, TREES).predict(X[rows[out]])
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
