"""Comparisons as text: what agrees in one line, what is off in full."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from rich.console import Console
from rich.table import Table

STYLES = {"agrees": "green", "off": "bold red", "incomplete": "yellow", "reported": "dim"}


def print_comparison(
    comparison: pd.DataFrame,
    console: Console | None = None,
    *,
    everything: bool = True,
    left_out: Sequence[str] = (),
) -> None:
    """Print a comparison with the published figures, and last what is off.

    With `everything=False` only what is off is listed. `left_out` says what was not compared, for
    the case that nothing was.
    """
    console = console or Console()
    if comparison.empty:
        console.print("Nothing to compare: no result is one of the published figures.")
        for line in left_out:
            console.print(line, soft_wrap=True, markup=False, highlight=False)
        return
    off = comparison["verdict"].isin(["off", "incomplete"])
    listed = comparison if everything else comparison[off]
    for (source, setting), rows in listed.groupby(["source", "setting"], sort=False):
        table = Table(title=f"{source}: {setting}", title_justify="left", box=None)
        for column in ("method", "metric"):
            table.add_column(column, no_wrap=True)
        for column in ("ours", "theirs", "difference", "points"):
            table.add_column(column, justify="right", no_wrap=True)
        table.add_column("verdict", no_wrap=True)
        table.add_column("", overflow="fold")
        for row in rows.to_dict("records"):
            shown = (("ours", ".4f"), ("published", ".4f"), ("difference", "+.4f"))
            numbers = [_number(row[name], form) for name, form in (*shown, ("points", ".4f"))]
            verdict = f"[{STYLES[row['verdict']]}]{row['verdict']}[/]"
            note = row["why"] if row["verdict"] == "reported" else ""  # the others: at the end
            table.add_row(row["method"], row["metric"], *numbers, verdict, note)
        console.print(table)
        console.print()
    counts = comparison["verdict"].value_counts()
    console.print(", ".join(f"{counts[name]} {name}" for name in STYLES if name in counts))
    for row in comparison[off].to_dict("records"):
        verdict = f"[{STYLES[row['verdict']]}]{row['verdict']}[/]"
        what = f"{row['method']}, {row['metric']} ({row['setting']})"
        console.print(f"{verdict}: {what}: {row['why']}", soft_wrap=True)


def _number(value: float, form: str) -> str:
    return "" if pd.isna(value) else format(value, form)
