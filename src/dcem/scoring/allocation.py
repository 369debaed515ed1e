"""How likely should each person be tested next, if so many can be?

The answer is a probability, not a ranking. A ranking tests the same kind of people again and leaves
the rest for ever unseen: the hole that this library exists to deal with. When everybody has a
known chance above zero, whatever is found later can be weighted by one over that chance, and means
and accuracies of *all* who were not tested before can be estimated without any assumption about
who was chosen (Horvitz and Thompson, 1952).

Of the budget, a fifth is given out before anything else is looked at: one half evenly over people,
the other evenly over groups. The rest follows what would be gained.
"""

from __future__ import annotations

from numbers import Real

import numpy as np

from dcem.table.messages import InputError

FLOOR = 0.2  # share of the budget given out evenly
FLOOR_MOST = 0.5  # the floor alone tests nobody with a higher probability than this


def allocate(gain: np.ndarray, group: np.ndarray, budget: float) -> np.ndarray:
    """Probabilities [n] that sum to `budget`: a minimum for everybody, the rest by gain.

    Parameters
    ----------
    gain
        Gain from testing each person [n]: finite, not negative, in any unit.
    group
        Group codes [n].
    budget
        Expected number of tests; if it is as large as the number of people, all are tested.
    """
    n = len(gain)
    if not (isinstance(budget, Real) and 0 < budget < np.inf):
        raise InputError(f"The budget must be a positive number of tests, got {budget!r}.")
    if budget >= n:
        return np.ones(n)
    return _fill(floor(group, budget), gain, budget)


def floor(group: np.ndarray, budget: float) -> np.ndarray:
    """The minimum probability of each person [n], whatever the gain."""
    n = len(group)
    levels, codes, sizes = np.unique(group, return_inverse=True, return_counts=True)
    evenly = FLOOR / 2 * budget / n
    of_group = FLOOR / 2 * budget / (len(levels) * sizes[codes])
    return np.minimum(FLOOR_MOST, evenly + of_group)


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
