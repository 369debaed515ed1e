"""`dcem audit`: is my labelling biased? From a table to findings, a page and all numbers."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dcem.cli import _table_options as options
from dcem.cli._outputs import Outputs
from dcem.cli._progress import telling
from dcem.cli._settings import given_again


@options.takes_roles(without=("group_as_feature",))
def audit(
    context: typer.Context,
    table: options.TableArgument,
    roles: options.Roles,
    query: options.Query = None,
    sample_rows: options.SampleRows = None,
    report: options.Report = None,
    markdown: options.Markdown = None,
    json: options.Json = None,
    max_rows: Annotated[
        int, typer.Option(min=1000, help="Maximum number of rows that a model is fitted to.")
    ] = 50_000,
    bounds: options.BoundsOption = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Risk at which you would act; needs --bounds. Default: the risk that a tenth of "
            "the people exceed.",
        ),
    ] = None,
    show_small_cells: Annotated[
        bool,
        typer.Option("--show-small-cells", help="Show counts below ten: for open data only."),
    ] = False,
    seed: options.Seed = 0,
    words: options.Words = "general",
) -> None:
    """Is my labelling biased? Compares testing between groups at equal features.

    Also shows where hardly anybody was tested, what the record hides, whether the outcome depends
    on the group, and how strong an unmeasured cause would have to be to change the answer. True
    outcomes are not needed.
    """
    from dcem.audit.positives_only import audit_found, found_steps
    from dcem.audit.run import audit_labels, audit_steps
    from dcem.cli._console import Console
    from dcem.report.words import speak
    from dcem.table import read_table
    from dcem.table.messages import InputError

    options.refuse_bounds(roles, bounds)
    if threshold is not None and bounds is None:
        raise InputError("A `threshold` is used only together with `bounds`: give both.")
    console = Console(highlight=False)
    outputs = Outputs.of_report(report, markdown, json, table, words)
    aside = Console(stderr=True, highlight=False)
    with aside.status("reading the table ..."):
        read = read_table(table, roles, query, sample_rows=sample_rows, random_state=seed)
    say = speak(words, read.problem.group_names)
    options.show_columns(read, console, say)
    options.mention_who_was_tested(read, table, query, console, say)
    how: dict[str, Any] = {
        "sources": read.encoder.sources,
        "suspicious": options.suspicious(read),
        "max_rows": max_rows,
        "random_state": seed,
    }
    if read.problem.positives_only:
        what = "found positives"
        with telling(found_steps(read.problem), aside, say) as progress:
            found: Any = audit_found(read.problem, **how, progress=progress)
    else:
        what = "the labels"
        how |= {"attributes": read.by_attribute(), "bounds": bounds, "threshold": threshold}
        how["dates"] = read.encoder.dates
        steps = audit_steps(read.problem, how["attributes"], how["sources"])
        with telling(steps, aside, say) as progress:
            found = audit_labels(read.problem, **how, progress=progress)
    title = f"Audit of {what} in {read.source.name}"
    document = found.document(title, options.source_facts(read), small_cells=show_small_cells)
    then = ["compare", *given_again(context), "--report", "comparison.html", "--out", "."]
    outputs.write(document, console, then=then)
