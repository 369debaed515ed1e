"""Architectures as plain data: a saved fleet is rebuilt without running code from a file.

An architecture that can be saved has `describe()`, which returns its `kind` and the arguments that
make it again, as JSON knows them. `register` names who builds a kind:

    class TwoHeads:
        def __init__(self, n_inputs, width): ...
        def describe(self): return {"kind": "two-heads", "n_inputs": ..., "width": ...}

    register("two-heads", TwoHeads)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dcem.engine.fleet import Architecture
from dcem.engine.mlp import MLP

_BUILDERS: dict[str, Callable[..., Architecture]] = {}


def register(kind: str, build: Callable[..., Architecture]) -> None:
    """Let `build(**arguments)` make architectures of this kind again."""
    _BUILDERS[kind] = build


def describe(architecture: Architecture) -> dict[str, Any]:
    """An architecture as plain data; TypeError where it cannot say what it is."""
    if not hasattr(architecture, "describe"):
        raise TypeError(
            f"{type(architecture).__name__} has no describe(): it cannot be rebuilt from a file"
        )
    return dict(architecture.describe())


def rebuild(description: dict[str, Any]) -> Architecture:
    """The architecture that gave this description; KeyError where its kind is not known."""
    arguments = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in description.items()
        if name != "kind"
    }
    return _BUILDERS[description["kind"]](**arguments)


register("mlp", MLP)
