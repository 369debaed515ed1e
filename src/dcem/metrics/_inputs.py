"""What every metric reads: labels, scores, weights and groups, checked and aligned.

A metric is only as honest as its input, so nothing is guessed here: a missing label, a missing
score or rows in a different order stop the computation with a message that says what to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcem.table.groups import MISSING_LEVEL
from dcem.table.messages import InputError, notice, rows_text

Label = Any  # a group's name as the user wrote it: str, int, bool, ...


@dataclass(frozen=True)
class Checked:
    """Checked rows: labels, scores and (optionally) weights of the same length."""

    positive: np.ndarray  # [n] bool
    score: np.ndarray  # [n] float32 or float64, no NaN
    weight: np.ndarray | None  # [n] float64, finite, not negative

    def __len__(self) -> int:
        return len(self.score)

    def take(self, chosen: np.ndarray) -> Checked:
        """The chosen rows."""
        weight = None if self.weight is None else self.weight[chosen]
        return Checked(self.positive[chosen], self.score[chosen], weight)

    def absent(self) -> str | None:
        """What these rows lack for a ROC curve to exist, or None where nothing is lacking."""
        counted = self.positive if self.weight is None else self.positive[self.weight > 0]
        return absent_class(len(self), counted.any(), not counted.all())


@dataclass(frozen=True)
class Membership:
    """Group membership as codes into `levels`, which keep the user's own names."""

    code: np.ndarray  # [n] intp, 0..G-1
    levels: tuple[Label, ...]

    def split(self, rows: Checked) -> Iterator[tuple[Label, Checked]]:
        """Each level with its rows; one linear pass however many levels there are."""
        for label, chosen in zip(self.levels, self.members(), strict=True):
            yield label, rows.take(chosen)

    def members(self) -> list[np.ndarray]:
        """Row positions of each level, in row order."""
        return split_by_code(self.code, len(self.levels))


def absent_class(n_rows: int, has_positives: Any, has_negatives: Any) -> str | None:
    """'no positives among its 12 rows', or None where both classes are there."""
    lacking = [
        f"no {name}"
        for name, there in (("positives", has_positives), ("negatives", has_negatives))
        if not there
    ]
    return f"{' and '.join(lacking)} among its {n_rows} rows" if lacking else None


def split_by_code(code: np.ndarray, n_codes: int) -> list[np.ndarray]:
    """Positions of the entries with code 0, 1, ..., each in increasing order."""
    if n_codes == 1:
        return [np.arange(len(code))]
    small = code.astype(np.uint16) if n_codes <= 2**16 else code  # 16 bits: numpy's radix sort
    order = np.argsort(small, kind="stable")
    return np.split(order, np.cumsum(np.bincount(code, minlength=n_codes))[:-1])


def read_rows(y: Any, score: Any, weight: Any = None, **others: Any) -> Checked:
    """Check `y`, `score` and `weight`; whatever else the rows have must be of the same rows."""
    require_same_index(y=y, score=score, weight=weight, **others)
    scores = read_score(score)
    positive = _read_label(y)
    require_length("y", positive, scores)
    if not len(scores):
        raise InputError("No rows: 'y' and 'score' are empty.")
    if weight is None:
        return Checked(positive, scores, None)
    weights = as_numbers(weight, "weight").astype(np.float64, copy=False)
    require_length("weight", weights, scores)
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise InputError(
            f"'weight' is negative, infinite or NaN in {rows_text(bad)}. Weights are counts or "
            "sampling weights: finite and at least 0."
        )
    if not weights.any():
        raise InputError("'weight' is 0 in every row, so no row counts.")
    return Checked(positive, scores, weights)


def read_groups(group: Any, rows: Checked) -> Membership:
    """Code the group labels of any type; a missing label is a level of its own, with a notice."""
    values = as_vector(group, "group")
    require_length("group", values, rows.score)
    code, levels = _factorize(values)
    if MISSING_LEVEL in levels:
        count = int((code == levels.index(MISSING_LEVEL)).sum())
        notice(
            f"The group is missing in {count:,} of {len(code):,} rows; they are compared as a "
            f"group of their own, {MISSING_LEVEL!r}."
        )
    return Membership(code, tuple(levels))


def read_identifiers(identifier: Any, rows: Checked) -> np.ndarray:
    """Code the person identifiers 0..C-1."""
    values = as_vector(identifier, "id")
    require_length("id", values, rows.score)
    code, levels = _factorize(values)
    if MISSING_LEVEL in levels:
        missing = code == levels.index(MISSING_LEVEL)
        raise InputError(
            f"'id' is missing in {rows_text(missing)}. Give every row the identifier of its "
            "person, or leave 'id' out if each row is a person of its own."
        )
    return code


