"""Which column plays which role: every column one, no column two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dcem.table.messages import InputError, require_unique


def assign_roles(*, group: Sequence[str], **single: str | None) -> dict[str, str]:
    """Role of each column that has one, by column name; two roles for one column are refused."""
    roles: dict[str, str] = {}
    pairs = [*single.items(), *(("group", column) for column in group)]
    for role, column in pairs:
        if column is None:
            continue
        if column in roles:
            raise InputError(
                f"Column {column!r} was given as {roles[column]!r} and as {role!r}. Each column "
                "has one role; copy it under another name if it really plays both."
            )
        roles[column] = role
    return roles


def check_features_have_no_role(features: Sequence[str], roles: Mapping[str, str]) -> None:
    """Refuse a feature that is also the label, `tested`, the group, the id or the weight."""
    require_unique(features, "The list of features")
    for column in features:
        if column in roles:
            raise InputError(
                f"Column {column!r} was given as {roles[column]!r} and also listed as a feature. "
                "Each column has one role; take it out of the features. If a model may really use "
                "it, add a copy of it under another name."
            )
