"""The two exceptions, and how a message names rows, columns and the nearest match."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from numbers import Real
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:  # at run time nothing heavy: the command line reads the roles with it
    import numpy as np
    import pandas as pd

_PACKAGE = str(Path(__file__).parents[1])
POSITION = "position"
"""The name of an index that counts the rows of a table from 0, some of which are left out."""
P = ParamSpec("P")
T = TypeVar("T")


class InputError(ValueError):
    """The input cannot be used as it is; the message says where it is wrong and what to do."""


class InputTypeError(InputError, TypeError):
    """The input holds something that is not a datum at all, such as a dictionary in a cell."""


SHORT = 12  # signs of a number: longer ones are rounded in messages


class DataWarning(UserWarning):
    """The input is legal, but limits what can be learnt from it."""


class LeakWarning(DataWarning):
    """Features may have been recorded after the decision to test."""


def notice(message: str, category: type[Warning] = DataWarning) -> None:
    """Warn with `DataWarning`, pointing at the caller's line outside this package."""
    frame: FrameType | None = sys._getframe(1)
    depth = 2
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, category, stacklevel=depth)


def tell_renamed(old: str, now: str) -> None:
    """Say that a name that still works has another now."""
    notice(f"{old} is now called {now}; the next release drops the old name.", FutureWarning)


def formerly(**names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """The function with its parameters under the names they had before, too: `folds="n_folds"`."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def either(*given: Any, **named: Any) -> T:
            for old in names.keys() & named.keys():
                if names[old] in named:
                    raise InputError(f"`{old}` is the old name of `{names[old]}`: give only one.")
                tell_renamed(old, names[old])
                named[names[old]] = named.pop(old)
            return function(*given, **named)

        return either

    return decorate


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the file's name before an error about what is in it."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(str(path)):
            raise
        counted = " Rows are counted from 0 after the header." if "(first: " in str(error) else ""
        raise InputError(f"{path}: {error}{counted}") from None


def nearest(name: object, allowed: Iterable[object]) -> str | None:
    """The entry of `allowed` most like `name` (letter case ignored), or None if nothing is.

    A name with several letters more or fewer must be more alike: by the usual measure 'change'
    would do for 'age'.

    >>> nearest("sepsys", ["age", "sepsis", "sex"])
    'sepsis'
    """
    spelled = {str(a).lower(): str(a) for a in allowed}
    wanted = str(name).lower()
    same_length = [known for known in spelled if abs(len(known) - len(wanted)) <= 1]
    found = difflib.get_close_matches(wanted, spelled, n=1, cutoff=0.75)
    found = found or difflib.get_close_matches(wanted, same_length, n=1, cutoff=0.6)
    return spelled[found[0]] if found else None


def quoted(items: Collection[object], most: int = 12) -> str:
    """`items` as quoted text, cut after `most` of them."""
    shown = [repr(str(i)) for i, _ in zip(items, range(most), strict=False)]
    return ", ".join(shown) + (f" and {len(items) - most} more" if len(items) > most else "")


def did_you_mean(name: object, allowed: Iterable[object]) -> str:
    """' Did you mean ...?' with a leading space, or nothing."""
    guess = nearest(name, allowed)
    return f" Did you mean {guess!r}?" if guess else ""


def require_one_of(name: str, given: object, allowed: Collection[str]) -> None:
    """Refuse a value that is not among the words which an argument takes."""
    if given not in list(allowed):
        hint = did_you_mean(given, allowed)
        raise InputError(f"`{name}` must be one of {', '.join(allowed)}; got {given!r}.{hint}")


def require_kind(given: object, kind: type, remedy: str) -> None:
    """Refuse an argument of another class, and say how one of the right class is made."""
    if not isinstance(given, kind):
        found = type(given).__name__
        raise InputTypeError(f"Expected a {kind.__name__}, got {found}. {remedy}")


def require_share(name: str, given: Any, such_as: float, *, ends: bool = False) -> None:
    """Refuse what is no number between 0 and 1; with `ends`, these two are allowed."""
    within = isinstance(given, Real) and 0 < float(given) < 1
    if not (within or (ends and given in (0, 1))):
        shown = readable(given)
        raise InputError(f"`{name}` must lie between 0 and 1, such as {such_as}; got {shown}.")


def require_columns(
    available: Collection[object], wanted: Iterable[object], where: str = "The table"
) -> None:
    """Raise, with the nearest match of each that is not, unless every column is available."""
    present = set(available)
    absent = [name for name in dict.fromkeys(wanted) if name not in present]
    if not absent:
        return
    if len(absent) == 1:
        lacks = f"no column {absent[0]!r}.{did_you_mean(absent[0], available)}"
    else:
        guesses = {name: nearest(name, available) for name in absent}
        lacks = f"none of the columns {quoted(absent, most=50)}." + "".join(
            f" Did you mean {guess!r} for {name!r}?" for name, guess in guesses.items() if guess
        )
    raise InputError(f"{where} has {lacks} Its columns are: {quoted(available)}.")


def require_unique(names: Iterable[object], where: str = "The table") -> None:
    """Raise if a column name occurs twice: a name must say which column is meant."""
    twice = {name: count for name, count in Counter(map(str, names)).items() if count > 1}
    if twice:
        shown = ", ".join(f"{name!r} ({count} times)" for name, count in twice.items())
        raise InputError(
            f"{where} has duplicate column names: {shown}. Column names must be unique: rename or "
            "drop the repeated ones."
        )


def rows_text(bad: np.ndarray, labels: pd.Index | None = None) -> str:
    """'3 of 100 rows (first: 4, 17, 22)' for a mask of offending rows.

    Rows are named by `labels`, the index of the user's own frame, or counted from 0.
    """
    where = bad.nonzero()[0]
    first = [readable(i if labels is None else labels[i]) for i in where[:5]]
    what = "first" if labels is None or labels.name == POSITION else "first labels"
    dots = ", ..." if len(where) > len(first) else ""
    return f"{len(where):,} of {len(bad):,} rows ({what}: {', '.join(first)}{dots})"


def listed_rows(first: Sequence[int], many: int) -> str:
    """'rows 4, 17, 22, ... from 0' for the first of many rows."""
    dots = ", ..." if many > len(first) else ""
    return f"row{'s' * (many > 1)} {', '.join(f'{row}' for row in first)}{dots}, counted from 0"


def values_text(values: Iterable[object]) -> str:
    """Up to three distinct examples of offending values: "2 and 'maybe'"."""
    shown = list(dict.fromkeys(map(readable, values)))[:3]
    return " and ".join("a missing value" if s in ("nan", "None", "<NA>") else s for s in shown)


def readable(value: object) -> str:
    """A value as a person would write it: 3, not np.int64(3); .3, not 0.30000000000000004."""
    item = getattr(value, "item", None)  # of NumPy
    plain = item() if callable(item) else value
    if isinstance(plain, float) and f"{plain:.10g}" != repr(plain) and len(repr(plain)) > SHORT:
        return f"{plain:.10g}"
    return repr(plain)
