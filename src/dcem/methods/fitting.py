"""From problems to fleets: check, hold out, preprocess, stack, train, and hand the shares back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import clone

from dcem.engine import Fleet, Rows, in_chunks, resolve_device
from dcem.engine.fit import Progress
from dcem.engine.fleet import Architecture
from dcem.engine.progress import display
from dcem.methods.preprocess import Preprocessor
from dcem.methods.support import Support
from dcem.methods.tables import Table, hold_out, stack
from dcem.table import checks
from dcem.table.labels import SelectiveLabels

if TYPE_CHECKING:
    from dcem.methods.base import NetworkClassifier

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
    pace: int | None = None  # what `NetworkClassifier._pace` said of these problems

    @property
    def n_inputs(self) -> int:
        """Columns of `X`."""
        return int(self.train.X.shape[-1])

    def fleet(self, architecture: Architecture) -> Fleet:
        """Untrained networks, one a seed, where the rows live and as precise as they."""
        return Fleet.initial(architecture, self.seeds, device=self.device, dtype=self.train.X.dtype)


@dataclass
class Trained:
    """What `_train` returns: the networks, and fitted attributes of each (name -> value)."""

    fleet: Fleet
    attributes: list[dict[str, Any]] = field(default_factory=list)


def fit_many(
    estimator: NetworkClassifier,
    problems: Sequence[SelectiveLabels],
    *,
    validations: Sequence[SelectiveLabels | None] | None = None,
    truths: Sequence[Any] | None = None,
    random_states: Sequence[int] | None = None,
    max_fleet: int | None = None,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
    copy: bool = True,
) -> list[Any]:
    """Fit one copy of `estimator` to each problem, all as one fleet.

    Gives what fitting them one after the other would give, sooner. Problems whose tables have a
    different number of columns or groups, or that the method takes at another pace, train in
    fleets of their own, and so does each problem that trains on minibatches; tables of different
    lengths share one. A fleet that does not fit into memory is split.

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
        one.classes_ = np.array([0, 1])
        one.n_features_in_ = problem.X.shape[1]
        one.feature_names_in_ = np.array(problem.feature_names, dtype=object)
        if _unnamed(problem):
            del one.feature_names_in_
    none: list[Any] = [None] * n
    fit_fleet(
        copies, problems, validations or none, truths or none, max_fleet, checkpoint, progress
    )
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
    pace: int | None  # see `NetworkClassifier._pace`


