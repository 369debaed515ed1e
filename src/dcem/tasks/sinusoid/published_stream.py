"""The very draws of the published runs, and their calibration.

The released simulation seeds NumPy's legacy generator with 42 and draws X of group 0, X of group 1,
then uniforms for T of both groups and for Y of both groups. It finds the means, then the
thresholds, by bisection on *realised* rates: every probe seeds again with 42 and draws 100,000 rows
per group. Then it seeds once more, throws away one data set of 50,000 rows per group, and keeps the
next three as train, validation and test. To meet the published data one must follow all of this.

Two things make it quick without changing a bit. Every probe sees the same underlying draws, so they
are drawn once and shifted (legacy `multivariate_normal` adds the mean last). And as the interval
shrinks, almost every row's outcome can no longer change inside it (the probability is Lipschitz in
the searched parameter), so only the undecided rows are looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from dcem.table.messages import notice
from dcem.tasks.sinusoid.process import EVERYBODY, SinusoidConstants, SinusoidProcess

SEED = 42
ROWS_PER_PROBE = 100_000  # per group
ROWS_DISCARDED = 50_000  # per group
MEAN_INTERVAL = (-0.9, 1.0)
THRESHOLD_INTERVAL = (-10.0, 1.0)
_CLOSE = 1e-12

Pair = tuple[float, float]


class RawDraw(NamedTuple):
    """What the generator gives for one data set, before any mean or threshold, per group."""

    noise: tuple[np.ndarray, np.ndarray]  # [n_a, 2], features less the group mean
    u_tested: tuple[np.ndarray, np.ndarray]  # [n_a]
    u_outcome: tuple[np.ndarray, np.ndarray]  # [n_a]


def draw_raw(stream: np.random.RandomState, counts: tuple[int, int], variance: float) -> RawDraw:
    """The draws of one data set, in the released order."""
    covariance = variance * np.eye(2)
    noise = [stream.multivariate_normal(np.zeros(2), covariance, n) for n in counts]
    uniforms = [stream.uniform(size=n) for n in (*counts, *counts)]
    return RawDraw((noise[0], noise[1]), (uniforms[0], uniforms[1]), (uniforms[2], uniforms[3]))


@lru_cache(maxsize=1)
def _probe_draw(variance: float) -> RawDraw:
    stream = np.random.RandomState(SEED)
    return draw_raw(stream, (ROWS_PER_PROBE, ROWS_PER_PROBE), variance)


@lru_cache(maxsize=2)
def final_draws(variance: float, counts: tuple[tuple[int, int], ...]) -> tuple[RawDraw, ...]:
    """The draws behind train, validation and test; the discarded data set comes before them."""
    stream = np.random.RandomState(SEED)
    draw_raw(stream, (ROWS_DISCARDED, ROWS_DISCARDED), variance)
    return tuple(draw_raw(stream, pair, variance) for pair in counts)


class _RealisedRate:
    """Share of rows with u < p(parameter), re-evaluating only rows that may still change."""

    def __init__(
        self,
        probability: Callable[[float, np.ndarray], np.ndarray],  # (parameter, rows) -> p of rows
        uniforms: np.ndarray,
        lipschitz: float,  # bound of |dp / dparameter|
    ) -> None:
        self._probability, self._uniforms, self._lipschitz = probability, uniforms, lipschitz
        self._open = np.arange(len(uniforms))
        self._decided_ones = 0

    def at(self, parameter: float, half_width: float) -> float:
        """The rate at `parameter`; later calls stay within `half_width` of it."""
        u = self._uniforms[self._open]
        p = self._probability(parameter, self._open)
        ones = u < p
        rate = (self._decided_ones + np.count_nonzero(ones)) / len(self._uniforms)
        decided = np.abs(p - u) > self._lipschitz * half_width + _CLOSE
        self._decided_ones += int(np.count_nonzero(ones & decided))
        self._open = self._open[~decided]
        return float(rate)


def _bisect(
    rates: tuple[_RealisedRate, _RealisedRate], targets: Pair, interval: Pair, rising: bool
) -> Pair:
    """The released search: both groups in step, ended by the interval or by two exact hits."""
    low, high = [interval[0]] * 2, [interval[1]] * 2
    while True:
        middle = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
        off = [rates[g].at(middle[g], (high[g] - low[g]) / 2) - targets[g] for g in (0, 1)]
        if max(abs(off[0]), abs(off[1])) < _CLOSE:
            break
        for g in (0, 1):
            if (off[g] < 0) == rising:
                low[g] = middle[g]
            else:
                high[g] = middle[g]
        if min(high[0] - low[0], high[1] - low[1]) < _CLOSE:
            break
    return middle[0], middle[1]


@lru_cache(maxsize=512)
def search_means(constants: SinusoidConstants, phase: float, targets: Pair) -> Pair:
    """Group means whose realised prevalences meet the targets; a common mean if these agree."""
    c = constants
    threshold = c.outcome_threshold
    assert threshold is not None, "the published search tunes the means, not the outcome threshold"
    raw = _probe_draw(c.variance)
    reach = abs(sum(c.level_direction)) + abs(c.amplitude * c.frequency * sum(c.wave_direction))

    def rate(group: int) -> _RealisedRate:
        def probability(mean: float, rows: np.ndarray) -> np.ndarray:
            score = c.outcome_score(raw.noise[group][rows] + mean, phase)
            return expit(c.outcome_slope * (score - threshold))

        return _RealisedRate(probability, raw.u_outcome[group], c.outcome_slope / 4 * reach)

    means = _bisect((rate(0), rate(1)), targets, MEAN_INTERVAL, rising=True)
    return _averaged(means) if targets[0] == targets[1] else means


@lru_cache(maxsize=4096)
def search_thresholds(constants: SinusoidConstants, means: Pair, targets: Pair) -> Pair:
    """Thresholds whose realised testing rates meet the targets; -9999 where all are tested."""
    c = constants
    raw = _probe_draw(c.variance)
    if min(targets) >= 1:
        return EVERYBODY, EVERYBODY

    def rate(group: int) -> _RealisedRate:
        score = c.testing_score(raw.noise[group] + means[group])

        def probability(threshold: float, rows: np.ndarray) -> np.ndarray:
            return expit(c.testing_slope * (score[rows] - threshold))

        return _RealisedRate(probability, raw.u_tested[group], c.testing_slope / 4)

    found = _bisect((rate(0), rate(1)), targets, THRESHOLD_INTERVAL, rising=False)
    thresholds = tuple(EVERYBODY if targets[g] >= 1 else found[g] for g in (0, 1))
    if targets[0] == targets[1] and means[0] == means[1]:
        return _averaged((thresholds[0], thresholds[1]))
    return thresholds[0], thresholds[1]


def _warn_at_the_end_of(interval: Pair, found: Pair, targets: Pair, what: str) -> None:
    for group, (value, target) in enumerate(zip(found, targets, strict=True)):
        if target < 1 and min(value - interval[0], interval[1] - value) < 1e-9:
            notice(
                f"The published search looks in {list(interval)} alone and ended at its border, so "
                f"group {group} misses its {what} of {target:.4g}. stream='independent' meets it."
            )


def _averaged(pair: Pair) -> Pair:
    middle = (pair[0] + pair[1]) / 2
    return middle, middle


def calibrate_on_draws(
    constants: SinusoidConstants, phase: float, outcome_targets: Pair, testing_targets: Pair
) -> SinusoidProcess:
    """The process with means and thresholds as the published runs found them."""
    means = search_means(constants, phase, outcome_targets)
    thresholds = search_thresholds(constants, means, testing_targets)
    _warn_at_the_end_of(MEAN_INTERVAL, means, outcome_targets, "prevalence")
    _warn_at_the_end_of(THRESHOLD_INTERVAL, thresholds, testing_targets, "testing rate")
    return SinusoidProcess(constants, phase, means, thresholds)
