"""What the fits of a comparison cost on a Ray cluster of 1, 2, ... workers.

Run: python speed/bench_workers.py [--workers 1,2] [--repeat 3] [--plot FILE]

Each cluster is started here and makes the same fits, those of `dcem compare`. Two numbers are told:
seconds until all are there, workers started beforehand; and core-seconds that the fits took in all,
which would stay the same if sharing out cost nothing. Both are the least of several runs, taken in
turns, since other work on the machine only adds to them. Needs the extra `ray`.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dcem import ray_cluster
from dcem.compare import fitting
from dcem.estimation.folds import person_folds
from dcem.extras import is_installed
from dcem.methods.registry import delivered
from dcem.tasks import make_sinusoid

METHODS = ("tested-only:boost", "tested-only:linear", "ensemble")
ROWS, FOLDS = 4000, 4


def jobs() -> list[tuple[Any, ...]]:
    """The fits: every method on every fold."""
    task = make_sinusoid(
        stream="independent", random_state=0, n_train=ROWS, n_validation=2, n_test=2
    )
    parts = fitting.fold_parts(task.train, person_folds(task.train, FOLDS, 0))
    return [
        (name, delivered(name), range(k, k + 1), [k], part)
        for name in METHODS
        for k, part in enumerate(parts)
    ]


def timed() -> Callable[..., tuple[float, Any]]:
    """A fit with its core-seconds; a closure, which travels to the workers by value."""

    def fit(*job: Any) -> tuple[float, Any]:
        import time

        from dcem.compare import fitting

        begun = time.process_time()
        ((_, _, one),) = fitting._fit_job(*job)
        return time.process_time() - begun, one.score

    return fit


def measure(workers: int, work: list[tuple[Any, ...]]) -> dict[str, Any]:
    """Seconds and core-seconds of the work, and its scores."""
    import ray

    ray.init(
        num_cpus=workers, log_to_driver=False, configure_logging=False, include_dashboard=False
    )
    try:
        fit = timed()
        warmed = ray_cluster.shared_out(ray, fit, [work[0]] * 2 * workers)
        list(warmed)  # starts the workers
        begun = time.perf_counter()
        found = dict(ray_cluster.shared_out(ray, fit, work))
        seconds = time.perf_counter() - begun
    finally:
        ray.shutdown()
    cost = sum(cost for cost, _ in found.values())
    scores = [found[number][1] for number in range(len(work))]
    return {"workers": workers, "seconds": seconds, "core-seconds": cost, "scores": scores}


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Seconds, and core-seconds, against workers; dashed: what sharing out without loss gives."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    workers = np.array([row["workers"] for row in rows])
    for axes, name, ideal in zip(
        figure.subplots(1, 2), ("seconds", "core-seconds"), (1 / workers, workers**0.0), strict=True
    ):
        values = np.array([row[name] for row in rows])
        axes.plot(workers, values, "o-", color="#1f5fa8")
        axes.plot(
            workers, values[0] * workers[0] ** (name == "seconds") * ideal, "--", color="#777"
        )
        axes.set(xlabel="workers", ylabel=name, xticks=workers, ylim=(0, 1.15 * values.max()))
        axes.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    if not is_installed("ray"):
        print("Ray is not installed: pip install 'dcem[ray]'")
        return
    work = jobs()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {len(work)} fits")
    sizes = [int(number) for number in given.workers.split(",")]
    runs = [measure(workers, work) for _ in range(given.repeat) for workers in sizes]
    assert all(all(map(np.array_equal, r["scores"], runs[0]["scores"])) for r in runs)
    rows = []
    for workers in sizes:
        own = [run for run in runs if run["workers"] == workers]
        least = {name: min(run[name] for run in own) for name in ("seconds", "core-seconds")}
        rows.append({"workers": workers, **least})
        print(f"{workers} workers: " + ", ".join(f"{v:.1f} {name}" for name, v in least.items()))
    if given.plot:
        plot(rows, given.plot)


if __name__ == "__main__":
    main()
