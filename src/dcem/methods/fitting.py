"""From problems to prepared rows: check, hold out, preprocess; and many problems at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from dcem.methods.registry import ENTRIES, entry_of
from dcem.methods.support import Support
from dcem.methods.training_table import TrainingTable, hold_out
from dcem.table import checks
from dcem.table.disclosure import few_people
from dcem.table.imperfect import TEST_ASSUMPTION
from dcem.table.known_rates import PREVALENCE_ASSUMPTION, known_words
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError, notice
from dcem.table.positives_only import recorded, require_problem

if TYPE_CHECKING:
    from dcem.methods.base import SelectiveClassifier


def fit_many(
    estimator: SelectiveClassifier,
    problems: Sequence[SelectiveLabels],
    *,
    validations: Sequence[SelectiveLabels | None] | None = None,
    truths: Sequence[Any] | None = None,
    random_states: Sequence[int] | None = None,
    max_fleet: int | None = None,
    checkpoint: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    copy: bool = True,
) -> list[Any]:
    """Fit one copy of `estimator` to each problem: networks together, others one after the other.

    Gives what fitting them one after the other would give. Networks train as one fleet, which is
    sooner done. Problems whose tables have a different number of columns or groups, or that the
    method takes at another pace, train in fleets of their own, and so does each problem that trains
    on minibatches; tables of different lengths share one. A fleet that does not fit into memory is
    split.

    Parameters
    ----------
    validations, truths, random_states
        One for each problem.
    max_fleet
        The most networks in a fleet.
    checkpoint
        A file to which dcem, sar-em and self write their state after each iteration or round, and
        from which the same fit (data, parameters, seeds) goes on. Other methods write none.
    progress
        Called with `(done, total)` as training goes on, in place of the display; what it raises
        ends the run (after which `checkpoint` holds the last whole iteration).
    """
    n = len(problems)
    states = random_states if random_states is not None else [estimator.random_state] * n
    copies = [clone(estimator) if copy else estimator for _ in range(n)]
    for one, state, problem in zip(copies, states, problems, strict=True):
        if copy:
            one.set_params(random_state=state)
        describe_features(one, problem)
    none: list[Any] = [None] * n
    estimator._fit_each(
        copies,
        problems,
        validations or none,
        truths or none,
        max_fleet=max_fleet,
        checkpoint=checkpoint,
        progress=progress,
    )
    return copies


def forget(one: Any) -> None:
    """Drop what an earlier fit left on an estimator."""
    for name in [name for name in vars(one) if name.endswith("_")]:
        delattr(one, name)


def describe_features(one: Any, problem: SelectiveLabels) -> None:
    """Set the attributes that say what an estimator is fitted to."""
    require_problem(problem)
    forget(one)
    one.classes_ = np.array([0, 1])
    one.n_features_in_ = problem.X.shape[1]
    if not _unnamed(problem):
        one.feature_names_in_ = np.array(problem.feature_names, dtype=object)
    one._fitted_to_frame = False


@dataclass(eq=False)
class Prepared:
    """One problem, checked, and split into rows to learn from and rows to watch.

    Attributes
    ----------
    estimator
        The method that is fitted; it has its preprocessor and the names of the groups.
    problem, truth
        The rows that count of what was given, and their truth where the method uses it.
    counted
        Positions of these rows in what was given.
    rows
        Positions in `problem` of the rows to learn from `[n]`.
    watched, watched_truth, watched_rows
        The problem that the rows to watch belong to (None: nothing is watched), their truth, and
        their positions in it (None: all).
    seeds
        One for each member.
    progress
        Told how much of how much is done, if anybody listens.
    """

    estimator: SelectiveClassifier
    problem: SelectiveLabels
    truth: np.ndarray | None
    counted: np.ndarray
    rows: np.ndarray
    watched: SelectiveLabels | None
    watched_truth: np.ndarray | None
    watched_rows: np.ndarray | None
    seeds: list[int]
    progress: Callable[[int, int], None] | None = None

    @property
    def n_groups(self) -> int:
        """Groups, empty ones included."""
        return self.problem.n_groups

    @cached_property
    def standard(self) -> TrainingTable:
        """The rows to learn from, as the preprocessor has them."""
        return self._train(self.estimator.preprocessor_)

    @cached_property
    def watched_standard(self) -> TrainingTable | None:
        """The rows to watch, likewise; None if there are none."""
        return self._watch(self.estimator.preprocessor_)

    def tables(self, *, raw: bool = False) -> tuple[TrainingTable, TrainingTable | None]:
        """Rows to learn from and to watch (or None); `raw` ones with missing values as they are."""
        return (self._train(), self._watch()) if raw else (self.standard, self.watched_standard)

    def _train(self, preprocessor: Any = None) -> TrainingTable:
        precision = self.estimator._precision
        return TrainingTable.of(self.problem, preprocessor, self.truth, precision, self.rows)

    def _watch(self, preprocessor: Any = None) -> TrainingTable | None:
        if self.watched is None:
            return None
        given = self.watched_truth, self.estimator._precision, self.watched_rows
        return TrainingTable.of(self.watched, preprocessor, *given)

    @cached_property
    def support(self) -> Support:
        """How far the rows to learn from reach."""
        table = self.standard
        people = table.person, table.weight
        return Support.fit(table.X, table.tested, table.group, self.n_groups, *people)

    def finish(self) -> None:
        """Fitted attributes that all methods have: which rows were learnt from, and their reach.

        Where a prevalence is known, the model is moved to it.
        """
        self.estimator.train_rows_ = self.counted[self.rows]
        self.estimator.support_ = self.support
        move_to_known(self.estimator, self.problem, self.seeds[0])


def move_to_known(estimator: Any, problem: SelectiveLabels, seed: int) -> None:
    """Move a fitted model to a known prevalence, where one says something of the untested."""
    if said_of_known(problem):
        from dcem.methods.known_rates import shift_to_known

        estimator.known_ = shift_to_known(estimator, problem, seed)


def prepare(
    estimator: Any,
    problem: SelectiveLabels,
    validation: SelectiveLabels | None,
    truth: Any,
) -> Prepared:
    """Check what is given, hold rows out where the method watches any, fit its preprocessor."""
    if problem.positives_only:
        if problem.imperfect_test is None:
            require_no_record(estimator.name)
        problem = recorded(problem)
        validation = None if validation is None else recorded(validation)
    if not problem.tested.any():  # `subset` makes such a part without a check
        checks.check_learnable(problem.y_obs, problem.tested, "y_obs", "tested")
    if validation is not None:
        validation = _aligned(validation, problem)
        if estimator.uses_validation and not estimator.uses_truth and not validation.tested.any():
            raise InputError(
                f"None of the {len(validation)} rows of `validation` is tested, so nothing there "
                "says when to stop. Give some tested rows, or leave out `validation`."
            )
    truth, watched_truth = _check_truth(estimator, problem, validation, truth)
    problem, truth, counted = that_count(problem, truth)
    if validation is not None:
        validation, watched_truth, _ = that_count(validation, watched_truth)
    seeds = member_seeds(estimator.random_state, getattr(estimator, "n_members", 1))
    rows, watched_rows = np.arange(len(problem)), None
    if validation is None and estimator.uses_validation:
        rows, watched_rows = hold_out(problem, estimator.validation_fraction, seeds[0])
        validation, watched_truth = problem, truth
    estimator.learnt_from_ = _learnt_from(estimator, problem)
    estimator.training_counts_ = problem.counts()
    estimator.training_few_ = few_people(problem)
    estimator.group_names_ = problem.group_names
    estimator.preprocessor_ = estimator._preprocessor(problem, rows)
    watched = validation, watched_truth, watched_rows
    return Prepared(estimator, problem, truth, counted, rows, *watched, seeds)


def that_count(
    problem: SelectiveLabels, truth: np.ndarray | None
) -> tuple[SelectiveLabels, np.ndarray | None, np.ndarray]:
    """A problem without its rows of weight 0, the truth of the others, and their positions.

    They must not be drawn into folds, scale features or count as support, either.
    """
    counted = np.flatnonzero(problem.weights > 0)
    if len(counted) == len(problem):
        return problem, truth, counted
    return problem.subset(counted), None if truth is None else truth[counted], counted


def require_no_record(name: str) -> None:
    """Refuse a method that needs to know who was tested, where the table does not say."""
    if entry_of(name).needs_record:
        usable = [one for one, entry in ENTRIES.items() if not entry.needs_record]
        raise InputError(
            f"{name!r} needs to know who was tested, but this table says only who was found "
            f"positive. Methods that work without a record of testing: {', '.join(usable)}. To use "
            "the others, state what share of positives is found (`test_sensitivity`)."
        )


def _learnt_from(estimator: Any, problem: SelectiveLabels) -> str:
    """What is said of an imperfect test and of known rates; nothing where none are stated."""
    said, test = [], problem.imperfect_test
    if test is not None and estimator.corrects_tests:
        said.append(f"The truth behind an imperfect test: {test.words}. {TEST_ASSUMPTION}")
    elif test is not None:
        said.append(f"The results of an imperfect test, as they are: {test.words}.")
        notice(
            f"{estimator.name!r} learns the test results as they are, not the truth behind them: "
            "it cannot correct for an imperfect test. `ensemble`, `dcem` and `tested-only` can."
        )
    return " ".join([*said, said_of_known(problem)]).strip()


def said_of_known(problem: SelectiveLabels) -> str:
    """To which known prevalence a model is moved; nothing where none is stated, or all tested."""
    if not problem.known_prevalence or problem.tested.all():
        return ""
    return f"Moved to a known {known_words(problem.known_prevalence)}. {PREVALENCE_ASSUMPTION}"


def _aligned(validation: SelectiveLabels, problem: SelectiveLabels) -> SelectiveLabels:
    """Validation rows whose features and group codes mean what those of the training rows mean."""
    require_same_features(validation, problem, "validation")
    if validation.group_names == problem.group_names:
        return validation
    if problem.n_groups == 1 and problem.group_names == ("all",):  # fitted without groups
        nobody = np.zeros(len(validation), np.int64)
        return replace(validation, group=nobody, group_names=problem.group_names)
    unknown = [name for name in validation.group_names if name not in problem.group_names]
    if unknown:
        raise InputError(
            f"validation holds groups that no training row belongs to: {', '.join(unknown)}. "
            f"Known: {', '.join(problem.group_names)}."
        )
    codes = np.array([problem.group_names.index(name) for name in validation.group_names])
    return replace(validation, group=codes[validation.group], group_names=problem.group_names)


def require_same_features(rows: SelectiveLabels, problem: SelectiveLabels, called: str) -> None:
    """Refuse other rows than a problem's, called by their argument, if features differ."""
    if not isinstance(rows, SelectiveLabels):
        raise InputError(
            f"{called} is a {type(rows).__name__}; it must be a SelectiveLabels, for "
            "example SelectiveLabels.from_arrays(X, y, tested=..., group=...)."
        )
    if rows.X.shape[1] != problem.X.shape[1]:
        raise InputError(
            f"{called} has {rows.X.shape[1]} features, but X has {problem.X.shape[1]}."
        )
    named = [part.feature_names for part in (rows, problem) if not _unnamed(part)]
    if len(set(named)) > 1:
        raise InputError(
            f"The features of {called} ({', '.join(named[0])}) are not those of the training "
            f"rows ({', '.join(named[1])}), in this order. Give both the same columns."
        )


