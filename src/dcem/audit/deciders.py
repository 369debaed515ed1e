"""Deciders in an audit: how they differ, and what the decider as an instrument bounds and refutes.

Two different assumptions meet here. The estimates of an audit take it that features explain who is
tested; the bounds take it that, at equal features, chance says who decides. Where the first puts
the outcome beyond what the second allows, one of them is wrong (`beyond`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
from scipy.stats import norm

from dcem.audit.remedies import audit_finding, each_named
from dcem.audit.results import CLEAR_P, Audit, Deciders, Level
from dcem.estimation.by_decider import (
    auc_bounds,
    check_exclusion,
    check_monotonicity,
    prevalence_bounds,
)
from dcem.estimation.deciders import Compared, compare_deciders
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.findings import Finding
from dcem.estimation.influence import FEWEST_PEOPLE, People
from dcem.estimation.instrument import Instrument, fit_instrument
from dcem.estimation.results import EVERYBODY
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import THRESHOLD
from dcem.table.labels import SelectiveLabels
from dcem.text import capitalised, decimal, listed, p_value, percent, points

MUCH = 0.05  # a standard deviation of testing rates that is more than a note
MIXED = 0.01  # share of the variance of risk between deciders that a reader should know of
ABOUT = "deciders"
NAMED = 4  # deciders at either end who are named on a page, if they are clearly off


def audit_deciders(
    evaluator: Evaluator,
    risk: np.ndarray,
    sources: Sequence[str],
    rng: np.random.Generator,
    **models: Any,
) -> Deciders:
    """How deciders differ, and what they bound; `risk` [n] is the score whose AUC is bounded.

    `sources` are the raw columns of the features; `models`: learners, max_rows and progress of
    `fit_instrument`.
    """
    problem, people, nuisances = evaluator.problem, evaluator.people, evaluator.nuisances
    compared = compare_deciders(problem, people, nuisances.testing, nuisances.outcome, sources)
    if isinstance(compared, str):
        return Deciders(compared)
    instrument = fit_instrument(problem, evaluator.fold, nuisances.testing, rng, **models)
    if instrument is None:
        return Deciders("too few people for bounds by decider", compared)
    masks = {
        name: mine for name, mine in problem.parts().items() if people.count(mine) >= FEWEST_PEOPLE
    }
    beyond, p_value = _beyond_bounds(evaluator, instrument)
    return Deciders(
        "",
        compared,
        _level_rates(instrument, people),
        {name: prevalence_bounds(instrument, people, mine) for name, mine in masks.items()},
        auc_bounds(instrument, people, risk),
        check_exclusion(instrument, people, masks),
        check_monotonicity(instrument, people),
        beyond,
        p_value,
    )


def _level_rates(instrument: Instrument, people: People) -> tuple[Level, ...]:
    made = []
    for code, (name, why) in enumerate(zip(instrument.names, instrument.lacking, strict=True)):
        finds, clears = instrument.finds[:, code], instrument.clears[:, code]
        tested, found = (
            Estimate(nan, reason=why) if why else people.interval(people.mean(one))
            for one in (finds + clears, finds)
        )
        made.append(Level(name, tested, found))
    return tuple(made)


def _beyond_bounds(evaluator: Evaluator, instrument: Instrument) -> tuple[Estimate, float]:
    """By how much the doubly robust prevalence leaves the bounds, at the end that it is nearer to.

    Two ends are looked at: the p-value, of one side, counts twice.
    """
    people = evaluator.people
    rests = evaluator.problem.known_prevalence  # then the estimate does on that
    if evaluator.lacking("dr") or not evaluator.overlap.complete or rests:
        return Estimate(nan, reason="the prevalence of everybody is not estimable"), nan
    found = evaluator.prevalence_of("dr", np.ones(len(evaluator.problem), bool))
    ends = [people.mean(instrument.least) - found, found - people.mean(instrument.most)]
    worst = max(ends, key=lambda one: one.value)
    error = people.error(worst)
    return people.interval(worst), min(1.0, 2 * float(norm.sf(worst.value / error)))


def shareable(deciders: Deciders | None, withheld: Mapping[str, bool]) -> Deciders | None:
    """Without groups of which counts are withheld, and without the names of most deciders.

    A decider with fewer than ten people on any side is left out. The others are named if what they
    do is clearly unlike what others do: a page should not name people without need.
    """
    if deciders is None or deciders.compared is None:
        return deciders
    effects = [one for one in deciders.compared.effects if not one.few]
    clear = [
        *[one for one in effects if one.shrunken.high < 0][:NAMED],
        *[one for one in effects if one.shrunken.low > 0][-NAMED:],
    ]
    kept = tuple(one if one in clear else replace(one, decider="") for one in effects)

    def of(parts: Mapping[str, Any]) -> dict[str, Any]:
        return {name: one for name, one in parts.items() if not withheld.get(name)}

    return replace(
        deciders,
        compared=replace(deciders.compared, effects=kept, order=of(deciders.compared.order)),
        prevalence=of(deciders.prevalence),
        exclusion=of(deciders.exclusion),
    )


def decider_steps(problem: SelectiveLabels) -> dict[str, float]:
    """The models behind it, and what each costs against one of who is tested."""
    return {} if problem.decider is None else {"what deciders find": 1.5, "who decides": 1.5}


# -- findings ----------------------------------------------------------------------------------


def about_deciders(audit: Audit) -> Iterator[Finding]:
    """Of a table that says who decided."""
    found = audit.deciders
    if found is None:
        return
    if found.reason:
        text = f"{capitalised(found.reason)}."
        headline = "Deciders cannot be compared"
        if found.compared is not None:  # they are, in how often they test
            headline = "Differences between deciders give no bounds here"
        yield audit_finding("deciders-unknown", "note", ABOUT, headline, text, reason=found.reason)
    if found.compared is not None:
        yield from _deciders_differ(audit, found.compared)
    if found.prevalence:
        yield from _instrument(audit, found)


def _points(difference: float) -> str:
    """In percentage points, without a sign."""
    return decimal(100 * abs(difference), 1)


def _deviation(e: Estimate) -> str:
    return (
        f"a standard deviation of {_points(e.value)} percentage points ({_points(e.low)} to "
        f"{_points(e.high)})"
    )


def _deciders_differ(audit: Audit, found: Compared) -> Iterator[Finding]:
    yield _unequal_testing(audit, found)
    share = f"{percent(found.mix_share, 1)} of the variance in the predicted risk lies between"
    share += f" deciders{_of_one_place(found)}"
    mixed = found.mix.p_value < CLEAR_P and found.mix_share >= MIXED
    if mixed:
        key, severity, headline = "deciders-mix", "caution", "Deciders see different people"
        text = (
            f"{share}, more than by chance ({p_value(found.mix.p_value)}). "
            "Deciders are compared at equal features; but if their people differ in what the table "
            "shows, they may also differ in what it does not."
        )
    else:
        key, severity = "deciders-comparable", "fine"
        headline = "Deciders see people of about the same risk, as far as the features show"
        text = f"{share}. That says nothing about what the table does not show."
    values = {"share": found.mix_share, "p_value": found.mix.p_value}
    yield audit_finding(key, severity, ABOUT, headline, text, **values)
    equal = found.at_equal_rates
    # Where deciders get different people, what they find differs at equal rates, too.
    if not mixed and equal.p_value < CLEAR_P and equal.deviation.value >= audit.least_difference:
        yield audit_finding(
            "deciders-find-unequally",
            "caution",
            ABOUT,
            "Deciders with equal testing rates differ in how much they find",
            "What they find per person, with sampling noise removed, has "
            f"{_deviation(equal.deviation)}. Some choose better, or see different people.",
            deviation=equal.deviation,
            p_value=equal.p_value,
        )
    turned = {
        name: one.deviation
        for name, one in found.order.items()
        if one.p_value < CLEAR_P and one.deviation.value >= audit.least_difference
    }
    if turned:
        yield audit_finding(
            "deciders-order",
            "caution",
            ABOUT,
            f"Which deciders are strict differs between {listed(list(turned))} and the others",
            "Among deciders with equal testing rates for the others, testing rates for these "
            f"people vary, with sampling noise removed. {each_named(turned, _deviation)}. There is "
            "no single order from strict to lenient.",
            [name for name in turned if name in {item.group for item in audit.counts}],
            parts=turned,
        )


def _of_one_place(found: Compared) -> str:
    """Whom deciders are compared with, if not with all others."""
    return f" with the same {listed(found.within)}" if found.within else ""


def _unequal_testing(audit: Audit, found: Compared) -> Finding:
    """How unequally deciders test."""
    deviation, p, effects = found.testing.deviation, found.testing.p_value, found.effects
    clear = p < CLEAR_P
    matters = clear and deviation.value >= audit.least_difference
    shown = len(effects)
    least, most = (effects[at].shrunken.value if effects else 0.0 for at in (0, -1))
    lost = ends = ""
    who, few = f"{found.number} deciders", f"has decided on fewer than {FEWEST_PEOPLE} people"
    if found.within:
        who += f", each compared with those{_of_one_place(found)}"
        few += f", or no other decider has the same {listed(found.within)}"
    if found.left_out > 0:
        lost = (
            f" {percent(found.left_out)} of the rows are left out: their decider is not recorded, "
            f"or {few}."
        )
    if shown:
        whom = "From"
        if shown < found.number:
            whom = f"Of the {shown} with at least {THRESHOLD} people on every side, from"
        ends = (
            f" {whom} the lowest to the highest, each shrunk according to its noise: "
            f"{points(least)} to {points(most)} points relative to what the features predict."
        )
    text = f"{who}; with sampling noise removed, {_deviation(deviation)}.{ends}{lost}"
    if not clear:
        text = (
            f"{who}, no more spread than by chance ({p_value(p)}); up to "
            f"{_points(deviation.high)} percentage points (standard deviation) could have gone "
            f"unnoticed.{lost}"
        )
    how = "unequally, depending on who" if matters else "about equally, whoever"
    severity = "caution" if deviation.value >= MUCH else "note"
    return audit_finding(
        "deciders-differ" if matters else "deciders-alike",
        severity if matters else "fine",
        ABOUT,
        f"People with the same features are tested {how} decides",
        text,
        number=found.number,
        left_out=found.left_out,
        deviation=deviation,
        p_value=p,
        clear=clear,
        shown=shown,
        least=least,
        most=most,
    )


def _instrument(audit: Audit, found: Deciders) -> Iterator[Finding]:
    crossed = {name: one for name, one in found.exclusion.items() if one.p_value < CLEAR_P}
    if crossed:
        groups = [name for name in crossed if name != EVERYBODY]
        p = min(one.p_value for one in crossed.values())
        where = f" in {listed(groups)}" if groups else ""
        yield audit_finding(
            "deciders-refuted",
            "serious",
            ABOUT,
            f"Who decides is related to the outcome{where}, at equal features",
            "Some deciders find more positives than is possible given the negatives that others "
            f"find ({p_value(p)}). Bounds by decider do not hold here.",
            groups,
            p_value=p,
            checks=crossed,
        )
    falls = {name: one for name, one in found.monotone.items() if one.p_value < CLEAR_P}
    if falls:
        p = min(one.p_value for one in falls.values())
        what = {"tested": "tested", "found": "found positive", "cleared": "found negative"}
        kinds = listed([what[name] for name in falls])
        yield audit_finding(
            "deciders-not-monotone",
            "caution",
            ABOUT,
            "With some deciders more people are tested overall, but fewer people of some kind are "
            f"{kinds}",
            "Either people do not reach deciders as if at random at equal features (those at "
            "higher risk go to some deciders in ways that the table does not show), or deciders do "
            f"not share one order of whom to test first ({p_value(p)}). The bounds by decider hold "
            "in the second case, too.",
            p_value=p,
            checks=falls,
        )
    if crossed:
        return
    every, beyond = found.prevalence[EVERYBODY], found.beyond
    low, high = (percent(end) for end in sorted((every.low.value, every.high.value)))
    between = (
        f"between {low} and {high} ({percent(every.low.low)} to {percent(every.high.high)} with "
        "sampling error)"
    )
    yield audit_finding(
        "decider-bounds",
        "note",
        "prevalence",
        f"From deciders alone: between {low} and {high} of all people have the outcome",
        f"{capitalised(between)}, if at equal features people reach deciders as if at random. "
        "Features need not explain who is tested.",
        bounds=every,
    )
    if beyond and found.p_value < CLEAR_P and beyond.value >= audit.least_difference:
        robust = audit.prevalence[0].doubly_robust
        yield audit_finding(
            "features-refuted",
            "serious",
            "prevalence",
            "Features do not explain who is tested, or people do not reach deciders as if at "
            "random",
            f"The estimate that rests on the features, {percent(robust.value)}, lies "
            f"{_points(beyond.value)} percentage points outside the bounds by decider, {between}; "
            f"{p_value(found.p_value)}.",
            bounds=every,
            beyond=beyond,
            p_value=found.p_value,
            doubly_robust=robust,
        )
