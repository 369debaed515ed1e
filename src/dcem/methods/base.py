"""What every method has in common: the contract with scikit-learn, and the way into a fleet.

A method is an ordinary classifier whose `fit` takes, besides features and labels, who was tested
and to which group a row belongs. Underneath it implements one function, `_train`, for M problems at
once; fitting one model is the case M = 1. `fit_many` hands it many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from dcem import checks
from dcem.engine import MLP, Fleet, FromModule, Rows, in_chunks, resolve_device
from dcem.engine.fit import Progress
from dcem.engine.fleet import Architecture
from dcem.methods.preprocess import Preprocessor
from dcem.methods.support import Support
from dcem.methods.tables import Table, hold_out, stack
from dcem.problem import SelectiveLabels

# Tables longer than this are trained on minibatches of BATCH rows unless batch_size says otherwise.
FULL_BATCH_LIMIT = 50_000
BATCH = 16_384


@dataclass
class FleetData:
    """Everything `_train` gets: the rows of M networks, their seeds, and where they live."""

    train: Rows  # columns y, tested, group, weight and, for oracles, truth
    validation: Rows | None
    seeds: list[int]  # [M], one a network
    n_groups: int
    device: torch.device
    batch_size: int | None
    progress: Progress | None = None
    checkpoint: Path | None = None

    @property
    def n_inputs(self) -> int:
        """Columns of `X`."""
        return int(self.train.X.shape[-1])


@dataclass
class Trained:
    """What `_train` returns: the networks, and fitted attributes of each (name -> value)."""

    fleet: Fleet
    attributes: list[dict[str, Any]] = field(default_factory=list)


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkClassifier(ClassifierMixin, BaseEstimator):
    """Base of all methods: a multilayer perceptron fitted to selectively labelled rows.

    Parameters
    ----------
    hidden
        Widths of the hidden layers.
    network
        A function from the number of inputs to a `torch.nn.Module`, in place of `hidden`.
    preprocess
        "standard" (missing values to the median plus an indicator, then mean 0 and sd 1, fitted on
        training rows) or None for numbers as they are.
    validation_fraction
        Share of the rows held out where a validation set is needed and none is given.
    n_members
        Networks in the ensemble; probabilities are averaged.
    batch_size
        Rows a step; "auto" is all of them up to 50,000 and 16,384 beyond; None is always all.
    random_state
        Seed of initial weights, batches and held-out rows.
    device
        "auto", "cpu" or "cuda".
    verbose
        1 shows progress.
    """

    hidden: tuple[int, ...] = (64, 64)
    network: Callable[[int], nn.Module] | None = None
    preprocess: str | None = "standard"
    validation_fraction: float = 0.2
    n_members: int = 1
    batch_size: int | str | None = "auto"
    random_state: Any = None
    device: str = "auto"
    verbose: int = 0

    name: ClassVar[str]
    needs_group: ClassVar[bool] = False  # does prediction need `sensitive_features`?
    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "tested": True,
        "sensitive_features": True,
    }

    @property
    def uses_truth(self) -> bool:
        """Whether fitting needs the truth of every row, which no user has (oracles only)."""
        return False

    @property
    def uses_validation(self) -> bool:
        """Whether fitting looks at validation rows; if not, none are held out."""
        return True

    # -- fitting ----------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        tested: Any = None,
        sensitive_features: Any = None,
        validation: SelectiveLabels | None = None,
        truth: Any = None,
    ) -> Self:
        """Fit to rows some of which were tested.

        Parameters
        ----------
        X
            Features `[n, d]`; missing values allowed.
        y
            Labels: two classes, or missing (NaN) where nobody tested.
        tested
            Whether each row was tested; may be left out where `y` is missing for the untested.
        sensitive_features
            The group of each row (any number of levels; several columns are crossed).
        validation
            Rows to decide on stopping; without it a share of the rows is held out.
        truth
            The truth of every row `[n]`, or `(train, validation)`; only for methods that use it.
        """
        y, classes = checks.encode_classes(y)
        problem = checks.check_fit_input(X, y, tested, sensitive_features)
        self.classes_ = classes
        validate_data(self, X, skip_check_array=True)  # feature names and their number
        _fit_fleet([self], [problem], [validation], [truth])
        return self

    def fit_problem(
        self,
        problem: SelectiveLabels,
        *,
        validation: SelectiveLabels | None = None,
        truth: Any = None,
    ) -> Self:
        """Fit to a `SelectiveLabels`, weights and persons included."""
        fit_many(self, [problem], validations=[validation], truths=[truth], copy=False)
        return self

    def _train(self, data: FleetData) -> Trained:
        """Train one network for each seed in `data`; every method writes its own."""
        raise NotImplementedError

    def _architecture(self, n_inputs: int, hidden: tuple[int, ...] | None = None) -> Architecture:
        if hidden is None and self.network is not None:
            return FromModule(self.network, n_inputs)
        return MLP(n_inputs, tuple(hidden or self.hidden))

    # -- predicting -------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities `[n, 2]` of the two classes, averaged over the members."""
        members = self._member_scores(X)  # [members, n]
        positive = members.mean(axis=0)
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The more probable class of each row."""
        check_is_fitted(self)
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]

    def spread(self, X: Any) -> np.ndarray:
        """Standard deviation of the members' scores `[n]`; zero for a single network.

        Disagreement is no measure of support: networks can agree where there is no data.
        """
        return self._member_scores(X).std(axis=0)

    def support(self, X: Any) -> Any:
        """How far each row lies from what was ever tested: a frame with `distance`,
        `testing_probability` and `supported`; see `dcem.methods.support`."""
        rows = self._prepare(X)
        propensity = getattr(self, "propensity_model_", None)
        return self.support_.of(rows, propensity[0] if isinstance(propensity, list) else propensity)

    def _member_scores(self, X: Any) -> np.ndarray:
        rows = self._prepare(X)
        return self.fleet_.predict(torch.from_numpy(rows)).double().cpu().numpy()

    def _prepare(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(
            self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan", order="C"
        )
        return self.preprocessor_.transform(X)

    def _group_codes(self, sensitive_features: Any, n_rows: int) -> np.ndarray:
        """Codes of the groups seen in fitting, for the methods that predict with them."""
        if len(self.group_names_) == 1:
            return np.zeros(n_rows, dtype=np.int64)
        if sensitive_features is None:
            raise checks.InputError(
                f"{type(self).__name__} predicts with the group of each row: pass "
                "sensitive_features. A method that needs the features alone is dcem."
            )
        codes, _ = checks.check_groups(
            sensitive_features, "sensitive_features", levels=self.group_names_
        )
        if len(codes) != n_rows:
            raise checks.InputError(
                f"sensitive_features has {len(codes)} rows, but X has {n_rows}."
            )
        return codes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = self.preprocess is not None
        tags.non_deterministic = False
        return tags


def fit_many(
    estimator: NetworkClassifier,
    problems: Sequence[SelectiveLabels],
    *,
    validations: Sequence[SelectiveLabels | None] | None = None,
    truths: Sequence[Any] | None = None,
    random_states: Sequence[int] | None = None,
    max_fleet: int | None = None,
    checkpoint: Path | None = None,
    copy: bool = True,
) -> list[Any]:
    """Fit one copy of `estimator` to each problem, all as one fleet.

    Gives what fitting them one after the other would give, sooner. Problems whose tables have a
    different number of columns or groups train in fleets of their own; tables of different
    lengths share one. A fleet that does not fit into memory is split.

    Parameters
    ----------
    validations, truths, random_states
        One for each problem.
    max_fleet
        The most networks in a fleet.
    checkpoint
        A file to which a long run writes its state, and from which it goes on.
    """
    n = len(problems)
    states = random_states if random_states is not None else [estimator.random_state] * n
    copies = [clone(estimator) if copy else estimator for _ in range(n)]
    for one, state, problem in zip(copies, states, problems, strict=True):
        if copy:
            one.set_params(random_state=state)
        one.classes_ = np.array([0, 1])
        one.n_features_in_ = problem.X.shape[1]
        one.feature_names_in_ = np.array(problem.feature_names, dtype=object)
        if all(name == f"x{i}" for i, name in enumerate(problem.feature_names)):
            del one.feature_names_in_  # arrays had no names of their own
    none: list[Any] = [None] * n
    _fit_fleet(copies, problems, validations or none, truths or none, max_fleet, checkpoint)
    return copies


@dataclass
class _Prepared:
    """One problem, ready for a fleet."""

    estimator: NetworkClassifier
    train: Table
    validation: Table | None
    n_groups: int
    seeds: list[int]
    rows: np.ndarray  # positions of the training rows in what was given


def _fit_fleet(
    estimators: Sequence[NetworkClassifier],
    problems: Sequence[SelectiveLabels],
    validations: Sequence[SelectiveLabels | None],
    truths: Sequence[Any],
    max_fleet: int | None = None,
    checkpoint: Path | None = None,
) -> None:
    prepared = [
        _prepare_problem(*parts)
        for parts in zip(estimators, problems, validations, truths, strict=True)
    ]
    kinds: dict[tuple[int, ...], list[_Prepared]] = {}
    for one in prepared:
        kinds.setdefault((one.train.X.shape[1], one.n_groups), []).append(one)
    for number, kind in enumerate(kinds.values()):
        file = (
            checkpoint if len(kinds) == 1 or checkpoint is None else Path(f"{checkpoint}.{number}")
        )
        in_chunks(partial(_train_fleet, checkpoint=file), kind, limit=max_fleet)


def _prepare_problem(
    estimator: NetworkClassifier,
    problem: SelectiveLabels,
    validation: SelectiveLabels | None,
    truth: Any,
) -> _Prepared:
    truth, truth_validation = _check_truth(estimator, problem, validation, truth)
    seeds = member_seeds(estimator.random_state, estimator.n_members)
    if validation is not None and validation.X.shape[1] != problem.X.shape[1]:
        raise checks.InputError(
            f"validation has {validation.X.shape[1]} features, but X has {problem.X.shape[1]}."
        )
    kept = np.arange(len(problem))
    if validation is None and estimator.uses_validation:
        problem, validation, kept, held = hold_out(problem, estimator.validation_fraction, seeds[0])
        if truth is not None:
            truth, truth_validation = truth[kept], truth[held]
    preprocessor = Preprocessor.fit(problem.X, estimator.preprocess)
    estimator.preprocessor_ = preprocessor
    estimator.group_names_ = problem.group_names
    return _Prepared(
        estimator,
        Table.of(problem, preprocessor, truth),
        None if validation is None else Table.of(validation, preprocessor, truth_validation),
        problem.n_groups,
        seeds,
        kept,
    )


def _check_truth(
    estimator: NetworkClassifier,
    problem: SelectiveLabels,
    validation: SelectiveLabels | None,
    truth: Any,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Truth goes only to those who declare that they use it; they insist on it."""
    if not estimator.uses_truth:
        if truth is not None:
            raise checks.InputError(
                f"{type(estimator).__name__} does not use the truth of untested rows, and is not "
                "given it: leave out `truth`."
            )
        return None, None
    if truth is None:
        raise checks.InputError(
            f"{type(estimator).__name__} is an oracle: it needs the truth of every row, `truth=`, "
            "which exists only in simulations. On real data choose another method."
        )
    train, held = truth if isinstance(truth, tuple) else (truth, None)
    for values, rows, which in ((train, problem, "rows"), (held, validation, "validation rows")):
        if values is not None and rows is not None and len(values) != len(rows):
            raise checks.InputError(f"truth has {len(values)} values for {len(rows)} {which}.")
    return np.asarray(train), None if held is None else np.asarray(held)


