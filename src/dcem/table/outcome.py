"""Label, testing decision and truth: raw values become 0, 1 and missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dcem.table import checks, values
from dcem.table.checks import InputError
from dcem.table.roles import Roles, split_where_known

# Values that often mean "nobody looked", for a hint.
NOT_DONE = {"none", "not done", "not tested", "untested", "unknown", "not measured", "na", "n/a"}


def read_label(column: pa.ChunkedArray, roles: Roles) -> tuple[np.ndarray, Roles]:
    """The label [n], NaN where nobody looked; and the roles with their values split at commas."""
    text = _plain(values.coded(column, roles.missing))
    positive = _known("--positive", roles.positive, text.values, roles.label)
    untested = _known("--untested-value", roles.untested_value, text.values, roles.label)
    both = set(positive) & set(untested)
    if both:
        raise InputError(
            f"{_shown(both)} was given as a positive and as an untested value of {roles.label!r}. "
            "It can mean only one of them."
        )
    observed = [value for value in text.values if value not in untested]
    meaning = dict(zip(observed, _meaning(observed, positive, roles.label), strict=True))
    per_value = np.array([meaning.get(value, np.nan) for value in text.values])
    resolved = {**vars(roles), "positive": positive, "untested_value": untested}
    return text.take(per_value, np.nan), Roles(**resolved)


def read_tested(column: pa.ChunkedArray, roles: Roles) -> np.ndarray:
    """Who was tested [n], 0 or 1; yes and no are understood."""
    name = str(roles.tested)
    text = values.coded(column, roles.missing)
    said = values.yes_or_no(text.values)
    if said is None:
        raise InputError(
            f"Column {name!r} should say yes or no (1 or 0, true or false) of every row; it holds "
            f"{_shown(text.values)}. If {roles.label!r} itself says who was tested, leave --tested "
            "out and name the value that means nobody looked: --untested-value."
        )
    return checks.check_binary(text.take(said, np.nan), name)


def read_truth(column: pa.ChunkedArray, roles: Roles) -> np.ndarray:
    """Everybody's true outcome [n], 0 or 1, coded as the label is or as yes and no."""
    name = str(roles.truth)
    text = _plain(values.coded(column, roles.missing))
    positive = [value for value in roles.positive if value in text.values]
    per_value = np.array(_meaning(list(text.values), positive, name), dtype=float)
    return checks.check_binary(text.take(per_value, np.nan), name).astype(np.int64)


def _meaning(observed: list[str], positive: Sequence[str], name: str) -> list[float]:
    """0 or 1 for each observed value."""
    if positive:
        return [float(value in positive) for value in observed]
    said = values.yes_or_no(observed)
    if said is not None or not observed:
        return [] if said is None else list(said)
    looks = [value for value in observed if value.casefold() in NOT_DONE]
    hint = ""
    if looks:
        hint = f" If {looks[0]!r} means that nobody looked: --untested-value {looks[0]!r}."
    if len(observed) > 12 and values.all_numbers([v for v in observed if v not in looks]):
        raise InputError(
            f"Column {name!r} holds a measurement ({_shown(observed, 3)}), not yes and no. Add a "
            f"column that says who is above the limit that counts, and give that.{hint}"
        )
    raise InputError(
        f"Column {name!r} holds {_shown(observed)}; which of these mean yes? Say so with "
        f"--positive VALUE (several are allowed); the others then mean no.{hint} Understood "
        "without it: 1 and 0, yes and no, true and false, positive and negative."
    )


def _plain(text: values.Coded) -> values.Coded:
    """A column of numbers with 1.0 spelled as 1."""
    if not values.all_numbers([v for v in text.values if v.casefold() not in NOT_DONE]):
        return text
    return values.Coded(text.codes, tuple(values.plainly(text.values)))


def _known(option: str, given: Sequence[str], present: Sequence[str], name: str) -> tuple[str, ...]:
    """The given values, each of which must occur in the column."""
    spelled = {value.strip(): value for value in given}
    found = split_where_known(tuple(spelled), present)
    for value in found:
        if value not in present:
            near = checks.nearest(value, present)
            hint = f" Did you mean {near!r}?" if near else ""
            raise InputError(
                f"{option} {value!r} does not occur in column {name!r}.{hint} "
                f"Its values are: {_shown(present)}."
            )
    return found


def _shown(found: Sequence[str] | set[str], most: int = 12) -> str:
    first = [repr(value) for value, _ in zip(found, range(most), strict=False)]
    more = f" and {len(found) - most:,} more" if len(found) > most else ""
    return (", ".join(first) if first else "nothing") + more
