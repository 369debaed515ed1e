"""`dcem predict`: scores for the people of a table, however long."""

import json
import time
from collections.abc import Sequence
from math import isinf
from pathlib import Path
from typing import Annotated, Any

import typer

from dcem.cli import _table_options as options
from dcem.cli._progress import counting
from dcem.table.roles import LIST, WILDCARDS, spelled_out
from dcem.text import counted, duration, percent


def predict(
    model: Annotated[Path, typer.Argument(help="Folder that `dcem fit` wrote.")],
    table: options.TableArgument,
    out: Annotated[
        Path, typer.Option("--out", "-o", help=f"Scores to write: {options.WRITTEN}, or a folder.")
    ],
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Column to copy from the table; `all` for every column. {WILDCARDS} {LIST} "
            "Default: the model's identifier column, else the row number."
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Act on scores of at least this value. Adds the column `flagged`."
        ),
    ] = None,
    capacity: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Act on this many rows, the highest scores first: a share up to 1, or a number "
            "of rows. Adds the column `flagged`.",
        ),
    ] = None,
    bounds: options.BoundsOption = None,
    query: options.Query = None,
    words: options.Words = "general",
    backend: Annotated[
        str, typer.Option(help="Where a folder of Parquet files is scored: local or ray.")
    ] = "local",
    address: options.Address = None,
) -> None:
    """Score the people of a table with a fitted model.

    The table needs the feature columns, but neither group nor label. It may have any length: it is
    read in batches, so that memory use stays bounded. A folder of Parquet files is scored file by
    file into another folder, on a Ray cluster if you have one.

    Writes, in the order of the rows: `score` (`risk` if calibrated), its spread (disagreement of
    the members), `distance` (from the tested people; above 1: unlike all of them) and
    `like_tested`.

    With --threshold or --capacity, also `flagged`: whom to act on. The number flagged, by group if
    the table has it, is printed and written beside the scores (OUT.decisions.json).

    With --bounds, if the model was fitted with bounds, also `risk_low` and `risk_high`, between
    which the risk lies at that strength; `outcome_set`, which contains the outcome nine times in
    ten; and, with `flagged`, a `decision`: act, do not act, or cannot say.
    """
    from rich.markup import escape

    from dcem.cli._console import Console
    from dcem.estimation.results import EXTRAPOLATION
    from dcem.files import write_text
    from dcem.report.words import speak
    from dcem.scoring import TableModel, predict_file, predict_folder
    from dcem.scoring.decisions import Rule
    from dcem.table import read_header
    from dcem.table.messages import InputError

    console = Console(highlight=False)
    speak(words)  # refuses words it does not know
    rule = None
    if threshold is not None or capacity is not None:
        rule = Rule(threshold, capacity)
    fitted = TableModel.load(model)
    say = speak(words, fitted.encoder.columns)
    columns: Sequence[str] | None = None
    if keep is not None:
        header = read_header(table, query)
        columns = header if keep == ["all"] else spelled_out(keep, header)
    started = time.perf_counter()
    with console.status("reading ...") as status:
        progress = counting(status)
        if backend != "local" or (table.is_dir() and not out.suffix):
            if rule is not None:
                raise InputError(
                    "With a `threshold` or `capacity`, the scores must go to one file, written on "
                    "this machine: give `out` a file ending such as .csv, and leave out `backend`."
                )
            done = predict_folder(
                model, table, out,
                keep=columns, bounds=bounds, backend=backend, address=address, progress=progress,
            )  # fmt: skip
        else:
            done = predict_file(
                fitted, table, out,
                keep=columns, query=query, rule=rule, bounds=bounds, progress=progress,
            )  # fmt: skip
    seconds = time.perf_counter() - started
    rows, unlike = done.rows, done.unlike_tested
    console.print(
        f"Scored {counted(rows, 'row')} in {duration(seconds)} ({rows / seconds:,.0f} per second)."
    )
    for note in done.notes:
        console.print("[yellow]warning:[/yellow]", escape(say(note)), soft_wrap=True)
    whom = "it was fitted to" if fitted.roles.no_record else "tested"
    if unlike:
        some = f"{unlike:,} of them ({percent(unlike / rows)}) are" if rows > 1 else "It is"
        theirs = "their scores are" if rows > 1 else "its score is"
        said = f"{some} unlike anybody {whom} (`like_tested` is false): {theirs} {EXTRAPOLATION}."
        if not fitted.roles.no_record:
            said += (
                " `like_tested` says only whether anybody near a row was tested; the people out "
                "of reach in an audit are those whom too few tests represent, often more."
            )
        console.print(say(said), soft_wrap=True)
    if fitted.roles.no_record:
        ranks = (
            f"`{fitted.score_name}` ranks people by risk. It is not a probability of the outcome, "
            "because nobody recorded who was tested."
        )
        console.print(say(ranks), soft_wrap=True)
    then = fitted.baseline
    if keep is None and fitted.roles.id and then is not None and then.people < then.rows:
        names_people = (
            f"`{fitted.roles.id}` identifies people, not rows, and some people had several rows "
            "when the model was fitted. Scores are in the order of the table; to copy a column "
            "that identifies the rows, add --keep COLUMN."
        )
        console.print(say(names_people), markup=False, soft_wrap=True)
    console.print(f"  {out}", style="bold", soft_wrap=True)
    if done.decisions is not None:
        facts: dict[str, Any] = {
            "table": table.name,
            "score": fitted.score_name,
            "fitted to": fitted.source.sha256,
            "rule": {"threshold": threshold, "capacity": capacity},
            **({} if bounds is None else {"bounds": bounds}),
        }
        record = out.with_name(out.name + ".decisions.json")
        write_text(record, json.dumps(facts | done.decisions.to_plain(), indent=1) + "\n")
        console.print(f"  {record}", style="bold", soft_wrap=True)
        show_decisions(done.decisions, fitted.score_name, console)


