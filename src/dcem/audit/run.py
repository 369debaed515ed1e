"""The whole audit of a table, one question after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dcem.audit.advice import with_conclusions
from dcem.audit.bounds import find_bounds
from dcem.audit.deciders import audit_deciders, decider_steps
from dcem.audit.drivers import HELD_OUT_ROWS, find_drivers
from dcem.audit.imperfect import test_errors
from dcem.audit.independence import check_independence, enough_results
from dcem.audit.known_rates import known_rates, tightened
from dcem.audit.model_checks import calibrate, models_leave
from dcem.audit.over_time import EARLIER, PERIOD, over_time
from dcem.audit.performance import performance_sensitivity
from dcem.audit.prevalence import hidden_gap, preference, prevalences, tests_needed
from dcem.audit.results import Audit, GroupCounts, RiskCurve
from dcem.audit.sensitivity import prevalence_sensitivity
from dcem.audit.testing import missing_by_testing, testing_rates
from dcem.audit.unmeasured import testing_sensitivity
from dcem.audit.yields import yields
from dcem.estimation import hidden_cause
from dcem.estimation.bounds import check_strength
from dcem.estimation.cross_fitting import (
    FITTED_CELLS,
    FITTED_ROWS,
    Learners,
    learnt_groups,
    modelling,
    on_one_thread,
)
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.folds import person_folds, rows_that_count, usual_folds
from dcem.estimation.influence import FEWEST_PEOPLE, People
from dcem.estimation.nuisance_learners import candidate_models
from dcem.estimation.nuisances import Nuisances, fit_nuisances
from dcem.estimation.outcomes import true_risk
from dcem.estimation.overlap import BIN_EDGES, rates_by_score
from dcem.estimation.results import EVERYBODY
from dcem.table.disclosure import few_people
from dcem.table.known_rates import known_words
from dcem.table.labels import SelectiveLabels
from dcem.table.load import UserTable
from dcem.table.messages import formerly, require_share
from dcem.table.positives_only import require_record
from dcem.table.straight import takes_tables


def _about(table: UserTable) -> dict[str, Any]:
    """Arguments of an audit that follow from how its table was read."""
    return {
        "sources": table.encoder.sources,
        "dates": table.encoder.dates,
        "attributes": table.by_attribute(),
        "suspicious": {column.name: column.flag for column in table.columns if column.flag},
    }


@formerly(row_budget="max_rows")
@takes_tables(_about)
@on_one_thread
def audit_labels(
    problem: SelectiveLabels,
    *,
    sources: Sequence[str] | None = None,
    dates: Collection[str] = (),
    suspicious: Mapping[str, str] | None = None,
    attributes: Mapping[str, SelectiveLabels] | None = None,
    least_difference: float = 0.01,
    precision: float = 0.03,
    bounds: float | None = None,
    threshold: float | None = None,
    learners: Learners = candidate_models,
    max_rows: int = FITTED_ROWS,
    random_state: Any = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> Audit:
    """Is this labelling biased, and what can be learnt from it?

    Parameters
    ----------
    problem
        The table: a frame (pandas, polars, Arrow, ...) or the path of a file, with its roles as
        keywords (`label="flu", group="race"`, the fields of `Roles`); what `read_table` returns; or
        `SelectiveLabels`. Without groups the audit is one of overlap, prevalence and sensitivity.
        Groups are compared with everybody else, or with its `reference_group`. Where tests were
        drawn by a known design (`testing_probability`), estimates for everybody are those of the
        design, whatever the models say.
    sources
        The raw column of each feature, where several features come from one column.
    dates
        The raw columns whose numbers are days since 1 January 1970 (`Encoder.dates`): their values
        are written as dates.
    suspicious
        Raw columns that may have been recorded after the decision to test, and why.
    attributes
        The same table with each sensitive attribute by itself as the group, where the groups of
        `problem` are several attributes crossed (`UserTable.by_attribute`): who is tested at equal
        features is reported for each attribute too.
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
    max_rows
        Rows a nuisance model is fitted to, at most; all rows are predicted.
    random_state
        Seed or generator of folds, subsamples and shuffles.
    progress
        Called with a few words before each step (`audit_steps` lists them).
    """
    require_share("precision", precision, 0.03)
    require_share("least_difference", least_difference, 0.01, ends=True)
    if threshold is not None:
        require_share("threshold", threshold, 0.2)
    if bounds is not None:
        check_strength(bounds)
    require_record(problem)
    counted = rows_that_count(problem)
    if counted is not None:
        problem = problem.subset(counted)
        attributes = {name: alone.subset(counted) for name, alone in (attributes or {}).items()}
    rng = np.random.default_rng(random_state)
    sources = list(problem.feature_names if sources is None else sources)
    tested = problem.tested
    varies, enough = problem.extent == "some", enough_results(problem)
    n_folds = usual_folds(problem)
    fold = person_folds(problem, n_folds, rng)

    models: dict[str, Any] = {"learners": learners, "max_rows": max_rows}

    def fit(problem: SelectiveLabels, *, about: str = "", **which: bool) -> Nuisances:
        said = (lambda text: progress(f"{about}: {text}")) if about else progress
        which = {"groups": True} | which
        return fit_nuisances(problem, fold, rng, progress=said, **which, **models)

    grouped = len(problem.by_group()) > 1
    nuisances = fit(problem, groups=grouped)
    evaluator = Evaluator(problem, fold=fold, nuisances=nuisances)
    people = evaluator.people
    counts, total = count_groups(problem, people)
    progress("estimating")
    overlap = evaluator.reach.overlap if varies else {}
    # What is scored and drawn is the risk that the features show; the group may differ in it.
    risk = nuisances.outcome_alone
    if risk is None:
        risk = true_risk(problem, nuisances.outcome)
    rates = testing_rates(problem, people, nuisances if varies else None, sources)
    prevalence = tightened(evaluator, prevalences(evaluator))
    shared = any(rate.difference.estimable for rate in rates)
    left = models_leave(evaluator, enough, rng, shared=shared) if varies else {}
    by_attribute = {
        name: testing_rates(
            alone, People.of(alone), fit(alone, outcomes=False, about=name), sources
        )
        for name, alone in (attributes or {}).items()
        if varies
    }
    asked = len(by_attribute)  # of several attributes some seem to differ by chance
    by_attribute = {
        name: tuple(replace(rate, p_value=min(1.0, asked * rate.p_value)) for rate in found)
        for name, found in by_attribute.items()
    }
    told_over_time = over_time(problem, people, fit) if problem.time is not None else None
    deciders = None
    if problem.decider is not None and varies and enough:
        deciders = audit_deciders(evaluator, risk, sources, rng, progress=progress, **models)
    progress("finding what drives testing")
    ask = partial(find_drivers, problem, people, sources, rng, dates=dates)
    drivers = ask(nuisances.testing_model, tested, np.ones(len(problem), bool))
    progress("trying unmeasured causes")
    of_testing = of_prevalence = of_performance = None
    if nuisances.membership is not None and varies:
        of_testing = testing_sensitivity(problem, people, rates, nuisances, sources, rng)
    unseen = evaluator.unseen_alike if varies and enough else None
    if unseen is not None:
        of_prevalence = prevalence_sensitivity(evaluator, prevalence)
        scored = "the model of what a test would show"
        of_performance = performance_sensitivity(evaluator, risk, scored)
    limits, no_limits = find_bounds(evaluator, sources, bounds, threshold)
    outcome_drivers = ask(nuisances.outcome_model if enough else None, problem.y_imputed, tested)
    cross_fitted = (
        f"cross-fitted on {n_folds} parts of the people, each fitted to at most {max_rows:,} "
        "rows; every row predicted by a model that has not seen its person"
    )
    by_risk = rates_by_score(problem, people, risk, 10) if varies and enough else {}
    said_to_drive = zip(problem.feature_names, sources, strict=True)
    return with_conclusions(
        Audit(
            extent=problem.extent,
            tested_stated=problem.tested_stated,
            counts=counts,
            total=total,
            testing=rates,
            risk_curves=tuple(RiskCurve(name, *points) for name, points in by_risk.items()),
            drivers=drivers,
            bin_edges=BIN_EDGES,
            overlap=overlap,
            calibration=calibrate(problem, people, nuisances.testing) if varies else None,
            yields=yields(problem, people, nuisances.testing if varies else None),
            prevalence=prevalence,
            independence=check_independence(problem, people, nuisances, sources)
            if grouped
            else None,
            testing_sensitivity=of_testing,
            prevalence_sensitivity=of_prevalence,
            performance_sensitivity=of_performance,
            learners=nuisances.chosen,
            configuration=configuration(
                problem,
                people,
                {"models": cross_fitted},
                f"{FEWEST_PEOPLE} people for model-based numbers",
                random_state,
            ),
            least_difference=least_difference  # a tenth of a rate that is withheld would tell it
            if total.few & {"tested", "untested"}
            else min(least_difference, 0.1 * float(tested.mean())),
            outcome_drivers=outcome_drivers,
            left_over=left,
            missing=missing_by_testing(problem, people, sources) if varies else {},
            needed=tests_needed(problem, prevalence, precision),
            hidden_gap=hidden_gap(evaluator, prevalence),
            by_attribute=by_attribute,
            suspicious=dict(suspicious or {}),
            reference=problem.reference_group or "",
            test_errors=test_errors(evaluator, risk),
            preference=preference(evaluator) if varies and enough else None,
            testing_only=tuple(
                dict.fromkeys(of for name, of in said_to_drive if name in problem.testing_only)
            ),
            over_time=told_over_time,
            known=known_rates(evaluator, unseen),
            bounds=limits,
            bounds_lacking=no_limits,
            deciders=deciders,
            hidden_cause=hidden_cause.of_prevalence(evaluator, sources),
            hidden_cause_of_auc=hidden_cause.of_auc(evaluator, risk, sources),
        )
    )


def audit_steps(
    problem: SelectiveLabels,
    attributes: Mapping[str, SelectiveLabels] | None = None,
    sources: Sequence[str] | None = None,
) -> dict[str, float]:
    """What `audit_labels` will tell its `progress`, in order, and the seconds of each step.

    Those of one core of the machine on which they were measured, for tables of several shapes.
    """
    folds, rate, (rows, width) = usual_folds(problem), problem.tested.mean(), problem.X.shape
    learnt = min(rows, FITTED_ROWS, FITTED_CELLS // max(width, 1))
    policy = 0.05 + 7e-7 * learnt * (width + problem.n_groups)  # a fold of who is tested
    asked = min(rows, HELD_OUT_ROWS) * len(set(sources or problem.feature_names))

    def compared(of: SelectiveLabels, **between: float) -> dict[str, float]:
        n_groups = learnt_groups(of)[1]
        group = {"the group": (0.4 + 0.5 * n_groups) * policy} if n_groups > 1 else {}
        steps = model_steps(folds, {"who is tested": policy} | between | group)
        steps[[*steps][-1]] += 1.6e-7 * rows * width * n_groups  # everybody, as if of each group
        return steps

    found = compared(problem, **{"what a test would show": (0.2 + 0.5 * rate) * policy})
    found["estimating"] = 0.2 + 0.1 * folds * policy
    others = {**(attributes or {})} | dict.fromkeys(
        [] if problem.time is None else [PERIOD, EARLIER], problem
    )
    for name, one in others.items():
        found |= {f"{name}: {step}": cost for step, cost in compared(one).items()}
    found |= model_steps(folds, {name: x * policy for name, x in decider_steps(problem).items()})
    found["finding what drives testing"] = 1e-5 * asked
    found["trying unmeasured causes"] = 0.5 + 0.5 * folds * policy + 5e-6 * asked
    return found


def model_steps(folds: int, parts: Mapping[str, float]) -> dict[str, float]:
    """What is said of models of these, and what each fold of them costs."""
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

    def of(name: str, mine: np.ndarray) -> GroupCounts:
        return GroupCounts(
            name,
            int(mine.sum()),
            people.count(mine),
            int(problem.tested[mine].sum()),
            int((problem.y_obs[mine] == 1).sum()),
            few[-1 if name == EVERYBODY else problem.group_names.index(name)],
        )

    groups = tuple(of(name, mine) for name, mine in problem.by_group().items())
    return groups, of(EVERYBODY, np.ones(len(problem), bool))


def configuration(
    problem: SelectiveLabels,
    people: People,
    models: Mapping[str, str],
    smallest: str,
    random_state: Any,
) -> dict[str, str]:
    """How an audit was made, for its last page."""
    test = None if problem.positives_only else problem.imperfect_test
    return {
        "rows": f"{len(problem):,}",
        "people": f"{people.n_people:,}" + ("" if problem.id is not None else " (one per row)"),
        "features": f"{problem.X.shape[1]}",
        "weights": "as given" if problem.weight is not None else "all rows equal",
        **models,
        "intervals": "95 %, people as units",
        **({} if test is None else {"test": test.words}),
        **({"known": known_words(problem.known_prevalence)} if problem.known_prevalence else {}),
        "smallest group": smallest,
        "seed": str(random_state) if isinstance(random_state, int) else "a generator",
    }
