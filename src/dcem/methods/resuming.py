"""Which checkpoint belongs to which fit: it is known by everything that decides the result."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from dcem._version import __version__
from dcem.engine.checkpoint import Saves, nested
from dcem.methods.fleets import FleetData

if TYPE_CHECKING:
    from dcem.methods.network import NetworkClassifier

# Where and how loudly a fit runs does not change what it is; `data` holds the seeds, and the
# initial weights tell one network from another, whose factory has a new address in each process.
_NOT_IDENTITY = ("device", "verbose", "random_state", "network")


def saves_of(method: NetworkClassifier, data: FleetData) -> Saves:
    """Where a fit keeps its state as it goes; nowhere if `data` names no file."""
    if data.checkpoint is None:
        return Saves(None)
    return Saves(data.checkpoint, identity(method, data))


def identity(method: NetworkClassifier, data: FleetData) -> str:
    """A hash of method, parameters, seeds and rows: of what goes into a fit, not of what any part
    of it came to, which may round differently on another processor."""
    given = method.get_params(deep=False)
    about = {name: value for name, value in given.items() if name not in _NOT_IDENTITY}
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
