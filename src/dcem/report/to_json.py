"""A document as JSON: its answer, and every number of the result it was made from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

import numpy as np

from dcem.metrics.estimate import Estimate
from dcem.report import document as doc
from dcem.report.words import in_field_words


def to_json(document: doc.Document, words: str = "general") -> str:
    """The verdict, the key numbers, the findings, and `document.data`: all numbers, by name."""
    document = in_field_words(document, words)
    told: dict[str, Any] = {"title": document.title, "words": words}
    if document.opening is not None:
        told["verdict"] = json_value(document.opening.verdict)
        told["key_numbers"] = [
            {"label": number.label, **_cell_value(number.cell)}
            for number in document.opening.numbers
        ]
    told |= json_value(document.data)
    if document.findings is not None:
        told["conclusions"] = told.get("findings", [])  # one by one, as values
        shown = ("key", "severity", "headline", "text", "remedy")
        items = document.findings.items
        told["findings"] = [{name: getattr(one, name) for name in shown} for one in items]
    return json.dumps(told, indent=1, ensure_ascii=False) + "\n"


def json_value(thing: Any) -> Any:
    """Dataclasses as dictionaries, arrays as lists; NaN as null, infinity as text."""
    if isinstance(thing, Estimate):  # without the resamples that some carry
        named = {"value": thing.value, "low": thing.low, "high": thing.high}
        return {name: json_value(value) for name, value in named.items()} | {"reason": thing.reason}
    if is_dataclass(thing) and not isinstance(thing, type):
        return {field.name: json_value(getattr(thing, field.name)) for field in fields(thing)}
    if isinstance(thing, Mapping):
        return {_key_text(key): json_value(value) for key, value in thing.items()}
    if isinstance(thing, np.ndarray):
        return [json_value(item) for item in thing.tolist()]
    if isinstance(thing, list | tuple | frozenset):
        in_order = sorted(thing) if isinstance(thing, frozenset) else thing
        return [json_value(item) for item in in_order]
    if isinstance(thing, float | np.floating):
        number = float(thing)
        if isfinite(number):
            return float(f"{number:.6g}")
        return None if number != number else ("infinity" if number > 0 else "-infinity")
    return thing


def _key_text(key: Any) -> str:
    if isinstance(key, tuple):
        return " minus ".join(map(str, key))
    return f"{key:g}" if isinstance(key, float) else str(key)


def _cell_value(cell: doc.Cell) -> dict[str, Any]:
    if isinstance(cell, doc.Number):
        return json_value(cell.estimate)
    if isinstance(cell, doc.Count):
        return {"value": cell.value}
    if isinstance(cell, doc.Missing):
        return {"value": None, "reason": cell.reason or cell.what}
    return {"value": cell if isinstance(cell, str) else cell.name}