def _factorize(values: np.ndarray) -> tuple[np.ndarray, list[Label]]:
    """Codes into the sorted distinct values; all missing ones become `MISSING_LEVEL`."""
    if values.dtype.kind == "M":  # Python has no dates of nanoseconds: they would be numbers
        values = values.astype("datetime64[us]")
    if values.dtype.kind not in "OUST":
        found, code = np.unique(values, return_inverse=True)
        levels = found.tolist()
        if levels and _is_missing(levels[-1]):  # NaN sorts last, as one value
            levels[-1] = MISSING_LEVEL
        return code, levels
    # A dictionary beats sorting a million Python objects.
    raw = values.tolist()
    named = {value: MISSING_LEVEL if _is_missing(value) else value for value in dict.fromkeys(raw)}
    levels = list(dict.fromkeys(named.values()))
    with suppress(TypeError):  # labels of several types have no order: keep that of appearance
        levels.sort()
    place = {label: code for code, label in enumerate(levels)}
    of_value = {value: place[label] for value, label in named.items()}
    return np.fromiter(map(of_value.__getitem__, raw), dtype=np.intp, count=len(raw)), levels


def _is_missing(value: object) -> bool:
    # pandas.NA compares to itself as neither true nor false, hence the look at its type
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def as_vector(values: Any, name: str) -> np.ndarray:
    """One value per row, whatever the argument of this name came as."""
    if isinstance(values, np.ma.MaskedArray):  # as an array it would show what the mask hides
        values = np.ma.filled(values.astype(object), np.nan)
    array = np.asarray(values)
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        array = np.asarray(values, dtype=object)  # or a NaN among names would be the name "nan"
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        remedy = (
            "Pass one column, such as predict_proba(X)[:, 1]."
            if name == "score"
            else "Pass one value per row; cross several attributes into one label first."
        )
        raise InputError(f"'{name}' must be one-dimensional, but has shape {array.shape}. {remedy}")
    return array


def as_numbers(given: Any, name: str) -> np.ndarray:
    """One number per row, NaN where it is missing."""
    array = as_vector(given, name)
    if array.dtype.kind in "fiub":
        return array
    if array.dtype.kind not in "OUST":  # complex numbers and dates could be cast
        raise InputError(f"'{name}' holds values that are not numbers: {array.dtype}.")
    if array.dtype.kind == "O":  # None and pandas.NA are missing numbers, not strange ones
        array = np.array([np.nan if _is_missing(v) else v for v in array.tolist()], dtype=object)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        remedy = " Recode it: 1 for yes, 0 for no." if name == "y" else ""
        raise InputError(f"'{name}' holds values that are not numbers: {error}.{remedy}") from None


def read_score(given: Any) -> np.ndarray:
    """Scores as floats [n], none of them missing."""
    score = as_numbers(given, "score")
    if score.dtype not in (np.float32, np.float64):
        score = score.astype(np.float64)
    bad = np.isnan(score)
    if bad.any():
        raise InputError(
            f"'score' is NaN in {rows_text(bad)}. A person without a score cannot be ranked; "
            "find out why the model gave none, or leave these rows out and say so."
        )
    return score


def _read_label(given: Any) -> np.ndarray:
    label = as_numbers(given, "y")
    if label.dtype == bool:
        return label
    positive = label == 1
    bad = ~(positive | (label == 0))
    if not bad.any():
        return positive
    if label.dtype.kind == "f" and np.isnan(label).any():
        raise InputError(
            f"'y' is missing (NaN) in {rows_text(np.isnan(label))}. These metrics need the label "
            "of every row: pass the truth, or only the tested rows if the tested resemble the "
            "rest."
        )
    shown = ", ".join(map(repr, np.unique(label[bad])[:5].tolist()))
    raise InputError(f"'y' must be 0 or 1, but holds {shown} in {rows_text(bad)}.")


def require_length(name: str, array: np.ndarray, score: np.ndarray) -> None:
    """Refuse a column of other rows than the scores."""
    if len(array) != len(score):
        raise InputError(
            f"'{name}' has {len(array)} rows but 'score' has {len(score)}: give one value per row."
        )


def require_same_index(**columns: Any) -> None:
    """Refuse pandas columns of one length whose rows have different names."""
    indexed = {k: v.index for k, v in columns.items() if hasattr(getattr(v, "index", 0), "equals")}
    names = list(indexed)
    for other in names[1:]:
        same_length = len(indexed[names[0]]) == len(indexed[other])
        if same_length and not indexed[names[0]].equals(indexed[other]):
            raise InputError(
                f"'{names[0]}' and '{other}' have different pandas indices, so it is not clear "
                "which rows belong together. Align them, or pass .to_numpy() if the order is right."
            )
