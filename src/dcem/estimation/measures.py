"""Numbers about a score, each with the influence of every row on it.

All functions take the score and the `Masses` of the rows, so that the same code serves complete
labels, inverse-propensity and doubly robust estimates. Intervals hold for the score as given (a
fixed function of the features): they describe the drawing of people, not how a model would change
with other training rows. The masses are treated as known up to the rows' own labels; estimating
them on other rows (cross-fitting) adds only terms of second order to a doubly robust estimate. To
an inverse-propensity estimate it adds terms of first order that the interval leaves out. With a
correct parametric model fitted by maximum likelihood they would make it less variable than the
interval says; the flexible models used here give no such promise, and the bias of a model
that learns slowly can outweigh the interval.

AUC:  sum over pairs i != j of p_i q_j k(s_i, s_j), over sum over the same pairs of p_i q_j, where
p and q are positive and negative masses and k is 1 if s_i > s_j, 1/2 if equal, else 0. Computed by
sorting, in O(n log n).

References: E. DeLong, D. DeLong and D. Clarke-Pearson, "Comparing the areas under two or more
correlated receiver operating characteristic curves", Biometrics 1988 (the same variance for
complete labels); A. van der Vaart, "Asymptotic Statistics", 1998, chapters 12 and 20.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from math import isnan, nan
from typing import Any, Literal

import numpy as np
from scipy.special import logit

from dcem.estimation.influence import Statistic, logistic, quotient
from dcem.estimation.outcomes import Masses, uncertain


def _of_masses(measure: Callable[..., Statistic]) -> Callable[..., Statistic]:
    """A measure that counts the uncertainty of a test's rates, too, where masses carry it."""

    @wraps(measure)
    def counted(*given: Any, **named: Any) -> Statistic:
        place, masses = next((i, one) for i, one in enumerate(given) if isinstance(one, Masses))
        return uncertain(
            lambda other: measure(*given[:place], other, *given[place + 1 :], **named), masses
        )

    return counted


@_of_masses
def auc(score: np.ndarray, masses: Masses) -> Statistic:
    """Probability that a random positive scores higher than a random negative; ties count half."""
    return auc_of_places(*_places(score), masses)


def auc_of_places(place: np.ndarray, n_places: int, masses: Masses) -> Statistic:
    """The AUC of scores that have been ranked: the place of each row [n], from 0, among so many."""
    p, q = masses.positive, masses.negative
    p_at, q_at = (np.bincount(place, mass, minlength=n_places) for mass in (p, q))
    q_below = (np.cumsum(q_at) - q_at / 2)[place]
    p_above = (p.sum() - np.cumsum(p_at) + p_at / 2)[place]
    itself = p * q  # a row is not paired with itself
    pairs = p.sum() * q.sum() - itself.sum()
    won = p @ q_below - itself.sum() / 2
    if pairs <= 0:
        return Statistic(nan, np.zeros(len(p)))
    value = won / pairs
    moved = p * q_below + q * p_above - itself
    moved -= value * (p * q.sum() + q * p.sum() - 2 * itself)
    return Statistic(float(value), moved / pairs)


@_of_masses
def prevalence(masses: Masses) -> Statistic:
    """Share of positives."""
    return quotient(masses.positive, masses.total)


@_of_masses
def calibration_in_the_large(score: np.ndarray, masses: Masses) -> Statistic:
    """Mean score minus share of positives: above 0 where risk is overstated."""
    return quotient(score * masses.total - masses.positive, masses.total)


@_of_masses
def calibration_slope(score: np.ndarray, masses: Masses) -> Statistic:
    """Slope of the outcome's log-odds in those of the score: below 1 where scores are too extreme.

    The root of a logistic regression on the log-odds, with masses in place of labels (Cox 1958).
    """
    z = logit(np.clip(score, 1e-6, 1 - 1e-6))
    X = np.stack([np.ones(len(z)), z], axis=1)
    line, pull, curvature = logistic(X, masses.positive, masses.total, start=(0.0, 1.0))
    if isnan(line[1]):
        return Statistic(nan, np.zeros(len(z)))
    return Statistic(float(line[1]), pull @ np.linalg.inv(curvature)[1])


@_of_masses
def net_benefit(score: np.ndarray, masses: Masses, threshold: float) -> Statistic:
    """True positives per person, minus false ones at the odds of the threshold.

    Somebody who acts at a risk of 20 % weighs one missed positive as four needless alarms (Vickers
    and Elkin, "Decision curve analysis", Medical Decision Making 2006).
    """
    odds = threshold / (1 - threshold)
    acted = score >= threshold
    return quotient(acted * (masses.positive - odds * masses.negative), masses.total)


