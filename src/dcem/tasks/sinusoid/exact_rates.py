"""Exact calibration: group rates as integrals, met without drawing a single row.

X is Gaussian and the rotation orthogonal, so level and wave are independent Gaussians: with g and h
standard normal,

    P(Y=1|a) = E sigmoid(slope (level_a + sd g - threshold
                                - amplitude sin(frequency (wave_a + sd h) + phase))),

a smooth double integral; s_T is one Gaussian, so P(T=1|a) is a single one. Both are computed with
the trapezoidal rule: for an integrand that is analytic in a strip |Im| < d the error falls like
exp(-2 pi d / step), so a step chosen from d gives all digits with a hundred nodes or so.

Reference: Trefethen and Weideman, "The exponentially convergent trapezoidal rule", SIAM Review,
2014.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy.special import expit, ndtr

from dcem.table.messages import InputError
from dcem.tasks.sinusoid.process import EVERYBODY, SinusoidConstants, SinusoidProcess
from dcem.tasks.sinusoid.published_stream import MEAN_INTERVAL

Pair = tuple[float, float]

_DIGITS = 36.0  # 2 pi d / step: exp(-36) is 2e-16
_GAUSSIAN_TAIL = 8.5  # standard deviations; beyond lies less than 1e-16 of the mass
_LOGISTIC_TAIL = 38.0
_WIDTH = 1e-14  # where bisection ends; rates are then met to about 1e-13
_MISS = 1e-7  # a rate further off than this was not met


@lru_cache(maxsize=64)
def _gaussian_nodes(strip: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of E[f(g)], g ~ N(0,1), for f analytic this far from the real axis."""
    step = min(0.5, 2 * math.pi * strip / _DIGITS)
    half = math.ceil(_GAUSSIAN_TAIL / step)
    nodes = step * np.arange(-half, half + 1)
    weights = np.exp(-(nodes**2) / 2)
    return nodes, weights / weights.sum()


@lru_cache(maxsize=1)
def _logistic_nodes() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of E[f(l)] for a standard logistic l; its density has poles at +-i pi."""
    step = 2 * math.pi * math.pi / _DIGITS
    half = math.ceil(_LOGISTIC_TAIL / step)
    nodes = step * np.arange(-half, half + 1)
    weights = expit(nodes) * expit(-nodes)
    return nodes, weights / weights.sum()


def smoothed_sigmoid(v: np.ndarray, slope: float, sd: float) -> np.ndarray:
    """E sigmoid(slope (v + sd g)), g ~ N(0,1), for every v [n].

    It is the probability that v + sd g exceeds a logistic variable over the slope. One may average
    over the Gaussian, with poles at distance pi / (slope sd), or over the logistic; a gentle slope
    favours the first, a steep one the second, and a hundred nodes always suffice.
    """
    if slope * sd <= 2:
        g, weights = _gaussian_nodes(math.pi / (slope * sd))
        values = expit(slope * (v[:, None] + sd * g))  # [n, nodes]
    else:
        logistic, weights = _logistic_nodes()
        values = ndtr((v[:, None] - logistic / slope) / sd)
    return values @ weights


def rate_of_outcome(c: SinusoidConstants, phase: float, mean: float, threshold: float) -> float:
    """P(Y=1) of a group centred at mean * (1, 1)."""
    sd = math.sqrt(c.variance)
    speed, reach = abs(c.frequency) * sd, abs(c.amplitude)
    if speed > 0 and reach > 0:
        # The sine of h + i d strays from the real axis by up to reach * sinh(speed d). The smoothed
        # sigmoid is analytic within pi / slope, and grows harmlessly within 3 sd.
        strip = math.asinh(max(math.pi / c.outcome_slope, 3 * sd) / reach) / speed
    else:
        strip = math.inf
    h, weights = _gaussian_nodes(strip)
    level = mean * sum(c.level_direction) + c.shift
    wave = mean * sum(c.wave_direction) + c.shift + sd * h
    boundary = c.amplitude * np.sin(c.frequency * wave + phase) + threshold
    return float(weights @ smoothed_sigmoid(level - boundary, c.outcome_slope, sd))


def rate_of_testing(c: SinusoidConstants, mean: float, threshold: float) -> float:
    """P(T=1) of a group centred at mean * (1, 1) with this testing threshold."""
    centre, sd = _testing_score_law(c, mean)
    return float(smoothed_sigmoid(np.array([centre - threshold]), c.testing_slope, sd)[0])


def _testing_score_law(c: SinusoidConstants, mean: float) -> Pair:
    centre = mean * sum(c.testing_direction) + c.testing_shift
    return centre, math.sqrt(c.variance) * math.hypot(*c.testing_direction)


def _bisect(rate: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Bisection for rate(parameter) = target, following the path of a rising rate."""
    while high - low > _WIDTH * max(1.0, abs(low), abs(high)):
        middle = (low + high) / 2
        if rate(middle) < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@lru_cache(maxsize=512)
def solve_outcome_threshold(c: SinusoidConstants, phase: float) -> float:
    """The threshold at which a population centred at the origin has the wanted prevalence."""
    spread = abs(c.amplitude) + 10 * math.sqrt(c.variance) + 40 / c.outcome_slope
    return -_bisect(
        lambda minus: rate_of_outcome(c, phase, 0.0, -minus),
        c.prevalence,
        -(c.shift + spread),
        -(c.shift - spread),
    )


@lru_cache(maxsize=1024)
def solve_mean(c: SinusoidConstants, phase: float, group: int, target: float) -> float:
    """The group's mean, searched like the published bisection.

    The prevalence need not rise with the mean everywhere (the wave can outrun the level), so
    several means may fit. Bisection from the published interval walks to the same one.
    """
    threshold = c.outcome_threshold
    assert threshold is not None
    mean = _bisect(lambda m: rate_of_outcome(c, phase, m, threshold), target, *MEAN_INTERVAL)
    reached = rate_of_outcome(c, phase, mean, threshold)
    if abs(reached - target) > _MISS:
        raise InputError(
            f"Infeasible: no mean of group {group} in {list(MEAN_INTERVAL)} gives it a "
            f"prevalence of {target:.4g} (found {reached:.4g}). Change the outcome threshold "
            "or the prevalence."
        )
    return mean


@lru_cache(maxsize=8192)
def solve_threshold(c: SinusoidConstants, mean: float, target: float) -> float:
    """The testing threshold; testing always falls with it, so there is exactly one."""
    if target >= 1:
        return EVERYBODY
    centre, sd = _testing_score_law(c, mean)
    spread = 10 * sd + 40 / c.testing_slope
    return -_bisect(
        lambda minus: rate_of_testing(c, mean, -minus),
        target,
        -(centre + spread),
        -(centre - spread),
    )


def calibrate_exactly(
    constants: SinusoidConstants, phase: float, outcome_targets: Pair, testing_targets: Pair
) -> SinusoidProcess:
    """The process whose group rates of Y and T equal the targets in expectation."""
    c = constants
    if c.outcome_threshold is None:
        c = replace(c, outcome_threshold=solve_outcome_threshold(c, phase))
    means = tuple(solve_mean(c, phase, g, outcome_targets[g]) for g in (0, 1))
    thresholds = tuple(solve_threshold(c, means[g], testing_targets[g]) for g in (0, 1))
    return SinusoidProcess(c, phase, (means[0], means[1]), (thresholds[0], thresholds[1]))
