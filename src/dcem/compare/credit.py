"""What a lender asks of a comparison: Gini, KS, the kickout metric and swap sets.

Loans go to the lowest scores, as many as were approved. All numbers come for those who were
approved and, doubly robust, for all applicants, with intervals for the selections as they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dcem.compare.findings import found
from dcem.compare.fitting import Scored
from dcem.compare.judge import Judge
from dcem.compare.results import MethodResult
from dcem.estimation import measures
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.findings import Finding
from dcem.estimation.swap_sets import safest, swap_set
from dcem.metrics.estimate import Estimate
from dcem.text import percent


def lent(results: list[MethodResult], judge: Judge) -> list[MethodResult]:
    """The same results, with what a lender asks."""
    evaluator, scored, reference = judge.evaluator, judge.scored, judge.reference
    person = evaluator.person
    luck = np.random.default_rng(0).permutation(int(person.max()) + 1) % 2 == 0
    return [
        replace(
            one,
            judgements={
                target: replace(
                    judged,
                    gini=_twice(judge.ranks[target].auc(one.name)),
                    ks=_ks(evaluator, target, scored[one.name].rank, luck[person]),
                    kickout=None
                    if one.name == reference
                    else _kickout(evaluator, target, scored[one.name], scored[reference]),
                )
                for target, judged in one.judgements.items()
            },
            swaps=swap_set(evaluator, scored[one.name].rank),
        )
        for one in results
    ]


def _twice(auc: Estimate) -> Estimate:
    return Estimate(2 * auc.value - 1, 2 * auc.low - 1, 2 * auc.high - 1, auc.reason)


def _ks(evaluator: Evaluator, target: str, rank: np.ndarray, half: np.ndarray) -> Estimate:
    why = evaluator.lacking(target)
    if why:
        return Estimate(float("nan"), reason=why)
    return evaluator.estimated(measures.ks(rank, evaluator.masses[target], half))


def _kickout(evaluator: Evaluator, target: str, scored: Scored, reference: Scored) -> Estimate:
    """As many as were approved are selected: by the reference, among the people of the target."""
    problem = evaluator.problem
    weight = problem.weights
    share = float(weight @ problem.tested / weight.sum())
    among = problem.tested if target == "tested" else np.ones(len(problem), bool)
    first = among & safest(np.where(among, reference.rank, np.inf), weight * among, share)
    second = safest(scored.rank, weight, share)
    if not evaluator.lacking(target) and not (first & ~second).any():
        return Estimate(0.0, 0.0, 0.0)  # nobody is left out: no kickout, no doubt of it
    return evaluator.kickout(target, first, second)


def about_swaps(method: MethodResult) -> list[Finding]:
    """What approving by a method's score would change, in a sentence."""
    swaps = method.swaps
    if swaps is None or swaps.reason:
        return []
    came, gone = swaps.rate["swapped in"], swaps.rate["swapped out"]
    if not came.estimable or not gone.estimable:
        return []
    sentence = (
        f"At the same share of people tested, selecting the lowest scores of `{method.name}` would "
        f"replace {percent(swaps.share['swapped out'])} of all people: {percent(gone.value)} of "
        f"those swapped out have the outcome, and {percent(came.value)} ({percent(came.low)} to "
        f"{percent(came.high)}) of those swapped in would."
    )
    values = {"method": method.name, "came": came, "gone": gone}
    return [found("swap-set", sentence, **values)]
