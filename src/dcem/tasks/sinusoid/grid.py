"""The grid of settings of the paper's simulation study."""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

from dcem.table.checks import InputError
from dcem.tasks.rates import rates_of_testing

Q_Y = (1 / 4, 1 / 3, 1 / 2, 1.0)
K = (0.1, 1 / 4, 1 / 3, 1 / 2, 1.0, 2.0, 3.0, 4.0)
Q_T = (1 / 4, 1 / 3, 1 / 2, 1.0, 2.0, 3.0, 4.0)
PHASES = tuple(math.radians(degrees) for degrees in range(0, 360, 30))
"""The twelve phases over which the paper replicates every setting, in radians."""


class GridCell(NamedTuple):
    """One setting (q_y, k, q_t), and why it cannot exist (None where it can)."""

    q_y: float
    k: float
    q_t: float
    infeasible: str | None

    @property
    def feasible(self) -> bool:
        """Whether `make_sinusoid` can draw it."""
        return self.infeasible is None


def sinusoid_grid(prevalence: float = 0.25, group_share: float = 0.5) -> list[GridCell]:
    """All 224 settings of the study, in the order q_y, k, q_t.

    With the published prevalence of 1/4, k = 3 with q_t of 1/4, 1/3, 3 or 4 is infeasible: one
    group would be tested more often than always. With k = 4 everybody is tested, so its seven
    values of q_t name the same setting. k = .1 was run but is shown in no figure.
    """
    cells = []
    for q_y, k, q_t in product(Q_Y, K, Q_T):
        reason = None
        try:
            rates_of_testing(prevalence, k, q_t, group_share)
        except InputError as error:
            reason = str(error)
        cells.append(GridCell(q_y, k, q_t, reason))
    return cells
