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
    """Add columns to a table that describe each person's earlier tests.

    Adds earlier_visits, earlier_tests, earlier_positives, last_result and since_last_test. They
    are computed only from strictly earlier rows of the same person, so they may be used as
    features. For rows to be scored, do the same: put them in one table with the earlier rows.
    """
    from dcem.cli._console import Console
    from dcem.table.times import add_history
    from dcem.table.write import require_output, table_writer

    require_output(out, table)
    found = add_history(table, roles, query)
    with table_writer(out) as write:
        for batch in found.to_batches():
            write(batch)
    Console(highlight=False).print(f"{found.num_rows:,} rows with their history: {out}")
