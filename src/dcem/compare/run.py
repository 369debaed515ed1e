"""Methods compared on a user's own table, whose truth nobody knows.

Every method is fitted to all folds but one and scores the people of the one left out, until
everybody has a score from models that did not see them; a person's rows stay in one fold. The
scores are judged by an `Evaluator` for each target, and, since no estimate can say for certain who
serves this table best, outcomes are planted in it as well (`planted`).

Scores of different folds are ranked within their fold before they are pooled, so that the AUC, the
ROC gap and precision at capacity describe the models of the folds on average; calibration and net
benefit use the probabilities as they are.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from dcem.compare import findings as sentences
from dcem.compare.fitting import (
    DEFAULT_METHODS,
    OutOfFold,
    Progress,
    check_methods,
    describe,
    out_of_fold,
)
from dcem.compare.judge import Scored, judge, testing_by_score
from dcem.compare.planted import plant
from dcem.compare.results import GroupCounts, MethodResult, TableComparison
from dcem.estimation import overlap
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.folds import percentiles, person_folds
from dcem.table import checks
from dcem.table.labels import SelectiveLabels

MAX_ROWS = 20_000
BATCH = 2_048  # rows a step: on a table of this length as good as all of them, and much sooner


def compare_table(
    problem: SelectiveLabels,
    methods: Sequence[str] = DEFAULT_METHODS,
    *,
    truth: np.ndarray | None = None,
    folds: int = 5,
    max_rows: int | None = MAX_ROWS,
    planted: int = 4,
    resamples: int = 200,
    level: float = 0.95,
    random_state: int = 0,
    params: Mapping[str, Any] | None = None,
    data: Mapping[str, str] | None = None,
    suspicious: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> TableComparison:
    """Fit methods to a table, fold by fold, and judge them without (or with) the truth.

    Args:
        problem: the table.
        methods: names from `dcem.methods.names(usable=True)`; the first is what others are
            compared with.
        truth: everybody's true outcome [n], where it exists. It is used for judging alone: no
            method, and no other target, sees it.
        folds: of the cross-validation, at least 2.
        max_rows: the row budget; of longer tables, whole people are drawn at random up to it. None
            takes all rows.
        planted: repetitions of planted outcomes; 0 leaves them out.
        resamples: behind the intervals of ROC gap and calibration error.
        level: of the intervals.
        random_state: seed of rows, folds, networks and resamples.
        params: parameters for every method besides their defaults, such as `{"batch_size": None}`
            (all rows a step; otherwise batches of 2,048).
        data: what the report says about where the rows came from.
        suspicious: columns that may have been recorded after the decision to test, and the sign of
            it; the warnings name them.
        progress: told in words what is being done.
    """
    names = check_methods(methods)
    if planted == 1:  # `plant` would refuse it too, but after all the fitting
        raise checks.InputError("One repetition of planted outcomes leaves no interval: give 2.")
    say = progress or (lambda _: None)
    begun = time.perf_counter()
    total = len(problem)
    rows = within_budget(problem, max_rows, random_state)
    problem = problem.subset(rows)
    checks.check_learnable(problem.y_obs, problem.tested, "label", "tested")
    truth = None if truth is None else np.asarray(truth)[rows]
    fold = person_folds(problem, folds, random_state)

    say("who is tested, and what tests show: two models, cross-fitted")
    evaluator = Evaluator(problem, truth=truth, fold=fold, level=level, random_state=random_state)
    results: list[MethodResult] = []
    first: Scored | None = None
    for name in names:
        say(f"fitting {name}, {folds} folds at once")
        found = out_of_fold(
            name, problem, fold, random_state, {"batch_size": BATCH, **(params or {})}
        )
        say(f"judging {name}")
        scored = Scored(found.score, percentiles(found.score, fold))
        results.append(_judged(name, found, scored, first, evaluator, resamples, random_state))
        first = first or scored
    answer = None
    if planted:
        answer = plant(
            problem,
            evaluator.nuisances,
            names,
            repetitions=planted,
            level=level,
            random_state=random_state,
            params=params,
            progress=progress,
        )
    groups = _counts(problem, truth)
    return TableComparison(
        methods=tuple(results),
        targets=evaluator.targets,
        groups=groups,
        overlap=evaluator.overlap,
        probability=overlap.histogram(
            evaluator.nuisances.testing, problem, np.ones(len(problem), bool)
        ),
        nuisances=evaluator.nuisances.reports,
        planted=answer,
        level=level,
        folds=folds,
        rows=total,
        rows_used=len(problem),
        people=len(np.unique(problem.person)),
        resamples=resamples,
        sentences=sentences.conclude(results, evaluator.targets, groups),
        warnings=sentences.warn(
            evaluator.overlap,
            evaluator.nuisances.reports,
            results,
            evaluator.targets,
            groups,
            total,
            len(problem),
            suspicious or {},
        ),
        configuration={
            "methods": ", ".join(names),
            "folds": f"{folds}, whole people",
            "row budget": "none" if max_rows is None else f"{max_rows:,}",
            "planted outcomes": f"{planted} repetitions of each family" if planted else "none",
            "resamples": str(resamples),
            "level of intervals": f"{100 * level:g} %",
            "seed": str(random_state),
            "rows a step": str({"batch_size": BATCH, **(params or {})}["batch_size"]),
            "other parameters": ", ".join(f"{k}={v}" for k, v in (params or {}).items()) or "none",
            "seconds": f"{time.perf_counter() - begun:.0f}",
        },
        versions=versions(),
        data=dict(data or {}),
    )


def within_budget(problem: SelectiveLabels, max_rows: int | None, random_state: int) -> np.ndarray:
    """Positions of at most `max_rows` rows, whole people drawn at random, in the table's order."""
    if max_rows is None or len(problem) <= max_rows:
        return np.arange(len(problem))
    if max_rows < 100:
        raise checks.InputError(f"A budget of {max_rows} rows is too small: give 100 or more.")
    person = problem.person
    sizes = np.bincount(person)
    order = np.random.default_rng(random_state).permutation(len(sizes))
    taken = np.zeros(len(sizes), bool)
    taken[order[np.cumsum(sizes[order]) <= max_rows]] = True
    return np.flatnonzero(taken[person])


