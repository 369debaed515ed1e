"""`dcem compare`: which method serves a user's own table, judged without its truth."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcem.cli import _table_options as options
from dcem.cli._progress import telling

if TYPE_CHECKING:
    from dcem.compare.results import TableComparison
    from dcem.report.document import Document


@options.takes_roles()
def compare(
    table: options.Table,
    roles: options.Roles,
    query: options.Query = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Method to compare; repeat it, or separate with commas. Gains are counted from "
            "tested-only, else from the first.",
            show_default=False,
        ),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    max_rows: Annotated[
        int,
        typer.Option(
            min=0, help="Row budget: of longer tables, people are drawn up to it; 0: all rows."
        ),
    ] = 10_000,
    planted: Annotated[
        int, typer.Option(min=0, help="Repetitions of planted outcomes, at least 2; 0: none.")
    ] = 3,
    floor: Annotated[
        float,
        typer.Option(min=0, help="Differences in AUC below it are not called differences."),
    ] = 0.005,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Risk at which one acts, for rates by group.", show_default=False
        ),
    ] = None,
    capacity: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of people one acts on, if no threshold is given."),
    ] = 0.1,
    members: Annotated[
        int,
        typer.Option(
            min=1, help="Models of an ensemble, as for fit; they tell the luck of training."
        ),
    ] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of rows, folds, networks, resamples.")] = 0,
    words: options.Words = "general",
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            help="Write the report here: one HTML file, and the same as Markdown beside it.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for comparison.csv, comparison.md and .json."),
    ] = None,
) -> None:
    """Compare methods on a table, without its truth.

    Every method scores people it was not fitted to. It is judged among the tested; for everybody,
    by inverse-propensity and doubly robust estimates, each with interval and assumption, or "not
    estimable" and why; and against outcomes planted in the table's own features.
    """
    from rich.console import Console

    from dcem.compare import compare_methods
    from dcem.compare.fitting import check_methods, default_methods
    from dcem.report.compare import compare_document
    from dcem.report.to_terminal import to_terminal
    from dcem.report.words import speak
    from dcem.table import read_table
    from dcem.text import duration

    console = Console(highlight=False)
    speak(words)  # refuses words it does not know, before the work
    require_places(report, out)
    names = check_methods(options.listed(method) if method else default_methods())
    with console.status(f"reading {table} ..."):
        read = read_table(table, roles, query)
    options.show_columns(read, console)
    console.print()
    console.print(read.problem.summary(small_cells=False), markup=False)
    console.print()
    begun = time.perf_counter()
    with telling({}, Console(stderr=True, highlight=False)) as progress:
        comparison = compare_methods(
            read.problem,
            names,
            truth=read.truth,
            folds=folds,
            max_rows=max_rows or None,
            planted=planted,
            floor=floor,
            threshold=threshold,
            capacity=capacity,
            members=members,
            random_state=seed,
            data=options.describe(read),
            suspicious=options.suspicious(read),
            progress=progress,
        )
    document = compare_document(comparison)
    to_terminal(document, console, words)
    written = write(document, comparison, words, report, out)
    console.print(f"\nDone in {duration(time.perf_counter() - begun)}.")
    for path in written:
        console.print(f"  {path}", style="bold", soft_wrap=True)


def require_places(report: Path | None, out: Path | None) -> None:
    """Refuse at once what could not be written in the end."""
    from dcem.files import require_file_place, require_folder_place
    from dcem.table.checks import InputError

    if report is not None:
        if report.suffix.lower() == ".md":
            raise InputError(
                f"{report}: the report is an HTML page, and its Markdown version is written beside "
                f"it. Name the page {report.with_suffix('.html').name}."
            )
        require_file_place(report)
        require_file_place(report.with_suffix(".md"))
    if out is not None:
        require_folder_place(out)


def write(
    document: Document,
    comparison: TableComparison,
    words: str,
    report: Path | None,
    out: Path | None,
) -> list[Path]:
    """Write what was asked for, each file whole; returns the paths."""
    from dcem.files import write_text
    from dcem.report.to_html import to_html
    from dcem.report.to_json import to_json
    from dcem.report.to_markdown import to_markdown
    from dcem.table.write import csv_text

    files: dict[Path, str] = {}
    if report is not None:
        files[report] = to_html(document, words)
        files[report.with_suffix(".md")] = to_markdown(document, words)
    if out is not None:
        files[out / "comparison.csv"] = csv_text(comparison.to_frame())
        files[out / "comparison.md"] = to_markdown(document, words)
        files[out / "comparison.json"] = to_json(document, words)
    for path, text in files.items():
        write_text(path, text)
    return list(files)
