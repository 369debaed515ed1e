"""The risk of the untested, by group: an extrapolation, and between which limits it may lie.

No test says what the untested have. Their risk is borrowed from tested people with the same
features (doubly robust). A cause that nobody recorded may make their odds larger or smaller: the
limits let them be up to `HIDDEN` times the odds of tested people like them, or as many times less,
and include the luck of the draw. Nothing is known of people out of reach of the tests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcem.estimation.evaluator import Evaluator
from dcem.estimation.influence import Statistic
from dcem.estimation.outcomes import Unseen, uncertain
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import THRESHOLD, in_tens

HIDDEN = 2.0  # odds ratio of a hidden cause


@dataclass(frozen=True)
class UntestedRisk:
    """Untested people of one group."""

    group: str
    score: float  # the mean score of a model; NaN where there are fewer than ten of them
    borrowed: Estimate  # the risk of those within reach, if the features explain who is tested
    low: float  # the least and the largest, with a hidden cause and sampling error; who is out of
    high: float  # reach may all have the outcome, or nobody of them
    beyond: float  # share of them out of reach of the tests

    @property
    def off(self) -> str:
        """`low` or `high` where the mean score lies outside the interval of `borrowed`."""
        if self.score < self.borrowed.low:
            return "low"
        return "high" if self.score > self.borrowed.high else ""


def untested_risks(evaluator: Evaluator, score: np.ndarray) -> tuple[UntestedRisk, ...]:
    """The risk of the untested: all of them, then by group; nothing where everybody is tested.

    `score [n]` is of the rows that the evaluator judges.
    """
    problem, people, within = evaluator.problem, evaluator.people, evaluator.reach.within
    found = []
    for name, rows in problem.parts().items():
        untested = rows & ~problem.tested
        if people.count(untested) < THRESHOLD:
            continue
        why = evaluator.lacking("dr", name)
        inside = untested & within
        if not why and people.count(inside) < THRESHOLD:
            why = "hardly any of the untested is within reach of the tests"
        # to tens of people: a finer share of a small group would tell a small count
        rows_beyond = np.array([float((untested & ~within).sum())])
        beyond = min(float(in_tens(rows_beyond)[0] / untested.sum()), 1.0)
        borrowed, low, high = Estimate(float("nan"), reason=why), 0.0, 1.0
        if not why:
            ends = [
                _borrowed(evaluator, name, rows & within, gamma)
                for gamma in (1 / HIDDEN, 1.0, HIDDEN)
            ]
            borrowed, low = ends[1], (1 - beyond) * ends[0].low
            high = (1 - beyond) * ends[2].high + beyond
        mean = people.mean(score, inside if not why else untested).value
        found.append(UntestedRisk(name, float(mean), borrowed, low, high, beyond))
    return tuple(found)


def _borrowed(evaluator: Evaluator, name: str, rows: np.ndarray, gamma: float) -> Estimate:
    """The risk of the untested among some rows, where their odds are `gamma` times as large."""
    people = evaluator.people

    def risk(unseen: Unseen) -> Statistic:
        rest = unseen.outcomes(gamma) - unseen.tested * unseen.y
        untested = people.mean((~unseen.tested).astype(float), rows)
        return people.mean(rest, rows) / untested

    found = uncertain(risk, evaluator.unseen)
    behind = evaluator.known_people("dr", name)
    beyond = not 0 < found.value < 1
    return found.estimate(
        evaluator.person, share=True, behind=behind, corrected=beyond or evaluator.corrected
    ).clipped()
