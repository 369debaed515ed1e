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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan

import numpy as np
from scipy.special import logit

from dcem.estimation.influence import FEWEST_PEOPLE, People, Statistic
from dcem.estimation.outcomes import Unseen, tilted, uncertain
from dcem.estimation.overlap import parts
from dcem.estimation.ranking import RankedScore, least_lead
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import in_tens
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError

LARGEST = 10.0  # no stated strength is taken beyond: hardly anything follows from it
ASSUMPTION = (
    "At equal features, the odds of the outcome of untested people are at most gamma times, and at "
    "least 1/gamma times, those of tested people."
)
ACT, LEAVE, OPEN = "act", "do not act", "cannot say"


def check_strength(gamma: float) -> float:
    """Refuse what cannot be a strength."""
    if not isfinite(gamma) or not 1 <= gamma <= LARGEST:
        raise InputError(
            f"A strength of {gamma:g} in `bounds`: give an odds ratio from 1 (features explain who "
            f"is tested) to {LARGEST:g}, such as 2; its inverse is meant too."
        )
    return float(gamma)


def risk_interval(
    testing: np.ndarray, risk: np.ndarray, gamma: float
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest risk of people [n]: `testing` is e(x), `risk` m(x)."""
    least, most = np.zeros(len(risk)), np.ones(len(risk))
    if not np.isinf(gamma):
        least, most = tilted(risk, 1 / gamma), tilted(risk, gamma)
    seen = testing * risk
    return seen + (1 - testing) * least, seen + (1 - testing) * most


def decide(low: np.ndarray, high: np.ndarray, cut: float) -> np.ndarray:
    """1 where one acts for certain, -1 where one does not, 0 where the interval cannot say [n]."""
    return np.where(low >= cut, 1, np.where(high < cut, -1, 0))


@dataclass(frozen=True)
class Shares:
    """Of people, by whether a decision holds, at each strength [gammas]; they sum to 1."""

    act: np.ndarray
    leave: np.ndarray
    open: np.ndarray


def shares(problem: SelectiveLabels, decided: Sequence[np.ndarray]) -> dict[str, Shares]:
    """Who is decided how, of everybody and of each group; `decided` [n] for each strength.

    People are counted in tens; groups of fewer than thirty have NaN.
    """
    people = People.of(problem)
    found = {}
    for name, mine in parts(problem).items():
        if people.count(mine) < FEWEST_PEOPLE:
            found[name] = Shares(*np.full((3, len(decided)), nan))
            continue
        counted = np.array(
            [[_counted(people, mine & (one == side)) for one in decided] for side in (1, -1)]
        )
        part = counted / people.count(mine)
        found[name] = Shares(part[0], part[1], 1 - part.sum(axis=0))
    return found


def _counted(people: People, rows: np.ndarray) -> float:
    return float(in_tens(np.array([people.count(rows)]))[0])


# -- what it means for a score -------------------------------------------------------------------


def auc_range(ranked: RankedScore, unseen: Unseen, gamma: float) -> tuple[float, float]:
    """The smallest and largest AUC of a score among everybody."""
    everybody = np.ones(len(unseen.y))
    low, high = unseen.outcomes(1 / gamma), unseen.outcomes(gamma)
    ends = (
        ranked.auc(ranked.adversary(low, high, everybody, up), everybody).value
        for up in (False, True)
    )
    least, most = (min(max(end, 0.0), 1.0) for end in ends)
    return least, most


def net_benefit_range(
    acted: np.ndarray, cut: float, unseen: Unseen, people: People, gamma: float
) -> tuple[float, float]:
    """Net benefit per person of acting on `acted` [n], at worst and at best.

    True positives minus false ones that weigh cut / (1 - cut); linear in outcomes, so the worst
    case gives everybody acted on their smallest.
    """
    worth = 1 / (1 - cut)  # y - (1 - y) cut / (1 - cut) = (y - cut) / (1 - cut)
    ends = [
        people.mean(acted * (unseen.outcomes(side) - cut) * worth).value
        for side in (1 / gamma, gamma)
    ]
    return ends[0], ends[1]


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
    by about b v c. A stated gamma can be held against the strongest of these.

    `sources` names the raw column of each feature of `X` [n, d], whose gaps count as the mean.
    """
    names = np.array(list(sources))
    filled = np.where(np.isnan(X), 0.0, X - np.nan_to_num(_mean(X)))
    scale = filled.std(axis=0)
    filled = filled / np.where(scale > 0, scale, 1.0)
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


def _mean(X: np.ndarray) -> np.ndarray:
    known = ~np.isnan(X)
    total: np.ndarray = np.where(known, X, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return total
