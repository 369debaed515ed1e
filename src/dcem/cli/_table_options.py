"""The options by which every command that reads a user's table is told what its columns mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dcem.table import Roles, UserTable

PANEL = "What the columns mean"
WIDE = 100  # columns of a terminal
LIST = "Repeat it, or give a list with commas."


def _option(*names: str, help: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=PANEL, show_default=False)


Table = Annotated[
    Path, typer.Argument(help="The table: .csv, .csv.gz or .parquet.", metavar="TABLE")
]
Label = Annotated[str, _option("--label", help="Column with the observed outcome.")]
Tested = Annotated[
    str | None,
    _option("--tested", help="Column that says who was tested. Default: whose label is there."),
]
Group = Annotated[
    list[str] | None,
    _option("--group", help=f"Column with the group; several are crossed. {LIST}"),
]
Id = Annotated[
    str | None, _option("--id", help="Column with the person; a person's rows stay together.")
]
Weight = Annotated[str | None, _option("--weight", help="Column that says how much a row counts.")]
Truth = Annotated[
    str | None,
    _option(
        "--truth", help="Column with everybody's true outcome, if it exists; for judging only."
    ),
]
Exclude = Annotated[
    list[str] | None, _option("--exclude", help=f"Column that is no feature. {LIST}")
]
Category = Annotated[
    list[str] | None,
    _option("--category", help=f"Column whose numbers are codes, not quantities. {LIST}"),
]
Include = Annotated[
    list[str] | None,
    _option("--include", help=f"Column to keep although it looks like an identifier. {LIST}"),
]
Positive = Annotated[
    list[str] | None,
    _option("--positive", help=f"Label value that means yes; others then mean no. {LIST}"),
]
UntestedValue = Annotated[
    list[str] | None,
    _option("--untested-value", help=f"Label value that means that nobody looked. {LIST}"),
]
Missing = Annotated[
    list[str] | None,
    _option("--missing", help=f"Spelling of a missing value, in any column, such as '?'. {LIST}"),
]
GroupAsFeature = Annotated[
    bool, _option("--group-as-feature", help="Let the outcome model see the group.")
]


def read_roles(arguments: Mapping[str, Any]) -> Roles:
    """The roles among the arguments of a command, which hands over its `locals()`.

    Arguments are named as the fields of `Roles`; an option that was not given keeps its default.
    """
    from dcem.table import Roles

    names = {field.name for field in fields(Roles)}
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in arguments.items()
        if name in names and value is not None
    }
    return Roles(**given)


def describe(table: UserTable, rows: str | None = None) -> dict[str, str]:
    """The file, its hash and the roles that were given, for the end of a report.

    `rows` is what is said of their number where the exact one would give a hidden count away.
    """
    told = {
        "file": table.source.name,
        "SHA-256": table.source.sha256,
        "rows": rows or f"{table.source.rows:,}",
        "columns": str(table.source.columns),
    }
    for name, value in table.roles.to_plain().items():
        text = ", ".join(value) if isinstance(value, list) else str(value)
        told[name.replace("_", " ")] = "yes" if value is True else text
    return told


def suspicious(table: UserTable) -> dict[str, str]:
    """Columns that may have been recorded after the decision, and the sign of it."""
    return {column.name: column.flag for column in table.columns if column.flag}


def show_columns(table: UserTable, console: Any) -> None:
    """Print how each column was understood, before anything is computed from it."""
    from rich.markup import escape
    from rich.table import Table as Grid

    source = table.source
    console.print(
        f"[bold]{escape(source.name)}[/bold]: {source.rows:,} rows, {source.columns} columns"
    )
    grid = Grid(box=None, pad_edge=False, header_style="dim")
    wide = console.width >= WIDE
    for heading in ("column", "role", "kind", "missing", "becomes", "note"):
        if heading != "role" or wide:  # in a narrow window, a role stands in the place of the kind
            side: Any = "right" if heading == "missing" else "left"
            grid.add_column(heading, justify=side, no_wrap=heading != "note")
    for column in table.columns:
        missing = "" if column.missing == 0 else _share(column.missing)
        note = "[yellow]see below[/yellow]" if column.flag else escape(column.note)
        dim = column.role in ("excluded", "left out")
        what = (column.role, column.kind) if wide else (_part_of(column),)
        cells = (column.name or "(no name)", *what, missing, _becomes(column))
        grid.add_row(*map(escape, cells), note, style="dim" if dim else None)
    console.print(grid)
    for column in table.columns:
        if column.flag:
            console.print(
                f"[yellow]note:[/yellow] column {escape(repr(column.name))} may have been recorded "
                f"after the decision to test: {escape(column.flag)}. If so, leave it out: "
                f"--exclude {escape(column.name)}"
            )


def _part_of(column: Any) -> str:
    return str(column.kind if column.role == "feature" else column.role)


def _share(missing: float) -> str:
    return "<0.1 %" if missing < 0.001 else f"{missing:.1%}".replace("%", " %")


def _becomes(column: Any) -> str:
    if not column.encoded:
        return ""
    simple = {"date": "days", "number": "itself", "boolean": "0 or 1"}
    many = len(column.encoded)
    return simple.get(column.kind, f"{many} indicator{'s' * (many > 1)}")
