"""A saved result read again, so that its page can be written anew: the way back of `to_json`.

Numbers come back with the six digits that were written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from dcem.audit.positives_only_findings import FoundAudit
from dcem.audit.results import Audit
from dcem.compare.positives_only import FoundComparison
from dcem.compare.results import TableComparison
from dcem.files import read_bytes
from dcem.hooks import above
from dcem.metrics.plain import from_plain
from dcem.monitor.results import Monitoring
from dcem.report.document import Document
from dcem.table.disclosure import SMALL, WITHHELD
from dcem.table.messages import InputError

FAULTS = (  # what comes of values that are of the right type and make no sense together
    ArithmeticError, AttributeError, LookupError, RuntimeError, StopIteration, TypeError, ValueError
)  # fmt: skip


def read_result(path: str | Path) -> Document:
    """The document of an audit, a comparison or a look at a model that was saved as JSON."""
    path = Path(path)
    saved = _loaded(path)
    kind = _kind(saved)
    if kind is None:
        raise InputError(
            f"{path}: not a saved audit, comparison or monitoring. Give a JSON file that `dcem "
            "audit` or `dcem monitor` wrote, or the comparison.json of `dcem compare`."
        )
    with as_it_was_saved(path):
        of_audit = {"data": saved["made"], "small_cells": True}  # small ones are not in the file
        more = of_audit if kind in (Audit, FoundAudit) else {}
        return above(kind._document)(_result(kind, saved), str(saved["title"]), **more)


def read_comparison(path: str | Path) -> TableComparison | FoundComparison:
    """A comparison that was saved as JSON; of its counts, those that may be shown."""
    path = Path(path)
    saved = _loaded(path)
    kind = _kind(saved)
    if kind not in (TableComparison, FoundComparison):
        raise InputError(f"{path}: not a comparison that `dcem compare` saved.")
    with as_it_was_saved(path):
        comparison = _result(kind, saved)
        above("to_html")(comparison.document())  # what cannot be shown is no comparison
        return comparison


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
    return from_plain(kind, saved)


@contextmanager
def as_it_was_saved(path: Path) -> Iterator[None]:
    """Say of a result that cannot be read, or shown, that it is not as dcem saved it."""
    try:
        yield
    except InputError:
        raise
    except FAULTS as error:
        raise InputError(
            f"{path}: not a result of this version of dcem, or altered since ("
            f"{type(error).__name__}: {str(error)[:200]}). Compute it again from the table."
        ) from None


def _loaded(path: Path) -> Any:
    try:
        return json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
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
