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
    table: options.TableArgument,
    roles: dict[str, Any],
    query: options.Query = None,
    sample_rows: options.SampleRows = None,
    report: options.Report = None,
    markdown: options.Markdown = None,
    json: options.Json = None,
    seed: options.Seed = 0,
    words: options.Words = "general",
) -> None:
    """Does a model still hold? Compares a new table with the one it was fitted to.

    The new table has people who came later. Shows how the people, the testing at equal features
    and the results have changed, and whether the model still ranks people well and its risks are
    still calibrated, for everybody and for each group. A summary of the first table is stored with
    the model. Columns keep the roles they had then, unless options change them.
    """
    from dcem.cli._console import Console
    from dcem.report.words import speak
    from dcem.scoring import TableModel, monitor_model
    from dcem.table import read_table

    console, aside = Console(highlight=False), Console(stderr=True, highlight=False)
    outputs = Outputs.of_report(report, markdown, json, table, words)
    fitted = TableModel.load(model)
    known = replace(fitted.roles_of_new, **roles)
    with aside.status("reading the table ..."):
        read = read_table(
            table, known, query, sample_rows=sample_rows, random_state=seed, encoder=fitted.encoder
        )
    about = {"model": f"{model.name}, {fitted.name}, fitted to {fitted.source.name}"}
    with telling({}, aside, speak(words, read.problem.group_names)) as progress:
        found = monitor_model(
            fitted,
            read,
            random_state=seed,
            data=about | options.source_facts(read),
            progress=progress,
        )
    outputs.write(found.document(), console)
