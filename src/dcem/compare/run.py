"""Methods compared on a table, whether or not anybody knows its truth.

Every method is fitted to all folds but one and scores the people of the one left out, until
everybody has a score from models that did not see them; a person's rows stay in one fold. Or people
to judge by are given, and every method is fitted once. Or rows have a time: then a block of time is
scored by models of all that came before it, as in use, where people return and their earlier rows
may have been learnt from; nobody's later rows ever are. What is fitted is what `dcem fit` delivers:
the same number of fits, the same batches. The scores are judged by an `Evaluator` for each target,
and, since no estimate can say for certain who serves this table best, outcomes are planted in it as
well (`planted`).

Scores of different folds are ranked within their fold before they are pooled, so that the AUC, the
ROC gap and precision at capacity describe the models of the folds on average; calibration and net
benefit use the probabilities as they are.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from dcem.compare import caveats, findings, fitting
from dcem.compare.bounds import about_bounds, compare_bounds
from dcem.compare.credit import about_swaps, lent
from dcem.compare.deciders import about_deciders, judge_by_deciders
from dcem.compare.judge import Decision, Judge, testing_by_score
from dcem.compare.one_column import about_dominant
from dcem.compare.planted import planting
from dcem.compare.results import (
    ComparedGroup,
    MethodResult,
    TableComparison,
    withheld_groups,
    without_withheld,
)
from dcem.estimation import overlap
from dcem.estimation.bounds import check_strength
from dcem.estimation.cross_fitting import on_one_thread
from dcem.estimation.effects import Questions, effects_on_testing, most_telling
from dcem.estimation.evaluator import Evaluator
from dcem.estimation.folds import person_folds, rows_that_count, time_blocks, within_budget
from dcem.estimation.nuisances import fit_nuisances
from dcem.estimation.results import Effect
from dcem.extras import versions
from dcem.methods.fitting import require_same_features
from dcem.methods.registry import MEMBERS, entry_of
from dcem.ray_cluster import connection
from dcem.table import checks
from dcem.table.disclosure import few_people
from dcem.table.encoder import Encoder
from dcem.table.known_rates import known_words
from dcem.table.labels import SelectiveLabels
from dcem.table.load import UserTable
from dcem.table.messages import InputError, formerly, notice, readable, rows_text
from dcem.table.positives_only import require_record
from dcem.table.straight import takes_tables

MAX_ROWS = 10_000
FLOOR = 0.005  # differences in AUC that nobody would act on
DOING, JUDGING = "fitting methods", "judging"  # what is told of it


def _about(table: UserTable) -> dict[str, Any]:
    """Arguments of a comparison that follow from how its table was read."""
    return {
        "truth": table.truth,
        "encoder": table.encoder,
        "suspicious": {column.name: column.flag for column in table.columns if column.flag},
    }


@formerly(folds="n_folds", resamples="n_resamples", members="n_members")
@takes_tables(_about)
@on_one_thread
def compare_methods(
    problem: SelectiveLabels,
    methods: Sequence[str] | None = None,
    *,
    truth: Any = None,
    test: SelectiveLabels | None = None,
    validation: SelectiveLabels | None = None,
    n_folds: int = 5,
    max_rows: int | None = MAX_ROWS,
    planted: int = 3,
    n_resamples: int = 200,
    level: float = 0.95,
    floor: float = FLOOR,
    threshold: float | None = None,
    capacity: float = 0.1,
    bounds: float | None = None,
    n_members: int = MEMBERS,
    random_state: int = 0,
    params: Mapping[str, Any] | None = None,
    data: Mapping[str, str] | None = None,
    encoder: Encoder | None = None,
    suspicious: Mapping[str, str] | None = None,
    progress: fitting.Announce = lambda text: None,
    backend: str = "local",
    address: str | None = None,
    lending: bool = False,
) -> TableComparison:
    """Fit methods to a table and judge them on people they did not see, with or without the truth.

    Parameters
    ----------
    problem
        The table: a frame (pandas, polars, Arrow, ...) or the path of a file, with its roles as
        keywords (`label="flu", group="race"`, the fields of `Roles`); what `read_table` returns; or
        `SelectiveLabels`.
    methods
        Names from `dcem.methods.names()`; None is the default and its rivals. Gains are counted
        from the better of the simple rivals, `tested-only:boost` (boosted trees) and
        `tested-only:linear` (logistic regression); where neither is among them, from the first, but
        not from the network `tested-only`. Those that learn from the truth need `test` and `truth`.
    truth
        Everybody's true outcome [n], where it exists; of a frame or a file, the name of its column.
        It is used for judging alone: no method, and no other target, sees it. With `test`, a
        mapping with "test" and, for methods that learn from the truth, "train" and "validation".
    test, validation
        People to judge by, and to stop by, where the table was split beforehand. Without `test`
        everybody is judged, by cross-validation, or, where rows have a time, the later half of them
        by models of what came before.
    n_folds
        Of the cross-validation, at least 2.
    max_rows
        Rows to compare on, at most: of longer tables, whole people are drawn at random. None, or
        people to judge by, takes all rows.
    planted
        Repetitions of planted outcomes, at least 2; 0 leaves them out.
    n_resamples
        Behind the intervals of ROC gap and calibration error.
    level
        Of the intervals.
    floor
        Differences in AUC below it, between methods or groups, are not called differences.
    threshold, capacity
        Whom one acts on, for rates by group: people of at least that risk or, if no threshold is
        given, that share of people, the highest first.
    bounds
        A strength of what is unmeasured, an odds ratio from 1 to 10: for whom each method's
        decision then holds, between which limits its AUC and net benefit lie, and whether the best
        method still is (`dcem.estimation.bounds`).
    n_members
        Repeated fits of a method, as for `dcem fit`; their disagreement tells the luck of training.
        `ensemble` is fitted once.
    random_state
        Seed of rows, folds, models and resamples.
    params
        Parameters for every method besides what `dcem fit` takes.
    data
        What the report says about where the rows came from.
    encoder
        From raw columns to the features, so that what drives scores and testing is reported for raw
        columns (`UserTable.encoder`). Without it a feature is a column.
    suspicious
        Columns that may have been recorded after the decision to test, and the sign of it; the
        warnings name them.
    progress
        Called with a few words before each step (`dcem.compare.durations` lists them).
    backend, address
        "local" fits in processes of this machine, "ray" on the cluster at `address`, or on one
        started here. The results are the same.
    lending
        Whether what a lender asks is told, too: Gini, KS, the kickout metric, and the swap set of
        each method at the present share of people tested (docs/credit.md).
    """
    require_record(problem)
    if test is not None:
        require_same_features(test, problem, "test")
    given = truth if isinstance(truth, Mapping) else {} if truth is None else {"test": truth}
    tables: dict[str, Any] = {"train": problem, "validation": validation}
    tables["test"] = problem if test is None else test
    known = {which: known_truth(given.get(which), rows) for which, rows in tables.items()}
    for which, rows in tables.items():
        if rows is not None and (counted := rows_that_count(rows)) is not None:
            truth_of, tables[which] = known[which], rows.subset(counted)
            known[which] = None if truth_of is None else truth_of[counted]
    problem, validation = tables["train"], tables["validation"]
    test = None if test is None else tables["test"]
    oracles = test is not None and {"train", "validation"} <= given.keys()
    if validation is not None and test is None:
        raise InputError("`validation` was given without `test`. Give both, or neither.")
    if methods is None:
        methods = fitting.default_methods(problem.decider is not None)
    names = fitting.check_methods(methods, oracles=oracles)
    if not isinstance(planted, Integral) or planted < 0 or planted == 1:  # before all the fitting
        raise InputError(
            "`planted` must be 0, or a whole number from 2 on: one repetition gives no interval; "
            f"got {readable(planted)}."
        )
    if not (isinstance(n_resamples, Integral) and n_resamples >= 2):
        shown = readable(n_resamples)
        raise InputError(f"`n_resamples` must be a whole number from 2 on; got {shown}.")
    decision = Decision(threshold, None if threshold is not None else capacity)
    if bounds is not None:
        check_strength(bounds)
    begun = time.perf_counter()
    total = len(problem)
    max_rows = max_rows if test is None else None
    rows = within_budget(problem, max_rows, random_state)
    enough = _judgeable(problem, n_folds) if len(rows) < total else []
    problem = problem.subset(rows)
    checks.check_learnable(problem.y_obs, problem.tested, "label", "tested")
    if test is not None:
        split = _as_given(problem, test, validation, known, n_folds, random_state)
    else:
        truth = None if known["test"] is None else known["test"][rows]
        split = _crossed(problem, truth, n_folds, random_state)
    judged = split.judged
    questions = Questions.about(judged, encoder, random_state)
    parts = [
        replace(part, asked=questions.among(split.scored_in == k))
        for k, part in zip(np.unique(split.scored_in), split.parts, strict=True)
    ]
    usable = [name for name in names if not entry_of(name).needs_truth]
    with connection(backend, address) as ray:
        fits = fitting.fit_and_score(
            names, parts, random_state, params, n_members=n_members, ray=ray
        )
        evaluator = Evaluator(
            judged,
            truth=split.truth,
            fold=split.fold,
            nuisances=fit_nuisances(judged, split.fold, random_state, progress=progress),
            level=level,
            random_state=random_state,
        )
        answer = None
        if planted:  # their fits wait for those of the folds: no core is idle in between
            answer = planting(
                judged,
                evaluator.nuisances,
                usable,
                repetitions=planted,
                level=level,
                random_state=random_state,
                params=params,
                progress=progress,
                ray=ray,
            )
        of_parts = fitting.collected(fits, names, len(parts), DOING, progress)
        judging = fitting.step_names(JUDGING, len(names))
        progress(judging[0])
        largest = judged.group_names[int(np.bincount(judged.group).argmax())]
        judge = Judge(
            evaluator,
            {name: fitting.pooled_folds(of, split.scored_in) for name, of in of_parts.items()},
            problem.reference_group or largest,
            decision,
            n_resamples,
            random_state,
            None if encoder is None else encoder.sources,
        )
        effects = {
            name: questions.answer(
                fitting.joined_answers(of, parts), split.scored_in[questions.rows]
            )
            for name, of in of_parts.items()
        }
        testing_effects = effects_on_testing(questions, evaluator.nuisances.testing_model, judged)
        columns = most_telling(testing_effects, effects)
        counted = (judged, split.truth) if test is None else (problem, known["train"])
        groups = _counts(*counted)
        withheld = withheld_groups(groups)
        results: list[MethodResult] = []
        for step, name in zip(judging, names, strict=True):
            if results:
                progress(step)
            result = _result(name, judge, withheld)
            told = _of(effects[name], columns)
            results.append(replace(result, uses_truth=name not in usable, effects=told))
        if lending:
            results = lent(results, judge)
        standings = {
            target: standing
            for target, one in judge.ranks.items()
            if (standing := one.standing(usable, floor)) is not None
        }
        by_decider = judge_by_deciders(judge, standings)
        recovered = answer(judge.reference) if answer is not None else None
        dominant = about_dominant(problem, encoder)
    comparison = TableComparison(
        methods=tuple(results),
        reference=judge.reference,
        reference_group=judge.reference_group,
        standings=standings,
        decision=str(judge.decision),
        floor=floor,
        targets=evaluator.targets,
        groups=groups,
        overlap=evaluator.overlap.shareable(len(judged)),
        stated_rates="" if problem.imperfect_test is None else problem.imperfect_test.words,
        known_rates=known_words(problem.known_prevalence),
        probability=overlap.histogram(
            evaluator.nuisances.testing, judged, np.ones(len(judged), bool)
        ),
        nuisances=evaluator.nuisances.reports,
        planted=recovered,
        level=level,
        folds=split.folds,
        rows=total,
        rows_used=len(problem),
        people=len(np.unique(judged.person)),
        findings=(),
        warnings=(),
        deciders=by_decider,
        configuration={
            "methods": ", ".join(names),
            "judged by": split.words,
            "row budget": "none" if max_rows is None else f"{max_rows:,}",
            "planted outcomes": f"{planted} repetitions of each family" if planted else "none",
            "resamples": str(n_resamples),
            "level of intervals": f"{100 * level:g} %",
            "smallest difference in AUC called one": f"{floor:g}",
            "seed": str(random_state),
            "fits per method": ", ".join(f"{one.name} {one.members}" for one in results),
            "parameters": ", ".join(f"{k}={v}" for k, v in (params or {}).items())
            or "as fitted to a table",
            "seconds": f"{time.perf_counter() - begun:.0f}",
        },
        versions=versions(),
        data=dict(data or {}),
        testing_effects=_of(testing_effects, columns),
        bounds=compare_bounds(judge, usable, bounds) if bounds else None,
    )
    taken = findings.recommended(comparison) or results[names.index(judge.reference)]
    robust = {one.name: one.judgements["dr"].auc for one in results}
    robust = robust if evaluator.overlap.complete else {}  # bounds by decider are of everybody
    told_by_deciders, warned_by_deciders = about_deciders(by_decider, robust)
    return replace(
        comparison,
        findings=(
            *findings.conclusions(comparison),
            *(about_swaps(taken) if lending else ()),
            *(about_bounds(comparison.bounds, evaluator.lacking("dr")) if bounds else ()),
            *told_by_deciders,
        ),
        warnings=(
            *([] if dominant is None else [dominant]),
            *caveats.warn(comparison, suspicious or {}, enough, stated=problem.tested_stated),
            *([caveats.about_time(problem, split.block)] if split.block is not None else ()),
            *warned_by_deciders,
        ),
    )


def known_truth(truth: Any, problem: SelectiveLabels | None) -> np.ndarray | None:
    """Everybody's true outcome [n], 0 or 1; None where nobody knows it."""
    if truth is None or problem is None:
        return None
    found = checks.check_binary(truth, "truth").astype(np.int64)
    if len(found) != len(problem):
        raise InputError(f"truth has {len(found):,} values for {len(problem):,} rows.")
    off = problem.tested & (problem.y_obs != found)
    if problem.imperfect_test is None and off.any():
        notice(
            f"The truth differs from the test result in {rows_text(off)}. Check that the truth is "
            "in the order of the table; if tests err, state how often (`test_sensitivity`)."
        )
    return found