def fit_fleet(
    estimators: Sequence[NetworkClassifier],
    problems: Sequence[SelectiveLabels],
    validations: Sequence[SelectiveLabels | None],
    truths: Sequence[Any],
    max_fleet: int | None = None,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> None:
    """Fit each estimator to its problem, in place; the parameters are those of the first."""
    prepared = [
        _prepare_problem(*parts)
        for parts in zip(estimators, problems, validations, truths, strict=True)
    ]
    kinds: dict[tuple[Any, ...], list[_Prepared]] = {}
    for number, one in enumerate(prepared):
        n_rows, n_columns = one.train.X.shape
        # batches are drawn from all rows, so none may be padded: such a problem trains by itself
        alone = None if _batch_size(one.estimator, n_rows) is None else number
        kinds.setdefault((n_columns, one.n_groups, one.pace, alone), []).append(one)

    def run(fleet: Sequence[_Prepared]) -> list[None]:
        first = next(i for i, one in enumerate(prepared) if one is fleet[0])
        return _train_fleet(fleet, _part_of(checkpoint, first, len(fleet), len(prepared)), progress)

    for kind in kinds.values():
        in_chunks(run, kind, limit=max_fleet)


def _part_of(checkpoint: Path | None, first: int, n: int, total: int) -> Path | None:
    """The file of a fleet of `n` that starts at `first`: the given one if that is all of them."""
    if checkpoint is None or n == total:
        return checkpoint
    return Path(f"{checkpoint}.{first}-{n}")


def _prepare_problem(
    estimator: NetworkClassifier,
    problem: SelectiveLabels,
    validation: SelectiveLabels | None,
    truth: Any,
) -> _Prepared:
    _check_parameters(estimator)
    if not problem.tested.any():  # `subset` makes such a part without a check
        checks.check_learnable(problem.y_obs, problem.tested, "y_obs", "tested")
    if validation is not None:
        validation = _aligned(validation, problem)
        if estimator.uses_validation and not estimator.uses_truth and not validation.tested.any():
            raise checks.InputError(
                f"Nobody is tested among the {len(validation)} rows of validation: nothing there "
                "says when to stop. Give rows some of which were tested, or leave out `validation`."
            )
    truth, truth_validation = _check_truth(estimator, problem, validation, truth)
    seeds = member_seeds(estimator.random_state, estimator.n_members)
    estimator.training_counts_ = problem.counts()
    dtype = estimator.dtype
    if dtype not in ("float32", "float64"):
        raise ValueError(f'dtype must be "float32" or "float64", got {dtype!r}')
    kept, held = np.arange(len(problem)), None
    if validation is None and estimator.uses_validation:
        kept, held = hold_out(problem, estimator.validation_fraction, seeds[0])
        validation, truth_validation = problem, truth
    preprocessor = Preprocessor.fit(problem.X, estimator.preprocess, estimator.input_scale, kept)
    estimator.preprocessor_ = preprocessor
    estimator.group_names_ = problem.group_names
    table = Table.of(problem, preprocessor, truth, dtype, kept)
    watched = None
    if validation is not None:
        watched = Table.of(validation, preprocessor, truth_validation, dtype, held)
    return _Prepared(
        estimator, table, watched, problem.n_groups, seeds, kept, estimator._pace(table)
    )


def _aligned(validation: SelectiveLabels, problem: SelectiveLabels) -> SelectiveLabels:
    """Validation rows whose features and group codes mean what those of the training rows mean."""
    if not isinstance(validation, SelectiveLabels):
        raise checks.InputError(
            f"validation is a {type(validation).__name__}; it must be a SelectiveLabels, for "
            "example SelectiveLabels.from_arrays(X, y, tested=..., group=...)."
        )
    if validation.X.shape[1] != problem.X.shape[1]:
        raise checks.InputError(
            f"validation has {validation.X.shape[1]} features, but X has {problem.X.shape[1]}."
        )
    named = [part.feature_names for part in (validation, problem) if not _unnamed(part)]
    if len(set(named)) > 1:
        raise checks.InputError(
            f"The features of validation ({', '.join(named[0])}) are not those of the training "
            f"rows ({', '.join(named[1])}), in this order. Give both the same columns."
        )
    if validation.group_names == problem.group_names:
        return validation
    if problem.n_groups == 1 and problem.group_names == ("all",):  # fitted without groups
        nobody = np.zeros(len(validation), np.int64)
        return replace(validation, group=nobody, group_names=problem.group_names)
    unknown = [name for name in validation.group_names if name not in problem.group_names]
    if unknown:
        raise checks.InputError(
            f"validation holds groups that no training row belongs to: {', '.join(unknown)}. "
            f"Known: {', '.join(problem.group_names)}."
        )
    codes = np.array([problem.group_names.index(name) for name in validation.group_names])
    return replace(validation, group=codes[validation.group], group_names=problem.group_names)


def _unnamed(problem: SelectiveLabels) -> bool:
    """Whether the features came as an array, without names of their own."""
    return all(name == f"x{i}" for i, name in enumerate(problem.feature_names))


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
        name = type(estimator).__name__
        if getattr(estimator, "variant", None) == "published":
            raise checks.InputError(
                f'{name}(variant="published") needs the truth of every row, `truth=`, which exists '
                'only in simulations. On real data use variant="corrected".'
            )
        raise checks.InputError(
            f"{name} is an oracle: it needs the truth of every row, `truth=`, which exists only in "
            "simulations. On real data choose another method."
        )
    train, held = truth if isinstance(truth, tuple) else (truth, None)
    for values, rows, which in ((train, problem, "rows"), (held, validation, "validation rows")):
        if values is not None and rows is not None and len(values) != len(rows):
            raise checks.InputError(f"truth has {len(values)} values for {len(rows)} {which}.")
    return np.asarray(train), None if held is None else np.asarray(held)


def _train_fleet(
    prepared: Sequence[_Prepared],
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> list[None]:
    """Train one fleet and hand each estimator its share."""
    first = prepared[0].estimator
    members = first.n_members
    device = resolve_device(first.device)
    train = stack([one.train for one in prepared], members, device)
    held = [one.validation for one in prepared if one.validation is not None]
    data = FleetData(
        train=train,
        validation=stack(held, members, device) if len(held) == len(prepared) else None,
        seeds=[seed for one in prepared for seed in one.seeds],
        n_groups=prepared[0].n_groups,
        device=device,
        batch_size=_batch_size(first, len(train)),
        checkpoint=checkpoint,
        pace=prepared[0].pace,
    )
    with display(f"fitting {type(first).__name__}", bool(first.verbose)) as shown:
        data.progress = progress or shown
        trained = _train_members(first, data) if len(prepared) == 1 else first._train(data)
    per_problem = len(trained.fleet) // len(prepared)
    for number, one in enumerate(prepared):
        share = slice(number * per_problem, (number + 1) * per_problem)
        # Double precision: the score of a row must not depend on the batch it comes in.
        one.estimator.fleet_ = Fleet(
            trained.fleet.architecture, trained.fleet.flat[share].detach().cpu().double().clone()
        )
        table = one.train
        one.estimator.train_rows_ = one.rows
        one.estimator.support_ = Support.fit(table.X, table.tested, table.group, one.n_groups)
        length = len(table.y)
        for name, value in _merge(trained.attributes[number * members : (number + 1) * members]):
            padded = isinstance(value, np.ndarray) and value.shape[-1:] == (len(train),)
            setattr(one.estimator, name, value[..., :length] if padded else value)
    return [None] * len(prepared)


def _train_members(estimator: NetworkClassifier, data: FleetData) -> Trained:
    """Train the networks of one problem, in parts where they do not fit into memory together."""
    parts: list[Trained] = []

    def run(seeds: Sequence[int]) -> list[None]:
        first = sum(len(part.fleet) for part in parts)
        file = _part_of(data.checkpoint, first, len(seeds), len(data.seeds))
        parts.append(estimator._train(replace(data, seeds=list(seeds), checkpoint=file)))
        return [None] * len(seeds)

    in_chunks(run, data.seeds)
    flat = torch.cat([part.fleet.flat for part in parts])
    attributes = [one for part in parts for one in part.attributes]
    return Trained(Fleet(parts[0].fleet.architecture, flat), attributes)


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


def _batch_size(estimator: NetworkClassifier, n_rows: int) -> int | None:
    """Rows a step of a table with so many; None is all of them."""
    size = estimator.batch_size
    if size == "auto":
        size = BATCH if n_rows > FULL_BATCH_LIMIT else None
    return None if size is None or int(size) >= n_rows else int(size)


def _check_parameters(estimator: NetworkClassifier) -> None:
    """Refuse numbers with which training would fail late, or go wrong without a word."""
    given = estimator.get_params(deep=False)
    widths = given["hidden"]
    counts = {name: given.get(name) for name in ("steps", "max_iter", "patience", "batch_size")}
    if not isinstance(widths, Sequence) or isinstance(widths, str):
        raise ValueError(f"hidden must hold the width of each hidden layer, got {widths!r}")
    for name, value in [*counts.items(), *(("each width in hidden", width) for width in widths)]:
        if value is None or (name == "batch_size" and value == "auto"):
            continue
        least = 0 if name in ("steps", "max_iter") else 1  # 0: what there is before the first
        if not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}")
    rate, decay = given.get("learning_rate"), given.get("weight_decay")
    if rate is not None and not 0 < rate < np.inf:
        raise ValueError(f"learning_rate must be positive, got {rate!r}")
    if decay is not None and not 0 <= decay < np.inf:
        raise ValueError(f"weight_decay must be 0 or more, got {decay!r}")


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
