"""A number with its interval, as every audit and comparison passes it on."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan


@dataclass(frozen=True)
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
