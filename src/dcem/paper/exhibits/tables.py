"""The four appendix tables at q_y 1/2, k 1, q_t 2: published and ours, row by row."""

from __future__ import annotations

import pandas as pd

from dcem.paper import published
from dcem.paper.drawing import Picture
from dcem.paper.exhibits.points import gap_and_auc
from dcem.paper.published import METHOD_NAMES
from dcem.paper.sources import NO_ROWS, Found
from dcem.paper.spread import Spreads, comparison_table, points_table, spreads_of, table_spreads

TITLES = {
    "ablation": "Ablation of DCEM",
    "causal-estimators": "Causal effect estimators against DCEM",
    "temperature": "Temperature of the testing probability",
    "initialization": "Where EM starts",
}
# Rows whose released configurations have no phase 0. Whether the published numbers have is not
# known, so ours are given both ways.
WITHOUT_PHASE_0 = {
    "ablation": ("no-causal-regularization",),
    "temperature": ("0.01", "0.1", "1", "10", "100"),
}
ELEVEN = (
    "was released with configurations for 11 boundaries (30 to 330 degrees). Ours has all 12; the "
    "numbers ending in -eleven are without the twelfth."
)
# What a reader must know before comparing the rows.
NOTES = {
    "ablation": (
        "The released imputation-only takes its pseudo-labels from an untrained network; it and "
        "DCEM start from tested-only weights, the middle row from random ones: not a comparison of "
        "one factor.",
        f"No causal regularisation {ELEVEN}",
    ),
    "causal-estimators": (
        "The published tested-only row is another set of runs than the tested-only of Figure 2.",
        "The classes of tested-only + group and of the DR-learner were never released; ours follow "
        "the text. The released IPW cannot have made the published row; ours weights the tested.",
    ),
    "temperature": (f"Every temperature {ELEVEN}",),
    "initialization": (
        "Both published rows take the first pseudo-labels from an untrained network. algorithm-1, "
        "in no published table, takes them from the network of the tested, as Algorithm 1 reads.",
    ),
}


def row_name(table: str, row: str) -> str:
    """A row as a reader sees it."""
    if table == "temperature":
        return f"τ = {row}"
    return "algorithm 1 (ours only)" if row == "algorithm-1" else METHOD_NAMES.get(row, row)


def rows_of_table(rows: pd.DataFrame, table: str) -> pd.DataFrame:
    """Our rows of one table, with the names of its rows in `label`."""
    if "benchmark" not in rows:
        return NO_ROWS
    rows = rows[rows["benchmark"] == table].copy()
    if "roc_gap_grid" in rows:
        rows["roc_gap"] = rows["roc_gap_grid"].fillna(rows["roc_gap"])
    rows["label"] = rows["label"].astype(str).str.removesuffix(".0")
    return rows


def both_sides(rows: pd.DataFrame, table: str) -> tuple[Spreads, Spreads, list[str]]:
    """Published and our spreads, and the names of the rows: those of the paper first."""
    theirs = table_spreads(published.tables(), table)
    ours = spreads_of(rows_of_table(rows, table), by="label")
    names = list(dict.fromkeys(name for name, _ in (*theirs, *ours)))
    return theirs, ours, names


def eleven(rows: pd.DataFrame, table: str) -> Spreads:
    """Ours without phase 0, of the rows that the release may have left it out of."""
    rows = rows_of_table(rows, table)
    rows = rows[rows["label"].isin(WITHOUT_PHASE_0.get(table, ()))]
    return spreads_of(rows[rows["phase"] > 0], by="label")


def draw_table(found: Found, name: str) -> Picture:
    """One appendix table as a picture with its numbers written in it."""
    theirs, ours, names = both_sides(found.rows, name)
    notes = list(found.notes)
    if len(found.rows) and not ours:
        notes.append(f"Ours is not recorded: {found.origin} has no rows of benchmark {name!r}.")
    labels = {row: row_name(name, row) for row in names}
    title = f"{TITLES[name]} (q_y 1/2, k 1, q_t 2)"
    figure = gap_and_auc(title, names, labels, theirs, ours, found, written=True)
    numbers = {
        "": comparison_table(theirs, ours, names).rename(columns={"method": "row"}),
        "points": points_table(rows_of_table(found.rows, name), "phase", {}, names, by="label"),
    }
    fewer = eleven(found.rows, name)
    if fewer:
        without = comparison_table(theirs, fewer, WITHOUT_PHASE_0[name])
        numbers["eleven"] = without.rename(columns={"method": "row"})
    caption = f"{title}. Median [minimum, maximum] over 12 boundaries; the paper above, ours below."
    return Picture(figure, numbers, caption, (*notes, *NOTES[name]))
