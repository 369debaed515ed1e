"""A known prevalence compared with the estimate that assumes features explain testing.

If features and group explain who is tested, the doubly robust prevalence is that of everybody. A
prevalence that is known from elsewhere tests it: nothing in the table itself can. Where the two
disagree by more than both their errors, untested people differ from tested people with the same
features; the odds ratio by which they do is the one that meets the known rate
(`dcem.estimation.known_rates`). Where they agree, it is told how far from 1 it would have had to be
to be noticed, with a probability of 80 %.

Bounds that assume nothing are tightened too: the prevalence of a part is known where it is stated,
and the parts make up the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import exp, inf, nan

import numpy as np

from dcem.audit.independence import POWER
from dcem.audit.remedies import audit_finding, share_of
from dcem.audit.results import FAR_RATIO, Audit, KnownRate, Prevalence
from dcem.audit.sensitivity import prevalence_at
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.findings import Finding
from dcem.estimation.influence import Statistic, simultaneous
from dcem.estimation.known_rates import (
    MOST_BEYOND,
    OUT_OF_REACH,
    alone_beyond,
    beyond_error,
    meet,
)
from dcem.estimation.outcomes import Unseen
from dcem.estimation.results import EVERYBODY, WITHHELD
from dcem.metrics.estimate import Estimate
from dcem.table.known_rates import PREVALENCE_ASSUMPTION
from dcem.text import groups, p_value, percent, ratio

NOTICED = 2.0  # an odds ratio that a known rate should have shown, for "fine" to be said


def known_rates(evaluator: Evaluator, plain: Unseen | None) -> tuple[KnownRate, ...]:
    """Each stated prevalence beside what the tests say; `plain` are outcomes at a ratio of 1."""
    problem, people = evaluator.problem, evaluator.people
    stated, masks = problem.known_prevalence, problem.parts()
    found, off = {}, {}
    for place, one in enumerate(stated):
        name = one.group or EVERYBODY
        value = Estimate(one.value, *one.interval)
        why = evaluator.lacking("dr", name)
        within = evaluator.reach.within
        weight = people.weight * masks[name]
        if not why and weight @ ~within > MOST_BEYOND * weight.sum():
            why = OUT_OF_REACH
        if plain is None:
            why = why or "everybody is tested"
        if why or plain is None:
            none = Estimate(nan, reason=why)
            found[name] = KnownRate(name, value, none, none, nan, none, (nan, nan))
            continue
        everybody = alone_beyond(plain, within)
        guess = prevalence_at(people, everybody, 1.0, masks[name])
        unsure = beyond_error(everybody.outcomes(1.0), weight / weight.sum(), within)
        errors = np.where(np.arange(len(stated)) == place, np.hypot(one.error, unsure), 0.0)
        difference = Statistic(guess.value - one.value, guess.influence).plus(errors)
        off[name] = difference
        found[name] = KnownRate(
            group=name,
            stated=value,
            estimated=guess.plus([unsure]).estimate(evaluator.person, share=True),
            difference=people.interval(difference),
            p_value=nan,
            odds_ratio=_ratio(evaluator, place),
            detectable=_detectable(everybody, weight, guess, people.error(difference)),
        )
    for name, compared in simultaneous(people, off).items():
        found[name] = replace(found[name], p_value=compared.p_value)
    return tuple(found.values())


def _ratio(evaluator: Evaluator, place: int) -> Estimate:
    """The odds ratio that meets a rate, its interval made on the logarithmic scale."""
    known = evaluator.unseen.known
    assert known is not None
    if known.reasons[place]:
        return Estimate(nan, reason=known.reasons[place])
    return evaluator.people.interval(known.statistic(place)).exp()


def _detectable(
    plain: Unseen, weight: np.ndarray, guess: Statistic, error: float
) -> tuple[float, float]:
    """The odds ratios below and above 1 that would have been noticed with a probability of .8."""
    found = []
    for side, beyond in ((-1, 0.0), (1, inf)):
        there = meet(plain, weight / weight.sum(), guess.value + side * POWER * error)
        found.append(beyond if there is None else exp(there[0]))
    return found[0], found[1]


def tightened(evaluator: Evaluator, found: tuple[Prevalence, ...]) -> tuple[Prevalence, ...]:
    """Bounds without any assumption, given what is known: of stated parts, and of the rest."""
    problem = evaluator.problem
    if not problem.known_prevalence:
        return found
    masks = problem.parts()
    share = {name: evaluator.people.mean(mine * 1.0).value for name, mine in masks.items()}
    limits = {item.group: item.bounds for item in found}
    groups = [name for name in masks if name != EVERYBODY]
    for one in problem.known_prevalence:
        name = one.group or EVERYBODY
        limits[name] = _overlap_of(limits[name], one.interval)
    if groups:
        ends = [sum(share[name] * limits[name][side] for name in groups) for side in (0, 1)]
        limits[EVERYBODY] = _overlap_of(limits[EVERYBODY], (ends[0], ends[1]))
        limits |= {name: _left_to_group(name, groups, share, limits) for name in groups}
    stated = {
        one.group or EVERYBODY: Estimate(one.value, *one.interval)
        for one in problem.known_prevalence
    }
    return tuple(
        replace(
            item,
            bounds=limits[item.group],
            limits=_overlap_of(item.limits, limits[item.group]),
            # known also where some are out of reach of the tests
            doubly_robust=item.doubly_robust
            if item.doubly_robust.estimable
            else stated.get(item.group, item.doubly_robust),
        )
        for item in found
    )


def _left_to_group(
    name: str,
    groups: list[str],
    share: Mapping[str, float],
    limits: Mapping[str, tuple[float, float]],
) -> tuple[float, float]:
    """What everybody's bounds, and those of all other groups, leave to a group."""
    ends = []
    for side in (0, 1):
        others = sum(share[other] * limits[other][1 - side] for other in groups if other != name)
        ends.append((limits[EVERYBODY][side] - others) / share[name])
    return _overlap_of(limits[name], (ends[0], ends[1]))


