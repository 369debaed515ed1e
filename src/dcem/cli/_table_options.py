"""The options by which every command that reads a user's table is told what its columns mean.

A command takes one argument `roles`; `takes_roles` gives it an option for every field of
`dcem.table.Roles`, with the help that is declared there.
"""

from __future__ import annotations

import inspect
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcem.cli._settings import EMPTY, in_place_of, is_typed, parameter, parameters_of
from dcem.table.roles import Roles
from dcem.text import counted, listed, percent

if TYPE_CHECKING:
    from dcem.table import UserTable
    from dcem.table.columns import Column

PANEL = "What the columns mean"
WRITTEN = ".csv, .csv.gz, .parquet, .arrow, .xlsx, .dta, .sav or .xpt"
WIDE = 100  # columns of a terminal
KINDS = {"number": "numbers", "boolean": "yes/no", "category": "categories", "date": "dates",
         "time": "times of day"}  # fmt: skip
MOST = 12  # names of columns with the same note


def _located(text: str) -> Path:
    if "://" not in text:
        return Path(text)
    from dcem.table.remote import located

    return located(text)


TableArgument = Annotated[
    Path,
    typer.Argument(
        help="The table: a CSV, Parquet, Arrow, Excel, Stata, SPSS, SAS, DuckDB or SQLite file, a "
        "folder of Parquet files, or the URL of one.",
        metavar="TABLE",
        parser=_located,
    ),
]
Query = Annotated[
    str | None,
    typer.Option("--query", help="SQL query, for a database; name of the sheet, for a workbook."),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        help="Ray cluster to join, such as HOST:6379. Default: start one on this machine.",
    ),
]
SampleRows = Annotated[
    int | None,
    typer.Option(
        "--sample-rows",
        min=1000,
        help="Rows to read from a larger table, drawn at random; all rows of a person stay "
        "together. Default: as many as make 30 million cells.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed.")]
Members = Annotated[
    int,
    typer.Option(
        "--members",
        min=1,
        help="Number of models that a method fits and averages; their disagreement is the spread "
        "of a score. No effect on the default, ensemble, which averages its parts.",
    ),
]
BoundsOption = Annotated[
    float | None,
    typer.Option(
        "--bounds",
        metavar="GAMMA",
        help="How strong an unmeasured cause may be: the factor by which the odds of the outcome "
        "may differ, up or down, between untested and tested people with the same features. 1 to "
        "10, such as 2 (docs/bounds.md).",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report", "-r", help="Write the report as one HTML page, and as Markdown beside it."
    ),
]
Markdown = Annotated[
    Path | None,
    typer.Option(help="Write the report as Markdown. Default: beside the page, ending in .md."),
]
Json = Annotated[Path | None, typer.Option(help="Write all numbers as JSON.")]
VOCABULARY = (
    "Vocabulary of the report: general (tested), medicine, credit (approved) or policing "
    "(searched)."
)
Words = Annotated[str, typer.Option("--words", help=VOCABULARY)]


