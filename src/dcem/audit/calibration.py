"""Do predicted probabilities of being tested happen that often? Asked out of fold.

Every number that weights by the probability of a test leans on it. A model that is calibrated may
still be wrong; one that is not is wrong.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from dcem.audit.results import Calibration
from dcem.estimation.bins import equal_mass, rates
from dcem.estimation.influence import People, Statistic
from dcem.metrics import auc
from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels

BINS = 10


def calibrate(problem: SelectiveLabels, people: People, probability: np.ndarray) -> Calibration:
    """Predicted against observed testing, in ten parts; and the slope of a logistic regression of
    testing on the predicted logit."""
    part = equal_mass(probability, people.weight, BINS)
    size, off = (
        np.bincount(part, people.weight * value, minlength=BINS)
        for value in (np.ones(len(problem)), problem.tested - probability)
    )
    columns = rates(people, problem.tested, probability, np.ones(len(problem), bool), part)
    return Calibration(
        predicted=columns[0],
        observed=columns[1],
        low=columns[2],
        high=columns[3],
        slope=_slope(problem.tested, probability, people),
        error=float(np.abs(off).sum() / size.sum()),
        auc=auc(problem.tested, probability, weight=people.weight),
    )


def _slope(tested: np.ndarray, probability: np.ndarray, people: People) -> Estimate:
    """Newton's method for intercept and slope; the interval is clustered by person."""
    design = np.stack([np.ones(len(tested)), logit(probability)])  # [2, n]
    if np.ptp(design[1]) < 1e-9:
        return Estimate(np.nan, reason="all predicted probabilities are equal")
    at = np.array([0.0, 1.0])
    for _ in range(25):
        fitted = expit(at @ design)
        curve = (design * (people.weight * fitted * (1 - fitted))) @ design.T
        step = np.linalg.solve(curve, design @ (people.weight * (tested - fitted)))
        at = at + step
        if np.abs(step).max() < 1e-8:
            break
    influence = np.linalg.solve(curve, design * (people.weight * (tested - expit(at @ design))))[1]

    return people.interval(Statistic(float(at[1]), influence))
