"""A leaderboard from any store: one HTML file that needs no network and no server.

Methods are ranked at each setting by the median over phases and seeds, with the worst and best
beside it: a method that wins on the median and fails at one boundary should not look like a winner.
Over all settings, methods are ranked by their mean rank. Cells without a result are counted, not
left out in silence, and methods that were given the truth are marked: none of them is a winner.
"""

from __future__ import annotations

import html
import json
import os
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dcem.benchmark.agreement import SETTING
from dcem.benchmark.reading import missing, purposes, results

# Metric -> (words, which way is better)
METRICS = {
    "auc": ("AUC", "higher"),
    "roc_gap": ("ROC gap (exact)", "lower"),
    "roc_gap_grid": ("ROC gap (as published)", "lower"),
    "xauc_difference": ("xAUC difference", "lower"),
    "auc_difference": ("AUC difference of the groups, absolute", "lower"),
    "seconds": ("Seconds a fit, in its fleet", "lower"),
}


def leaderboard(source: Path) -> str:
    """The page for a store, or for a table that `export` wrote."""
    frame = results(source)
    about = purposes(source)
    boards = [_board(name, about.get(name, ""), part) for name, part in _benchmarks(frame)]
    data = {
        "metrics": {name: {"words": w, "better": b} for name, (w, b) in METRICS.items()},
        "boards": boards,
        "missing": missing(source),
        "source": f"{len(frame)} results",
        "made_with": sorted(set(frame["versions"].dropna())) if "versions" in frame else [],
    }
    template = (resources.files("dcem.benchmark") / "leaderboard.html").read_text(encoding="utf-8")
    text = json.dumps(data, allow_nan=False).replace("</", "<\\/")
    title = html.escape(", ".join(board["name"] for board in boards) or "no results")
    return template.replace("__TITLE__", title).replace("__DATA__", text)


def write_leaderboard(source: Path, output: Path) -> None:
    """Write the page, whole or not at all."""
    text = leaderboard(source)
    partial = Path(output).with_name(f".{os.getpid()}.{Path(output).name}")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, output)


def _benchmarks(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    if "benchmark" not in frame:
        return [("results", frame)]
    return [(str(name), part) for name, part in frame.groupby("benchmark", sort=False)]


def _board(name: str, about: str, frame: pd.DataFrame) -> dict[str, Any]:
    """Settings and, for each, the methods with their statistics, metric by metric."""
    columns = [c for c in SETTING if c in frame and frame[c].notna().any()]
    varied = [c for c in columns if frame[c].nunique(dropna=False) > 1]
    frame = frame.assign(auc_difference=frame["auc_difference"].abs())
    label = "label" if "label" in frame else "method"
    settings = []
    groups = frame.groupby(varied, dropna=False, sort=True) if varied else [((), frame)]
    for values, part in groups:
        values = values if isinstance(values, tuple) else (values,)
        rows = []
        for method, cells in part.groupby(label, sort=False):
            numbers = {m: _spread(cells[m]) for m in METRICS if m in cells}
            rows.append({"method": str(method), "n": len(cells), **numbers})
            if _was_given_truth(cells):
                rows[-1]["truth"] = True
        words = [_words(value) for value in values]
        text = ", ".join(map(" ".join, zip(varied, words, strict=True))) or "the only setting"
        settings.append({"name": text, "values": words, "rows": rows})
    fixed = ", ".join(f"{c} {_words(frame[c].iloc[0])}" for c in columns if c not in varied)
    head = {"name": name, "about": about, "fixed": fixed, "varied": varied}
    return head | {"settings": settings}


def _words(value: Any) -> str:
    if isinstance(value, float):
        return "default" if np.isnan(value) else f"{value:.3g}"
    return str(value)


def _was_given_truth(cells: pd.DataFrame) -> bool:
    """Whether a method saw the truth of every row, as an oracle or by a published choice."""
    first = cells.iloc[0]
    return _uses_truth(str(first["method"]), str(first.get("variant", "")))


@cache
def _uses_truth(method: str, variant: str) -> bool:
    from dcem.methods.registry import METHODS

    if method not in METHODS:
        return False
    estimator = METHODS[method]()
    if "variant" in estimator.get_params(deep=False) and variant:
        estimator.set_params(variant=variant)
    return estimator.uses_truth


def _spread(values: pd.Series) -> list[float] | None:
    """Median, least and greatest; None where there is none."""
    numbers = values.dropna().to_numpy(dtype=float)
    if len(numbers) == 0:
        return None
    return [round(float(f(numbers)), 6) for f in (np.median, np.min, np.max)]
