"""What deciders as an instrument say: bounds of numbers, checks of themselves, a score's worth.

*Bounds.* Every number is asked at the least and at the largest risk that deciders allow
(`dcem.estimation.instrument`), and at those that results alone allow, whoever decided; the narrower
end is told. Where deciders hardly differ, choosing among them gains less than it costs in noise.

*Checks.* Do deciders behave as an instrument must? Two things can be refuted, and not be shown.

*Who decides has nothing to do with the outcome, at equal features* (exclusion, and as if random).
Then no decider finds more positives than another's negatives leave room for: at no x may a lower
end exceed an upper end (the instrumental inequality; Pearl 1995). Averages over everybody hide it
where it happens to few, so the people for whom models fitted to others predict a crossing are
looked at by themselves: chosen without them, they cross by chance half of the time only.

*Whoever is tested under one decider would be under every decider who tests more* (monotonicity;
Imbens and Angrist 1994). Then at every x a level with more tests tests, finds and clears no fewer.
Again people are chosen for whom models fitted to others predict the contrary. The bounds do not
need it; what one more test finds, and deciders compared at equal rates, do.

*Contraction.* A score judged by the people of those who test the most, without any model of risk.
Those who test the most have results for more people than others would have. Take away their tests
of the lowest scores until as many are left as another level of deciders makes: what is still found
is what is found if the score, not those deciders, says whom among them to test. If deciders get
comparable people, both are about the same people at the same number of tests, whatever deciders saw
that the table does not show (Lakkaraju et al. 2017, there with the *highest* risks taken away,
since judges release, and see the outcome of, those of low risk).

Two things it is not. It never asks about people whom nobody tests, so it is no more than what score
*and* decider agree to test. And it rests on the people of one level alone, who are weighted to be
like everybody in the features.

J. Pearl, "On the testability of causal models with latent and instrumental variables", UAI 1995;
G. Imbens and J. Angrist, "Identification and estimation of local average treatment effects",
Econometrica 1994; T. Kitagawa, "A test for instrument validity", Econometrica 2015;
H. Lakkaraju et al., "The selective labels problem: evaluating algorithmic predictions in the
presence of unobservables", KDD 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import nan

import numpy as np
from scipy.stats import norm

from dcem.estimation.influence import FEWEST_PEOPLE, People, Statistic
from dcem.estimation.instrument import Ends, Instrument
from dcem.estimation.measures import auc, highest_first
from dcem.estimation.outcomes import Masses, uncertain
from dcem.estimation.ranking import RankedScore
from dcem.metrics.estimate import Estimate


def prevalence_bounds(instrument: Instrument, people: People, among: np.ndarray) -> Ends:
    """How common the outcome is among some rows (a mask)."""

    def end(one: Instrument, up: bool) -> Statistic:
        return people.mean(one.most if up else one.least, among)

    return _clipped_ends(instrument, people, end)


def auc_bounds(instrument: Instrument, people: People, score: np.ndarray) -> Ends:
    """The AUC of a score: all risks between the ends are tried, and the worst and best kept."""
    ranked, everybody = RankedScore(score, people.weight), np.ones(len(score), bool)

    def end(one: Instrument, up: bool) -> Statistic:
        return ranked.auc(ranked.adversary(one.least, one.most, everybody, up), everybody)

    return _clipped_ends(instrument, people, end)


def gain_bounds(
    instrument: Instrument, people: People, score: np.ndarray, other: np.ndarray
) -> Ends:
    """AUC of a score minus that of another, both on the same people and at the same risks.

    With ranks F and G among everybody and prevalence p it is E[risk (F - G)] / (p (1 - p)): at any
    given p it is largest where the risk is highest for those whom the first ranks higher, so that
    the worst and the best case are thresholds of F - G.
    """
    by_gain = RankedScore(score - other, people.weight)

    def end(one: Instrument, up: bool) -> Statistic:
        risk = _extreme(by_gain, score - other, one, up)
        masses = Masses(people.weight * risk, people.weight * (1 - risk))
        return auc(score, masses) - auc(other, masses)

    return _clipped_ends(instrument, people, end, least=-1.0)


def _extreme(ranked: RankedScore, gain: np.ndarray, instrument: Instrument, up: bool) -> np.ndarray:
    """Risks between both ends [n] under which E[risk gain] / (p (1 - p)) is largest or smallest."""
    low, high = instrument.least, instrument.most

    def sums(values: np.ndarray) -> np.ndarray:
        return np.bincount(ranked.step, ranked.weight * values, minlength=ranked.n_steps)

    def at_cuts(least: np.ndarray, most: np.ndarray) -> np.ndarray:
        first, second = (most, least) if up else (least, most)  # above the cut, and below it
        above = np.append(np.cumsum(first[::-1])[::-1], 0.0)
        return above + np.append(0.0, np.cumsum(second))  # [cuts]

    total = ranked.weight.sum()
    p = np.clip(at_cuts(sums(low), sums(high)) / total, 1e-6, 1 - 1e-6)
    won = at_cuts(sums(low * gain), sums(high * gain)) / total / (p * (1 - p))
    cut = int(np.argmax(won) if up else np.argmin(won))
    return np.where((ranked.step >= cut) == up, high, low)


def acting_bounds(instrument: Instrument, people: People, acted: np.ndarray) -> dict[str, Ends]:
    """Of acting on some people (a mask [n]): the share of positives reached, and precision."""

    def reached(one: Instrument, up: bool) -> Statistic:
        mine, others = (one.most, one.least) if up else (one.least, one.most)
        return people.quotient(acted * mine, acted * mine + ~acted * others)

    return {
        "true_positive_rate": _clipped_ends(instrument, people, reached),
        "precision": prevalence_bounds(instrument, people, acted),
    }


def _clipped_ends(
    instrument: Instrument,
    people: People,
    end: Callable[..., Statistic],
    least: float = 0.0,
) -> Ends:
    """The lower and the upper end with intervals, cut off where the number cannot be.

    `end` [Instrument, whether it is the upper one] is the number at either end. Both ways to ask
    are valid, and so is the narrower of them: a limit misses the truth 2.5 times in 100 at most,
    two limits of one end 5 times. That is all there is to miss: the truth is near both ends only
    where these meet, and both ways have them meet only where nearly everybody is tested, where they
    are the same.
    """
    ways = instrument, instrument.without_deciders()

    def narrower(up: bool) -> Estimate:
        asked = [people.interval(uncertain(partial(end, up=up), way)) for way in ways]
        found = [(one.value, one.low, one.high) for one in asked if one.estimable]
        if not found:
            return asked[0]
        return Estimate(*(np.min if up else np.max)(found, axis=0).tolist()).clipped(least)

    return Ends(narrower(up=False), narrower(up=True))


# -- do they behave as an instrument must? -------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """By how much something that cannot be is seen, where it was expected from other people."""

    violation: Estimate  # above 0: seen; NaN where nobody is expected to show it
    p_value: float  # of no violation, corrected for the number of checks
    share: float  # of people for whom it was expected


def check_exclusion(
    instrument: Instrument, people: People, parts: dict[str, np.ndarray]
) -> dict[str, Check]:
    """By how much the ends cross, in each part (masks by name)."""
    low, high = instrument.predicted
    crossing = instrument.least - instrument.most
    found = {name: (people, crossing, mine & (low > high), mine) for name, mine in parts.items()}
    return {name: _violation(*one, len(found)) for name, one in found.items()}


def check_monotonicity(instrument: Instrument, people: People) -> dict[str, Check]:
    """By how much levels that test more test, find or clear fewer people."""
    everybody = np.ones(len(instrument.level), bool)
    expected = {"found": instrument.found, "cleared": instrument.cleared}
    seen = {"found": instrument.finds, "cleared": instrument.clears}
    for parts in (expected, seen):
        parts["tested"] = parts["found"] + parts["cleared"]
    both = instrument.within[:, 1:] & instrument.within[:, :-1]
    found = {}
    for name, predicted in expected.items():
        against = both & (np.diff(predicted, axis=1) < 0)  # [n, levels - 1]
        falls = -(np.diff(seen[name], axis=1) * against).sum(axis=1)
        found[name] = (people, falls, against.any(axis=1), everybody)
    return {name: _violation(*one, len(found)) for name, one in found.items()}


def _violation(
    people: People, seen: np.ndarray, expected: np.ndarray, among: np.ndarray, checks: int
) -> Check:
    """The mean of what is seen among those of whom it was expected (masks [n])."""
    share = people.mean(expected.astype(float), among).value
    if people.count(expected) < FEWEST_PEOPLE:
        return Check(Estimate(nan, reason="expected for hardly anybody"), 1.0, share)
    found: Statistic = people.mean(seen, expected)
    error = people.error(found)
    p = float(norm.sf(found.value / error)) if error > 0 else 1.0
    return Check(people.interval(found), min(1.0, checks * p), share)


# -- contraction ---------------------------------------------------------------------------------


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
    """Of each level but the last, from the fewest tests; none if the last is not for all."""
    found: list[Contracted] = []
    if instrument.lacking[-1]:
        return ()
    tests = [people.mean(one) for one in (instrument.finds + instrument.clears).T]
    for level, name in enumerate(instrument.names[:-1]):
        if instrument.lacking[level] or not 0 < tests[level].value < tests[-1].value:
            continue  # it represents some only, or there are not as many tests to keep
        theirs = people.mean(instrument.finds[:, level])
        mine = _kept(instrument, people, score, tests[level])
        ends = (tests[level], theirs, mine, mine - theirs)
        found.append(Contracted(name, *map(people.interval, ends)))
    return tuple(found)


def _kept(instrument: Instrument, people: People, score: np.ndarray, tests: Statistic) -> Statistic:
    """Found per person if the level of the most tests keeps those of the highest scores."""
    weight = people.weight * instrument.stands_for[:, -1]
    total, tested = weight.sum(), weight * instrument.tested
    room = tests.value * total
    before, kept = highest_first(score, tested, room)
    positive = tested * instrument.y
    value = float(positive @ kept / total)
    # The cut moves with the number of tests; what it then gains is what is found around it.
    near = np.abs(before - room) <= 0.1 * tested.sum()
    around = float(positive[near].sum() / max(tested[near].sum(), 1e-12))
    influence = positive * kept - value * weight - around * (tested * kept - tests.value * weight)
    return Statistic(value, influence / total + around * tests.influence)
