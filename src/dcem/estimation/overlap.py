"""Whom the tests can represent, and whom they cannot: one rule for audit and comparison.

What is known of an untested person is borrowed from tested people like them. Where hardly anybody
was tested there is nobody to borrow from: one test would represent hundreds, a model extrapolates,
and no interval knows it. How rare is too rare depends on the table. In a random sample of .8 % of
40,000 people everybody is equally likely to be tested, and nothing is wrong with it; where half of
the people are tested, a corner with a chance of .8 % is lost. So people are judged against the mean
rate, and by how many tests there are to represent them. Out of reach are
the people least likely to be tested, as long as there are fewer than `FEW` tests among all of them
and the upper limit of their rate stays under `RARE` of the mean rate (95 %, by Poisson's
distribution).

Who is least likely is asked of the mixed model of testing and of each kind of model by itself
(trees see the edges of a *hole* where nobody is tested, which a smooth model rounds off). None of
them has seen the tests that are counted, so what they point out is confirmed by other people than
it was learnt from.

Where more than `MOST_LOST` of the people are out of reach, no number is given for everybody:
estimates are about the people within reach (Crump et al. 2009), and for the rest the limits that
assume nothing. Nothing is estimated at all where too little is within reach: under `LEAST_REACH` of
the people, or fewer than 30 tested, or tests whose weights make them count like fewer than 30.

What the rule was chosen by is recorded in `experiments/coverage_audit.py`. Positivity cannot be
proved: a fitted probability of .02 may be 0 in truth.

L. Kish, *Survey Sampling*, 1965 (effective sample size). R. K. Crump et al., "Dealing with limited
overlap in estimation of average treatment effects", Biometrika 2009. M. L. Petersen et al.,
"Diagnosing and responding to violations in the positivity assumption", Statistical Methods in
Medical Research 2012.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from dcem.estimation.influence import FEWEST_PEOPLE, FEWEST_TESTED, People, kish
from dcem.estimation.nuisances import truncated
from dcem.estimation.results import Histogram, Overlap
from dcem.metrics.calibration import equal_mass
from dcem.table.disclosure import in_tens
from dcem.table.labels import SelectiveLabels
from dcem.text import percent

RARE = 0.1  # of the mean rate: people tested more seldom, and by few tests, are out of reach
FEW = 30  # tests that are too few to represent a part of the people
MOST_LOST = 0.02  # share of people out of reach up to which a number is still one for everybody
LEAST_REACH = 0.5  # share of people within reach under which nothing is estimated
EVEN = 0.2  # an effective sample size of this share of the tests: if it is small, they are few
HARDLY, SELDOM = 0.01, 0.05  # probabilities of a test that are counted, for a picture of it
BIN_EDGES = np.array(
    [0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]
)  # finer where probabilities are small


@dataclass(frozen=True)
class Reach:
    """Whom the tests represent."""

    overlap: Mapping[str, Overlap]  # everybody, then each group that has people
    within: np.ndarray  # [n] rows within reach; all of them where (almost) everybody is


def assess(
    problem: SelectiveLabels,
    testing: np.ndarray,
    others: Iterable[np.ndarray] = (),
    *,
    known: bool = False,
) -> Reach:
    """Overlap of a table, from out-of-fold probabilities of a test.

    Parameters
    ----------
    problem
        The rows.
    testing
        P(tested | features, group) of each row [n].
    others
        The same by other models [n] each, to find people whom the first overlooks.
    known
        Whether these probabilities are those of a design: then only people without any chance are
        out of reach.
    """
    people, masks = People.of(problem), problem.parts()
    lost = testing <= 0
    if not known:
        for one in (testing, *others):
            for mine in masks.values():
                lost = lost | least_likely(one, problem.tested, mine)
    if people.weight @ lost <= MOST_LOST * people.weight.sum():
        lost = np.zeros(len(problem), bool)
    overlap = {
        name: _describe(name, problem, people, testing, mine, mine & ~lost, known)
        for name, mine in masks.items()
    }
    return Reach(overlap, ~lost)


def least_likely(testing: np.ndarray, tested: np.ndarray, mine: np.ndarray) -> np.ndarray:
    """Those of a part who are least likely to be tested, as far as too few tests represent them."""
    rows = np.flatnonzero(mine)
    rows = rows[np.argsort(testing[rows], kind="stable")]
    seen = np.cumsum(tested[rows])
    ends = np.flatnonzero(np.append(np.diff(testing[rows]) > 0, True))  # equals stay together
    ends = ends[seen[ends] < FEW]
    rare = ends[_upper_rate(seen[ends], ends + 1) < RARE * tested[mine].mean()]
    lost = np.zeros(len(testing), bool)
    if len(rare):
        lost[rows[: rare[-1] + 1]] = True
    return lost


def _upper_rate(tests: np.ndarray, people: np.ndarray) -> np.ndarray:
    """95 % upper limit of a rate, by Poisson's distribution."""
    return chi2.ppf(0.95, 2 * (tests + 1)) / 2 / people


