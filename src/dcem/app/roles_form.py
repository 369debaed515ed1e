"""The roles that were clicked: from a form to `Roles`, and what they make of the table."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from dcem.app.forms import Posted
from dcem.app.places import Place, once, values_of
from dcem.table.candidates import field_of
from dcem.table.design import list_given
from dcem.table.load import UserTable, read_table
from dcem.table.messages import DataWarning, InputError, LeakWarning, naming, quoted
from dcem.table.propose import Proposal, propose_roles
from dcem.table.roles import Roles, as_list, spelled_out
from dcem.table.settings import NAME as SETTINGS
from dcem.table.settings import Settings, read_settings
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
RARE_ROLES = tuple(role for role in Roles.named("column") if role not in OFTEN)
WORDS = {"decider": "who decided", "testing_probability": "chance of a test"}
CLICKED = OFTEN | {role: WORDS.get(role, role.replace("_", " ")) for role in RARE_ROLES}
TYPED = {  # lists that can be typed, too
    "exclude": "leave out",
    "features": "use only these as features",
    "category": "numbers that are codes",
    "testing_only": "affect who is tested, but not the outcome",
    "include": "keep, although it looks like an identifier",
    "missing": "codes for a missing value",
}


@once(8)
def proposal(place: Place) -> Proposal:
    """What the table's columns seem to be."""
    return propose_roles(place.path, place.query)


def roles_beside(place: Place) -> dict[str, Any]:
    """The roles of a settings file beside the table, if it is about this table."""
    settings = _beside(place.path)
    return settings.roles if settings.shared.get("query") in (None, place.query) else {}


def words_of(place: Place) -> str:
    """The field whose words reports on a table should use, before anybody says which.

    That of a settings file beside the table, if it is about this table; else that of which names
    of columns speak.
    """
    return str(_beside(place.path).shared.get("words", field_of(proposal(place).columns)[0]))


def query_beside(path: Path) -> str | None:
    """Which table of a file a settings file beside it speaks of, if it does."""
    return _beside(path).shared.get("query")


def _beside(path: Path) -> Settings:
    """The settings file beside a table, if it is about that one."""
    file = path.parent / SETTINGS
    is_own = file.is_file() and not file.is_symlink()  # a link may lead to where nobody may read
    settings = read_settings(file) if is_own else Settings()
    is_of = settings.table is None or settings.table.resolve() == path
    return settings if is_of else Settings()


def digest(columns: Sequence[str]) -> str:
    """Changes when the columns do: a form is about the columns that it showed."""
    return sha256(repr(list(columns)).encode()).hexdigest()[:16]


def pressed(plain: dict[str, Any], columns: Sequence[str]) -> dict[str, str]:
    """Column -> the button that is pressed with these roles, for those that are not features."""
    found = {column: role for role in CLICKED for column in as_list(plain.get(role))}
    if plain.get("features"):
        kept = spelled_out(as_list(plain["features"]), columns)
        found = {**{column: LEFT_OUT for column in columns if column not in kept}, **found}
    return found


def clicked(form: Posted, place: Place) -> dict[str, Any]:
    """The roles that a form holds, as arguments of `Roles`; not checked yet."""
    columns = place.header()
    if form.get("columns") != digest(columns):
        raise InputError("The table has changed since the page was opened. Look at it again.")
    lists = Roles.named("columns", "values")
    roles: dict[str, Any] = {}
    for number, column in enumerate(columns):
        role = form.get(f"role-{number}", FEATURE)
        if role == FEATURE or role not in CLICKED:
            continue
        if role in lists:
            roles.setdefault(role, []).append(column)
        elif role in roles:  # told by `require_roles`; the page still shows both
            roles[role] = [*as_list(roles[role]), column]
        else:
            roles[role] = column
    for name in TYPED:
        typed = [line.strip() for line in form.get(name).splitlines() if line.strip()]
        if typed:
            roles[name] = [*roles.get(name, []), *typed]
    entered = ("reference_group", "testing_probability", "prevalence", "until", "positive_untested")
    roles |= {name: form.get(name) for name in (*entered, *Roles.named("rate")) if form.get(name)}
    roles |= {name: True for name in ("positives_only", "group_as_feature") if form.get(name)}
    if roles.get("label") and roles["label"] == form.get("values_of"):
        roles |= _meanings(form, place, roles)
    return {name: roles[name] for name in Roles.settable() if name in roles}


def recorded_values(place: Place, column: str, roles: dict[str, Any]) -> list[tuple[str, int]]:
    """The values of a column with their counts, but for those that stand for a missing one."""
    if column not in place.header():
        return []
    absent = as_list(roles.get("missing"))
    return [pair for pair in values_of(place, column) if pair[0] not in absent]


def label_values(place: Place, roles: dict[str, Any]) -> list[tuple[str, int]]:
    """The values of the label whose meaning is asked for, with their counts."""
    return recorded_values(place, roles.get("label", ""), roles)


def needs_meaning(place: Place, roles: dict[str, Any]) -> bool:
    """Whether the label has values whose meaning must be asked for."""
    return any(not meaning(value, roles) for value, _ in label_values(place, roles))


def _meanings(form: Posted, place: Place, roles: dict[str, Any]) -> dict[str, list[str]]:
    """What the values of the label mean; nothing where that is understood without being said."""
    said = {
        value: form.get(f"value-{number}") or usual_meaning(value)
        for number, (value, _) in enumerate(label_values(place, roles))
    }
    unsaid = [value for value, meant in said.items() if not meant]
    if unsaid:
        raise InputError(f"Say what {quoted(unsaid)} in column {roles['label']!r} means.")
    if len(said) < 3 and all(meant == usual_meaning(value) for value, meant in said.items()):
        return {}
    wanted = {"positive": "yes", "untested_value": "untested"}
    found = {role: [v for v, m in said.items() if m == meant] for role, meant in wanted.items()}
    if sum(meant == "no" for meant in said.values()) > 1:
        found["untested_value"].append("")  # all other words are results
    return found


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


def require_roles(plain: dict[str, Any], place: Place) -> Roles:
    """The roles, if they can be those of the table; otherwise the error a command would give."""
    if not plain.get("label"):
        raise InputError(
            f"No column was chosen as the {CLICKED['label']}: the one with the result, for those "
            "who were tested."
        )
    for role in Roles.named("column"):
        if isinstance(plain.get(role), list):
            raise InputError(
                f"{quoted(plain[role])} were all chosen as {CLICKED[role]}. Choose only one."
            )
    roles = Roles.from_plain(plain)
    tried(place, roles)
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


@once(4)
def tried(place: Place, roles: Roles) -> Tried:
    """Read the table, or the first rows of a long one, with these roles."""
    rows, whole = place.first_rows(TRIED)
    if not whole and list_given(roles, place.header()):
        roles = replace(roles, testing_probability=None)  # the list is about all rows
    with warnings.catch_warnings(record=True) as said, naming(place.path):
        warnings.simplefilter("always", DataWarning)
        warnings.simplefilter("ignore", LeakWarning)  # the page lists them
        table = read_table(rows, roles)
    notes = [str(one.message) for one in said if issubclass(one.category, DataWarning)]
    return Tried(table, whole, tuple(dict.fromkeys(notes)))
