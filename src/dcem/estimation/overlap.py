"""Could everybody have been tested? Where not, nothing about the untested can be estimated.

Population estimates let tested people stand for people like them. Where people are hardly ever
tested there is nobody to stand for them, and any number is an extrapolation by the models, with an
interval that does not know it. So population estimates are refused, with the reason, if

* more than `MOST_HARDLY_EVER` of the people have an estimated probability of a test under `FLOOR`,
* in the tenth, fifth, three tenths or half of people least likely to be tested, so few were that
  the 95 % upper limit of their rate lies under `FLOOR` (models that smooth predict no such rates),
* the effective number of tested people, (sum w)^2 / sum w^2 of the weights w = 1/e, is under
  `FEWEST_EFFECTIVE`,
* or fewer than `FEWEST` people were tested positive, or negative.

The same rules hold for each group's own estimates, with the group's people. Between plenty and
nothing the intervals widen by themselves, as the weights do.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from dcem.estimation.nuisances import FLOOR
from dcem.estimation.results import Histogram, Overlap
from dcem.table.labels import SelectiveLabels

MOST_HARDLY_EVER = 0.10
LEAST_LIKELY = (0.1, 0.2, 0.3, 0.5)  # shares of people that are looked at
FEWEST_EFFECTIVE = 30
FEWEST = 10  # people of a class: intervals, and the privacy of the few, need as many


def assess(problem: SelectiveLabels, testing: np.ndarray) -> Overlap:
    """Overlap of the whole table, from out-of-fold probabilities of a test [n]."""
    everybody = np.ones(len(problem), bool)
    reason = too_few(problem, everybody) or no_overlap(problem, testing, everybody)
    share, _ = effective(problem, testing, everybody)
    return Overlap(
        estimable=not reason,
        reason=reason,
        effective_share=share,
        hardly_ever=hardly_ever(problem, testing, everybody),
        floor=FLOOR,
        probability=histogram(testing, problem, everybody),
    )


def too_few(problem: SelectiveLabels, rows: np.ndarray, truth: np.ndarray | None = None) -> str:
    """Why the rows cannot be ranked by what was seen of them, or an empty text."""
    person = problem.person
    y, seen = (problem.y_obs, "tested ") if truth is None else (truth, "")
    for value, name in ((1, "positive"), (0, "negative")):
        people = len(np.unique(person[rows & (y == value)]))
        if people < FEWEST:
            count = "nobody is" if people == 0 else f"fewer than {FEWEST} people are"
            return f"{count} {seen}{name}"
    return ""


def no_overlap(problem: SelectiveLabels, testing: np.ndarray, rows: np.ndarray) -> str:
    """Why the tested cannot stand for everybody among these rows, or an empty text."""
    share = hardly_ever(problem, testing, rows)
    if share > MOST_HARDLY_EVER:
        return (
            f"no overlap: {100 * share:.0f} % of people had a chance of under "
            f"{100 * FLOOR:g} % of being tested"
        )
    for part in LEAST_LIKELY:
        if _upper_rate(problem.tested[rows], testing[rows], part) < FLOOR:
            return (
                f"no overlap: of the {100 * part:.0f} % of people least likely to be tested, under "
                f"{100 * FLOOR:g} % were"
            )
    _, people = effective(problem, testing, rows)
    if people < FEWEST_EFFECTIVE:
        return f"hardly any overlap: the tested stand for the rest like only {people:.0f} people"
    return ""


def hardly_ever(problem: SelectiveLabels, testing: np.ndarray, rows: np.ndarray) -> float:
    """Share of people whose probability of a test is under `FLOOR`."""
    weight = _weight(problem)[rows]
    return float(np.average(testing[rows] < FLOOR, weights=weight)) if weight.any() else 0.0


def _upper_rate(tested: np.ndarray, testing: np.ndarray, part: float) -> float:
    """95 % upper limit (Poisson) of the testing rate among those least likely to be tested."""
    count = int(part * len(tested))
    if count == 0:
        return 1.0
    least = np.argpartition(testing, count - 1)[:count]
    return float(chi2.ppf(0.95, 2 * (tested[least].sum() + 1)) / 2 / count)


def effective(
    problem: SelectiveLabels, testing: np.ndarray, rows: np.ndarray
) -> tuple[float, float]:
    """Effective number of tested people over the number tested, and the number itself."""
    used = rows & problem.tested
    weight = (_weight(problem) / np.maximum(testing, FLOOR))[used]
    if not weight.any():
        return 0.0, 0.0
    a_person = np.bincount(np.unique(problem.person[used], return_inverse=True)[1], weight)
    number = float(a_person.sum() ** 2 / (a_person @ a_person))
    return number / len(a_person), number


def histogram(
    values: np.ndarray, problem: SelectiveLabels, rows: np.ndarray, n_bins: int = 20
) -> Histogram:
    """Shares of the rows by a probability, group by group; bins of under ten are shown empty."""
    edges = np.linspace(0, 1, n_bins + 1)
    shares = {}
    for code, name in enumerate(problem.group_names):
        mine = values[rows & (problem.group == code)]
        counts = np.histogram(mine, edges)[0]
        if counts.sum() >= FEWEST:
            shares[name] = np.where(counts >= FEWEST, counts, 0) / counts.sum()
    return Histogram(edges, shares)


def _weight(problem: SelectiveLabels) -> np.ndarray:
    return np.ones(len(problem)) if problem.weight is None else problem.weight