def show_decisions(decisions: Any, score: str, console: Any) -> None:
    """Print whom a rule flags, by group."""
    from rich.markup import escape
    from rich.table import Table

    from dcem.scoring.decisions import DECIDED
    from dcem.table.disclosure import WITHHELD
    from dcem.table.summary import MOST_GROUPS, more_groups

    totals = decisions.totals()
    by = " by the score alone" if totals else ""
    flagged = decisions.shown_flagged()
    some = f"{flagged} of {decisions.rows:,} rows"
    if isinstance(flagged, int):
        some = f"{flagged:,} of {decisions.rows:,} rows ({percent(flagged / decisions.rows)})"
    if not isinf(decisions.threshold):  # where nobody is flagged, no score is
        some += f", those with a {score} of at least {decisions.threshold:.3g}"
    console.print(f"\nFlagged{by}: {some}.")
    if decisions.tied:
        console.print(
            f"{decisions.tied:,} more rows have the same {score} but exceed the capacity; those "
            "first in the table were flagged."
        )
    if totals:
        said = "; ".join(f"{name}, {_rows_and_share(totals, name)}" for name in DECIDED)
        console.print(
            f"Decisions from the limits of the risk, in rows: {said}. Where one cannot say, the "
            "risk may lie on either side of the threshold."
        )
    if not decisions.by_group:
        console.print("The table does not contain the group, so shares by group are not known.")
        return
    grid = Table(box=None, pad_edge=False, header_style="dim")
    parts = DECIDED if totals else ("flagged",)
    for heading in ("group", "rows", *parts):
        grid.add_column(heading, justify="left" if heading == "group" else "right")
    by_group = sorted(decisions.shown().items(), key=lambda item: item[1]["rows"] == WITHHELD)
    for name, found in by_group[:MOST_GROUPS]:
        rows = found["rows"]
        number = f"{rows:,}" if isinstance(rows, int) else str(rows)
        grid.add_row(escape(name), number, *(_rows_and_share(found, part) for part in parts))
    console.print(grid)
    for line in more_groups(len(by_group)):
        console.print(line)


def _rows_and_share(found: Any, part: str) -> str:
    """Rows of a part with their share; or that they are withheld."""
    key = part.replace(" ", "_")
    rows, share = found[key], found.get(f"share_{key}", found.get("share"))
    if not isinstance(rows, int):
        return str(rows)
    return f"{rows:,}" + (f" ({percent(share)})" if share is not None else "")
