"""The area between the groups' ROC curves, where rows carry masses instead of labels.

Each group's curve is the cumulated positive mass against the cumulated negative mass, people in
order of falling score, both over their totals. Doubly robust masses can be negative, and the curve
then steps back: it is made monotone by the mean of its running maximum and its (backward) running
minimum, which leaves a rising curve as it is. Curves are compared on a grid of false positive
rates.

The gap is an absolute value and noise pushes it up. So its interval reaches as far below the
estimate as resamples of people reach above it (see `dcem.metrics.bootstrap`), and beside it stands
its *reference*: the gap when groups are dealt out at random among people of whom the same was seen
(untested, tested positive, tested negative). Resamples keep the nuisance models as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dcem.estimation.outcomes import Masses

GRID = np.linspace(0, 1, 501)


@dataclass(frozen=True)
class Gap:
    """The largest gap of any two groups, with resamples and reference."""

    value: float
    pair: tuple[int, int]  # codes of the two groups
    resampled: np.ndarray  # [resamples]
    by_chance: np.ndarray  # [resamples] groups dealt out at random


class Ranking:
    """People in order of falling score, ready to be counted under any weights and groups."""

    def __init__(self, rank: np.ndarray, masses: Masses, person: np.ndarray) -> None:
        counted = masses.total != 0
        if not counted.all():  # the untested have no mass in most targets
            rank, person = rank[counted], person[counted]
        order = np.argsort(-rank, kind="stable")
        self.chosen = np.flatnonzero(counted)[order]  # rows, best first
        self.person = person[order]
        self.positive, self.negative = (
            mass[self.chosen] for mass in (masses.positive, masses.negative)
        )
        sorted_rank = rank[order]
        starts = np.append(True, sorted_rank[1:] != sorted_rank[:-1])[: len(sorted_rank)]
        self._tie = np.cumsum(starts)  # people of equal score share a number

    def curve(self, members: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        """True positive rate on the grid [501] of the ordered rows `members` (positions)."""
        p, q = self.positive[members], self.negative[members]
        if weight is not None:
            p, q = p * weight[members], q * weight[members]
        tie = self._tie[members]
        ends = np.append(tie[1:] != tie[:-1], True)  # a curve bends between scores, not within one
        tpr, fpr = (_rising(np.cumsum(mass)[ends]) for mass in (p, q))
        return np.interp(GRID, np.append(0.0, fpr), np.append(0.0, tpr))


def roc_gap(
    rank: np.ndarray,
    masses: Masses,
    group: np.ndarray,
    person: np.ndarray,
    kind: np.ndarray,
    codes: Sequence[int],
    *,
    n_resamples: int,
    rng: np.random.Generator,
) -> Gap:
    """The largest ROC gap among the groups `codes` (at least two).

    Args:
        rank: score of each row [n].
        masses: of each row.
        group: code of each row's group [n].
        person: code of each row's person [n].
        kind: what was seen of each row [n]: groups are dealt out among people of the same kind.
        codes: the groups to compare.
        n_resamples: of people, and of dealt groups.
        rng: of both.
    """
    ranking = Ranking(rank, masses, person)
    ordered = group[ranking.chosen]
    curves = [ranking.curve(np.flatnonzero(ordered == code)) for code in codes]
    members = [np.flatnonzero(ordered == code) for code in codes]
    value, (a, b) = _largest(curves)

    n_people = int(person.max()) + 1
    resampled, by_chance = np.empty(n_resamples), np.empty(n_resamples)
    first = np.unique(person, return_index=True)[1]
    group_of_person, kind_of_person = group[first], _highest(kind, person, n_people)
    taking_part = np.isin(group_of_person, codes)
    strata = [
        np.flatnonzero(taking_part & (kind_of_person == value))
        for value in np.unique(kind_of_person)
    ]
    for i in range(n_resamples):
        counts = np.bincount(rng.integers(n_people, size=n_people), minlength=n_people)
        weight = counts[ranking.person].astype(float)
        resampled[i] = _largest([ranking.curve(rows, weight) for rows in members])[0]
        dealt = group_of_person.copy()
        for stratum in strata:
            dealt[stratum] = rng.permutation(group_of_person[stratum])
        of_row = dealt[ranking.person]
        by_chance[i] = _largest([ranking.curve(np.flatnonzero(of_row == code)) for code in codes])[
            0
        ]
    return Gap(value, (codes[a], codes[b]), resampled, by_chance)


def _rising(cumulated: np.ndarray) -> np.ndarray:
    """Shares of the total, made to rise from 0 to 1."""
    total = cumulated[-1] if len(cumulated) else 0.0
    if total <= 0:
        return np.full(len(cumulated), np.nan)
    share = np.clip(cumulated / total, 0.0, 1.0)
    upper = np.maximum.accumulate(share)
    lower = np.minimum.accumulate(share[::-1])[::-1]
    rising: np.ndarray = (upper + lower) / 2
    return rising


def _largest(curves: Sequence[np.ndarray]) -> tuple[float, tuple[int, int]]:
    """The largest area between two curves, and which two."""
    gaps = {
        (a, b): float(np.trapezoid(np.abs(curves[a] - curves[b]), GRID))
        for a, b in combinations(range(len(curves)), 2)
    }
    pair = max(gaps, key=lambda p: -1.0 if np.isnan(gaps[p]) else gaps[p])
    return gaps[pair], pair


def _highest(kind: np.ndarray, person: np.ndarray, n_people: int) -> np.ndarray:
    """The most informative kind of row of each person."""
    highest = np.zeros(n_people, np.int64)
    np.maximum.at(highest, person, kind.astype(np.int64))
    return highest
