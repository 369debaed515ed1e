"""Turn a benchmark store into the recorded runs: one CSV a question, with its provenance beside it.

    dcem benchmark run shown --out STORE          # and the other presets below, into one store
    python experiments/from_store.py STORE [--sepsis STORE]

`tables.csv` holds five presets, told apart by the column `benchmark`; `methods.csv` is the part of
`shown.csv` at the four settings whose published points the project carries.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pandas as pd

from _record import RESULTS
from dcem.benchmark.read import results
from dcem.files import write_text

TABLES = ("ablation", "causal-estimators", "initialization", "overlap", "temperature")
PRESETS: dict[str, tuple[str, ...]] = {
    "shown": ("shown",),
    "tables": TABLES,
    "grid": ("grid",),
    "seeds": ("seeds",),
    "repairs": ("repairs",),
    "dividemix_chance": ("experiments/dividemix_chance.toml",),
    "dragonnet_targeted": ("experiments/dragonnet_targeted.toml",),
}
SEPSIS = (
    "sepsis-figure4 --cohort C.parquet",
    "experiments/sepsis_artificial.toml --cohort C.parquet",
)
CARRIED = {(1.0, 0.5), (1.0, 1.0), (1.0, 2.0), (2.0, 2.0)}  # k, q_t
# What is nearly the same in all rows of a file goes into the JSON, with the number of rows.
IN_JSON = ["versions", "fit_seed", "finished"]


def write(name: str, table: pd.DataFrame, presets: tuple[str, ...]) -> None:
    """Write one file and how it came about."""
    seconds = table.groupby("device")["seconds"].sum().round(1)
    commands = [f"dcem benchmark run {preset} --out STORE" for preset in presets]
    about: dict[str, Any] = {
        "command": "; ".join([*commands, "python experiments/from_store.py STORE"]),
        "date": table["finished"].str[:10].max(),
        "rows": len(table),
        "seconds_of_training_by_device": seconds.to_dict(),
        "rows_by_versions": _rows_by(table["versions"]),
        "rows_by_fit_seed": _rows_by(table["fit_seed"]),
        "rows_by_day_finished": _rows_by(table["finished"].str[:10]),
    }
    shown = table.drop(columns=IN_JSON)
    shown = shown.dropna(axis=1, how="all")
    write_text(RESULTS / f"{name}.csv", shown.to_csv(index=False, float_format="%.6g"))
    write_text(RESULTS / f"{name}.json", json.dumps(about, indent=2) + "\n")
    print(f"wrote {name}.csv: {len(table)} rows")


def _rows_by(column: pd.Series) -> dict[str, int]:
    return {str(value): int(n) for value, n in column.value_counts().sort_index().items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("--sepsis", type=Path, help="store of the runs on artificial patients")
    options = parser.parse_args()
    everything = results(options.store)
    for name, presets in PRESETS.items():
        names = [Path(preset).stem.replace("_", "-") for preset in presets]
        table = everything[everything["benchmark"].isin(names)]
        if table.empty:
            continue
        write(name, table, presets)
        if name == "shown":
            here = [pair in CARRIED for pair in zip(table["k"], table["q_t"], strict=True)]
            write("methods", table[here], presets)
    if options.sepsis is not None:
        table = results(options.sepsis)
        curve = table.groupby(["k", "q_t", "label"])["beta"].transform("nunique")
        write("sepsis_artificial", table[curve == table["beta"].nunique()], SEPSIS)


if __name__ == "__main__":
    main()
