"""Rows cut into periods by their time, and results that have not arrived yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from dcem.estimation.influence import People
from dcem.estimation.results import WITHHELD
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import THRESHOLD
from dcem.table.labels import SelectiveLabels
from dcem.table.times import numeric, time_words
from dcem.text import percent

LEAST_ROWS, LEAST_FINE = 200, 40  # of a period that is told, or only looked at
FINE, LAST = 20, 6  # periods that are looked at for late results, and how many of them may be late
DROP = 0.75  # of the rate that is usual: a fall below it looks like results that are not in yet
ERROR = 0.001  # how often chance may look like that


def periods(
    problem: SelectiveLabels, most: int, least: int = LEAST_ROWS
) -> tuple[np.ndarray, list[Any]]:
    """The period of each row [n] and when each begins; about equally many rows in each.

    Rows of one time are in one period. There are at most `most`, of about `least`
    rows or more.
    """
    assert problem.time is not None
    number = max(1, min(most, len(problem) // least))
    ordered = np.sort(problem.time)
    starts = np.unique(ordered[(np.arange(number) * len(ordered)) // number])
    return np.searchsorted(starts, problem.time, side="right") - 1, list(starts)


def latest_rows(problem: SelectiveLabels, share: float) -> np.ndarray:
    """Which rows are as late as the latest tests [n], about this share of the tests."""
    assert problem.time is not None
    tests = np.sort(problem.time[problem.tested])
    return problem.time >= tests[round((1 - share) * (len(tests) - 1))]


@dataclass(frozen=True)
class LateResults:
    """Rows at the end of a table, so few of them tested that results may not have arrived yet."""

    since: str  # the time from which on
    until: str  # the last time before it: what to leave out after
    before: Estimate  # share tested until then
    after: Estimate  # and since; both are withheld if one would show a small count
    at: float  # `since` as a number, see `SelectiveLabels.moment`

    @property
    def words(self) -> str:
        """The two shares in a sentence."""
        if not self.after.estimable:
            return "The shares tested until then and since would reveal a count below ten."
        before, after = (percent(one.value) for one in (self.before, self.after))
        return f"{before} of the rows until then were tested, {after} since."


def late_results(problem: SelectiveLabels) -> LateResults | None:
    """Whether the share tested falls at the end of the table, and from when on.

    A fall to under three quarters of what is usual, beyond chance, in one to six of the last of
    twenty periods and in none before them. It may as well be that testing stopped: the table cannot
    tell, and whoever knows how long results take can.
    """
    if problem.time is None or problem.sent.all():
        return None
    code, starts = periods(problem, FINE, LEAST_FINE)
    if len(starts) < FINE // 2:
        return None
    people, tested = People.of(problem), problem.sent.astype(float)
    rate = np.bincount(code, tested) / np.bincount(code)
    best = None
    for last in range(1, min(LAST, len(starts) // 3) + 1):
        first = len(starts) - last
        after = code >= first
        change = people.mean(tested, after * 1.0) - people.mean(tested, ~after * 1.0)
        usual = np.quantile(rate[:first], 0.1)
        z = change.value / max(people.error(change), 1e-12)
        falls = z < norm.ppf(ERROR / LAST) and rate[first:].max() < DROP * usual
        if falls and (best is None or z < best[0]):
            best = z, first
    if best is None:
        return None
    after = code >= best[1]
    sides = [part & who for part in (after, ~after) for who in (problem.sent, ~problem.sent)]
    hidden = any(0 < people.count(side) < THRESHOLD for side in sides)
    before, since = (
        WITHHELD if hidden else people.proportion(tested, 1.0 * part) for part in (~after, after)
    )
    return LateResults(
        time_words(starts[best[1]]),
        time_words(problem.time[~after].max()),
        before,
        since,
        float(numeric(np.array([starts[best[1]]]))[0]),
    )
