"""Plain supervised learning: which rows and which labels it takes is all that tells methods apart.

All take cross-entropy as their loss. The learner is a network unless another is asked for; a method
says once, in its *lesson*, what either learns from. With `patience` a network is checked on
validation rows every ten steps and keeps its best weights; with `patience=None` it takes all steps
and keeps the last, as the published runs do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from dcem.learners import LEARNERS, Sample, make_learner
from dcem.methods.base import GroupPredictor, SelectiveClassifier
from dcem.methods.fitting import Prepared
from dcem.methods.network import NetworkClassifier
from dcem.methods.registry import SINGLE, SLOW, WIDE, renamed
from dcem.methods.support import with_group
from dcem.methods.training_table import TrainingTable, at_random
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import InputError, did_you_mean

if TYPE_CHECKING:
    from torch import Tensor

    from dcem.engine import Rows
    from dcem.engine.fit import Objective
    from dcem.engine.fleet import Architecture
    from dcem.methods.fleets import FleetData, Trained

Columns = dict[str, np.ndarray]


class Lesson(NamedTuple):
    """What a method has its learner learn, of rows in their roles.

    Arrays of one problem `[n]`, or tensors of a fleet `[M, n]`: written once for both.
    """

    target: Any
    keep: Any = None  # which rows; None is all of them
    factor: Any = None  # by how much a row counts besides its weight
    mean_one: bool = False  # whether factors are brought to mean 1 among the rows kept
    known: bool = False  # whether targets are the truth, though tests err


class SupervisedNetwork(NetworkClassifier):
    """Base of the methods that train one network once.

    Parameters
    ----------
    steps, learning_rate, weight_decay
        Of Adam.
    patience
        Checks (one every ten steps) without a lower validation loss before a network stops and
        gets its best weights back; None takes all steps and keeps the last weights.
    """

    steps: int = 1000
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    patience: int | None = 10

    as_published: ClassVar[Mapping[str, Any]] = {"sinusoid": SINGLE, "sepsis": WIDE | SLOW}

    @property
    def uses_validation(self) -> bool:  # type: ignore[override]
        """Only stopping looks at validation rows."""
        return self.patience is not None

    def _lesson(self, rows: Any, n_groups: int) -> Lesson:
        """Which rows, labels and factors, of columns by name: everybody, the untested negative."""
        return Lesson(rows["y"])

    def _rows(self, part: Rows, data: FleetData) -> Rows:
        """Features, `target` and `weight` of one split."""
        from dcem.methods.training_stage import rows_of

        return rows_of(part, self._lesson(part, data.n_groups))

    def _loss(self, logits: Tensor, rows: Rows) -> Tensor:
        """The loss of each network, `[M]`."""
        from dcem.methods.training_stage import factored_cross_entropy

        return factored_cross_entropy(logits, rows)

    def _objective(self, architecture: Architecture, data: FleetData) -> Objective:
        """From parameters and rows to the loss; overridden where rows pass the network in
        another way than once and as they are."""
        from dcem.engine import supervised

        return supervised(architecture, self._loss)

    def _train(self, data: FleetData) -> Trained:
        from dcem.methods.fleets import Trained
        from dcem.methods.training_stage import train_stage

        rows = self._rows(data.train, data)
        architecture = self._architecture(int(rows.X.shape[-1]))
        fleet, objective = data.fleet(architecture), self._objective(architecture, data)
        held = data.validation if self.uses_validation else None
        watched = None if held is None else self._rows(held, data)
        kept = train_stage(self, data, fleet, objective, rows, watched)
        return Trained(fleet, [{"n_iter_": steps} for steps in kept])


class LearnerClassifier(SupervisedNetwork):
    """Base of the methods whose idea is a choice of rows, labels and weights, for any learner.

    Parameters
    ----------
    learner
        "network"; one of `dcem.learners.LEARNERS`, which need no torch: "linear" (penalised
        logistic regression), "boost" (boosted trees, LightGBM), "forest" (extremely randomised
        trees), "smooth" (a line with bumps), "perceptron" (a small network in NumPy); or a
        scikit-learn classifier, which is cloned but not saved. The parameters of networks (`hidden`
        to `dtype`, `steps` to `patience`) have no effect on other learners. If `n_members` of
        another learner are asked for, they are fitted to randomly weighted rows, so that they
        disagree where the rows say little.
    """

    learner: Any = "network"

    needs_networks: ClassVar[bool] = False
    corrects_tests: ClassVar[bool] = True

    def _inputs(self, table: Any, n_groups: int) -> np.ndarray:
        """What a learner that is not a network reads of a table with features as they are."""
        return table.X

    @property
    def _base(self) -> type[SelectiveClassifier]:
        """How a learner of this kind is fitted: networks in a fleet, others one by one."""
        is_network = isinstance(self.learner, str) and self.learner == "network"
        return NetworkClassifier if is_network else SelectiveClassifier

    @property
    def uses_validation(self) -> bool:  # type: ignore[override]
        """Other learners choose their penalty or their number of trees on validation rows."""
        return self.patience is not None or self._base is SelectiveClassifier

    def _fit_each(self, *given: Any, **options: Any) -> None:
        self._base._fit_each(self, *given, **options)

    def _fit(self, data: Prepared) -> None:
        self.models_ = fit_members(self, data)

    def _preprocessor(self, problem: SelectiveLabels, rows: np.ndarray) -> Any:
        return self._base._preprocessor(self, problem, rows)

    def members(self, X: np.ndarray, rows: np.ndarray, *, exact: bool = True) -> np.ndarray:
        """Scores `[members, n]`, a model each."""
        base = SelectiveClassifier if hasattr(self, "models_") else NetworkClassifier
        return base.members(self, X, rows, exact=exact)


def require_code(method: str, asked_for: str, code: Any, n_groups: int) -> None:
    """Refuse what is not the place of a group among the names of the groups."""
    if not isinstance(code, int | np.integer) or not 0 <= code < n_groups:
        raise InputError(
            f"{method} was asked for {asked_for} {code!r}, but there are {n_groups} groups, "
            f"numbered 0 to {n_groups - 1} in the order of their names."
        )


def require_learner(method: Any, *, weights: bool = False) -> None:
    """Refuse a learner that is not there, or cannot count rows by the `weights` of a method."""
    learner, known = method.learner, ", ".join(LEARNERS)
    if isinstance(learner, str):
        if learner not in LEARNERS:
            hint = did_you_mean(learner, LEARNERS)
            raise InputError(f"{method.name} takes the learners {known}; got {learner!r}.{hint}")
    elif weights and not make_learner(learner, 0).weights_as:
        raise InputError(
            f"{method.name} counts rows by weights, and {type(learner).__name__} takes no "
            f"sample_weight. Choose {known}, or a classifier that does."
        )


def fit_members(method: LearnerClassifier, data: Prepared, *more: Columns | None) -> list[Any]:
    """One model per member, of the method's lesson; `more` as in `lessons`."""
    sample, held = lessons(method, data, *more)
    return [
        make_learner(method.learner, seed).fit(sample._replace(weight=counts), held)
        for seed, counts in at_random(sample.weight, sample.person, data.seeds)
    ]


