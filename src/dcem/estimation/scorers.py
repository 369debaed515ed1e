"""Scorers for model selection where labels are missing.

`cross_val_score` and `GridSearchCV` compare predictions with labels. Where labels were collected
selectively, agreement with the record is the wrong score: it rewards a model that knows who was
tested. These scorers judge a model for the tested, or for everybody, on held-out rows whose labels
are NaN where nobody looked, or told apart by `tested`:

    >>> from sklearn.model_selection import GridSearchCV
    >>> from dcem.estimation import SelectiveKFold, scorer
    >>> search = GridSearchCV(model, grid, scoring=scorer("dr-auc"), cv=SelectiveKFold(5))
    ... # doctest: +SKIP

The models behind "ipw" and "dr" are fitted to the held-out rows, fold by fold within them, so that
no model that is judged has a say in its own judgement. With scikit-learn's metadata routing,
`tested`, `sensitive_features` and `sample_weight` reach the scorer as they reach `fit`; without it
they do not, and labels must be NaN where nobody looked.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from dcem.estimation import measures
from dcem.estimation.evaluator import Evaluator
from dcem.metrics._inputs import read_score
from dcem.table.checks import check_features
from dcem.table.labels import SelectiveLabels
from dcem.table.messages import (
    DataWarning,
    InputError,
    notice,
    require_one_of,
    require_share,
    values_text,
)
from dcem.table.transformer import frame_encoder

TARGETS = ("tested", "ipw", "dr")
MEASURES = ("auc", "net-benefit")
KEPT = 16  # held-out sets whose models are kept: a search scores the same ones again and again


def scorer(
    name: str,
    *,
    threshold: float = 0.5,
    test_sensitivity: Any = None,
    test_specificity: Any = None,
    prevalence: Any = None,
    random_state: int = 0,
) -> SelectiveScorer:
    """A scorer by name: what is measured, for whom.

    Parameters
    ----------
    name
        "tested-auc", "ipw-auc", "dr-auc", or the same with "net-benefit". "tested" is right for the
        tested alone; "ipw" and "dr" for everybody, if features and group explain who is tested.
    threshold
        The risk at which somebody acts, for the net benefit.
    test_sensitivity, test_specificity
        Of an imperfect test, for everybody or by group; see `SelectiveLabels.from_arrays`.
    prevalence
        How common the outcome is known to be, likewise.
    random_state
        Seed of the models behind "ipw" and "dr".
    """
    known = [f"{target}-{measure}" for target in TARGETS for measure in MEASURES]
    require_one_of("name", name, known)
    require_share("threshold", threshold, 0.2)
    target, _, measure = name.partition("-")
    rates = {"test_sensitivity": test_sensitivity, "test_specificity": test_specificity}
    rates["prevalence"] = prevalence
    return SelectiveScorer(target, measure, threshold, random_state, rates)


@dataclass(repr=False, eq=False)
class SelectiveScorer:
    """Called with a fitted model, rows and labels (NaN where untested); higher is better.

    Labels are those that the model was fitted to: the second of its `classes_` is the outcome.
    """

    target: str
    measure: str
    threshold: float
    random_state: int
    rates: Mapping[str, Any]  # stated of the test, and of the outcome
    _known: dict[str, Evaluator] = field(default_factory=dict)

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        tested: Any = None,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """The measure of the model's probabilities on these rows."""
        label = _labels(y, estimator.classes_)
        known = {"sensitive_features": sensitive_features}
        asks = get_routing_for_object(estimator).consumes("predict_proba", known)
        told = {name: known[name] for name in asks}  # a method that predicts with the group
        score = read_score(np.asarray(estimator.predict_proba(X, **told))[:, 1])
        if tested is None and not np.isnan(label).any():
            notice(
                "No label is missing among the scored rows, so all of them count as tested. If "
                "untested rows are recorded as 0, replace these zeros with NaN, or pass `tested` "
                "to the scorer (metadata routing)."
            )
        evaluator = self._evaluator(X, label, tested, sensitive_features, sample_weight)
        why = evaluator.lacking(self.target)
        if why:
            notice(f"No score: {why}.")
            return float("nan")
        masses = evaluator.masses[self.target]
        if self.measure == "auc":
            return measures.auc(score, masses).value
        return measures.net_benefit(score, masses, self.threshold).value

    def get_metadata_routing(self) -> MetadataRequest:
        """What scikit-learn hands to the scorer of what belongs to rows, if it routes metadata."""
        request = MetadataRequest(owner=self)
        for name in ("tested", "sensitive_features", "sample_weight"):
            request.score.add_request(param=name, alias=True)
        return request

    def _evaluator(self, X: Any, y: np.ndarray, tested: Any, group: Any, weight: Any) -> Evaluator:
        """What judges these rows; made once for each set of them."""
        tested = ~np.isnan(y) if tested is None else tested
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # said of the training rows
            rows = _encoded(X)
            key = str(joblib.hash([rows, *map(np.asarray, (y, tested, group, weight))]))
            if key in self._known:
                return self._known[key]
            problem = SelectiveLabels.from_arrays(
                rows, y, tested=tested, group=group, weight=weight, **self.rates
            )
        while len(self._known) >= KEPT:
            self._known.pop(next(iter(self._known)))
        return self._known.setdefault(key, Evaluator(problem, random_state=self.random_state))

    def __repr__(self) -> str:
        return f'scorer("{self.target}-{self.measure}")'


def _encoded(X: Any) -> np.ndarray:
    """Features [n, d] of whatever rows a model takes, encoded as our methods encode a frame."""
    frame = X if hasattr(X, "columns") else pd.DataFrame(X.toarray() if issparse(X) else X)
    encoder = frame_encoder(frame)
    return check_features(frame)[0] if encoder is None else encoder.transform(frame)


def _labels(y: Any, classes: np.ndarray) -> np.ndarray:
    """1 for the second of a model's classes, 0 for the first, NaN where a label is missing [n]."""
    if len(classes) != 2:
        raise InputError(f"The model has {len(classes)} classes; a score needs exactly two.")
    given = np.asarray(y, object).ravel()
    missing, place = pd.isna(given), pd.Index(classes).get_indexer(given)
    unknown = given[~missing & (place < 0)]
    if len(unknown):
        raise InputError(
            f"'y' contains {values_text(unknown)}, but the model was fitted to "
            f"{values_text(classes)}. Write NaN for untested rows."
        )
    return np.where(missing, np.nan, place)
