"""The roles that were clicked: from a form to `Roles`, and what they make of the table."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from dcem.app.forms import Posted
from dcem.app.look import values_of
from dcem.table.load import UserTable, naming, read_table
from dcem.table.messages import DataWarning, InputError, listed
from dcem.table.propose import Proposal, propose_roles
from dcem.table.read import read_batches, read_header
from dcem.table.roles import Roles
from dcem.table.settings import NAME as SETTINGS
from dcem.table.settings import read_settings
from dcem.table.values import yes_no

TRIED = 50_000  # rows that roles are tried on
FEATURE, LEFT_OUT = "feature", "exclude"
# What a column can be clicked to be, in the order of the buttons, and how that is said.
OFTEN = {
    FEATURE: "feature",
    "label": "outcome",
    "tested": "tested?",
    "group": "group",
    "id": "person",
    LEFT_OUT: "leave out",
}
RARE = tuple(role for role in Roles.named("column") if role not in OFTEN)
WORDS = {"testing_probability": "chance of a test"}
CLICKED = OFTEN | {role: WORDS.get(role, role.replace("_", " ")) for role in RARE}
TYPED = ("exclude", "category", "include", "missing")  # lists that can be typed, too


def proposal(path: Path) -> Proposal:
    """What the table's columns seem to be; looked at once."""
    about = path.stat()
    return _proposal(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=8)
def _proposal(path: Path, changed: int, size: int) -> Proposal:
    return propose_roles(path)


def told(path: Path) -> dict[str, Any]:
    """The roles of a settings file beside the table, if it is about this table."""
    file = path.parent / SETTINGS
    if not file.is_file():
        return {}
    settings = read_settings(file)
    is_of = settings.table is None or settings.table.resolve() == path
    return settings.roles if is_of else {}


def as_list(value: Any) -> list[str]:
    """One name, several, or none."""
    return [value] if isinstance(value, str) else list(value or ())


def digest(columns: Sequence[str]) -> str:
    """Changes when the columns do: a form is about the columns that it showed."""
    return sha256(repr(list(columns)).encode()).hexdigest()[:16]


def clicked(form: Posted, path: Path) -> dict[str, Any]:
    """The roles that a form holds, as arguments of `Roles`; not checked yet."""
    columns = read_header(path)
    if form.get("columns") != digest(columns):
        raise InputError("The table has changed since the page was opened. Look at it again.")
    lists = Roles.named("columns", "values")
    roles: dict[str, Any] = {}
    for place, column in enumerate(columns):
        role = form.get(f"role-{place}", FEATURE)
        if role == FEATURE or role not in CLICKED:
            continue
        if role in lists:
            roles.setdefault(role, []).append(column)
        elif role in roles:  # told by `checked`; the page still shows both
            roles[role] = [*as_list(roles[role]), column]
        else:
            roles[role] = column
    for name in TYPED:
        typed = [line.strip() for line in form.get(name).splitlines() if line.strip()]
        if typed:
            roles[name] = [*roles.get(name, []), *typed]
    if form.get("reference_group"):
        roles["reference_group"] = form.get("reference_group")
    if form.get("group_as_feature"):
        roles["group_as_feature"] = True
    if roles.get("label") and roles["label"] == form.get("values_of"):
        roles |= _meanings(form, path, roles)
    return {name: roles[name] for name in Roles.settable() if name in roles}


def label_values(path: Path, roles: dict[str, Any]) -> list[tuple[str, int]]:
    """The values of the label whose meaning is asked for, with their counts."""
    if roles.get("label", "") not in read_header(path):
        return []
    absent = roles.get("missing", ())
    return [pair for pair in values_of(path, roles["label"]) if pair[0] not in absent]


def needs_meaning(path: Path, roles: dict[str, Any]) -> bool:
    """Whether the label has values whose meaning must be asked for."""
    return any(not meaning(value, roles) for value, _ in label_values(path, roles))


def _meanings(form: Posted, path: Path, roles: dict[str, Any]) -> dict[str, list[str]]:
    """What the values of the label mean; nothing where that is understood without being said."""
    said = {
        value: form.get(f"value-{place}") or usual_meaning(value)
        for place, (value, _) in enumerate(label_values(path, roles))
    }
    unsaid = [value for value, meant in said.items() if not meant]
    if unsaid:
        raise InputError(f"Say what {listed(unsaid)} in column {roles['label']!r} means.")
    if all(meant == usual_meaning(value) for value, meant in said.items()):
        return {}
    wanted = {"positive": "yes", "untested_value": "untested"}
    return {role: [v for v, m in said.items() if m == meant] for role, meant in wanted.items()}


def usual_meaning(value: str) -> str:
    """What a value of the label means if nothing is said: "yes", "no", or "" (it must be said)."""
    return {1.0: "yes", 0.0: "no"}.get(float(yes_no([value])[0]), "")


def meaning(value: str, roles: dict[str, Any]) -> str:
    """What a value of the label means with these roles, as far as is known."""
    if value in roles.get("untested_value", ()):
        return "untested"
    if roles.get("positive"):
        return "yes" if value in roles["positive"] else "no"
    return usual_meaning(value)


def checked(plain: dict[str, Any], path: Path) -> Roles:
    """The roles, if they can be those of the table; otherwise the error a command would give."""
    if not plain.get("label"):
        raise InputError(
            f"No column was chosen as the {CLICKED['label']}: the one that holds what was found, "
            "where somebody looked."
        )
    for role in Roles.named("column"):
        if isinstance(plain.get(role), list):
            raise InputError(
                f"{listed(plain[role])} were all chosen as {CLICKED[role]}. There can be one."
            )
    roles = Roles.from_plain(plain)
    with naming(path):
        roles.resolved(read_header(path))
    tried(path, roles)
    return roles


@dataclass(frozen=True)
class Tried:
    """A table read with its roles: all of it, or its first rows; and what there is to say."""

    table: UserTable
    whole: bool
    notes: tuple[str, ...]

    def kinds(self) -> dict[str, int]:
        """How many columns play each part."""
        return dict(Counter(column.role for column in self.table.columns).most_common())


def tried(path: Path, roles: Roles) -> Tried:
    """Read the table, or the first rows of a long one, with these roles."""
    about = path.stat()
    return _tried(path, roles, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=4)
def _tried(path: Path, roles: Roles, changed: int, size: int) -> Tried:
    batches, rows = [], 0
    for batch in read_batches(path, verbatim=read_header(path)):
        if rows >= TRIED:
            break
        batches.append(batch)
        rows += batch.num_rows
    else:
        rows = 0  # these were all
    with warnings.catch_warnings(record=True) as said, naming(path):
        warnings.simplefilter("always", DataWarning)
        table = read_table(pa.Table.from_batches(batches), roles)
    notes = [str(one.message) for one in said if issubclass(one.category, DataWarning)]
    return Tried(table, rows == 0, tuple(dict.fromkeys(notes)))
