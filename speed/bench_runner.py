"""What the benchmark runner costs beyond the training itself, and how quickly `status` answers.

Run: python speed/bench_runner.py [--cells N] [--fleet N]

Runs small cells (256 rows, 100 steps) through the runner, store and metrics included, and times the
calls that train inside the same run. The overhead is everything else, as a share of the training.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from dcem.benchmark import fleets
from dcem.benchmark.run import run
from dcem.benchmark.toml_file import load_benchmark

FILE = """
[[tasks]]
phase = [0, 90, 180, 270]
n_train = 256
n_validation = 256
n_test = 256
stream = "independent"
seed = {seeds}

[[methods]]
name = "y-obs"
params = {{steps = 100, patience = 1000000}}
"""


def measure(n_cells: int, fleet: int, folder: Path) -> tuple[float, float]:
    """Seconds of the whole run, and of training within it."""
    file = folder / "small.toml"
    file.write_text(FILE.format(seeds=list(range(n_cells // 4))))
    training = 0.0
    fit_many = fleets.fit_many

    def timed(*args: Any, **kwargs: Any) -> Any:
        nonlocal training
        started = time.perf_counter()
        try:
            return fit_many(*args, **kwargs)
        finally:
            training += time.perf_counter() - started

    fleets.fit_many = timed
    started = time.perf_counter()
    summary = run(load_benchmark(file), folder / "out", max_fleet=fleet)
    total = time.perf_counter() - started
    assert summary.computed == n_cells // 4 * 4, summary
    return total, training


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=2_000, help="10000 is the full measure")
    parser.add_argument("--fleet", type=int, default=500)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        total, training = measure(arguments.cells, arguments.fleet, folder)
        overhead = total - training
        print(f"{arguments.cells} cells of 256 rows and 100 steps in fleets of {arguments.fleet}")
        print(f"training {training:.1f} s, everything else {overhead:.1f} s")
        print(f"overhead: {100 * overhead / training:.1f} % of training")
        command = [sys.executable, "-c", "import sys; from dcem.cli import main; main()"]
        started = time.perf_counter()
        subprocess.run(
            [*command, "benchmark", "status", folder / "out"], check=True, stdout=subprocess.DEVNULL
        )
        print(f"status of {arguments.cells} cells: {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    main()