@dataclass(frozen=True, eq=False)
class _Split:
    """Who is judged, and by models of whom."""

    judged: SelectiveLabels
    truth: np.ndarray | None  # of the judged [n], where somebody knows it
    fold: np.ndarray  # of the judged [n], for models of who is tested and what tests show
    scored_in: np.ndarray  # the part whose models score a row of the judged [n]
    parts: Sequence[fitting.Part]
    words: str
    folds: int = 0
    block: np.ndarray | None = None  # of time, of each row of the table


def _crossed(
    problem: SelectiveLabels, truth: np.ndarray | None, n_folds: int, random_state: int
) -> _Split:
    """Everybody is judged, by models of the others; or the later half, by models of the past."""
    if problem.time is None:
        fold = person_folds(problem, n_folds, random_state)
        words = f"{n_folds} folds of whole people"
        return _Split(problem, truth, fold, fold, fitting.fold_parts(problem, fold), words, n_folds)
    block = time_blocks(problem, n_folds)
    later = block > 0
    judged = problem.subset(later)
    return _Split(
        judged,
        None if truth is None else truth[later],
        person_folds(judged, n_folds, random_state),
        block[later],
        fitting.later_parts(problem, block),
        f"{block.max()} blocks of time, each by models of all earlier rows",
        block=block,
    )


