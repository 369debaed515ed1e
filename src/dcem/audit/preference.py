"""Whom testing prefers: are the tested at higher risk than the untested, or at lower?

A clinician tests those who seem ill; a lender approves those who seem safe. Both see outcomes of
the tested alone, but counting the untested as negative errs in opposite directions. Where testing
prefers *high* risk, most of the untested are negative, and a record that says so is a poor ranking.
Where it prefers *low* risk the untested are the riskiest, and the record calls them safe: who
learns it well ranks people the wrong way round. How far is told by the score that such a record
teaches, P(tested and positive | x) = e(x) m(x), judged as every other score is.

The rate of the untested is doubly robust: all outcomes, less those that were seen,
sum of m + t (y - m) / e, minus t y, over people.
"""

from __future__ import annotations

from dcem.audit.results import Preference
from dcem.estimation import measures
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.outcomes import true_risk
from dcem.estimation.swaps import untested_masses


def preference(judge: Evaluator) -> Preference | None:
    """How often the tested and the untested are positive, and what the record teaches."""
    if judge.lacking("dr"):
        return None
    tested = measures.prevalence(judge.masses["tested"])
    untested = measures.prevalence(untested_masses(judge))
    risk = true_risk(judge.problem, judge.nuisances.outcome)
    taught = judge.nuisances.testing * risk
    own, none = judge.person, judge.corrected
    return Preference(
        tested=tested.estimate(own, judge.level, share=True, corrected=none),
        untested=untested.estimate(own, judge.level, share=True, corrected=none),
        difference=(tested - untested).estimate(own, judge.level),
        record_auc=judge.auc("dr", taught),
        risk_auc=judge.auc("dr", risk),
    )
