"""`dcem predict`: scores for the people of a table, however long."""

import time
from pathlib import Path
from typing import Annotated

import typer

from dcem.cli import _table_options as options


def predict(
    model: Annotated[Path, typer.Argument(help="Folder that `dcem fit` wrote.")],
    table: options.Table,
    out: Annotated[Path, typer.Option("--out", "-o", help=f"Scores to write: {options.WRITTEN}.")],
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Column to carry over; `all` for every one. Repeat it for several. Default: the "
            "identifier the model knows, else the row number.",
            show_default=False,
        ),
    ] = None,
    query: options.Query = None,
) -> None:
    """Score the people of a table of any length with a fitted model.

    Reads in batches, so that memory stays bounded. The table needs the feature columns; no group,
    no label. Adds `score` (`risk` once calibrated), its spread (disagreement of the members),
    `distance` (from those who were tested; above 1: unlike all of them) and `like_tested`, in the
    order of the rows.
    """
    from rich.console import Console
    from rich.markup import escape

    from dcem.scoring import TableModel, predict_file
    from dcem.table import read_header

    console = Console(highlight=False)
    fitted = TableModel.load(model)
    columns = read_header(table, query) if keep == ["all"] else keep
    started = time.perf_counter()
    with console.status("reading ...") as status:
        done = predict_file(
            fitted,
            table,
            out,
            keep=columns,
            query=query,
            progress=lambda rows: status.update(f"{rows:,} rows ..."),
        )
    seconds = time.perf_counter() - started
    rows, unlike = done.rows, done.unlike_tested
    console.print(
        f"Scored {rows:,} rows in {seconds:.1f} seconds ({rows / seconds:,.0f} a second)."
    )
    for note in done.notes:
        console.print("[yellow]warning:[/yellow]", escape(note), soft_wrap=True)
    if unlike:
        console.print(
            f"{unlike:,} of them ({unlike / rows:.1%}) are unlike anybody tested (`like_tested` is "
            "false): their scores are extrapolation."
        )
    console.print(f"  {out}", style="bold", soft_wrap=True)