def _describe(
    name: str,
    problem: SelectiveLabels,
    people: People,
    testing: np.ndarray,
    mine: np.ndarray,
    within: np.ndarray,
    known: bool,
) -> Overlap:
    weight = people.weight[mine]
    total = max(float(weight.sum()), 1e-300)
    reach = float(people.weight @ within) / total
    used = within & problem.tested
    chance = testing if known else truncated(testing, problem.tested[mine].mean())
    weights = people.weight[used] / chance[used]
    if people.person is not None and len(weights):
        weights = np.bincount(people.person[used], weights)
        weights = weights[weights > 0]
    effective = kish(weights)
    heavy = np.sort(weights)[::-1][: max(len(weights) // 100, 1)].sum()
    shares, _ = np.histogram(testing[mine], BIN_EDGES, weights=weight / total)
    counted, _ = np.histogram(testing[mine], BIN_EDGES)
    reason = ""
    if people.count(problem.tested & mine) < FEWEST_PEOPLE:
        reason = f"fewer than {FEWEST_PEOPLE} of these people were tested"
    elif not weight.any():
        reason = "all of their weights are 0"
    elif reach < LEAST_REACH:
        reason = f"no overlap: {percent(1 - reach)} of people are out of reach of the tests"
    elif effective < FEWEST_PEOPLE:
        few = "too few tests" if effective >= EVEN * len(weights) else "hardly any overlap"
        reason = f"{few}: weighted tests have an effective sample size of only {effective:.0f}"
    return Overlap(
        group=name,
        reach=reach,
        quantiles=tuple(map(float, np.quantile(testing[mine], (0.05, 0.25, 0.5, 0.75, 0.95)))),
        under={at: float(weight @ (testing[mine] < at)) / total for at in (HARDLY, SELDOM)},
        tested=int((problem.tested & mine).sum()),
        effective=effective,
        heaviest=float(heavy / weights.sum()) if weights.any() else float("nan"),
        histogram=shares * in_tens(counted) / np.maximum(counted, 1),
        reason=reason,
    )


def too_few(problem: SelectiveLabels, rows: np.ndarray, truth: np.ndarray | None = None) -> str:
    """Why the rows cannot be ranked by what was seen of them, or an empty text."""
    person, rows = problem.person, rows & (problem.weights > 0)
    y, seen = (problem.y_obs, "tested ") if truth is None else (truth, "")
    for value, name in ((1, "positive"), (0, "negative")):
        people = len(np.unique(person[rows & (y == value)]))
        if people < FEWEST_TESTED:  # not even that it is nobody: a group may be one person
            return f"fewer than {FEWEST_TESTED} people are {seen}{name}"
    return ""


def histogram(values: np.ndarray, problem: SelectiveLabels, rows: np.ndarray) -> Histogram:
    """Shares of the rows by a probability, group by group; counted in tens (`in_tens`)."""
    edges = np.linspace(0, 1, 21)
    shares = {}
    for name, mine in problem.by_group().items():
        counts = np.histogram(values[rows & mine], edges)[0]
        if counts.sum() >= FEWEST_TESTED:
            shares[name] = in_tens(counts) / counts.sum()
    return Histogram(edges, shares)


def rates_by_score(
    problem: SelectiveLabels, people: People, score: np.ndarray, n_bins: int
) -> dict[str, np.ndarray]:
    """Share tested by a score, in up to `n_bins` parts (`People.rates`): group by group."""
    part = equal_mass(score, people.weight, n_bins)
    found = {
        name: people.rates(problem.tested, score, mine, part)
        for name, mine in problem.by_group().items()
    }
    return {name: points for name, points in found.items() if points.size}