def _train_fleet(prepared: Sequence[_Prepared], checkpoint: Path | None = None) -> list[None]:
    """Train one fleet and hand each estimator its share."""
    first = prepared[0].estimator
    members = first.n_members
    device = resolve_device(first.device)
    train = stack([one.train for one in prepared], members, device)
    held = [one.validation for one in prepared if one.validation is not None]
    batch_size = first.batch_size
    if batch_size == "auto":
        batch_size = BATCH if len(train) > FULL_BATCH_LIMIT else None
    data = FleetData(
        train=train,
        validation=stack(held, members, device) if len(held) == len(prepared) else None,
        seeds=[seed for one in prepared for seed in one.seeds],
        n_groups=prepared[0].n_groups,
        device=device,
        batch_size=None if batch_size is None else int(batch_size),
        checkpoint=checkpoint,
    )
    with _progress(first) as progress:
        data.progress = progress
        trained = first._train(data)
    per_problem = len(trained.fleet) // len(prepared)
    for number, one in enumerate(prepared):
        share = slice(number * per_problem, (number + 1) * per_problem)
        one.estimator.fleet_ = Fleet(
            trained.fleet.architecture, trained.fleet.flat[share].detach().cpu().clone()
        )
        table = one.train
        one.estimator.train_rows_ = one.rows
        one.estimator.support_ = Support.fit(table.X, table.tested, table.group, one.n_groups)
        length = len(table.y)
        for name, value in _merge(trained.attributes[number * members : (number + 1) * members]):
            padded = isinstance(value, np.ndarray) and value.shape[-1:] == (len(train),)
            setattr(one.estimator, name, value[..., :length] if padded else value)
    return [None] * len(prepared)


