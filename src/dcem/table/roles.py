"""Which column plays which part in a user's table, and what some of its values mean.

A role is declared once, here: the field of `Roles` is its name in Python, the command line makes an
option of it, and `help` and `kind` say what it means and how it is checked. Nothing heavy is
imported, so that `--help` answers at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import Any

from dcem.table.messages import (
    InputError,
    quoted,
    require_columns,
    require_one_of,
    require_unique,
)

LIST = "Repeat it, or separate with commas."
RATE = ".6; .5-.7, a 95 % interval; F=.6,M=.8 by group; or a column."
POSITIVE_UNTESTED = ("tested", "untested")  # what a row may count as
WILDCARDS = "Patterns such as `lab_*` work."


class Unstated(tuple[str, ...]):
    """An empty list that nobody gave: an empty list that somebody gave is an answer."""


def _role(kind: str, help: str, default: Any = None) -> Any:
    """A field of `Roles`.

    `kind` is "column" (one), "columns" or "values" (lists), "value", "rate" (a value, or a column
    that holds one per row) or "flag". Only what can be set has a `help`; a field without one is
    worked out from the table.
    """
    empty: Any = {"columns": (), "values": (), "flag": False}.get(kind)
    return field(
        default=empty if default is None else default, metadata={"kind": kind, "help": help}
    )


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The parts that columns play; a column that is not named here is a feature.

    Where a list is asked for, a single name may be given as it is: `Roles(group="race")`.
    """

    label: str = field(metadata={"kind": "column", "help": "Column with the observed outcome."})
    tested: tuple[str, ...] = _role(
        "columns",
        "Column that says who was tested; with several, any one counts. Default: every row that "
        f"has a label. {LIST}",
        Unstated(),
    )
    positives_only: bool = _role(
        "flag", "The label says only who was found positive: nobody recorded who was tested."
    )
    group: tuple[str, ...] = _role("columns", f"Column with the group; several are crossed. {LIST}")
    reference_group: str | None = _role("value", "Group that the others are compared with.")
    id: str | None = _role(
        "column", "Column that identifies the person; a person's rows stay together."
    )
    time: str | None = _role(
        "column",
        "Column with the time of the decision to test, a date or a number; models are then judged "
        "on rows later than those they were fitted to.",
    )
    until: str | None = _role(
        "value", "Last time for which all results are in; rows with a later `time` are left out."
    )
    weight: str | None = _role(
        "column", "Column with the weight of each row; a row of weight 0 is left out."
    )
    testing_probability: str | None = _role(
        "column",
        "Column with each row's known probability of being tested, if tests were drawn; or the "
        "list that next-tests wrote.",
    )
    test_sensitivity: str | float | Mapping[str, str | float] | None = _role(
        "rate", f"Share of positives that the test finds, if it misses some: {RATE}"
    )
    test_specificity: str | float | Mapping[str, str | float] | None = _role(
        "rate", f"Share of negatives that the test clears, if it raises false alarms: {RATE}"
    )
    prevalence: str | float | Mapping[str, str | float] | None = _role(
        "value",
        "Share of people who have the outcome, if it is known from elsewhere: .12; .10-.14, a 95 % "
        "interval; F=.1,M=.12 by group.",
    )
    decider: str | None = _role(
        "column", "Column that says who decided whom to test: a clinic, an officer, a judge."
    )
    truth: str | None = _role(
        "column", "Column with everybody's true outcome, if it exists; for judging only."
    )
    features: tuple[str, ...] = _role(
        "columns", f"Column to use as a feature; all others are then left out. {WILDCARDS} {LIST}"
    )
    exclude: tuple[str, ...] = _role(
        "columns", f"Column to leave out of the features. {WILDCARDS} {LIST}"
    )
    category: tuple[str, ...] = _role(
        "columns", f"Column whose numbers are codes, not quantities. {WILDCARDS} {LIST}"
    )
    testing_only: tuple[str, ...] = _role(
        "columns",
        "Feature that affects who is tested but not the outcome (an excluded variable). "
        f"{WILDCARDS} {LIST}",
    )
    include: tuple[str, ...] = _role(
        "columns", f"Column to keep although it looks like an identifier. {WILDCARDS} {LIST}"
    )
    positive: tuple[str, ...] = _role(
        "values", f"Label value that means yes; all others then mean no. {LIST}"
    )
    untested_value: tuple[str, ...] = _role("values", f"Label value that means: not tested. {LIST}")
    positive_untested: str | None = _role(
        "value",
        "How rows count that are positive although not tested: as tested, or as untested, without "
        "their result. Default: they are an error.",
    )
    missing: tuple[str, ...] = _role(
        "values",
        f"Code for a missing value, in every column (such as '?') or in one (such as age=99). "
        f"{LIST}",
    )
    group_as_feature: bool = _role("flag", "Let the outcome model see the group.")
    # settled by reading, not given: no `help`
    label_is_number: bool = _role("flag", "")
    negative: tuple[str, ...] = _role("values", "")

    def __post_init__(self) -> None:
        for role in fields(self):
            value = getattr(self, role.name)
            if value is None and isinstance(role.default, Unstated):
                object.__setattr__(self, role.name, role.default)
            elif role.metadata["kind"] in ("columns", "values") and not isinstance(value, Unstated):
                object.__setattr__(self, role.name, tuple(map(str, as_list(value))))
            elif role.type in ("str", "str | None") and value is not None:  # a number, a date
                object.__setattr__(self, role.name, str(value))
        if self.positive_untested is not None:
            require_one_of("positive_untested", self.positive_untested, POSITIVE_UNTESTED)

    @classmethod
    def named(cls, *kinds: str) -> tuple[str, ...]:
        """The names of the roles of these kinds."""
        return tuple(role.name for role in fields(cls) if role.metadata["kind"] in kinds)

    @classmethod
    def settable(cls) -> tuple[str, ...]:
        """The names of the roles that a person can set."""
        return tuple(role.name for role in fields(cls) if role.metadata["help"])

    def resolved(self, columns: Sequence[str]) -> Roles:
        """These roles for a table with these columns: lists and wildcards spelled out, checked.

        "race,sex" is one name if there is such a column, and otherwise two. A column keeps its role
        where a wildcard alone names it as a feature or as none.
        """
        lists: dict[str, Any] = {
            name: spelled_out(getattr(self, name), columns) for name in self.named("columns")
        }
        pieces = (piece.strip() for entry in self.missing for piece in entry.split(","))
        lists["missing"] = tuple(dict.fromkeys(pieces))
        own = [entry.rpartition("=")[0] for entry in lists["missing"]]
        require_columns(columns, [column for column in own if column])
        singles = {name: getattr(self, name) for name in self.named("column")}
        singles |= self.rate_columns(columns)
        named = [column for column in singles.values() if column is not None]
        listings = [c for name in self.named("columns") for c in lists[name]]
        require_columns(columns, [*named, *listings])
        taken = assign_roles(tested=lists["tested"], group=lists["group"], **singles)
        for name in ("features", "exclude", "testing_only"):
            by_name = split_where_known(getattr(self, name), columns)
            lists[name] = tuple(c for c in lists[name] if c in by_name or c not in taken)
        for column in lists["exclude"]:
            if column in taken:
                raise InputError(
                    f"Column {column!r} was given as {taken[column]!r} and as excluded. A column "
                    "with another role is not a feature anyway: remove it from one of the two."
                )
        check_features_have_no_role(lists["features"], taken)
        if not self.tested:
            del lists["tested"]
        return replace(self, **lists)

    @property
    def everybody_tested(self) -> bool:
        """Whether an empty list says that every row with a label was tested."""
        stated = not isinstance(self.tested, Unstated)
        return stated and not self.tested and not self.positives_only

    @property
    def no_record(self) -> bool:
        """Whether only the found are known, and not what share of the positives they are."""
        stated = self.test_sensitivity is not None or self.test_specificity is not None
        return self.positives_only and not stated

    def of(self, column: str) -> str:
        """The role of a column: "label", "group", ..., "excluded", or "feature"."""
        for role in self.named("column", "rate"):
            if getattr(self, role) == column:
                return role.replace("_", " ")
        for role in ("tested", "group"):
            if column in getattr(self, role):
                return role
        left_out = column in self.exclude or (self.features and column not in self.features)
        return "excluded" if left_out else "feature"

    def is_feature(self, column: str) -> bool:
        """Whether models see it: a feature, or a group that may be one."""
        role = self.of(column)
        return role == "feature" or (role == "group" and self.group_as_feature)

    def missing_in(self, column: str) -> tuple[str, ...]:
        """What stands for a missing value in a column."""
        return missing_in(column, self.missing)

    def rate_columns(self, columns: Sequence[str]) -> dict[str, str]:
        """The rates that are columns: role -> column."""
        given = {name: getattr(self, name) for name in self.named("rate")}
        return {name: text for name, text in given.items() if text in columns}

    def to_plain(self) -> dict[str, Any]:
        """The roles that were given, as JSON knows them."""
        plain = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(self).items()
        }
        stated = ("tested",) * self.everybody_tested
        return {name: value for name, value in plain.items() if value or name in stated}

    def in_words(self) -> dict[str, str]:
        """The same for a reader: role -> what was given."""
        words = {}
        for name, value in self.to_plain().items():
            if name in self.settable():
                text = ", ".join(value) if isinstance(value, list) else str(value)
                text = text or "everybody with a label"
                words[name.replace("_", " ")] = "yes" if value is True else text
        return words

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Roles:
        """The roles that `to_plain` wrote."""
        return cls(**plain)


