"""The method to take for a table, by a comparison of it that was saved."""

from __future__ import annotations

import json
from pathlib import Path

from dcem.methods.choosing import Choice, choose, choose_from
from dcem.table import UserTable
from dcem.table.messages import InputError


def find_comparison(table: UserTable, given: Path | None, *beside: Path) -> Path | None:
    """The saved comparison of a table: the one given, else the first of those `beside` it.

    `given` is a `comparison.json` that `dcem compare` wrote; it must be of this table. In the
    folders `beside` one of another table is passed over.
    """
    for place in [given] if given else [folder / "comparison.json" for folder in beside]:
        if (given or place.is_file()) and _chosen(place, table) is not None:
            return place
    if given is not None:
        raise InputError(
            f"{given} is not a comparison of this table: its file has changed, or another one "
            "was compared. Compare it again, or name the method."
        )
    return None


def choice_for(table: UserTable, comparison: Path | None, *beside: Path) -> Choice:
    """The method to take for a table by its saved comparison (`find_comparison`), and why."""
    place = find_comparison(table, comparison, *beside)
    record = not table.roles.no_record
    return (_chosen(place, table) if place else None) or choose(record=record)


def _chosen(place: Path, table: UserTable) -> Choice | None:
    try:
        saved = json.loads(place.read_text(encoding="utf-8"))
        return choose_from(saved, table.source.sha256, record=not table.roles.no_record)
    except (OSError, ValueError) as error:
        raise InputError(f"{place} cannot be read as a comparison: {error}") from None
