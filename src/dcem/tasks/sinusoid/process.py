"""The sinusoid process: who has the outcome, who is tested, and with what probability.

Two features, two groups. The outcome boundary is a rotated sine wave, the testing boundary a
straight line that cuts across it, so the tested rows show only part of the wave. All of this is
truth and stays with the task; none of it reaches `SelectiveLabels`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

_TINY = 1e-8  # the released scores carry it; kept so that the published draws come out bit by bit

EVERYBODY = -9999.0  # threshold of a group in which everybody is tested, as in the released code


@dataclass(frozen=True)
class SinusoidConstants:
    """The constants of the process, all of them free.

    Attributes
    ----------
    variance
        Variance of each feature within a group; the features are independent.
    outcome_slope
        Steepness of P(Y|x) across its boundary.
    outcome_threshold
        Value of the outcome score at which P(Y|x) = 1/2; None asks the calibration to tune it (to
        the prevalence, in a population centred at the origin).
    frequency, amplitude
        Of the sine wave, in radians per unit and in units of the score.
    rotation
        Angle of the wave, radians.
    mirrored
        False: level = z0 and wave = z1 with z = xR + shift (the released code). True: level = z1
        and wave = z0 with z = Rx + shift (the paper's text).
    shift
        Added to the rotated features.
    testing_slope
        Steepness of P(T|x,a); small values mean more overlap.
    testing_direction, testing_shift
        The linear testing score <direction, x> + shift.
    prevalence
        P(Y=1) over everybody.
    group_share
        P(A=0).
    balanced
        True: exactly the group shares, group 0 first. False: the group is drawn per row.
    """

    variance: float = 0.03
    outcome_slope: float = 10.0
    outcome_threshold: float | None = 1.0
    frequency: float = 4 * math.pi
    amplitude: float = 0.25
    rotation: float = math.pi / 6
    mirrored: bool = False
    shift: float = 0.5
    testing_slope: float = 30.0
    testing_direction: tuple[float, float] = (1.0, -1.0)
    testing_shift: float = 0.5
    prevalence: float = 0.25
    group_share: float = 0.5
    balanced: bool = True

    @property
    def level_direction(self) -> tuple[float, float]:
        """Direction along which the outcome score rises, were there no wave."""
        c, s = math.cos(self.rotation), math.sin(self.rotation)
        return (s, c) if self.mirrored else (c, s)

    @property
    def wave_direction(self) -> tuple[float, float]:
        """Direction along which the boundary undulates; orthogonal to the level direction."""
        c, s = math.cos(self.rotation), math.sin(self.rotation)
        return (c, -s) if self.mirrored else (-s, c)

    def outcome_score(self, x: np.ndarray, phase: float) -> np.ndarray:
        """s_Y(x) = level - amplitude * sin(frequency * wave + phase), for rows x [n, 2]."""
        (l0, l1), (w0, w1) = self.level_direction, self.wave_direction
        level = l0 * x[:, 0] + l1 * x[:, 1] + self.shift
        wave = w0 * x[:, 0] + w1 * x[:, 1] + self.shift
        return level - self.amplitude * np.sin(self.frequency * wave + phase) + _TINY

    def testing_score(self, x: np.ndarray) -> np.ndarray:
        """s_T(x), the linear score that the groups' thresholds are compared with, for x [n, 2]."""
        d0, d1 = self.testing_direction
        return d0 * x[:, 0] + d1 * x[:, 1] + self.testing_shift + _TINY


AS_RELEASED = SinusoidConstants()
AS_WRITTEN = SinusoidConstants(
    variance=0.03**2,
    outcome_threshold=None,
    frequency=8 * math.pi,
    mirrored=True,
    testing_direction=(1.0, 1.0),
    testing_shift=0.0,
    balanced=False,
)


@dataclass(frozen=True)
class SinusoidProcess:
    """A calibrated process: constants, phase, and what the calibration found for each group.

    Attributes
    ----------
    constants
        See `SinusoidConstants`; `outcome_threshold` is a number here.
    phase
        Of the outcome wave, radians.
    means
        Group a's features are N(means[a] * (1, 1), variance * I).
    thresholds
        Of the testing score, per group; -9999 where everybody is tested.
    """

    constants: SinusoidConstants
    phase: float
    means: tuple[float, float]
    thresholds: tuple[float, float]

    def outcome_probability(self, x: np.ndarray) -> np.ndarray:
        """P(Y=1|x) for rows x [n, 2]; the group does not enter it."""
        c = self.constants
        assert c.outcome_threshold is not None
        p: np.ndarray = expit(
            c.outcome_slope * (c.outcome_score(x, self.phase) - c.outcome_threshold)
        )
        return p

    def testing_probability(self, x: np.ndarray, group: np.ndarray | int) -> np.ndarray:
        """P(T=1|x,a) for rows x [n, 2] and their groups (0 or 1)."""
        c = self.constants
        tau = np.asarray(self.thresholds)[np.asarray(group)]
        return expit(c.testing_slope * (c.testing_score(x) - tau))
