"""Who would be tested instead of whom, if a score chose as many as were: the swap set.

A lender that changes its score keeps most of its book. What changes is the swap set: applicants who
are approved now and would no longer be (*swapped out*), whose outcomes are known, and those who are
declined now and would be approved (*swapped in*), whose outcomes nobody saw. Among people with the
lowest scores (a set R, as many as were tested) the positives of the untested are all positives less
those that were seen, doubly robust:

    sum over R of  m + t (y - m) / e  -  t y,

over the number of the untested in R: right if features and group explain who is tested, and either
model is right. People out of reach of the tests carry no mass; `reach` says how many they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import nan

import numpy as np

from dcem.estimation import measures
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.influence import FEWEST_TESTED
from dcem.estimation.outcomes import Masses
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import tellable_shares

NEAR = 0.05  # share of people on either side of a cut-off who tell of those at it
MOST = 0.5  # share of people who must be within reach for anything to be reported of them
TWICE = 2.0  # odds ratio of something unrecorded, tried on the swapped in
CELLS = ("kept", "swapped out", "swapped in", "left out")


@dataclass(frozen=True)
class SwapSet:
    """What choosing the lowest scores would change, at the same share of people."""

    share: Mapping[str, float]  # of all people, by `CELLS`
    rate: Mapping[str, Estimate]  # of positives; what nobody saw is doubly robust
    now: Estimate  # rate of positives among those who were tested
    then: Estimate  # the same among those whom the score chooses, doubly robust
    change: Estimate  # then - now
    reach: float  # share of the swapped in whom the tests represent
    doubled: Estimate  # rate of the swapped in, if the odds of the untested are twice as high
    groups: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # share tested: now,
    # and then
    reason: str = ""  # why there is nothing


def untested_masses(evaluator: Evaluator, gamma: float = 1.0) -> Masses:
    """Masses of what was not seen: doubly robust for everybody, less what was.

    `gamma` is the odds of the untested over those that their features tell.
    """
    whole, seen = evaluator.masses["dr"], evaluator.masses["tested"].among(evaluator.reach.within)
    if gamma != 1:
        positive = whole.total * evaluator.unseen.outcomes(gamma)
        whole, seen = Masses(positive, whole.total - positive), replace(seen, moved=())
    return _less(whole, seen)


def _less(whole: Masses, seen: Masses) -> Masses:
    moved = list(whole.moved)
    for place, one in enumerate(seen.moved):  # the same stated rates stand first in both
        other = whole.moved[place]
        moved[place] = other._replace(up=_less(other.up, one.up), down=_less(other.down, one.down))
    plain = Masses(seen.positive, seen.negative)
    for place in range(len(seen.moved), len(moved)):  # uncertain about the whole, not of the seen
        moved[place] = moved[place].map(lambda end: _less(end, plain))
    return Masses(whole.positive - seen.positive, whole.negative - seen.negative, tuple(moved))


def safest(rank: np.ndarray, weight: np.ndarray, share: float) -> np.ndarray:
    """The `share` of people (a mask [n]) with the lowest scores; those of one score together."""
    order = np.argsort(rank, kind="stable")
    room = share * weight.sum()
    last = rank[order[min(np.searchsorted(np.cumsum(weight[order]), room - 1e-9), len(rank) - 1)]]
    below, within = rank < last, rank <= last
    nearer = abs(weight[within].sum() - room) <= abs(weight[below].sum() - room)
    return within if nearer else below


def near_cut(rank: np.ndarray, weight: np.ndarray, share: float) -> np.ndarray:
    """For rows near the cut-off of the `share` of lowest scores, one over their weight in all [n];
    0 elsewhere: what turns their masses into those of a person at the cut-off."""
    order = np.argsort(rank, kind="stable")
    place = np.empty(len(rank))
    place[order] = (np.cumsum(weight[order]) - weight[order] / 2) / weight.sum()
    away = np.abs(place - share)
    nearest = away <= max(NEAR, float(away[weight > 0].min()))
    return nearest / weight[nearest].sum()


def swap_set(evaluator: Evaluator, rank: np.ndarray) -> SwapSet:
    """Whom the lowest scores would choose instead of the tested, as many as these are."""
    problem = evaluator.problem
    tested = problem.tested
    weight = problem.weights
    share = float(weight @ tested / weight.sum())
    chosen = safest(rank, weight, share)
    both = (tested & chosen, tested & ~chosen, ~tested & chosen, ~tested & ~chosen)
    masks = dict(zip(CELLS, both, strict=True))
    few = [name for name, mask in masks.items() if 0 < evaluator.people.count(mask) < FEWEST_TESTED]
    why = evaluator.lacking("dr")
    if few:
        why = f"fewer than {FEWEST_TESTED} people would be {few[0]}"
    if why:
        none = Estimate(nan, reason=why)
        return SwapSet({}, {}, none, none, none, nan, none, reason=why)
    seen, unseen = evaluator.masses["tested"], untested_masses(evaluator)
    near = near_cut(rank, weight, share)
    drift = weight * (1.0 * tested - chosen)  # one more who was tested: one more is chosen

    def rate(of: Masses, who: np.ndarray, few: str = "") -> Estimate:
        way = drift if who is chosen else -drift
        return evaluator.estimated(measures.rate_among(who, of, near, way), few, share=True)

    plain = evaluator.too_few_on_a_side("tested", chosen)
    now = measures.prevalence(seen)
    then = measures.rate_among(chosen, evaluator.masses["dr"], near, drift)
    within = evaluator.reach.within

    def beyond(cell: str) -> str:
        """Why nothing is reported of a cell to most of whom nobody tested is like."""
        here = masks[cell] & within
        enough = evaluator.people.count(here) >= FEWEST_TESTED or not masks[cell].any()
        if enough and weight @ here >= MOST * (weight @ masks[cell]):
            return ""
        return f"too few of the {cell} are within reach of the tests"

    came, far = masks["swapped in"], beyond("swapped in")
    return SwapSet(
        share={name: float(weight @ mask / weight.sum()) for name, mask in masks.items()},
        rate={
            "kept": rate(seen, chosen, plain),
            "swapped out": rate(seen, ~chosen, plain),
            "swapped in": rate(unseen, chosen, far),
            "left out": rate(unseen, ~chosen, beyond("left out")),
        },
        now=evaluator.estimated(now, share=True),
        then=evaluator.estimated(then, far, share=True),
        change=evaluator.estimated(then - now, far),
        reach=float(weight @ (came & within) / max(weight @ came, 1e-300)),
        doubled=rate(untested_masses(evaluator, TWICE), chosen, far),
        groups=_by_group(evaluator, chosen, weight),
    )


def _by_group(
    evaluator: Evaluator, chosen: np.ndarray, weight: np.ndarray
) -> dict[str, tuple[float, float]]:
    """Share of each group that is tested, and that would be; NaN where one shows a small count."""
    problem, found = evaluator.problem, {}
    told = [tellable_shares(problem, who) for who in (problem.tested, chosen)]
    for name, mine in problem.parts().items():
        if not all(one[name] for one in told):
            found[name] = (nan, nan)
            continue
        now, then = (weight[mine] @ who[mine] for who in (problem.tested, chosen))
        found[name] = (float(now / weight[mine].sum()), float(then / weight[mine].sum()))
    return found
