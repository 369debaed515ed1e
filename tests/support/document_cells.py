"""Every cell of a report, wherever it stands."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from dcem.report.document import Cell, Code, Count, Missing, Name, Number


def cells(thing: Any) -> Iterator[Cell]:
    """Every cell below a block or document, those inside folds too."""
    if isinstance(thing, Number | Count | Missing | Name | Code):
        yield thing
    elif isinstance(thing, tuple):
        for item in thing:
            yield from cells(item)
    elif is_dataclass(thing):
        for item in fields(thing):
            yield from cells(getattr(thing, item.name))
