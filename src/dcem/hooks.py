"""The one way up: what an object can ask of a layer above its own, looked up when it is asked.

An estimator saves itself and a result shows itself, although writing folders and pages lies in
layers that know estimators and results. Each such way is declared here by name; no module below
imports one above it.
"""

from importlib import import_module
from typing import Any

HOOKS = {
    "save": "dcem.saving.folder",
    "load_model": "dcem.saving.folder",
    "export_onnx": "dcem.saving.onnx",
}


def above(name: str) -> Any:
    """The function of that name, from the layer that has it."""
    return getattr(import_module(HOOKS[name]), name)
