"""A cell: one task, one method, one seed; the unit that is trained, committed and counted.

A cell is known by the hash of everything that decides its result: the parameters of the task and
every parameter of the estimator, defaults included. Two benchmarks that share a cell compute it
once; a changed default makes a new cell. Cells of one *kind* differ only in their data and seeds,
and can train as one fleet.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, is_dataclass
from functools import lru_cache
from typing import Any

from dcem.benchmark.toml_file import Benchmark, MethodInFile, tupled
from dcem.methods import SelectiveClassifier, make, published
from dcem.methods.registry import with_params
from dcem.table.messages import InputError
from dcem.tasks import Task
from dcem.tasks.registry import completed, file_hashes, make_task, possible

PUBLISHED_SEED = 42
# Where and how loudly a fit runs does not change what it is.
_NOT_IDENTITY = ("device", "verbose", "random_state")


@dataclass(frozen=True)
class Cell:
    """What to compute. `task` and `method` hold plain values that survive JSON."""

    id: str  # hash of task, method and seed
    kind: str  # hash of what cells of one fleet have in common
    task: dict[str, Any]
    method: dict[str, Any]  # name, published, params (as given), variant, schedule
    seed: int  # of the estimator

    def as_json(self) -> str:
        """The cell as text, from which `from_json` makes it again."""
        return json.dumps(asdict(self), sort_keys=True, default=_json_parameter)

    @classmethod
    def from_json(cls, text: str) -> Cell:
        """The inverse of `as_json`."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class FleetOfCells:
    """Cells that train together, in this order; a worker has claimed them for itself."""

    id: str
    cells: tuple[Cell, ...]
    done: frozenset[str] = frozenset()  # committed before; they only complete a checkpointed fleet

    @property
    def open(self) -> tuple[Cell, ...]:
        """The cells that still want a result."""
        return tuple(cell for cell in self.cells if cell.id not in self.done)


@dataclass(frozen=True)
class Planned:
    """A cell's place in a benchmark: the name its method has there."""

    label: str
    cell: Cell


def expand(benchmark: Benchmark) -> tuple[list[Planned], list[str]]:
    """All cells of a benchmark, methods outermost; and which settings cannot exist, and why."""
    feasible, notes = possible(benchmark.tasks)
    if not feasible:
        raise InputError(f"{benchmark.name}: none of its settings can exist. {' '.join(notes)}")
    planned = []
    for entry in benchmark.methods:
        resolved: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {}
        for task in feasible:
            if task["kind"] not in resolved:
                resolved[task["kind"]] = _resolve(entry, task["kind"])
            planned.append(Planned(entry.label, _make_cell(entry, task, *resolved[task["kind"]])))
    return planned, notes


def _resolve(entry: MethodInFile, kind: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    """What tables say of a method, its full parameters, and their hash."""
    estimator = estimator_of(
        {"name": entry.name, "published": entry.published, "params": entry.params}, kind
    )
    full = estimator.get_params(deep=False)
    way = "published" if entry.published else "corrected"  # where the method has no such parameter
    method = {
        "name": entry.name,
        "published": entry.published,
        "params": dict(entry.params),
        "variant": full.get("variant", way),
        "schedule": full.get("schedule", "published" if entry.published else "default"),
    }
    identity = {key: value for key, value in full.items() if key not in _NOT_IDENTITY}
    if identity.get("learner") == "network":  # older stores know no other and keep their cells
        del identity["learner"]
    return method, full, _hash_json([entry.name, identity])


def _make_cell(
    entry: MethodInFile,
    task: dict[str, Any],
    method: dict[str, Any],
    full: dict[str, Any],
    method_hash: str,
) -> Cell:
    task = completed(task)
    seed = entry.seed
    if seed is None:
        seed = full.get("random_state") if entry.published else task.get("seed", PUBLISHED_SEED)
    seed = PUBLISHED_SEED if seed is None else int(seed)
    # A file is known by its content: where it lies is not part of the result.
    files = file_hashes(task)
    shape = [task["kind"], task.get("n_train"), task.get("n_validation")]
    shape.append(" ".join(files.values()) or None)
    kind = _hash_json([method_hash, shape])[:16]
    return Cell(_hash_json([task | files, method_hash, seed])[:24], kind, task, method, seed)


def estimator_of(method: dict[str, Any], task_kind: str) -> SelectiveClassifier:
    """The estimator that a cell's `method` describes."""
    name, params = method["name"], {k: tupled(v) for k, v in method["params"].items()}
    if method["published"]:
        return with_params(published(name, task_kind), params)
    return make(name, **params)


def task_of(parameters: dict[str, Any]) -> Task:
    """The task that a cell's `task` describes; recent ones are kept."""
    return _make_task(json.dumps(parameters, sort_keys=True))


@lru_cache(maxsize=256)  # about 4 MB each at the published size
def _make_task(text: str) -> Task:
    return make_task(json.loads(text))


def _hash_json(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=_json_parameter)
    return hashlib.sha256(text.encode()).hexdigest()


def _json_parameter(value: Any) -> Any:
    """Parameters that JSON does not know."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"type": type(value).__name__, **asdict(value)}
    if hasattr(value, "get_params"):
        return {"type": type(value).__name__, **value.get_params()}
    return repr(value)
