"""Time of every method relative to `y-obs`, for the same fleet in the same run: a step, and a fit.

    python speed/bench_methods.py [--networks 4] [--rows 2000] [--out FOLDER]

*A step*: budgets cut to 10 steps and 5 rounds at most, so that the ratio says what a step costs
with everything around it. *A fit*: whole, as published: rounds until they stop, and everything
that is trained beforehand.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from pathlib import Path

import pandas as pd

from dcem.methods import NetworkClassifier, fit_many, names, published
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
    truths = [(task.truth["train"], task.truth["validation"]) for task in tasks]

    def timed(model: NetworkClassifier) -> float:
        start = time.perf_counter()
        fit_many(
            model,
            [task.train for task in tasks],
            validations=[task.validation for task in tasks],
            truths=truths if model.uses_truth else None,
        )
        return time.perf_counter() - start

    short: dict[str, float] = dict.fromkeys(names(), math.inf)
    for _ in range(options.repeat):  # interleaved: a busy moment hits all
        for name in names():
            short[name] = min(short[name], timed(cut(published(name))))
    rows = []
    for name in names():
        whole = timed(published(name))
        first = rows[0] if rows else {"step_seconds": short[name], "fit_seconds": whole}
        row = {
            "method": name,
            "step_seconds": round(short[name], 3),
            "step": round(short[name] / first["step_seconds"], 1),
            "fit_seconds": round(whole, 2),
            "fit": round(whole / first["fit_seconds"], 1),
        }
        rows.append(row)
        print(f"{name:<26}{row['step']:>8.1f} a step {row['fit']:>8.1f} a fit", flush=True)
    if options.out is not None:
        pd.DataFrame(rows).to_csv(options.out / "method_times.csv", index=False)


def cut(model: NetworkClassifier) -> NetworkClassifier:
    """The same with 10 steps in place of all, and 5 rounds at most."""
    known = model.get_params()
    model.set_params(steps=10)
    if "warm_up" in known:
        model.set_params(warm_up=2)
    if "propensity_settings" in known:
        model.set_params(propensity_settings=PropensitySettings(steps=10))
    if "max_iter" in known:
        model.set_params(max_iter=min(5, known["max_iter"] or 5))
    return model


if __name__ == "__main__":
    main()
