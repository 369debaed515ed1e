"""Where fleets are trained: each module here is a backend, by its name.

A backend has two functions. `connected(device, address)` is a context: inside it the backend can
work, on the device that it yields. `work(planner, where, clock, commit, display)` asks the planner
for fleets and commits what became of their cells, until nothing is left or the time is up. A new
backend is a new module.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from dcem.table.messages import require_one_of


def backend(name: str) -> Any:
    """The backend of that name."""
    names = sorted(module.name for module in iter_modules(__path__))
    require_one_of("backend", name, names)
    return import_module(f"{__name__}.{name}")
