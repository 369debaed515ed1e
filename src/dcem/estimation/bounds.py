"""Between which limits does a risk lie, if what is unmeasured is at most so strong?

Let e(x) be the probability of a test and m(x) the risk of *tested* people with features x. Nothing
is known of the untested with the same features but what one is willing to state: that their odds of
the outcome differ from those of the tested by a factor between 1/gamma and gamma,

    1/gamma  <=  odds(y = 1 | x, untested) / odds(y = 1 | x, tested)  <=  gamma.

Then, and only then, the risk of a person with features x, of whom nobody knows yet whether they
will be tested, lies between

    e m + (1 - e) h(m, 1/gamma)   and   e m + (1 - e) h(m, gamma),   h(m, g) = g m / (1 + (g-1) m),

and every value in between is possible: the bounds are sharp. gamma = 1 is the assumption that
features explain testing; without any limit to gamma they are e m and e m + 1 - e (Manski 1989).
`dcem.audit.sensitivity` tilts the outcomes of everybody by the same h; here everyone has a factor
of their own.

The model is that of the untested's odds, as in Robins, Rotnitzky and Scharfstein (2000) and in
Rambachan, Coston and Kennedy (2022), who bound P(y | x, untested) by multiples of
P(y | x, tested); ours bounds the odds, so that 0 and 1 are never passed. Odds ratios are symmetric:
the odds of *being tested* then differ by at most gamma between people with and without the outcome,
at equal features, which is Rosenbaum's (2002) model with the outcome as what is unmeasured. Tan's
(2006) compares P(tested | x, y) with P(tested | x); a bound of gamma here implies his, which allows
somewhat more.

A *decision at a risk c* holds if the whole interval lies on its side of c; otherwise the data, with
what was stated, cannot say.

A. Rambachan, A. Coston and E. Kennedy, "Robust design and evaluation of predictive algorithms under
unobserved confounding", 2022. C. Manski, "Anatomy of the selection problem", Journal of Human
Resources 1989. Z. Tan, "A distributional approach for causal inference using propensity scores",
JASA 2006. P. Rosenbaum, "Observational Studies", 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import nan
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import logit

from dcem.estimation.evaluator import Evaluator
from dcem.estimation.influence import FEWEST_PEOPLE, People, Statistic
from dcem.estimation.outcomes import Unseen, tilted, uncertain
from dcem.estimation.ranking import RankedScore, least_lead
from dcem.metrics.calibration import equal_mass
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import THRESHOLD, in_tens
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError, readable

LARGEST_STRENGTH = 10.0  # no stated strength is taken beyond: hardly anything follows from it
STRENGTHS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
TENTH = 0.1  # of the people, on whom one acts where no threshold is given
BOUNDS_ASSUMPTION = (
    "At equal features, the odds of the outcome of untested people are at most gamma times, and at "
    "least 1/gamma times, those of tested people."
)
FROM_KNOWN = " Where a prevalence is known, gamma is relative to the odds that match it instead."
ACT, LEAVE, OPEN = "act", "do not act", "cannot say"


def check_strength(gamma: float) -> float:
    """Refuse what cannot be a strength."""
    if not (isinstance(gamma, Real) and 1 <= gamma <= LARGEST_STRENGTH):
        raise InputError(
            "`bounds` must be an odds ratio from 1 (features explain who is tested) to "
            f"{LARGEST_STRENGTH:g}, such as 2, which covers its inverse too; got {readable(gamma)}."
        )
    return float(gamma)


def starting_odds(known: bool) -> str:
    """The odds of untested people that a strength counts from, in words."""
    if known:
        return "those that match the known prevalence"
    return "those of tested people with the same features"


def risk_interval(
    testing: np.ndarray, risk: np.ndarray, gamma: float, tilt: np.ndarray | float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest risk of people [n]: `testing` is e(x), `risk` m(x).

    Where a prevalence is known, the odds ratio of the untested that meets it (`tilt`) takes the
    place of 1, and the limits lie around it.
    """
    least, most = np.zeros(len(risk)), np.ones(len(risk))
    if not np.isinf(gamma):
        least, most = tilted(risk, tilt / gamma), tilted(risk, tilt * gamma)
    seen = testing * risk
    return seen + (1 - testing) * least, seen + (1 - testing) * most


def counts_from_known(unseen: Unseen) -> bool:
    """Whether strengths count from the odds that meet a known prevalence, for some at least."""
    return unseen.known is not None and bool(unseen.known.met)


