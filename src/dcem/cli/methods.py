"""`dcem methods`: which methods there are, and what one of them does and takes."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dcem.cli._console import Console
    from dcem.methods.describe import Description


def methods(
    name: Annotated[
        str | None,
        typer.Argument(help="Method to explain; without it, all methods are listed."),
    ] = None,
) -> None:
    """List the methods, or explain one: its idea, assumptions, failures and parameters."""
    from dcem.cli._console import Console
    from dcem.methods.describe import describe

    console = Console(highlight=False)
    if name is None:
        _list(console)
    else:
        _explain(console, describe(name))


def _list(console: "Console") -> None:
    from rich.table import Table

    from dcem.extras import MissingExtra
    from dcem.methods import names
    from dcem.methods.describe import describe

    table = Table("method", "in a sentence", "variants", "needs the truth", box=None)
    left_out = []
    for name in names():
        try:
            one = describe(name)
        except MissingExtra:
            left_out.append(name)
        else:
            table.add_row(name, one.summary, "yes" if one.variants else "", one.needs_truth)
    console.print(table)
    if left_out:
        console.print(
            f"\nNot available, because torch is not installed (pip install 'dcem\\[networks]'): "
            f"{', '.join(left_out)}."
        )
    console.print(
        "\nMethods that need the truth of every row are for simulations only (published: only "
        "that variant needs it).\nTo read about one: dcem methods NAME"
    )


def _explain(console: "Console", one: "Description") -> None:
    from rich.padding import Padding
    from rich.text import Text

    console.print(Text(one.name, style="bold"), Text(one.summary))
    if one.needs_truth:
        which = ' with variant="published"' if one.needs_truth == "published" else ""
        console.print(f"Needs the truth of every row{which}: for simulations only.")
    if one.needs_group == "yes":
        console.print("Needs the group of each row to predict.")
    for title, text in one.sections.items():
        console.print()
        console.print(Text(title, style="bold"))
        console.print(Padding(Text(text), (0, 0, 0, 2)))
    for title, common in (("Parameters", False), ("Parameters of all methods", True)):
        listed = [entry for entry in one.parameters if entry.common is common]
        if listed:
            console.print()
            console.print(Text(title, style="bold"))
        for entry in listed:
            console.print(Padding(Text(str(entry)), (0, 0, 0, 2)))
            console.print(Padding(Text(entry.text), (0, 0, 0, 6)))
