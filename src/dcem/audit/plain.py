"""An audit as JSON knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

import numpy as np


def to_plain(thing: Any) -> Any:
    """Dataclasses as dictionaries, arrays as lists; NaN as null, infinity as text."""
    if is_dataclass(thing) and not isinstance(thing, type):
        return {field.name: to_plain(getattr(thing, field.name)) for field in fields(thing)}
    if isinstance(thing, Mapping):
        return {_key(key): to_plain(value) for key, value in thing.items()}
    if isinstance(thing, np.ndarray):
        return [to_plain(item) for item in thing.tolist()]
    if isinstance(thing, list | tuple):
        return [to_plain(item) for item in thing]
    if isinstance(thing, float | np.floating):
        number = float(thing)
        if isfinite(number):
            return float(f"{number:.6g}")
        return None if number != number else ("infinity" if number > 0 else "-infinity")
    return thing


def _key(key: Any) -> str:
    return f"{key:g}" if isinstance(key, float) else str(key)
