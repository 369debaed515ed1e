"""A page about a saved model, for the person who is asked to use it."""

from __future__ import annotations

import inspect
import platform
from importlib import metadata
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dcem import __version__

if TYPE_CHECKING:
    from dcem.methods.base import SelectiveClassifier

SMALLEST_CELL = 10


def without_small_cells(counts: pd.DataFrame, people: pd.DataFrame | None = None) -> pd.DataFrame:
    """Counts of rows per group with NaN in place of those that could point at a person.

    A count is withheld if fewer than ten people are behind it, or behind the rest of the count that
    it is a part of: the difference is a small cell too. `people` counts the different people of
    each cell, and of the rest (`untested`, `negative`); None says that every row is a person.
    """
    shown = counts.astype(float).copy()
    if people is None:
        people = shown.assign(
            untested=shown["rows"] - shown["tested"], negative=shown["tested"] - shown["positive"]
        )

    def small(cell: str) -> pd.Series:
        return ~(people[cell] >= SMALLEST_CELL)  # what was withheld before stays so

    def part(cell: str, rest: str) -> pd.Series:
        return shown[cell].mask(small(cell) | (small(rest) & ~(people[rest] == 0)))

    shown["rows"] = shown["rows"].mask(small("rows"))
    shown["tested"] = part("tested", "untested")
    shown["positive"] = part("positive", "negative").mask(shown["tested"].isna())
    return shown


def shown_counts(estimator: SelectiveClassifier) -> pd.DataFrame:
    """The training counts of a model that anybody may see."""
    people = getattr(estimator, "training_people_", None)
    return without_small_cells(estimator.training_counts_, people)


def model_card(estimator: SelectiveClassifier, counts: pd.DataFrame, about_table: str = "") -> str:
    """The page, in Markdown; `counts` is free of small cells already."""
    parameters = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in {"verbose", "device"}
    }
    features = getattr(estimator, "feature_names_in_", None)
    named = "" if features is None else ": " + ", ".join(f"`{name}`" for name in features)
    needs = "features and the group" if estimator.needs_group else "features alone"
    lines = [
        f"# Model card: {estimator.name}",
        "",
        f"A `{type(estimator).__name__}` of dcem {__version__}. It gives {_what(estimator)} of "
        f"class `{estimator.classes_[1]}` (against `{estimator.classes_[0]}`) from {needs}.",
        "",
        "## The method",
        "",
        (inspect.getdoc(type(estimator)) or "").split("\nParameters\n")[0].strip(),
        "",
        "## What it was trained on",
        "",
        f"{estimator.n_features_in_} features{named}. Rows per group, those tested among them, and "
        "positives among the tested, rows held out for stopping included. Counts under "
        f"{SMALLEST_CELL}, and counts from which one could be computed, are withheld.",
        "",
        "| group | rows | tested | positive |",
        "|---|---:|---:|---:|",
    ]
    lines += [
        "| " + " | ".join([str(group), *map(_count, row)]) + " |"
        for group, row in zip(counts.index, counts.to_numpy(dtype=float), strict=True)
    ]
    lines += [
        "",
        "The label of an untested person was absent in training. What the model says about people "
        "unlike anybody tested rests on extrapolation: ask `support(X)` for each row.",
        "",
        *([about_table.strip(), ""] if about_table else []),
        "## Parameters",
        "",
        *(f"- `{name}`: `{_value(value)}`" for name, value in parameters.items()),
        "",
        "## What this card does not say",
        "",
        "How good and how fair the model is where it is used. Test it there, on people whose "
        "outcome is known, group by group, before anybody relies on it.",
        "",
        "## Versions",
        "",
        f"dcem {__version__}, {_versions()}, Python {platform.python_version()}.",
    ]
    return "\n".join(lines) + "\n"


def _what(estimator: SelectiveClassifier) -> str:
    """What its numbers are: a risk only if they were calibrated for everybody."""
    if estimator.calibrated:
        return "the risk"
    return "a score between 0 and 1, which ranks people and is not a calibrated risk,"


def _versions() -> str:
    found = []
    for name in ("torch", "lightgbm", "scikit-learn", "numpy"):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue  # an extra that is not installed took no part
    return ", ".join(found)


def _value(value: object) -> str:
    """A parameter as one line, without the address of a function."""
    named = getattr(value, "__qualname__", None)
    return named if named else " ".join(repr(value).split())


def _count(value: float) -> str:
    return "withheld" if np.isnan(value) else f"{int(value):,}"
