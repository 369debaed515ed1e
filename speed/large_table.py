"""A table larger than memory: made, audited, fitted and scored on two cores, each in a process.

    python speed/large_table.py --rows 100000000 --folder /big/disk/large

Prints seconds and peak memory of each step. The made table has 30 columns (26 numbers, a category,
the group, the person, the label where somebody looked) in Parquet files of a million rows; group B
is tested less at equal features.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

FILE_ROWS = 1_000_000
STEPS = {
    "audit": ["audit", "{table}", "{roles}", "--json", "{folder}/audit.json"],
    "fit, the default": ["fit", "{table}", "{roles}", "--out", "{folder}/model"],
    "fit, linear": [
        "fit", "{table}", "{roles}", "--method", "tested-only", "--learner", "linear",
        "--out", "{folder}/linear",
    ],
    "predict, the default": ["predict", "{folder}/model", "{few}", "--out", "{folder}/scores"],
    "predict, linear": ["predict", "{folder}/linear", "{table}", "--out", "{folder}/scores-linear"],
}  # fmt: skip
ROLES = ["--label", "result", "--group", "race", "--id", "person"]
# Peak memory is that of the children of a process of its own: one per step.
WATCH = """
import resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
print(code, time.perf_counter() - start, peak)
"""


def make_file(task: tuple[Path, int, int]) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, seed, rows = task
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((26, rows), dtype=np.float32)
    race = rng.random(rows) < 0.3
    odds = X[0] + X[1] - 1 - race
    tested = rng.random(rows) < 1 / (1 + np.exp(-odds))
    ill = rng.random(rows) < 1 / (1 + np.exp(2 - X[0] - X[2]))
    columns = {f"x{i}": X[i] for i in range(26)}
    columns["ward"] = pa.array(rng.choice(["ICU", "ER", "surgery"], rows)).dictionary_encode()
    columns["race"] = pa.array(np.where(race, "B", "A")).dictionary_encode()
    columns["person"] = (seed * FILE_ROWS + np.arange(rows)) // 2
    columns["result"] = pa.array(ill.astype(np.float32), mask=~tested)
    pq.write_table(pa.table(columns), path, compression="lz4")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--few", type=int, default=10, help="files that the default scores")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="JSON of the results")
    parser.add_argument("--makers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    table, few = given.folder / "table", given.folder / "few"
    for folder in (table, few):
        folder.mkdir(parents=True, exist_ok=True)
    sizes = [min(FILE_ROWS, given.rows - at) for at in range(0, given.rows, FILE_ROWS)]
    tasks = [(table / f"{i:05d}.parquet", i, size) for i, size in enumerate(sizes)]
    with ProcessPoolExecutor(given.makers) as pool:
        list(pool.map(make_file, [task for task in tasks if not task[0].exists()]))
    for path, *_ in tasks[: given.few]:
        (few / path.name).exists() or os.link(path, few / path.name)
    gigabytes = sum(file.stat().st_size for file in table.iterdir()) / 1e9
    told = {"rows": given.rows, "gigabytes": round(gigabytes, 2), "steps": {}}
    cores = sorted(os.sched_getaffinity(0))[:2]
    os.sched_setaffinity(0, cores)
    limits = {"OMP_NUM_THREADS": str(len(cores)), "OMP_WAIT_POLICY": "PASSIVE"}
    os.environ |= limits | {"LOKY_MAX_CPU_COUNT": str(len(cores))}
    for name, words in STEPS.items():
        command = [sys.executable, "-c", "from dcem.cli import main; main()"]
        for word in words:
            places = {"table": table, "few": few, "folder": given.folder}
            command += ROLES if word == "{roles}" else [word.format(**places)]
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", WATCH, *command], capture_output=True, text=True, check=False
        )
        code, seconds, peak = done.stdout.split()[-3:]
        rows = given.rows if "{table}" in words else sum(sizes[: given.few])
        told["steps"][name] = {
            "exit": int(code),
            "rows": rows,
            "seconds": round(float(seconds), 1),
            "peak GiB": round(float(peak), 2),
            "rows per second": round(rows / float(seconds)),
        }
        print(name, told["steps"][name], f"({time.perf_counter() - started:.0f} s)", flush=True)
        if int(code):
            print(done.stderr[-2000:], flush=True)
        if given.out:
            given.out.write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
