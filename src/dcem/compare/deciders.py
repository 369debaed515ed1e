"""Scores judged by who decides, beside the estimates that take features to explain testing.

The bounds hold for every risk that deciders allow (`dcem.estimation.instrument`); contraction asks
what a score finds with as many tests as deciders make (`dcem.estimation.by_decider`). Both rest on
people being comparable between deciders at equal features, and on nothing about who is tested.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dcem.compare.findings import CLEAR, found, methods_named
from dcem.compare.judge import Judge
from dcem.compare.results import ByDecider, JudgedByDeciders, Standing
from dcem.estimation.by_decider import (
    acting_bounds,
    auc_bounds,
    check_exclusion,
    contraction,
    gain_bounds,
)
from dcem.estimation.findings import Finding
from dcem.estimation.instrument import fit_instrument
from dcem.estimation.results import EVERYBODY
from dcem.methods.choosing import PREFERRED
from dcem.metrics.estimate import Estimate
from dcem.text import number, p_value, percent


def judge_by_deciders(judge: Judge, standings: Mapping[str, Standing]) -> JudgedByDeciders | None:
    """Every method by who decides; None where the table does not say."""
    evaluator, scored = judge.evaluator, judge.scored
    problem = evaluator.problem
    if problem.decider is None:
        return None
    best = next((standings[key].best for key in PREFERRED if key in standings), "")
    people = evaluator.people
    testing = evaluator.nuisances.testing
    instrument = None
    if not evaluator.lacking("tested"):
        instrument = fit_instrument(problem, evaluator.fold, testing, judge.random_state)
    if instrument is None:
        return JudgedByDeciders("too few people per decider to distinguish deciders")
    methods = {
        name: ByDecider(
            auc_bounds(instrument, people, one.rank),
            **acting_bounds(instrument, people, judge.decision.acted(one)),
            contraction=contraction(instrument, people, one.rank),
        )
        for name, one in scored.items()
    }
    ahead = {
        name: gain_bounds(instrument, people, scored[best].rank, one.rank)
        for name, one in scored.items()
        if best in scored and name != best
    }
    everybody = {EVERYBODY: np.ones(len(problem), bool)}
    crossing = check_exclusion(instrument, people, everybody)[EVERYBODY].p_value
    return JudgedByDeciders("", methods, best, ahead, crossing)


def about_deciders(
    judged: JudgedByDeciders | None, robust: Mapping[str, Estimate]
) -> tuple[list[Finding], list[Finding]]:
    """Findings and warnings; `robust` are the doubly robust AUCs."""
    if judged is None or not judged.methods:
        return [], []
    if judged.crossing < CLEAR:
        sentence = (
            "Who decides is related to the outcome at equal features: bounds of deciders cross "
            f"({p_value(judged.crossing)})."
        )
        text = "Numbers by decider do not hold here."
        return [], [found("deciders-refuted", sentence, text, p_value=judged.crossing)]
    findings, warned = [], []
    beyond = {
        name: one
        for name, one in robust.items()
        if (ends := judged.methods.get(name)) is not None
        and (one.low > ends.auc.high.high or one.high < ends.auc.low.low)
    }
    if beyond:
        name = next(iter(beyond))
        bounds = judged.methods[name].auc
        sentence = (
            f"The AUC of {methods_named(list(beyond))} for everybody, such as "
            f"{number(beyond[name].value)} of `{name}`, lies outside the bounds by decider "
            f"({number(bounds.low.low)} to {number(bounds.high.high)})."
        )
        text = (
            "Features do not explain who is tested, or people do not reach deciders as if at "
            "random."
        )
        warned.append(found("beyond-deciders", sentence, text, methods=list(beyond)))
    if judged.ahead_of:
        findings.append(_lead(judged))
    findings += _contraction(judged)
    return findings, warned


def _lead(judged: JudgedByDeciders) -> Finding:
    """Whether the best stays ahead over all risks that deciders allow."""
    stands = [name for name, by in judged.ahead_of.items() if by.low.low > 0]
    opened = [name for name in judged.ahead_of if name not in stands]
    best = f"`{judged.best}`"
    if not opened:
        sentence = (
            f"{best} ranks better than {methods_named(stands)} for all risks within the bounds by "
            "decider."
        )
    else:
        but = f" It does rank better than {methods_named(stands)}." if stands else ""
        sentence = (
            f"If features do not explain testing, {best} may not rank better than "
            f"{methods_named(opened)}: it does not for some risks within the bounds by "
            f"decider.{but}"
        )
    return found(
        "lead-by-decider",
        sentence,
        "",
        "note" if opened else "fine",
        best=judged.best,
        open=opened,
        ahead_of=judged.ahead_of,
    )


def _contraction(judged: JudgedByDeciders) -> list[Finding]:
    """What the best finds with as many tests as the middle of the deciders."""
    levels = judged.methods[judged.best].contraction if judged.best in judged.methods else ()
    if not levels:
        return []
    one = levels[len(levels) // 2]
    than = "about as many as they do, as far as this table can tell"
    if one.gain.excludes(0):
        than = "more than they do" if one.gain.value > 0 else "fewer than they do"
    sentence = (
        f"With as many tests as deciders of the level “{one.level}” ({percent(one.rate.value)} of "
        f"people), `{judged.best}` finds {percent(one.score.value, 1)} of people positive: {than} "
        f"({percent(one.deciders.value, 1)}; contraction)."
    )
    return [found("contraction", sentence, level=one.level, score=one.score, gain=one.gain)]