def _unnamed(problem: SelectiveLabels) -> bool:
    """Whether the features came as an array, without names of their own."""
    return all(name == f"x{i}" for i, name in enumerate(problem.feature_names))


def _check_truth(
    estimator: SelectiveClassifier,
    problem: SelectiveLabels,
    validation: SelectiveLabels | None,
    truth: Any,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Truth goes only to those who declare that they use it; they insist on it."""
    if not estimator.uses_truth:
        if truth is not None:
            raise InputError(
                f"{type(estimator).__name__} does not use the truth of untested rows. Leave out "
                "`truth`."
            )
        return None, None
    if truth is None:
        name = type(estimator).__name__
        if getattr(estimator, "variant", None) == "published":
            raise InputError(
                f'{name}(variant="published") needs the truth of every row, `truth=`, which exists '
                'only in simulations. On real data use variant="corrected".'
            )
        raise InputError(
            f"{name} is an oracle: it needs the truth of every row, `truth=`, which exists only in "
            "simulations. On real data choose another method."
        )
    train, held = (
        None if values is None else checks.check_binary(values, "truth")
        for values in (truth if isinstance(truth, tuple) else (truth, None))
    )
    for values, rows, which in ((train, problem, "rows"), (held, validation, "validation rows")):
        if values is not None and rows is not None and len(values) != len(rows):
            raise InputError(f"truth has {len(values)} values for {len(rows)} {which}.")
    return train, held


def member_seeds(random_state: Any, n_members: int) -> list[int]:
    """Seeds of the members: the given integer itself for the first, others derived from it."""
    if not isinstance(n_members, Integral) or n_members < 1:
        raise InputError(f"n_members must be a whole number from 1 on; got {n_members!r}.")
    if random_state is None:
        first = int(np.random.default_rng().integers(2**31))
    elif isinstance(random_state, np.random.RandomState):
        first = int(random_state.randint(2**31))
    elif isinstance(random_state, np.random.Generator):
        first = int(random_state.integers(2**31))
    elif isinstance(random_state, Integral) and random_state >= 0:
        first = int(random_state)
    else:
        raise InputError(
            "random_state must be a whole number from 0 on, a NumPy generator or None; got "
            f"{random_state!r}."
        )
    others = np.random.SeedSequence(first).generate_state(n_members)
    return [first, *(int(seed) for seed in others[1:])]