def _overlap_of(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Where two ranges agree; the first where they do not."""
    low, high = max(one[0], other[0]), min(one[1], other[1])
    return (low, high) if low <= high else one


def about_known_rates(audit: Audit) -> Iterator[Finding]:
    """Does a known prevalence bear out that features explain testing?"""
    # what is withheld is used all the same
    secret = {one.group for one in audit.known if one.odds_ratio.reason == WITHHELD.reason}
    for one in audit.known:
        if one.group not in secret:
            yield from _held_against(one)
    met = {
        one.group: one.stated
        for one in audit.known
        if one.odds_ratio.estimable or one.group in secret
    }
    if not met:
        return
    stated = {one.group for one in audit.known}
    rest = tuple(item.group for item in audit.counts if not stated & {item.group, EVERYBODY})
    rates = ", ".join(percent(e.value, 1) + _of_group(name) for name, e in met.items())
    nothing = (
        f" Nothing is stated for {groups(rest)}. It is assumed that features and group explain who "
        "was tested there, which makes comparisons with the other groups doubtful."
        if rest
        else ""
    )
    yield audit_finding(
        "known-rate",
        "caution" if rest else "note",
        "prevalence",
        f"Numbers for {audit.whom} rest on a known prevalence: {rates}",
        f"{PREVALENCE_ASSUMPTION} The table can confirm neither.{nothing}",
        rest,
        rates=met,
        rest=rest,
    )


def _of_group(name: str) -> str:
    return "" if name == EVERYBODY else f" in group {name}"


def _held_against(one: KnownRate) -> Iterator[Finding]:
    """What one stated rate says of features and testing."""
    of, whose = _of_group(one.group), () if one.group == EVERYBODY else (one.group,)
    names = ("stated", "estimated", "difference", "odds_ratio", "detectable", "p_value")
    values = {name: getattr(one, name) for name in names}
    stated, guess, times = one.stated, one.estimated, one.odds_ratio
    known = share_of(stated) if stated.high > stated.low else percent(stated.value, 1)
    if not times.estimable:
        yield audit_finding(
            "known-rate-unused",
            "caution",
            "prevalence",
            f"The known prevalence{of} says nothing about the untested here",
            f"The stated value is {percent(stated.value, 1)}. What it means for the untested "
            f"cannot be determined: {times.reason}. Estimates{of} assume that features and group "
            "explain who was tested.",
            whose,
            **values,
        )
    if one.disagrees:
        times_as = ""
        if times.estimable:
            less = "less" if one.difference.value > 0 else "more"
            times_as = (
                f" The untested have the outcome {less} often than tested people with the same "
                f"features: their odds are {ratio(times.value)} ({ratio(times.low)} to "
                f"{ratio(times.high)}) times as high."
            )
        far = times.estimable and (times.low > FAR_RATIO or times.high < 1 / FAR_RATIO)
        yield audit_finding(
            "known-rate-disagrees",
            "serious" if far else "caution",
            "prevalence",
            f"Features do not explain who is tested{of}: estimated {percent(guess.value, 1)}, "
            f"known {percent(stated.value, 1)}",
            f"If they did, the prevalence would be {share_of(guess)}; the known value is {known}, "
            f"{p_value(one.p_value)}.{times_as} Or the known rate refers to other people, or to "
            "another outcome.",
            whose,
            **values,
        )
    elif one.difference.estimable:
        low, high = one.detectable
        ends = [f"under {ratio(low)}"] * (low > 0) + [f"over {ratio(high)}"] * (high < inf)
        noticed = "No odds ratio would have been noticed with a probability of 80 %."
        if ends:
            noticed = (
                f"Odds of untested people {' or '.join(ends)} times those of tested people with "
                "the same features would have been noticed with a probability of 80 %."
            )
        yield audit_finding(
            "known-rate-agrees",
            "fine" if low > 1 / NOTICED and high < NOTICED else "note",
            "prevalence",
            f"A known prevalence does not contradict that features explain testing{of}",
            f"On that assumption it is {share_of(guess)}; the known value is {known}, "
            f"{p_value(one.p_value)}. {noticed}",
            whose,
            **values,
        )
