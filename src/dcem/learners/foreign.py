"""Any scikit-learn classifier as a learner; it is cloned, and cannot be saved with a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from dcem.learners.learner import LearnerBase, Rows, Sample, as_logit
from dcem.table import checks


class Foreign(LearnerBase):
    """A clone of a user's classifier.

    It gets missing values as they are if it says that it takes them; otherwise standardised
    features with the median in their place, and indicators.
    """

    def __init__(self, model: Any, seed: int = 0, squared: bool = False):
        super().__init__(seed, squared)
        if squared:
            raise checks.InputError(
                "dr-learner fits pseudo-outcomes, which are not classes: its learner must be "
                "network, linear, boost or forest."
            )
        if not hasattr(model, "predict_proba") or not hasattr(model, "fit"):
            raise checks.InputError(
                f"learner must be network, linear, boost, forest, or a scikit-learn classifier "
                f"with predict_proba; got {model!r}."
            )
        self.model = clone(model)

    def _learn(self, sample: Sample, validation: Rows | None) -> None:
        """What it makes of validation rows is its own affair: it is not told."""
        X, y, weight, _ = sample
        self.constant: float | None = None
        if "random_state" in self.model.get_params() and self.model.random_state is None:
            self.model.set_params(random_state=self.seed % 2**32)
        given: dict[str, Any] = {}
        if np.ptp(weight) > 0:
            if has_fit_parameter(self.model, "sample_weight"):
                given["sample_weight"] = weight
            else:
                checks.notice(
                    f"The learner {type(self.model).__name__} takes no sample_weight: rows count "
                    "alike in it, although they have weights."
                )
        self.model.fit(self._rows(X), y.astype(int), **given)

    def _say(self, log_odds: float) -> None:
        self.constant = log_odds

    def _rows(self, X: np.ndarray) -> np.ndarray:
        if get_tags(self.model).input_tags.allow_nan:
            return X
        return self.preprocessor.transform(X, "float64")

    def predict_logit(self, X: np.ndarray) -> np.ndarray:
        """See `LearnerBase`."""
        if self.constant is not None:
            return np.full(len(X), self.constant)
        return as_logit(self.model.predict_proba(self._rows(X))[:, 1])
