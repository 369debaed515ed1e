"""How often the default DCEM beats tested-only over the whole grid of settings.

    python experiments/grid_summary.py

208 settings (q_y, k, q_t), 12 boundaries each, fresh draws that no choice of the fast schedule has
seen (`results/grid.csv`). A setting is better or worse where the two differ by more than .01.
"""

from __future__ import annotations

import pandas as pd

from _record import RESULTS

MARGIN = 0.01
QUESTIONS = {  # what is compared, how it is taken over the boundaries, and which way is better
    "median AUC": ("auc", "median", 1),
    "worst AUC": ("auc", "min", 1),
    "median gap": ("roc_gap", "median", -1),
    "worst gap": ("roc_gap", "max", -1),
}


def differences() -> pd.DataFrame:
    """DCEM minus tested-only, a row a setting; above zero is better in every column."""
    grid = pd.read_csv(RESULTS / "grid.csv")
    settings = ["q_y", "k", "q_t"]
    found = {}
    for question, (metric, how, sign) in QUESTIONS.items():
        by_method = grid.groupby([*settings, "method"])[metric].agg(how).unstack("method")
        found[question] = sign * (by_method["dcem"] - by_method["tested-only"])
    return pd.DataFrame(found).reset_index()


def main() -> None:
    table = differences()
    parts = {"all": table} | {f"k {k:g}": part for k, part in table.groupby("k")}
    print(f"{'':<12}{'':<12}{'better':>8}{'similar':>8}{'worse':>8}{'mean':>8}")
    for name, part in parts.items():
        for question in QUESTIONS:
            values = part[question]
            better, worse = (values > MARGIN).sum(), (values < -MARGIN).sum()
            similar = len(values) - better - worse
            print(
                f"{name:<12}{question:<12}{better:>8}{similar:>8}{worse:>8}{values.mean():>+8.3f}"
            )
            name = ""


if __name__ == "__main__":
    main()
