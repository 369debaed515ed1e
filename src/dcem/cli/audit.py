"""`dcem audit`: is my labelling biased? From a table to findings, a page and all numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcem.cli import _table_options as options
from dcem.cli._outputs import Outputs
from dcem.cli._progress import telling

if TYPE_CHECKING:
    from dcem.report.document import Document
    from dcem.table import UserTable


@options.takes_roles(without=("group_as_feature",))
def audit(
    table: options.Table,
    roles: options.Roles,
    query: options.Query = None,
    most_rows: options.MostRows = None,
    report: options.Report = None,
    markdown: options.Markdown = None,
    json: options.Json = None,
    max_rows: Annotated[
        int, typer.Option(min=1000, help="Rows that a model is fitted to, at most.")
    ] = 50_000,
    bounds: options.Bounds = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Risk at which one acts, with bounds. Default: that which a tenth of the people "
            "exceed.",
            show_default=False,
        ),
    ] = None,
    show_small_cells: Annotated[
        bool,
        typer.Option("--show-small-cells", help="Show counts under ten too: for open data only."),
    ] = False,
    seed: options.Seed = 0,
    words: options.Words = "general",
) -> None:
    """Is my labelling biased? Who is tested, at equal features, and what could overturn the answer.

    Compares testing between groups at equal features, shows where hardly anybody was tested, what
    the record hides, whether the outcome depends on the group, and how strong something unmeasured
    would have to be to change the answer. Nobody's true outcome is needed.
    """
    from rich.console import Console

    from dcem.audit.run import audit_labels, audit_steps
    from dcem.report.audit import audit_document
    from dcem.report.words import speak
    from dcem.table import read_table

    options.refuse_bounds(roles, bounds)
    console = Console(highlight=False)
    outputs = Outputs.of_report(report, markdown, json, table, words)
    aside = Console(stderr=True, highlight=False)
    with aside.status("reading the table ..."):
        user_table = read_table(table, roles, query, most_rows=most_rows, random_state=seed)
    options.show_columns(user_table, console, speak(words))
    if user_table.problem.positives_only:
        outputs.write(_of_found(user_table, max_rows, seed, show_small_cells, aside), console)
        return
    attributes = user_table.by_attribute()
    with telling(audit_steps(user_table.problem, attributes), aside) as progress:
        found = audit_labels(
            user_table.problem,
            sources=user_table.encoder.sources,
            suspicious=options.suspicious(user_table),
            attributes=attributes,
            bounds=bounds,
            threshold=threshold,
            row_budget=max_rows,
            random_state=seed,
            progress=progress,
        )
    document = audit_document(
        found,
        f"Audit of the labels in {user_table.source.name}",
        options.describe(user_table),
        small_cells=show_small_cells,
    )
    outputs.write(document, console)


def _of_found(
    table: UserTable, max_rows: int, seed: int, small_cells: bool, aside: Any
) -> Document:
    """The audit of a table that knows only who was found positive."""
    from dcem.audit.found import audit_found, found_steps
    from dcem.report.found import found_document

    with telling(found_steps(table.problem), aside) as progress:
        found = audit_found(
            table.problem,
            sources=table.encoder.sources,
            suspicious=options.suspicious(table),
            row_budget=max_rows,
            random_state=seed,
            progress=progress,
        )
    return found_document(
        found,
        f"Audit of found positives in {table.source.name}",
        options.describe(table),
        small_cells=small_cells,
    )
