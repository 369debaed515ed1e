"""How often the default DCEM beats tested-only over the whole grid of settings, and how surely.

    python experiments/grid_summary.py

208 settings (q_y, k, q_t), 12 boundaries each, fresh draws that no choice of the fast schedule has
seen (`results/grid.csv`). Three tables:

* by how it is taken over the boundaries: a setting is better or worse where the two differ by more
  than .01;
* paired, boundary by boundary: the mean difference with its 95 % interval. The same boundaries
  recur in all settings, so that over settings a boundary is one observation: 12 of them, whatever
  the number of settings. A single setting is clearly better or worse by its own paired t test,
  Holm's correction over the settings of the table. Without k 4: everybody is tested there, and its
  seven q_t name the same data sets;
* over boundaries and draws: four settings drawn five times (`results/seeds.csv`). Boundaries and
  draws both recur, so their variances add (two-way clusters), with the fewer degrees of freedom.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from _record import RESULTS

MARGIN, LEVEL = 0.01, 0.95
SETTING = ["q_y", "k", "q_t"]
BETTER = {"auc": 1, "roc_gap": -1}  # which way is better
QUESTIONS = {  # what is compared, and how it is taken over the boundaries
    "median AUC": ("auc", "median"),
    "worst AUC": ("auc", "min"),
    "median gap": ("roc_gap", "median"),
    "worst gap": ("roc_gap", "max"),
}
TOLERANCE = 0.005  # by which the default may be worse than the better of two rivals


def differences(grid: pd.DataFrame) -> pd.DataFrame:
    """DCEM minus tested-only, a row per setting; above zero is better in every column."""
    found = {}
    for question, (metric, how) in QUESTIONS.items():
        by_method = grid.groupby([*SETTING, "method"])[metric].agg(how).unstack("method")
        found[question] = BETTER[metric] * (by_method["dcem"] - by_method["tested-only"])
    return pd.DataFrame(found).reset_index()


def paired(grid: pd.DataFrame, metric: str) -> pd.DataFrame:
    """DCEM minus tested-only on the same data set [settings (and draws), boundaries]."""
    keys = [*SETTING, *(["seed"] if grid["seed"].nunique() > 1 else [])]
    wide = grid.pivot_table(index=[*keys, "phase"], columns="method", values=metric)
    return BETTER[metric] * (wide["dcem"] - wide["tested-only"]).unstack("phase")


def interval(mean: float, variance: float, freedom: int) -> tuple[float, float, float]:
    """Mean with its t interval."""
    half = stats.t.ppf((1 + LEVEL) / 2, freedom) * np.sqrt(variance)
    return mean, mean - half, mean + half


def over_boundaries(table: np.ndarray) -> tuple[float, float, float]:
    """The mean of [settings, boundaries]; a boundary is one observation."""
    values = table.mean(axis=0)
    return interval(values.mean(), values.var(ddof=1) / len(values), len(values) - 1)


def over_boundaries_and_draws(table: np.ndarray) -> tuple[float, float, float]:
    """The mean of [draws, boundaries], both of which recur; never surer than either alone."""
    rows, columns = table.mean(axis=1), table.mean(axis=0)
    by_draw, by_boundary = rows.var(ddof=1) / len(rows), columns.var(ddof=1) / len(columns)
    both = by_draw + by_boundary - table.var(ddof=1) / table.size
    return interval(table.mean(), max(both, by_draw, by_boundary), min(table.shape) - 1)


def clearly(table: np.ndarray) -> tuple[int, int]:
    """At how many settings [settings, boundaries] DCEM is clearly better, and clearly worse."""
    moving = table[table.std(axis=1) > 0]
    result = stats.ttest_1samp(moving, 0.0, axis=1)
    order = np.argsort(result.pvalue)
    allowed = (1 - LEVEL) / np.arange(len(order), 0, -1)  # Holm
    passed = np.cumprod(result.pvalue[order] <= allowed).astype(bool)
    signs = np.sign(result.statistic[order][passed])
    return int((signs > 0).sum()), int((signs < 0).sum())


def by_k(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """All settings, then those of each k."""
    return {"all": table} | {f"k {k:g}": part for k, part in table.groupby("k")}


def main() -> None:
    grid = pd.read_csv(RESULTS / "grid.csv")
    print(f"{'':<12}{'':<12}{'better':>8}{'similar':>8}{'worse':>8}{'mean':>8}")
    for name, part in by_k(differences(grid)).items():
        for question in QUESTIONS:
            values = part[question]
            better, worse = (values > MARGIN).sum(), (values < -MARGIN).sum()
            similar = len(values) - better - worse
            print(
                f"{name:<12}{question:<12}{better:>8}{similar:>8}{worse:>8}{values.mean():>+8.3f}"
            )
            name = ""
    print(f"\n{'paired':<12}{'':<12}{'clearly better':>15}{'worse':>7}{'mean':>8}  95 % interval")
    for name, part in by_k(grid[grid["k"] < 4]).items():
        for metric in BETTER:
            table = paired(part, metric).to_numpy()
            better, worse = clearly(table)
            mean, low, high = over_boundaries(table)
            numbers = f"{better:>15}{worse:>7}{mean:>+8.3f}  [{low:+.3f}, {high:+.3f}]"
            print(f"{name:<12}{metric:<12}{numbers}")
            name = ""
    print(f"\n{'12 boundaries x 5 draws':<24}{'mean':>8}  95 % interval")
    seeds = pd.read_csv(RESULTS / "seeds.csv")
    for (_, k, q_t), part in seeds.groupby(SETTING):
        for metric in BETTER:
            mean, low, high = over_boundaries_and_draws(paired(part, metric).to_numpy())
            place = f"k {k:g}, q_t {q_t:g}, {metric}"
            print(f"{place:<24}{mean:>+8.3f}  [{low:+.3f}, {high:+.3f}]")


if __name__ == "__main__":
    main()
