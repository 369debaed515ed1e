"""Rates along a number: people in parts of about equal size by a score, and what happens in each.

Parts in which fewer than ten people stand on a side are left out: they would say something about
single people, and little about anything else.
"""

from __future__ import annotations

import numpy as np

from dcem.estimation.influence import FEWEST_TESTED, People


def equal_mass(score: np.ndarray, mass: np.ndarray, n_bins: int) -> np.ndarray:
    """The part of each row [n], 0 to `n_bins` - 1, of equal mass; equal scores share one."""
    values, place = np.unique(score, return_inverse=True)
    at = np.bincount(place, mass, minlength=len(values))
    middle = np.cumsum(at) - at / 2
    return np.clip((n_bins * middle / at.sum()).astype(np.intp), 0, n_bins - 1)[place]


def rates(
    people: People, yes: np.ndarray, score: np.ndarray, mine: np.ndarray, part: np.ndarray
) -> np.ndarray:
    """Mean score, share of `yes` and its interval in each part of the rows `mine`: [4, parts].

    `part` [n] says which part a row is in.
    """
    points = []
    for number in np.unique(part[mine]):
        here = mine & (part == number)
        count = people.count(here & yes)
        if min(count, people.count(here & ~yes)) < FEWEST_TESTED:
            continue
        share = people.proportion(yes, here)
        points.append(
            (people.mean(score, here.astype(float)).value, share.value, share.low, share.high)
        )
    return np.array(points).reshape(-1, 4).T
