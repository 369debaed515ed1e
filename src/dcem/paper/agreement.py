"""Do two runs of the same cells agree: another machine, another version, another backend?

Cells are paired by what they are (setting, phase, seed, label): every difference is a paired one.
The tolerances are those by which a run is held against the published figures.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dcem.benchmark.read import SETTING
from dcem.paper.published import (
    COLUMNS,
    MEDIAN_TOLERANCE,
    METRICS,
    POINTS_TOLERANCE,
    SINGLE_STAGE,
)
from dcem.table.checks import InputError, require_columns

_WITHIN = ("phase", "beta", "stream", "seed", "fit_seed")


def compare_runs(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Two tables of results, setting by setting; columns as of `published.compare`.

    `ours` and `published` are the medians of the two runs, `points` is the median absolute
    difference of paired cells. Cells that only one run has, or that have no result, make a setting
    "incomplete".
    """
    for frame, which in ((ours, "the first run"), (theirs, "the second run")):
        require_columns(frame.columns, ["method", *METRICS], which)
    keys = [c for c in (*SETTING, *_WITHIN, "method", "label") if c in ours and c in theirs]
    left, right = (frame[[*keys, *METRICS]].drop_duplicates(keys) for frame in (ours, theirs))
    for frame in (left, right):  # thirds are thirds, also after a trip through text
        numbers = frame.select_dtypes("number").columns.difference(list(METRICS))
        frame[numbers] = frame[numbers].astype(float).round(6)
    both = left.merge(right, on=keys, how="outer", suffixes=("", "_other"), indicator=True)
    if not (both["_merge"] == "both").any():
        raise InputError("The two runs have no cell in common: there is nothing to compare.")
    setting = [c for c in (*SETTING, "method", "label") if c in keys]
    rows = []
    for values, part in both.groupby(setting, dropna=False, sort=False):
        named = dict(zip(setting, values if isinstance(values, tuple) else (values,), strict=True))
        for metric in METRICS:
            rows.append(_judge(named, part, metric))
    return pd.DataFrame(rows, columns=COLUMNS)


def _judge(named: dict[str, Any], part: pd.DataFrame, metric: str) -> list[Any]:
    both = part["_merge"] == "both"
    paired = part[both].dropna(subset=[metric, f"{metric}_other"])
    ours, theirs = paired[metric].to_numpy(float), paired[f"{metric}_other"].to_numpy(float)
    single = named["method"] in SINGLE_STAGE
    tolerance = MEDIAN_TOLERANCE["single-stage" if single else "iterative"][metric]
    medians = [float(np.median(x)) if len(x) else np.nan for x in (ours, theirs)]
    difference = medians[0] - medians[1]
    points = float(np.median(np.abs(ours - theirs))) if len(ours) else np.nan
    alone, unfinished = int((~both).sum()), int(both.sum()) - len(paired)
    why = []
    if alone or unfinished:
        why += [f"{alone} cells are in one run only"] * bool(alone)
        why += [f"{unfinished} cells have no result"] * bool(unfinished)
    elif not abs(difference) <= tolerance:
        why.append(f"medians differ by {abs(difference):.4f}, allowed {tolerance}")
    elif single and not points <= POINTS_TOLERANCE:
        why.append(f"paired cells differ by {points:.4f}, allowed {POINTS_TOLERANCE}")
    verdict = "incomplete" if alone or unfinished else "off" if why else "agrees"
    words = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{value}"
        for name, value in named.items()
        if name in SETTING and pd.notna(value)
    )
    label = str(named.get("label", named["method"]))
    numbers = [len(ours), *medians, difference, points]
    return ["runs", words, label, metric, *numbers, verdict, "; ".join(why)]
