"""Frames of categories, text and dates as numbers: for our classifiers, and for any other."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dcem.table.checks import check_features
from dcem.table.columns import guess_kind
from dcem.table.encoder import Encoder, Encoding, distinct
from dcem.table.frames import as_frame, check_aligned
from dcem.table.messages import InputError, notice, require_unique
from dcem.table.read import as_arrow


class TableEncoder(TransformerMixin, BaseEstimator):
    """The encoder of `dcem.read_table` as a scikit-learn transformer.

    Our classifiers take raw frames and need none; this is for third-party models, in a Pipeline.
    It honours `set_output` and `sklearn.set_config(transform_output=...)`: "pandas" or "polars".

    Attributes
    ----------
    encoder_
        From raw columns to features.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn levels and kinds of columns from a frame (pandas, polars, Arrow)."""
        if not hasattr(X, "columns"):
            raise InputError("TableEncoder takes a frame with named columns, not an array.")
        columns = [str(name) for name in as_frame(X).columns]
        numbers = Encoder(tuple(Encoding(name, "number") for name in columns))
        self.encoder_ = frame_encoder(X) or numbers
        self.n_features_in_, self.feature_names_in_ = len(columns), np.array(columns, object)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Features `[n, d]`; missing numbers are NaN, levels not seen before count as others."""
        check_is_fitted(self)
        return self.encoder_.transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features: `age`, `ward=ICU`, `ward=(missing)`."""
        check_is_fitted(self)
        return np.array(self.encoder_.feature_names, object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags


def frame_encoder(X: Any) -> Encoder | None:
    """The encoder that a frame needs; None for arrays and for frames of numbers.

    A column of numbers stays itself. Of the others, the kind is guessed from the values as for a
    file; what tells no two rows apart, or each from every other, is left out with a warning.
    """
    if not hasattr(X, "columns"):
        return None
    frame = as_frame(X)
    require_unique(frame.columns, "X")
    are_numbers = [_is_number(dtype) for dtype in frame.dtypes]
    if all(are_numbers):
        return None
    if any(are_numbers):  # read below, where an infinity would count as missing
        check_features(frame.loc[:, are_numbers], labels=check_aligned({"X": frame}))
    table, encodings, left_out = as_arrow(frame), [], []
    for name, dtype in zip(table.column_names, frame.dtypes, strict=True):
        if _is_number(dtype):
            encodings.append(Encoding(name, "number"))
            continue
        is_category = isinstance(dtype, pd.CategoricalDtype)
        found = guess_kind(name, table.column(name), is_category=is_category)
        if found.encoding is None:
            left_out.append(f"{name!r} ({found.kind}: {found.note})")
        else:
            encodings.append(found.encoding.learning_marks(table))
    if left_out:
        notice(f"Columns not used as features: {', '.join(left_out)}.")
    if not encodings:
        raise InputError(
            "No column of X is left as a feature: each is constant or identifies single rows."
        )
    return Encoder(distinct(encodings))


def _is_number(dtype: Any) -> bool:
    return pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)
