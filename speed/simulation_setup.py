"""How long it takes to set up every data set of the simulation study.

Run: python speed/simulation_setup.py [--cells N]

Draws all feasible cells of the grid at all 12 phases from the independent stream (60,000 rows
each), and compares the cost with that of the random numbers alone, in the same run: the ratio says
what calibration, probabilities and the finished objects add.
"""

import argparse
import time

import numpy as np

from dcem.tasks import PHASES, make_sinusoid, sinusoid_grid


def set_up(cells: int | None) -> tuple[int, float]:
    settings = [cell for cell in sinusoid_grid() if cell.feasible][:cells]
    start = time.perf_counter()
    for seed, cell in enumerate(settings):
        for phase in PHASES:
            make_sinusoid(
                cell.q_y, cell.k, cell.q_t, phase, stream="independent", random_state=seed
            )
    return len(settings) * len(PHASES), time.perf_counter() - start


def random_numbers_alone(repeats: int = 50) -> float:
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    for _ in range(repeats):
        rng.normal(size=(60_000, 2))
        rng.random((60_000, 2))
    return (time.perf_counter() - start) / repeats


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", type=int, help="only the first N feasible cells")
    count, seconds = set_up(parser.parse_args().cells)
    bare = random_numbers_alone()
    print(f"{count:,} data sets of 60,000 rows in {seconds:.1f} s")
    each = seconds / count
    print(f"{1000 * each:.2f} ms each, {each / bare:.1f} times their random numbers alone")


if __name__ == "__main__":
    main()
