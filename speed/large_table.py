"""A table larger than memory: made, audited, fitted and scored, each step on two cores of its own.

    python speed/large_table.py --rows 100000000 --folder /big/disk/large --out results

The made table has 30 numbers, the group, the person (two rows each) and the label where somebody
looked, in Parquet files of a million rows; group B is tested less at equal features. Every step is
a `dcem` command in a process of its own, pinned to two cores. Steps that do not wait for each other
run side by side where there are cores for it. Memory is the largest sum over the processes of a
step, seen twice a second. Seconds are those of the whole command, start-up included; where others
use the machine too, those of the processor say more. Steps that take long for all rows take the
first files (`--few`), which their number of rows tells.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

FILE_ROWS = 1_000_000
ROLES = ["--label", "result", "--group", "race", "--id", "person"]
LINEAR = ["--method", "tested-only", "--learner", "linear"]
BOOST = ["--method", "tested-only", "--learner", "boost"]
# Steps of a chain wait for each other. {table} is all rows, {few} the first files.
CHAINS = {
    "default": {
        "fit, the default, people drawn": ["fit", "{table}", *ROLES, "--out", "{default}"],
        "predict, the default": ["predict", "{default}", "{few}", "--out", "{scores}-default"],
    },
    "linear": {
        "fit, linear": ["fit", "{few}", *ROLES, *LINEAR, "--all-rows", "--out", "{linear}-few"],
        "predict, linear": ["predict", "{linear}-few", "{table}", "--out", "{scores}-linear"],
    },
    "linear, all rows": {
        "fit, linear, all rows": [
            "fit", "{table}", *ROLES, *LINEAR, "--all-rows", "--out", "{linear}",
        ],
    },
    "boost": {
        "fit, boosted trees, all rows": [
            "fit", "{few}", *ROLES, *BOOST, "--members", "1", "--all-rows", "--out", "{boost}",
        ],
    },
    "audit": {"audit, people drawn": ["audit", "{table}", *ROLES, "--json", "{audit}.json"]},
}  # fmt: skip


def make_file(task: tuple[Path, int, int]) -> None:
    """One file of the table."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, number, rows = task
    rng = np.random.default_rng(number)
    X = rng.standard_normal((30, rows), dtype=np.float32)
    race = rng.random(rows) < 0.3
    tested = rng.random(rows) < 1 / (1 + np.exp(1 + race - X[0] - X[1]))
    ill = rng.random(rows) < 1 / (1 + np.exp(2 - X[0] - X[2]))
    columns: dict[str, Any] = {f"x{i}": X[i] for i in range(30)}
    columns["race"] = pa.array(np.where(race, "B", "A")).dictionary_encode()
    columns["person"] = (number * FILE_ROWS + np.arange(rows)) // 2
    columns["result"] = pa.array(ill.astype(np.float32), mask=~tested)
    partial = path.with_suffix(".part")
    # random numbers do not compress; without dictionaries a file is written in half the time
    pq.write_table(pa.table(columns), partial, compression="none", use_dictionary=["race"])
    partial.rename(path)


def memory_of(pid: int) -> int:
    """Bytes in memory of a process and all it started."""
    parents: dict[int, int] = {}
    pages: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(place.name)] = int(
                (place / "stat").read_text().rpartition(")")[2].split()[1]
            )
            pages[int(place.name)] = int((place / "statm").read_text().split()[1])
        except (OSError, IndexError):  # it has ended
            continue
    own, found = {pid}, {pid}
    while found:
        found = {child for child, parent in parents.items() if parent in found} - own
        own |= found
    return sum(pages.get(one, 0) for one in own) * os.sysconf("SC_PAGE_SIZE")


