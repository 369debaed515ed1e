"""Rates that are known: how common the outcome is, from a survey or a registry.

A prevalence is spelt `.12`; `.10-.14`, a 95 % interval; or `F=.1,M=.12-.16`, by group. It is that
of the people whom the table stands for (by their weights, where rows have them): of everybody, or
of each group that is named. What it says of the untested is worked out in
`dcem.estimation.known`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np

from dcem.table.disclosure import THRESHOLD
from dcem.table.imperfect import ImperfectTest, unbiased
from dcem.table.messages import InputError
from dcem.table.stated import PREVALENCE, Stated, Z, parsed
from dcem.text import percent

SPELLING = "a number such as .12, an interval such as .10-.14, or `F=.1,M=.12-.16` by group"
ASSUMPTION = (
    "The stated prevalence is that of the people whom the table stands for, and at equal features "
    "the odds of untested people differ from those of tested people by one factor."
)


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
            "A prevalence is stated, but everybody tested is positive: without negative tests it "
            "says nothing of the untested. Leave out `prevalence`, or say who was tested negative."
        )
    told = parsed(PREVALENCE, given, group_names, SPELLING, every=False)
    several = len(group_names) > 1  # one group is everybody
    found = tuple(Stated(PREVALENCE, name * several, *rate) for name, rate in told.items())
    w = np.ones(len(group)) if weight is None else weight
    y = np.where(tested, y_obs, 0.0)
    if test is not None:
        y = np.where(tested, unbiased(y, test.rates), 0.0)
    for one in found:
        _check_possible(one, w, y, tested, concerned(one, group, group_names))
    return found


def concerned(one: Stated, group: np.ndarray, group_names: Sequence[str]) -> np.ndarray:
    """Whose rate it is: a mask of rows [n]."""
    if not one.group:
        return np.ones(len(group), bool)
    return np.asarray(group == list(group_names).index(one.group))


def said(stated: Sequence[Stated]) -> str:
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
        raise InputError(f"A prevalence is stated{of}, but there is nobody{of} in the table.")
    least = float(weight[mine] @ y[mine]) / total
    most = least + float(weight[mine] @ ~tested[mine]) / total
    if least == most:  # everybody is tested: there is nothing to learn from a rate
        return
    low, high = one.interval
    lucky = sqrt(float((weight[mine] ** 2).sum())) / total  # one over the root of their number
    few = int((mine & tested & (y > 0)).sum()) < THRESHOLD
    told = "" if few else f", {percent(least, 1)} of all people{of}"
    if high <= least - Z * lucky * sqrt(max(least * (1 - least), 0.0)):
        raise InputError(
            f"The prevalence is stated as {one.words}, but more people were found to have the "
            f"outcome already{told}. Check that the rate is of the same outcome and the same "
            "people, and what the label counts as yes."
        )
    if low >= most + Z * lucky * sqrt(max(most * (1 - most), 0.0)):
        few = few or int((mine & tested & (y <= 0)).sum()) < THRESHOLD
        told = "" if few else f", {percent(most, 1)} of all people{of}"
        raise InputError(
            f"The prevalence is stated as {one.words}, more than there would be if every "
            f"untested person had the outcome{told}. Check that the rate is of the same outcome "
            "and the same people."
        )
