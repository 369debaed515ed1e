"""What the paper printed: its methods, and its figures and tables as numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dcem.metrics import RANKING

METRICS = ("roc_gap", "auc")  # of its figures, in its order, left and right
METRIC_NAMES = {"auc": "AUC", "roc_gap": "ROC gap"}
BETTER = {name: 1.0 if RANKING[name].better == "higher" else -1.0 for name in METRICS}
SETTING = ["q_y", "k", "q_t"]  # of the simulation
CLOSE = 1e-3  # parameters of a setting that are the same
TABLES = ("ablation", "causal-estimators", "temperature", "initialization")


class Method(NamedTuple):
    """A method as the paper has it."""

    words: str
    training: str = ""  # single-stage (one network, one loss) or iterative; "": in no figure
    main: bool = False  # in the main figures; the others are in the appendix only
    look: tuple[int, str] = (5, "*")  # colour (of the palette) and marker, where told apart by them


# In the order in which they are drawn. A method has the same look in every picture; colours recur
# among methods that never meet, and the star is for those that no figure sets apart.
METHOD_STYLES = {
    "y-model": Method("y-model (oracle)", "single-stage", main=True),
    "y-obs": Method("y-obs", "single-stage", main=True, look=(0, "o")),
    "group-0-only": Method("group 0 only", "single-stage", main=True),
    "group-1-only": Method("group 1 only", "single-stage", main=True),
    "peer-loss": Method("peer loss", "single-stage"),
    "group-peer-loss": Method("group peer loss", "single-stage", main=True, look=(2, "X")),
    "truncated-lq": Method("truncated L_q", "single-stage"),
    "gjs": Method("JS", "single-stage"),
    "self": Method("SELF", "iterative", main=True, look=(4, "P")),
    "dividemix": Method("DivideMix", "iterative"),
    "dragonnet": Method("DragonNet", "iterative", main=True),
    "sar-em": Method("SAR-EM", "iterative", main=True, look=(5, "<")),
    "tested-only": Method("tested-only", "single-stage", main=True, look=(1, "s")),
    "tested-only-plus-group": Method("tested-only + group", look=(5, "h")),
    "ipw": Method("IPW", look=(2, "^")),
    "dr-learner": Method("DR-learner", look=(4, "v")),
    "imputation-only": Method("imputation-only"),
    "no-causal-regularization": Method("no causal regularisation"),
    "dcem": Method("DCEM", "iterative", main=True, look=(3, "D")),
}
ORACLE = "y-model"
METHOD_NAMES = {name: method.words for name, method in METHOD_STYLES.items()}
SELECTED = tuple(name for name, method in METHOD_STYLES.items() if method.main)
# What its figures compare DCEM with; its tables have further estimators.
BASELINES = tuple(n for n, m in METHOD_STYLES.items() if m.training and n not in (ORACLE, "dcem"))
SINGLE_STAGE = tuple(
    name for name, method in METHOD_STYLES.items() if method.training == "single-stage"
)


@cache
def _stored(name: str) -> pd.DataFrame:
    file = resources.files("dcem.paper") / "published_figures" / f"{name}.csv"
    with file.open("rb") as stream:
        frame = pd.read_csv(stream)
    if "values" in frame:
        points = [np.array(text.split(), dtype=float) for text in frame["values"]]
        frame["values"] = pd.Series(points, dtype=object)
    return frame


def figures() -> pd.DataFrame:
    """The simulation figures: q_y, k, q_t, method, metric, median, min, max, values (sorted)."""
    return _stored("synthetic").copy()


def sepsis_figures() -> pd.DataFrame:
    """The sepsis figures: k, q_t, method, metric, n, median, min, max, values."""
    return _stored("sepsis").copy()


def tables() -> pd.DataFrame:
    """The appendix tables: table, row, and median, minimum and maximum of AUC and ROC gap."""
    return _stored("tables").copy()


def at(table: pd.DataFrame, **setting: float) -> pd.Series:
    """Which rows are at a setting; thirds are written with four digits in some tables."""
    same = pd.Series(True, index=table.index)
    for name, value in setting.items():
        same &= (table[name].astype(float) - value).abs() < CLOSE if name in table else False
    return same


def parts_of(table: pd.DataFrame, by: list[str]) -> Iterator[tuple[Any, pd.DataFrame]]:
    """The rows of each group, in the order in which they come."""
    return iter(table.groupby(by, sort=False))


def each(table: pd.DataFrame) -> Iterator[Any]:
    """The rows as named tuples; their fields have the types of the columns."""
    return iter(table.itertuples())
