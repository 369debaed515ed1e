"""Architectures from a user's module, and as plain data: nothing in a saved fleet runs code.

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

import torch
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

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


class FromModule:
    """M copies of a module, trained as one.

    `factory(n_inputs)` builds the module; it must map rows `[N, d]` to one logit `[N]`, `[N, 1]` or
    two logits `[N, 2]`, and may not keep state between rows (batch normalisation does: it mixes
    rows, and its running averages are not parameters). Dropout is switched off, since a fleet
    evaluates the module as a pure function of its parameters.
    """

    def __init__(self, factory: Callable[[int], nn.Module], n_inputs: int):
        self.factory = factory
        self.n_inputs = n_inputs
        self._module = factory(n_inputs).eval()
        if any(True for _ in self._module.buffers()):
            raise ValueError(
                "the network module keeps buffers (batch normalisation does); a fleet needs a "
                "module whose output depends on its parameters and the row alone. "
                "Use LayerNorm or no normalisation instead."
            )
        self._names = [name for name, _ in self._module.named_parameters()]
        self._shapes = [parameter.shape for parameter in self._module.parameters()]
        self._lengths = [shape.numel() for shape in self._shapes]
        self.n_parameters = sum(self._lengths)
        with torch.no_grad():
            out = self._module(torch.zeros(2, n_inputs))
        self._n_outputs = 1 if out.dim() == 1 else int(out.shape[-1])
        if out.shape[0] != 2 or self._n_outputs not in (1, 2):
            raise ValueError(
                f"the network module maps [2, {n_inputs}] to {list(out.shape)}; "
                "it must give one logit per row, or two"
            )

    @property
    def n_outputs(self) -> int:
        """The number of logits."""
        return self._n_outputs

    def describe(self) -> dict[str, Any]:
        """The parameters by name; making the module again takes its factory."""
        shapes = {name: list(shape) for name, shape in zip(self._names, self._shapes, strict=True)}
        return {"kind": "module", "n_inputs": self.n_inputs, "parameters": shapes}

    def module(self, parameters: Tensor) -> nn.Module:
        """An ordinary module with these parameters `[P]`."""
        module = self.factory(self.n_inputs).eval().to(parameters)
        vector_to_parameters(parameters, module.parameters())
        return module

    def initial(self, seed: int) -> Tensor:
        """Parameters `[P]` of a module built by the factory under this seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seed))
            module = self.factory(self.n_inputs)
        return torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])

    def logits(self, flat: Tensor, X: Tensor) -> Tensor:
        """Logits `[M, N, k]`: the module as a function of its parameters, mapped over networks."""

        def one(parameters: Tensor, rows: Tensor) -> Tensor:
            pieces = parameters.split(self._lengths)
            named = {
                name: piece.reshape(shape)
                for name, piece, shape in zip(self._names, pieces, self._shapes, strict=True)
            }
            out: Tensor = torch.func.functional_call(self._module, named, (rows,))
            return out.unsqueeze(-1) if out.dim() == 1 else out

        return torch.vmap(one, in_dims=(0, None if X.dim() == 2 else 0))(flat, X)
