"""Time of every method relative to `y-obs`, for the same fleet in the same run.

    python benchmarks/bench_methods.py [--networks 4] [--rows 2000] [--out FOLDER]

Published budgets cut to a hundredth (10 steps, 5 iterations at most), so that ratios, not budgets,
are compared: a ratio says what one step of a method costs, with everything around it.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
import warnings
from pathlib import Path

from dcem.methods import fit_many, names, published
from dcem.methods.propensity import PropensitySettings
from dcem.tasks import make_sinusoid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", type=int, default=4)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tasks = [
        make_sinusoid(
            phase=math.radians(30 * number), stream="independent", random_state=number,
            n_train=options.rows, n_validation=options.rows, n_test=100,
        )
        for number in range(options.networks)
    ]  # fmt: skip
    seconds: dict[str, list[float]] = {name: [] for name in names()}
    for _ in range(options.repeat):  # interleaved: a busy moment hits all
        for name in names():
            model = published(name).set_params(steps=30 if name == "dividemix" else 10)
            if "propensity_settings" in model.get_params():
                model.set_params(propensity_settings=PropensitySettings(steps=10))
            if "max_iter" in model.get_params():
                model.set_params(max_iter=min(5, model.max_iter or 5))
            truths = [(t.truth["train"], t.truth["validation"]) for t in tasks]
            start = time.perf_counter()
            fit_many(
                model,
                [task.train for task in tasks],
                validations=[task.validation for task in tasks],
                truths=truths if model.uses_truth else None,
            )
            seconds[name].append(time.perf_counter() - start)
    best = {name: min(values) for name, values in seconds.items()}
    rows = [
        {"method": name, "seconds": round(value, 3), "relative": round(value / best["y-obs"], 1)}
        for name, value in best.items()
    ]
    for row in rows:
        print(f"{row['method']:<26}{row['seconds']:>9.3f} s {row['relative']:>8.1f} x y-obs")
    if options.out is not None:
        with (options.out / "method_times.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
