"""Groups: one or several columns of any values become codes and level names.

The only coding of groups, whatever brings them (arrays, frames, files, batches of a file): levels
are names as `values.names` reads them, and several columns are crossed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dcem.table import values as cells
from dcem.table.disclosure import THRESHOLD
from dcem.table.frames import as_frame, as_series, is_arrow, shape_of
from dcem.table.messages import InputError, did_you_mean, notice, quoted, rows_text
from dcem.table.values import Coded
from dcem.text import percent

MISSING_LEVEL = "(missing)"
"""The level of rows whose group is not recorded: people too, and rarely missing at random."""
MOST_NUMBERS = 20  # different ones that may each be a group
EVERYBODY = "everybody"
"""What all groups together are called in results; no group may be."""


def check_groups(
    values: Any, name: str, *, labels: pd.Index | None = None, levels: Sequence[str] | None = None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Codes [n] and level names, in order.

    Several columns (a frame, an array [n, k], or a dictionary of columns, coded or not) are
    crossed: 'F & Black'. The levels are those that occur, categories in their own order, numbers
    by size, all else by name; or `levels`, for a table that must agree with another one even if a
    level is absent from it.
    """
    named = []
    for column, text in _columns(values, name):
        text = cells.code_names(text, column)
        _refuse_continuous(text, column, labels)
        _mention_doubtful(text, column)
        _mention_missing(text, column, labels)
        named.append(_gap_as_level(text))
    crossed, all_names = cross(named)
    present, codes = np.unique(crossed, return_inverse=True)
    names = tuple(all_names[p] for p in present)
    if EVERYBODY in names:
        raise InputError(
            f"Column {name!r} has a group called {EVERYBODY!r}, the name that results use for all "
            "groups together. Rename it."
        )
    if len(names) == 1 and levels is None:
        notice(f"Group {name!r} is {names[0]!r} in all rows: there are no groups to compare.")
    if levels is not None:
        codes, names = _match(codes, names, tuple(map(str, levels)), name, labels)
    return codes.astype(np.int64), names


def in_order(names: Iterable[str], known: Sequence[str] = ()) -> list[str]:
    """Names of groups as tables list them: `known` ones first, those not recorded last."""
    place = {name: number for number, name in enumerate(known)}
    return sorted(
        names, key=lambda name: (name == MISSING_LEVEL, place.get(name, len(place)), name)
    )


def require_group(reference: str, levels: Sequence[str], *, named: bool) -> None:
    """Refuse a reference group that is none of the groups, if groups were `named` at all."""
    if reference not in levels:
        raise InputError(
            f"The reference group {reference!r} does not occur.{did_you_mean(reference, levels)} "
            + (f"The groups are: {quoted(levels)}." if named else "No group was named.")
        )


UNEQUALLY_RECORDED = 0.1  # more often by this, of tested rows than of others: it is pointed out
HARDLY_RECORDED = 0.05  # of the untested rows: nothing can be said about who decides


