"""Frames with categories, text, dates and yes/no columns, straight into `fit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from dcem.table import checks
from dcem.table.columns import guess
from dcem.table.encoder import Encoder, Encoding, as_arrow


@dataclass(frozen=True)
class FrameEncoder(Encoder):
    """The encoder of a frame that was given to `fit`; it keeps the index of the rows."""

    def encoded(self, X: Any) -> pd.DataFrame:
        """The features as a frame, with the index of `X`."""
        frame = checks.as_frame(X)
        return pd.DataFrame(self.transform(frame), frame.index, self.feature_names)


def frame_encoder(X: Any) -> FrameEncoder | None:
    """The encoder that a frame needs; None for arrays and for frames of numbers.

    A column of numbers stays itself. Of the others, the kind is guessed from the values as for a
    file; what tells no two rows apart, or each from every other, is left out with a warning.
    """
    if not hasattr(X, "columns"):
        return None
    frame = checks.as_frame(X)
    numeric = {name: _is_number(frame[name]) for name in frame.columns}
    if all(numeric.values()) or not all(isinstance(name, str) for name in frame.columns):
        return None
    table, encodings, left_out = as_arrow(frame, list(frame.columns)), [], []
    for name, is_number in numeric.items():
        if is_number:
            encodings.append(Encoding(name, "number"))
            continue
        column: pa.ChunkedArray = table.column(name)
        found = guess(name, column, is_category=isinstance(frame[name].dtype, pd.CategoricalDtype))
        if found.encoding is None:
            left_out.append(f"{name!r} ({found.kind}: {found.note})")
        else:
            encodings.append(found.encoding)
    if left_out:
        checks.notice(f"Columns that are not used as features: {', '.join(left_out)}.")
    if not encodings:
        raise checks.InputError(
            "No column of X is left that could be a feature: all are constant or name single rows."
        )
    return FrameEncoder(tuple(encodings))


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype)
