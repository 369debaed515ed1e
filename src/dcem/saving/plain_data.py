"""Python values as JSON and back: tuples, arrays, settings and numbers that JSON lacks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from dcem.methods.propensity import PropensitySettings

# Settings that are parameters of a method; only these are made again from a file.
SETTINGS = {cls.__name__: cls for cls in (PropensitySettings,)}


def to_plain(value: Any) -> Any:
    """A value as JSON knows it; TypeError for what has no such form.

    Models of others and functions are left out: of them only the description remains.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, np.ndarray):
        return {"$array": to_plain(value.tolist()), "dtype": value.dtype.str}
    if isinstance(value, tuple):
        return {"$tuple": [to_plain(item) for item in value]}
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): to_plain(item) for name, item in value.items()}
    if type(value).__name__ in SETTINGS and is_dataclass(value):
        named = {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
        return {"$settings": type(value).__name__, "fields": named}
    if isinstance(value, BaseEstimator):
        return {"$left_out": getattr(value, "description", None) or repr(value)}
    if callable(value):
        return {"$left_out": getattr(value, "__qualname__", repr(value))}
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def from_plain(value: Any, left_out: Callable[[str], Any]) -> Any:
    """The value that `to_plain` wrote; `left_out` makes what stands for a missing model."""
    if isinstance(value, list):
        return [from_plain(item, left_out) for item in value]
    if not isinstance(value, dict):
        return value
    if "$float" in value:
        return float(value["$float"])
    if "$array" in value:
        return np.array(from_plain(value["$array"], left_out), dtype=value["dtype"])
    if "$tuple" in value:
        return tuple(from_plain(item, left_out) for item in value["$tuple"])
    if "$settings" in value:
        named = {name: from_plain(item, left_out) for name, item in value["fields"].items()}
        return SETTINGS[value["$settings"]](**named)
    if "$left_out" in value:
        return left_out(value["$left_out"])
    return {name: from_plain(item, left_out) for name, item in value.items()}
