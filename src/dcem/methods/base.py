"""What every method has in common: the contract with scikit-learn, and the way into a fleet.

A method is an ordinary classifier whose `fit` takes, besides features and labels, who was tested
and to which group a row belongs. Underneath it implements one function, `_train`, for M problems at
once; fitting one model is the case M = 1. `fit_many` hands it many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from dcem.engine import MLP, FromModule
from dcem.engine.fleet import Architecture
from dcem.hooks import above
from dcem.methods.fitting import FleetData, Trained, fit_fleet, fit_many
from dcem.methods.tables import Table
from dcem.table import checks
from dcem.table.labels import SelectiveLabels

__all__ = ["FleetData", "NetworkClassifier", "Trained", "fit_many"]


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkClassifier(ClassifierMixin, BaseEstimator):
    """Base of all methods: a multilayer perceptron fitted to selectively labelled rows.

    Parameters
    ----------
    hidden
        Widths of the hidden layers.
    network
        A function from the number of inputs to a `torch.nn.Module`, in place of `hidden`.
    preprocess
        "standard" (missing values to the median plus an indicator, then mean 0 and sd 1, fitted on
        training rows) or None for numbers as they are.
    input_scale
        Standard deviation that "standard" scales features to. Networks on smaller inputs learn
        smoother functions, which extrapolate more cautiously.
    validation_fraction
        Share of the rows held out where a validation set is needed and none is given.
    n_members
        Networks in the ensemble; probabilities are averaged.
    batch_size
        Rows a step; "auto" is all of them up to 50,000 and 16,384 beyond; None is always all.
    random_state
        Seed of initial weights, batches and held-out rows.
    device
        "auto", "cpu" or "cuda".
    dtype
        "float32", or "float64" where rounding must not matter (slower, and unfused on CUDA).
    verbose
        1 shows progress.
    """

    hidden: tuple[int, ...] = (64, 64)
    network: Callable[[int], nn.Module] | None = None
    preprocess: str | None = "standard"
    input_scale: float = 1.0
    validation_fraction: float = 0.2
    n_members: int = 1
    batch_size: int | str | None = "auto"
    random_state: Any = None
    device: str = "auto"
    dtype: str = "float32"
    verbose: int = 0

    name: ClassVar[str]
    needs_group: ClassVar[bool] = False  # does prediction need `sensitive_features`?
    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "tested": True,
        "sensitive_features": True,
    }

    @property
    def uses_truth(self) -> bool:
        """Whether fitting needs the truth of every row, which no user has (oracles only)."""
        return False

    @property
    def uses_validation(self) -> bool:
        """Whether fitting looks at validation rows; if not, none are held out."""
        return True

    # -- fitting ----------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        tested: Any = None,
        sensitive_features: Any = None,
        validation: SelectiveLabels | None = None,
        truth: Any = None,
    ) -> Self:
        """Fit to rows some of which were tested.

        Parameters
        ----------
        X
            Features `[n, d]`; missing values allowed.
        y
            Labels: two classes, or missing (NaN) where nobody tested.
        tested
            Whether each row was tested; may be left out where `y` is missing for the untested.
        sensitive_features
            The group of each row (any number of levels; several columns are crossed).
        validation
            Rows to decide on stopping; without it a share of the rows is held out.
        truth
            The truth of every row `[n]`, or `(train, validation)`; only for methods that use it.
        """
        y, classes = checks.encode_classes(y)
        problem = checks.check_fit_input(X, y, tested, sensitive_features)
        self.classes_ = classes
        validate_data(self, X, skip_check_array=True)  # feature names and their number
        fit_fleet([self], [problem], [validation], [truth])
        return self

    def fit_problem(
        self,
        problem: SelectiveLabels,
        *,
        validation: SelectiveLabels | None = None,
        truth: Any = None,
    ) -> Self:
        """Fit to a `SelectiveLabels`, weights and persons included."""
        fit_many(self, [problem], validations=[validation], truths=[truth], copy=False)
        return self

    def _pace(self, table: Table) -> int | None:
        """A number that depends on the rows and that all networks of a fleet must share."""
        return None

    def _train(self, data: FleetData) -> Trained:
        """Train one network for each seed in `data`; every method writes its own."""
        raise NotImplementedError

    def _architecture(self, n_inputs: int, hidden: tuple[int, ...] | None = None) -> Architecture:
        if hidden is None and self.network is not None:
            return FromModule(self.network, n_inputs)
        return MLP(n_inputs, tuple(hidden or self.hidden))

    # -- predicting -------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities `[n, 2]` of the two classes, averaged over the members."""
        members = self._member_scores(X)  # [members, n]
        positive = members.mean(axis=0)
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The more probable class of each row."""
        check_is_fitted(self)
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]

    def spread(self, X: Any) -> np.ndarray:
        """Standard deviation of the members' scores `[n]`; zero for a single network.

        Disagreement is no measure of support: networks can agree where there is no data.
        """
        return self._member_scores(X).std(axis=0)

    def support(self, X: Any) -> Any:
        """How far each row lies from what was ever tested: a frame with `distance`,
        `testing_probability` and `supported`; see `dcem.methods.support`."""
        rows = self._prepare(X)
        propensity = getattr(self, "propensity_model_", None)
        return self.support_.of(rows, propensity[0] if isinstance(propensity, list) else propensity)

    def _member_scores(self, X: Any) -> np.ndarray:
        rows = self._prepare(X)
        return self.fleet_.predict(torch.from_numpy(rows)).double().cpu().numpy()

    def _prepare(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if isinstance(X, SelectiveLabels):  # rows of a problem, their names with them
            named = hasattr(self, "feature_names_in_")
            X = pd.DataFrame(X.X, columns=X.feature_names, copy=False) if named else X.X
        X = validate_data(
            self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan", order="C"
        )
        return self.preprocessor_.transform(X, self.dtype)

    def _group_codes(self, sensitive_features: Any, n_rows: int) -> np.ndarray:
        """Codes of the groups seen in fitting, for the methods that predict with them."""
        if len(self.group_names_) == 1:
            return np.zeros(n_rows, dtype=np.int64)
        if sensitive_features is None:
            raise checks.InputError(
                f"{type(self).__name__} predicts with the group of each row: pass "
                "sensitive_features. A method that needs the features alone is dcem."
            )
        codes, _ = checks.check_groups(
            sensitive_features, "sensitive_features", levels=self.group_names_
        )
        if len(codes) != n_rows:
            raise checks.InputError(
                f"sensitive_features has {len(codes)} rows, but X has {n_rows}."
            )
        return codes

    # -- keeping ----------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write what prediction needs to `folder`, and a model card; see `dcem.load_model`."""
        above("save")(self, folder)

    @classmethod
    def load(cls, folder: str | Path, *, network: Callable[[int], nn.Module] | None = None) -> Self:
        """A model written by `save`; `network` is its own module factory, if it had one."""
        return above("load_model")(folder, network=network, expected=cls)

    def export_onnx(self, path: str | Path) -> None:
        """Write the model, preprocessing included, as an ONNX file; see `dcem.saving.onnx`."""
        above("export_onnx")(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = self.preprocess is not None
        tags.non_deterministic = False
        return tags
