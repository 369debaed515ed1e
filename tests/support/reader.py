"""A reader who puts everything together that is written about one table, and computes.

The unknowns are three counts per group: positive, negative, untested. Every number that a file
tells about them is a linear statement: a count is a sum of unknowns, and a rate `v` of `part` in
`whole` says that part - v whole is nothing, to the digits that are written. The smallest and the
largest whole number that a count can be, by all statements together, are two integer programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.stats import norm

KINDS = ("positive", "negative", "untested")
PARTS = {
    "rows": ("positive", "negative", "untested"),
    "tested": ("positive", "negative"),
    "positive": ("positive",),
    "untested": ("untested",),
    "negative": ("negative",),
}
EVERYBODY = "everybody"


class Reader:
    """Collects statements about the counts of groups.

    `inverts` says that a person is one row: then the number of people follows from an interval.
    """

    def __init__(self, groups: Sequence[str], *, inverts: bool = True) -> None:
        self.groups, self.inverts = list(groups), inverts
        self._rows: list[np.ndarray] = []
        self._low: list[float] = []
        self._high: list[float] = []

    def of(self, group: str, kind: str) -> np.ndarray:
        """A count as weights of the unknowns [3 groups]."""
        weights = np.zeros((len(self.groups), len(KINDS)))
        mine = slice(None) if group == EVERYBODY else self.groups.index(group)
        weights[mine, [KINDS.index(part) for part in PARTS[kind]]] = 1
        return weights.ravel()

    def hears(self, weights: np.ndarray, low: float, high: float) -> None:
        """That a sum of unknowns lies between two numbers."""
        self._rows.append(weights)
        self._low.append(low)
        self._high.append(high)

    def hears_count(self, group: str, kind: str, value: Any) -> None:
        """A count; what is not a number, or negative, says nothing. "<10" says what it says."""
        if value == "<10":
            self.hears(self.of(group, kind), 0, 9)
        elif isinstance(value, int | float) and value >= 0:
            self.hears(self.of(group, kind), value, value)

    def hears_rate(self, group: str, part: str, whole: str, found: Mapping[str, Any]) -> None:
        """A rate with Wilson's interval, as the JSON files have it, to six digits."""
        value, low, high = found["value"], found["low"], found["high"]
        if value is None:
            return
        part_of, all_of = self.of(group, part), self.of(group, whole)
        self._hears_share(part_of, all_of, value)
        if not self.inverts or low is None or high is None or not 0 < low < value < high < 1:
            return
        # (low + high) / 2 = (value + z²/2n) / (1 + z²/n), so that n follows
        z, middle = norm.ppf(0.975), (low + high) / 2
        if abs(middle - value) > 1e-5 and abs(middle - 0.5) > 1e-5:
            n = z**2 * (0.5 - middle) / (middle - value)
            if n > 0:
                self.hears(all_of, n * 0.98 - 1, n * 1.02 + 1)

    def hears_share(self, group: str, part: str, whole: str, value: float | None) -> None:
        """A rate without an interval."""
        if value is not None:
            self._hears_share(self.of(group, part), self.of(group, whole), value)

    def _hears_share(self, part: np.ndarray, whole: np.ndarray, value: float) -> None:
        written = 5e-6 * max(abs(value), 1e-6)
        self.hears(part - (value - written) * whole, 0, np.inf)
        self.hears(part - (value + written) * whole, -np.inf, 0)

    def learns(self, group: str, kind: str) -> tuple[float, float]:
        """The least and the most that a count can be."""
        goal = self.of(group, kind)
        rules = LinearConstraint(np.array(self._rows), self._low, self._high)
        ends = []
        for sign in (1, -1):
            answer = milp(
                sign * goal,
                constraints=rules,
                integrality=np.ones(len(goal)),
                bounds=Bounds(0, 1e6),
            )
            assert answer.status == 0, f"the files contradict each other: {answer.message}"
            ends.append(float(goal @ np.round(answer.x)))
        return ends[0], ends[1]