def takes_roles(
    *, without: tuple[str, ...] = (), helps: dict[str, str] | None = None, partly: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace a command's argument `roles` by one option per role.

    `without` names roles that the command has no use for; `helps` changes what is said of some. A
    command that proposes roles takes them `partly`: a dictionary of those that were given.
    """
    shown = [role for role in fields(Roles) if role.metadata["help"] and role.name not in without]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        texts = {role.name: role.metadata["help"] for role in shown} | (helps or {})
        options = [_option(role, texts[role.name], not partly) for role in shown]
        parameters = parameters_of(command)
        place = [one.name for one in parameters].index("roles")
        parameters[place : place + 1] = options

        def run(**given: Any) -> None:
            roles = {role.name: given.pop(role.name) for role in shown}
            roles = {name: value for name, value in roles.items() if value not in (None, False, [])}
            if roles.get("tested") == [EMPTY]:
                roles["tested"] = []
            command(**given, roles=roles if partly else Roles(**roles))

        return in_place_of(command, run, parameters)

    return decorate


def refuse_bounds(roles: Roles, bounds: float | None) -> None:
    """Bounds are about who was not tested, which has to be known."""
    if bounds is not None and roles.positives_only:
        from dcem.table.messages import InputError

        raise InputError(
            "`bounds` needs a record of who was tested, but the label says only who was found "
            "positive (`positives_only`). Leave out one of the two."
        )


def mention_members(context: typer.Context, methods: Sequence[str]) -> bool:
    """Whether a method fits its model several times; if none does, that `members` is unused."""
    from dcem.methods.registry import METHODS
    from dcem.table.messages import notice

    alike = any("n_members" in METHODS[name].__dataclass_fields__ for name in methods)
    if not alike and is_typed(context, "members"):
        notice(f"`members` has no effect: the number of models is fixed in {listed(methods)}.")
    return alike


def entries(given: list[str]) -> list[str]:
    """The entries of an option that may be repeated, and cut at commas."""
    return [piece.strip() for entry in given for piece in entry.split(",") if piece.strip()]


def _option(role: Any, said: str, label_needed: bool) -> inspect.Parameter:
    kinds = {"columns": list[str] | None, "values": list[str] | None, "flag": bool}
    kind: Any = kinds.get(role.metadata["kind"], str | None)
    option = typer.Option(f"--{role.name.replace('_', '-')}", help=said, rich_help_panel=PANEL)
    if label_needed and role.default is MISSING:
        return parameter(role.name, Annotated[str, option])
    return parameter(role.name, Annotated[kind, option], False if kind is bool else None)


def source_facts(table: UserTable) -> dict[str, str]:
    """The file, its hash and the roles that were given, for the end of a report."""
    return {
        "file": table.source.name,
        "SHA-256": table.source.sha256,
        "rows": f"{table.source.rows:,}"
        + (f" of {table.source.drawn_from:,}" if table.source.drawn_from else ""),
        "columns": str(table.source.columns),
        **table.roles.in_words(),
    }


def suspicious(table: UserTable) -> dict[str, str]:
    """Columns that may have been recorded after the decision, and the sign of it."""
    return {column.name: column.flag for column in table.columns if column.flag}


def show_columns(
    table: UserTable, console: Any, say: Callable[[str], str] = str, *, whole: bool = False
) -> None:
    """Print how columns were understood, before anything is computed from them.

    Each of them if `whole`; else in a few lines what was left out or needs a word. Columns that may
    have been recorded after the decision are always named. `say` puts sentences into the words of a
    field.
    """
    from rich.markup import escape

    source = table.source
    console.print(
        f"[bold]{escape(source.name)}[/bold]: {source.rows:,} rows, {source.columns} columns"
    )
    if whole:
        _show_each(table, console)
    else:
        for line in _in_short(table):
            console.print(escape(line), soft_wrap=True)
    for column in table.columns:
        if column.flag:
            sign = say(f"may have been recorded after the decision to test: {column.flag}.")
            console.print(
                f"[yellow]note:[/yellow] column {escape(repr(column.name))} {escape(sign)} "
                "Was it known before the decision? If so, keep it. If it was recorded later, leave "
                f"it out: --exclude {escape(shlex.quote(column.name))}"
            )


def mention_who_was_tested(
    read: UserTable, table: Path, query: str | None, console: Any, say: Callable[[str], str] = str
) -> None:
    """Name the columns that may say who was tested, where everybody counts as tested.

    They are those that `dcem init` proposes as `tested`, or asks about.
    """
    from rich.markup import escape

    from dcem.table import propose_roles

    roles = read.roles
    if read.problem.extent != "everybody" or roles.tested or roles.positives_only:
        return
    settable = [role.name for role in fields(Roles) if role.metadata["help"]]
    known = {name: value for name in settable if (value := getattr(roles, name))}
    proposal = propose_roles(table, query, **known)
    evidence = [one.reason for one in proposal.suggestions if one.role == "tested"]
    for question in proposal.questions:
        if question.role == "tested":
            evidence += [why for _, why in question.answers]
    others = [column for column in proposal.columns if column != roles.label]
    names = [c for why in evidence for c in others if repr(c) in why]
    if names:
        first = listed(list(dict.fromkeys(map(repr, names))), MOST)
        line = say(
            f"Everybody counts as tested, but {roles.label!r} is never, or hardly ever, positive "
            f"for some values or gaps of {first}, which may say who was tested: `dcem init` "
            "asks about it."
        )
        console.print(f"[yellow]note:[/yellow] {escape(line)}", soft_wrap=True)


def show_finding(finding: Any, console: Any, say: Callable[[str], str] = str) -> None:
    """Print a finding and what to do about it; nothing for None."""
    from rich.markup import escape

    if finding is None:
        return
    headline, remedy = (
        "".join(sign if sign.isprintable() else "?" for sign in say(text))
        for text in (finding.headline.replace("`", ""), finding.remedy)
    )
    remedy = remedy.replace("`exclude`", "--exclude")
    console.print(f"[bold red]{finding.severity}:[/bold red] [bold]{escape(headline)}[/bold]")
    console.print(f"What to do: {escape(remedy)}\n")


def _show_each(table: UserTable, console: Any) -> None:
    from rich.markup import escape
    from rich.table import Table as Grid

    grid = Grid(box=None, pad_edge=False, header_style="dim")
    wide = console.width >= WIDE
    for heading in ("column", "role", "kind", "missing", "used as", "note"):
        if heading != "role" or wide:  # in a narrow window, a role stands in the place of the kind
            side: Any = "right" if heading == "missing" else "left"
            least = max(map(len, KINDS)) if heading in ("kind", "used as") else None
            whole = heading != "note"
            grid.add_column(heading, justify=side, no_wrap=whole, min_width=least)
    for column in table.columns:
        missing = "" if column.missing == 0 else _share_missing(column.missing, table.source.rows)
        note = "[yellow]see below[/yellow]" if column.flag else escape(options_spelt(column.note))
        dim = column.role in ("excluded", "left out")
        part = column.kind if column.role == "feature" else column.role
        what = (column.role, column.kind) if wide else (part,)
        cells = (column.name or "(no name)", *what, missing, _becomes(column))
        grid.add_row(*map(escape, cells), note, style="dim" if dim else None)
    console.print(grid)


def _in_short(table: UserTable) -> Iterator[str]:
    """How many columns are features, which were left out, and what a reader should know of some."""
    kinds = Counter(column.kind for column in table.columns if column.encoded)
    by_kind = ", ".join(f"{KINDS.get(kind, kind)}: {many}" for kind, many in kinds.most_common())
    gaps = [column for column in table.columns if column.encoded and column.missing]
    said = ""
    if most := max(gaps, key=lambda column: column.missing, default=None):
        share = _share_missing(most.missing, table.source.rows)
        said = f"; missing values in {len(gaps)}, most in {most.name} ({share})"
    yield f"Features: {counted(kinds.total(), 'column')} ({by_kind}){said}."
    left: dict[str, list[Column]] = {"Left out": [], "Please note": []}
    for column in table.columns:
        if _remark(column):
            left["Left out" if column.role == "left out" else "Please note"].append(column)
    for what, columns in left.items():
        by_note: dict[str, list[str]] = {}
        for column in columns:
            by_note.setdefault(_remark(column), []).append(column.name or "(no name)")
        said = "; ".join(f"{listed(names, MOST)} ({note})" for note, names in by_note.items())
        yield from [f"{what}: {said}."] if said else []
    yield "To see how each column is read: `dcem check` with the same roles."


def _remark(column: Column) -> str:
    """The note of a column, less what is said of most categories."""
    from dcem.table.columns import AS_OTHER

    parts = column.note.split("; ")
    return options_spelt("; ".join(part for part in parts if not part.endswith(AS_OTHER)))


def options_spelt(note: str) -> str:
    """A note with its roles, such as `include`, as options."""
    return re.sub(r"`(\w+)`", lambda found: f"--{found[1].replace('_', '-')}", note)


def _share_missing(missing: float, rows: int) -> str:
    """A share of the rows; one of fewer than ten, or of all but fewer than ten, is not shown."""
    from dcem.table.disclosure import THRESHOLD

    if min(missing, 1 - missing) * rows < THRESHOLD - 0.5:
        return "few" if missing < 0.5 else "all" if missing == 1 else "nearly all"
    return percent(missing, 1)


def _becomes(column: Any) -> str:
    if not column.encoded:
        return ""
    simple = {"date": "days", "time": "hours", "number": "number", "boolean": "0 or 1"}
    many = len(column.encoded)
    return simple.get(column.kind, f"{many} indicator{'s' * (many > 1)}")
