"""Models that audit and comparison rely on, each fitted to other people than it speaks of.

Three probabilities are needed, and all else follows from them:

* *who is tested*: e(x, a) = P(tested | features, group), from all rows;
* *what a test would show*: m(x, a) = P(positive | features, group, tested), from the tested;
* *who belongs to which group*: pi(a | x), from all rows, where groups are compared.

Testing given the features alone is sum_a pi(a | x) e(x, a), the group among the tested follows by
Bayes' rule, and the outcome given the features alone from both: no model is fitted for them.

They are means to an end (nuisances), so they should be flexible, need no tuning, and not have seen
the row they predict: a model that has would find every tested person likely to be tested. People
are shared out over folds; a fold is predicted by models fitted on the others. Several kinds of
models (`candidates`) are mixed in the proportions that predict held-out rows best, by log loss
(super learner; mixed once over all folds: short-stacking). What a number would be under each kind
alone stands beside it (`Nuisances.each`).

Large tables are fitted on a random part of each training side, at most `max_rows` rows and three
million numbers; *all* rows are predicted, a chunk at a time.

References: V. Chernozhukov et al., "Double/debiased machine learning for treatment and structural
parameters", Econometrics Journal 2018 (cross-fitting); M. van der Laan, E. Polley and A. Hubbard,
"Super learner", 2007; A. Ahrens et al., "Model averaging and double machine learning", Journal of
Applied Econometrics 2025 (short-stacking).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from dcem.estimation.cross_fitting import (
    MIXED,
    CrossFit,
    Features,
    cross_fit,
    learnt_groups,
    on_one_thread,
)
from dcem.estimation.outcomes import true_risk
from dcem.estimation.results import Nuisance
from dcem.table.labels import SelectiveLabels

RATE_FLOOR = 0.01  # of the mean rate: the smallest modelled probability that is divided by


@dataclass(frozen=True)
class Nuisances:
    """Out-of-fold predictions for every row, and how good they are.

    What is *alone* is given the features and not the group; None where groups are not compared.
    """

    testing: np.ndarray  # [n] P(tested | x, a), as predicted
    outcome: np.ndarray  # [n] P(positive test | x, a, tested)
    reports: tuple[Nuisance, ...] = ()
    membership: np.ndarray | None = None  # [n, groups] P(group | x)
    testing_alone: np.ndarray | None = None  # [n] P(tested | x)
    testing_as: np.ndarray | None = None  # [n, groups] P(tested | x, a), as each group
    outcome_alone: np.ndarray | None = None  # [n] P(outcome | x, tested), also where tests err
    outcome_as: np.ndarray | None = None  # [n, groups] the same given the group, as each group
    membership_tested: np.ndarray | None = None  # [n, groups] P(group | x, tested)
    each: Mapping[str, Nuisances] = field(default_factory=dict)  # by one kind of model alone
    testing_each: Mapping[str, np.ndarray] = field(default_factory=dict)  # [n], all kinds
    testing_model: CrossFit | None = None
    outcome_model: CrossFit | None = None
    known: bool = False  # whether `testing` are the probabilities of a design

    @property
    def chosen(self) -> dict[str, str]:
        """Model -> the kind of learner that won."""
        return {report.name: report.chosen for report in self.reports}

    def subset(self, rows: np.ndarray) -> Nuisances:
        """Of some of the rows (a mask)."""

        def part(one: Any) -> Any:
            if isinstance(one, CrossFit):
                return replace(one, fold=one.fold[rows])
            if isinstance(one, Mapping):
                return {key: part(value) for key, value in one.items()}
            if isinstance(one, Nuisances):
                return one.subset(rows)
            return one[rows] if isinstance(one, np.ndarray) else one

        return replace(self, **{name: part(one) for name, one in vars(self).items()})

    @property
    def truncated_testing(self) -> np.ndarray:
        """P(tested | x, a) to divide by [n]: if modelled, no less than `RATE_FLOOR` of its mean."""
        return self.testing if self.known else truncated(self.testing, self.testing.mean())


def truncated(testing: np.ndarray, rate: float) -> np.ndarray:
    """Modelled probabilities of a test, no less than `RATE_FLOOR` of the mean rate [n]."""
    return np.maximum(testing, RATE_FLOOR * rate)


@on_one_thread
def fit_nuisances(
    problem: SelectiveLabels,
    fold: np.ndarray,
    random_state: int | np.random.Generator = 0,
    *,
    groups: bool = False,
    outcomes: bool = True,
    **models: Any,
) -> Nuisances:
    """All models of a table for every row, from the rows of the other folds.

    Parameters
    ----------
    problem
        The rows. Where it knows the probability of each test (`testing_probability`), that takes
        the place of the modelled one.
    fold
        The fold of each row [n]; a person's rows in one fold.
    random_state
        Seed of subsamples and trees.
    groups
        Whether groups are to be compared at equal features: then who belongs to which is modelled
        too, and what follows from it.
    outcomes
        Whether what a test would show is modelled at all.
    models
        The learners, max_rows and progress of `cross_fit`.
    """
    tested = problem.tested
    seen = problem.y_obs[tested]
    features = Features.of(problem)
    groups = groups and problem.n_groups > 1
    rng = np.random.default_rng(random_state)
    fit: Any = partial(cross_fit, problem, fold=fold, random_state=rng, **models)
    testing = outcome = member = None
    if problem.extent == "some":
        who = "who is found" if problem.positives_only else "who is tested"
        testing = fit(who, features, tested)
    if outcomes and len(np.unique(seen)) == 2:
        outcome = fit("what a test would show", features, problem.y_imputed, among=tested)
    place, n_places = learnt_groups(problem)
    groups = groups and n_places > 1
    if groups and tested.any():
        member = fit(
            "the group", features.without_group(), place[problem.group], n_classes=n_places
        )
    fitted = [one for one in (testing, outcome, member) if one is not None]
    kinds = dict.fromkeys(name for one in fitted for name in one.shares)
    constant = float(tested.mean()), float(seen.mean()) if len(seen) else 0.5
    predicted = [
        {MIXED: np.full((len(problem), 1), value)}
        if one is None
        else _predict(one, features, place if member is not None else None)
        for one, value in zip((testing, outcome), constant, strict=True)
    ]
    belongs = None
    if member is not None:
        at = member.at(features.without_group())
        alike = np.bincount(place)[place]  # groups that were learnt as one have equal shares
        belongs = {kind: p[:, place] / alike for kind, p in at.items()}
    made = {
        kind: _combine(
            problem,
            _under(kind, predicted[0]),
            _under(kind, predicted[1]),
            None if belongs is None else _under(kind, belongs),
        )
        for kind in (*kinds, MIXED)
    }
    found = made.pop(MIXED)
    by_kind = {kind: one.testing for kind, one in made.items()}
    if testing is not None and testing.unused:
        more = testing.at(features, testing.unused)
        by_kind |= {kind: p[:, 1] for kind, p in more.items()}
    if problem.testing_probability is not None:
        found, by_kind = replace(found, testing=problem.testing_probability, known=True), {}
    return replace(
        found,
        reports=tuple(one.report for one in fitted),
        each=made,
        testing_each=by_kind,
        testing_model=testing,
        outcome_model=outcome,
    )


def _predict(
    model: CrossFit, features: Features, place: np.ndarray | None
) -> dict[str, np.ndarray]:
    """P(1) of each row as a member of each group [n, groups], or of its own alone [n, 1].

    `place [groups]` is the class in which a group is learnt.
    """
    if place is None:
        return {kind: p[:, 1:2] for kind, p in model.at(features).items()}
    found = [model.at(features.as_group(number)) for number in range(features.n_groups)]
    return {
        kind: np.stack([one[kind][:, 1] for one in found], axis=1)[:, place] for kind in found[0]
    }


def _under(kind: str, found: Mapping[str, np.ndarray]) -> np.ndarray:
    """By one kind of model, or by the mixture if it does not use that kind."""
    return found.get(kind, found[MIXED])


def _combine(
    problem: SelectiveLabels,
    testing: np.ndarray,
    outcome: np.ndarray,
    member: np.ndarray | None,
) -> Nuisances:
    """What follows from P(tested | x, a), P(positive | x, a) and P(a | x), each [n, groups]."""

    def own(p: np.ndarray) -> np.ndarray:
        return p[:, 0] if p.shape[1] == 1 else p[np.arange(len(p)), problem.group]

    if member is None:
        return Nuisances(own(testing), own(outcome))
    joint = member * testing  # P(a, tested | x)
    alone = joint.sum(axis=1)
    among_tested = joint / alone[:, None]
    truth = outcome
    if problem.imperfect_test is not None:
        each = (true_risk(problem, one, code) for code, one in enumerate(outcome.T))
        truth = np.stack(list(each), axis=1)
    return Nuisances(
        own(testing),
        own(outcome),
        membership=member,
        testing_alone=alone,
        testing_as=testing,
        outcome_alone=(among_tested * truth).sum(axis=1),
        outcome_as=truth,
        membership_tested=among_tested,
    )