def check_deciders(values: Any, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Who decided: codes [n], -1 where that is missing, and names; at least two of them."""
    text = values if isinstance(values, Coded) else cells.coded_names(as_series(values, name), name)
    text = order_levels(cells.code_names(text, name))
    recorded = text.codes >= 0
    if len(text.values) < 2:
        raise InputError(
            f"Decider column {name!r} "
            + (f"has one decider, {text.values[0]!r}." if len(text.values) else "is empty.")
            + " Deciders are compared with each other: name a column with two or more, or none."
        )
    if len(text.values) > recorded.sum() / 2:
        raise InputError(
            f"Decider column {name!r} has {len(text.values):,} deciders in "
            f"{int(recorded.sum()):,} rows, so it looks like an identifier of rows. A decider must "
            "have decided on many people."
        )
    return text.codes.astype(np.int64), text.values


def check_recorded(decider: np.ndarray, tested: np.ndarray, name: str) -> None:
    """Refuse deciders [n] that are recorded where somebody was `tested` [n], and hardly elsewhere.

    Such is who did the test: everybody whom they are known to have decided on was tested.
    """
    if tested.all() or not tested.any():
        return
    recorded = decider >= 0
    of_tested, of_others = recorded[tested].mean(), recorded[~tested].mean()
    if of_tested - of_others < UNEQUALLY_RECORDED:
        return
    shares = f"{percent(of_tested)} of the tested rows and in {percent(of_others)} of the others"
    if of_others < HARDLY_RECORDED:
        raise InputError(
            f"Decider column {name!r} has a value in {shares}. It seems to say who did the test, "
            "not who decided whether to test. Name as `decider` a column that has values for "
            "tested and untested rows, or none; leave this one out of the features (`exclude`)."
        )
    notice(
        f"Decider column {name!r} has a value in {shares}. Rows without a decider are left out "
        "when deciders are compared, so each seems to test more people than they really do."
    )


def mention_small_groups(group: np.ndarray, group_names: Sequence[str]) -> None:
    """Say which groups are too small for anything to be estimated of them."""
    sizes = np.bincount(group, minlength=len(group_names))
    small = [group_names[int(g)] for g in np.flatnonzero(sizes < THRESHOLD)]
    if small and len(group_names) > 1:
        notice(
            f"Fewer than {THRESHOLD} rows in group {quoted(small, 5)}. They are kept and scored "
            "like all others, but nothing can be estimated for so few people alone; results will "
            "say so. Merge groups in the table if that makes sense."
        )


def cross(columns: Sequence[tuple[np.ndarray, Sequence[str]]]) -> tuple[np.ndarray, list[str]]:
    """Codes [n] into all combinations of levels, and their names: 'F & Black'."""
    codes, names = columns[0][0], list(columns[0][1])
    for more, more_names in columns[1:]:
        codes = codes * len(more_names) + more
        names = [f"{one} & {other}" for one in names for other in more_names]
    if len(set(names)) < len(names):
        raise InputError(
            "Crossing the group columns gives two levels the same name, because a value itself "
            "contains ' & '. Rename such values first."
        )
    return codes, names


def code_batch(columns: dict[str, Coded]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Group codes [n] and names of some rows of a table, named as in the whole table."""
    named = [_gap_as_level(cells.code_names(text, name)) for name, text in columns.items()]
    codes, names = cross(named)
    return codes, tuple(names)


def _gap_as_level(text: Coded) -> tuple[np.ndarray, list[str]]:
    """Codes and names with a level for missing values, the last, where there are any."""
    absent = text.codes < 0
    names = [*text.values, *[MISSING_LEVEL] * bool(absent.any())]
    return np.where(absent, len(text.values), text.codes), names


def _columns(values: Any, name: str) -> list[tuple[str, Coded]]:
    """Names and codes of the columns of whatever holds them."""
    if is_arrow(values) and hasattr(values, "columns"):
        values = as_frame(values)
    if isinstance(values, pd.DataFrame | Mapping):  # of a repeated name, both
        columns = [(str(column), one) for column, one in values.items()]
    elif len(shape_of(values)) == 2:
        columns = [(f"{name}[{j}]", one) for j, one in enumerate(np.asanyarray(values).T)]
    else:
        columns = [(name, values)]
    if not columns:
        raise InputError(f"{name!r} has no columns. Leave it out if there are no groups.")
    return [(column, _coded(one, column)) for column, one in columns]


def _coded(values: Any, name: str) -> Coded:
    if isinstance(values, Coded):
        return values
    series = as_series(values, name)
    text = cells.coded_names(series, name)
    return text if isinstance(series.dtype, pd.CategoricalDtype) else order_levels(text)


def order_levels(text: Coded) -> Coded:
    """The same column with its levels in order: by size if they are numbers, else by name."""
    sizes = cells.parsed(text.values)
    if np.isnan(sizes).any():
        sizes = np.zeros(len(sizes))
    order = sorted(range(len(sizes)), key=lambda i: (sizes[i], text.values[i]))
    rank = np.argsort(np.array(order, np.int64))
    return Coded(text.take(rank, -1), tuple(text.values[i] for i in order))


def _mention_missing(text: Coded, column: str, labels: pd.Index | None) -> None:
    """Say that rows without a group are one, and refuse another of its name."""
    absent = text.codes < 0
    if not absent.any():
        return
    if MISSING_LEVEL in text.values:
        raise InputError(
            f"Group column {column!r} is missing in {rows_text(absent, labels)}. Such rows are "
            f"called {MISSING_LEVEL!r}, but the column also contains that value. Rename the value, "
            "or fill in the missing ones."
        )
    notice(
        f"Group column {column!r} is missing in {rows_text(absent, labels)}. These rows form "
        f"a separate group, {MISSING_LEVEL!r}. To avoid this, fill in the values or drop the rows."
    )


def _mention_doubtful(text: Coded, column: str) -> None:
    """Warn of levels that may be one group of people, or none."""
    names, are_numbers = text.values, cells.all_numbers(text.values)
    if are_numbers and (note := cells.apart(column, cells.parsed(names), text.counts())):
        notice(f"Group column {column!r}: {note}.")
    if several := cells.alike(names):
        notice(
            f"Group column {column!r} has values that differ only in case or spaces: "
            f"{quoted(several)}. They count as different groups; if they are one, spell them the "
            "same way."
        )
    if len(names) > MOST_NUMBERS and are_numbers:
        notice(
            f"Group column {column!r} has {len(names)} different numbers, and each counts as a "
            "group. Cut it into bands first, for example with pandas.cut."
        )
    doubtful = [name for name in names if name.casefold() in cells.NULLS]
    if doubtful:
        one = len(doubtful) == 1
        counts = "value {}, which counts" if one else "values {}, each of which counts"
        means, it = ("it means", "it") if one else ("they mean", "them")
        notice(
            f"Group column {column!r} has the {counts.format(quoted(doubtful))} as a group of that "
            f"name. If {means} that the group is unknown, list {it} under `missing`, or leave "
            "these cells empty."
        )


def _refuse_continuous(text: Coded, column: str, labels: pd.Index | None) -> None:
    sizes = cells.parsed(text.values)
    if len(sizes) == 0 or np.isnan(sizes).any():
        return
    fractions = ~(np.isfinite(sizes) & (sizes == np.floor(sizes)))
    if fractions.any():
        bad = text.take(fractions, False)
        raise InputError(
            f"Group column {column!r} holds fractions or infinities in {rows_text(bad, labels)}, "
            f"{len(sizes)} different values in all. Allowed: text, integers, booleans, categories. "
            "Cut a continuous attribute into bands first, for example with pandas.cut."
        )


def _match(
    codes: np.ndarray,
    names: tuple[str, ...],
    levels: tuple[str, ...],
    column: str,
    labels: pd.Index | None,
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Recode to the given levels, all of which stay, in their order."""
    index = {level: code for code, level in enumerate(levels)}
    for code, name in enumerate(names):
        if name not in index:
            raise InputError(
                f"Group column {column!r} is {name!r} in {rows_text(codes == code, labels)}, which "
                f"is not among the given group names: {quoted(levels)}."
                f"{did_you_mean(name, levels)} Correct the value or add the name."
            )
    return np.array([index[name] for name in names], dtype=np.int64)[codes], levels
