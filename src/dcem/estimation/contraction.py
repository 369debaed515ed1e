"""Contraction: a score judged by the people of those who test the most, without any model of risk.

Those who test the most have results for more people than others would have. Take away their tests
of the lowest scores until as many are left as another level of deciders makes: what is still found
is what is found if the score, not those deciders, says whom among them to test. If deciders get
comparable people, both are about the same people at the same number of tests, whatever deciders saw
that the table does not show (Lakkaraju et al. 2017, there with the *highest* risks taken away,
since judges release, and see the outcome of, those of low risk).

Two things it is not. It never asks about people whom nobody tests, so it is no more than what score
*and* decider agree to test. And it rests on the people of one level alone, who are weighted to be
like everybody in the features.

H. Lakkaraju et al., "The selective labels problem: evaluating algorithmic predictions in the
presence of unobservables", KDD 2017.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcem.estimation.influence import People, Statistic
from dcem.estimation.instrument import Instrument
from dcem.metrics.estimate import Estimate


@dataclass(frozen=True)
class Contracted:
    """What a score finds with as many tests as a level of deciders makes, per person."""

    level: str  # of deciders
    rate: Estimate  # share of people whom they test
    deciders: Estimate  # share of people whom they find positive
    score: Estimate  # whom the score finds with as many tests, among those of the most tests
    gain: Estimate  # score - deciders


def contraction(
    instrument: Instrument, people: People, score: np.ndarray
) -> tuple[Contracted, ...]:
    """Of each level but the last, from the fewest tests; none if the last cannot speak for all."""
    found: list[Contracted] = []
    if instrument.lacking[-1]:
        return ()
    tests = [people.mean(one) for one in (instrument.finds + instrument.clears).T]
    for level, name in enumerate(instrument.names[:-1]):
        if instrument.lacking[level] or not 0 < tests[level].value < tests[-1].value:
            continue  # it speaks for some only, or there are not as many tests to keep
        theirs = people.mean(instrument.finds[:, level])
        mine = _kept(instrument, people, score, tests[level])
        ends = (tests[level], theirs, mine, mine - theirs)
        found.append(Contracted(name, *map(people.interval, ends)))
    return tuple(found)


def _kept(instrument: Instrument, people: People, score: np.ndarray, tests: Statistic) -> Statistic:
    """Found per person if the level of the most tests keeps those of the highest scores."""
    weight = people.weight * instrument.stands_for[:, -1]
    total, tested = weight.sum(), weight * instrument.tested
    values, place = np.unique(-score, return_inverse=True)
    mass = np.bincount(place, tested, minlength=len(values))
    before = np.cumsum(mass) - mass
    room = tests.value * total
    kept = np.clip((room - before) / np.where(mass == 0, 1, mass), 0, 1)[place]
    positive = tested * instrument.y
    value = float(positive @ kept / total)
    # The cut moves with the number of tests; what it then gains is what is found around it.
    near = np.abs(before[place] - room) <= 0.1 * tested.sum()
    around = float(positive[near].sum() / max(tested[near].sum(), 1e-12))
    influence = positive * kept - value * weight - around * (tested * kept - tests.value * weight)
    return Statistic(value, influence / total + around * tests.influence)
