"""Checkpoints inside a long run: tensors and a little JSON in one file, written whole or not."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor


def write(path: Path, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
    """Write to a temporary name, then rename: a crash leaves the previous checkpoint intact."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    save_file(contiguous, temporary, metadata={"checkpoint": json.dumps(meta)})
    os.replace(temporary, path)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The tensors and the JSON of a checkpoint; None where there is none that can be read."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            meta = json.loads(file.metadata()["checkpoint"])
    except (OSError, SafetensorError, KeyError, ValueError, TypeError):
        return None
    return tensors, meta
