"""Rates that somebody states: how they are spelt, and what is known of how common the outcome is.

A rate is spelt `.12`; `.10-.14`, a 95 % interval; or `F=.1,M=.12-.16`, by group. A prevalence, from
a survey or a registry, is that of the people whom the table represents (by their weights, where
rows have them): of everybody, or of each group that is named. What it says of the untested is
worked out in `dcem.estimation.known_rates`; rates of tests are in `dcem.table.imperfect`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from dcem.table.disclosure import THRESHOLD
from dcem.table.messages import InputError, did_you_mean, quoted
from dcem.text import number, percent

if TYPE_CHECKING:
    from dcem.table.imperfect import ImperfectTest

Z = 1.959964  # of a 95 % interval
PREVALENCE = "prevalence"
# "name=rate", and so on: names may hold "=" (`>=65`) and commas (`Ward 3, east`), rates do not
_OF_GROUP = re.compile(r"([^,].*?)=([^=,]+)(?:,|$)")
SPELLING = "a number such as .12, an interval such as .10-.14, or `F=.1,M=.12-.16` by group"
PREVALENCE_ASSUMPTION = (
    "The stated prevalence is that of the people whom the table represents, and at equal features "
    "the odds of untested people differ from those of tested people by one factor."
)


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


def stated_rates(
    rate: str, given: Any, group_names: Sequence[str], spelling: str, *, every: bool = True
) -> list[Stated]:
    """What is stated of a rate: one for everybody, or by group, `every` one or else some.

    `spelling` says how it may be given.
    """
    what = rate if rate == PREVALENCE else f"test {rate}"
    if isinstance(given, str) and "=" in given:
        each = [*_OF_GROUP.finditer(given)]
        ends = [0, *(one.end() for one in each)]
        if ends != [*(one.start() for one in each), len(given)]:  # something lies between them
            raise InputError(f"The {what} is {given!r}; it should be {spelling}.")
        given = {one[1].strip(): one[2].strip() for one in each}
    by_group = given if isinstance(given, Mapping) else {"": given}
    found = [
        Stated(rate, str(name), *_rate_and_interval(what, value, spelling))
        for name, value in by_group.items()
    ]
    if by_group is not given:
        return found
    for one in found:
        if len(group_names) == 1 and one.group not in group_names:
            raise InputError(
                f"The {what} is stated for group {one.group!r}, but the table has only one group. "
                "State one number for all, or name the column with the group."
            )
        if one.group not in group_names:
            raise InputError(
                f"The {what} is stated for group {one.group!r}, which does not occur."
                f"{did_you_mean(one.group, group_names)} The groups are: {quoted(group_names)}."
            )
    named = {one.group for one in found}
    if every and (missing := [name for name in group_names if name not in named]):
        raise InputError(
            f"The {what} is stated by group, but not for {quoted(missing)}. State it for "
            "every group, or one number for all."
        )
    return found


def _rate_and_interval(what: str, given: Any, spelling: str) -> tuple[float, tuple[float, float]]:
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
            f"The {what} is {text!r}; a rate must lie between 0 and 1, and so must both ends of an "
            "interval, the lower one first."
        )
    if low == high:
        return low, (low, high)
    # intervals of rates are about even in log-odds, as those of published tables are
    middle = (low + high) / 2 if high == 1 else float(expit((logit(low) + logit(high)) / 2))
    return middle, (low, high)


def known_prevalence(
    given: Any,
    *,
    y_obs: np.ndarray,
    tested: np.ndarray,
    group: np.ndarray,
    group_names: Sequence[str],
    weight: np.ndarray | None = None,
    test: ImperfectTest | None = None,
) -> tuple[Stated, ...]:
    """What is stated, checked against what was found; empty if nothing is."""
    if given is None:
        return ()
    if tested.any() and (y_obs[tested] == 1).all():
        raise InputError(
            "A prevalence is stated, but everybody tested is positive. Without negative tests it "
            "says nothing about the untested. Leave out `prevalence`, or state who tested negative."
        )
    stated = stated_rates(PREVALENCE, given, group_names, SPELLING, every=False)
    several = len(group_names) > 1  # one group is everybody
    found = tuple(one._replace(group=one.group * several) for one in stated)
    w = np.ones(len(group)) if weight is None else weight
    y = np.where(tested, y_obs if test is None else test.unbiased(y_obs), 0.0)
    for one in found:
        _check_possible(one, w, y, tested, concerned(one, group, group_names))
    return found


def concerned(one: Stated, group: np.ndarray, group_names: Sequence[str]) -> np.ndarray:
    """Whose rate it is: a mask of rows [n]."""
    if not one.group:
        return np.ones(len(group), bool)
    return np.asarray(group == list(group_names).index(one.group))


def known_words(stated: Sequence[Stated]) -> str:
    """All of them in words: "prevalence .100 in group F, .140 [.12, .16] in group M"."""
    return f"{PREVALENCE} " + ", ".join(one.words for one in stated) if stated else ""


def _check_possible(
    one: Stated, weight: np.ndarray, y: np.ndarray, tested: np.ndarray, mine: np.ndarray
) -> None:
    """Refuse a rate that the people found, or left untested, do not allow.

    What its interval and the luck of so few people could explain is not refused: then nothing
    follows from it for the untested, and an audit says so.
    """
    of = f" of group {one.group}" if one.group else ""
    total = float(weight[mine].sum())
    if not total > 0:
        raise InputError(f"A prevalence is stated{of}, but nobody{of} is in the table.")
    least = float(weight[mine] @ y[mine]) / total
    most = least + float(weight[mine] @ ~tested[mine]) / total
    if least == most:  # everybody is tested: there is nothing to learn from a rate
        return
    low, high = one.interval
    lucky = sqrt(float((weight[mine] ** 2).sum())) / total  # one over the root of their number
    few = int((mine & tested & (y > 0)).sum()) < THRESHOLD
    share = "" if few else f", {percent(least, 1)} of all people{of}"
    if high <= least - Z * lucky * sqrt(max(least * (1 - least), 0.0)):
        raise InputError(
            f"The prevalence is stated as {one.words}, but more people have already been found to "
            f"have the outcome{share}. Check that the rate refers to the same outcome and the same "
            "people, and which label values count as yes."
        )
    if low >= most + Z * lucky * sqrt(max(most * (1 - most), 0.0)):
        few = few or int((mine & tested & (y <= 0)).sum()) < THRESHOLD
        share = "" if few else f", {percent(most, 1)} of all people{of}"
        raise InputError(
            f"The prevalence is stated as {one.words}, more than it would be if every untested "
            f"person had the outcome{share}. Check that the rate refers to the same outcome and "
            "the same people."
        )
