"""Rows a second and peak memory of `dcem predict` on a long table: 5,000,000 rows x 30 columns.

    python speed/bench_predict.py [--rows 5000000] [--format parquet] [--members 5]

Writes a table of numbers (some missing), categories, yes/no and dates, fits a model to its first
10,000 rows, and scores all of it with the command, in a process of its own so that the peak memory
is its own. Besides the wall clock it prints the processor time: on a machine that others use too,
rows per second of one undisturbed core follow from it.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

CHUNK = 250_000
SAMPLE = 10_000


def people(n: int, seed: int) -> pd.DataFrame:
    """So many rows with 30 columns, beside identifier, group and result."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"person": np.arange(n) + seed * CHUNK})
    for j in range(20):
        values = rng.standard_normal(n).round(3)
        if j % 4 == 0:
            values[rng.random(n) < 0.1] = np.nan
        frame[f"lab_{j}"] = values
    for j in range(6):
        levels = np.array([f"level {k}" for k in range(3 + 4 * j)], dtype=object)
        frame[f"category_{j}"] = levels[rng.integers(0, len(levels), n)]
    frame["smoker"] = rng.choice(["yes", "no"], n)
    frame["admitted_as_emergency"] = rng.choice(["true", "false"], n)
    frame["admitted"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), "D")
    frame["age"] = rng.integers(18, 95, n)
    risk = 1 / (1 + np.exp(-frame["lab_1"] - 0.03 * (frame["age"] - 50)))
    frame["group"] = rng.choice(["A", "B"], n)
    tested = rng.random(n) < 0.3 + 0.1 * (frame["group"] == "A")
    found = np.where(rng.random(n) < risk, "high", "normal")
    frame["result"] = np.where(tested, found, "not ordered")
    return frame


def write(path: Path, rows: int) -> None:
    """The long table, in chunks."""
    file = None
    for number, start in enumerate(range(0, rows, CHUNK)):
        chunk = people(min(CHUNK, rows - start), number).drop(columns=["group", "result"])
        table = pa.Table.from_pandas(chunk, preserve_index=False)
        if file is None:
            parquet = path.suffix == ".parquet"
            kind = pyarrow.parquet.ParquetWriter if parquet else pyarrow.csv.CSVWriter
            file = kind(path, table.schema)
        file.write_table(table)
    assert file is not None
    file.close()


def run(*arguments: object) -> tuple[float, float, float, str]:
    """Seconds, processor seconds and peak MB of a `dcem` command, and what it said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    script = (
        "import resource, sys; from dcem.cli import main\n"
        "try: main()\n"
        "finally: print('PEAK', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time.perf_counter() - started
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said, _, peak = done.stdout.rpartition("PEAK")
    return seconds, processor, float(peak) / 1024, said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--format", choices=["parquet", "csv"], default="parquet")
    parser.add_argument("--members", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        sample, long = folder / "sample.parquet", folder / f"long.{options.format}"
        people(SAMPLE, 999).to_parquet(sample, index=False)
        write(long, options.rows)
        roles = ["--label", "result", "--positive", "high", "--untested-value", "not ordered"]
        roles += ["--group", "group", "--id", "person", "--members", options.members]
        seconds, processor, peak, _ = run("fit", sample, *roles, "--out", folder / "model")
        print(
            f"fit      {SAMPLE:>9,} rows  {seconds:6.1f} s  ({processor:.1f} s of processor time)"
        )
        seconds, processor, peak, said = run(
            "predict", folder / "model", long, "--out", folder / f"scores.{options.format}"
        )
        print(
            f"predict  {options.rows:>9,} rows  {seconds:6.1f} s  ({processor:.1f} s of processor "
            f"time)  {options.rows / seconds:,.0f} rows/s, "
            f"{options.rows / processor:,.0f} a processor second, peak {peak:,.0f} MB"
        )
        print(said.strip())


if __name__ == "__main__":
    main()
