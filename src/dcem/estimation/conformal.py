"""Sets of outcomes that hold the true one with a stated probability, whatever the model is worth.

A person's set holds a label if its predicted probability is not among the lowest that people with
that label had (Vovk, Gammerman and Shafer 2005; for each label by itself, so that a rare outcome is
not simply left out of every set). "positive", "negative", "either"; "neither" where the person is
unlike those of both labels.

Among the *tested* that needs no assumption but that people are exchangeable. For *everybody* the
tested stand for others: a person with features x and label y counts

    w(x, y) = P(x, y) / P(x, y | tested)  ~  (e + (1 - e) r) / e

with r = P(y | x, untested) / P(y | x, tested), which is 1 if features explain testing (Tibshirani,
Barber, Candès and Ramdas 2019). If what is unmeasured has the strength gamma, r lies between limits
that follow from m(x), and the sets are made for the worst weights within them: the smallest below
the cut, the largest above (Jin, Ren and Candès 2023). Where tests err, each result counts for both
labels, by its unbiased stand-in of the truth (Sesia, Wang and Tong 2024).

Sets that hold the outcome of nine in ten people may do so of six in ten in a group. Where groups
are known, cuts are made within each (Mondrian), and coverage is that of every group; where a group
has too few tests of a label, its people keep it. Probabilities e and m are estimated by models
that have not seen the person, and so is the coverage, on people whose labels did not make the cut.

V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World", 2005. R. Tibshirani
et al., "Conformal prediction under covariate shift", NeurIPS 2019. Y. Jin, Z. Ren and E. Candès,
"Sensitivity analysis of individual treatment effects: a robust conformal inference approach", PNAS
2023. M. Sesia, Y. Wang and X. Tong, "Adaptive conformal classification with noisy labels", Journal
of the Royal Statistical Society B 2024.
"""

from __future__ import annotations

import numpy as np

from dcem.estimation.outcomes import tilted

LEVEL = 0.9
SETS = ("neither", "negative", "positive", "either")  # by 1 * negative + 2 * positive


def weight_limits(
    label: int,
    testing: np.ndarray,
    risk: np.ndarray,
    gamma: float,
    tilt: np.ndarray | float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest w(x, y) of people with this label [n].

    `tilt` is the odds ratio that gamma counts from, where a prevalence is known.
    """
    untested = (tilted(risk, tilt / gamma), tilted(risk, tilt * gamma))
    ratios = (
        [one / risk for one in untested]
        if label
        else [(1 - one) / (1 - risk) for one in reversed(untested)]
    )
    low, high = ((testing + (1 - testing) * one) / testing for one in ratios)
    return low, high


def cut(
    strange: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    level: float = LEVEL,
    people: float | None = None,
) -> float:
    """The strangeness up to which a label is kept, so that `level` of those who have it keep it.

    `strange` [n] is 1 minus the probability that people with the label were given; they count from
    `low` to `high`. A new person counts as much as the mean of the `people` who have it does (None:
    all n). 1, and everybody keeps the label, where there are too few. Those whose test errs may
    count less than nothing: the cut is where enough keep the label from there on.
    """
    people = len(strange) if people is None else people
    if people <= 0:
        return 1.0
    order = np.argsort(strange, kind="stable")
    below = np.cumsum(low[order])
    above = high.sum() - np.cumsum(high[order])
    too_few = np.flatnonzero(below < level * (below + above + high.sum() / people))
    first = too_few[-1] + 1 if len(too_few) else 0
    return float(strange[order[first]]) if first < len(strange) else 1.0


def cuts(
    y: np.ndarray,
    predicted: np.ndarray,
    testing: np.ndarray,
    risk: np.ndarray,
    gamma: float,
    weight: np.ndarray,
    tilt: np.ndarray,
    level: float = LEVEL,
) -> np.ndarray:
    """The cuts of a negative and of a positive [2], from tested people [n] with labels `y`.

    Where tests err, `y` are unbiased stand-ins of the truth.
    """
    found = []
    for label, has in enumerate((1 - y, y)):
        own = has != 0
        strange = 1 - predicted[own] if label else predicted[own]
        limits = weight_limits(label, testing[own], risk[own], gamma, tilt[own])
        ends = [(weight * has)[own] * limit for limit in limits]
        found.append(cut(strange, np.minimum(*ends), np.maximum(*ends), level, has.sum()))
    return np.array(found)


def sets(predicted: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Which set each person has [n], as a place in `SETS`; `at` are the two cuts [2] or [2, n]."""
    return np.asarray(1 * (predicted <= at[0]) + 2 * (1 - predicted <= at[1]))


def covered(y: np.ndarray | int, found: np.ndarray) -> np.ndarray:
    """Whether a set holds the label [n], or this one."""
    return np.asarray(found & np.where(np.equal(y, 1), 2, 1) > 0)