def risk_limits_of_table(evaluator: Evaluator, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest risk of the people of a table, by models of other people [n].

    People out of reach of the tests have the limits 0 and 1.
    """
    unseen = evaluator.unseen
    low, high = risk_interval(evaluator.nuisances.testing, unseen.risk, gamma, unseen.tilt)
    within = evaluator.reach.within
    return np.where(within, low, 0.0), np.where(within, high, 1.0)


def decide(low: np.ndarray, high: np.ndarray, cut: float) -> np.ndarray:
    """1 where one acts for certain, -1 where one does not, 0 where the interval cannot say [n]."""
    at = low.dtype.type(cut)  # a risk that was written with fewer digits is compared with as many
    return np.where(low >= at, 1, np.where(high < at, -1, 0))


@dataclass(frozen=True)
class Shares:
    """Of people, by whether a decision holds, at each strength [gammas]; they sum to 1."""

    act: np.ndarray
    leave: np.ndarray
    open: np.ndarray


@dataclass(frozen=True)
class Band:
    """People in the order of their risk, in bins of equal size [bins]: means of their intervals."""

    risk: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Bounds:
    """For whom a decision holds, whatever the unmeasured of a strength may be."""

    stated: float  # the strength that somebody stated
    cut: float  # the risk from which on one acts
    gammas: np.ndarray  # strengths, rising; the stated one is among them
    shares: Mapping[str, Shares]  # EVERYBODY, then groups
    bands: Mapping[float, Band]  # strength -> everybody's intervals
    columns: Mapping[str, float] = field(default_factory=dict)  # as strong as a measured column
    known: bool = False  # whether strengths count from the odds that meet a known prevalence

    @property
    def at(self) -> int:
        """The place of the stated strength."""
        return int(np.abs(self.gammas - self.stated).argmin())


def bound_decisions(
    problem: SelectiveLabels,
    risk: np.ndarray,
    interval: Callable[[float], tuple[np.ndarray, np.ndarray]],
    gamma: float,
    cut: float | None = None,
    columns: Mapping[str, float] | None = None,
    *,
    share: float = TENTH,
    known: bool = False,
) -> Bounds:
    """For whom the decision at a risk holds.

    Parameters
    ----------
    problem
        Of whom it is told.
    risk
        Their risk at an odds ratio of 1 [n].
    interval
        From a strength to their least and largest risk [n].
    gamma
        The stated strength.
    cut
        The risk from which on one acts; None: that which a `share` of the people exceed.
    columns
        What `strengths_of_columns` found.
    known
        Whether strengths count from the odds that meet a known prevalence.
    """
    gamma = check_strength(gamma)
    weight = problem.weights
    if cut is None:
        how: Any = {} if problem.weight is None else {"weights": weight, "method": "inverted_cdf"}
        cut = float(np.quantile(risk, 1 - share, **how))
    gammas = np.unique([*STRENGTHS, gamma])
    found = {float(one): interval(float(one)) for one in gammas}
    place = equal_mass(risk, weight, int(np.clip(len(risk) // 50, 1, 20)))
    return Bounds(
        gamma,
        cut,
        gammas,
        shares(problem, [decide(low, high, cut) for low, high in found.values()]),
        {
            one: Band(*(_means(values, place, weight) for values in (risk, *found[one])))
            for one in sorted({1.0, gamma})
        },
        dict(columns or {}),
        known,
    )


def bound_table(
    evaluator: Evaluator,
    gamma: float,
    cut: float | None = None,
    columns: Mapping[str, float] | None = None,
    share: float = TENTH,
) -> Bounds:
    """`bound_decisions` of the people of a table, by models of other people."""
    unseen = evaluator.unseen
    risk, _ = risk_interval(evaluator.nuisances.testing, unseen.risk, 1.0, unseen.tilt)
    limits = partial(risk_limits_of_table, evaluator)
    known = counts_from_known(unseen)
    return bound_decisions(
        evaluator.problem, risk, limits, gamma, cut, columns, share=share, known=known
    )


def _means(values: np.ndarray, place: np.ndarray, weight: np.ndarray) -> np.ndarray:
    mass = np.bincount(place, weight)
    return np.bincount(place, weight * values)[mass > 0] / mass[mass > 0]


def shares(problem: SelectiveLabels, decided: Sequence[np.ndarray]) -> dict[str, Shares]:
    """Who is decided how, of everybody and of each group; `decided` [n] for each strength.

    Rows are counted in tens, those of fewer than ten people as none; groups of fewer than thirty
    people have NaN.
    """
    people = People.of(problem)

    def share(rows: np.ndarray, mine: np.ndarray) -> float:
        if people.count(rows) < THRESHOLD:
            return 0.0
        counted = in_tens(rows.sum(keepdims=True))[0] / rows.sum()
        return float(min(counted * people.weight[rows].sum() / people.weight[mine].sum(), 1.0))

    found = {}
    for name, mine in problem.parts().items():
        if people.count(mine) < FEWEST_PEOPLE:
            found[name] = Shares(*np.full((3, len(decided)), nan))
            continue
        act, leave = (
            np.array([share(mine & (one == side), mine) for one in decided]) for side in (1, -1)
        )
        found[name] = Shares(act, leave, np.maximum(1 - act - leave, 0.0))
    return found


# -- what it means for a score -------------------------------------------------------------------


def extreme_auc(
    ranked: RankedScore,
    unseen: Unseen,
    gamma: float,
    up: bool,
    among: np.ndarray,
    same_sum: bool = False,
) -> Statistic:
    """The largest (`up`) or smallest AUC of a score among some rows (a mask).

    `same_sum`: how common the outcome is among them is known, and stays.
    """
    low, high = unseen.outcomes(1 / gamma), unseen.outcomes(gamma)
    total = unseen.outcomes(1.0) if same_sum else None
    return ranked.auc(ranked.adversary(low, high, among, up, total), among)


def auc_range(
    ranked: RankedScore,
    unseen: Unseen,
    gamma: float,
    among: np.ndarray | None = None,
    same_sum: bool = False,
) -> tuple[float, float]:
    """The smallest and largest AUC of a score, among those who have weight or some of them."""
    mine = np.ones(len(unseen.y), bool) if among is None else among
    least, most = (
        min(max(extreme_auc(ranked, unseen, gamma, up, mine, same_sum).value, 0.0), 1.0)
        for up in (False, True)
    )
    return least, most


def auc_limits(
    ranked: RankedScore, unseen: Unseen, people: People, gamma: float
) -> tuple[float, float]:
    """The same of all rows, as far out as sampling may have put either end."""
    everybody = np.ones(len(unseen.y), bool)

    def at(one: Unseen, up: bool) -> Statistic:
        return extreme_auc(ranked, one, gamma, up, everybody)

    low, high = (
        people.interval(uncertain(partial(at, up=up), unseen)).clipped() for up in (False, True)
    )
    return low.low, high.high


def net_benefit_limits(
    acted: np.ndarray, cut: float, unseen: Unseen, people: People, gamma: float
) -> tuple[float, float]:
    """Net benefit per person of acting on `acted` [n], at worst and at best, likewise.

    True positives minus false ones that weigh cut / (1 - cut); linear in outcomes, so the worst
    case gives everybody acted on their smallest.
    """

    def at(one: Unseen, side: float) -> Statistic:
        # y - (1 - y) cut / (1 - cut) = (y - cut) / (1 - cut)
        return people.mean(acted * (one.outcomes(side) - cut) / (1 - cut))

    low, high = (
        people.interval(uncertain(partial(at, side=side), unseen)) for side in (1 / gamma, gamma)
    )
    return low.low, high.high


def lead(
    first: RankedScore, second: RankedScore, unseen: Unseen, people: People, gamma: float
) -> Estimate:
    """The least by which the first score's AUC exceeds the second's, with its interval."""
    everybody = np.ones(len(unseen.y))

    def at(one: Unseen) -> Statistic:
        low, high = one.outcomes(1 / gamma), one.outcomes(gamma)
        worst = least_lead(first, second, low, high)
        return first.auc(worst, everybody) - second.auc(worst, everybody)

    return people.interval(uncertain(at, unseen))


# -- how strong is strong? -----------------------------------------------------------------------


def strengths_of_columns(
    X: np.ndarray, sources: Iterable[str], testing: np.ndarray, risk: np.ndarray
) -> Mapping[str, float]:
    """The gamma that each raw column would cause if it had not been measured.

    At equal other columns, people who differ in the hidden one differ in m and in e. Let
    logit m and logit e be linear in the columns, with slopes b and c, and the hidden column have
    the variance v given the others: then the log-odds of the tested exceed those of the untested
    by about b v c. A stated gamma can be compared with the strongest of these.

    `sources` names the raw column of each feature of `X` [n, d], whose gaps count as the mean.
    """
    names = np.array(list(sources))
    filled = standardized(X)
    covariance = filled.T @ filled / len(X) + 1e-6 * np.eye(X.shape[1])
    logits = [logit(np.clip(one, 1e-4, 1 - 1e-4)) for one in (risk, testing)]
    slopes = np.linalg.solve(
        covariance, filled.T @ np.stack([one - one.mean() for one in logits], axis=1) / len(X)
    )
    precision = np.linalg.inv(covariance)
    found = {}
    for name in dict.fromkeys(names.tolist()):
        own = names == name
        left = np.linalg.inv(precision[np.ix_(own, own)])  # its covariance given the others
        found[name] = float(np.exp(abs(slopes[own, 0] @ left @ slopes[own, 1])))
    return found


def standardized(X: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and standard deviation 1 [n, d]; gaps, and constant columns, at 0."""
    known = ~np.isnan(X)
    mean = np.where(known, X, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, X - mean, 0.0)
    scale = filled.std(axis=0)
    varies = scale > 1e-12 * np.maximum(1.0, np.abs(mean))  # less is rounding
    return np.where(varies, filled / np.where(varies, scale, 1.0), 0.0)