def _judged(
    name: str,
    found: OutOfFold,
    scored: Scored,
    first: Scored | None,
    evaluator: Evaluator,
    resamples: int,
    random_state: int,
) -> MethodResult:
    problem = evaluator.problem
    return MethodResult(
        name=name,
        what_it_does=describe(name),
        judgements={
            target: judge(
                evaluator, target, scored, first, n_resamples=resamples, random_state=random_state
            )
            for target in evaluator.masses
        },
        testing_by_score=testing_by_score(evaluator, found.score),
        pseudo_labels=overlap.histogram(found.score, problem, ~problem.tested)
        if found.fills_in
        else None,
        history=found.history,
        seconds=found.seconds,
    )


def _counts(problem: SelectiveLabels, truth: np.ndarray | None) -> tuple[GroupCounts, ...]:
    counted = []
    for code, name in enumerate(problem.group_names):
        here = problem.group == code
        if here.any():
            counted.append(
                GroupCounts(
                    name=name,
                    people=int(here.sum()),
                    tested=int(problem.tested[here].sum()),
                    positives_seen=int(problem.y_imputed[here].sum()),
                    positives=None if truth is None else int(truth[here].sum()),
                )
            )
    return tuple(counted)


def versions() -> dict[str, str]:
    """Versions of what computes the numbers."""
    packages = ("dcem", "numpy", "scipy", "scikit-learn", "torch")
    return {"Python": platform.python_version(), **{name: version(name) for name in packages}}
