"""Results as plain values that JSON knows, and back: the fields of a dataclass say which type.

`Audit`, `TableComparison`, `Baseline`, ... say which of their fields are estimates, arrays or
mappings, so that what was written can be read without a word about its types in the file.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from math import inf, isfinite, nan
from types import NoneType, UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from dcem.metrics.estimate import Estimate

ESTIMATE = {"value", "low", "high", "reason"}
BETWEEN = " minus "  # the names of a pair, as a key
LARGEST = 1e300
ENDLESS = {"infinity": inf, "-infinity": -inf}


def to_plain(thing: Any) -> Any:
    """Dataclasses as dictionaries, arrays as lists; NaN as null, infinity as text; six digits."""
    if isinstance(thing, Estimate):  # without the resamples that some carry
        named = {"value": thing.value, "low": thing.low, "high": thing.high}
        return {name: to_plain(value) for name, value in named.items()} | {"reason": thing.reason}
    if is_dataclass(thing) and not isinstance(thing, type):
        return {field.name: to_plain(getattr(thing, field.name)) for field in fields(thing)}
    if isinstance(thing, Mapping):
        return {_key_text(key): to_plain(value) for key, value in thing.items()}
    if isinstance(thing, np.ndarray):
        return [to_plain(item) for item in thing.tolist()]
    if isinstance(thing, list | tuple | frozenset):
        in_order = sorted(thing) if isinstance(thing, frozenset) else thing
        return [to_plain(item) for item in in_order]
    thing = thing.item() if isinstance(thing, np.generic) else thing
    if not isinstance(thing, float):
        return thing
    if isfinite(thing):
        return six_digits(thing)
    return None if thing != thing else ("infinity" if thing > 0 else "-infinity")


def six_digits(number: float) -> float:
    """A number with six significant digits."""
    return float(f"{number:.6g}")


def _key_text(key: Any) -> str:
    if isinstance(key, tuple):
        return BETWEEN.join(map(str, key))
    return f"{key:g}" if isinstance(key, float) else str(key)


def from_plain(kind: Any, plain: Any) -> Any:
    """What `to_plain` wrote, as the type that a field declares; TypeError for another type."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _of_several(inside, plain)
    if origin is tuple:
        each = [inside[0]] * len(_as(list, plain)) if inside[-1] is ... else inside
        return tuple(from_plain(one, item) for one, item in zip(each, plain, strict=True))
    if origin is frozenset:
        return frozenset(from_plain(inside[0], item) for item in _as(list, plain))
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        items = _as(dict, plain).items()
        return {_key_as(inside[0], key): from_plain(inside[1], item) for key, item in items}
    if is_dataclass(kind):
        return _object(kind, plain)
    if kind is float:
        return nan if plain is None else _number(plain)
    if kind is np.ndarray:
        of = [kind if isinstance(item, list) else float for item in _as(list, plain)]
        return np.array([from_plain(*item) for item in zip(of, plain, strict=True)], dtype=float)
    if kind is Any and isinstance(plain, dict) and plain.keys() == ESTIMATE:
        return _object(Estimate, plain)
    return _as(kind, plain) if kind in (int, str, bool, NoneType) else plain


def _of_several(kinds: Sequence[Any], plain: Any) -> Any:
    if plain is None and NoneType in kinds:
        return None
    for kind in kinds:
        try:
            return from_plain(kind, plain)
        except (TypeError, ValueError, KeyError):
            continue
    raise TypeError(f"{str(plain)[:40]!r} is of another type than was written")


def _as(kind: type, plain: Any) -> Any:
    if type(plain) is not kind:
        raise TypeError(f"{str(plain)[:40]!r} is no {kind.__name__}")
    return plain


def _number(plain: Any) -> float:
    if isinstance(plain, str) and plain in ENDLESS:
        return ENDLESS[plain]
    if type(plain) not in (int, float) or abs(plain) > LARGEST:
        raise TypeError(f"{str(plain)[:40]!r} is no number")
    return float(plain)


def _object(kind: Any, plain: Mapping[str, Any]) -> Any:
    _as(dict, plain)
    hints = get_type_hints(kind)
    named = {
        item.name: from_plain(hints[item.name], plain[item.name])
        for item in fields(kind)
        if get_origin(hints[item.name]) is not ClassVar and item.name in plain
    }
    return kind(**named)


def _key_as(kind: Any, key: str) -> Any:
    if kind is float:
        return float(key)
    if get_origin(kind) is tuple:
        first, _, second = key.partition(BETWEEN)
        return (first, second)
    return key
