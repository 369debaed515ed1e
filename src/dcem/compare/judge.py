"""Everything about the scores of methods and one target: numbers with intervals, and curves.

A number of a ranking is uncertain for two reasons. Other people could have been drawn: each row's
influence tells by how much. And the model could have started from other random weights: where fits
are repeated (members) they tell, each fold's AUC being computed again without each of them (a
jackknife), and each group's ROC curve likewise, for the gap. The second is written as one more
influence, that of a person nobody met, so that differences between methods and corrections for
their number count both without further formulas. Where tests err at stated rates, what is uncertain
about these is a third.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import nan

import numpy as np
from scipy.stats import norm

from dcem.compare.fitting import Scored
from dcem.compare.results import (
    CalibrationPoints,
    Curve,
    DecisionCurve,
    Judgement,
    Standing,
    TestingByScore,
)
from dcem.estimation import measures
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.hidden_cause import of_auc
from dcem.estimation.influence import FEWEST_TESTED, People, differences, simultaneous
from dcem.estimation.outcomes import POPULATION, Masses
from dcem.estimation.results import EVERYBODY
from dcem.methods.choosing import NETWORK_OF_TESTED, PREFERRED, SIMPLE_RIVALS
from dcem.metrics import absolute
from dcem.metrics.calibration import equal_mass
from dcem.metrics.estimate import Estimate, GapEstimate
from dcem.metrics.gap import GRID, Gaps, Ranking, compare_curves
from dcem.table.disclosure import MANY_GROUPS
from dcem.table.messages import require_share

CAPACITIES = (0.05, 0.1, 0.2)  # shares of people that can be acted on
THRESHOLDS = (0.1, 0.25, 0.5)  # risks at which somebody acts
DECISIONS = np.linspace(0.02, 0.9, 45)
BINS = 10


@dataclass(frozen=True)
class Decision:
    """Whom one acts on: those of at least a risk, or a share of people, the highest first."""

    threshold: float | None = None
    capacity: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None:
                require_share(name, value, 0.1, ends=True)

    def __str__(self) -> str:
        if self.threshold is not None:
            return f"people with a predicted risk of at least {self.threshold:g}"
        return f"the {100 * (self.capacity or 0):g} % of people with the highest scores"

    def acted(self, scored: Scored) -> np.ndarray:
        """Who is acted on [n]."""
        if self.threshold is not None:
            return scored.score >= self.threshold
        return scored.rank > 1 - (self.capacity or 0)


# -- how well people are ranked, and by whom best ------------------------------------------------


class Ranks:
    """The AUC of several methods for one target, the luck of initial weights included."""

    def __init__(self, evaluator: Evaluator, target: str, methods: Mapping[str, Scored]) -> None:
        self._evaluator, self._target = evaluator, target
        self._lacking = evaluator.lacking(target)
        person = evaluator.person
        self._people = People(np.ones(len(person)), person, int(person.max()) + 1)
        self._auc = {}
        for number, (name, scored) in enumerate(methods.items()):
            plain = evaluator.auc_of(target, scored.rank)
            luck = np.zeros(len(methods))
            luck[number] = np.sqrt(seed_variance(evaluator.masses[target], scored))
            self._auc[name] = plain.plus(luck)

    def auc(self, name: str) -> Estimate:
        """The AUC of one method."""
        behind = self._evaluator.rarer(self._target)
        return self._evaluator.estimated(self._auc[name], self._lacking, share=True, behind=behind)

    def gain(self, name: str, reference: str) -> Estimate:
        """AUC of one method minus that of another on the same people."""
        if self._lacking:
            return Estimate(nan, reason=self._lacking)
        difference = self._auc[name] - self._auc[reference]
        return difference.estimate(self._people.person, self._evaluator.level)

    def standing(self, names: Sequence[str], floor: float) -> Standing | None:
        """The best of these methods, and which others are as good as far as can be seen."""
        known = [name for name in names if np.isfinite(self._auc[name].value)]
        if self._lacking or not known:
            return None
        best = max(known, key=lambda name: self._auc[name].value)
        # The best was picked by looking at all: every pair counts, whichever it is (Tukey).
        pairs = differences({name: self._auc[name] for name in known})
        compared = simultaneous(self._people, pairs, level=self._evaluator.level)
        ahead = {}
        for (a, b), found in compared.items():
            e = found.simultaneous
            if a == best:
                ahead[b] = e
            elif b == best:
                ahead[a] = Estimate(-e.value, -e.high, -e.low, e.reason)
        level_with = tuple(
            name for name, by in ahead.items() if not (by.low > 0 and by.value >= floor)
        )
        return Standing(best, ahead, level_with)


def seed_variance(masses: Masses, scored: Scored) -> float:
    """Variance of the AUC over initial weights: each fold without each member."""
    n_members = len(scored.members)
    if n_members < 2:
        return 0.0
    total = scored.members.sum(axis=0)
    variance = 0.0
    for number in np.unique(scored.fold):
        rows = (scored.fold == number) & (masses.total != 0)
        part = Masses(masses.positive[rows], masses.negative[rows])
        without = np.array(
            [measures.auc((total - one)[rows], part).value for one in scored.members]
        )
        jackknife = (n_members - 1) / n_members * np.sum((without - without.mean()) ** 2)
        share = np.mean(scored.fold == number)
        variance += float(np.nan_to_num(jackknife)) * float(share) ** 2
    return variance


@dataclass(frozen=True, eq=False)
class Judge:
    """All methods on the same people, and what each of them is judged by."""

    evaluator: Evaluator
    scored: Mapping[str, Scored]
    reference_group: str  # the group that the others are compared with
    decision: Decision
    n_resamples: int = 200
    random_state: int = 0
    sources: Sequence[str] | None = None  # the raw column of each feature

    @cached_property
    def ranks(self) -> dict[str, Ranks]:
        """How well people are ranked, by target."""
        return {one: Ranks(self.evaluator, one, self.scored) for one in self.evaluator.masses}

    @cached_property
    def reference(self) -> str:
        """The method that gains are counted from: the best of the simple rivals, by their AUC.

        Without a simple rival it is the first method, but not the network of the tested: a gain
        over it says little.
        """
        names = [name for name in SIMPLE_RIVALS if name in self.scored]
        if not names:
            others = [name for name in self.scored if name != NETWORK_OF_TESTED]
            return next(iter(others or self.scored))
        for target in PREFERRED:
            if target in self.ranks and not self.evaluator.lacking(target):
                areas = {name: self.ranks[target].auc(name) for name in names}
                known = [name for name in names if areas[name].estimable] or names
                return max(known, key=lambda name: areas[name].value)
        return names[0]

    def __call__(self, name: str, target: str) -> Judgement:
        """One method as one target sees it."""
        evaluator, scored, ranks = self.evaluator, self.scored[name], self.ranks[target]
        score, rank = scored.score, scored.rank
        drawn = self.n_resamples, self.random_state
        names = evaluator.problem.group_names
        several = len(names) > 1
        gap, gaps = _gap(evaluator, target, scored, *drawn)
        known = [group for group in names if not evaluator.lacking(target, group)]
        shown = [] if evaluator.lacking(target) else [EVERYBODY, *(known if several else ())]
        areas = {g: auc_of_group(evaluator, target, scored, g) for g in names}
        present = [g for g in names if evaluator.rows_of(g).any()]
        if len(names) > MANY_GROUPS:  # pairs of groups without a number would be without end
            present = known
        return Judgement(
            target=target,
            auc=ranks.auc(name),
            group_auc=areas if several else {},
            auc_differences={(a, b): areas[a].minus(areas[b]) for a, b in combinations(present, 2)},
            auc_against=against(evaluator, target, scored, self.reference_group),
            roc_gap=gap,
            gap_pair=None if gaps is None else (known[gaps.pair[0]], known[gaps.pair[1]]),
            gap_by_chance=nan if gaps is None else float(np.quantile(gaps.by_chance, 0.95)),
            gap_p_values={}
            if gaps is None
            else {
                (known[a], known[b]): float(p)
                for (a, b), p in zip(gaps.pairs, gaps.p_value, strict=True)
            },
            xauc=evaluator.xauc(target, rank),
            when_acting=evaluator.when_acting(target, self.decision.acted(scored)),
            calibration_error=_calibration_error(evaluator, target, score, *drawn),
            calibration_in_the_large=evaluator.calibration_in_the_large(target, score),
            calibration_slope=evaluator.calibration_slope(target, score),
            precision_at_capacity={
                share: evaluator.precision_at_capacity(target, rank, share) for share in CAPACITIES
            },
            net_benefit={
                threshold: evaluator.net_benefit(target, score, threshold)
                for threshold in THRESHOLDS
            },
            auc_gain=None if name == self.reference else ranks.gain(name, self.reference),
            roc_curves={
                group: _roc_curve(evaluator, target, rank, evaluator.rows_of(group))
                for group in known
            },
            calibration_curves={
                group: _calibration_points(evaluator, target, score, evaluator.rows_of(group))
                for group in shown
            },
            decision_curves={group: _decisions(evaluator, target, score, group) for group in shown},
            hidden_cause=of_auc(evaluator, rank, self.sources or evaluator.problem.feature_names)
            if target == "dr"
            else None,
        )


def auc_of_group(
    evaluator: Evaluator, target: str, scored: Scored, group: str, level: float | None = None
) -> Estimate:
    """The AUC of one group, the luck of initial weights included."""
    why = evaluator.lacking(target, group)
    if why:
        return Estimate(nan, reason=why)
    plain = evaluator.auc_of(target, scored.rank, group)
    of = evaluator.masses[target].among(evaluator.rows_of(group))
    found = plain.plus([np.sqrt(seed_variance(of, scored))])
    return evaluator.estimated(
        found, share=True, behind=evaluator.rarer(target, group), level=level
    )


def against(
    evaluator: Evaluator, target: str, scored: Scored, reference: str
) -> dict[str, Estimate]:
    """AUC of each group minus that of the reference group, with limits for all groups at once."""
    others = [
        name
        for name in evaluator.problem.group_names
        if name != reference and evaluator.rows_of(name).any()
    ]
    if not others:
        return {}
    usable = [name for name in others if not evaluator.lacking(target, name)]
    level = evaluator.level
    if usable and not evaluator.lacking(target, reference):
        each = {name: evaluator.auc_of(target, scored.rank, name) for name in (*usable, reference)}
        pairs = {(name, reference): each[name] - each[reference] for name in usable}
        people = People.of(evaluator.problem)
        found = simultaneous(people, pairs, level=level)
        # as far out as the widest of all comparisons needs, in standard errors
        reaches = [
            (one.simultaneous.high - one.simultaneous.value) / people.error(pairs[pair])
            for pair, one in found.items()
            if people.error(pairs[pair]) > 0
        ]
        level = 2 * float(norm.cdf(max(reaches))) - 1 if reaches else level
    base = auc_of_group(evaluator, target, scored, reference, level)
    return {
        name: auc_of_group(evaluator, target, scored, name, level).minus(base) for name in others
    }


# -- the ROC gap -------------------------------------------------------------------------------


def _gap(
    evaluator: Evaluator, target: str, scored: Scored, n_resamples: int, random_state: int
) -> tuple[GapEstimate, Gaps | None]:
    problem = evaluator.problem
    present = [name for name in problem.group_names if evaluator.rows_of(name).any()]
    known = [name for name in present if not evaluator.lacking(target, name)]
    if len(known) < 2:
        why = "there is only one group"
        if len(present) > 1:
            why = next(evaluator.lacking(target, name) for name in present if name not in known)
        return GapEstimate(nan, reason=why), None
    codes = np.array([problem.group_names.index(name) for name in known])
    masses = evaluator.masses[target]
    rows = np.flatnonzero(np.isin(problem.group, codes))
    gaps = compare_curves(
        scored.rank[rows],
        masses.positive[rows],
        masses.negative[rows],
        np.searchsorted(codes, problem.group[rows]),  # codes rise, as names stand in their order
        np.unique(evaluator.person[rows], return_inverse=True)[1],
        n_resamples=n_resamples,
        level=evaluator.level,
        rng=np.random.default_rng(random_state),
        rescored=scored.without[..., rows],
        moved=[masses.both_ends(one, rows) for one in masses.moved],
    )
    left_out = len(present) - len(known)
    note = f"without {left_out} group{'s' * (left_out > 1)} too small to judge" if left_out else ""
    value, p_value = float(gaps.value.max()), float(gaps.p_value.min())
    return GapEstimate(value, *gaps.largest, note, p_value, gaps.by_chance), gaps


def _roc_curve(evaluator: Evaluator, target: str, rank: np.ndarray, rows: np.ndarray) -> Curve:
    masses = evaluator.masses[target]
    chosen = np.flatnonzero(rows & (masses.total != 0))
    ranking = Ranking(
        rank[chosen], masses.positive[chosen], masses.negative[chosen], np.arange(len(chosen))
    )
    # 101 points: a picture, not a list of people
    fpr = np.linspace(0, 1, 101)
    tpr = np.interp(fpr, np.r_[0.0, GRID, 1.0], np.r_[0.0, ranking.curve(), 1.0])
    return Curve(fpr, tpr)


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

    def error(weight: np.ndarray, of: Masses = masses) -> np.ndarray:
        """Predicted minus estimated risk [bins], so that the mean |.| is the error."""
        summed = np.bincount(bins, (score * v - of.positive) * weight, minlength=BINS)
        return BINS * summed / (v @ weight)

    rng = np.random.default_rng(random_state)
    people, everybody = int(person.max()) + 1, np.ones(len(v))
    seen = error(everybody)
    shifts = [(error(everybody, up) - error(everybody, down)) / 2 for up, down, _ in masses.moved]

    def resampled() -> np.ndarray:
        counts = np.bincount(rng.integers(people, size=people), minlength=people)[person]
        drawn = error(counts)
        for shift, (*_, by) in zip(shifts, masses.moved, strict=True):
            drawn += shift * (by @ np.append(counts, rng.normal(size=len(by) - len(v))))
        return drawn

    noise = np.stack([resampled() for _ in range(n_resamples)]) - seen
    return absolute.debiased(seen, noise, evaluator.level)


def _calibration_points(
    evaluator: Evaluator, target: str, score: np.ndarray, rows: np.ndarray
) -> CalibrationPoints:
    problem, person = evaluator.problem, evaluator.person
    masses: Masses = evaluator.masses[target].among(rows)
    behind = rows & (problem.tested if target != "truth" else True)
    n_bins = int(np.clip(len(np.unique(person[behind])) // 50, 2, BINS))
    bins = equal_mass(score, masses.total, n_bins)
    points = []
    for here in _large_enough(evaluator, target, [rows & (bins == i) for i in range(n_bins)]):
        part = masses.among(here)
        risk = measures.prevalence(part).estimate(person, evaluator.level)
        predicted = float(score @ part.total / part.total.sum())
        share = float(part.total.sum() / masses.total.sum())
        points.append((predicted, risk.value, risk.low, risk.high, share))
    return CalibrationPoints(*np.array(points).reshape(-1, 5).T)


def _large_enough(
    evaluator: Evaluator, target: str, bins: list[np.ndarray]
) -> Iterator[np.ndarray]:
    """Bins (masks [n], from low scores to high) joined until ten people are on every side.

    Behind an estimate for everybody that is ten tested people; behind a plain share, ten positives
    and ten negatives, or none. What is left over at the end is not shown.
    """
    plain, everybody = target not in POPULATION, evaluator.truth if target == "truth" else None
    known = evaluator.problem.y_obs if everybody is None else everybody
    joined = np.zeros(len(known), bool)
    for mask in bins:
        joined = joined | mask
        sides = [joined & (known == value) for value in (0, 1)]
        people = [len(np.unique(evaluator.person[side])) for side in sides]
        if (min(people) if plain else sum(people)) >= FEWEST_TESTED:
            yield joined
            joined = np.zeros(len(known), bool)


# -- decisions and testing ---------------------------------------------------------------------


def _decisions(evaluator: Evaluator, target: str, score: np.ndarray, group: str) -> DecisionCurve:
    found, everybody = (
        [evaluator.net_benefit(target, acted_on, float(at), group) for at in DECISIONS]
        for acted_on in (score, np.ones(len(score)))
    )
    return DecisionCurve(
        threshold=DECISIONS,
        net_benefit=np.array([one.value for one in found]),
        low=np.array([one.low for one in found]),
        high=np.array([one.high for one in found]),
        treat_all=np.array([one.value for one in everybody]),
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
        points = evaluator.people.rates(problem.tested, score, rows, part)
        curves[name] = TestingByScore(*points)
    return curves
