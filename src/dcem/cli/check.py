"""`dcem check`: in under a minute, whether a table is ready, and what each step will take."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dcem.cli import _table_options as options
from dcem.cli._progress import telling
from dcem.cli._settings import given_again

if TYPE_CHECKING:
    from dcem.compare.first_look import FirstLook
    from dcem.table.labels import SelectiveLabels

CHANCE = 0.525  # an AUC below it is no better than chance on a few thousand rows
UNSURE = 2.0  # other programs slow a machine down: a time may be so many times as long, or short
STEPS = {  # command -> what to write
    "audit": "--report audit.html",
    "compare": "--report comparison.html --out .",  # where fit looks for it
    "fit": "--out model",
}


@options.takes_roles(partly=True)
def check(
    context: typer.Context,
    table: options.TableArgument,
    roles: dict[str, Any],
    query: options.Query = None,
    words: options.Words = "general",
) -> None:
    """Is the table ready? Checks roles, leaks and overlap, and estimates the time of each step.

    Takes under a minute: overlap is judged from a few thousand rows, and `dcem audit` examines it
    fully. Without roles, those that `dcem init` would propose are used and shown.
    """
    from dcem.app.commands import as_options
    from dcem.cli._console import Console
    from dcem.cli.init import show
    from dcem.compare.first_look import first_look
    from dcem.compare.one_column import about_dominant
    from dcem.report.words import speak
    from dcem.scoring.fit import mention_few_results
    from dcem.table import Roles, propose_roles, read_table
    from dcem.table.messages import InputError

    console, aside = Console(highlight=False), Console(stderr=True, highlight=False)
    say, needed = speak(words), given_again(context)
    if "label" not in roles:
        with telling({}, aside) as progress:
            progress("looking at the columns")
            proposal = propose_roles(table, query, **roles)
        console.print("[bold]Proposed roles[/bold], since no label was given:")
        show(proposal, console)
        if "label" not in proposal.roles:
            raise InputError("There is nothing to check without a label. Name it with `label`.")
        if any(question.role != "group" for question in proposal.questions):
            raise InputError(
                "The table leaves roles open. Let `dcem init` write the questions down, and answer "
                "them; or give the roles as options."
            )
        roles = {**roles, **proposal.roles}
        needed = as_options(roles) + given_again(context, ("config", "query", "words"))
        console.print()
    with telling({}, aside) as progress:
        progress("reading the table")
        read = read_table(table, Roles(**roles), query)
    options.show_columns(read, console, say, whole=True)
    options.mention_who_was_tested(read, table, query, console, say)
    after = "somebody was found" if read.problem.positives_only else "the decision to test"
    others = "other " * bool(read.leaks)
    known = f"Only you can know whether {others}columns were recorded after {after}."
    console.print(say(known))
    console.print()
    say = speak(words, read.problem.group_names)
    console.print(read.problem.summary(small_cells=False, say=say), markup=False)
    mention_few_results(read.problem)
    with telling({}, aside) as progress:
        progress("looking at a few thousand rows")
        look = first_look(read.problem)
        dominant = about_dominant(read.problem, read.encoder)
    options.show_finding(dominant, console, say)
    if not read.problem.positives_only:
        _show_overlap(look, console, say)
    _show_times(seconds_of(read.problem), needed, table, console)


def _show_overlap(look: FirstLook, console: Any, say: Callable[[str], str]) -> None:
    from rich.markup import escape

    from dcem.text import group, in_short, number, percent

    console.print()
    if not look.overlap:
        console.print(say("Everybody is tested, or nobody is: there is no overlap to examine."))
        return
    rows = f"a quick model of {look.rows:,} rows"
    told = (
        f"Who is tested can be predicted with an AUC of {number(look.predictable, 2)} "
        f"({rows}; chance alone gives .5)."
    )
    if look.predictable < CHANCE:
        told = f"Who is tested cannot be predicted from the features by {rows}."
    console.print(say(told))
    for name, one in look.overlap.items():
        if name not in look.too_few and not one.complete:
            what = one.reason.removeprefix("no overlap: ") or (
                f"the tests represent {percent(one.reach)} of the people; hardly anybody like the "
                "others was tested."
            )
            whose = escape(group(name))
            console.print(
                f"[yellow]overlap among these rows, {whose}:[/yellow] {escape(say(what))}"
            )
    asked = [one for name, one in look.overlap.items() if name not in look.too_few]
    if all(one.complete for one in asked):
        seen = (
            f"Overlap: a quick look at these {look.rows:,} rows finds nobody out of reach of the "
            "tests; the audit examines this fully."
        )
        console.print(say(seen))
    if look.too_few:
        few = in_short([*map(group, look.too_few)])
        console.print(f"Too few of these rows to judge overlap in: {escape(few)}.")


def seconds_of(problem: SelectiveLabels) -> dict[str, float]:
    """What each step takes on this machine, about."""
    from dcem.audit.run import audit_steps
    from dcem.compare.durations import compare_steps, drawing_seconds, fit_seconds, pace
    from dcem.methods.choosing import DEFAULT, RIVALS
    from dcem.methods.registry import works_here

    methods = [name for name in (DEFAULT, *RIVALS) if works_here(name)]
    compared = sum(compare_steps(problem, methods).values()) + drawing_seconds(len(methods))
    audited = sum(audit_steps(problem).values())
    fitted = sum(fit_seconds(problem))
    return {
        name: pace() * takes for name, takes in zip(STEPS, (audited, compared, fitted), strict=True)
    }


def _show_times(seconds: dict[str, float], needed: list[str], table: Path, console: Any) -> None:
    from rich.markup import escape

    from dcem.table.remote import as_named
    from dcem.text import time_span

    console.print("\nEstimated time of each step, if this machine stays as busy as it is now:")
    for name, write in STEPS.items():
        long = time_span(seconds[name] / UNSURE, seconds[name] * UNSURE)
        line = f"{shlex.join(['dcem', name, as_named(table), *needed])} {write}"
        console.print(f"  [bold]{name:8}[/bold] {long}")
        console.print(f"    {escape(line)}", soft_wrap=True)
