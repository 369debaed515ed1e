"""What the metrics cost, as multiples of scikit-learn's `roc_auc_score` on the same rows.

Run: python speed/bench_metrics.py [--rows N] [--rounds N]

Each round times all functions one after the other, and a ratio is taken within its round, so that
a busy machine slows both sides; the table shows the median over the rounds. The second part times
1,000 bootstrap replicates, against resampling rows in a loop around scikit-learn.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from dcem.metrics import auc, bootstrap, roc_gap


def seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def simulated(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, n)
    y = (rng.random(n) < 0.25).astype(np.int64)
    score = 1 / (1 + np.exp(1 - rng.normal(size=n) - y * (1 + 0.2 * group)))
    return y, score, group


def compare_with_sklearn(n: int, rounds: int) -> None:
    y, score, group = simulated(n)
    weight = np.random.default_rng(1).exponential(size=n)
    ten = np.random.default_rng(2).integers(0, 10, n)
    names = np.where(group == 1, "women", "men").astype(object)
    cases = {
        "float64, all distinct": (score, group, None),
        "float32": (score.astype(np.float32), group, None),
        "two decimals, many ties": (score.round(2), group, None),
        "weighted": (score, group, weight),
        "group labels as strings": (score, names, None),
        "ten groups, 45 pairs": (score, ten, None),
    }
    print(f"{n:,} rows; cost in units of roc_auc_score; median of {rounds} rounds\n")
    print(f"{'':<26}{'roc_auc_score':>14}{'auc':>8}{'roc_gap':>9}{'both':>7}   limit 2")
    for name, (s, g, w) in cases.items():
        measured = [
            (
                seconds(lambda s=s, w=w: roc_auc_score(y, s, sample_weight=w)),
                seconds(lambda s=s, w=w: auc(y, s, weight=w)),
                seconds(lambda s=s, g=g, w=w: roc_gap(y, s, g, weight=w)),
            )
            for _ in range(rounds)
        ]
        theirs = median(m[0] for m in measured)
        ranked, gap = (median(m[i] / m[0] for m in measured) for i in (1, 2))
        both = median((m[1] + m[2]) / m[0] for m in measured)
        verdict = "met" if both <= 2 else "MISSED"
        print(
            f"{name:<26}{1e3 * theirs:>11.0f} ms{ranked:>8.2f}{gap:>9.2f}{both:>7.2f}   {verdict}"
        )


def time_bootstrap(n: int, replicates: int) -> None:
    y, score, group = simulated(n)
    person = np.arange(n) // 4
    ward = (person % 7 == 0).astype(int)  # constant within a person
    rng = np.random.default_rng(0)

    def one_by_one(times: int = 20) -> None:
        for _ in range(times):
            drawn = rng.integers(0, n, n)
            roc_auc_score(y[drawn], score[drawn])

    loop = seconds(one_by_one) / 20 * replicates
    print(f"\n{replicates:,} replicates on {n:,} rows, all metrics (limit 15 s)\n")
    cases = {
        "one group": {},
        "two groups": {"group": group},
        "  the same, people of 4 rows": {"group": ward, "id": person},
    }
    for name, arguments in cases.items():
        took = seconds(lambda a=arguments: bootstrap(y, score, n_resamples=replicates, **a))
        print(f"{name:<30}{took:>7.2f} s   {took / loop:>5.2f} of a loop around roc_auc_score")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    compare_with_sklearn(arguments.rows, arguments.rounds)
    time_bootstrap(20_000, 1_000)


if __name__ == "__main__":
    main()
