"""Small made-up tables, from NumPy's frozen generator: the same on every machine and version."""

from typing import Any

import numpy as np

Table = dict[str, Any]


def made(
    n: int,
    seed: int,
    *,
    n_groups: int = 2,
    nudge: float = 0.0,
    missing: bool = True,
    sharpness: float = 1.5,
) -> Table:
    """Rows of three features: whom testing prefers differs by group, and one feature has gaps.

    `nudge` changes each feature by so much of itself, up or down; `sharpness`
    is how steeply testing depends on one of them.
    """
    rng = np.random.RandomState(seed)
    code = rng.randint(n_groups, size=n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 0.6 * code
    risk = expit(1.3 * X[:, 0] - X[:, 1] + 0.8 * np.sin(2 * X[:, 2]) - 0.5)
    chance = expit(sharpness * X[:, 1] + 0.8 * code - 0.3)
    truth = (rng.uniform(size=n) < risk).astype(float)
    tested = rng.uniform(size=n) < chance
    gaps = rng.uniform(size=n) < 0.08
    if missing:
        X[gaps, 2] = np.nan
    X *= 1 + nudge * np.where(rng.uniform(size=X.shape) < 0.5, -1, 1)
    return {"X": X, "truth": truth, "tested": tested, "group": np.array(list("abcdefgh"))[code]}


def weighted(rows: Table, seed: int) -> Table:
    """The same rows with weights, of which one in ten is zero."""
    rng = np.random.RandomState(seed)
    weight = rng.uniform(0.2, 4, size=len(rows["truth"]))
    return rows | {"weight": np.where(rng.uniform(size=len(weight)) < 0.1, 0.0, weight)}


def of_people(rows: Table, seed: int, n_people: int = 80) -> Table:
    """The same rows as repeated visits of fewer people."""
    rng = np.random.RandomState(seed)
    return rows | {"person": rng.randint(n_people, size=len(rows["truth"]))}


def at_times(rows: Table, seed: int) -> Table:
    """The same rows with times, in any order."""
    rng = np.random.RandomState(seed)
    return rows | {"time": rng.permutation(len(rows["truth"]))}


def expit(z: np.ndarray) -> np.ndarray:
    """The logistic function."""
    return 1 / (1 + np.exp(-z))


def signature(values: np.ndarray) -> dict[str, Any]:
    """A long array in short: its length, some quantiles, its mean and a sum that sees the order."""
    order = np.cos(np.arange(len(values)) * 0.7)
    return {
        "length": len(values),
        "quantiles": np.quantile(values, [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1]),
        "mean": float(np.mean(values)),
        "ordered": float(np.mean(values * order)),
    }