def lessons(
    method: LearnerClassifier,
    data: Prepared,
    more: Columns | None = None,
    watched_more: Columns | None = None,
) -> tuple[Sample, Sample | None]:
    """What a learner that is not a network learns from, and what it chooses by.

    `more` and `watched_more` are columns that the lesson needs besides those of the tables.
    """

    def taught(table: TrainingTable, more: Columns | None) -> Sample:
        lesson = method._lesson(table.columns() | (more or {}), data.n_groups)
        weight = table.weight if lesson.factor is None else table.weight * lesson.factor
        rates, X = None if lesson.known else table.rates, method._inputs(table, data.n_groups)
        sample = Sample(X, lesson.target, weight, table.person, rates)
        return sample if lesson.keep is None else sample.take(np.asarray(lesson.keep) > 0)

    train, watched = data.tables(raw=True)
    held = None if watched is None else taught(watched, watched_more)
    if held is not None and not (held.weight > 0).any():
        held = None
    return taught(train, more), held


class ObservedLabelsClassifier(LearnerClassifier):
    """Count the untested as negative, and train on everybody.

    *Idea.* This is what most tables do by default: a label that nobody collected is recorded as
    zero.

    *Assumption.* Whoever was not tested would have tested negative.

    *When it fails.* Under disparate censorship it learns P(positive and tested). It ranks people by
    their risk *and* by how likely they are to be tested, so the model reproduces the testing
    policy.

    References
    ----------
    T. Chang, M. Sjoding and J. Wiens, "Disparate Censorship & Undertesting: A Source of Label Bias
    in Clinical Machine Learning", MLHC 2022, on what this does; T. Chang and J. Wiens, ICML 2024,
    as for `dcem` (the baseline).
    """

    name: ClassVar[str] = "y-obs"
    in_short: ClassVar[str] = "counts the untested as negative"
    row_by_row: ClassVar[bool] = True
    batches_together: ClassVar[bool] = True


