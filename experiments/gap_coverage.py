"""Do intervals of group differences hold what they promise, and does chance stay at 5 %?

    python experiments/gap_coverage.py run [--repetitions 250]    (again: cells not yet recorded)
    python experiments/gap_coverage.py show

People of two equal groups, of two unequal ones (15 and 85 %, either way), of five unequal ones, and
of one tiny and one large group. Their ROC curves are equal, different (one group's score is
noisier) or crossed (one group's score knows nothing of half its people); the last group of each
layout is tested the least and by its features the most, so that weights differ between groups. The
largest gap is judged with the truth, and without it by inverse-propensity and doubly robust masses,
whose two models are logistic regressions fitted to the other half of the people. Recorded are how
often the 95 % interval holds the true gap, how often it lies above it, and how often p < .05.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from _record import command, record, recorded, show_tables
from dcem.metrics.gap import GRID, Ranking, compare_curves

LAYOUTS = {
    "two equal": (1000, 1000),
    "two unequal": (300, 1700),
    "five": (150, 200, 300, 500, 850),
    "tiny and large": (100, 1900),
    "two unequal, the smaller tested less": (1700, 300),
}
CURVES = ("equal", "different", "crossed")
TARGETS = ("truth", "ipw", "dr")
RESAMPLES = 200


class Drawn(NamedTuple):
    """People of one group."""

    x: np.ndarray  # [n, 3] with a constant
    score: np.ndarray
    y: np.ndarray
    tested: np.ndarray


def draw(rng: np.random.Generator, n: int, place: float, odd: bool, curves: str) -> Drawn:
    """People of the group at `place` (0 first, 1 last); the `odd` group has another curve."""
    x = rng.normal(size=(n, 2))
    risk = expit(-1.2 + 1.2 * x[:, 0] + 0.8 * x[:, 1])
    score = x[:, 0] + 0.3 * x[:, 1]
    if odd and curves == "different":
        score = score + 1.2 * rng.normal(size=n)
    if odd and curves == "crossed":  # the high are told apart well, the low not at all
        score = np.where(x[:, 0] > 0.3, 3 + x[:, 0] + x[:, 1], rng.normal(size=n))
    testing = expit(0.8 - 1.6 * place + 1.5 * place * x[:, 0])
    tested = rng.random(n) < testing
    return Drawn(np.column_stack([np.ones(n), x]), score, (rng.random(n) < risk) * 1.0, tested)


def fitted(X: np.ndarray, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Probabilities of `rows` by a logistic regression (Newton steps)."""
    b = np.zeros(X.shape[1])
    for _ in range(12):
        p = expit(X @ b)
        hessian = (X * (p * (1 - p))[:, None]).T @ X + 1e-3 * np.eye(len(b))
        b += np.linalg.solve(hessian, X.T @ (y - p) - 1e-3 * b)
    probability: np.ndarray = expit(rows @ b)
    return probability


def masses(
    groups: Sequence[Drawn], target: str, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Positive and negative mass of everybody, group by group."""
    if target == "truth":
        return [(one.y, 1 - one.y) for one in groups]
    half = [rng.integers(2, size=len(one.y)) for one in groups]
    found = []
    for one, mine in zip(groups, half, strict=True):
        testing, outcome = np.empty(len(one.y)), np.empty(len(one.y))
        for k in (0, 1):
            here = mine == k
            testing[here] = fitted(one.x[~here], one.tested[~here], one.x[here])
            seen = [(g, g.tested & (h != k)) for g, h in zip(groups, half, strict=True)]
            X = np.concatenate([g.x[rows] for g, rows in seen])
            y = np.concatenate([g.y[rows] for g, rows in seen])
            outcome[here] = fitted(X, y, one.x[here])
        inverse = one.tested / np.maximum(testing, 0.01)
        if target == "ipw":
            found.append((inverse * one.y, inverse * (1 - one.y)))
        else:
            positive = outcome + inverse * len(one.y) / inverse.sum() * (one.y - outcome)
            found.append((positive, 1 - positive))
    return found


def true_gap(curves: str, seed: int = 9) -> float:
    """The gap between the odd group and the others, from many people."""
    rng = np.random.default_rng(seed)
    drawn = [draw(rng, 400_000, 0.0, odd, curves) for odd in (False, True)]
    one, other = (Ranking(d.score, d.y, 1 - d.y, np.arange(len(d.y))).curve() for d in drawn)
    return 0.0 if curves == "equal" else float(np.abs(one - other).mean())


def repeat(layout: str, curves: str, target: str, seed: int) -> dict[str, float]:
    """One sample, judged."""
    rng = np.random.default_rng(seed)
    sizes = LAYOUTS[layout]
    places = np.linspace(0, 1, len(sizes))
    odd = int(np.argmax(sizes)) if layout == "five" else 0
    groups = [
        draw(rng, n, place, k == odd, curves)
        for k, (n, place) in enumerate(zip(sizes, places, strict=True))
    ]
    found = compare_curves(
        np.concatenate([one.score for one in groups]),
        *map(np.concatenate, zip(*masses(groups, target, rng), strict=True)),
        np.repeat(np.arange(len(sizes)), sizes),
        n_resamples=RESAMPLES,
        level=0.95,
        rng=rng,
    )
    low, high = found.largest
    return {
        "value": float(found.value.max()), "low": low, "high": high,
        "p_value": float(found.p_value.min()),
    }  # fmt: skip


def run(repetitions: int, out: Path, only: str) -> None:
    begin = time.perf_counter()
    truth = {curves: true_gap(curves) for curves in CURVES}
    rows = recorded("gap_coverage", out)
    done = {(row["layout"], row["curves"], row["target"]) for row in rows}
    for cell in product(LAYOUTS, CURVES, TARGETS):
        if cell in done or only not in " ".join(cell):
            continue
        found = pd.DataFrame([repeat(*cell, seed) for seed in range(repetitions)])
        gap = truth[cell[1]]
        rows.append(
            {
                **dict(zip(("layout", "curves", "target"), cell, strict=True)),
                "repetitions": repetitions, "true_gap": gap, "mean_gap": found["value"].mean(),
                "coverage": found["low"].le(gap).mul(found["high"].ge(gap)).mean(),
                "above": found["low"].gt(gap).mean(),
                "width": (found["high"] - found["low"]).mean(),
                "called_clear": found["p_value"].lt(0.05).mean(),
            }
        )  # fmt: skip
        print(pd.DataFrame(rows[-1:]).round(3).to_string(header=len(rows) == 1), flush=True)
        about = {"resamples": RESAMPLES, "grid": len(GRID)}
        record("gap_coverage", rows, out, time.perf_counter() - begin, **about)


if __name__ == "__main__":
    command(__doc__, run, show_tables("gap_coverage"), repetitions=250, only="")
