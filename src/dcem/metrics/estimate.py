"""A number with its interval, as every metric, audit and comparison passes it on."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import hypot, isnan, nan

import numpy as np
from scipy.special import expit, logit

from dcem import text


@dataclass(frozen=True, repr=False)
class Estimate:
    """A number with its interval. NaN means *not estimable*, and `reason` says why."""

    value: float
    low: float = nan
    high: float = nan
    reason: str = ""

    @property
    def estimable(self) -> bool:
        """Whether there is a number at all."""
        return not isnan(self.value)

    def excludes(self, number: float) -> bool:
        """Whether the interval lies wholly on one side of a number."""
        return self.low > number or self.high < number

    def minus(self, other: Estimate) -> Estimate:
        """This share minus another of other people, the arms of both intervals put together.

        Right also where few people make the arms unequal: Zou and Donner, "Construction of
        confidence limits about effect measures: a general approach", Statistics in Medicine 2008.
        """
        value = self.value - other.value
        if self.reason or other.reason:
            return Estimate(value, reason=self.reason or other.reason)
        below = hypot(self.value - self.low, other.high - other.value)
        above = hypot(self.high - self.value, other.value - other.low)
        return Estimate(value, value - below, value + above)

    def exp(self) -> Estimate:
        """What this is the logarithm of."""
        value, low, high = np.exp([self.value, self.low, self.high]).tolist()
        return Estimate(value, low, high, self.reason)

    def clipped(self, least: float = 0.0) -> Estimate:
        """Cut off where the number cannot be."""
        value, low, high = np.clip([self.value, self.low, self.high], least, 1.0).tolist()
        return Estimate(value, low, high, self.reason)

    def __str__(self) -> str:
        if isnan(self.low):
            return f"{self.value:.3f} (no interval: {self.reason})"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def __format__(self, form: str) -> str:
        """`f"{auc:score}"` is `.787 [.768, .823]`; the forms are those of `dcem.text`."""
        if not form:
            return str(self)
        return " ".join(text.estimated(self.value, self.low, self.high, form)).rstrip()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"


def share_interval(share: float, reach: float) -> tuple[float, float]:
    """So far below and above a share, on the log-odds scale: the ends stay within 0 and 1."""
    middle, reach = logit(share), reach / (share * (1 - share))
    return float(expit(middle - reach)), float(expit(middle + reach))


@dataclass(frozen=True, repr=False)
class GapEstimate(Estimate):
    """A ROC gap with its interval, and what it would be if the groups had one curve."""

    p_value: float = nan  # chance of a gap as large under equal curves; of all pairs together
    reference: np.ndarray = field(default_factory=lambda: np.empty(0), compare=False)

    @property
    def expected(self) -> float:
        """The mean gap under equal curves: what noise alone would show."""
        return float(self.reference.mean()) if len(self.reference) else nan

    def __str__(self) -> str:
        if isnan(self.p_value):
            return super().__str__()
        return f"{super().__str__()}; equal curves {self.expected:.3f}, p = {self.p_value:.2g}"