def measure(words: list[str], cores: list[int], until: float) -> dict[str, Any]:
    """Run a `dcem` command on these cores; its exit status, seconds and peak memory in GiB."""
    limits = {"OMP_NUM_THREADS": str(len(cores)), "OMP_WAIT_POLICY": "PASSIVE"}
    start, peak, pid = time.perf_counter(), 0, 0
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", "from dcem.cli import main; main()", *words],
            env=os.environ | limits,
            stdout=subprocess.DEVNULL,
            stderr=said,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        while not pid:
            time.sleep(0.5)
            peak = max(peak, memory_of(process.pid))
            if time.time() > until:
                process.kill()
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            print(f"{words[0]}: exit {process.returncode}\n{said.read()[-2000:]}", flush=True)
    return {
        "exit": process.returncode,
        "seconds": round(time.perf_counter() - start, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_gib": round(peak / 2**30, 2),
    }


def run_chain(
    name: str, cores: list[int], places: dict[str, str], rows: dict[str, int], until: float
) -> list[dict[str, Any]]:
    """The steps of a chain one after the other, as long as they succeed."""
    made = []
    for step, words in CHAINS[name].items():
        told = measure([word.format(**places) for word in words], cores, until)
        n_rows = rows["table" if "{table}" in words else "few"]
        line = {"step": step, "rows": n_rows, **told}
        line["rows_per_second"] = round(n_rows / told["seconds"])
        line["rows_per_two_processor_seconds"] = round(2 * n_rows / told["processor_seconds"])
        print(line, flush=True)
        made.append(line)
        if told["exit"]:
            break
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=5, help="files that slow steps take")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="folder for large_table.csv and .json")
    parser.add_argument("--chains", nargs="+", choices=CHAINS, default=list(CHAINS))
    parser.add_argument("--seconds", type=float, default=86_400, help="steps are ended after these")
    given = parser.parse_args()
    from dcem.extras import versions

    until = time.time() + given.seconds
    table, few = given.folder / "table", given.folder / "few"
    for folder in (table, few):
        folder.mkdir(parents=True, exist_ok=True)
    every = sorted(os.sched_getaffinity(0))
    sizes = [min(FILE_ROWS, given.rows - at) for at in range(0, given.rows, FILE_ROWS)]
    tasks = [(table / f"{i:05d}.parquet", i, size) for i, size in enumerate(sizes)]
    start = time.perf_counter()
    with ProcessPoolExecutor(len(every)) as pool:
        list(pool.map(make_file, [task for task in tasks if not task[0].exists()]))
    for path, *_ in tasks[: given.few]:
        if not (few / path.name).exists():
            os.link(path, few / path.name)
    gigabytes = sum(path.stat().st_size for path, *_ in tasks) / 1e9
    print(f"made {given.rows:,} rows, {gigabytes:.1f} GB: {time.perf_counter() - start:.0f} s")
    names = ("linear", "default", "audit", "boost", "scores")
    places = {name: str(given.folder / name) for name in names}
    places |= {"table": str(table), "few": str(few)}
    rows = {"table": given.rows, "few": sum(sizes[: given.few])}
    pairs = [every[at : at + 2] for at in range(0, len(every) - 1, 2)] or [every]
    at_once = min(len(pairs), len(given.chains))
    with ThreadPoolExecutor(at_once) as pool:
        free = list(pairs)

        def work(name: str) -> list[dict[str, Any]]:
            cores = free.pop()
            try:
                return run_chain(name, cores, places, rows, until)
            finally:
                free.append(cores)

        lines = [line for chain in pool.map(work, given.chains) for line in chain]
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(lines).to_csv(given.out / "large_table.csv", index=False)
        about = {
            "command": f"python speed/large_table.py --rows {given.rows} --few {given.few} "
            "--folder FOLDER --out results",
            "date": str(date.today()),
            "device": f"{cpu_name()}; two cores per step, {at_once} steps at a time",
            "table": f"{given.rows:,} rows, 30 numbers and 3 roles, {gigabytes:.1f} GB of Parquet",
        } | versions()
        (given.out / "large_table.json").write_text(json.dumps(about, indent=2) + "\n")
    shutil.rmtree(given.folder / "scores-linear", ignore_errors=True)


def cpu_name() -> str:
    """The processor, as Linux calls it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    found = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{found[0] if found else platform.machine()}, {len(found)} cores"


if __name__ == "__main__":
    main()
