"""What if the test errs? How common the outcome would be, and what would make groups differ.

Where nothing is stated of the test, its results are taken for the truth, and this shows what that
is worth: prevalence, its difference between two groups and an AUC, at a grid of sensitivities and
specificities that hold for everybody. All of them follow from one doubly robust estimate, since
masses are linear in the results (`dcem.estimation.outcomes`): with s and c, a row's positive mass p
of a total v becomes (p - (1 - c) v) / (s + c - 1).

A test that finds less in one group makes the outcome look rarer there. If it raises no false
alarms, prevalences p < q of two groups would be equal in truth if the test sensitivity in the first
were p / q of that in the second. Nobody sees that in the table.

A prevalence that is known is that of the truth, and stays whatever the test misses: neither the
grid nor the ratio says anything then.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dcem.audit.results import AtRates, TestErrors
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.influence import widest_gap
from dcem.estimation.measures import auc, prevalence
from dcem.estimation.outcomes import Masses, masses
from dcem.estimation.ranking import RankedScore
from dcem.estimation.results import EVERYBODY
from dcem.metrics.estimate import Estimate

SENSITIVITIES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
SPECIFICITIES = (1.0, 0.99, 0.98, 0.95, 0.9)


def test_errors(evaluator: Evaluator, risk: np.ndarray) -> TestErrors | None:
    """What an imperfect test means for this table; None if nothing is stated or estimable.

    `risk` [n] is the score whose AUC is reported.
    """
    problem, test = evaluator.problem, evaluator.problem.imperfect_test
    if why := evaluator.lacking("dr"):
        none = Estimate(np.nan, reason=why)
        stated = None if test is None else test.words
        return None if stated is None else TestErrors(stated, none, (), None, np.nan, np.nan, {})
    masks, known = problem.parts(), bool(problem.known_prevalence)
    usable = {
        name: evaluator.prevalence_of("dr", mine)
        for name, mine in masks.items()
        if name != EVERYBODY and len(masks) > 2 and not known and not evaluator.lacking("dr", name)
    }
    pair, p_value = widest_gap(
        evaluator.people, {name: one for name, one in usable.items() if one.value > 0}
    )
    plain = evaluator.masses["dr"]
    if test is not None:
        plain = masses(
            "dr",
            replace(problem, imperfect_test=None),
            testing=evaluator.nuisances.truncated_testing,
            outcome=evaluator.nuisances.outcome,
            within=evaluator.reach.within,
        )
    ranked = RankedScore(risk, np.ones(len(risk)))

    def at(s: float, c: float) -> AtRates:
        positive, negative = (
            (side - (1 - rate) * plain.total) / (s + c - 1)
            for side, rate in ((plain.positive, c), (plain.negative, s))
        )
        of = Masses(positive, negative)
        found, area = prevalence(of).value, auc(ranked.step, of).value
        if not (0 < found < 1 and 0 <= area <= 1):
            return AtRates(s, c, np.nan, np.nan, np.nan)
        gap = np.nan
        if pair is not None:
            more, less = (prevalence(of.among(masks[name])).value for name in pair)
            gap = more - less
        return AtRates(s, c, found, gap, area)

    grid = SENSITIVITIES if test is None and not known else ()
    return TestErrors(
        stated="" if test is None else test.words,
        as_shown=prevalence(plain).estimate(evaluator.person, evaluator.level, share=True),
        points=tuple(at(s, c) for s in grid for c in SPECIFICITIES),
        pair=pair,
        p_value=p_value,
        equal_at=np.nan if pair is None else usable[pair[1]].value / usable[pair[0]].value,
        prevalence={}
        if pair is None
        else {name: evaluator.prevalence("dr", name) for name in pair},
    )
