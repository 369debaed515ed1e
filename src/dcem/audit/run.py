"""The whole audit of a table, one question after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dcem.audit.conclusions import conclude
from dcem.audit.drivers import find_drivers
from dcem.audit.independence import check_independence, no_test, with_group
from dcem.audit.nuisance import CrossFit, Features, cross_fit, deal_folds, group_features
from dcem.audit.outcome_test import yields
from dcem.audit.overlap import BIN_EDGES, calibrate, describe_overlap
from dcem.audit.people import FEWEST_PEOPLE, FEWEST_TESTED, People
from dcem.audit.performance import performance_sensitivity
from dcem.audit.prevalence import prevalences
from dcem.audit.results import EVERYBODY, Audit, GroupCounts
from dcem.audit.sensitivity import Unseen, prevalence_sensitivity
from dcem.audit.testing import risk_curves, testing_rates
from dcem.audit.unmeasured import testing_sensitivity
from dcem.table.labels import SelectiveLabels

ROW_BUDGET = 50_000  # rows a nuisance model is fitted to, at most


def audit(
    problem: SelectiveLabels,
    *,
    sources: Sequence[str] | None = None,
    suspicious: Mapping[str, str] | None = None,
    row_budget: int = ROW_BUDGET,
    random_state: Any = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> Audit:
    """Is this labelling biased, and what can be learnt from it?

    Parameters
    ----------
    problem
        The table. Without groups the audit is one of overlap, prevalence and sensitivity.
    sources
        The raw column of each feature, where several features come from one column.
    suspicious
        Raw columns that may have been recorded after the decision to test, and why.
    row_budget
        Rows a nuisance model is fitted to, at most; all rows are predicted.
    random_state
        Seed or generator of folds, subsamples and shuffles.
    progress
        Called with a few words before each step.
    """
    rng = np.random.default_rng(random_state)
    people = People.of(problem)
    sources = list(problem.feature_names if sources is None else sources)
    counts, total = _count(problem, people)
    tested = problem.tested
    varies = bool(tested.any() and not tested.all())
    grouped = len(counts) > 1
    n_folds = 2 if people.n_people < 100 else 5 if people.n_people < 2_000 else 3
    fold = deal_folds(people, len(problem), n_folds, rng)
    everyone = np.ones(len(problem), bool)
    learners: dict[str, str] = {}

    def fit(what: str, features: Features, target: np.ndarray, **how: Any) -> CrossFit:
        progress(f"modelling {what}")
        settings = {"n_classes": 2, "among": everyone, **how}
        done = cross_fit(
            features, target, fold=fold, people=people, row_budget=row_budget, rng=rng, **settings
        )
        learners[what] = done.learner
        return done

    plain = Features(problem.X)
    both = group_features(problem)
    given_group = fit("testing", both, tested.astype(int)) if varies else None
    testing = given_group
    membership = None
    if varies and grouped:
        testing = fit("testing from the features alone", plain, tested.astype(int))
        membership = _membership(
            fit("the group", plain, problem.group, n_classes=problem.n_groups), problem
        )
    outcomes = problem.y_obs[tested]
    enough = min((outcomes == 1).sum(), (outcomes == 0).sum()) >= FEWEST_TESTED
    risk, independence = None, None
    if enough:
        y = np.where(tested, problem.y_imputed, 0).astype(int)
        risk = fit("the outcome among the tested", plain, y, among=tested).probability
    if grouped and risk is not None:
        among = _membership(
            fit(
                "the group among the tested",
                plain,
                problem.group,
                n_classes=problem.n_groups,
                among=tested,
                predict=tested,
            ),
            problem,
        )
        independence = check_independence(problem, people, risk, among)
    elif grouped:
        independence = no_test(problem, "too few positives or negatives among the tested")

    progress("estimating")
    probability = None if given_group is None else given_group.probability
    overlap = {} if probability is None else describe_overlap(problem, people, probability)
    unseen = None
    if probability is not None and risk is not None:
        unseen = Unseen.of(
            problem, with_group(problem, people, risk) if grouped else risk, probability
        )
    rates = testing_rates(
        problem, people, None if testing is None else testing.probability, membership
    )
    prevalence = prevalences(problem, people, probability, unseen, overlap)
    found = Audit(
        extent="some" if varies else "everybody" if tested.all() else "nobody",
        counts=counts,
        total=total,
        testing=rates,
        risk_curves=() if risk is None or not varies else risk_curves(problem, people, risk),
        drivers=(),
        bin_edges=BIN_EDGES,
        overlap=overlap,
        calibration=None if probability is None else calibrate(problem, people, probability),
        yields=yields(problem, people, probability),
        prevalence=prevalence,
        independence=independence,
        testing_sensitivity=None,
        prevalence_sensitivity=None,
        performance_sensitivity=None,
        learners=learners,
        configuration=_configuration(problem, people, row_budget, n_folds, random_state),
        suspicious=dict(suspicious or {}),
    )
    if given_group is not None:
        progress("asking what drives testing")
        found = replace(
            found,
            drivers=find_drivers(problem, people, both, given_group, fold, sources, rng),
        )
    progress("trying what nobody measured")
    if testing is not None and membership is not None:
        found = replace(
            found,
            testing_sensitivity=testing_sensitivity(
                problem, people, rates, testing.probability, membership, sources, rng
            ),
        )
    if unseen is not None:
        assert risk is not None
        found = replace(
            found,
            prevalence_sensitivity=prevalence_sensitivity(
                problem, people, unseen, overlap, prevalence
            ),
            performance_sensitivity=performance_sensitivity(
                problem,
                unseen,
                risk,
                overlap,
                name=f"{learners['the outcome among the tested']}, fitted to the tested",
            ),
        )
    return conclude(found)


def _count(problem: SelectiveLabels, people: People) -> tuple[tuple[GroupCounts, ...], GroupCounts]:
    def of(name: str, mine: np.ndarray) -> GroupCounts:
        return GroupCounts(
            name,
            int(mine.sum()),
            people.count(mine),
            int(problem.tested[mine].sum()),
            int((problem.y_obs[mine] == 1).sum()),
        )

    groups = tuple(
        of(name, problem.group == code)
        for code, name in enumerate(problem.group_names)
        if (problem.group == code).any()
    )
    return groups, of(EVERYBODY, np.ones(len(problem), bool))


def _membership(fitted: CrossFit, problem: SelectiveLabels) -> np.ndarray:
    """P(group | x) as [n, groups], for two groups too."""
    if problem.n_groups == 2:
        return np.stack([1 - fitted.probability, fitted.probability], axis=1)
    return fitted.probability


def _configuration(
    problem: SelectiveLabels, people: People, row_budget: int, n_folds: int, random_state: Any
) -> dict[str, str]:
    return {
        "rows": f"{len(problem):,}",
        "people": f"{people.n_people:,}" + ("" if problem.id is not None else " (one a row)"),
        "features": f"{problem.X.shape[1]}",
        "weights": "as given" if problem.weight is not None else "all rows equal",
        "models": f"cross-fitted on {n_folds} parts of the people, each fitted to at most "
        f"{row_budget:,} rows; every row predicted by a model that has not seen its person",
        "intervals": "95 %, people as units",
        "smallest group": f"{FEWEST_PEOPLE} people for model-based numbers",
        "seed": str(random_state) if isinstance(random_state, int) else "a generator",
    }
