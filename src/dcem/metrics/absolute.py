"""Intervals for sums of absolute values, which noise pushes up.

A ROC gap and a calibration error are means of |differences|: over false positive rates, or over
bins. Estimated from a sample they are positive even where every true difference is 0, and
resampling adds the noise a second time, so the usual percentile interval of a fair score never
contains 0.

Here the *differences* are resampled, not their absolute values. From the differences seen and their
noise (resampled minus seen) follow:

* the **chance** of a value as large if all true differences were 0;
* the **lower limit**: the smallest multiple s of the differences seen under which a value as large
  as the one seen is not surprising: |s * seen + noise| reaches it with probability (1 - level) / 2.
  It is 0 exactly where chance explains the value;
* the **upper limit**: the percentile of |seen + noise|, on the side to which noise pushes;
* the **middle**: the multiple under which the value seen is as often exceeded as not, and which so
  lacks the upward bias.
"""

from __future__ import annotations

import numpy as np

from dcem.metrics.estimate import Estimate


def size(differences: np.ndarray) -> np.ndarray:
    """Mean absolute value along the last axis."""
    return np.abs(differences).mean(axis=-1)


def as_large(reference: np.ndarray, value: float) -> float:
    """Share of a reference at least as large as a value, which counts as one of them."""
    # up to rounding: a tie is as large
    return float((1 + np.sum(reference >= value - 1e-12)) / (1 + len(reference)))


def multiple(seen: np.ndarray, noise: np.ndarray, unit: np.ndarray, tail: float) -> float:
    """The multiple s in (0, 1] under which a value as large as that seen has probability `tail`.

    `seen` [k, m] holds k vectors of differences, `noise` [k, resamples, m] theirs; the value is
    the largest of the k sizes, each in its `unit` [k]. It rises with s, so halving finds s.
    """
    observed = (size(seen) / unit).max()
    low, high = 0.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        values = (size(middle * seen[:, None] + noise) / unit[:, None]).max(axis=0)
        if np.mean(values >= observed) < tail:
            low = middle
        else:
            high = middle
    return high  # above 0, however little: whoever asks knows that chance does not explain it


def size_limits(
    seen: np.ndarray, noise: np.ndarray, below: np.ndarray, chance: np.ndarray, level: float
) -> tuple[float, float]:
    """Both limits of the size of `seen` [m].

    From its `noise` [resamples, m], that for the limit `below` it, and its size by `chance`.
    """
    value, tail = float(size(seen)), (1 - level) / 2
    high = max(float(np.quantile(size(seen + noise), 1 - tail)), value)
    if as_large(chance, value) >= 1 - level:
        return 0.0, high
    return value * multiple(seen[None], below[None], np.ones(1), tail), high


def debiased(
    seen: np.ndarray, noise: np.ndarray, level: float, chance: np.ndarray | None = None
) -> Estimate:
    """The size of `seen` [m] without the upward push of its `noise` [resamples, m].

    `chance` [resamples, m] are differences that chance alone shows, if the noise is not such.
    """
    chance = noise if chance is None else chance
    both = np.concatenate([noise, chance])
    low, high = size_limits(seen, noise, both, size(chance), level)
    value = float(size(seen))
    if np.mean(size(both) >= value) >= 0.5:  # half of pure noise is as large
        return Estimate(0.0, 0.0, high)
    value *= multiple(seen[None], both[None], np.ones(1), 0.5)
    return Estimate(value, min(low, value), high)
