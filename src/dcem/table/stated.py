"""Rates that somebody states: `.6`; `.5-.7`, a 95 % interval; `F=.6,M=.5-.7`, by group."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from scipy.special import expit, logit

from dcem.table.messages import InputError, did_you_mean, listed
from dcem.text import number

Z = 1.959964  # of a 95 % interval
PREVALENCE = "prevalence"
# "name=rate", and so on: names may hold "=" (`>=65`) and commas (`Ward 3, east`), rates do not
_OF_GROUP = re.compile(r"([^,].*?)=([^=,]+)(?:,|$)")
_BY_GROUP = re.compile(f"(?:{_OF_GROUP.pattern})+")


class Stated(NamedTuple):
    """One stated rate."""

    rate: str  # "sensitivity", "specificity" or "prevalence"
    group: str  # whose; empty: everybody's
    value: float  # the mean, of a column
    interval: tuple[float, float]  # 95 %, as it was stated; a point where it is taken as exact
    column: str = ""

    @property
    def error(self) -> float:
        """Standard error, 0 where the rate is taken as exact."""
        return (self.interval[1] - self.interval[0]) / (2 * Z)

    @property
    def words(self) -> str:
        """Such as ".50 [.40, .60] in group F"."""
        places = 3 if self.rate == PREVALENCE else 2  # outcomes may be rare
        said = number(self.value, places)
        if self.error:
            said += " [" + ", ".join(number(end, places) for end in self.interval) + "]"
        if self.column:
            said = f"by row ({self.column}), {said} on average"
        return said + (f" in group {self.group}" if self.group else "")


def parsed(
    what: str, given: Any, group_names: Sequence[str], spelling: str, *, every: bool = True
) -> dict[str, tuple[float, tuple[float, float]]]:
    """Value and interval by group, or under "" for everybody.

    `what` is the rate in words, `spelling` how it may be given. By group, `every` group must be
    stated, or else some.
    """
    if isinstance(given, str) and "=" in given:
        if not _BY_GROUP.fullmatch(given):
            raise InputError(f"The {what} is {given!r}; it should be {spelling}.")
        given = {name.strip(): value.strip() for name, value in _OF_GROUP.findall(given)}
    if not isinstance(given, Mapping):
        return {"": _rate(what, given, spelling)}
    found = {str(name): _rate(what, value, spelling) for name, value in given.items()}
    for name in found:
        if len(group_names) == 1 and name not in group_names:
            raise InputError(
                f"The {what} is stated for group {name!r}, but the table has one group alone. "
                "State one number for all, or say which column holds the group."
            )
        if name not in group_names:
            raise InputError(
                f"The {what} is stated for group {name!r}, which does not occur."
                f"{did_you_mean(name, group_names)} The groups are: {listed(group_names)}."
            )
    if every and (missing := [name for name in group_names if name not in found]):
        raise InputError(
            f"The {what} is stated by group, but not for {listed(missing)}. State it for "
            "every group, or one number for all."
        )
    return found


def _rate(what: str, given: Any, spelling: str) -> tuple[float, tuple[float, float]]:
    """Value and interval of one spelling."""
    text = str(given).strip().replace("–", "-")
    pieces = text.split("-") if text.count("-") == 1 and "e" not in text.lower() else [text]
    try:
        ends = [float(piece) for piece in pieces]
    except ValueError:
        raise InputError(f"The {what} is {text!r}; it should be {spelling}.") from None
    low, high = min(ends), max(ends)
    if not (low > 0 and high <= 1) or (len(ends) == 2 and not ends[0] < ends[1]):
        raise InputError(
            f"The {what} is {text!r}; a rate lies between 0 and 1, and so do both ends of an "
            "interval, the lower one first."
        )
    if low == high:
        return low, (low, high)
    # intervals of rates are about even in log-odds, as those of published tables are
    middle = (low + high) / 2 if high == 1 else float(expit((logit(low) + logit(high)) / 2))
    return middle, (low, high)
