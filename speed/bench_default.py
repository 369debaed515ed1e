"""How long does the default take? `python speed/bench_default.py`

Fits `ensemble` to random people, a quarter of them tested, with some numbers of threads, and
reports wall time inside `fit`, after imports. Times of one run compare with each other: the ratio
of two numbers of threads, or of two table sizes, means more than a second here or there. `--busy 4`
fits once more beside four processes that never rest; `fair` is how much longer that would take if
all threads shared the cores evenly.
`largest_difference` is that of scores from those with the first number of threads.

`--fresh 3` gives each number of threads three turns, each in a program of its own, and reports its
first and second fit: the first one starts the processes that train networks, where there are
many rows and cores. `times_as_fast` compares medians with those of the first number of threads:

    python speed/bench_default.py --sizes 200000x10 --threads 2,16 --fresh 3
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import time
from collections import defaultdict

import numpy as np
from joblib import cpu_count


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


def spin() -> None:
    """Never rest."""
    while True:
        sum(range(10_000))


def fitted(problem, threads: int) -> tuple[float, np.ndarray]:
    """Seconds of a fit, and some of its scores."""
    from dcem.methods import make

    begun = time.perf_counter()
    model = make("ensemble", n_jobs=threads, random_state=0).fit_problem(problem)
    seconds = time.perf_counter() - begun
    return seconds, model.predict_proba(problem.X[:5000])[:, 1]


def beside(problem, threads: int, busy: int) -> float:
    """Seconds of a fit while others are busy."""
    others = [multiprocessing.Process(target=spin, daemon=True) for _ in range(busy)]
    for one in others:
        one.start()
    seconds, _ = fitted(problem, threads)
    for one in others:
        one.kill()
    return seconds


def fresh(size: str, numbers: list[str], turns: int) -> None:
    """First and second fits of fresh programs, the numbers of threads in turns."""
    found = defaultdict(list)
    for threads in numbers * turns:
        command = [sys.executable, __file__, "--sizes", size, "--threads", f"{threads},{threads}"]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        found[threads].append([json.loads(line)["seconds"] for line in run.stdout.splitlines()])
    medians = {threads: np.median(seconds, axis=0) for threads, seconds in found.items()}
    for threads, seconds in found.items():
        first, second = np.transpose(seconds).tolist()
        faster = (medians[numbers[0]] / medians[threads]).round(2).tolist()
        told = {"size": size, "threads": int(threads), "first": first, "second": second}
        print(json.dumps(told | {"times_as_fast": faster}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="20000x2,20000x40")
    parser.add_argument("--threads", default=f"1,{min(2, cpu_count())}")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--fresh", type=int, default=0)
    given = parser.parse_args()
    if given.fresh:
        for size in given.sizes.split(","):
            fresh(size, given.threads.split(","), given.fresh)
        return
    fitted(people(2000, 2), 1)  # imports
    for size in given.sizes.split(","):
        problem = people(*map(int, size.split("x")))
        first = None
        for threads in map(int, given.threads.split(",")):
            runs = [fitted(problem, threads) for _ in range(given.repeat)]
            seconds, scores = min(run[0] for run in runs), runs[0][1]
            first = scores if first is None else first
            found = {
                "size": size, "threads": threads, "seconds": round(seconds, 2),
                "largest_difference": float(np.abs(scores - first).max()),
            }  # fmt: skip
            if given.busy:
                shared = cpu_count() * threads / (threads + given.busy)
                fair = max(min(threads, cpu_count()) / shared, 1.0)
                times = beside(problem, threads, given.busy) / seconds
                found |= {"busy": given.busy, "times": round(times, 2), "fair": round(fair, 2)}
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
