"""How common is the outcome? Four answers, and the limits within which all of them must lie.

| estimate | is the prevalence if |
|---|---|
| recorded | nobody untested has it |
| tested only | the tested are like everybody |
| weighted | testing depends on features and group alone, and its model is right |
| doubly robust | the same, and the model of testing *or* that of the outcome is right |
| limits | nothing is assumed: all untested negative, all untested positive (Manski 1989) |

All but the first are those of `dcem.estimation.evaluator`, as in every comparison. Where part of
the people is out of reach of the tests, a number is given not for everybody but for those within
reach, and limits: the doubly robust estimate there, and nothing assumed of the untested beyond.

Where tests err at stated rates, all but what is recorded is corrected for it, the limits too.

What the record *hides* is the share of the doubly robust prevalence that it lacks.

*Whom testing prefers.* A clinician tests those who seem ill; a lender approves those who seem safe.
Both see outcomes of the tested alone, but counting the untested as negative errs in opposite
directions. Where testing prefers *high* risk, most of the untested are negative, and a record that
says so is a poor ranking. Where it prefers *low* risk the untested are the riskiest, and the record
calls them safe: who learns it well ranks people the wrong way round. How far is told by the score
that such a record teaches, P(tested and positive | x) = e(x) m(x), judged as every other score is.
The rate of the untested is doubly robust: all outcomes, less those that were seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf, nan

import numpy as np
from scipy.stats import norm

from dcem.audit.results import HiddenGap, Needed, Preference, Prevalence
from dcem.estimation import measures
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.influence import FEWEST_TESTED, Statistic, Z, widest_gap
from dcem.estimation.outcomes import seen_outcomes, true_risk
from dcem.estimation.results import EVERYBODY
from dcem.estimation.swap_sets import untested_masses
from dcem.metrics.estimate import Estimate
from dcem.table.labels import SelectiveLabels

ONE_SIDED = float(norm.ppf(0.95))  # a limit errs on one side (Imbens and Manski 2004)


def prevalences(evaluator: Evaluator) -> tuple[Prevalence, ...]:
    """Everybody, then every group that has people."""
    masks = evaluator.problem.parts()
    return tuple(_prevalence(evaluator, name, mine) for name, mine in masks.items())


def hidden_share(evaluator: Evaluator, mine: np.ndarray) -> Statistic:
    """log(recorded / doubly robust) of some people: the logarithm of what the record shows."""
    recorded = evaluator.people.mean(evaluator.problem.y_imputed, mine.astype(float))
    return recorded.log() - evaluator.prevalence_of("dr", mine).log()


def hidden_gap(evaluator: Evaluator, found: Sequence[Prevalence]) -> HiddenGap | None:
    """The groups in which the record hides most and least, compared with all pairs."""
    masks = evaluator.problem.parts()
    hidden = [p.group for p in found if p.group != EVERYBODY and p.hidden.estimable]
    shown = {name: hidden_share(evaluator, masks[name]) for name in hidden}
    pair, p_value = widest_gap(evaluator.people, shown)
    return None if pair is None else HiddenGap(pair[::-1], p_value)


def preference(evaluator: Evaluator) -> Preference | None:
    """How often the tested and the untested are positive, and what the record teaches."""
    if evaluator.lacking("dr"):
        return None
    tested = measures.prevalence(evaluator.masses["tested"])
    untested = measures.prevalence(untested_masses(evaluator))
    risk = true_risk(evaluator.problem, evaluator.nuisances.outcome)
    return Preference(
        tested=evaluator.estimated(tested, share=True),
        untested=evaluator.estimated(untested, share=True),
        difference=evaluator.estimated(tested - untested),
        record_auc=evaluator.auc("dr", evaluator.nuisances.testing * risk),
        risk_auc=evaluator.auc("dr", risk),
    )


def tests_needed(
    problem: SelectiveLabels, found: Sequence[Prevalence], precision: float
) -> tuple[Needed, ...]:
    """Tests at random that tell how common the outcome is in each group, to within `precision`.

    For a 95 % interval of half that width each way, at the prevalence estimated now (or, without an
    estimate, the one among the tested; without that, the worst case of a half), and never more than
    there are people. Tests that there are count like as many at random as would give the present
    interval: those of a selective policy like few, and where there is no interval like none.
    """
    masks, needed = problem.parts(), []
    for item in found:
        if item.group == EVERYBODY and len(found) > 1:
            continue
        present = item.doubly_robust
        known = (present, item.within, item.tested_only)
        p = next((e.value for e in known if e.estimable), 0.5)
        spread = Z**2 * min(max(p, 0.01), 0.99) * (1 - min(max(p, 0.01), 0.99))
        size = int(masks[item.group].sum())
        tests = int((problem.tested & masks[item.group]).sum())
        reach = (present.high - present.low) / 2 if present.estimable else inf
        more = max(spread / precision**2 - spread / max(reach, 1e-9) ** 2, 0.0)
        needed.append(Needed(item.group, precision, tests, min(tests + ceil(more), size)))
    return tuple(needed)


def _prevalence(evaluator: Evaluator, name: str, mine: np.ndarray) -> Prevalence:
    problem, people = evaluator.problem, evaluator.people
    tested = problem.tested & mine
    untested = mine & ~problem.tested
    recorded = people.proportion(problem.y_imputed, mine)
    known = people.mean(seen_outcomes(problem), mine * 1.0).value
    bounds = known, known + people.mean(untested * 1.0, mine * 1.0).value
    if evaluator.corrected:
        bounds = max(bounds[0], 0.0), min(bounds[1], 1.0)
    few = Estimate(nan, reason=f"fewer than {FEWEST_TESTED} people of the group were tested")
    tested_only = few
    if people.count(tested) >= FEWEST_TESTED:
        tested_only = people.proportion(problem.y_imputed, tested)
        if evaluator.corrected:
            tested_only = evaluator.prevalence("tested", name)
    if not untested.any():  # nobody is missing: all answers agree
        none = Estimate(nan, reason="nobody is untested")
        hidden = none
        if evaluator.corrected and tested_only.estimable:
            hidden = _hidden_share(evaluator, mine)
        return Prevalence(
            name, recorded, tested_only, tested_only, tested_only, hidden, bounds, none, bounds
        )
    weighted, robust = (evaluator.prevalence(target, name) for target in ("ipw", "dr"))
    within = Estimate(nan, reason="everybody is within reach")
    overlap = evaluator.reach.overlap[name]
    limits = bounds
    if robust.estimable and not overlap.complete:
        within, weighted = robust, Estimate(nan, reason=overlap.beyond)
        robust, limits = weighted, _limits(evaluator, mine, bounds)
    elif robust.estimable:
        limits = robust.low, robust.high
    return Prevalence(
        group=name,
        recorded=recorded,
        tested_only=tested_only,
        weighted=weighted,
        doubly_robust=robust,
        hidden=_hidden_share(evaluator, mine) if robust.estimable else robust,
        bounds=bounds,
        within=within,
        limits=limits,
    )


def _limits(
    evaluator: Evaluator, mine: np.ndarray, bounds: tuple[float, float]
) -> tuple[float, float]:
    """Doubly robust within reach; beyond it, all untested negative or all positive."""
    problem, people, within = evaluator.problem, evaluator.people, evaluator.reach.within
    expected = evaluator.masses["dr"].positive / np.where(people.weight > 0, people.weight, 1)
    ends = []
    for filled, side in ((0.0, -1), (1.0, 1)):
        beyond = np.where(problem.tested, seen_outcomes(problem), filled)
        end = people.mean(np.where(within, expected, beyond), mine.astype(float))
        ends.append(end.value + side * ONE_SIDED * people.error(end))
    return max(ends[0], bounds[0]), min(ends[1], bounds[1])


def _hidden_share(evaluator: Evaluator, mine: np.ndarray) -> Estimate:
    """1 - recorded / estimated; the interval knows that both come from the same people."""
    if not (evaluator.problem.y_imputed[mine] > 0).any():
        return Estimate(nan, reason="nothing is recorded")
    shown = evaluator.people.interval(hidden_share(evaluator, mine))
    low, value, high = (1 - float(np.exp(end)) for end in (shown.high, shown.value, shown.low))
    return Estimate(max(value, 0.0), max(low, 0.0), max(high, 0.0))
