"""`dcem audit`: is my labelling biased? From a table to findings, a page and all numbers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcem.cli import _table_options as options

if TYPE_CHECKING:
    from dcem.audit import Audit
    from dcem.tasks import UserTable


def audit(
    table: options.Table,
    label: options.Label,
    tested: options.Tested = None,
    group: options.Group = None,
    id: options.Id = None,
    weight: options.Weight = None,
    truth: options.Truth = None,
    exclude: options.Exclude = None,
    category: options.Category = None,
    include: options.Include = None,
    positive: options.Positive = None,
    untested_value: options.UntestedValue = None,
    missing: options.Missing = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", "-r", help="Write the audit as one HTML page."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(help="Write it as Markdown. Default: beside the report, with ending .md."),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write all numbers as JSON.")] = None,
    row_budget: Annotated[
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
    from dcem.report import audit_tables
    from dcem.report.audit_page import render_audit
    from dcem.report.files import write_text
    from dcem.tasks import load_table

    console = Console(highlight=False)
    started = time.perf_counter()
    roles = options.read_roles(
        label=label,
        tested=tested,
        group=group,
        id=id,
        weight=weight,
        truth=truth,
        exclude=exclude,
        category=category,
        include=include,
        positive=positive,
        untested_value=untested_value,
        missing=missing,
    )
    with Console(stderr=True).status("reading the table ...") as status:
        user_table = load_table(table, roles)
        status.stop()
        options.show_columns(user_table, console)
        status.start()
        found = audits.audit(
            user_table.problem,
            sources=user_table.encoder.sources,
            suspicious={c.name: c.flag for c in user_table.columns if c.flag},
            row_budget=row_budget,
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
        markdown = markdown or report.with_suffix(".md")
    if markdown is not None:
        write_text(markdown, audit_tables.to_markdown(found, title, dict(facts)))
    if json is not None:
        plain = {"made": dict(facts), **audits.to_plain(found)}
        write_text(json, json_module.dumps(plain, indent=1, ensure_ascii=False) + "\n")
    console.print(f"\nDone in {time.perf_counter() - started:.0f} seconds.")
    for path in (report, markdown, json):
        if path is not None:
            console.print(f"  {path}", style="bold", soft_wrap=True)


def show(found: Audit, console: Any) -> None:
    """Print the main tables and the findings."""
    from rich.markup import escape
    from rich.table import Table

    from dcem.report import audit_tables

    tables = audit_tables.all_tables(found)
    for name in ("testing", "prevalence", "sensitivity"):
        if name not in tables:
            continue
        shown = tables[name]
        columns = shown.columns if name != "sensitivity" else shown.columns[2:]
        rows = [row if name != "sensitivity" else row[2:] for row in shown.rows]
        grid = Table(title=f"\n{shown.title}", title_justify="left", box=None, pad_edge=False)
        for column in columns:
            grid.add_column(column, header_style="dim")
        for row in rows:
            grid.add_row(*map(escape, row))
        console.print(grid)
    console.print("\n[bold]Findings[/bold]")
    colours = {"serious": "red", "caution": "yellow", "note": "dim", "fine": "green"}
    for finding in found.findings:
        mark = f"[{colours[finding.severity]}]{finding.severity:>7}[/]"
        console.print(f"{mark}  [bold]{escape(finding.headline)}[/bold]")
        console.print(f"         {escape(finding.text)}", style="dim", soft_wrap=False)
    good = [m.name for m in found.methods if m.verdict == "defensible"]
    care = [m.name for m in found.methods if m.verdict == "with care"]
    console.print(
        f"\nDefensible methods: {', '.join(good) or 'none'}; with care: {', '.join(care)}"
    )


def describe(found: Audit, table: UserTable) -> Mapping[str, str]:
    """What made this audit: the file and its hash, the roles, the settings, the versions."""
    import platform
    from importlib.metadata import version

    roles = {
        name: ", ".join(value) if isinstance(value, tuple) else str(value)
        for name, value in vars(table.roles).items()
        if value
    }
    packages = ("dcem", "numpy", "scikit-learn", "scipy")
    return {
        "file": f"{table.source.name}, {table.source.rows:,} rows, {table.source.columns} columns",
        "SHA-256": table.source.sha256,
        **{name.replace("_", " "): value for name, value in roles.items()},
        **found.configuration,
        "learners": "; ".join(f"{what}: {who}" for what, who in found.learners.items()),
        "versions": ", ".join(
            [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in packages)]
        ),
    }
