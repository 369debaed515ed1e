"""How long does the default take? `python speed/bench_default.py`

Fits `ensemble` to random people, a quarter of them tested, with some numbers of threads, and
reports wall time inside `fit`, after imports. Times of one run compare with each other: the ratio
of two numbers of threads, or of two table sizes, means more than a second here or there.
"""

from __future__ import annotations

import argparse
import json
import os
import time

import numpy as np


def people(n_rows: int, n_columns: int):
    """Two groups, an outcome that bends, a policy on two columns."""
    from dcem import SelectiveLabels

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    z = 1.5 * X[:, 0] + np.sin(2 * X[:, 1]) - 1.5
    truth = rng.random(n_rows) < 1 / (1 + np.exp(-z))
    group = np.where(X[:, 1] + rng.normal(size=n_rows) > 0, "a", "b")
    tested = rng.random(n_rows) < 1 / (1 + np.exp(2.0 - 1.5 * X[:, 0] - (group == "a")))
    return SelectiveLabels.from_arrays(X, np.where(tested, truth, np.nan), group=group)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="20000x2,20000x40")
    parser.add_argument("--threads", default=f"1,{min(2, os.cpu_count() or 1)}")
    parser.add_argument("--repeat", type=int, default=1)
    given = parser.parse_args()
    from dcem.methods import make

    make("ensemble", steps=20, random_state=0).fit_problem(people(2000, 2))  # imports
    found = []
    for size in given.sizes.split(","):
        problem = people(*map(int, size.split("x")))
        for threads in map(int, given.threads.split(",")):
            seconds = []
            for _ in range(given.repeat):
                begun = time.perf_counter()
                make("ensemble", n_jobs=threads, random_state=0).fit_problem(problem)
                seconds.append(time.perf_counter() - begun)
            found.append({"size": size, "threads": threads, "seconds": round(min(seconds), 2)})
            print(json.dumps(found[-1]), flush=True)


if __name__ == "__main__":
    main()
