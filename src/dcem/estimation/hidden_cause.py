"""How strong must a hidden cause be to move an estimate for everybody by a tenth of its value?

Every estimate for everybody assumes that no unrecorded cause drives both the test and the outcome.
If there is one, the odds of the outcome of *untested* people differ from those of tested people
with the same features by some factor gamma (`dcem.estimation.bounds`). The gamma is sought at which
the estimate has moved by `TENTH` of its value, upwards and downwards. A prevalence moves most if
all untested people differ by the same factor in the same direction. An AUC moves most if each
person has a factor of their own, at most gamma or its inverse, as an adversary would choose them: a
cause that is weaker cannot move it so far.

For scale, the strongest recorded column: the gamma that would arise had it not been recorded
(`strengths_of_columns`). Strengths are compared as log-odds: half as strong means the root of that
factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, inf, isfinite, log, nan

import numpy as np

from dcem.estimation.bounds import extreme_auc, strengths_of_columns
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.ranking import RankedScore
from dcem.estimation.results import EVERYBODY
from dcem.text import ratio

TENTH = 0.1  # of its value, by which an estimate is moved
LARGEST = 1000.0  # factors beyond are not tried: nothing recorded is so strong
WEAKEST = 1.02  # a factor under which no recorded column is a scale for anything


@dataclass(frozen=True)
class HiddenCause:
    """The strength of a hidden cause at which an estimate is off by a tenth of its value."""

    up: float  # the factor on the odds at which it would be higher by so much; inf: none
    down: float  # likewise lower, as a factor of at least 1
    column: str  # the strongest recorded column
    strongest: float  # the factor had it not been recorded
    times: float  # the smaller of the two strengths over that of this column; NaN: none is strong

    @property
    def least(self) -> float:
        """The smaller of the two factors."""
        return min(self.up, self.down)


def of_prevalence(evaluator: Evaluator, sources: Sequence[str]) -> HiddenCause | None:
    """Of the share with the outcome; None where it is not estimated, or known from elsewhere."""
    unseen, within = evaluator.unseen, evaluator.reach.within
    if not _moves(evaluator):
        return None

    def at(gamma: float, up: bool) -> float:
        outcomes = unseen.outcomes(gamma if up else 1 / gamma)
        return evaluator.people.mean(outcomes, within * 1.0).value

    return _found(evaluator, sources, at)


def of_auc(evaluator: Evaluator, score: np.ndarray, sources: Sequence[str]) -> HiddenCause | None:
    """Of the AUC of a score [n]; None where it is not estimated."""
    unseen, within = evaluator.unseen, evaluator.reach.within
    if not _moves(evaluator, known=False):
        return None
    ranked = RankedScore(score, evaluator.people.weight)
    fixed = unseen.known is not None and EVERYBODY in unseen.known.met

    def at(gamma: float, up: bool) -> float:
        return extreme_auc(ranked, unseen, gamma, up, within, fixed).value

    return _found(evaluator, sources, at)


def _moves(evaluator: Evaluator, *, known: bool = True) -> bool:
    if evaluator.lacking("dr") or evaluator.problem.extent != "some":
        return False
    tilts = evaluator.unseen.known
    return not (known and tilts is not None and EVERYBODY in tilts.met)


def _found(
    evaluator: Evaluator, sources: Sequence[str], at: Callable[..., float]
) -> HiddenCause | None:
    value = at(1.0, True)
    if not value > 0:
        return None
    up = _reaches(partial(at, up=True), value * (1 + TENTH), up=True)
    down = _reaches(partial(at, up=False), value * (1 - TENTH), up=False)
    strengths = strengths_of_columns(
        evaluator.problem.X, sources, evaluator.nuisances.testing, evaluator.unseen.risk
    )
    column = max(strengths, key=lambda name: strengths[name], default="")
    strongest, least = strengths.get(column, nan), min(up, down)
    times = inf if least == inf else nan
    if least < inf and strongest >= WEAKEST:
        times = log(least) / log(strongest)
    return HiddenCause(up, down, column, strongest, times)


def _reaches(at: Callable[[float], float], goal: float, up: bool) -> float:
    """The factor from which on `at` is at the goal, by bisection of its logarithm; inf if never."""

    def short(gamma: float) -> bool:
        return at(gamma) < goal if up else at(gamma) > goal

    low, high = 0.0, log(LARGEST)
    if short(LARGEST):
        return inf
    while high - low > 0.005:
        middle = (low + high) / 2
        low, high = (middle, high) if short(exp(middle)) else (low, middle)
    return exp(high)


def in_words(found: HiddenCause | None, estimate: str = "it", *, at_worst: bool = False) -> str:
    """A clause that says what would move an estimate by a tenth of its value; or nothing.

    `at_worst`: for an AUC, which only a cause chosen by an adversary moves so far.
    """
    if found is None:
        return ""
    would = "could, at worst, move" if at_worst else "would move"
    if found.least == inf:
        return f"no hidden cause {would} {estimate} by 10 % of its value"
    odds = f"odds ratio {ratio(found.least)}"
    if not isfinite(found.times):
        return (
            f"a hidden cause {would} {estimate} by 10 % of its value at an {odds}; no recorded "
            "column is a scale for that"
        )
    return (
        f"a hidden cause {ratio(found.times)} times as strong as `{found.column}`, the strongest "
        f"recorded column, {would} {estimate} by 10 % of its value ({odds})"
    )
