"""`dcem compare`: which method serves a user's own table, judged without its truth."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcem.cli import _table_options as options

if TYPE_CHECKING:
    from dcem.compare.results import TableComparison
    from dcem.metrics.estimate import Estimate

DEFAULT = "y-obs,tested-only,ipw,peer-loss,dcem"


@options.takes_roles()
def compare(
    table: options.Table,
    roles: options.Roles,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Method to compare; the first is what others are compared with. Repeat it, or "
            f"give a list with commas. Default: {DEFAULT}.",
            show_default=False,
        ),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    max_rows: Annotated[
        int,
        typer.Option(
            min=0, help="Row budget: of longer tables, people are drawn up to it; 0: all rows."
        ),
    ] = 20_000,
    planted: Annotated[
        int, typer.Option(min=0, help="Repetitions of planted outcomes, at least 2; 0: none.")
    ] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Seed of rows, folds, networks, resamples.")] = 0,
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

    from dcem.compare import compare_table
    from dcem.compare.fitting import check_methods
    from dcem.table import read_table

    console = Console(highlight=False)
    require_places(report, out)
    names = check_methods(options.listed(method or [DEFAULT]))
    with console.status(f"reading {table} ..."):
        read = read_table(table, roles)
    options.show_columns(read, console)
    console.print()
    console.print(read.problem.summary(), markup=False)
    console.print()
    begun = time.perf_counter()
    with console.status("starting ...") as status:

        def progress(doing: str) -> None:
            status.update(f"{doing} ... ({time.perf_counter() - begun:.0f} s)")
            if not console.is_terminal:
                console.print(f"  {time.perf_counter() - begun:4.0f} s  {doing}", markup=False)

        comparison = compare_table(
            read.problem,
            names,
            truth=read.truth,
            folds=folds,
            max_rows=max_rows or None,
            planted=planted,
            random_state=seed,
            data=options.describe(read),
            suspicious=options.suspicious(read),
            progress=progress,
        )
    show(comparison, console)
    written = write(comparison, report, out)
    console.print(f"\nDone in {time.perf_counter() - begun:.0f} seconds.")
    for path in written:
        console.print(f"  {path}", style="bold", soft_wrap=True)


def show(comparison: TableComparison, console: Any) -> None:
    """Print the comparison: one table a target, the answer of planted outcomes, the warnings."""
    from rich.markup import escape
    from rich.table import Table

    from dcem.report import words

    for target in comparison.targets:
        console.print(f"\n[bold]{target.name.capitalize()}[/bold]. {target.assumption}")
        if not target.available:
            console.print(f"  not estimable: {target.reason}", markup=False)
            continue
        grid = Table(box=None, pad_edge=False, header_style="dim")
        for column in ("method", "AUC", "gain", "ROC gap", "chance"):  # 80 columns wide
            grid.add_column(column, justify="left" if column == "method" else "right")
        for method in comparison.methods:
            judged = method.judgements[target.key]
            grid.add_row(
                method.name,
                _cell(judged.auc),
                "" if judged.auc_gain is None else _cell(judged.auc_gain),
                _cell(judged.roc_gap),
                words.number(judged.gap_by_chance),
            )
        console.print(grid)
    first = comparison.methods[0].name
    console.print(
        f"\n{100 * comparison.level:g} % intervals. gain: in AUC over {first}, same people. "
        "chance: what the gap\nstays under, 19 times in 20, if groups are dealt out at random.",
        style="dim",
    )
    console.print()
    for sentence in comparison.sentences:
        console.print(f"- {sentence.replace('`', '')}", markup=False)
    if comparison.planted:
        console.print("\n[bold]Outcomes planted in this table: who recovers them?[/bold]")
        for sentence in comparison.planted.sentences:
            console.print(f"- {sentence.replace('`', '')}", markup=False)
    for warning in comparison.warnings:
        console.print(f"\n[yellow]note:[/yellow] {escape(warning.replace('`', ''))}")


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


def write(comparison: TableComparison, report: Path | None, out: Path | None) -> list[Path]:
    """Write what was asked for, each file whole; returns the paths."""
    import json

    from dcem.files import write_text
    from dcem.report.compare import comparison_to_markdown, render_comparison

    files: dict[Path, str] = {}
    if report is not None:
        files[report] = render_comparison(comparison)
        files[report.with_suffix(".md")] = comparison_to_markdown(comparison)
    if out is not None:
        told = {
            "sentences": comparison.sentences,
            "planted": comparison.planted.sentences if comparison.planted else (),
            "warnings": comparison.warnings,
            "configuration": comparison.configuration,
            "versions": comparison.versions,
            "data": comparison.data,
        }
        files[out / "comparison.csv"] = comparison.to_frame().to_csv(index=False)
        files[out / "comparison.md"] = comparison_to_markdown(comparison)
        files[out / "comparison.json"] = json.dumps(told, indent=2, ensure_ascii=False) + "\n"
    for path, text in files.items():
        write_text(path, text)
    return list(files)


def _cell(estimate: Estimate) -> str:
    from dcem.report import words

    return words.with_interval(estimate) if estimate.estimable else "not estimable"
