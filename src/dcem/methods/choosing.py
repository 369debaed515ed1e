"""Which method to take: one rule, for the audit, the comparison and the fit alike.

The default is `ensemble`: on tables with a known truth it is the best method, or close to it,
nearly everywhere (docs/default.md). A comparison of the very table overrules that, if it shows
another method to be clearly better. Nothing else does: which ranks highest by a hair is luck.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

DEFAULT = "ensemble"
WITHOUT_RECORD = "purple"  # the default where nobody recorded who was tested
PREFERRED = ("truth", "dr", "ipw", "tested", "found")  # targets of a comparison, most telling first
RIVALS = ("tested-only", "tested-only:linear", "tested-only:boost", "ipw", "y-obs", "dcem")


@dataclass(frozen=True)
class Choice:
    """A method, and why, as a clause."""

    method: str
    reason: str


def choose(
    best: str | None = None,
    level_with: Collection[str] = (),
    compared: Collection[str] = (),
    *,
    record: bool = True,
) -> Choice:
    """The method to take.

    Parameters
    ----------
    best
        The method that ranked highest in a comparison of this table; None without one.
    level_with
        Those that it is not clearly ahead of.
    compared
        All that were compared.
    record
        Whether it is known who was tested.
    """
    default = DEFAULT if record else WITHOUT_RECORD
    if best is None:
        where = "" if record else " where nobody recorded who was tested"
        why = f"it is the default{where}, and no comparison of this table says otherwise"
        return Choice(default, why)
    if best == default:
        clearly = " clearly" if len(compared) > 1 and not level_with else ""
        care = ", though others may be as good" if level_with else ""
        return Choice(default, f"it{clearly} ranks best in the comparison of this table{care}")
    if default in level_with:
        why = f"in the comparison of this table no method is clearly better, though {best} is ahead"
        return Choice(default, why)
    if default not in compared:
        why = f"it is the default; the comparison of this table, led by {best}, did not look at it"
        return Choice(default, why)
    return Choice(best, "it is clearly better than the default in the comparison of this table")


def choose_from(comparison: Any, sha256: str, *, record: bool = True) -> Choice | None:
    """The same from a saved comparison (`comparison.json`); None if it is of another table."""
    try:
        if comparison["data"]["SHA-256"] != sha256:
            return None
        compared = [method["name"] for method in comparison["methods"]]
        standings = comparison["standings"]
        target = next(target for target in PREFERRED if target in standings)
        best, level_with = str(standings[target]["best"]), list(standings[target]["level_with"])
        if (target == "found") != (not record):  # it was compared as another kind of table
            return None
        return choose(best, level_with, compared, record=record)
    except (KeyError, TypeError, StopIteration):
        return None
