"""`dcem audit`: is my labelling biased? From a table to findings, a page and all numbers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dcem.cli import _table_options as options
from dcem.cli._progress import telling


@options.takes_roles(without=("group_as_feature",))
def audit(
    table: options.Table,
    roles: options.Roles,
    query: options.Query = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", "-r", help="Write the audit as one HTML page."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(help="Write it as Markdown. Default: beside the report, with ending .md."),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write all numbers as JSON.")] = None,
    max_rows: Annotated[
        int, typer.Option(min=1000, help="Rows that a model is fitted to, at most.")
    ] = 50_000,
    show_small_cells: Annotated[
        bool,
        typer.Option("--show-small-cells", help="Show counts under ten too: for open data only."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of folds and subsamples.")] = 0,
    words: options.Words = "general",
) -> None:
    """Is my labelling biased? Who is tested, at equal features, and what could overturn the answer.

    Compares testing between groups at equal features, shows where hardly anybody was tested, what
    the record hides, whether the outcome depends on the group, and how strong something unmeasured
    would have to be to change the answer. Nobody's true outcome is needed.
    """
    from rich.console import Console

    from dcem.audit.run import audit_labels, audit_steps
    from dcem.files import write_text
    from dcem.report.audit import audit_document
    from dcem.report.to_html import to_html
    from dcem.report.to_json import to_json
    from dcem.report.to_markdown import to_markdown
    from dcem.report.to_terminal import to_terminal
    from dcem.report.words import speak
    from dcem.table import read_table
    from dcem.text import duration

    console = Console(highlight=False)
    speak(words)  # refuses words it does not know, before the work
    started = time.perf_counter()
    if report is not None and not report.is_dir():
        markdown = markdown or report.with_suffix(".md")
    require_places(table, [path for path in (report, markdown, json) if path is not None])
    aside = Console(stderr=True, highlight=False)
    with aside.status("reading the table ..."):
        user_table = read_table(table, roles, query)
    options.show_columns(user_table, console)
    attributes = user_table.by_attribute()
    with telling(audit_steps(user_table.problem, attributes), aside) as progress:
        found = audit_labels(
            user_table.problem,
            sources=user_table.encoder.sources,
            suspicious=options.suspicious(user_table),
            attributes=attributes,
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
    to_terminal(document, console, words)
    for path, write in ((report, to_html), (markdown, to_markdown), (json, to_json)):
        if path is not None:
            write_text(path, write(document, words))
    console.print(f"\nDone in {duration(time.perf_counter() - started)}.")
    for path in (report, markdown, json):
        if path is not None:
            console.print(f"  {path}", style="bold", soft_wrap=True)


def require_places(table: Path, places: Sequence[Path]) -> None:
    """Refuse before the work is done what would fail, or overwrite something, after it."""
    from dcem.files import require_file_place
    from dcem.table.checks import InputError

    taken = {table.resolve(): "the table itself"}
    for path in places:
        require_file_place(path)
        if path.resolve() in taken:
            raise InputError(f"{path} is {taken[path.resolve()]}. Write to another file.")
        taken[path.resolve()] = "already the place of another output"
