"""`dcem audit`: is my labelling biased? From a table to findings, a page and all numbers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcem.cli import _table_options as options

if TYPE_CHECKING:
    from dcem.audit import Audit
    from dcem.metrics.estimate import Estimate
    from dcem.table import UserTable


@options.takes_roles(without=("group_as_feature",))
def audit(
    table: options.Table,
    roles: options.Roles,
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
) -> None:
    """Is my labelling biased? Who is tested, at equal features, and what could overturn the answer.

    Compares testing between groups at equal features, shows where hardly anybody was tested, what
    the record hides, whether the outcome depends on the group, and how strong something unmeasured
    would have to be to change the answer. Nobody's true outcome is needed.
    """
    import json as json_module

    from rich.console import Console

    from dcem import audit as audits
    from dcem.files import write_text
    from dcem.report import audit_tables
    from dcem.report.audit import render_audit
    from dcem.table import read_table

    console = Console(highlight=False)
    started = time.perf_counter()
    if report is not None and not report.is_dir():
        markdown = markdown or report.with_suffix(".md")
    require_places(table, [path for path in (report, markdown, json) if path is not None])
    with Console(stderr=True).status("reading the table ...") as status:
        user_table = read_table(table, roles)
        status.stop()
        options.show_columns(user_table, console)
        status.start()
        found = audits.audit(
            user_table.problem,
            sources=user_table.encoder.sources,
            suspicious=options.suspicious(user_table),
            row_budget=max_rows,
            random_state=seed,
            progress=lambda text: status.update(f"{text} ..."),
        )
    if not show_small_cells:
        found = audits.without_small_cells(found)
    show(found, console)
    title = f"Audit of the labels in {user_table.source.name}"
    facts = describe(found, user_table)
    if report is not None:
        write_text(report, render_audit(found, title, facts))
    if markdown is not None:
        write_text(markdown, audit_tables.to_markdown(found, title, dict(facts)))
    if json is not None:
        plain = {"made": dict(facts), **audits.to_plain(found)}
        write_text(json, json_module.dumps(plain, indent=1, ensure_ascii=False) + "\n")
    console.print(f"\nDone in {time.perf_counter() - started:.0f} seconds.")
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


def show(found: Audit, console: Any) -> None:
    """Print the main numbers, eighty columns wide, and the findings."""
    from rich.markup import escape
    from rich.padding import Padding

    from dcem.report import audit_tables as texts

    by_group = {rate.group: rate for rate in found.testing}
    rows = []
    for item in found.counts:
        rate = by_group[item.group]
        rows.append(
            (
                item.group,
                f"{texts.count(item.tested)} of {texts.count(item.rows)}",
                _middle(rate.crude),
                _middle(rate.equal),
                _middle(rate.others),
                texts.rate(rate.difference, sign=True).partition(":")[0],
            )
        )
    columns = ("group", "tested", "crude", "equal features", "others", "difference")
    kept = len(columns) if found.grouped else 3
    _print_table(console, "Who is tested", columns[:kept], [row[:kept] for row in rows])
    if found.prevalence:
        _print_table(
            console,
            "How common is the outcome?",
            ("group", "recorded", "tested only", "weighted", "doubly robust", "limits"),
            [
                (
                    item.group,
                    _middle(item.recorded),
                    _middle(item.tested_only),
                    _middle(item.weighted),
                    texts.rate(item.doubly_robust).partition(":")[0],
                    row[-1],
                )
                for item, row in zip(found.prevalence, texts.prevalence(found).rows, strict=True)
            ],
        )
    breakdowns = texts.sensitivity(found)
    _print_table(
        console,
        breakdowns.title,
        breakdowns.columns[2:],
        [tuple(cell.partition(": ")[0] for cell in row[2:]) for row in breakdowns.rows],
    )
    console.print("\n[bold]Findings[/bold]")
    colours = {"serious": "red", "caution": "yellow", "note": "dim", "fine": "green"}
    for finding in found.findings:
        mark = f"[{colours[finding.severity]}]{finding.severity}[/]"
        console.print(f"{mark}: [bold]{escape(finding.headline)}[/bold]")
        console.print(Padding(escape(finding.text), (0, 0, 0, 4)), style="dim")
    console.print("\n[bold]Methods[/bold]")
    for verdict in ("defensible", "with care"):
        named = [m.name for m in found.methods if m.verdict == verdict]
        console.print(f"{verdict}: {', '.join(named) or 'none'}")


def _print_table(
    console: Any, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    from rich.markup import escape
    from rich.table import Table

    grid = Table(title=f"\n{title}", title_justify="left", title_style="bold", box=None)
    for number, column in enumerate(columns):
        grid.add_column(column, header_style="dim", justify="right" if number else "left")
    for row in rows:
        grid.add_row(*map(escape, row))
    console.print(grid)


def _middle(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.1f} %" if estimate.estimable else "–"


def describe(found: Audit, table: UserTable) -> Mapping[str, str]:
    """What made this audit: the file and its hash, the roles, the settings, the versions."""
    import platform
    from importlib.metadata import version

    packages = ("dcem", "numpy", "scikit-learn", "scipy")
    return {
        **options.describe(table, rows=found.configuration["rows"]),
        **{key: value for key, value in found.configuration.items() if key != "rows"},
        "learners": "; ".join(f"{what}: {who}" for what, who in found.learners.items()),
        "versions": ", ".join(
            [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in packages)]
        ),
    }