def _merge(attributes: Sequence[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Fitted attributes of a problem: a single network's as they are; of an ensemble, row arrays
    averaged and the rest as lists, one entry a member."""
    if len(attributes) <= 1:
        return list(attributes[0].items()) if attributes else []
    merged = []
    for name in attributes[0]:
        values = [one[name] for one in attributes]
        rows = isinstance(values[0], np.ndarray)
        merged.append((name, np.mean(values, axis=0) if rows else values))
    return merged


def member_seeds(random_state: Any, n_members: int) -> list[int]:
    """Seeds of the members: the given integer itself for the first, others derived from it."""
    if n_members < 1:
        raise ValueError(f"n_members must be at least 1, got {n_members}")
    if random_state is None:
        first = int(np.random.default_rng().integers(2**31))
    elif isinstance(random_state, np.random.RandomState):
        first = int(random_state.randint(2**31))
    elif isinstance(random_state, np.random.Generator):
        first = int(random_state.integers(2**31))
    else:
        first = int(random_state)
    others = np.random.SeedSequence(first).generate_state(n_members)
    return [first, *(int(seed) for seed in others[1:])]


def _progress(estimator: NetworkClassifier) -> Any:
    from dcem.engine.progress import display

    return display(f"fitting {type(estimator).__name__}", bool(estimator.verbose))
