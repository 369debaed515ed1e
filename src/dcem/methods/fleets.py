"""From prepared problems to fleets: stack, train and score together, hand the shares back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from dcem import __version__
from dcem.engine import Fleet, Rows, in_chunks, resolve_device
from dcem.engine.checkpoint import Saves, nested
from dcem.engine.fit import Progress
from dcem.engine.fleet import Architecture, threads_for
from dcem.methods.base import SelectiveClassifier
from dcem.methods.fitting import Prepared, prepare
from dcem.methods.training_table import TrainingTable
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import require_one_of

if TYPE_CHECKING:
    from dcem.methods.network import NetworkClassifier

# Tables longer than this are trained on minibatches of BATCH rows unless batch_size says otherwise.
FULL_BATCH_LIMIT = 50_000
BATCH = 16_384
# Where and how loudly a fit runs does not change what it is; `data` holds the seeds, and the
# initial weights tell one network from another, whose factory has a new address in each process.
NOT_IDENTITY = ("device", "verbose", "random_state", "network")
# The most numbers stacked to be scored: 80 MB of features. Long tables gain nothing from company.
MOST_SCORED = 10_000_000


@dataclass
class FleetData:
    """Everything `_train` gets: the rows of M networks, their seeds, and where they live."""

    train: Rows  # columns y, tested, group, weight and, for oracles, truth
    validation: Rows | None
    seeds: list[int]  # [M], one per network
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

    def each(self, change: Callable[[Rows], Rows]) -> FleetData:
        """The same with training and validation rows changed alike."""
        held = None if self.validation is None else change(self.validation)
        return replace(self, train=change(self.train), validation=held)

    def fleet(self, architecture: Architecture) -> Fleet:
        """Untrained networks, one per seed, where the rows live and as precise as they."""
        return Fleet.initial(architecture, self.seeds, device=self.device, dtype=self.train.X.dtype)


@dataclass
class Trained:
    """What `_train` returns: the networks, and fitted attributes of each (name -> value)."""

    fleet: Fleet
    attributes: list[dict[str, Any]] = field(default_factory=list)


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
    kinds: dict[tuple[Any, ...], list[tuple[int, Prepared]]] = {}
    given = zip(estimators, problems, validations, truths, strict=True)
    for number, (one, problem, validation, truth) in enumerate(given):
        _check_parameters(one)
        prepared = prepare(one, problem, validation, truth)
        n_rows, n_columns = prepared.standard.X.shape
        batches = _batch_size(one, n_rows) is not None
        # long tables gain nothing from company, and would be copied
        joined = one.batches_together and n_rows <= FULL_BATCH_LIMIT
        alone = number if batches and not joined else -1
        key = (n_columns, prepared.n_groups, one._pace(prepared.standard), batches, alone)
        kinds.setdefault(key, []).append((number, prepared))

    def run(fleet: Sequence[tuple[int, Prepared]]) -> None:
        file = _part_of(checkpoint, fleet[0][0], len(fleet), len(estimators))
        _train_fleet([prepared for _, prepared in fleet], file, progress)

    for kind in kinds.values():
        in_chunks(run, kind, limit=max_fleet)


def _part_of(checkpoint: Path | None, first: int, n: int, total: int) -> Path | None:
    """The file of a fleet of `n` that starts at `first`: the given one if that is all of them."""
    if checkpoint is None or n == total:
        return checkpoint
    return Path(f"{checkpoint}.{first}-{n}")


def _train_fleet(
    ready: Sequence[Prepared], checkpoint: Path | None, progress: Progress | None
) -> None:
    """Train one fleet and hand each estimator its share."""
    first: Any = ready[0].estimator
    members = first.n_members
    device = resolve_device(first.device)
    train = stack([one.standard for one in ready], members, device)
    held = [watched for one in ready if (watched := one.watched_standard) is not None]
    data = FleetData(
        train=train,
        validation=stack(held, members, device) if len(held) == len(ready) else None,
        seeds=[seed for one in ready for seed in one.seeds],
        n_groups=ready[0].n_groups,
        device=device,
        batch_size=_batch_size(first, len(train)),
        checkpoint=checkpoint,
        pace=first._pace(ready[0].standard),
    )
    threads = threads_for(first._architecture(data.n_inputs), device)
    title = f"fitting {type(first).__name__}"
    with threads, _display(title, bool(first.verbose)) as shown:
        data.progress = progress or shown
        trained = _train_members(first, data) if len(ready) == 1 else first._train(data)
    per_problem = len(trained.fleet) // len(ready)
    for number, one in enumerate(ready):
        share = slice(number * per_problem, (number + 1) * per_problem)
        # Double precision: the score of a row must not depend on the batch it comes in.
        own = trained.fleet[share]
        one.estimator.fleet_ = Fleet(own.architecture, own.flat.double())
        length = len(one.standard)
        for name, value in _merge(trained.attributes[number * members : (number + 1) * members]):
            padded = isinstance(value, np.ndarray) and value.shape[-1:] == (len(train),)
            setattr(one.estimator, name, value[..., :length] if padded else value)
        one.finish()


def _train_members(estimator: NetworkClassifier, data: FleetData) -> Trained:
    """Train the networks of one problem, in parts where they do not fit into memory together."""
    parts: list[Trained] = []

    def run(seeds: Sequence[int]) -> None:
        first = sum(len(part.fleet) for part in parts)
        file = _part_of(data.checkpoint, first, len(seeds), len(data.seeds))
        parts.append(estimator._train(replace(data, seeds=list(seeds), checkpoint=file)))

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
    require_one_of("dtype", given["dtype"], ("float32", "float64"))
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


def stack(tables: Sequence[TrainingTable], members: int, device: torch.device) -> Rows:
    """Rows of a fleet: one network for each table and member, tables padded to one length.

    A single table is stored once, whatever the number of members: `X [N, d]`, columns `[N]`.
    Several give `X [M, N, d]` and columns `[M, N]`; padding has weight 0.
    """

    def tensor(array: np.ndarray) -> Tensor:
        array = np.ascontiguousarray(array)
        return torch.from_numpy(array if array.flags.writeable else array.copy()).to(device)

    if len(tables) == 1:
        table = tables[0]
        return Rows(tensor(table.X), {k: tensor(v) for k, v in table.columns().items()})
    longest = max(len(table.y) for table in tables)

    def padded(arrays: list[np.ndarray]) -> Tensor:
        out = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), dtype=arrays[0].dtype)
        for row, array in zip(out, arrays, strict=True):
            row[: len(array)] = array
        return tensor(out).repeat_interleave(members, dim=0) if members > 1 else tensor(out)

    columns = [table.columns() for table in tables]
    names = set.intersection(*(set(column) for column in columns))
    X = padded([table.X for table in tables])
    return Rows(
        X,
        {name: padded([column[name] for column in columns]) for name in sorted(names)},
        [len(table.y) for table in tables for _ in range(members)],
    )


def select(rows: Rows, keep: Tensor) -> Rows:
    """The rows where `keep` (`[N]` or `[M, N]`, 0/1) is set; each network's own, in their order.

    Networks keep different numbers of rows: shorter selections are filled up with rows of weight 0.
    """
    if keep.dim() == 1 and all(column.dim() == 1 for column in rows.columns.values()):
        chosen = keep > 0
        X = rows.X[..., chosen, :]
        return Rows(X, {name: column[chosen] for name, column in rows.columns.items()})
    n_networks = max(
        [keep.shape[0]] * (keep.dim() == 2)
        + [column.shape[0] for column in rows.columns.values() if column.dim() == 2]
    )
    keep = (keep > 0).expand(n_networks, -1)
    longest = max(1, int(keep.sum(1).max()))
    index = torch.argsort((~keep).to(torch.uint8), dim=1, stable=True)[:, :longest]
    chosen_rows = rows.take(index)
    chosen_rows.columns["weight"] = chosen_rows["weight"] * keep.gather(1, index)
    return chosen_rows


@contextmanager
def _display(title: str, show: bool) -> Iterator[Progress | None]:
    """A callback `(done, total)` that draws a bar on standard error; None where `show` is off."""
    if not show:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


# -- going on after an interruption -----------------------------------------------------------


def saves_of(method: NetworkClassifier, data: FleetData) -> Saves:
    """Where a fit keeps its state as it goes; nowhere if `data` names no file."""
    if data.checkpoint is None:
        return Saves(None)
    return Saves(data.checkpoint, identity(method, data))


def identity(method: NetworkClassifier, data: FleetData) -> str:
    """A hash of method, parameters, seeds and rows: of what goes into a fit, not of what any part
    of it came to, which may round differently on another processor."""
    given = method.get_params(deep=False)
    about = {name: value for name, value in given.items() if name not in NOT_IDENTITY}
    shared = (data.seeds, data.n_groups, data.batch_size, data.pace)
    digest = sha256(f"{__version__} {type(method).__name__} {about} {shared}".encode())
    tables = {"train": data.train, "validation": data.validation}
    tensors = {"initial": method._architecture(data.n_inputs).initial(data.seeds[0])} | nested(
        **{name: {"X": rows.X, **rows.columns} for name, rows in tables.items() if rows is not None}
    )
    for name, tensor in tensors.items():
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().reshape(-1).numpy().data)
    return digest.hexdigest()


# -- scoring ----------------------------------------------------------------------------------


def score_many(
    estimators: Sequence[NetworkClassifier], problems: Sequence[SelectiveLabels]
) -> list[np.ndarray]:
    """The probability of class 1 `[n]` of each problem's rows by its own estimator.

    Estimators of one method, fitted by one `fit_many`, go through their networks together.
    """
    if not _alike(estimators, problems):
        return [_score(*pair) for pair in zip(estimators, problems, strict=True)]
    members = len(estimators[0].fleet_)
    X = np.stack(
        [one.preprocessor_.transform(problem.X, one.dtype)
         for one, problem in zip(estimators, problems, strict=True)]
    )  # fmt: skip
    flat = torch.cat([one.fleet_.flat for one in estimators])
    rows = torch.from_numpy(X).repeat_interleave(members, 0)  # [K members, n, d]
    scores = Fleet(estimators[0].fleet_.architecture, flat).predict(rows).double().numpy()
    return list(scores.reshape(len(estimators), members, -1).mean(axis=1))


def _alike(estimators: Sequence[NetworkClassifier], problems: Sequence[SelectiveLabels]) -> bool:
    """Whether plain networks of one shape meet tables of one shape, and not too long ones."""
    first, shape = estimators[0], problems[0].X.shape
    return (
        type(first).predict_proba is SelectiveClassifier.predict_proba
        and hasattr(first, "fleet_")
        and not any(hasattr(one, "known_") for one in estimators)  # moved, each by its own line
        and len(problems) * shape[0] * shape[1] <= MOST_SCORED
        and all(problem.X.shape == shape for problem in problems)
        and all(
            one.fleet_.architecture is first.fleet_.architecture
            and len(one.fleet_) == len(first.fleet_)
            for one in estimators
        )
    )


def _score(estimator: NetworkClassifier, problem: SelectiveLabels) -> np.ndarray:
    group: dict[str, Any] = {}
    if estimator.needs_group:
        group = {"sensitive_features": np.asarray(problem.group_names)[problem.group]}
    return estimator.predict_proba(problem, **group)[:, 1]
