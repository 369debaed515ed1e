"""A page about a saved model, for the person who is asked to use it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dcem import __version__
from dcem.extras import made_with
from dcem.table.disclosure import THRESHOLD, hide_groups

if TYPE_CHECKING:
    from dcem.methods.base import SelectiveClassifier


def shown_training_counts(estimator: SelectiveClassifier) -> pd.DataFrame:
    """The training counts of a model that anybody may see; NaN in place of the others."""
    counts = estimator.training_counts_
    if counts.isna().to_numpy().any():  # of a model that was loaded: hidden before
        return counts
    shown = hide_groups(counts.to_dict(orient="records"), getattr(estimator, "training_few_", None))
    plain = pd.DataFrame(shown[:-1], index=counts.index)
    return plain.apply(pd.to_numeric, errors="coerce").astype(float)


TRIPOD_AI = (
    ("5 data, 6 participants", "the table below, if the model was fitted to one; who they are, and"
     " when and where they were seen, is for the authors"),
    ("7 data preparation, 11 missing data", "the kinds of columns in the table below;"
     " `model.json` has every level and fill value"),
    ("8 outcome", "the roles label, tested, positive and untested, below; who was tested, and"
     " whether that was fair: `dcem audit`"),
    ("9 predictors", "the features, above and below"),
    ("10 sample size, 20 participants", "rows, tested and positive of each group, above;"
     " tests that a wanted precision needs: `dcem audit`"),
    ("12 analytical methods, 22 model specification", "the method and its parameters, above;"
     " `model.json` and `model.safetensors` are the model itself"),
    ("14 fairness, 23 model performance", "`dcem compare`, for everybody and for each group, with"
     " intervals; not in this card"),
    ("15 model output", "the first paragraph"),
    ("18 open science", "versions, below; the seed among the parameters"),
    ("26 limitations", "the assumption of the method and when it fails, above; `dcem audit` for"
     " what something unmeasured could overturn"),
    ("27 usability", "`support(X)` and the columns `distance` and `like_tested` of `dcem predict`"
     " say for whom it should not be used"),
)  # fmt: skip


def what_it_learnt(estimator: Any) -> str:
    """The truth or results of a test, and from whose decisions; nothing where neither is told."""
    learnt = [getattr(estimator, name, "") for name in ("learnt_from_", "deciders_")]
    told = " ".join(filter(None, learnt))
    return f"What it learnt: {told[:1].lower()}{told[1:]}" if told else ""


def model_card(estimator: SelectiveClassifier, counts: pd.DataFrame) -> str:
    """The page, in Markdown; `counts` is free of small cells already."""
    parameters = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in {"verbose", "device"}
    }
    features = getattr(estimator, "feature_names_in_", None)
    named = "" if features is None else ": " + ", ".join(f"`{name}`" for name in features)
    learnt = what_it_learnt(estimator)
    needs = "features and the group" if estimator.needs_group else "features alone"
    lines = [
        f"# Model card: {estimator.name}",
        "",
        f"A `{type(estimator).__name__}` of dcem {__version__}. It gives "
        f"{what_it_gives(estimator)} of class `{estimator.classes_[1]}` "
        f"(against `{estimator.classes_[0]}`) from {needs}.",
        "",
        *([learnt, ""] if learnt else ()),
        "## The method",
        "",
        (inspect.getdoc(type(estimator)) or "").split("\nParameters\n")[0].strip(),
        "",
        "## What it was trained on",
        "",
        f"{estimator.n_features_in_} features{named}. Rows per group, those tested among them, and "
        "positives among the tested, rows held out for stopping included. Counts under "
        f"{THRESHOLD}, and counts from which one could be computed, are withheld.",
        "",
        "| group | rows | tested | positive |",
        "|---|---:|---:|---:|",
    ]
    lines += [
        "| " + " | ".join([str(group), *map(_count_or_withheld, row)]) + " |"
        for group, row in zip(counts.index, counts.to_numpy(dtype=float), strict=True)
    ]
    lines += [
        "",
        "The label of an untested person was absent in training. What the model says about people "
        "unlike anybody tested rests on extrapolation: ask `support(X)` for each row.",
        "",
        "## Parameters",
        "",
        *(f"- `{name}`: `{as_text(value)}`" for name, value in parameters.items()),
        "",
        "## What this card does not say",
        "",
        "How good and how fair the model is where it is used. Test it there, on people whose "
        "outcome is known, group by group, before anybody relies on it.",
        "",
        "## Where a TRIPOD+AI report finds its items",
        "",
        "Collins and others, BMJ 2024;385:e078378. Items that are not listed are for the authors.",
        "",
        "| item | where |",
        "|---|---|",
        *(f"| {item} | {where} |" for item, where in TRIPOD_AI),
        "",
        "## Versions",
        "",
        f"{made_with()}.",
    ]
    return "\n".join(lines) + "\n"


def what_it_gives(estimator: SelectiveClassifier) -> str:
    """What its numbers are: a risk only if they were calibrated for everybody."""
    if estimator.calibrated:
        return "the risk"
    return "a score between 0 and 1, which ranks people and is not a calibrated risk,"


def as_text(value: object) -> str:
    """A parameter as one line, without the address of a function."""
    named = getattr(value, "__qualname__", None)
    return named if named else " ".join(repr(value).split())


def _count_or_withheld(value: float) -> str:
    return "withheld" if np.isnan(value) else f"{int(value):,}"