def _as_given(
    problem: SelectiveLabels,
    test: SelectiveLabels,
    validation: SelectiveLabels | None,
    known: Mapping[str, Any],
    n_folds: int,
    random_state: int,
) -> _Split:
    """Other people are judged, by models of all of the table."""
    truths = (known["train"], known["validation"])
    fold = person_folds(test, n_folds, random_state)
    parts = [fitting.Part(problem, test, validation, truths)]
    return _Split(test, known["test"], fold, np.zeros(len(test), np.int64), parts, "people given")


def _result(name: str, judge: Judge, withheld: Collection[str]) -> MethodResult:
    """What is reported of a method, without what would give away a count of these groups."""
    one, evaluator = judge.scored[name], judge.evaluator
    problem = evaluator.problem
    return MethodResult(
        name=name,
        what_it_does=fitting.what_it_does(name),
        in_short=fitting.in_short(name),
        judgements={
            target: without_withheld(judge(name, target), withheld) for target in evaluator.masses
        },
        testing_by_score={
            group: curve
            for group, curve in testing_by_score(evaluator, one.score).items()
            if group not in withheld
        },
        pseudo_labels=overlap.histogram(one.score, problem, ~problem.tested)
        if one.fills_in
        else None,
        history=one.history,
        seconds=one.seconds,
        members=len(one.members),
    )