def missing_in(column: str, missing: Collection[str]) -> tuple[str, ...]:
    """What stands for a missing value in a column: `99` in any, `age=99` in one.

    >>> missing_in("age", ("?", "age=99")), missing_in("sex", ("?", "age=99"))
    (('?', '99'), ('?',))
    """
    parts = (entry.rpartition("=") for entry in missing)
    return tuple(value for own, _, value in parts if own in ("", column))


def as_list(given: Any) -> list[Any]:
    """Entries, where one may be given as it is, or none.

    >>> as_list(None), as_list("race"), as_list(0), as_list(("race", "sex"))
    ([], ['race'], [0], ['race', 'sex'])
    """
    if given is None:
        return []
    return [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)


def assign_roles(**given: str | Sequence[str] | None) -> dict[str, str]:
    """Role of each column that has one, by column name; two roles for one column are refused."""
    roles: dict[str, str] = {}
    pairs = [(role, column) for role, columns in given.items() for column in as_list(columns)]
    for role, column in pairs:
        if column in roles:
            raise InputError(
                f"Column {column!r} was given as {roles[column]!r} and as {role!r}. Each column "
                "has one role; if it really has both, add a copy under another name."
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
                "Each column has one role: remove it from the features. If a model may really use "
                "it, add a copy under another name."
            )


def split_where_known(given: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Each entry as it is if it is known, else cut at its commas."""
    found: list[str] = []
    for entry in given:
        pieces = [piece.strip() for piece in entry.split(",")]
        found += [entry] if entry in known else [piece for piece in pieces if piece]
    return tuple(dict.fromkeys(found))


def spelled_out(given: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Names without commas and wildcards; a pattern that fits no column is an error."""
    found: list[str] = []
    for entry in split_where_known(given, columns):
        if entry in columns or not any(mark in entry for mark in "*?["):
            found.append(entry)
            continue
        fitting = [column for column in columns if fnmatchcase(column, entry)]
        if not fitting:
            raise InputError(f"No column matches {entry!r}. The columns are: {quoted(columns)}.")
        found += fitting
    return tuple(dict.fromkeys(found))
