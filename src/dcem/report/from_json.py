"""A saved result read again, so that its page can be written anew: the way back of `to_json`.

What a value is, is told by the result's own fields: `Audit`, `TableComparison`, ... say which of
them are estimates, arrays or mappings. Numbers come back with the six digits that were written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from math import inf, nan
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from dcem.audit.found_findings import FoundAudit
from dcem.audit.results import Audit
from dcem.compare.found import FoundComparison
from dcem.compare.results import TableComparison
from dcem.hooks import above
from dcem.metrics.estimate import Estimate
from dcem.monitor.results import Monitoring
from dcem.report.document import Document
from dcem.table.disclosure import SMALL, WITHHELD
from dcem.table.messages import InputError

ESTIMATE = {"value", "low", "high", "reason"}
BETWEEN = " minus "  # the names of a pair, as a key
ENDLESS = {"infinity": inf, "-infinity": -inf}


def read_result(path: str | Path) -> Document:
    """The document of an audit, a comparison or a look at a model that was saved as JSON."""
    path = Path(path)
    saved = _loaded(path)
    kind = _kind(saved)
    if kind is None:
        raise InputError(
            f"{path}: neither an audit nor a comparison, nor what became of a model. What can be "
            "made a page again is what `dcem audit` and `dcem monitor` write as JSON, and the "
            "comparison.json of `dcem compare`."
        )
    with _of_this_version(path):
        of_audit = {"data": saved["made"], "small_cells": True}  # small ones are not in the file
        more = of_audit if kind in (Audit, FoundAudit) else {}
        made: Document = above(kind._document)(_result(kind, saved), str(saved["title"]), **more)
        return made


def read_comparison(path: str | Path) -> TableComparison | FoundComparison:
    """A comparison that was saved as JSON; of its counts, those that may be shown."""
    path = Path(path)
    saved = _loaded(path)
    kind = _kind(saved)
    if kind not in (TableComparison, FoundComparison):
        raise InputError(f"{path}: not a comparison that `dcem compare` saved.")
    with _of_this_version(path):
        found: TableComparison | FoundComparison = _result(kind, saved)
        return found


def words_of(path: Path) -> str:
    """The field in whose words a result was saved."""
    return str(_loaded(path).get("words", "general"))


def _result(kind: Any, saved: dict[str, Any]) -> Any:
    saved["findings"] = saved.get("conclusions", ())
    if kind is TableComparison:
        saved["shown"] = saved["groups"]
        groups = saved["shown"][:-1] or saved["shown"]  # the last row is all together
        saved["groups"] = [
            {name: 0 if value in (SMALL, WITHHELD) else value for name, value in group.items()}
            for group in groups
        ]
    return _typed(kind, saved)


@contextmanager
def _of_this_version(path: Path) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}: not a result of this version of dcem ({type(error).__name__}: {error}). Make "
            "it again from the table."
        ) from None


def _loaded(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable JSON file: {error}.") from None


def _kind(saved: Any) -> Any:
    """The class of a result by the fields that it cannot do without; None if it is none."""
    for kind in (Audit, TableComparison, FoundAudit, FoundComparison, Monitoring):
        needed = {
            item.name
            for item in fields(kind)
            if item.default is MISSING and item.default_factory is MISSING
        }
        if isinstance(saved, dict) and needed <= saved.keys():
            return kind
    return None


def _typed(kind: Any, plain: Any) -> Any:
    """A plain value as the type that a field declares."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if plain is None and NoneType in inside:
            return None
        return _typed(next(one for one in inside if one is not NoneType), plain)
    if origin is tuple:
        each = [inside[0]] * len(plain) if inside[-1] is ... else inside
        return tuple(_typed(one, item) for one, item in zip(each, plain, strict=True))
    if origin is frozenset:
        return frozenset(plain)
    if origin is not None and issubclass(origin, Mapping):
        return {_key_as(inside[0], key): _typed(inside[1], item) for key, item in plain.items()}
    if is_dataclass(kind):
        return _object(kind, plain)
    if kind is float:
        return nan if plain is None else float(ENDLESS.get(plain, plain))
    if kind is np.ndarray:
        return np.array([_typed(float, item) for item in plain], dtype=float)
    if kind is Any and isinstance(plain, dict) and plain.keys() == ESTIMATE:
        return _object(Estimate, plain)
    return plain


def _object(kind: Any, plain: Mapping[str, Any]) -> Any:
    hints = get_type_hints(kind)
    named = {
        item.name: _typed(hints[item.name], plain[item.name])
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
