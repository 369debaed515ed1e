"""`dcem history`: a person's earlier tests as columns, from earlier rows alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcem.cli import _table_options as options


@options.takes_roles(without=("until", "truth", "group_as_feature"))
def history(
    table: options.TableArgument,
    roles: options.Roles,
    out: Annotated[
        Path, typer.Option("--out", "-o", help=f"The table to write: {options.WRITTEN}.")
    ],
    query: options.Query = None,
) -> None:
    """Add what was known of each person's earlier tests to every row of a table.

    Five columns: earlier_visits, earlier_tests, earlier_positives, last_result and
    since_last_test, made from strictly earlier rows of the same person alone, so that they may be
    features. Rows to be scored are given the same way: in one table with those before them.
    """
    from rich.console import Console

    from dcem.table.times import add_history
    from dcem.table.write import require_output, table_writer

    require_output(out, table)
    found = add_history(table, roles, query)
    with table_writer(out) as write:
        for batch in found.to_batches():
            write(batch)
    Console(highlight=False).print(f"{found.num_rows:,} rows with their history: {out}")
