"""What is left of a comparison if the unmeasured has a stated strength.

`dcem.estimation.bounds` says between which limits everybody's risk then lies. A method's decision
to act is right for certain where the whole interval is above the cut, and wrong for certain where
it is below. AUC, net benefit and the lead of the best method are those of the worst outcomes that
the strength allows, everybody's chosen anew for each number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dcem.compare.findings import found, methods_named
from dcem.compare.judge import Judge
from dcem.compare.results import ComparedBounds, MethodBounds
from dcem.estimation import bounds
from dcem.estimation.findings import Finding
from dcem.estimation.influence import People
from dcem.estimation.ranking import RankedScore
from dcem.estimation.results import EVERYBODY
from dcem.text import percent


def compare_bounds(judge: Judge, usable: Sequence[str], gamma: float) -> ComparedBounds | None:
    """The methods at every strength up to 10 and at the stated one; None if nothing can be said.

    One acts from the risk on that the decision names, or that its share of people exceeds.
    """
    evaluator, scored, decision = judge.evaluator, judge.scored, judge.decision
    if evaluator.lacking("dr"):
        return None
    problem, unseen = evaluator.problem, evaluator.unseen
    limits = bounds.bound_table(evaluator, gamma, decision.threshold, share=decision.capacity or 0)
    cut = limits.cut
    gammas = [float(one) for one in limits.gammas]
    decided = [bounds.decide(*bounds.risk_limits_of_table(evaluator, one), cut) for one in gammas]
    people = People.of(problem).among(evaluator.reach.within)
    ranked = {name: RankedScore(one.rank, people.weight) for name, one in scored.items()}
    best = max(usable, key=lambda name: evaluator.auc_of("dr", scored[name].rank).value)

    def bounds_of(name: str) -> MethodBounds:
        acted = decision.acted(scored[name])
        sides = [np.where(one == 0, 0, np.where((one == 1) == acted, 1, -1)) for one in decided]
        each = bounds.shares(problem, sides)
        areas = np.array([bounds.auc_limits(ranked[name], unseen, people, one) for one in gammas])
        benefits = np.array(
            [
                bounds.net_benefit_limits(acted, min(cut, 0.99), unseen, people, one)
                for one in gammas
            ]
        )
        behind = name != best and name in usable
        return MethodBounds(
            name,
            {group: one.act for group, one in each.items()},
            each[EVERYBODY].leave,
            areas[:, 0],
            areas[:, 1],
            benefits[:, 0],
            benefits[:, 1],
            tuple(bounds.lead(ranked[best], ranked[name], unseen, people, one) for one in gammas)
            if behind
            else (),
        )

    return ComparedBounds(limits, best, tuple(bounds_of(name) for name in scored))


def about_bounds(limits: ComparedBounds | None, why: str) -> tuple[Finding, ...]:
    """For whom decisions hold at a stated strength of the unmeasured, and which leads survive."""
    if limits is None:
        return (found("bounds-unknown", f"Bounds cannot be given: {why}."),)
    people, best = limits.people, next(m for m in limits.methods if m.name == limits.best)
    at, gamma = people.at, f"{people.stated:g}"
    every = people.shares[EVERYBODY]
    findings = [
        found(
            "bounds",
            f"If the odds of untested people differ by a factor of up to {gamma} from "
            f"{bounds.starting_odds(people.known)}, the decision of `{best.name}` is, by estimated "
            f"risks, right for {percent(best.holds[EVERYBODY][at])} of people and wrong for "
            f"{percent(best.against[at])}; for {percent(every.open[at])} one cannot say.",
            gamma=people.stated,
            cut=people.cut,
            holds=float(best.holds[EVERYBODY][at]),
            against=float(best.against[at]),
            open=float(every.open[at]),
        )
    ]
    others = [method for method in limits.methods if method.lead]
    if others:
        kept = [method.name for method in others if method.lead[at].low > 0]
        lost = [method.name for method in others if method.name not in kept]
        sentence = f"At that strength `{best.name}`"
        sentence += f" still ranks better than {methods_named(kept)}" if kept else ""
        sentence += " and" * bool(kept and lost)
        sentence += f" may not rank better than {methods_named(lost)}" if lost else ""
        findings.append(found("bounds-best", f"{sentence}.", best=best.name, kept=kept, lost=lost))
    return tuple(findings)
