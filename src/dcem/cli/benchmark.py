"""`dcem benchmark`: run many methods on many tasks, resumably, and look at what came out."""

import time
from pathlib import Path
from typing import Annotated

import typer

from dcem.cli._lazy import PlainGroup
from dcem.cli._table_options import Address

app = typer.Typer(
    name="benchmark",
    cls=PlainGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Run many methods on many tasks, resumably, and compare the results.",
)

StoreArgument = Annotated[Path, typer.Argument(help="Folder that `run` wrote, or its store file.")]


@app.command()
def run(
    source: Annotated[
        str, typer.Argument(metavar="FILE|PRESET", help="A TOML file, or the name of a preset.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results; an existing one is resumed.")],
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Run only this method; repeatable.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(help="Stop cleanly after about this long.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    max_fleet: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of cells to train at once.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try failed cells again.")
    ] = False,
    backend: Annotated[
        str, typer.Option(help="Train in this process (local), or on a Ray cluster (ray).")
    ] = "local",
    address: Address = None,
    cohort: Annotated[
        Path | None,
        typer.Option(help="Cohort file of sepsis tasks, as `dcem sepsis build` wrote it."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Run a benchmark, or resume it.

    Every finished cell, one task with one method, is saved at once. You can stop at any
    time (Ctrl-C, `--max-seconds`, kill); the same command resumes. Several processes may work on
    the same folder.
    """
    started = time.monotonic()
    from dcem.benchmark.progress import Display
    from dcem.benchmark.read import status as read_status
    from dcem.benchmark.run import run as run_benchmark
    from dcem.benchmark.toml_file import load_benchmark
    from dcem.cli._console import Console
    from dcem.text import duration

    path = None if cohort is None else str(cohort.absolute())
    console = Console(stderr=True)
    benchmark = load_benchmark(source, cohort=path).only(method)
    summary = run_benchmark(
        benchmark,
        out,
        device=device,
        max_seconds=max_seconds,
        max_fleet=max_fleet,
        retry_failed=retry_failed,
        backend=backend,
        address=address,
        started=started,
        display=Display(None if quiet else console),
    )
    typer.echo(
        f"{summary.done} cells done ({summary.computed} now, in {duration(summary.seconds)}), "
        f"{summary.pending} to do, {summary.failed} failed"
        + (f", {summary.elsewhere} running in other processes" if summary.elsewhere else "")
    )
    if summary.pending:
        typer.echo("Not finished: run the same command again to resume.")
    if summary.done:
        typer.echo(f"See the results: dcem benchmark leaderboard {out} (a page), export (a table).")
    if summary.failed:
        for one in read_status(out):
            if one.failed and one.benchmark == benchmark.name:
                typer.echo(f"{one.label}: {one.failed} failed, with: {one.error}")
        typer.echo(f"See all with: dcem benchmark status {out}; try again with --retry-failed.")
        raise typer.Exit(1)


@app.command()
def status(store: StoreArgument) -> None:
    """Show the progress of every benchmark in a store."""
    from rich.table import Table

    from dcem.benchmark.read import status as read_status
    from dcem.cli._console import Console

    console = Console()
    found = read_status(store)
    for name in dict.fromkeys(one.benchmark for one in found):
        rows = [one for one in found if one.benchmark == name]
        done, total = (
            sum(one.done for one in rows),
            sum(one.done + one.running + one.pending + one.failed for one in rows),
        )
        table = Table(title=f"{name}: {done} of {total} cells", title_justify="left", box=None)
        table.add_column("method", no_wrap=True)
        for column in ("done", "running", "to do", "failed"):
            table.add_column(column, justify="right")
        table.add_column("last error", overflow="fold")
        for one in rows:
            counts = (one.done, one.running, one.pending, one.failed)
            table.add_row(one.label, *(str(n) if n else "" for n in counts), one.error)
        console.print(table)
    if not found:
        console.print("The store is empty.")


@app.command()
def export(
    store: StoreArgument,
    output: Annotated[
        Path, typer.Option("--out", "-o", help="Table to write: .csv, .csv.gz or .parquet.")
    ],
    benchmark: Annotated[str | None, typer.Option(help="Only this benchmark of the store.")] = None,
) -> None:
    """Write all results as a table, one row per cell."""
    from dcem.benchmark.read import export as write

    typer.echo(f"Wrote {output}: {write(store, output, benchmark)} rows.")


@app.command()
def compare(
    results: Annotated[
        Path, typer.Argument(help="Store, or a table that `export` wrote (CSV, Parquet).")
    ],
    other: Annotated[
        str, typer.Argument(help="Another store or table, or `published`: the paper's figures.")
    ] = "published",
    benchmark: Annotated[str | None, typer.Option(help="Only this benchmark.")] = None,
    off_only: Annotated[bool, typer.Option("--off-only", help="List only disagreements.")] = False,
    output: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write the comparison as CSV.")
    ] = None,
) -> None:
    """Compare results with the published figures, or with another run.

    Ends with status 1 if anything differs by more than the comparison allows, or if a planned cell
    has no result.
    """
    from dcem.benchmark.read import missing
    from dcem.benchmark.read import results as read
    from dcem.cli._console import Console
    from dcem.files import write_text
    from dcem.paper import agreement

    ours, open_cells = read(results, benchmark, unfinished=True), missing(results, benchmark)
    if other == "published":
        table = agreement.compare_published(ours)
    else:
        table = agreement.compare_runs(ours, read(Path(other), benchmark, unfinished=True))
        open_cells += missing(Path(other), benchmark)
    agreement.print_comparison(
        table, Console(), everything=not off_only, left_out=agreement.left_out(ours)
    )
    for line in agreement.not_in(table):
        typer.echo(f"note: {line}")
    for line in open_cells:
        typer.echo(f"without result: {line}")
    if output is not None:
        write_text(output, table.to_csv(index=False))
    if agreement.is_off(table) or table.empty or open_cells:
        raise typer.Exit(1)


@app.command()
def leaderboard(
    store: Annotated[Path, typer.Argument(help="Store, or a table that `export` wrote.")],
    output: Annotated[Path, typer.Option("--out", "-o", help="Page to write.")] = Path(
        "leaderboard.html"
    ),
) -> None:
    """Write a leaderboard as one HTML file that can be filtered by setting and metric."""
    from dcem.report.leaderboard import write_leaderboard

    write_leaderboard(store, output)
    typer.echo(f"Wrote {output}.")


@app.command()
def presets() -> None:
    """List the benchmarks that come with dcem.

    Impossible settings, in which a share of people above 100 % would be tested, are not counted.
    """
    from rich.table import Table

    from dcem.benchmark.toml_file import load_benchmark, preset_names
    from dcem.cli._console import Console
    from dcem.tasks.registry import KINDS, possible

    table = Table(box=None)
    table.add_column("preset", no_wrap=True)
    table.add_column("tasks", justify="right")
    table.add_column("methods", justify="right")
    table.add_column("about")
    for name in preset_names():
        one = load_benchmark(name)
        needs = KINDS[one.tasks[0]["kind"]].needs  # what can exist there depends on a file
        tasks = one.tasks if needs else possible(one.tasks)[0]
        table.add_row(name, str(len(tasks)), str(len(one.methods)), one.about)
    Console().print(table)
