"""Group and testing decision of the rows of any batch, by the roles of the table a model knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dcem.table import checks, values
from dcem.table.outcome import read_tested
from dcem.table.roles import Roles


def tested_rows(batch: Any, roles: Roles) -> np.ndarray:
    """Who was tested [n], as far as the batch says: nobody, if it has neither tested nor label."""
    names = batch.schema.names
    if roles.tested is not None and roles.tested in names:
        return read_tested(_column(batch, roles.tested), roles).astype(bool)
    if roles.tested is None and roles.label in names:
        text = values.coded(_column(batch, roles.label), roles.missing)
        looked = [value not in roles.untested_value for value in text.values]
        return text.take(np.array(looked, dtype=bool), False)
    return np.zeros(batch.num_rows, dtype=bool)


def group_codes(batch: Any, roles: Roles) -> tuple[np.ndarray, tuple[str, ...]] | None:
    """Group codes [n] and their names, crossed as in fitting; None if a group column is absent."""
    if not roles.group or any(name not in batch.schema.names for name in roles.group):
        return None
    coded = [_spelled(values.coded(_column(batch, name), roles.missing)) for name in roles.group]
    codes, names = _with_missing(coded[0])
    for text in coded[1:]:
        more, more_names = _with_missing(text)
        codes = codes * len(more_names) + more
        names = [f"{a} & {b}" for a in names for b in more_names]
    return codes, tuple(names)


def _spelled(text: values.Coded) -> values.Coded:
    return values.Coded(text.codes, tuple(values.plainly(text.values)))


def _with_missing(text: values.Coded) -> tuple[np.ndarray, list[str]]:
    codes = np.where(text.codes < 0, len(text.values), text.codes)
    return codes, [*text.values, checks.MISSING_LEVEL]


def _column(batch: Any, name: str) -> pa.ChunkedArray:
    column = batch.column(name)
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
