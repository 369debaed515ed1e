"""How likely should each person be tested next, if so many can be?

The answer is a probability, not a ranking. A ranking tests the same kind of people again and leaves
the rest for ever unseen: the hole that this library exists to deal with. When everybody has a
known chance above zero, whatever is found later can be weighted by one over that chance, and means
and accuracies of *all* who were not tested before can be estimated without any assumption about
who was chosen (Horvitz and Thompson, 1952).

Of the budget, a fifth is given out before anything else is looked at: one half evenly over people,
the other over groups, to each no more than its own estimate needs. The rest follows what would be
gained, within two limits: a group that is tested less gets at least its share of the untested, and
a small group no more than its share, or what its estimate needs if that is more.
"""

from __future__ import annotations

from bisect import bisect_left
from numbers import Real

import numpy as np

from dcem.table.messages import InputError

FLOOR = 0.2  # share of the budget given out before the gain is looked at
ENOUGH = 96  # tests with which a share is known to within 10 points, whatever it is
# Share of a group with which the error of its estimate is at most twice what it would be if all
# were tested, which chance in who belongs to the group still leaves.
QUARTER = 0.25
SMALL_GROUP = 100  # untested people; of fewer, gain does not move tests to the group


def allocate(
    gain: np.ndarray,
    group: np.ndarray,
    budget: float,
    *,
    tested: np.ndarray | None = None,
    tested_less: np.ndarray | None = None,
) -> np.ndarray:
    """Probabilities [n] that sum to `budget`: a minimum for everybody, the rest by gain.

    Parameters
    ----------
    gain
        Gain from testing each person [n]: finite, not negative, in any unit.
    group
        Group codes [n].
    budget
        Expected number of tests; if it is as large as the number of people, all are tested.
    tested
        Number of tests that the group of each person had before [n]; none by default.
    tested_less
        True for people of a group that is tested less than others [n]; nobody by default.
    """
    n = len(gain)
    if not (isinstance(budget, Real) and 0 < budget < np.inf):
        raise InputError(f"The budget must be a positive number of tests, got {budget!r}.")
    if budget >= n:
        return np.ones(n)
    _, first, code, sizes = np.unique(
        group, return_index=True, return_inverse=True, return_counts=True
    )
    less = np.zeros(len(sizes), bool) if tested_less is None else tested_less[first]
    least = floor(group, budget, tested)
    by_gain = np.bincount(code, _fill(least, gain, budget))
    share, minimum = budget * sizes / n, np.bincount(code, least)
    base = np.where(less, share, FLOOR / 2 * share)
    lowest = base + _dealt(budget - base.sum(), np.maximum(minimum - base, 0))
    enough = np.maximum(share, needed(sizes, _of_group(tested, first)))
    highest = np.where(sizes < SMALL_GROUP, np.maximum(enough, lowest), sizes)
    total = _within(by_gain, lowest, highest, budget)
    probability = np.empty(n)
    members = np.split(np.argsort(code, kind="stable"), np.cumsum(sizes)[:-1])
    for rows, tests in zip(members, total, strict=True):
        probability[rows] = _fill(np.minimum(least[rows], tests / len(rows)), gain[rows], tests)
    return probability


def needed(untested: np.ndarray, tested: np.ndarray) -> np.ndarray:
    """Tests that each group [G] still needs for its own share of positives.

    As many as tell it to within 10 points, but of a small group no more than bring a quarter of
    it to be tested: chance alone leaves its estimate imprecise, however many more are tested.
    """
    aim = np.minimum(ENOUGH, QUARTER * (untested + tested))
    return np.clip(aim - tested, 0, untested)


def floor(group: np.ndarray, budget: float, tested: np.ndarray | None = None) -> np.ndarray:
    """The minimum probability of each person [n], whatever the gain."""
    _, first, code, sizes = np.unique(
        group, return_index=True, return_inverse=True, return_counts=True
    )
    evenly = FLOOR / 2 * budget / len(group)
    lacking = np.maximum(needed(sizes, _of_group(tested, first)) - evenly * sizes, 0)
    return evenly + (_dealt(FLOOR / 2 * budget, lacking) / sizes)[code]


def _of_group(tested: np.ndarray | None, first: np.ndarray) -> np.ndarray:
    return np.zeros(len(first)) if tested is None else np.asarray(tested, np.float64)[first]


def _dealt(number: float, most: np.ndarray) -> np.ndarray:
    """A number shared out evenly [G], to each at most so many; less where that is all they take."""
    if most.sum() <= number:
        return most
    return _within(np.ones(len(most)), np.zeros(len(most)), most, number)


def _within(size: np.ndarray, low: np.ndarray, high: np.ndarray, total: float) -> np.ndarray:
    """`clip(c size, low, high)` [G] with the c at which the sum is `total`.

    The sum grows with c in straight lines between the values where a part meets a limit.
    """

    def sum_at(c: float) -> float:
        return float(np.clip(c * size, low, high).sum())

    turns = np.unique(np.concatenate([low / size, high / size]))
    after = bisect_left(turns, total, hi=len(turns) - 1, key=sum_at)
    between = turns[[max(after - 1, 0), after]]
    c = np.interp(total, [sum_at(turn) for turn in between], between)
    return np.clip(c * size, low, high)


def draw(
    probability: np.ndarray,
    random_state: int | np.random.Generator,
    person: np.ndarray | None = None,
) -> np.ndarray:
    """Which rows are drawn [n]: each with its probability, in total as many as these sum to.

    Systematic sampling: rows are laid side by side in random order, each as long as its
    probability, and whichever lies under a mark at every whole step from a random start is drawn.
    The number drawn is the sum, rounded down or up. Rows of a `person` (codes [n]) lie together: if
    their probabilities sum to at most 1, at most one of them is drawn.
    """
    rng = np.random.default_rng(random_state)
    person = np.arange(len(probability)) if person is None else person
    order = np.argsort(rng.permutation(person.max() + 1)[person], kind="stable")
    ends = np.cumsum(probability[order]) + rng.random()
    starts = np.concatenate([ends[:1] - probability[order[:1]], ends[:-1]])
    drawn = np.empty(len(probability), dtype=bool)
    drawn[order] = np.floor(ends) > np.floor(starts)
    return drawn


def _fill(least: np.ndarray, gain: np.ndarray, budget: float) -> np.ndarray:
    """`min(1, least + c gain)` with the c at which the sum is the budget.

    Whoever would exceed 1 is set to 1 and what is left is shared again: at most as many rounds as
    people, in practice a handful.
    """
    if budget > len(gain) - 1e-9:
        return np.ones(len(gain))
    share = gain / gain.max() if gain.max() > 0 else np.ones(len(gain))
    certain = np.zeros(len(gain), dtype=bool)
    while True:
        open_ = ~certain
        rest = budget - certain.sum() - least[open_].sum()
        total = share[open_].sum()
        if total == 0:  # nobody left would gain: the rest evenly
            share = np.ones(len(gain))
            total = open_.sum()
        probability = np.where(certain, 1.0, least + rest / total * share)
        beyond = open_ & (probability > 1)
        if not beyond.any():
            return probability
        certain |= beyond
