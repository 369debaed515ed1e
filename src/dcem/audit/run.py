"""The whole audit of a table, one question after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dcem.audit.advice import conclude
from dcem.audit.bounds import find_bounds
from dcem.audit.calibration import calibrate
from dcem.audit.deciders import audit_deciders, decider_steps
from dcem.audit.drivers import find_drivers
from dcem.audit.errors import test_errors
from dcem.audit.independence import check_independence, no_test
from dcem.audit.known import known_rates, tightened
from dcem.audit.over_time import TOLD, over_time
from dcem.audit.performance import performance_sensitivity
from dcem.audit.preference import preference
from dcem.audit.prevalence import hidden_gap, prevalences, tests_needed
from dcem.audit.results import Audit, GroupCounts, TestingRate
from dcem.audit.sensitivity import prevalence_sensitivity
from dcem.audit.testing import missing_by_testing, risk_curves, testing_rates
from dcem.audit.unmeasured import testing_sensitivity
from dcem.audit.yields import yields
from dcem.estimation.bounds import check_strength
from dcem.estimation.cross_fitting import ROW_BUDGET, Features, Learners, modelling
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.folds import person_folds, usual_folds
from dcem.estimation.influence import FEWEST_PEOPLE, FEWEST_TESTED, People
from dcem.estimation.nuisance_learners import candidates
from dcem.estimation.nuisances import Nuisances, fit_nuisances
from dcem.estimation.outcomes import true_risk
from dcem.estimation.overlap import BIN_EDGES
from dcem.estimation.residuals import left_over
from dcem.estimation.results import EVERYBODY
from dcem.metrics.estimate import Estimate
from dcem.table.disclosure import few_people
from dcem.table.found import require_record
from dcem.table.known import said
from dcem.table.labels import SelectiveLabels


def audit_labels(
    problem: SelectiveLabels,
    *,
    sources: Sequence[str] | None = None,
    suspicious: Mapping[str, str] | None = None,
    attributes: Mapping[str, SelectiveLabels] | None = None,
    least_difference: float = 0.01,
    precision: float = 0.03,
    bounds: float | None = None,
    threshold: float | None = None,
    learners: Learners = candidates,
    row_budget: int = ROW_BUDGET,
    random_state: Any = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> Audit:
    """Is this labelling biased, and what can be learnt from it?

    Parameters
    ----------
    problem
        The table. Without groups the audit is one of overlap, prevalence and sensitivity. Groups
        are compared with everybody else, or with its `reference_group`. Where
        tests were drawn by a known design (`testing_probability`), estimates for everybody are
        those of the design, whatever the models say.
    sources
        The raw column of each feature, where several features come from one column.
    suspicious
        Raw columns that may have been recorded after the decision to test, and why.
    attributes
        The same table with each sensitive attribute by itself as the group, where the groups of
        `problem` are several attributes crossed (`UserTable.by_attribute`): who is tested at equal
        features is told of each attribute too.
    least_difference
        Differences in rates under it, or under a tenth of the share tested where that is less, are
        noted and not counted as disparities.
    precision
        How precisely the outcome of each group should be known (half the width of a 95 % interval):
        how many tests that takes is told.
    bounds
        A strength of what is unmeasured, an odds ratio from 1 to 10: for whom a decision holds
        whatever the untested are like within it (`dcem.estimation.bounds`).
    threshold
        The risk from which on one acts, for `bounds`; by default that which a tenth exceed.
    learners
        The kinds of models: (classes, seed) -> name -> untrained classifier.
    row_budget
        Rows a nuisance model is fitted to, at most; all rows are predicted.
    random_state
        Seed or generator of folds, subsamples and shuffles.
    progress
        Called with a few words before each step (`audit_steps` lists them).
    """
    if bounds is not None:
        check_strength(bounds)
    require_record(problem)
    rng = np.random.default_rng(random_state)
    people = People.of(problem)
    sources = list(problem.feature_names if sources is None else sources)
    counts, total = count_groups(problem, people)
    tested = problem.tested
    varies = bool(tested.any() and not tested.all())
    grouped = len(counts) > 1
    n_folds = usual_folds(problem)
    fold = person_folds(problem, n_folds, rng)
    nuisances = fit_nuisances(
        problem,
        fold,
        rng,
        groups=grouped,
        learners=learners,
        row_budget=row_budget,
        progress=progress,
    )
    outcomes = problem.y_obs[tested]
    enough = min((outcomes == 1).sum(), (outcomes == 0).sum()) >= FEWEST_TESTED
    independence, unseen = None, None
    if grouped and enough:
        independence = check_independence(problem, people, nuisances)
    elif grouped:
        independence = no_test(problem, "too few positives or negatives among the tested")

    progress("estimating")
    probability = nuisances.testing if varies else None
    judge = Evaluator(problem, fold=fold, nuisances=nuisances)
    overlap = judge.reach.overlap if varies else {}
    # What is scored and drawn is the risk that the features show; the group may differ in it.
    risk = nuisances.outcome_alone
    if risk is None:
        risk = true_risk(problem, nuisances.outcome)
    if varies and enough:
        unseen = judge.unseen_alike
    errors = test_errors(judge, people, risk)
    rates = testing_rates(problem, people, nuisances if varies else None)
    prevalence = tightened(problem, people, prevalences(judge, people))
    found = Audit(
        extent="some" if varies else "everybody" if tested.all() else "nobody",
        counts=counts,
        total=total,
        testing=rates,
        risk_curves=risk_curves(problem, people, risk) if varies and enough else (),
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
        learners={report.name: report.chosen for report in nuisances.reports},
        configuration=_configuration(problem, people, row_budget, n_folds, random_state),
        least_difference=min(least_difference, 0.1 * float(tested.mean())),
        left_over=_left_over(problem, people, nuisances, fold, enough, rng) if varies else {},
        missing=missing_by_testing(problem, people, sources) if varies else {},
        needed=tests_needed(problem, prevalence, precision),
        hidden_gap=hidden_gap(judge, people, prevalence),
        by_attribute={
            name: _of_attribute(name, alone, fold, rng, learners, row_budget, progress)
            for name, alone in (attributes or {}).items()
            if varies
        },
        suspicious=dict(suspicious or {}),
        reference=problem.reference_group or "",
        test_errors=errors,
        preference=preference(judge) if varies and enough else None,
        testing_only=tuple(
            dict.fromkeys(
                source
                for name, source in zip(problem.feature_names, sources, strict=True)
                if name in problem.testing_only
            )
        ),
        known=known_rates(judge, people, unseen),
    )
    if problem.time is not None:
        told = over_time(problem, people, fold, rng, learners, row_budget, progress)
        found = replace(found, over_time=told)
    if problem.decider is not None and varies and enough:
        found = replace(
            found,
            deciders=audit_deciders(
                judge,
                people,
                risk,
                rng,
                learners=learners,
                row_budget=row_budget,
                progress=progress,
            ),
        )
    if nuisances.testing_model is not None:
        progress("asking what drives testing")
        found = replace(
            found,
            drivers=find_drivers(
                problem,
                people,
                nuisances.testing_model,
                tested,
                np.ones(len(problem), bool),
                sources,
                rng,
            ),
        )
    progress("trying what nobody measured")
    if nuisances.membership is not None and varies:
        found = replace(
            found,
            testing_sensitivity=testing_sensitivity(
                problem, people, rates, nuisances, sources, rng
            ),
        )
    if unseen is not None:
        found = replace(
            found,
            prevalence_sensitivity=prevalence_sensitivity(
                problem, people, unseen, overlap, prevalence, judge.unseen
            ),
            performance_sensitivity=performance_sensitivity(
                problem,
                unseen,
                risk,
                overlap,
                name="the model of what a test would show",
                centre=judge.unseen,
            ),
        )
        if bounds is not None and not overlap[EVERYBODY].reason:
            found = replace(found, bounds=find_bounds(judge, sources, bounds, threshold))
    if nuisances.outcome_model is not None and enough:
        drivers = find_drivers(
            problem, people, nuisances.outcome_model, problem.y_imputed, tested, sources, rng
        )
        found = replace(found, outcome_drivers=drivers)
    if bounds is not None and found.bounds is None:
        lacking = {"everybody": "everybody is tested", "nobody": "nobody is tested"}
        why = lacking.get(found.extent) or judge.lacking("dr") or "too few were tested"
        found = replace(found, bounds_lacking=why)
    return conclude(found)


def audit_steps(
    problem: SelectiveLabels, attributes: Mapping[str, SelectiveLabels] | None = None
) -> dict[str, float]:
    """What `audit_labels` will tell its `progress`, in order, and each step's part of the work.

    Models cost as much as they have rows; all else is a part of that.
    """
    rates = problem.tested.mean()
    folds = usual_folds(problem)
    found = _models(folds, {"who is tested": 1.0, "what a test would show": 0.2 + 0.8 * rates})
    if problem.n_groups > 1:
        found |= _models(folds, {"the group": 1.0})
    found["estimating"] = 0.5 * folds
    for name in attributes or {}:
        both = _models(folds, {"who is tested": 1.0, "the group": 1.0})
        found |= {f"{name}: {step}": part for step, part in both.items()}
    if problem.time is not None:
        for name in TOLD.values():
            both = _models(folds, {"who is tested": 1.0, "the group": 1.0})
            found |= {f"{name}: {step}": part for step, part in both.items()}
    found |= _models(folds, decider_steps(problem))
    last = ("asking what drives testing", "trying what nobody measured")
    return found | dict.fromkeys(last, 0.5 * folds)


def _models(folds: int, parts: Mapping[str, float]) -> dict[str, float]:
    return {
        modelling(name, number, folds): part
        for name, part in parts.items()
        for number in range(1, folds + 1)
    }


def count_groups(
    problem: SelectiveLabels, people: People
) -> tuple[tuple[GroupCounts, ...], GroupCounts]:
    """Of each group with people, and of everybody."""
    few = few_people(problem)

    def of(name: str, mine: np.ndarray, code: int) -> GroupCounts:
        return GroupCounts(
            name,
            int(mine.sum()),
            people.count(mine),
            int(problem.tested[mine].sum()),
            int((problem.y_obs[mine] == 1).sum()),
            few[code],
        )

    groups = tuple(
        of(name, problem.group == code, code)
        for code, name in enumerate(problem.group_names)
        if (problem.group == code).any()
    )
    return groups, of(EVERYBODY, np.ones(len(problem), bool), -1)


def _of_attribute(
    name: str,
    problem: SelectiveLabels,
    fold: np.ndarray,
    rng: np.random.Generator,
    learners: Learners,
    row_budget: int,
    progress: Callable[[str], None],
) -> tuple[TestingRate, ...]:
    """Who is tested, by one sensitive attribute alone."""
    models = fit_nuisances(
        problem,
        fold,
        rng,
        groups=True,
        outcomes=False,
        learners=learners,
        row_budget=row_budget,
        progress=lambda text: progress(f"{name}: {text}"),
    )
    return testing_rates(problem, People.of(problem), models)


def _left_over(
    problem: SelectiveLabels,
    people: People,
    nuisances: Nuisances,
    fold: np.ndarray,
    enough: bool,
    rng: np.random.Generator,
) -> dict[str, Estimate]:
    """What the residuals of each model still know."""
    everybody = np.arange(len(problem))
    X = Features.of(problem).take(everybody)
    asked = {"who is tested": problem.tested - nuisances.testing}
    if enough:
        asked["what a test would show"] = problem.y_obs - nuisances.outcome
    if nuisances.membership is not None:
        largest = int(np.bincount(problem.group).argmax())
        asked["the group"] = (problem.group == largest) - nuisances.membership[:, largest]
    return {
        name: left_over(problem.X if name == "the group" else X, residual, fold, people, rng)
        for name, residual in asked.items()
    }


def _configuration(
    problem: SelectiveLabels, people: People, row_budget: int, n_folds: int, random_state: Any
) -> dict[str, str]:
    return {
        "rows": f"{len(problem):,}",
        "people": f"{people.n_people:,}" + ("" if problem.id is not None else " (one per row)"),
        "features": f"{problem.X.shape[1]}",
        "weights": "as given" if problem.weight is not None else "all rows equal",
        "models": f"cross-fitted on {n_folds} parts of the people, each fitted to at most "
        f"{row_budget:,} rows; every row predicted by a model that has not seen its person",
        "intervals": "95 %, people as units",
        **({} if problem.imperfect_test is None else {"test": problem.imperfect_test.words}),
        **({"known": said(problem.known_prevalence)} if problem.known_prevalence else {}),
        "smallest group": f"{FEWEST_PEOPLE} people for model-based numbers",
        "seed": str(random_state) if isinstance(random_state, int) else "a generator",
    }
