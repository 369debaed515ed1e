"""The arguments of a scikit-learn style `fit`, checked and put into their roles."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dcem.table.frames import as_series, shape_of
from dcem.table.messages import InputError, listed

if TYPE_CHECKING:
    from dcem.table.labels import SelectiveLabels


def check_fit_input(
    X: Any,
    y: Any,
    tested: Any = None,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    **stated: Any,
) -> SelectiveLabels:
    """`SelectiveLabels` from what `fit` was given, in the words of `fit`.

    Labels are 0 and 1; an estimator that allows other names encodes them with `encode_classes`.
    Rates that are `stated`, of a test or of the outcome, go on as they are.
    """
    from dcem.table.labels import SelectiveLabels  # which is built on these checks

    return SelectiveLabels.from_arrays(
        X,
        y,
        tested=tested,
        group=sensitive_features,
        weight=sample_weight,
        **stated,
        names={"group": "sensitive_features", "weight": "sample_weight"},
    )


def encode_classes(y: Any) -> tuple[Any, np.ndarray]:
    """Labels as 0 and 1, NaN where missing, and the two classes; the later in order is 1.

    A pandas series keeps its index, so that rows can still be matched. This is scikit-learn's
    convention for class names, and its wording where its own checks look for it.
    """
    if y is None:
        raise InputError("fit requires y to be passed, but the target y is None.")
    series = as_series(y, "y")
    if shape_of(y)[1:] == (1,):
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Pass y.ravel().",
            DataConversionWarning,
            stacklevel=3,
        )
    if series.dtype.kind == "c":
        raise InputError("y holds complex numbers. Complex data not supported.")
    present = series[series.notna()]
    if pd.api.types.is_float_dtype(present.dtype):
        if (present != np.floor(present)).any() or np.isinf(present).any():
            raise InputError(
                "Unknown label type: continuous. y must hold two classes, NaN where nobody tested."
            )
        present = present.astype(np.int64)
    try:
        classes = np.unique(present.to_numpy())
    except TypeError:
        raise InputError("y mixes text and numbers. Allowed: two classes of one kind.") from None
    if len(classes) > 2:
        raise InputError(
            f"Only binary classification is supported. y holds {len(classes)} classes: "
            f"{listed(classes)}. Allowed: two, and missing where nobody tested."
        )
    if set(classes.tolist()) <= {0, 1}:
        classes = classes if len(classes) == 2 else np.array([0, 1])
    elif len(classes) == 1:
        raise InputError(f"y holds only one class, {listed(classes)}; two are needed.")
    encoded = np.full(len(series), np.nan)
    encoded[series.notna().to_numpy()] = present.to_numpy() == classes[1]
    if isinstance(y, pd.Series | pd.DataFrame):
        return pd.Series(encoded, index=series.index), classes
    return encoded, classes
