"""Where the tested can speak for the untested, and where they cannot.

What is known about an untested person is borrowed from tested people with the same features. Where
hardly anybody like them was tested, there is nobody to borrow from: a weight of 1/probability makes
one tested person stand for hundreds, and a model extrapolates. The distribution of the testing
probabilities shows where that is, Kish's effective sample size what the weighting costs.

Positivity cannot be proved by a model: a fitted probability of 0.02 may be 0.0 in truth. A
well-calibrated model is the least one should ask for.

L. Kish, *Survey Sampling*, 1965. R. K. Crump et al., "Dealing with limited overlap in estimation of
average treatment effects", Biometrika 2009.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dcem.audit.results import EVERYBODY, Calibration, Overlap
from dcem.estimation.influence import FEWEST_PEOPLE, People, Statistic, kish
from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels

HARDLY = 0.01  # a probability of being tested under which "hardly anybody like them was"
SELDOM = 0.05
TOO_MANY = 0.10  # share of people below HARDLY beyond which weighting gives no estimate
FLOOR = HARDLY  # probabilities in weights are taken as at least this
BIN_EDGES = np.array(
    [0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]
)  # finer where probabilities are small


def describe_overlap(
    problem: SelectiveLabels, people: People, probability: np.ndarray
) -> Mapping[str, Overlap]:
    """Everybody, then every group that has people."""
    everyone = np.ones(len(problem), bool)
    parts = {EVERYBODY: everyone}
    if problem.n_groups > 1:
        for code, name in enumerate(problem.group_names):
            mine = problem.group == code
            if mine.any():
                parts[name] = mine
    return {name: _describe(name, problem, people, probability, m) for name, m in parts.items()}


def is_thin(overlap: Overlap) -> bool:
    """Whether weighting, though possible, rests on few of the tested."""
    return overlap.under[SELDOM] > 0.2 or overlap.effective < 0.3 * overlap.tested


def _describe(
    name: str, problem: SelectiveLabels, people: People, probability: np.ndarray, mine: np.ndarray
) -> Overlap:
    inside, weight = probability[mine], people.weight[mine]
    tested = problem.tested & mine
    weights = people.weight[tested] / np.maximum(probability[tested], FLOOR)
    under = {limit: float(weight @ (inside < limit) / weight.sum()) for limit in (HARDLY, SELDOM)}
    effective = kish(weights)
    heavy = np.sort(weights)[::-1][: max(len(weights) // 100, 1)].sum()
    share, _ = np.histogram(inside, BIN_EDGES, weights=weight / weight.sum())
    counted, _ = np.histogram(inside, BIN_EDGES)
    reason = ""
    if tested.sum() < FEWEST_PEOPLE:
        reason = f"fewer than {FEWEST_PEOPLE} of these people were tested"
    elif under[HARDLY] > TOO_MANY:
        reason = (
            f"{100 * under[HARDLY]:.0f} % of these people have a testing probability under "
            f"{100 * HARDLY:g} %"
        )
    elif effective < FEWEST_PEOPLE:
        reason = f"the weighted tests are worth only {effective:.0f} people"
    return Overlap(
        group=name,
        quantiles=tuple(map(float, np.quantile(inside, (0.05, 0.25, 0.5, 0.75, 0.95)))),
        under=under,
        tested=int(tested.sum()),
        effective=effective,
        heaviest=float(heavy / weights.sum()) if len(weights) else float("nan"),
        histogram=np.where(counted >= 10, share, 0.0),
        reason=reason,
    )


def calibrate(
    problem: SelectiveLabels, people: People, probability: np.ndarray, n_bins: int = 10
) -> Calibration:
    """Predicted against observed testing, in bins of about equal size; bins of under ten on a side
    are left out. The slope is that of a logistic regression of testing on the predicted logit."""
    from dcem.metrics import auc

    edges = np.unique(np.quantile(probability, np.linspace(0, 1, n_bins + 1)[1:-1]))
    bin_of = np.searchsorted(edges, probability, side="right")
    points, error, total = [], 0.0, people.weight.sum()
    for number in range(len(edges) + 1):
        here = bin_of == number
        if not here.any():
            continue
        tested = int(problem.tested[here].sum())
        mean = people.mean(probability, here.astype(float)).value
        share = people.proportion(problem.tested, here)
        error += people.weight[here].sum() / total * abs(mean - share.value)
        if min(tested, here.sum() - tested) >= 10:
            points.append((mean, share.value, share.low, share.high))
    columns = np.array(points).T if points else np.empty((4, 0))
    return Calibration(
        predicted=columns[0],
        observed=columns[1],
        low=columns[2],
        high=columns[3],
        slope=_slope(problem.tested, probability, people),
        error=float(error),
        auc=auc(problem.tested, probability, weight=people.weight),
    )


def _slope(tested: np.ndarray, probability: np.ndarray, people: People) -> Estimate:
    """Newton's method for intercept and slope; the interval is clustered by person."""
    from scipy.special import expit, logit

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
