"""Cost of a fit against the number of rows, 1,000 to 10,000,000 x 20 features, with minibatches.

    python speed/bench_rows.py [--most 10000000] [--out FOLDER]

Each size runs in a process of its own, so that its peak memory is its own. What is fitted is the
default DCEM. Beyond 50,000 rows a step takes 16,384 of them, so that time stays nearly flat, and
memory beyond the table itself (float64 as given, float32 as trained on) does not grow with it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

FEATURES = 20


def one(n_rows: int) -> dict[str, float]:
    """Fit once; seconds, and megabytes at the peak."""
    import numpy as np

    from dcem.methods import make

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, FEATURES))
    group = rng.integers(0, 2, n_rows)
    risk = 1 / (1 + np.exp(-(X[:, 0] + np.sin(2 * X[:, 1]) - 1)))
    tested = rng.random(n_rows) < 1 / (1 + np.exp(-(X[:, 2] + 0.5 * group - 1)))
    y = np.where(tested, (rng.random(n_rows) < risk).astype(float), np.nan)
    table = X.nbytes * 1.5 / 2**20  # as given, and the float32 copy
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    start = time.perf_counter()
    model = make("dcem", random_state=0).fit(X, y, tested=tested, sensitive_features=group)
    fitted = time.perf_counter()
    model.predict_proba(X)
    return {
        "rows": n_rows,
        "fit_seconds": round(fitted - start, 2),
        "predict_seconds": round(time.perf_counter() - fitted, 2),
        "outcome_steps": int(model.n_iter_) * int(model.steps_),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10),
        "before_fit_mb": round(before),
        "table_mb": round(table),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one)))
        return
    rows = []
    for n_rows in (10**power for power in range(3, 8)):
        if n_rows > options.most:
            break
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(n_rows)], capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(done.stderr)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        beyond = rows[-1]["peak_mb"] - rows[-1]["table_mb"]
        print(
            f"{n_rows:>10,} rows: fit {rows[-1]['fit_seconds']:>7} s for "
            f"{rows[-1]['outcome_steps']} outcome steps, predict "
            f"{n_rows / max(rows[-1]['predict_seconds'], 1e-3):>12,.0f} rows/s, "
            f"peak {rows[-1]['peak_mb']:,} MB, {beyond:,} beyond the table",
            flush=True,
        )
    if options.out is not None:
        pd.DataFrame(rows).to_csv(options.out / "rows.csv", index=False)


if __name__ == "__main__":
    main()