class OracleClassifier(LearnerClassifier):
    """Train on the truth of everybody, tested or not.

    *Idea.* The upper limit: what the same network would learn if everybody were tested.

    *Assumption.* The true outcome of untested people is known. Outside simulations it never is, so
    this method takes `truth=`, which real data do not have.

    *When it fails.* It cannot be used on real tables, which lack the truth. And it is a ceiling for
    *this* network and these rows, not for the problem: another network may do better, and on few
    rows it is as noisy as any other fit.

    References
    ----------
    T. Chang and J. Wiens, ICML 2024, as for `dcem` (the oracle of its figures).
    """

    name: ClassVar[str] = "y-model"
    in_short: ClassVar[str] = "learns from the truth"
    uses_truth: ClassVar[bool] = True

    def _lesson(self, rows: Any, n_groups: int) -> Lesson:
        truth = rows.get("truth")
        if truth is None:
            raise InputError(
                "y-model stops by the truth of validation rows: pass truth=(train, validation), "
                "or patience=None."
            )
        return Lesson(truth, known=True)


class GroupOnlyClassifier(LearnerClassifier):
    """Count the untested as negative, train on one group, and apply to everybody.

    *Idea.* If one group is tested thoroughly, its observed labels are nearly complete.

    *Assumption.* That group's untested are negative, and the outcome depends on the features alone.

    *When it fails.* When no group is tested thoroughly, or the groups' features hardly overlap.

    Parameters
    ----------
    group
        Code of the group to learn from: its place in `group_names_` (levels in sorted order).

    References
    ----------
    T. Chang and J. Wiens, ICML 2024, as for `dcem` (a baseline of its figures).
    """

    group: int = 0

    name: ClassVar[str] = "group-only"
    in_short: ClassVar[str] = "counts the untested as negative, in one group"

    def _lesson(self, rows: Any, n_groups: int) -> Lesson:
        require_code("group-only", "group", self.group, n_groups)
        member = rows["group"] == self.group
        if not ((member * rows["weight"]).sum(-1) > 0).all():
            raise InputError(f"Nobody belongs to group {self.group}; choose another group.")
        if not ((member * rows["weight"] * rows["tested"]).sum(-1) > 0).all():
            raise InputError(
                f"Nobody in group {self.group} was tested, so it has no labels to learn from; "
                "choose another group, or a method that learns from all of them."
            )
        return Lesson(rows["y"], keep=member)


class TestedOnlyClassifier(LearnerClassifier):
    """Train on tested people only, and apply to everybody.

    *Idea.* Among the tested the labels are the truth.

    *Assumption.* What holds for the tested at given features holds for the untested too. That is
    right if features explain who is tested; but a network has to extrapolate to features at which
    hardly anybody was tested.

    *When it fails.* Where testing follows sharp rules, so that whole regions are never tested;
    where an unrecorded cause affects both testing and outcome.

    References
    ----------
    T. Chang and J. Wiens, ICML 2024, as for `dcem` (its strongest baseline); on the problem that
    it addresses: H. Lakkaraju et al., "The Selective Labels Problem: Evaluating Algorithmic
    Predictions in the Presence of Unobservables", KDD 2017.
    """

    name: ClassVar[str] = "tested-only"
    in_short: ClassVar[str] = "learns from the tested alone"
    row_by_row: ClassVar[bool] = True
    __test__: ClassVar[bool] = False  # not a test class, whatever its name suggests to pytest

    def _lesson(self, rows: Any, n_groups: int) -> Lesson:
        return Lesson(rows["y"], keep=rows["tested"])


class TestedOnlyPlusGroupClassifier(GroupPredictor, TestedOnlyClassifier):
    """Tested-only with the group as an additional input.

    *Idea.* Let the model learn each group's own relation between features and outcome.

    *Assumption.* That of tested-only. In addition, using the group for prediction must be
    acceptable where the model is used.

    *When it fails.* The group is a proxy for the testing policy: the model can learn who is tested
    rather than who is ill. Prediction needs `sensitive_features`. The paper's class was never
    released; this one appends group indicators `[x, a]`.

    References
    ----------
    T. Chang and J. Wiens, ICML 2024, as for `dcem` (appendix, among the causal estimators).
    """

    name: ClassVar[str] = "tested-only-plus-group"
    in_short: ClassVar[str] = "learns from the tested alone, with the group as input"
    needs_group: ClassVar[bool] = True

    def _rows(self, part: Rows, data: FleetData) -> Rows:
        from dcem.engine import Rows

        inputs = with_group(part.X, part["group"], data.n_groups, interactions=False)
        return super()._rows(Rows(inputs, part.columns), data)

    def group_scores(self, X: np.ndarray, rows: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Scores `[members, n]`, as `members`, given the group of each row."""
        n_groups = len(self.group_names_)
        return self.members(
            *(with_group(part, codes, n_groups, interactions=False) for part in (X, rows))
        )

    def _inputs(self, table: Any, n_groups: int) -> np.ndarray:
        return with_group(table.X, table.group, n_groups, interactions=False)


__getattr__ = renamed(__name__)
