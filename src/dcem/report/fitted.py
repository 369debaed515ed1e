"""A fitted method as a document, and what the cards of all models say: method, people, settings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from math import isnan
from typing import Any

from dcem import __version__
from dcem.estimation.results import EXTRAPOLATION
from dcem.extras import made_with
from dcem.report import document as doc
from dcem.report.shared import sections
from dcem.saving.plain_data import shown_training_counts
from dcem.table.disclosure import THRESHOLD

EMPHASIS = re.compile(r"(?<!\w)\*(\w[^*]*?[\w.])\*(?!\w)")  # of a docstring: prose has none here
NOT_TOLD = ("verbose", "device")  # parameters that say nothing of a model
TRIPOD_AI = (
    ("5 data, 6 participants", "the table, if the model was fitted to one; who they are, and"
     " when and where they were seen, is for the authors"),
    ("7 data preparation, 11 missing data", "the kinds of columns of the table;"
     " `model.json` has every level and fill value"),
    ("8 outcome", "the roles label, tested, positive and untested of the table; who was tested, and"
     " whether that was fair: `dcem audit`"),
    ("9 predictors", "the features"),
    ("10 sample size, 20 participants", "rows, tested and positive of each group;"
     " tests that a wanted precision needs: `dcem audit`"),
    ("12 analytical methods, 22 model specification", "the method and its parameters;"
     " `model.json` and `model.safetensors` are the model itself"),
    ("14 fairness, 23 model performance", "`dcem compare`, for everybody and for each group, with"
     " intervals; not in this card"),
    ("15 model output", "the first paragraph"),
    ("18 open science", "versions; the seed among the parameters"),
    ("26 limitations", "the assumption of the method and when it fails; `dcem audit` for"
     " what an unmeasured cause could change"),
    ("27 usability", "`support(X)` and the columns `distance` and `like_tested` of `dcem predict`"
     " say for whom it should not be used"),
)  # fmt: skip


def fitted_document(estimator: Any) -> doc.Document:
    """The card of a method that was fitted to arrays: nobody has judged it."""
    features = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    named = ": " * bool(features) + ", ".join(f"`{name}`" for name in features)
    needs = "features and the group" if estimator.needs_group else "features alone"
    first, second = estimator.classes_
    unsaid = (
        "How good and how fair the model is where you will use it. Test it there, on people whose "
        "outcome is known, group by group, before anybody relies on it."
    )
    items = doc.table(
        "", ("item", "where"), TRIPOD_AI, words=(1,),
        note="Collins and others, BMJ 2024;385:e078378. Items that are not listed are for the "
        "authors.",
    )  # fmt: skip
    made = (
        ("method", "The method", [doc.Text(method_notes(estimator))]),
        (
            "trained",
            "What it was trained on",
            [
                doc.Text((f"{estimator.n_features_in_} features{named}.",)),
                *people_blocks(estimator, "ask `support(X)` for each row"),
            ],
        ),
        ("unsaid", "What this card does not say", [doc.Text((unsaid,))]),
        ("tripod", "Where a TRIPOD+AI report finds its items", [items]),
    )
    return doc.Document(
        title=f"Model card: {estimator.name}",
        lead=f"A `{type(estimator).__name__}` of dcem {__version__}. It gives "
        f"{what_it_gives(estimator)} of class `{second}` (against `{first}`) from {needs}. "
        f"{what_it_learnt(estimator)}".rstrip(),
        opening=None,
        findings=None,
        sections=sections(made, fit_settings(estimator) | {"versions": made_with()}),
        footer="No individual row is on this page.",
        names=frozenset([*features, *map(str, estimator.training_counts_.index)]),
    )


def what_it_gives(estimator: Any) -> str:
    """What its numbers are: a risk only if they were calibrated for everybody."""
    if estimator.calibrated:
        return "the risk"
    return "a score between 0 and 1, which ranks people and is not a calibrated risk,"


def what_it_learnt(estimator: Any) -> str:
    """The truth or results of a test, and from whose decisions; nothing where neither is told."""
    learnt = [getattr(estimator, name, "") for name in ("learnt_from_", "deciders_")]
    text = " ".join(filter(None, learnt))
    return f"What it learnt: {text[:1].lower()}{text[1:]}" if text else ""


def method_notes(estimator: Any) -> tuple[str, ...]:
    """What the docstring of a method says before its parameters, paragraph by paragraph."""
    said = inspect.getdoc(type(estimator)) or ""
    said = said.split("\nParameters\n")[0].split("\nReferences\n")[0].strip()
    return tuple(" ".join(part.split()) for part in EMPHASIS.sub(r"\1", said).split("\n\n"))


def people_blocks(estimator: Any, ask: str, *, positives_only: bool = False) -> Iterator[doc.Block]:
    """Who taught it, and how to `ask` whether somebody is unlike them."""
    counts = shown_training_counts(estimator)
    caption = "Rows, those tested among them, and positives among the tested"
    if positives_only:
        counts = counts[["rows", "positive"]].rename(columns={"positive": "found positive"})
        caption = "Rows, and those found positive"
    rows = [
        (doc.Name(str(group)), *(doc.WITHHELD if isnan(n) else doc.Count(int(n)) for n in row))
        for group, row in zip(counts.index, counts.to_numpy(dtype=float), strict=True)
    ]
    note = f"Counts under {THRESHOLD}, and counts that would reveal one, are withheld."
    yield doc.table(caption, ("group", *counts.columns), rows, note=note)
    if not positives_only:
        said = (
            "In training, untested people had no label. What the model says about people unlike "
            f"anybody tested is {EXTRAPOLATION}; {ask}."
        )
        yield doc.Text((said,))


def fit_settings(estimator: Any) -> dict[str, str]:
    """Its parameters, each as one line, without the address of a function."""
    given = estimator.get_params(deep=False)
    return {
        name: getattr(value, "__qualname__", None) or " ".join(repr(value).split())
        for name, value in given.items()
        if name not in NOT_TOLD
    }
