"""Everything about one score and one target: numbers with intervals, and curves to draw."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
from scipy.stats import norm

from dcem.compare.results import CalibrationPoints, Curve, DecisionCurve, Judgement, TestingByScore
from dcem.estimation import measures
from dcem.estimation.bins import equal_mass, rates
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.gap import GRID, Gap, Ranking, roc_gap
from dcem.estimation.influence import FEWEST_TESTED, People, Statistic
from dcem.estimation.outcomes import Masses
from dcem.estimation.results import EVERYBODY
from dcem.metrics.estimate import Estimate

CAPACITIES = (0.05, 0.1, 0.2)  # shares of people that can be acted on
THRESHOLDS = (0.1, 0.25, 0.5)  # risks at which somebody acts
DECISIONS = np.linspace(0.02, 0.9, 45)
BINS = 10


@dataclass(frozen=True)
class Scored:
    """A method's scores: probabilities, and the ranks by which people are ordered."""

    score: np.ndarray  # [n] out-of-fold probability
    rank: np.ndarray  # [n] comparable across folds (`folds.percentiles`)


def judge(
    evaluator: Evaluator,
    target: str,
    scored: Scored,
    reference: Scored | None,
    *,
    n_resamples: int,
    random_state: int,
) -> Judgement:
    """One method as one target sees it; `reference` is the method that gains are counted from."""
    names = evaluator.problem.group_names
    several = len(names) > 1
    gap, gap_estimate = _gap(evaluator, target, scored.rank, n_resamples, random_state)
    why = evaluator.lacking(target)
    known = [name for name in names if not evaluator.lacking(target, name)]
    return Judgement(
        target=target,
        auc=evaluator.auc(target, scored.rank),
        group_auc={name: evaluator.auc(target, scored.rank, name) for name in names}
        if several
        else {},
        auc_differences=evaluator.auc_differences(target, scored.rank),
        roc_gap=gap_estimate,
        gap_pair=None if gap is None else (names[gap.pair[0]], names[gap.pair[1]]),
        gap_by_chance=nan if gap is None else float(np.quantile(gap.by_chance, 0.95)),
        gap_p_value=nan
        if gap is None
        else float((1 + np.sum(gap.by_chance >= gap.value)) / (1 + len(gap.by_chance))),
        calibration_error=_calibration_error(
            evaluator, target, scored.score, n_resamples, random_state
        ),
        calibration_in_the_large=evaluator.calibration_in_the_large(target, scored.score),
        precision_at_capacity={
            share: evaluator.precision_at_capacity(target, scored.rank, share)
            for share in CAPACITIES
        },
        net_benefit={
            threshold: evaluator.net_benefit(target, scored.score, threshold)
            for threshold in THRESHOLDS
        },
        auc_gain=None
        if reference is None
        else evaluator.auc_gain(target, scored.rank, reference.rank),
        roc_curves={
            name: _curve(evaluator, target, scored.rank, evaluator.rows_of(name)) for name in known
        },
        calibration_curves={}
        if why
        else {
            name: _calibration_points(evaluator, target, scored.score, evaluator.rows_of(of))
            for name, of in [(EVERYBODY, None), *((n, n) for n in known if several)]
        },
        decision_curve=None if why else _decisions(evaluator, target, scored.score),
    )


# -- the ROC gap -------------------------------------------------------------------------------


def _gap(
    evaluator: Evaluator, target: str, rank: np.ndarray, n_resamples: int, random_state: int
) -> tuple[Gap | None, Estimate]:
    problem = evaluator.problem
    present = [name for name in problem.group_names if evaluator.rows_of(name).any()]
    known = [name for name in present if not evaluator.lacking(target, name)]
    if len(known) < 2:
        why = "there is only one group"
        if len(present) > 1:
            why = next(evaluator.lacking(target, name) for name in present if name not in known)
        return None, Estimate(nan, reason=why)
    codes = [problem.group_names.index(name) for name in known]
    seen = np.where(problem.tested, 1 + problem.y_imputed, 0)
    gap = roc_gap(
        rank,
        evaluator.masses[target],
        problem.group,
        evaluator.person,
        seen if evaluator.truth is None or target != "truth" else evaluator.truth,
        codes,
        n_resamples=n_resamples,
        rng=np.random.default_rng(random_state),
    )
    left_out = len(present) - len(known)
    note = f"without {left_out} group{'s' * (left_out > 1)} too small to judge" if left_out else ""
    return gap, _pushed_up(gap.value, gap.resampled, evaluator.level, note)


