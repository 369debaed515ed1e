"""The audit of a table that knows only who was found positive.

What is asked of tests elsewhere cannot be asked here. What can be known under the assumptions of
`dcem.estimation.positives_only`: how much more common the outcome is in one group than in another,
and how much less its positives are found; whether the table contradicts the first assumption
(`FoundCheck`, by score tests and on held-out people); how far the answer depends on the logistic
form (it is estimated again by flexible models, over the features that both groups have); and what
becomes of it if being found depends on the features.

*If features bear on being found.* Let positives of group g with features x be found at the rate c_g
k(x), with k between 1 / factor and factor, and the same in all groups. The record, c_g f(x), is
then that of a risk f(x) / k(x), and nothing in the table can tell: it is explained as well as
before. The ratio of the means of f / k in two groups is largest where k is as low as it may be for
people who look like the first, and as high for those who look like the second. So the largest and
the smallest ratio are reached by a cut in P(first | x) / P(second | x), and all cuts are tried. (If
k may differ between groups, the ratio may be off by the square of the factor; but the table may
show that: `FoundCheck`.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, nan
from typing import Any

import numpy as np

from dcem.audit.positives_only_findings import (
    Departure,
    FoundAudit,
    FoundCheck,
    FoundCurve,
    FoundGroup,
    FoundSensitivity,
    advise_found,
    conclude_found,
)
from dcem.audit.run import configuration, count_groups, model_steps
from dcem.audit.sensitivity import Breakdown
from dcem.audit.testing import compared_people, equal_features
from dcem.estimation.cross_fitting import FITTED_ROWS, Learners, on_one_thread
from dcem.estimation.determined import DETERMINED, is_determined
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.folds import person_folds, usual_folds
from dcem.estimation.influence import (
    FEWEST_PEOPLE,
    FEWEST_TESTED,
    People,
    Statistic,
    Z,
    simultaneous,
    two_sided,
)
from dcem.estimation.nuisance_learners import candidate_models
from dcem.estimation.nuisances import Nuisances, fit_nuisances
from dcem.estimation.overlap import rates_by_score
from dcem.estimation.positives_only import (
    FoundModel,
    Ratios,
    at_most,
    failures,
    fit_found,
    log_loss,
    predicted_found,
    ratios,
)
from dcem.metrics.estimate import Estimate
from dcem.table.imperfect import SENSITIVITY, ImperfectTest
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError, formerly
from dcem.table.positives_only import recorded, with_weight

BINS = 5
MOST_DEPARTURES = 6
FACTORS = np.array([1.0, 1.25, 1.5, 2.0, 3.0, 5.0])
SEARCHED = np.geomspace(1, 50, 200)  # factors among which the breakdown is looked for
FITTING, ESTIMATING = "fitting who is found", "estimating"


@formerly(row_budget="max_rows")
@on_one_thread
def audit_found(
    problem: SelectiveLabels,
    *,
    sources: Sequence[str] | None = None,
    suspicious: Mapping[str, str] | None = None,
    learners: Learners = candidate_models,
    max_rows: int = FITTED_ROWS,
    random_state: Any = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> FoundAudit:
    """What found positives say of groups, where nobody recorded who was tested.

    Parameters
    ----------
    problem
        The table, made with `positives_only`. Groups are compared with its `reference_group`, or
        with the largest in which enough positives were found.
    sources, suspicious, learners, max_rows, random_state
        As for `audit_labels`; the learners are those of the flexible models.
    progress
        Called with a few words before each step (`found_steps` lists them).
    """
    if not problem.positives_only:
        raise InputError("This table says who was tested: audit it with `audit_labels`.")
    rng = np.random.default_rng(random_state)
    problem = with_weight(problem)
    people = People.of(problem)
    fold = person_folds(problem, usual_folds(problem), rng)
    reference = problem.group_names[_reference(problem, people)]
    problem = replace(problem, reference_group=reference)
    progress(FITTING)
    model = fit_found(problem, fold)
    predicted = predicted_found(problem, fold, model.ridge)
    nuisances = None
    counts, total = count_groups(problem, people)
    if len(counts) > 1:
        models: Any = {"learners": learners, "max_rows": max_rows, "progress": progress}
        nuisances = fit_nuisances(problem, fold, rng, groups=True, outcomes=False, **models)
    progress(ESTIMATING)
    test = problem.imperfect_test
    stated = [one.words for one in test.stated if one.rate == SENSITIVITY] if test else []
    study = _Study(problem, people, fold, model, predicted, nuisances)
    groups = study.groups()
    if test is not None:
        groups = _at_stated(problem, groups)
    form = (
        "maximum likelihood of P(found | features, group) = rate of the group times a logistic "
        f"function of the features, ridge {model.ridge:g}"
    )
    found = FoundAudit(
        counts=counts,
        total=total,
        found=people.proportion(problem.tested, np.ones(len(problem), bool)),
        groups=groups,
        reference=reference if len(counts) > 1 else "",
        check=study.check(sources) if study.compared else None,
        sensitivity=study.sensitivity() if study.compared else None,
        methods=(),
        findings=(),
        learners={} if nuisances is None else nuisances.chosen,
        configuration=configuration(
            problem,
            people,
            {"model": form},
            f"{FEWEST_PEOPLE} people, {FEWEST_TESTED} of them found",
            random_state,
        ),
        suspicious=dict(suspicious or {}),
        stated_rates=", ".join(stated),
        at_odds={} if test is None else study.at_odds(test),
    )
    return conclude_found(replace(found, methods=advise_found(found)))


def found_steps(problem: SelectiveLabels) -> dict[str, float]:
    """What `audit_found` will tell its `progress`, in order, and each step's part of the work."""
    folds = usual_folds(problem)
    found = {FITTING: 1.0}
    if problem.n_groups > 1:
        found |= model_steps(folds, {"who is found": 1.0, "the group": 1.0})
    return found | {ESTIMATING: 0.5}


