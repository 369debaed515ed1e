"""A leaderboard from any store: one HTML file that needs no network and no server.

Methods are ranked at each setting by the median over phases and seeds, with the worst and best
beside it: a method that wins on the median and fails at one boundary should not look like a winner.
Over all settings, methods are ranked by their mean rank. Cells without a result are counted, not
left out in silence. Methods that were given the truth are marked and have no rank: nobody else has
to stand behind them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dcem.benchmark.read import missing, purposes, results, setting_columns
from dcem.files import write_text
from dcem.metrics import RANKING
from dcem.report.to_html import shell, template
from dcem.text import fraction

SHOWN = {name: {"words": one.words, "better": one.better} for name, one in RANKING.items()} | {
    "seconds": {"words": "Seconds per fit, of several fitted together", "better": "lower"}
}
WAYS = ("variant", "schedule")  # of a method, told where they are not those of most


def leaderboard(source: Path) -> str:
    """The page for a store, or for a table that `export` wrote."""
    frame = results(source)
    about = purposes(source)
    parts = frame.groupby("benchmark", sort=False) if "benchmark" in frame else [("results", frame)]
    boards = [_board(str(name), about.get(str(name), ""), part) for name, part in parts]
    data = {
        "metrics": SHOWN,
        "boards": boards,
        "missing": missing(source),
        "source": f"{len(frame)} results",
        "made_with": sorted(set(frame["versions"].dropna())) if "versions" in frame else [],
    }
    text = json.dumps(data, allow_nan=False).replace("</", "<\\/")
    body = template("leaderboard.html").replace("__DATA__", text)
    names = ", ".join(board["name"] for board in boards) or "no results"
    return shell(
        f"Leaderboard: {names}",
        f'<div class="board">\n{body}</div>',
        script=template("leaderboard.js"),
    )


def write_leaderboard(source: Path, output: Path) -> None:
    """Write the page, whole or not at all."""
    write_text(Path(output), leaderboard(source))


def _board(name: str, about: str, frame: pd.DataFrame) -> dict[str, Any]:
    """Settings and, for each, the methods with their statistics, metric by metric."""
    columns = setting_columns(frame)
    varied = [c for c in columns if frame[c].nunique(dropna=False) > 1]
    frame = frame.assign(auc_difference=frame["auc_difference"].abs())
    label = "label" if "label" in frame else "method"
    usual = {c: frame[c].mode().iloc[0] for c in WAYS if c in frame and frame[c].notna().any()}
    settings = []
    groups = frame.groupby(varied, dropna=False, sort=True) if varied else [((), frame)]
    for values, part in groups:
        values = values if isinstance(values, tuple) else (values,)
        rows = []
        for method, cells in part.groupby(label, sort=False):
            numbers = {m: _spread(cells[m]) for m in SHOWN if m in cells}
            first = cells.iloc[0]
            how = _how(first, usual)
            rows.append({"method": str(method), "how": how, "n": len(cells), **numbers})
            if _uses_truth(str(first["method"]), str(first.get("variant", ""))):
                rows[-1]["truth"] = True
        words = [_words(value) for value in values]
        text = ", ".join(map(" ".join, zip(varied, words, strict=True))) or "the only setting"
        settings.append({"name": text, "values": words, "rows": rows})
    fixed = ", ".join(f"{c} {_words(frame[c].iloc[0])}" for c in columns if c not in varied)
    ways = ", ".join(f"{way} {value}" for way, value in usual.items())
    head = {"name": name, "about": about, "fixed": fixed, "varied": varied, "ways": ways}
    return head | {"settings": settings}


def _how(first: pd.Series, usual: Mapping[str, str]) -> str:
    """What sets a row apart from the name it has and from what is usual in its benchmark."""
    method = str(first["method"])
    parts = [method] * (method not in str(first.get("label", method)))
    parts += [f"{way} {first[way]}" for way, value in usual.items() if first[way] != value]
    params = first.get("params")
    for name, value in json.loads(params if isinstance(params, str) and params else "{}").items():
        parts += [f"{name} {value}"] * (name not in WAYS)
    return ", ".join(parts)


def _words(value: Any) -> str:
    """A value as the paper writes it."""
    if not isinstance(value, float):
        return str(value)
    return "default" if np.isnan(value) else fraction(value)


@cache
def _uses_truth(method: str, variant: str) -> bool:
    """Whether a method saw the truth of every row, as an oracle or by a published choice."""
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
