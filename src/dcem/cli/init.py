"""`dcem init`: roles proposed by looking at the table, in a file that every command reads."""

import dataclasses
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from dcem.cli import _table_options as options


@options.takes_roles(partly=True, without=("group_as_feature",))
def init(
    table: options.TableArgument,
    roles: dict[str, Any],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write. Default: dcem.toml beside the table."),
    ] = None,
    query: options.Query = None,
    words: Annotated[
        str | None,
        typer.Option(help=f"{options.VOCABULARY} Default: what the names of the columns suggest."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the file if it exists.")
    ] = False,
) -> None:
    """Propose what the columns of a table mean, and write that to dcem.toml.

    Gives the reason for every role, and lists what is in doubt. Read the file and change what is
    wrong; the other commands then need no options. Roles that you give as options are kept. Where
    the table leaves a role open, a terminal asks; elsewhere the question is written to the file,
    and the exit status is 2.
    """
    import sys

    from rich.markup import escape

    from dcem.cli._console import Console
    from dcem.files import require_file_place, write_text
    from dcem.report.words import speak
    from dcem.table import propose_roles
    from dcem.table.candidates import field_of
    from dcem.table.messages import InputError
    from dcem.table.propose import Suggestion
    from dcem.table.remote import as_named, is_fetched
    from dcem.table.settings import NAME, Settings, find_settings, settings_text

    beside = None if is_fetched(table) else table
    path = out or (Path(NAME) if beside is None else table.parent / NAME)
    if path.exists() and not replace:
        raise InputError(
            f"{path} already exists. Edit it, write to another file with `out`, or replace it with "
            "`replace`."
        )
    speak(words or "general")  # refuses words it does not know
    require_file_place(path)
    console = Console(highlight=False)
    with Console(stderr=True).status(f"looking at {table} ..."):
        proposal = propose_roles(table, query, **roles)
    declined: list[str] = []  # roles that a person left open
    while sys.stdin.isatty() and console.is_terminal:
        question = next((q for q in proposal.questions if q.role not in declined), None)
        if question is None:
            break
        answer = ask(question, proposal.columns, console)
        roles = {**roles, **answer}
        declined += [] if answer else [question.role]
        proposal = propose_roles(table, query, **roles)
    shared, found = {"query": query} if query else {}, proposal.suggestions
    field, names = (words, ()) if words else field_of(proposal.columns)
    if words or names:
        why = f"Column names suggest {field}: {', '.join(names)}." if names else "As given."
        shared, found = {"words": field, **shared}, (*found, Suggestion("words", field, why))
    show(dataclasses.replace(proposal, suggestions=found), console)
    reasons = {(one.role, one.value): one.reason for one in found}
    settings = Settings(beside, proposal.roles, {"": shared})
    open_questions = proposal.questions
    text = settings_text(
        settings, reasons=reasons, doubts=proposal.doubts, questions=open_questions
    )
    write_text(path, text)
    check = f"dcem check {shlex.quote(as_named(table))}"
    if find_settings(table) != path:
        check += f" --config {shlex.quote(str(path))}"
    first = "Read it"
    if open_questions:
        several = f"{len(open_questions)} " * (len(open_questions) > 1)
        first = f"Answer the {several}open question{'s' * bool(several)} in it"
    said = f"\nWrote [bold]{escape(str(path))}[/bold]. {first}, change what is wrong, then: "
    console.print(said + escape(check), soft_wrap=True)  # a command is copied in one piece
    if open_questions:
        raise typer.Exit(2)


def ask(question: Any, columns: Any, console: Any) -> dict[str, Any]:
    """Ask at a terminal; return the answer as arguments of `Roles`, or nothing to leave it open."""
    from rich.markup import escape

    from dcem.table.messages import did_you_mean
    from dcem.table.roles import Roles

    answers = [answer for answer in question.answers if answer[0]]
    show_question(question, console, numbered=True)
    while True:
        typed = typer.prompt(
            "Number, or name of a column (Enter leaves it open)", default="", show_default=False
        ).strip()
        if not typed:
            return {}
        if typed.isdecimal() and 1 <= int(typed) <= len(answers):
            return dict(answers[int(typed) - 1][0])
        if typed in columns and question.role not in Roles.named("values"):
            return {question.role: typed}
        console.print(escape(f"Neither an answer nor a column.{did_you_mean(typed, columns)}"))


def show_question(question: Any, console: Any, *, numbered: bool = False) -> None:
    """Print an open question and its possible answers."""
    from rich.markup import escape

    from dcem.table.roles import as_list
    from dcem.text import listed

    console.print(f"[yellow]question:[/yellow] {escape(question.text)}", soft_wrap=True)
    number = 0
    for roles, why in question.answers:
        number += bool(roles)
        mark = f"{number}." if numbered and roles else "-"
        named = {
            name: [entry if entry != "" else "''" for entry in as_list(value)]
            for name, value in roles.items()
            if value
        }
        answer = "; ".join(f"{role.replace('_', ' ')}: {listed(v, 9)}" for role, v in named.items())
        line = f"  {mark} {answer + '. ' if answer else ''}{why}"
        console.print(escape(line), soft_wrap=True)


def show(proposal: Any, console: Any) -> None:
    """Print what was proposed, and what is in doubt."""
    from rich.markup import escape
    from rich.table import Table as Grid

    grid = Grid(box=None, pad_edge=False, header_style="dim")
    for heading in ("role", "column or value", "why"):
        grid.add_column(heading, no_wrap=heading == "role")
    for one in proposal.suggestions:
        grid.add_row(one.role.replace("_", " "), escape(one.value), escape(one.reason))
    console.print(grid)
    for doubt in proposal.doubts:
        spelled = escape(options.options_spelt(doubt))
        console.print(f"[yellow]check:[/yellow] {spelled}", soft_wrap=True)
    for question in proposal.questions:
        show_question(question, console)
