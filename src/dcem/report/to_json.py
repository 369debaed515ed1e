"""A document as JSON: its answer, and every number of the result it was made from."""

from __future__ import annotations

import json
from typing import Any

from dcem.metrics.plain import to_plain
from dcem.report import document as doc
from dcem.report.words import in_field_words


def to_json(document: doc.Document, words: str = "general") -> str:
    """The verdict, the key numbers, the findings, and `document.data`: all numbers, by name."""
    document = in_field_words(document, words)
    plain: dict[str, Any] = {"title": document.title, "words": words}
    if document.opening is not None:
        verdict = document.opening.verdict
        plain["verdict"] = to_plain(verdict) | {"most_severe": verdict.most_severe}
        plain["key_numbers"] = [
            {"label": number.label, **_cell_value(number.cell)}
            for number in document.opening.numbers
        ]
    plain |= to_plain(document.data)
    if document.findings is not None:
        plain["conclusions"] = plain.get("findings", [])  # one by one, as values
        shown = ("key", "severity", "headline", "text", "remedy")
        items = document.findings.items
        plain["findings"] = [{name: getattr(one, name) for name in shown} for one in items]
    return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"


def _cell_value(cell: doc.Cell) -> dict[str, Any]:
    if isinstance(cell, doc.Number):
        return to_plain(cell.estimate)
    if isinstance(cell, doc.Count):
        return {"value": cell.value}
    if isinstance(cell, doc.Missing):
        return {"value": None, "reason": cell.reason or cell.what}
    return {"value": cell if isinstance(cell, str) else cell.name}
