"""How long does an audit take, and how much memory? `python speed/bench_audit.py`

Writes a Parquet table of random people (two groups, an outcome, a testing policy on three columns)
and runs the command `dcem audit` on it in a process of its own, page included. Reports wall time,
processor time and peak memory beside the size of the table in memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def write_table(path: Path, n_rows: int, n_columns: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    names = [f"x{number}" for number in range(n_columns)]
    writer = None
    for start in range(0, n_rows, 500_000):
        n = min(500_000, n_rows - start)
        X = rng.standard_normal((n, n_columns), dtype=np.float32)
        group = rng.random(n) < 0.3
        risk = 1 / (1 + np.exp(1 - X[:, 0] - 0.5 * X[:, 1]))
        tested = rng.random(n) < 1 / (1 + np.exp(1 - 0.7 * X[:, 0] - 0.5 * X[:, 2] + 0.6 * group))
        result = np.where(tested, (rng.random(n) < risk).astype(float), np.nan)
        columns = {name: pa.array(X[:, number]) for number, name in enumerate(names)}
        columns["group"] = pa.array(np.where(group, "b", "a"))
        columns["result"] = pa.array(result, from_pandas=True)
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def measure(n_rows: int, n_columns: int, folder: Path) -> dict[str, float]:
    table = folder / "table.parquet"
    write_table(table, n_rows, n_columns)
    run = "from dcem.cli import main; main()"
    command = [sys.executable, "-c", run, "audit", str(table), "--label", "result"]
    command += ["--group", "group", "--report", str(folder / "audit.html")]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(done.stderr)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "rows": n_rows,
        "columns": n_columns,
        "cores": len(os.sched_getaffinity(0)),
        "seconds": round(seconds, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_mb": round(used.ru_maxrss / 2**10),
        "table_mb": round(n_rows * n_columns * 8 / 2**20),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--columns", type=int, default=30)
    options = parser.parse_args()
    for n_rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(n_rows, options.columns, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
