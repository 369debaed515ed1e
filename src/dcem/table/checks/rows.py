"""Checks across columns: the same rows, who was tested, and what can be learnt from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dcem.table.checks.columns import check_binary
from dcem.table.checks.reading import shape_of
from dcem.table.messages import InputError, listed, notice, plain, rows_text


def check_aligned(parts: Mapping[str, Any]) -> pd.Index | None:
    """All parts (None is skipped) have the same rows; returns their labels, if they have any.

    pandas objects carry an index, and it must be the same in all of them: a table sorted after
    its label was taken out would otherwise be paired with other people's labels in silence.
    """
    sizes = {name: _length(name, part) for name, part in parts.items() if part is not None}
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name!r} has {size}" for name, size in sizes.items())
        raise InputError(
            f"Different numbers of rows: {shown}. Every part needs one entry per row of the table; "
            "take them all from the same rows."
        )
    indexed = {name: part.index for name, part in parts.items() if _has_index(part)}
    if not indexed:
        return None
    (first, index), *others = indexed.items()
    for name, other in others:
        if not index.equals(other):
            _refuse_disagreement(first, index, name, other)
    counted = isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1
    return None if counted else index


def _has_index(part: Any) -> bool:
    return isinstance(part, pd.DataFrame | pd.Series)


def _length(name: str, part: Any) -> int:
    shape = shape_of(part)
    if not shape:
        raise InputError(
            f"{name!r} should be a 1d array, one value per row; it is a single "
            f"{type(part).__name__}."
        )
    return shape[0]


def _refuse_disagreement(first: str, index: pd.Index, name: str, other: pd.Index) -> None:
    codes = pd.factorize(index.append(other), use_na_sentinel=False)[0]
    mine, theirs = codes[: len(index)], codes[len(index) :]
    differ = mine != theirs
    if not differ.any():  # the same labels, stored in another type
        return
    i = int(np.flatnonzero(differ)[0])
    if np.array_equal(np.sort(mine), np.sort(theirs)):
        remedy = (
            "They hold the same labels in another order; bring them into one, for example "
            f"{name}.loc[{first}.index]."
        )
    else:
        remedy = (
            "Take both from the same frame; if their order is known to be the same, drop the "
            "labels with .reset_index(drop=True)."
        )
    raise InputError(
        f"The pandas indices of {first!r} and {name!r} disagree in {rows_text(differ)}: at "
        f"position {i}, {first!r} has {plain(index[i])} and {name!r} has {plain(other[i])}. Rows "
        f"whose labels disagree are not matched by position. {remedy}"
    )


def resolve_tested(
    y: Any,
    tested: Any = None,
    *,
    label_name: str = "y",
    tested_name: str = "tested",
    labels: pd.Index | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Labels [n] with NaN where nobody looked, and who was tested [n].

    Without `tested`, a missing label means that nobody looked. With it, an untested row may hold
    NaN or an imputed 0, both of which become NaN; a 1 there contradicts itself.
    """
    y = check_binary(y, label_name, labels=labels, missing="missing where nobody tested")
    if tested is None:
        looked = ~np.isnan(y)
        if looked.all():
            notice(
                f"No label in {label_name!r} is missing and no {tested_name!r} was given, so every "
                f"row counts as tested. If zeros were imputed where nobody looked, pass "
                f"{tested_name!r}."
            )
        return y, looked
    looked = check_binary(tested, tested_name, labels=labels).astype(bool)
    positive = ~looked & (y == 1)
    if positive.any():
        raise InputError(
            f"Label {label_name!r} is 1 although {tested_name!r} is 0 in "
            f"{rows_text(positive, labels)}. A row that nobody tested cannot have a positive "
            f"result: allowed there are 0 or missing. Correct {tested_name!r} if these rows were "
            "tested; if the label is the truth from elsewhere, keep it apart from the table."
        )
    absent = looked & np.isnan(y)
    if absent.any():
        raise InputError(
            f"Label {label_name!r} is missing although {tested_name!r} is 1 in "
            f"{rows_text(absent, labels)}. A tested row needs its result, 0 or 1. Fill it in, or "
            f"set {tested_name!r} to 0 where no result exists."
        )
    if looked.all():
        notice(
            f"Everybody is tested ({tested_name!r} is 1 in all {len(y)} rows): no label is "
            "missing, so there is no selection to correct and ordinary supervised learning is the "
            "method of choice."
        )
    return np.where(looked, y, np.nan), looked


def check_learnable(y_obs: np.ndarray, tested: np.ndarray, label: str, tested_name: str) -> None:
    """Somebody was tested, and the tested hold both classes."""
    n, looked = len(y_obs), int(tested.sum())
    if looked == 0:
        raise InputError(
            f"Nobody is tested: {tested_name!r} is 0, or {label!r} missing, in all {n} rows. "
            "Without one observed label nothing can be learnt. Check which column says who was "
            "tested, and whether it means 1 = tested."
        )
    positives = int(np.nansum(y_obs))
    if positives in (0, looked):
        raise InputError(
            f"Only one class among the tested: {label!r} is {int(positives > 0)} in all {looked} "
            f"tested rows (of {n}). Both 0 and 1 must occur. Bring more rows, or check how the "
            "label was coded."
        )


def warn_limits(
    X: np.ndarray,
    tested: np.ndarray,
    group: np.ndarray,
    feature_names: Sequence[str],
    group_names: Sequence[str],
) -> None:
    """Say what is legal but limits the answer: constant features, groups nobody tested."""
    low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    constant = [name for name, c in zip(feature_names, ~(low < high), strict=True) if c]
    if constant:
        notice(
            f"Constant or entirely missing features: {listed(constant)} ({len(constant)} of "
            f"{len(feature_names)}). They tell no two rows apart and can be dropped."
        )
    rows = np.bincount(group, minlength=len(group_names))
    looked = np.bincount(group[tested], minlength=len(group_names))
    unseen = np.flatnonzero((rows > 0) & (looked == 0))
    if len(unseen):
        notice(
            f"Nobody is tested in group {listed([group_names[int(g)] for g in unseen])} "
            f"({rows[unseen].sum()} of {len(group)} rows). No label was ever seen there: what is "
            "said of such a group is carried over from others, and its error cannot be estimated. "
            "Methods that need tested rows in every group refuse."
        )