@_of_masses
def precision_at_capacity(score: np.ndarray, masses: Masses, capacity: float) -> Statistic:
    """Share of positives among the `capacity` (a share) of people with the highest scores.

    People at the boundary count in part, all those of one score alike, so that ties do not depend
    on the order of rows. The boundary moves with the sample; its influence enters through the risk
    of the people around it.
    """
    v, p = masses.total, masses.positive
    room = capacity * v.sum()
    before, taken = highest_first(score, v, room)
    value = float(p @ taken / room)
    near = np.abs(before / v.sum() - capacity) <= max(0.05, 0.25 * capacity)
    near_mass = v[near].sum()
    at_boundary = p[near].sum() / near_mass if near_mass > 0 else value
    influence = p * taken - at_boundary * (v * taken - capacity * v) - value * capacity * v
    return Statistic(value, influence / room)


@_of_masses
def true_positive_rate(acted: np.ndarray, masses: Masses) -> Statistic:
    """Share of the positives who are acted on (a mask [n])."""
    return quotient(acted * masses.positive, masses.positive)


@_of_masses
def false_positive_rate(acted: np.ndarray, masses: Masses) -> Statistic:
    """Share of the negatives who are acted on (a mask [n])."""
    return quotient(acted * masses.negative, masses.negative)


@_of_masses
def precision(acted: np.ndarray, masses: Masses) -> Statistic:
    """Share of positives among those acted on (a mask [n])."""
    return quotient(acted * masses.positive, acted * masses.total)


@_of_masses
def share_acted_on(acted: np.ndarray, masses: Masses) -> Statistic:
    """Share of people who are acted on (a mask [n])."""
    return quotient(acted * masses.total, masses.total)


@_of_masses
def rate_among(
    chosen: np.ndarray, masses: Masses, near: np.ndarray, drift: np.ndarray
) -> Statistic:
    """Share of positives among those `chosen` (a mask [n]) by a cut-off that moves with the sample.

    `drift` [n] is by how many people each row moves it; `near` [n] says how much of a person at the
    cut-off each row is.
    """
    found = quotient(chosen * masses.positive, chosen * masses.total)
    at_cut = near @ (masses.positive - found.value * masses.total)
    moved = at_cut * drift / (chosen * masses.total).sum()
    return Statistic(found.value, found.influence + moved)


@_of_masses
def ks(score: np.ndarray, masses: Masses, half: np.ndarray) -> Statistic:
    """The largest difference, over cut-offs, of the shares of positives and negatives above one.

    The cut-off that is best among these people flatters the score; one that was found on half of
    them (a mask [n]) and is applied to the rest falls short. Their mean is told.
    """
    found = _separation(score >= _best_cut(score, masses), masses)
    halves = [half, ~half]
    crossed = [
        _separation(score >= _best_cut(score, masses.among(one)), masses.among(other)).value
        for one, other in (halves, halves[::-1])
    ]
    return Statistic((found.value + sum(crossed) / 2) / 2, found.influence)


def _best_cut(score: np.ndarray, masses: Masses) -> float:
    """The cut-off at and above which positives and negatives differ most."""
    place, n_places = _places(-score)
    shares = [
        np.cumsum(np.bincount(place, mass, minlength=n_places)) / mass.sum()
        for mass in (masses.positive, masses.negative)
    ]
    return float(-np.unique(-score)[int(np.argmax(shares[0] - shares[1]))])


def _separation(above: np.ndarray, masses: Masses) -> Statistic:
    """Share of the positives above a cut-off (a mask [n]), minus that of the negatives."""
    p, q = masses.positive, masses.negative
    return quotient(above * p, p) - quotient(above * q, q)


@dataclass(frozen=True)
class Measure:
    """What a number of a comparison is called, and of whom it is a share: they stand behind it."""

    words: str  # as in "the true positive rate of group b"
    of: Literal["positives", "negatives", "acted on", "everybody"]
    value: Callable[[np.ndarray, Masses], Statistic]


# What acting on people means to a group; each entry is in every comparison, table and file.
WHEN_ACTING = {
    "true_positive_rate": Measure("true positive rate", "positives", true_positive_rate),
    "precision": Measure("precision", "acted on", precision),
    "share_acted_on": Measure("share of people acted on", "everybody", share_acted_on),
}


def highest_first(
    score: np.ndarray, mass: np.ndarray, room: float
) -> tuple[np.ndarray, np.ndarray]:
    """The mass of higher scores, and the share taken of each row [n], if so much is taken in all.

    Rows of one score are taken alike.
    """
    place, n_places = _places(-score)
    here = np.bincount(place, mass, minlength=n_places)
    before = np.cumsum(here) - here
    taken = np.clip((room - before) / np.where(here == 0, 1, here), 0, 1)
    return before[place], taken[place]


def _places(score: np.ndarray) -> tuple[np.ndarray, int]:
    """Rank of each score among the distinct ones, from the lowest, and how many there are."""
    values, place = np.unique(score, return_inverse=True)
    return place, len(values)
