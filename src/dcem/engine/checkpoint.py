"""Checkpoints inside a long run: tensors and a little JSON in one file, written whole or not.

A long run is a few stages, each done once, and then rounds (EM iterations, rounds of filtering).
`Saves` keeps what they have come to, so that a run that was ended goes on after its last one:

    saves = Saves(path, identity)
    start = saves.once("start", fit_the_start)  # a stage: from the file, or done now and kept
    done = saves.resume(load) or 0              # rounds behind us, what they led to loaded
    while done < rounds:
        ...
        done += 1
        with saves.after(done, state):          # whatever ends the run in here finds it saved
            progress(done, rounds)
    saves.write(done, state)
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from dcem.files import whole_file

State = dict[str, Any]  # tensors, and values that JSON can hold, by name

CHEAP = 0.2  # seconds that writing may take after every round, however short the round
SPACING = 9  # a dearer write is followed by this many times its own time without one


class Saves:
    """What one run has come to, in a file. Without a path nothing is kept, and all else is equal.

    `identity` names whatever decides the result; the file of a run with another one is not used.
    """

    def __init__(self, path: Path | None, identity: str = ""):
        self._path, self._identity = path, identity
        found = None if path is None else read(path)
        if found is None or found[1].get("identity") != identity:
            found = {}, {"iterations_done": None, "values": {}}
        tensors, meta = found
        self._stages = part(tensors, "stage")
        self._state: State = part(tensors, "state") | meta["values"]
        self._done: int | None = meta["iterations_done"]  # None: stages at most
        self._due = 0.0  # when a round is worth writing again

    def once(self, name: str, compute: Callable[[], Tensor]) -> Tensor:
        """A stage before the rounds: what is in the file, or what `compute` gives, kept at once."""
        if self._path is None:
            return compute()
        if name not in self._stages:
            self._stages[name] = compute().detach().clone()
            self._store({})
        return self._stages[name].clone()

    def resume(self, load: Callable[[State], None]) -> int | None:
        """Hand the saved state to `load`; the rounds behind it. None where no state was saved."""
        if self._done is not None:
            load(self._state)
            self._state = {}  # the run has it now
        return self._done

    @contextmanager
    def after(self, done: int, state: Callable[[], State]) -> Iterator[None]:
        """Write what `done` rounds led to, unless that is dear and was done not long ago.

        An exception inside the block, such as the end of the time, has it written in any case.
        """
        if time.monotonic() >= self._due:
            self.write(done, state)
        try:
            yield
        except BaseException:
            self.write(done, state)
            raise

    def write(self, done: int, state: Callable[[], State]) -> None:
        """Write what `done` rounds led to, unless the file has it."""
        if self._path is None or done == self._done:
            return
        started = time.monotonic()
        self._done = done
        self._store(state())
        ended = time.monotonic()
        if ended - started > CHEAP:
            self._due = ended + SPACING * (ended - started)

    def _store(self, state: State) -> None:
        assert self._path is not None
        tensors = {name: value for name, value in state.items() if isinstance(value, Tensor)}
        values = {name: value for name, value in state.items() if name not in tensors}
        meta = {"identity": self._identity, "iterations_done": self._done, "values": values}
        write_checkpoint(self._path, nested(stage=self._stages, state=tensors), meta)


def nested(**parts: State) -> State:
    """Several states as one, names prefixed by the part they belong to."""
    return {f"{part}.{name}": value for part, one in parts.items() for name, value in one.items()}


def part(state: State, name: str) -> State:
    """One of the states that `nested` put together."""
    prefix = f"{name}."
    return {key[len(prefix) :]: value for key, value in state.items() if key.startswith(prefix)}


def write_checkpoint(path: Path, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
    """Write a checkpoint whole: a crash leaves the previous one intact."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with whole_file(path) as partial:
        partial.write_bytes(save(contiguous, metadata={"checkpoint": json.dumps(meta)}))


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The tensors and the JSON of a checkpoint; None where there is none that can be read."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            meta = json.loads(file.metadata()["checkpoint"])
    except (OSError, SafetensorError, KeyError, ValueError, TypeError):
        return None
    return tensors, meta