def _of(effects: Sequence[Effect], columns: Sequence[str]) -> tuple[Effect, ...]:
    """The effects of these columns, in their order."""
    by_name = {one.column: one for one in effects}
    return tuple(by_name[column] for column in columns if column in by_name)


def _judgeable(problem: SelectiveLabels, n_folds: int) -> list[str]:
    """Groups of which the table, or its later half, has enough tests to be judged among them."""
    later = (
        np.ones(len(problem), bool) if problem.time is None else time_blocks(problem, n_folds) > 0
    )
    masks = problem.by_group()
    return [name for name, mine in masks.items() if not overlap.too_few(problem, mine & later)]


def _counts(problem: SelectiveLabels, truth: np.ndarray | None) -> tuple[ComparedGroup, ...]:
    counted, few = [], few_people(problem, truth)
    for code, name in enumerate(problem.group_names):
        here = problem.group == code
        if here.any():
            counted.append(
                ComparedGroup(
                    name=name,
                    people=int(here.sum()),
                    tested=int(problem.tested[here].sum()),
                    positives_seen=int(problem.y_imputed[here].sum()),
                    positives=None if truth is None else int(truth[here].sum()),
                    place=code,
                    few=few[code],
                    few_together=few[-1],
                )
            )
    return tuple(counted)
