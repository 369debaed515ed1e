"""Time and memory of `dcem sepsis build` against the size of the data.

The tables of the MIMIC-III demo are multiplied, every copy with subject, admission, stay and row
ids of its own, and the cohort is built from them in a process of its own whose peak memory the
operating system reports. The counts of the flow must be those of the demo times the factor: a build
that is fast and wrong does not pass.

    python speed/bench_sepsis.py                                # 1 and 2 times, under a minute
    python speed/bench_sepsis.py --times 1 5 20 50 --csv scale.csv --plot docs/sepsis-scale.svg
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

FULL_CHART_ROWS = 330_712_483
DEMO_CHART_ROWS = 758_355
IDS = ("row_id", "subject_id", "hadm_id", "icustay_id")
SHIFT = 1_000_000_000  # larger than any id of the release
DEMO = Path(__file__).resolve().parents[2] / "shared" / "mimic-iii-demo"

BUILD = """
import json, sys
from dcem.tasks.sepsis.cohort import build_cohort
built = build_cohort(sys.argv[1], sys.argv[2], memory_limit=sys.argv[3], show_small_cells=True)
left = [step["left"]["count"] for step in built.flow["steps"]]
print(json.dumps([built.flow["all_stays"]["count"], *left]))
"""


def multiply(demo: Path, target: Path, times: int, layout: str) -> int:
    """Write the multiplied tables; the size of CHARTEVENTS in bytes is returned."""
    import duckdb

    from dcem.tasks.sepsis.sources import TABLES

    connection = duckdb.connect()
    connection.execute("SET memory_limit = '3GB'; SET preserve_insertion_order = false")
    connection.execute(f"SET temp_directory = '{target / 'spill'}'")
    for table in TABLES:
        original = demo / f"{table.upper()}.csv.gz"
        source = f"read_csv('{original}', all_varchar = true, quote = '\"')"
        described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
        shifted = ", ".join(
            f'CAST("{name}" AS BIGINT) + copy * {SHIFT} AS "{name.upper()}"'
            if name in IDS
            else f'"{name}" AS "{name.upper()}"'
            for name, *_ in described
        )
        copies = times if table != "d_items" else 1
        how = "FORMAT csv, HEADER, COMPRESSION gzip" if layout == "csv.gz" else "FORMAT parquet"
        path = target / f"{table.upper()}.{layout}"
        connection.execute(
            f"COPY (SELECT {shifted} FROM range({copies}) AS t(copy), {source}) TO '{path}' ({how})"
        )
    connection.close()
    return (target / f"CHARTEVENTS.{layout}").stat().st_size


def measure(folder: Path, memory_limit: str) -> tuple[float, float, list[int]]:
    """Seconds, peak GiB and the counts of one build in a fresh process."""
    out = folder / "out" / "cohort.parquet"
    out.parent.mkdir()
    arguments = [sys.executable, "-c", BUILD, str(folder), str(out), memory_limit]
    started = time.perf_counter()
    with tempfile.TemporaryFile() as answer:
        process = subprocess.Popen(arguments, stdout=answer)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        if status != 0:
            raise SystemExit(f"the build failed with status {status}")
        answer.seek(0)
        counts = json.loads(answer.read())
    return seconds, usage.ru_maxrss / 2**20, counts


def plot(rows: list[dict[str, float]], path: Path) -> None:
    """Seconds against chart rows, with the line through them prolonged to the full release."""
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for layout, colour in (("csv.gz", "#1f5fa8"), ("parquet", "#b85008")):
        chosen = [row for row in rows if row["layout"] == layout]
        if not chosen:
            continue
        size = np.array([row["chart_rows"] for row in chosen]) / 1e6
        seconds = np.array([row["seconds"] for row in chosen])
        axes.plot(size, seconds, "o", color=colour, label=layout)
        if len(chosen) > 1:
            end = extrapolate(chosen)
            slope = (end - seconds[0]) / (FULL_CHART_ROWS / 1e6 - size[0])
            reach = np.geomspace(size[0], FULL_CHART_ROWS / 1e6, 50)
            axes.plot(reach, seconds[0] + slope * (reach - size[0]), "--", color=colour, lw=1)
            label = f"full release: {end / 60:.0f} min"
            axes.plot(reach[-1], end, "o", mfc="none", color=colour)
            axes.annotate(label, (0.9 * reach[-1], end), ha="right", va="bottom", color=colour)
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("rows of CHARTEVENTS, millions")
    axes.set_ylabel("seconds to build")
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def extrapolate(rows: list[dict[str, float]]) -> float:
    """Seconds for the full release, on the line through the smallest and the largest size."""
    first, last = rows[0], rows[-1]
    slope = (last["seconds"] - first["seconds"]) / (last["chart_rows"] - first["chart_rows"])
    return first["seconds"] + slope * (FULL_CHART_ROWS - first["chart_rows"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--layouts", nargs="+", default=["csv.gz", "parquet"])
    parser.add_argument("--memory-limit", default="4GiB")
    parser.add_argument("--demo", type=Path, default=DEMO)
    parser.add_argument("--folder", type=Path, help="where the large files go for a while")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    if not given.demo.is_dir():
        print(f"skipped: the MIMIC-III demo is not at {given.demo}")
        return
    rows: list[dict] = []
    demo_counts: list[int] | None = None
    print("layout    times  chart rows  CHARTEVENTS   seconds  s / M rows  peak GiB")
    for layout in given.layouts:
        for times in sorted(given.times):
            with tempfile.TemporaryDirectory(dir=given.folder) as name:
                folder = Path(name)
                size = multiply(given.demo, folder, times, layout)
                shutil.rmtree(folder / "spill", ignore_errors=True)
                seconds, peak, counts = measure(folder, given.memory_limit)
            if times == 1:
                demo_counts = counts
            if demo_counts is not None and counts != [times * count for count in demo_counts]:
                raise SystemExit(f"wrong counts at {times} times: {counts}")
            chart_rows = times * DEMO_CHART_ROWS
            rows.append(
                {"layout": layout, "times": times, "chart_rows": chart_rows}
                | {"chartevents_bytes": size, "seconds": round(seconds, 2)}
                | {"peak_gib": round(peak, 3), "memory_limit": given.memory_limit}
            )
            print(
                f"{layout:8} {times:6} {chart_rows:11,} {size / 2**20:8.0f} MiB {seconds:9.1f} "
                f"{seconds / chart_rows * 1e6:11.2f} {peak:9.2f}",
                flush=True,
            )
        chosen = [row for row in rows if row["layout"] == layout]
        if len(chosen) > 1:
            minutes = extrapolate(chosen) / 60
            print(
                f"{layout}: the full release ({FULL_CHART_ROWS:,} rows) in about {minutes:.0f} min"
            )
    if given.csv:
        pd.DataFrame(rows).to_csv(given.csv, index=False)
    if given.plot:
        plot(rows, given.plot)


if __name__ == "__main__":
    main()
