"""The scripts of docs/make, as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).resolve().parents[2] / "docs"


def generator(name: str) -> ModuleType:
    """The script that writes a page; beside it lies what it may import."""
    folder = str(DOCS / "make")
    if folder not in sys.path:
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(f"docs_make_{name}", f"{folder}/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