def _pushed_up(value: float, resampled: np.ndarray, level: float, note: str = "") -> Estimate:
    """An absolute value's interval: as far below as resamples reach above, no less than 0."""
    high = float(np.quantile(resampled, (1 + level) / 2))
    return Estimate(value, max(0.0, 2 * value - high), max(high, value), note)


def _curve(evaluator: Evaluator, target: str, rank: np.ndarray, rows: np.ndarray) -> Curve:
    ranking = Ranking(rank, evaluator.masses[target].among(rows), evaluator.person)
    thinned = slice(None, None, 5)  # 101 points: a picture, not a list of people
    return Curve(GRID[thinned], ranking.curve(np.arange(len(ranking.chosen)))[thinned])


# -- calibration -------------------------------------------------------------------------------


def _calibration_error(
    evaluator: Evaluator, target: str, score: np.ndarray, n_resamples: int, random_state: int
) -> Estimate:
    why = evaluator.lacking(target)
    if why:
        return Estimate(nan, reason=why)
    masses = evaluator.masses[target]
    v, person = masses.total, evaluator.person
    bins = equal_mass(score, v, BINS)

    def error(weight: np.ndarray | None) -> float:
        # the error of a bin, times its mass: |sum of (score - label)|
        difference = score * v - masses.positive
        moved = difference if weight is None else difference * weight
        total = v.sum() if weight is None else v @ weight
        return float(np.abs(np.bincount(bins, moved, minlength=BINS)).sum() / total)

    rng = np.random.default_rng(random_state)
    people = int(person.max()) + 1
    resampled = np.array(
        [
            error(np.bincount(rng.integers(people, size=people), minlength=people)[person])
            for _ in range(n_resamples)
        ]
    )
    return _pushed_up(error(None), resampled, evaluator.level)


def _calibration_points(
    evaluator: Evaluator, target: str, score: np.ndarray, rows: np.ndarray
) -> CalibrationPoints:
    problem, person = evaluator.problem, evaluator.person
    masses: Masses = evaluator.masses[target].among(rows)
    behind = rows & (problem.tested if target != "truth" else True)
    n_bins = int(np.clip(len(np.unique(person[behind])) // 50, 2, BINS))
    bins = equal_mass(score, masses.total, n_bins)
    points = []
    for number in range(n_bins):
        here = rows & (bins == number)
        if len(np.unique(person[here & behind])) < FEWEST_TESTED:
            continue
        part = masses.among(here)
        risk = measures.prevalence(part)
        low, high = _wald(risk, person, evaluator.level)
        predicted = float(score @ part.total / part.total.sum())
        share = float(part.total.sum() / masses.total.sum())
        points.append((predicted, risk.value, low, high, share))
    columns = np.array(points).reshape(-1, 5).T
    return CalibrationPoints(*columns)


def _wald(value: Statistic, person: np.ndarray, level: float) -> tuple[float, float]:
    reach = norm.ppf((1 + level) / 2) * value.standard_error(person)
    return value.value - reach, value.value + reach


# -- decisions and testing ---------------------------------------------------------------------


def _decisions(evaluator: Evaluator, target: str, score: np.ndarray) -> DecisionCurve:
    found = [evaluator.net_benefit(target, score, float(at)) for at in DECISIONS]
    everybody = [
        measures.net_benefit(np.ones(len(score)), evaluator.masses[target], float(at)).value
        for at in DECISIONS
    ]
    return DecisionCurve(
        threshold=DECISIONS,
        net_benefit=np.array([one.value for one in found]),
        low=np.array([one.low for one in found]),
        high=np.array([one.high for one in found]),
        treat_all=np.array(everybody),
    )


def testing_by_score(evaluator: Evaluator, score: np.ndarray) -> dict[str, TestingByScore]:
    """Share tested against predicted risk, group by group; bins with few on either side left out.

    A clinician who tests by risk alone would test people of equal risk alike in every group.
    """
    problem = evaluator.problem
    curves = {}
    for name in problem.group_names:
        rows = evaluator.rows_of(name)
        if rows.sum() < 2 * FEWEST_TESTED:
            continue
        n_bins = int(np.clip(rows.sum() // 100, 2, BINS))
        part = np.zeros(len(score), np.intp)
        part[rows] = equal_mass(score[rows], np.ones(int(rows.sum())), n_bins)
        points = rates(People.of(problem), problem.tested, score, rows, part)
        curves[name] = TestingByScore(*points)
    return curves
