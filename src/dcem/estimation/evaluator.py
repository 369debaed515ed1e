"""How good is a score when most of the truth is missing?

An `Evaluator` is made once for a table: it fits the two nuisance models (`nuisances`), asks whom
the tests can represent (`overlap`) and gives every row its masses for each target (`outcomes`).
Any number of scores can then be judged for

* ``tested``: the people who were tested, as they are;
* ``ipw``: everybody, tested people weighted by one over their probability of a test;
* ``dr``: everybody, doubly robust: predicted outcomes, corrected by weighted residuals;
* ``truth``: everybody, where the truth is given.

Where part of the people is out of reach of the tests, ``ipw`` and ``dr`` are about those within it.

Each answer carries an interval, or the reason why there is none. The intervals are those of the
score as given; with cross-validated scores they describe the models of the folds on average
(LeDell, Petersen and van der Laan, "Computationally efficient confidence intervals for
cross-validated area under the ROC curve estimates", Electronic Journal of Statistics 2015).

What all of `ipw` and `dr` rest on cannot be checked from the table: that at equal features and
group, those who were tested do not differ from those who were not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import combinations, permutations
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from dcem.estimation import measures
from dcem.estimation.folds import person_folds, rows_that_count
from dcem.estimation.influence import FEWEST_TESTED, ROUNDING, People, Statistic, wilson
from dcem.estimation.known_rates import Tilts
from dcem.estimation.nuisances import Nuisances, fit_nuisances
from dcem.estimation.outcomes import KNOWN, POPULATION, TARGETS, Masses, Unseen, masses
from dcem.estimation.overlap import assess, too_few
from dcem.estimation.results import EVERYBODY, WITHHELD, Overlap, Target
from dcem.metrics._inputs import read_score, require_same_index
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import MANY_GROUPS, tellable_shares
from dcem.table.imperfect import TEST_ASSUMPTION
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError, require_one_of, require_share
from dcem.table.positives_only import require_record
from dcem.text import percent


class _ByTarget(dict[str, Masses]):
    """Masses of each target; another word is answered with the known ones."""

    def __missing__(self, target: str) -> Masses:
        require_one_of("target", target, self)
        raise KeyError(target)


class Evaluator:
    """Judges scores on a table whose labels were collected selectively.

    Parameters
    ----------
    problem
        The rows to judge on, with group and person. Those of weight 0 are left out, but scores
        are given of all.
    truth
        0 or 1 for each row [n], where it exists. It is used for the target "truth" alone.
    fold
        The fold of each row [n] for the nuisance models (and, if scores were cross-validated, for
        them too); by default five folds of whole people.
    nuisances
        Fitted elsewhere, to spare fitting them again.
    level
        Of the intervals.
    random_state
        Seed of folds and nuisance models.
    """

    def __init__(
        self,
        problem: SelectiveLabels,
        *,
        truth: np.ndarray | None = None,
        fold: np.ndarray | None = None,
        nuisances: Nuisances | None = None,
        level: float = 0.95,
        random_state: int = 0,
    ) -> None:
        require_record(problem)
        require_share("level", level, 0.95)
        self.problem, self.level = problem, level
        self._row, self._counted = problem.row, rows_that_count(problem)
        self.truth = None if truth is None else np.asarray(self._aligned("truth", truth))
        if self.truth is not None and not np.isin(self.truth, (0, 1)).all():
            raise InputError("`truth` must be 0 or 1 in every row.")
        if self._counted is not None:
            problem = self.problem = problem.subset(self._counted)
            fold = None if fold is None else np.asarray(fold)[self._counted]
            nuisances = nuisances and nuisances.subset(self._counted)
        self.fold = person_folds(problem, 5, random_state) if fold is None else np.asarray(fold)
        self.nuisances = nuisances or fit_nuisances(problem, self.fold, random_state)
        self.people, self.person = People.of(problem), problem.person
        self._lacking: dict[tuple[str, str], str] = {}
        self.reach = assess(
            problem,
            self.nuisances.testing,
            self.nuisances.testing_each.values(),
            known=self.nuisances.known,
        )
        keys = [key for key in TARGETS if key != "truth" or truth is not None]
        self.masses: Mapping[str, Masses] = _ByTarget(
            {
                key: masses(
                    key,
                    problem,
                    testing=self.nuisances.truncated_testing,
                    outcome=self.nuisances.outcome,
                    truth=self.truth,
                    within=self.reach.within,
                )
                for key in keys
            }
        )

    @property
    def corrected(self) -> bool:
        """Whether numbers are corrected for an imperfect test."""
        return self.problem.imperfect_test is not None

    @cached_property
    def unseen(self) -> Unseen:
        """Outcomes of everybody, from the odds ratio of the untested that known rates ask for."""
        return self._unseen(self.problem) if self.problem.known_prevalence else self.unseen_alike

    @cached_property
    def unseen_alike(self) -> Unseen:
        """The same, from where untested people are like tested people with the same features."""
        return self._unseen(replace(self.problem, known_prevalence=()))

    def _unseen(self, problem: SelectiveLabels) -> Unseen:
        testing = self.nuisances.truncated_testing
        return Unseen.of(problem, self.nuisances.outcome, testing, self.reach.within)

    @property
    def tilts(self) -> Tilts | None:
        """The odds ratios that a known prevalence asks for, where one is known and can be met."""
        known = self.unseen.known
        return known if known is not None and known.met else None

    @property
    def overlap(self) -> Overlap:
        """Whether the tested can represent everybody."""
        return self.reach.overlap[EVERYBODY]

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        """The targets, those that are not estimable at all with the reason."""
        described = []
        for key in self.masses:
            why = self.lacking(key)
            plain = TARGETS[key]
            name, assumption, reach = plain.name, plain.assumption, 1.0
            if key in POPULATION and not why and self.tilts is not None:
                assumption = KNOWN
            if key in POPULATION and not why and not self.overlap.complete:
                reach = self.overlap.shareable(len(self.problem)).reach
                name = name.replace(EVERYBODY, f"the {percent(reach)} within reach")
                assumption = assumption.replace(f"for {EVERYBODY}", "for those within reach")
                assumption = assumption.replace(f"{EVERYBODY} had a", "each of them had a")
            if self.corrected and key != "truth":
                assumption = f"{assumption} {TEST_ASSUMPTION}"
            described.append(Target(key, name, assumption, not why, why, reach))
        return tuple(described)

    def rows_of(self, group: str) -> np.ndarray:
        """Which rows belong to a group."""
        if group == EVERYBODY:
            return np.ones(len(self.problem), bool)
        require_one_of("group", group, (EVERYBODY, *self.problem.group_names))
        return self.problem.group == self.problem.group_names.index(group)

    def lacking(self, target: str, group: str = EVERYBODY) -> str:
        """Why nothing is estimable for a target (of a group), or an empty text."""
        if (target, group) not in self._lacking:
            rows = self.rows_of(group)
            why = too_few(self.problem, rows, self.truth if target == "truth" else None)
            if not why and target in POPULATION and rows.any():
                why = self.reach.overlap[group if self.problem.n_groups > 1 else EVERYBODY].reason
            who = "" if group == EVERYBODY or not why else f"in group {group}, "
            self._lacking[target, group] = who + why
        return self._lacking[target, group]

    # -- single numbers --------------------------------------------------------------------

    def auc_of(self, target: str, score: np.ndarray, group: str = EVERYBODY) -> Statistic:
        """AUC with its influences, of everybody or of one group; nothing is refused here."""
        of, score = self.masses[target], self._of_rows(score)
        return measures.auc(score, of if group == EVERYBODY else of.among(self.rows_of(group)))

    def _of_rows(self, score: Any) -> np.ndarray:
        """A score of every row [n], none missing."""
        return read_score(self._aligned("score", score))

    def _aligned(self, name: str, values: Any) -> Any:
        """What was given of every row, of those that count.

        A pandas column that may be of other rows is refused.
        """
        if len(values) != len(self._row):
            raise InputError(f"{name!r} has {len(values)} values for {len(self._row)} rows.")
        index = getattr(values, "index", None)
        if isinstance(index, pd.Index) and not index.equals(pd.RangeIndex(len(values))):
            require_same_index(**{name: values, "problem": pd.DataFrame(index=self._row)})
        return values if self._counted is None else np.asarray(values)[self._counted]

    def auc(
        self,
        target: str,
        score: np.ndarray,
        group: str = EVERYBODY,
        *,
        level: float | None = None,
    ) -> Estimate:
        """AUC of everybody or of one group."""
        found, why = self.auc_of(target, score, group), self.lacking(target, group)
        behind = self.rarer(target, group)
        return self.estimated(found, why, share=True, behind=behind, level=level)

    def rarer(self, target: str, group: str = EVERYBODY) -> int:
        """How many people of the rarer class an AUC rests on."""
        return min(self._people(target, group, positive) for positive in (True, False))

    def auc_gain(self, target: str, score: np.ndarray, reference: np.ndarray) -> Estimate:
        """AUC of a score minus that of another on the same people."""
        gain = self.auc_of(target, score) - self.auc_of(target, reference)
        return self.estimated(gain, self.lacking(target))

    def auc_differences(self, target: str, score: np.ndarray) -> dict[tuple[str, str], Estimate]:
        """AUC of the first group minus that of the second, for every pair of groups with rows."""
        each = {name: self.auc(target, score, name) for name in self.problem.by_group()}
        return {(a, b): each[a].minus(each[b]) for a, b in combinations(each, 2)}

    def xauc(self, target: str, score: np.ndarray) -> dict[tuple[str, str], Estimate]:
        """P(a positive of the first group scores higher than a negative of the second)."""
        masks, found, score = self.problem.by_group(), {}, self._of_rows(score)
        if len(masks) > MANY_GROUPS:
            masks = {name: mine for name, mine in masks.items() if not self.lacking(target, name)}
        for a, b in permutations(masks, 2):
            why = self.lacking(target, a) or self.lacking(target, b)
            crossed = self.masses[target].among(masks[a], masks[b])
            behind = min(self._people(target, a, True), self._people(target, b, False))
            found[a, b] = self.estimated(
                measures.auc(score, crossed), why, share=True, behind=behind
            )
        return found

    def when_acting(self, target: str, acted: np.ndarray) -> dict[str, dict[str, Estimate]]:
        """What acting on people (a mask [n]) means: measure -> everybody, then each group."""
        acted = np.asarray(self._aligned("acted", acted), bool)
        found: dict[str, dict[str, Estimate]] = {key: {} for key in measures.WHEN_ACTING}
        told = {by: self._tellable(target, acted, by_outcome=by) for by in (True, False)}
        for name, rows in self.problem.parts().items():
            of, why = self.masses[target].among(rows), self.lacking(target, name)
            why = why or self._acts_out_of_reach(target, acted & rows)
            for key, measure in measures.WHEN_ACTING.items():
                behind = self._behind(target, name, acted, measure.of)
                few = why or ("" if behind else "there is nobody to estimate it from")
                by = measure.of != "everybody"
                few = few or self.too_few_on_a_side(target, acted, rows, by_outcome=by)
                few = few or ("" if told[by][name] else WITHHELD.reason)
                found[key][name] = self.estimated(
                    measure.value(acted, of), few, share=True, behind=behind
                )
        return found

    def _acts_out_of_reach(self, target: str, acted: np.ndarray) -> str:
        """Why acting on these people (a mask [n]) cannot be judged, or an empty text.

        Where those at low risk are tested, the highest scores are those of people out of reach. The
        few of them within reach say nothing of whom acting finds.
        """
        within = self.reach.within
        if target not in POPULATION or not acted.any() or within[acted].mean() >= 0.5:
            return ""
        return "most of those acted on are out of reach of the tests"

    def _behind(self, target: str, group: str, acted: np.ndarray, of: str) -> int:
        """How many people a measure of acting rests on: of outcomes, those who are known.

        Where tests represent more people on one side of the decision than on the other, those of a
        class are counted in people who represent as many.
        """
        if of in ("positives", "negatives"):
            people, by = self._people(target, group, of == "positives"), self.masses["ipw"]
            rows = self.rows_of(group) & (by.total > 0)
            if target not in POPULATION or not (people and rows.any()):
                return people
            sides = [rows & acted, rows & ~acted]
            most = max(float(by.total[side].mean()) for side in sides if side.any())
            mass = (by.positive if of == "positives" else by.negative)[rows].sum()
            return max(min(people, round(float(mass) / most)), 1)
        among = self.rows_of(group) & (self.masses[target].total != 0)
        if of == "acted on":
            among &= acted & ~np.isnan(self._known(target))
        return self.people.count(among)

    def calibration_in_the_large(self, target: str, score: np.ndarray) -> dict[str, Estimate]:
        """Mean score minus estimated share of positives: everybody, then each group."""
        return self._of_each(measures.calibration_in_the_large, target, score)

    def calibration_slope(self, target: str, score: np.ndarray) -> dict[str, Estimate]:
        """Slope of the outcome's log-odds in those of the score: everybody, then each group."""
        return self._of_each(measures.calibration_slope, target, score)

    def _of_each(
        self, measure: Callable[..., Statistic], target: str, score: np.ndarray
    ) -> dict[str, Estimate]:
        found, score = {}, self._of_rows(score)
        for name, rows in self.problem.parts().items():
            if why := self.lacking(target, name):
                found[name] = Estimate(nan, reason=why)
                continue
            found[name] = self.estimated(measure(score, self.masses[target].among(rows)))
        return found

    def net_benefit(
        self, target: str, score: np.ndarray, threshold: float, group: str = EVERYBODY
    ) -> Estimate:
        """Net benefit of acting on scores of at least `threshold`, per person (of a group)."""
        require_share("threshold", threshold, 0.2)
        score = self._of_rows(score)
        rows, acted = self.rows_of(group), score >= threshold
        of, why = self.masses[target].among(rows), self.lacking(target, group)
        if not why and not (of.total != 0)[acted].any():
            return Estimate(0.0, 0.0, 0.0)  # nobody is acted on: no benefit, no doubt of it
        few = self.too_few_on_a_side(target, acted, rows)
        found = self.estimated(measures.net_benefit(score, of, threshold), why or few)
        known = np.where(rows & acted, self._known(target), nan)
        sides = [self.people.count(known == outcome) for outcome in (0, 1)]
        if found.estimable and 0 in sides:
            # A side without people does not move it, and few people do not prove it empty.
            share = float(of.total @ acted / of.total.sum())
            low, high = wilson(float(sides[1] > 0), max(sum(sides), 1), self.level)
            ends = (share * (one - threshold) / (1 - threshold) for one in (low, high))
            found = Estimate(found.value, min(found.low, next(ends)), max(found.high, next(ends)))
        return found

    def kickout(self, target: str, first: np.ndarray, second: np.ndarray) -> Estimate:
        """Of those in `first`, the share of positives not in `second`, minus that of the negatives.

        Both are masks [n]; see `dcem.metrics.kickout`. The two shares are of different people, few
        of whom may be positive: each has its own interval, and their arms are put together.
        """
        first, second = (np.asarray(self._aligned("acted", one), bool) for one in (first, second))
        of, known = self.masses[target].among(first), self._known(target)
        sides = [self.people.count(first & (known == outcome)) for outcome in (1, 0)]
        why = self.lacking(target) or self.too_few_on_a_side(target, second, first)
        if not why and min(sides) < FEWEST_TESTED:
            why = (
                f"fewer than {FEWEST_TESTED} of the people selected are known to be positive, or "
                "negative"
            )
        shares = (measures.true_positive_rate, measures.false_positive_rate)
        positives, negatives = (
            self.estimated(share(~second, of), why, share=True, behind=behind)
            for share, behind in zip(shares, sides, strict=True)
        )
        return positives.minus(negatives)

    def precision_at_capacity(self, target: str, rank: np.ndarray, capacity: float) -> Estimate:
        """Share of positives among the `capacity` share of people ranked highest."""
        rank, of = self._of_rows(rank), self.masses[target]
        value = measures.precision_at_capacity(rank, of, capacity)
        taken = measures.highest_first(rank, of.total, capacity * of.total.sum())[1]
        known = (taken > 0) & (of.total != 0) & ~np.isnan(self._known(target))
        behind = round(self.people.count(known) * taken[known].mean()) if known.any() else 0
        few = self.too_few_on_a_side(target, taken > 0)
        few = few or ("" if known.any() else "there is nobody to estimate it from")
        return self.estimated(value, self.lacking(target) or few, share=True, behind=behind)

    def too_few_on_a_side(
        self,
        target: str,
        acted: np.ndarray,
        rows: np.ndarray | None = None,
        *,
        by_outcome: bool = True,
    ) -> str:
        """Why a plain share by who is acted on (a mask [n]) is not shown, or an empty text.

        Where it is a share of known people, it would tell how many of 1 to 9 of them there are on a
        side.
        """
        known = self._known(target)
        among = ~np.isnan(known) if rows is None else ~np.isnan(known) & rows
        if not self._counts_people(target, among):
            return ""
        side = 2 * acted + (known == 1) if by_outcome else 1 * acted
        seen = np.zeros((4, int(self.person.max()) + 1), bool)
        seen[side[among], self.person[among]] = True
        people = seen.sum(axis=1)
        if ((people > 0) & (people < FEWEST_TESTED)).any():
            return f"fewer than {FEWEST_TESTED} people on one side of the decision"
        return ""

    def _tellable(self, target: str, acted: np.ndarray, *, by_outcome: bool) -> dict[str, bool]:
        """Of everybody and each group, whether plain shares may be told beside all the others."""
        known = self._known(target)
        among = ~np.isnan(known)
        if not self._counts_people(target, among):
            return dict.fromkeys(self.problem.parts(), True)
        sides = [known == 1, known == 0] if by_outcome else [among]
        each = [tellable_shares(self.problem, acted, side) for side in sides]
        return {name: all(one[name] for one in each) for name in self.problem.parts()}

    def _counts_people(self, target: str, among: np.ndarray) -> bool:
        """Whether shares of a target are those of people with known outcomes (a mask [n]).

        So are weighted ones where the probability of a test is one for all of them.
        """
        if target not in POPULATION:
            return True
        among = among & (self.masses["ipw"].total > 0)
        stand_for = self.masses["ipw"].total[among] / self.people.weight[among]
        return not among.any() or bool(np.ptp(stand_for) <= ROUNDING * stand_for.max())

    def prevalence_of(self, target: str, rows: np.ndarray) -> Statistic:
        """Share of positives among some rows (a mask), with its influences."""
        return measures.prevalence(self.masses[target].among(rows))

    def prevalence(self, target: str, group: str = EVERYBODY) -> Estimate:
        """Share of positives."""
        rows = self.rows_of(group)
        behind = self.known_people(target, group)
        value, why = self.prevalence_of(target, rows), self.lacking(target, group)
        return self.estimated(value, why, share=True, behind=behind)

    def known_people(self, target: str, group: str) -> int:
        """With a known outcome: so many people tell how common it is."""
        return self._behind(target, group, self.rows_of(group), "acted on")

    def _people(self, target: str, group: str, positive: bool) -> int:
        """How many people are known to be positive (or not) behind a target."""
        known = self._known(target)
        return self.people.count(self.rows_of(group) & (known == int(positive)))

    def _known(self, target: str) -> np.ndarray:
        """The outcomes behind a target [n], NaN where there are none."""
        y = self.problem.y_obs if target != "truth" or self.truth is None else self.truth
        return np.where(self.people.weight > 0, y, nan)

    def estimated(
        self,
        value: Statistic,
        why: str = "",
        *,
        share: bool = False,
        behind: int = 0,
        level: float | None = None,
    ) -> Estimate:
        """A number with its interval, or the reason why there is none."""
        if why:
            return Estimate(nan, reason=why)
        return value.estimate(
            self.person,
            level or self.level,
            share=share,
            behind=behind,
            corrected=self.corrected,
        )
