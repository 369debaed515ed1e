"""`dcem monitor`: does a model still hold? What changed since it was fitted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from dcem.cli import _table_options as options
from dcem.cli._outputs import Outputs
from dcem.cli._progress import telling

OF_THE_MODEL = ("truth", "features", "exclude", "category", "include", "group_as_feature")


@options.takes_roles(partly=True, without=OF_THE_MODEL)
def monitor(
    model: Annotated[Path, typer.Argument(help="Folder that `dcem fit` wrote.")],
    table: options.Table,
    roles: dict[str, Any],
    query: options.Query = None,
    most_rows: options.MostRows = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", "-r", help="Write the answer as one HTML page."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(help="Write it as Markdown. Default: beside the report, with ending .md."),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write all numbers as JSON.")] = None,
    seed: options.Seed = 0,
    words: options.Words = "general",
) -> None:
    """Does a model still hold? What changed since it was fitted.

    Holds a new table, of people who came later, against what the model remembers of its own: who
    comes, who is tested at equal features, what is found, and whether the model still ranks people
    and its risks still come true, for everybody and each group. The columns mean what they meant
    then; options change that.
    """
    from rich.console import Console

    from dcem.report.monitor import monitor_document
    from dcem.scoring import TableModel, monitor_model
    from dcem.table import read_table

    console, aside = Console(highlight=False), Console(stderr=True, highlight=False)
    if report is not None and not report.is_dir():
        markdown = markdown or report.with_suffix(".md")
    outputs = Outputs([(report, "html"), (markdown, "md"), (json, "json")], table, words)
    fitted = TableModel.load(model)
    known = replace(fitted.roles_of_new, **roles)
    with aside.status("reading the table ..."):
        read = read_table(
            table, known, query, most_rows=most_rows, random_state=seed, encoder=fitted.encoder
        )
    about = {"model": f"{model.name}, {fitted.name}, fitted to {fitted.source.name}"}
    with telling({}, aside) as progress:
        found = monitor_model(
            fitted,
            read,
            random_state=seed,
            data=about | options.describe(read),
            progress=progress,
        )
    outputs.write(monitor_document(found), console)
