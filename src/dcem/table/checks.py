"""Every check of arrays and frames, and the wording of every error about them.

Wrong input is cheapest to repair where it enters, by the person who brought it. So each message
says what is wrong, where (column, how many rows, the first few), what is allowed, and what to do.
Mistakes raise `InputError`. What is legal but limits what can be learnt (everybody tested, a group
in which nobody is) warns with `DataWarning`, and says what it means.

Rows are never matched by guesswork: pandas objects whose indices disagree are refused rather than
lined up by position.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dcem.table import values as cells
from dcem.table.frames import as_frame, as_series, is_arrow, shape_of
from dcem.table.messages import (
    InputError,
    InputTypeError,
    notice,
    quoted,
    require_unique,
    rows_text,
    values_text,
)

MOST_COPIES = 0.02  # of the rows may be copies of others without a word
FEWEST_COPIES = 5  # patterns of features with a positive that must occur several times


def to_numbers(series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Values as float64 with NaN where missing, and a mask of those that are not a number.

    Text that reads as a number is one. Blank text and the text 'nan' are missing.
    """
    dtype, types = series.dtype, pd.api.types
    if types.is_bool_dtype(dtype) or (types.is_numeric_dtype(dtype) and dtype.kind != "c"):
        missing = {} if isinstance(dtype, np.dtype) else {"na_value": np.nan}
        return series.to_numpy(np.float64, copy=True, **missing), np.zeros(len(series), bool)
    text = isinstance(dtype, pd.CategoricalDtype) or types.is_string_dtype(dtype)
    if not text and not types.is_object_dtype(dtype):  # dates, periods, complex numbers
        return np.full(len(series), np.nan), series.notna().to_numpy()
    try:
        coded = cells.coded_series(series, ("nan", "NaN"))
    except TypeError:  # lists and dictionaries in cells
        return np.full(len(series), np.nan), series.notna().to_numpy()
    said = [{"True": "1", "False": "0"}.get(value, value) for value in coded.values]
    found = cells.parsed(said)
    return coded.take(found, np.nan), coded.take(np.isnan(found), False)


def check_binary(
    values: Any, name: str, *, labels: pd.Index | None = None, missing: str | None = None
) -> np.ndarray:
    """A column of 0 and 1 (or booleans) as float64.

    `missing` says what a missing value means where it is allowed; None refuses it.
    """
    # A masked array is not as it looks: what its mask hides is missing.
    whole = type(values) is np.ndarray and values.ndim == 1 and values.dtype.kind in "bui"
    if whole and ((values == 0) | (values == 1)).all():  # the usual case, without pandas
        return np.asarray(values, dtype=np.float64)
    series = as_series(values, name)
    array, bad = to_numbers(series)
    bad = bad | ~((array == 0) | (array == 1) | np.isnan(array))
    allowed = f"0 and 1, or False and True{f'; {missing}' if missing else ''}"
    if bad.any():
        foreign = not np.isin(array, (0, 1)).any()
        remedy = "Recode it: 1 for yes, 0 for no." if foreign else "Correct or drop these rows."
        raise InputError(
            f"Column {name!r} holds values other than 0 and 1 in {rows_text(bad, labels)}, "
            f"such as {values_text(series[bad].iloc[:50])}. Allowed: {allowed}. {remedy}"
        )
    absent = np.isnan(array)
    if missing is None and absent.any():
        raise InputError(
            f"Column {name!r} is missing in {rows_text(absent, labels)}. Allowed: {allowed}, in "
            "every row. Fill in what is known, or drop these rows."
        )
    return array


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
            f"{quoted(classes)}. Allowed: two, and missing where nobody tested."
        )
    if set(classes.tolist()) <= {0, 1}:
        classes = classes if len(classes) == 2 else np.array([0, 1])
    elif len(classes) == 1:
        raise InputError(f"y holds only one class, {quoted(classes)}; two are needed.")
    _mention_order(classes)
    encoded = np.full(len(series), np.nan)
    encoded[series.notna().to_numpy()] = present.to_numpy() == classes[1]
    if isinstance(y, pd.Series | pd.DataFrame):
        return pd.Series(encoded, index=series.index), classes
    return encoded, classes


