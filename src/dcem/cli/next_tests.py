"""`dcem next-tests`: whom to test next, as probabilities."""

import shlex
from math import isnan
from pathlib import Path
from typing import Annotated

import typer

from dcem.cli import _table_options as options
from dcem.cli._progress import counting
from dcem.cli._settings import given_again
from dcem.text import listed, percent


def next_tests(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="Folder that `dcem fit` wrote.")],
    table: options.TableArgument,
    budget: Annotated[
        float,
        typer.Option(
            help="Number of tests that you can do. If it is at least the number of untested rows, "
            "every probability is 1.",
            min=0,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help=f"List to write: {options.WRITTEN}.")],
    draw_seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Also draw tests with these probabilities, from this seed: adds the column "
            "`drawn`. At most one row per person (the model's --id) is drawn, unless the "
            "probabilities of that person's rows sum to more than 1.",
        ),
    ] = None,
    query: options.Query = None,
    words: options.Words = "general",
) -> None:
    """Whom to test next? Gives each untested person a testing probability, with the reason.

    The probabilities sum to the budget. They are higher where a test would reduce uncertainty or
    disparity between groups, and never zero, because a fixed ranking would leave new gaps. A group
    that is tested less at equal features gets at least its share of the tests. Draw
    tests with them, keep them, and weight the results by their inverse. The label, tested and
    group columns are found by the names that they had when the model was fitted.
    """
    from pandas import concat
    from rich.markup import escape
    from rich.table import Table

    from dcem.cli._console import Console
    from dcem.report.words import BESIDE_A_LIST, speak
    from dcem.scoring import TableModel, next_tests
    from dcem.scoring.next_tests import LESS
    from dcem.table.disclosure import WITHHELD
    from dcem.table.summary import MOST_GROUPS, more_groups
    from dcem.table.write import require_output, write_frame

    console = Console(highlight=False)
    speak(words)  # refuses words it does not know
    require_output(out, table)
    fitted = TableModel.load(model)
    roles = fitted.roles
    say = speak(words, [fitted.estimator.name, roles.label, *roles.tested, *roles.group])
    with console.status("reading ...") as status:
        found = next_tests(
            fitted,
            table,
            budget,
            query=query,
            progress=counting(status),
        )
    people = found.table.assign(reason=found.table["reason"].map(say))
    if draw_seed is not None:
        people = people.assign(drawn=found.draw(draw_seed))
    write_frame(people, out)
    burden = BESIDE_A_LIST.get(words, "")
    for note in [*[burden] * bool(burden), *map(say, found.notes)]:
        console.print("[yellow]note:[/yellow]", escape(note), soft_wrap=True)
    chance = people["probability"]
    known = isinstance(found.untested, int)
    some = f"{found.untested:,}" if known else str(found.untested)
    tests = f"{chance.sum():,.0f} tests, " if known or budget < len(people) else ""
    console.print(
        say(
            f"Untested: {some} of {found.rows:,} rows; {tests}"
            f"probabilities from {percent(chance.min())} to {percent(chance.max())}."
        )
    )
    headings = ["group", "untested", "expected tests", "mean probability"]
    groups = found.by_group
    recorded = bool(groups["tested"].notna().any())  # the file says who was tested
    headings += ["tested now", "tested after"] * recorded
    grid = Table(box=None, pad_edge=False, header_style="dim")
    for heading in headings:
        grid.add_column(say(heading), justify="left" if heading == "group" else "right")
    few = groups["untested"].isna()
    for name, row in concat([groups[~few], groups[few]])[:MOST_GROUPS].iterrows():
        number, expected = row["untested"], row["expected_tests"]
        cells = [f"{number:,.0f}", f"{expected:,.1f}", percent(expected / number)]
        cells += [percent(row[rate]) for rate in ("tested", "tested_after")] * recorded
        grid.add_row(escape(str(name)), *([WITHHELD] * len(cells) if isnan(number) else cells))
    console.print(grid)
    for line in more_groups(len(groups)):
        console.print(line)
    short = groups["shortfall"][groups["shortfall"].between(LESS, 1, inclusive="left")]
    if len(short):
        those = listed([f"{name} ({percent(lacks, 0)} fewer)" for name, lacks in short.items()])
        equal = " at equal features" if fitted.estimator.testing_model is not None else ""
        line = f"Tested less than average{equal}: {those}. "
        line += "Such a group gets at least its share of the tests."
        console.print(escape(say(line)))
    console.print(f"  {out}", style="bold", soft_wrap=True)
    if draw_seed is None:
        held = say("It lists everybody untested, with a probability; no tests are drawn yet")
        line = f"  {held}: --draw-seed 1 draws them and adds the column `drawn`"
        console.print(line, soft_wrap=True)
    again = ["dcem", "fit", "TABLE", "--start-from", str(model), "--testing-probability", str(out)]
    again += [*given_again(context, ["words"]), "--out", "NEW_MODEL"]
    console.print(
        f"  When the results are in the table: {shlex.join(again)}, with the same roles",
        markup=False,
        soft_wrap=True,
    )
