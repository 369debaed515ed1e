"""Which column plays which part in a user's table, and what some of its values mean."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dcem.table import checks


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The parts that columns play; a column that is not named here is a feature.

    Attributes
    ----------
    label
        The observed outcome.
    tested
        Who was tested, yes or no; without it, a label that is missing (or one of
        `untested_value`) means that nobody looked.
    group
        The columns that make up the group; several are crossed.
    id
        The person behind a row: a person's rows stay in one fold and one resample.
    weight
        How much a row counts.
    truth
        The true outcome of everybody, where it exists; for judging only, never a feature.
    exclude
        Columns to leave alone.
    category
        Columns of numbers that are codes, not quantities.
    include
        Columns to keep as features although they look like identifiers.
    positive
        Label values that mean yes; other observed values then mean no.
    untested_value
        Label values that mean that nobody looked.
    missing
        Spellings of a missing value, in any column. An empty cell is always missing.
    group_as_feature
        Whether the outcome model may see the group.
    """

    label: str
    tested: str | None = None
    group: tuple[str, ...] = ()
    id: str | None = None
    weight: str | None = None
    truth: str | None = None
    exclude: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()
    untested_value: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    group_as_feature: bool = False

    def resolved(self, columns: Sequence[str]) -> Roles:
        """These roles for a table with these columns: lists with commas split, names checked.

        "race,sex" is one name if there is such a column, and otherwise two.
        """
        lists: dict[str, Any] = {
            name: split_where_known(getattr(self, name), columns)
            for name in ("group", "exclude", "category", "include")
        }
        resolved = replace(self, **lists)
        singles = {
            name: getattr(self, name) for name in ("label", "tested", "id", "weight", "truth")
        }
        named = [column for column in singles.values() if column is not None]
        checks.require_columns(columns, [*named, *(c for some in lists.values() for c in some)])
        taken = checks.assign_roles(group=resolved.group, **singles)
        for column in resolved.exclude:
            if column in taken:
                raise checks.InputError(
                    f"Column {column!r} was given as {taken[column]!r} and as excluded. A column "
                    "with a role of its own is no feature already; take it out of one of the two."
                )
        return resolved

    def of(self, column: str) -> str:
        """The role of a column: "label", "group", ..., "excluded", or "feature"."""
        for role in ("label", "tested", "id", "weight", "truth"):
            if getattr(self, role) == column:
                return role
        if column in self.group:
            return "group"
        return "excluded" if column in self.exclude else "feature"

    def to_plain(self) -> dict[str, Any]:
        """The roles that were given, as JSON knows them."""
        plain = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(self).items()
        }
        return {name: value for name, value in plain.items() if value}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Roles:
        """The roles that `to_plain` wrote."""
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in plain.items()
        }
        return cls(**given)


def split_where_known(given: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Each entry as it is if it is known, else cut at its commas if that gives known ones."""
    found: list[str] = []
    for entry in given:
        pieces = [piece.strip() for piece in entry.split(",")]
        if entry not in known and len(pieces) > 1 and any(piece in known for piece in pieces):
            found += pieces
        else:
            found.append(entry)
    return tuple(dict.fromkeys(found))