def _mention_order(classes: np.ndarray) -> None:
    """Say which class counts as positive, where its name does not tell."""
    if set(classes.tolist()) == {1, 2}:  # in many surveys 1 is yes and 2 is no
        notice("y holds 1 and 2: 2 counts as positive. If 1 means positive, pass 2 - y.")
        return
    names = [name for name in classes.tolist() if isinstance(name, str)]
    if names and cells.yes_no(names).tolist() != [0, 1]:
        no, yes = map(repr, names)
        notice(
            f"y holds {no} and {yes}: {yes}, the later in alphabetical order, counts as positive. "
            f"If {no} means positive, pass a series y.map({{{yes}: 0, {no}: 1}})."
        )


def check_features(
    X: Any, names: Sequence[str] | None = None, *, labels: pd.Index | None = None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The features as a C-ordered float64 array [n, d], NaN where missing, and their names."""
    if hasattr(X, "toarray"):
        raise InputError("X is a sparse matrix; sparse data is not supported. Pass X.toarray().")
    shape = shape_of(X)
    if len(shape) != 2:
        raise InputError(
            "X must be a table with one row per person and one column per feature; its shape is "
            f"{shape}. Reshape your data: X.reshape(-1, 1) for a single feature."
        )
    n, d = shape
    if n == 0:
        raise InputError(
            f"The table has no rows: 0 sample(s), shape={shape}. Check the file or the filter it "
            "comes from."
        )
    if d == 0:
        raise InputError(f"X has 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required.")
    if isinstance(X, pd.DataFrame) or is_arrow(X):
        X = as_frame(X)
        names = [str(c) for c in X.columns] if names is None else names
    elif names is None:
        names = [f"x{j}" for j in range(d)]
    if len(names) != d:
        raise InputError(f"X has {d} columns, but {len(names)} feature names were given.")
    require_unique(names, "X")
    array = _feature_array(X, names, labels)
    # One pass finds both extremes, NaN ignored; an infinity is always an extreme.
    low, high = np.fmin.reduce(array, axis=0), np.fmax.reduce(array, axis=0)
    infinite = np.flatnonzero((low < -cells.LARGEST_VALUE) | (high > cells.LARGEST_VALUE))
    if len(infinite):
        column = array[:, infinite[0]]
        bad = np.abs(column) > cells.LARGEST_VALUE
        limit = f"{cells.LARGEST_VALUE:g}"
        what = "infinite (inf)" if np.isinf(column).any() else f"beyond {limit}"
        raise InputError(
            f"Feature {names[infinite[0]]!r} is {what} in {rows_text(bad, labels)}."
            f"{_also(infinite[1:], names)} Allowed: numbers up to {limit}, and NaN where missing. "
            "Replace such values by NaN if they mean 'missing', or by the largest sensible value."
        )
    return array, tuple(str(name) for name in names)


def _feature_array(X: Any, names: Sequence[str], labels: pd.Index | None) -> np.ndarray:
    # A masked array goes through pandas: np.asarray would show what the mask hides.
    if not isinstance(X, pd.DataFrame | np.ma.MaskedArray):
        X = np.asarray(X)
        if X.dtype.kind == "c":
            raise InputError("X holds complex numbers. Complex data not supported.")
        if X.dtype.kind in "biuf":
            return np.ascontiguousarray(X, dtype=np.float64)
    table = pd.DataFrame(X)
    if all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in table.dtypes):
        return np.ascontiguousarray(table.to_numpy(np.float64))
    array = np.empty(table.shape)
    wrong: list[tuple[int, np.ndarray]] = []
    for j in range(table.shape[1]):
        array[:, j], bad = to_numbers(table.iloc[:, j])
        if bad.any():
            wrong.append((j, bad))
    if wrong:
        j, bad = wrong[0]
        offending = table.iloc[:, j][bad].iloc[:50]
        examples = values_text(offending)
        if any(isinstance(value, dict | list | set | tuple) for value in offending):
            raise InputTypeError(
                f"Feature {names[j]!r} holds objects such as {examples} in "
                f"{rows_text(bad, labels)}; the argument must be a string or a number."
            )
        raise InputError(
            f"Feature {names[j]!r} cannot be read as a number in {rows_text(bad, labels)}, such as "
            f"{examples}.{_also([k for k, _ in wrong[1:]], names)} Allowed: numbers, booleans, and "
            "NaN or blank where missing. Correct single entries (pandas.to_numeric with "
            "errors='coerce' makes them missing); leave a column of text out of the features, or "
            "encode it (categories: pandas.get_dummies; dates: days since a fixed day). "
            "dcem.read_table encodes categories and dates itself."
        )
    return array


def _also(columns: Sequence[int] | np.ndarray, names: Sequence[str]) -> str:
    return f" The same holds for {quoted([names[j] for j in columns])}." if len(columns) else ""


def check_id(values: Any, name: str, *, labels: pd.Index | None = None) -> np.ndarray:
    """Who each row belongs to: any values, none missing."""
    series = as_series(values, name)
    absent = series.isna().to_numpy()
    if not pd.api.types.is_numeric_dtype(series.dtype):
        absent = absent | series.astype(str).str.strip().eq("").to_numpy(bool)
    if absent.any():
        raise InputError(
            f"Column {name!r}, which identifies the person, is missing in "
            f"{rows_text(absent, labels)}. A person's rows must stay together in splits and "
            "resamples. Fill in the identifiers, or give each of these rows a new one."
        )
    if pd.api.types.is_integer_dtype(series.dtype):
        return series.to_numpy()
    cells.refuse_twins(series, name)
    text = cells.code_names(cells.coded_names(series, name), name)
    return np.array(text.values, dtype=object)[text.codes]


def check_weight(values: Any, name: str, *, labels: pd.Index | None = None) -> np.ndarray:
    """Row weights: not negative, not all zero, of a size whose squares can be computed with."""
    series = as_series(values, name)
    array, bad = to_numbers(series)
    bad = bad | ~(np.isfinite(array) & (array >= 0))
    bad |= (array > cells.LARGEST_VALUE) | ((array > 0) & (array < 1 / cells.LARGEST_VALUE))
    if bad.any():
        raise InputError(
            f"Weight {name!r} is unusable in {rows_text(bad, labels)}, such as "
            f"{values_text(series[bad].iloc[:50])}. Allowed: 0, and numbers from "
            f"{1 / cells.LARGEST_VALUE:g} to {cells.LARGEST_VALUE:g}. "
            "To leave a row out, give it the weight 0."
        )
    if not array.any():
        raise InputError(f"Weight {name!r} is zero in all {len(array):,} rows: no row would count.")
    return array


def check_probability(values: Any, name: str, *, labels: pd.Index | None = None) -> np.ndarray:
    """Known probabilities of being tested: above 0, at most 1, none missing."""
    series = as_series(values, name)
    array, bad = to_numbers(series)
    bad = bad | ~((array > 0) & (array <= 1))
    if bad.any():
        raise InputError(
            f"Testing probability {name!r} is unusable in {rows_text(bad, labels)}, such as "
            f"{values_text(series[bad].iloc[:50])}. Allowed: above 0 and at most 1, in every row. "
            "Nothing can be said about people who could not have been tested."
        )
    return array


def resolve_tested(
    y: Any,
    tested: Any = None,
    *,
    label_name: str = "y",
    tested_name: str = "tested",
    labels: pd.Index | None = None,
    waiting: bool = False,
    positive_untested: str | None = None,
    stated: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Labels [n] with NaN where nobody looked, and who was tested [n].

    Without `tested`, a missing label means that nobody looked. With it, an untested row may hold
    NaN or an imputed 0, both of which become NaN; a 1 there contradicts itself, unless
    `positive_untested` decides how such rows count ("tested" or "untested"). A tested row needs
    its result; if it may be `waiting` for it, it counts as untested until then. Nothing is noted
    if it was `stated` that everybody with a label was tested.
    """
    y = check_binary(y, label_name, labels=labels, missing="missing where nobody tested")
    if tested is None:
        looked = ~np.isnan(y)
        if looked.all() and not stated:
            notice(
                f"No label in {label_name!r} is missing and no {tested_name!r} was given, so every "
                f"row counts as tested. If untested rows were filled in with 0, pass "
                f"{tested_name!r}; if nobody recorded who was tested, use `positives_only`; if "
                "everybody really was tested, state that: tested = []."
            )
        return y, looked
    looked = check_binary(tested, tested_name, labels=labels).astype(bool)
    positive = ~looked & (y == 1)
    if positive.any() and positive_untested is None:
        raise InputError(
            f"Label {label_name!r} is 1 although {tested_name!r} is 0 in "
            f"{rows_text(positive, labels)}. An untested row cannot have a positive result; "
            f"allowed are 0 and missing. If these rows were tested, set `positive_untested` to "
            "tested. If their result comes from another source, such as a later diagnosis, set it "
            "to untested: the result is then left out. Or correct the table."
        )
    if positive.any():
        drop = "" if positive_untested == "tested" else ", without their result"
        notice(
            f"Label {label_name!r} is 1 although {tested_name!r} is 0 in "
            f"{rows_text(positive, labels)}. These rows count as {positive_untested}{drop} "
            "(`positive_untested`)."
        )
        looked = looked | positive if positive_untested == "tested" else looked
    absent = looked & np.isnan(y)
    if absent.any():
        lacking = f"Label {label_name!r} is missing although {tested_name!r} is 1 in "
        lacking += rows_text(absent, labels)
        if not waiting:
            raise InputError(
                f"{lacking}. A tested row needs its result, 0 or 1. If results are still to come, "
                "leave the latest rows out (`time`, `until`). If there will be none, set "
                f"{tested_name!r} to 0 in these rows, or list it under `exclude` instead of "
                "`tested`: they then count as untested."
            )
        notice(
            f"{lacking}: their results are still to come. These rows count as tested in results "
            "about who is tested, and as untested everywhere else."
        )
        looked = looked & ~absent
    if looked.all():
        notice(
            f"Everybody is tested ({tested_name!r} is 1 in all {len(y):,} rows): no label is "
            "missing, so selection needs no correction and ordinary supervised learning is the "
            "method of choice."
        )
    return np.where(looked, y, np.nan), looked


def check_learnable(
    y_obs: np.ndarray,
    tested: np.ndarray,
    label: str,
    tested_name: str,
    weight: np.ndarray | None = None,
    weight_name: str = "weight",
    *,
    labels: pd.Index | None = None,
) -> None:
    """Somebody was tested, and the tested who count hold both classes."""
    if weight is not None and tested.any():
        counted = tested & (weight > 0)
        if len(np.unique(y_obs[counted])) < len(np.unique(y_obs[tested])):
            raise InputError(
                f"The weight {weight_name!r} is 0 in {rows_text(tested & (weight == 0), labels)} "
                f"that were tested, and the other tested rows do not hold both classes of "
                f"{label!r}. Nothing is learnt from rows of weight 0."
            )
    n, looked = len(y_obs), int(tested.sum())
    if looked == 0:
        raise InputError(
            f"Nobody is tested: {tested_name!r} is 0, or {label!r} missing, in all {n:,} rows. "
            "Nothing can be learnt without observed labels. Check which column says who was "
            "tested, and whether 1 means tested."
        )
    positives = int(np.nansum(y_obs))
    if positives in (0, looked):
        raise InputError(
            f"Only one class among the tested: {label!r} is {int(positives > 0)} in all {looked:,} "
            f"tested rows (of {n:,}). Both 0 and 1 must occur. Bring more rows, or check how the "
            "label was coded."
            + " If it marks only who was found positive, and nobody recorded who was tested, use "
            "`positives_only`." * (positives > 0 and looked < n)
        )


def warn_limits(
    X: np.ndarray,
    tested: np.ndarray,
    group: np.ndarray,
    feature_names: Sequence[str],
    group_names: Sequence[str],
    positives_only: bool = False,
) -> None:
    """Say what is legal but limits the answer: constant features, groups nobody tested."""
    low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    constant = [name for name, c in zip(feature_names, ~(low < high), strict=True) if c]
    if constant:
        notice(
            f"Constant or entirely missing features: {quoted(constant)} ({len(constant)} of "
            f"{len(feature_names)}). They carry no information and can be dropped."
        )
    rows = np.bincount(group, minlength=len(group_names))
    looked = np.bincount(group[tested], minlength=len(group_names))
    unseen = np.flatnonzero((rows > 0) & (looked == 0))
    who = quoted([group_names[int(g)] for g in unseen])
    if len(unseen) and positives_only:
        notice(
            f"Nobody was found positive in group {who}: nothing can be said about how common the "
            "outcome is there."
        )
    elif len(unseen):
        notice(
            f"Nobody is tested in group {who} "
            f"({rows[unseen].sum():,} of {len(group):,} rows). No label was ever seen there: "
            "results for such a group are extrapolated from others, and their error cannot be "
            "estimated. Methods that need tested rows in every group refuse."
        )


def mention_strange_people(people: cells.Coded, column: str) -> None:
    """Say of people's numbers that a spreadsheet rounded them, or that one stands for many."""
    counts = people.counts()
    usual = 10 * np.median(counts) if len(counts) else np.inf
    several = np.flatnonzero(counts > 1)
    unknown = [i for i in several if people.values[i].casefold() in cells.NOT_A_NUMBER]
    if unknown or counts.max(initial=0) >= max(50, 0.05 * len(people.codes), usual):
        most = max(unknown or several, key=lambda i: counts[i])
        notice(
            f"Column {column!r} is {people.values[most]!r} in {counts[most]:,} of "
            f"{len(people.codes):,} rows, which count as one person. If this value means that the "
            "person is unknown, give each of these rows a new identifier."
        )
    if rounded := next((name for name in people.values if cells.ROUNDED.match(name)), None):
        notice(
            f"Column {column!r} holds {rounded!r}, a long number that a spreadsheet has rounded. "
            "People whose rounded numbers agree count as one. Export the column as text."
        )


def mention_copies(X: np.ndarray, y_obs: np.ndarray) -> None:
    """Say of rows that occur several times, as a join leaves them, that they are copies.

    Different people may well have the same features. But their results differ: rows are copies if
    nearly all that share their features with a positive are positive as well.
    """
    place = np.zeros(len(X))  # equal for equal rows
    rng = np.random.default_rng(0)
    for j in range(X.shape[1]):
        place += rng.normal() * np.where(np.isnan(X[:, j]), 0.1234, X[:, j])
    found, codes, counts = np.unique(place, return_inverse=True, return_counts=True)
    surplus = len(X) - len(found)
    if surplus < MOST_COPIES * len(X):
        return
    positive = np.bincount(codes, y_obs == 1)
    several = (counts > 1) & (positive > 0)
    if several.sum() >= FEWEST_COPIES and positive[several].sum() > 0.98 * counts[several].sum():
        notice(
            f"{surplus:,} of {len(X):,} rows are copies of others: the same features, test and "
            "result. Counting rows twice makes results look more certain than they are. Drop the "
            "copies, or name the column that identifies the person (`id`)."
        )