def _enough(problem: SelectiveLabels, people: People, code: int) -> bool:
    mine = problem.group == code
    sides = people.count(mine & problem.tested), people.count(mine & ~problem.tested)
    return people.count(mine) >= FEWEST_PEOPLE and min(sides) >= FEWEST_TESTED


def _reference(problem: SelectiveLabels, people: People) -> int:
    if problem.reference_group is not None:
        return problem.group_names.index(problem.reference_group)
    sizes = np.bincount(problem.group, minlength=problem.n_groups)
    codes = [code for code in range(problem.n_groups) if _enough(problem, people, code)]
    return max(codes or range(problem.n_groups), key=lambda code: int(sizes[code]))


def _at_stated(problem: SelectiveLabels, groups: Sequence[FoundGroup]) -> tuple[FoundGroup, ...]:
    """The groups with the prevalence that the stated rates of being found give."""
    everybody = recorded(problem)
    none = Nuisances(np.ones(len(problem)), np.full(len(problem), everybody.y_obs.mean()))
    evaluator = Evaluator(everybody, fold=np.zeros(len(problem), np.int64), nuisances=none)
    return tuple(
        replace(one, at_stated=evaluator.prevalence("tested", one.group)) for one in groups
    )


@dataclass(frozen=True, eq=False)
class _Study:
    """A table with a reference group, and its models: what all questions are asked of."""

    problem: SelectiveLabels
    people: People
    fold: np.ndarray  # [n]
    model: FoundModel
    predicted: np.ndarray  # [n] chance of being found, by models of other people
    nuisances: Nuisances | None  # flexible models, where there are groups

    @property
    def reference(self) -> int:
        """The code of the reference group."""
        return self.problem.group_names.index(str(self.problem.reference_group))

    @cached_property
    def against(self) -> Ratios:
        """Every group against the reference."""
        return ratios(self.model, self.problem, self.people, self.reference)

    @cached_property
    def compared(self) -> list[int]:
        """Codes of the groups that can be compared with the reference."""
        if not self.enough(self.reference):
            return []
        return [code for code in self.against.rate if self.enough(code)]

    def enough(self, code: int) -> bool:
        """Whether there are enough people of a group, found and not."""
        return _enough(self.problem, self.people, code)

    def groups(self) -> tuple[FoundGroup, ...]:
        """What is known of every group that has people."""
        problem, people, against = self.problem, self.people, self.against

        def log_share(code: int) -> Statistic:
            return people.mean(problem.y_imputed, (problem.group == code) * 1.0).log()

        family = [
            simultaneous(people, {code: of[code] for code in self.compared})
            for of in (against.rate, against.prevalence)
        ]
        nothing = Statistic(0.0, np.zeros(len(problem)))
        rate = {self.reference: nothing} | {code: against.rate[code] for code in self.compared}
        most = max(rate, key=lambda code: rate[code].value)  # found most often: 1 at most
        found = []
        for code, name in enumerate(problem.group_names):
            mine = problem.group == code
            if not mine.any():
                continue
            share = people.proportion(problem.tested, mine)
            least, most_common = share.low, at_most(problem, people, mine, self.predicted)
            none = Estimate(nan, reason=self._why_not_compared(code))
            one = FoundGroup(
                name, share, none, none, none, none, nan, nan, least, most_common, Estimate(nan)
            )
            if code in rate and self.enough(code) and len(rate) > 1:
                floor = people.interval(log_share(code) - rate[code] + rate[most])
                one = replace(one, at_least=min(max(least, float(np.exp(floor.low))), most_common))
            if code in self.compared:
                crude = log_share(code) - log_share(self.reference)
                one = replace(
                    one,
                    crude=people.interval(crude).exp(),
                    rate=people.interval(against.rate[code]).exp(),
                    prevalence=people.interval(against.prevalence[code]).exp(),
                    without_form=self._without_form(name, crude),
                    rate_p_value=family[0][code].p_value,
                    prevalence_p_value=family[1][code].p_value,
                )
            found.append(one)
        return tuple(found)

    def _why_not_compared(self, code: int) -> str:
        if code == self.reference:
            return "the others are compared with it"
        who = "in the reference group" if self.enough(code) else "in the group"
        return f"fewer than {FEWEST_PEOPLE} people, or {FEWEST_TESTED} found or not, {who}"

    def _without_form(self, name: str, crude: Statistic) -> Estimate:
        """The ratio of prevalences, rates compared by flexible models over shared features."""
        problem, people = self.problem, self.people
        assert self.nuisances is not None
        some, chance, member = compared_people(problem, people, self.nuisances, name)
        mine = problem.group == problem.group_names.index(name)
        if is_determined(some, mine, [member]):
            return Estimate(nan, reason=DETERMINED)
        pair = equal_features(some, mine, problem.tested, chance, member)
        if isinstance(pair, str):
            return Estimate(nan, reason=pair)
        here, there = pair
        if not (here.value > 0 and there.value > 0):
            return Estimate(
                nan, reason="hardly anybody was found among people with shared features"
            )
        return people.interval(crude - (here.log() - there.log())).exp()

    def at_odds(self, test: ImperfectTest) -> dict[str, float]:
        """How well stated rates agree with what features say of the rates, group by group."""
        rates = self.against.rate

        def stated(code: int) -> tuple[float, float, int]:
            mine = self.problem.group == code
            source = int(test.source[mine, 0][0])
            rate = float(test.rates[mine, 0].mean())
            return float(np.log(rate)), test.stated[source].error / rate, source

        usual, usual_error, usual_source = stated(self.reference)
        found = {}
        for code in self.compared:
            log, error, source = stated(code)
            spread = 0.0 if source == usual_source else error**2 + usual_error**2
            spread += self.people.error(rates[code]) ** 2
            z = (rates[code].value - (log - usual)) / spread**0.5
            found[self.problem.group_names[code]] = min(1.0, len(self.compared) * two_sided(z))
        return found

    def check(self, sources: Sequence[str] | None) -> FoundCheck:
        """Whether features bear on being found alike in all groups."""
        problem, people, model, fold = self.problem, self.people, self.model, self.fold
        asked = failures(model, problem, people, self.reference)
        columns = list(problem.feature_names if sources is None else sources)
        columns += [f"{columns[place]} (missing)" for place in model.preprocessor.indicators]
        clearest: dict[tuple[str, str], Departure] = {}
        for one in asked:
            key = columns[one.feature], problem.group_names[one.group]
            clearest.setdefault(key, Departure(*key, one.z > 0, one.p_value))
        apart = np.array(self.predicted)  # by models of each group alone
        for code in filter(self.enough, range(problem.n_groups)):
            mine = problem.group == code
            for number in np.unique(fold[mine]):
                out = mine & (fold == number)
                rest = problem.subset(mine & (fold != number))
                if rest.extent == "some":
                    apart[out] = fit_found(rest, ridge=model.ridge).found(problem.subset(out))
        found = problem.y_imputed
        worse = people.mean(1000 * (log_loss(found, self.predicted) - log_loss(found, apart)))
        curves = rates_by_score(problem, people, self.predicted, BINS)
        return FoundCheck(
            min((one.p_value for one in asked), default=nan),
            tuple(list(clearest.values())[:MOST_DEPARTURES]),
            people.interval(worse),
            tuple(FoundCurve(name, *points) for name, points in curves.items()),
        )

    def sensitivity(self) -> FoundSensitivity:
        """The range of each group's ratio, sampling included, and where it first holds 1."""
        problem, people, reference = self.problem, self.people, self.reference
        assert self.nuisances is not None
        assert self.nuisances.membership is not None
        risk = self.model.risk(problem.X)
        member = np.maximum(self.nuisances.membership, 1e-9)
        low, high, breakdown = {}, {}, {}
        for code in self.compared:
            name = problem.group_names[code]
            reach = Z * people.error(self.against.prevalence[code])
            cuts = Cuts(
                risk,
                people.weight * (problem.group == code),
                people.weight * (problem.group == reference),
                member[:, code] / member[:, reference],
            )
            ends = np.array([cuts.ends(factor) for factor in FACTORS])
            low[name], high[name] = np.exp(ends[:, 0] - reach), np.exp(ends[:, 1] + reach)
            alone = sampled = inf
            for factor in SEARCHED[::-1]:
                down, up = cuts.ends(factor)
                alone = float(factor) if down <= 0 <= up else alone
                sampled = float(factor) if down - reach <= 0 <= up + reach else sampled
            breakdown[name] = Breakdown(
                f"the outcome is not equally common in {name} and {problem.reference_group}",
                alone,
                sampled,
                "factor",
            )
        return FoundSensitivity(FACTORS, low, high, breakdown)


class Cuts:
    """People in order of how much they look like the first of two groups, and every cut of them.

    Parameters
    ----------
    risk
        f(x) of each row [n].
    first, second
        The weight of each row of the two groups [n], 0 in the others.
    odds
        P(first | x) / P(second | x) [n].
    """

    def __init__(
        self, risk: np.ndarray, first: np.ndarray, second: np.ndarray, odds: np.ndarray
    ) -> None:
        order = np.argsort(-odds, kind="stable")
        self._sums = [
            np.append(0.0, np.cumsum((risk * side)[order])) / side.sum() for side in (first, second)
        ]

    def ends(self, factor: float) -> tuple[float, float]:
        """The smallest and the largest logarithm of the ratio of mean risks."""
        return float(self._at(1 / factor).min()), float(self._at(factor).max())

    def _at(self, up: float) -> np.ndarray:
        """At each cut [n + 1], risks above it times `up` and below it divided by it."""
        first, second = (np.log(up * s + (s[-1] - s) / up) for s in self._sums)
        return first - second
