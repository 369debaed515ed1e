"""Which method to take: one rule, for the audit, the comparison and the fit alike.

The default is `ensemble`: on tables with a known truth it is the best method, or close to it,
nearly everywhere (docs/default.md). A comparison of the very table overrules that, if it shows
another method to be clearly better for everybody. Nothing else does: which ranks highest by a hair
is luck, and which ranks the tested best says little where nothing is known of the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from dcem.methods.registry import METHODS, entry_of, works_here

DEFAULT = "ensemble"
WITHOUT_RECORD = "purple"  # the default where nobody recorded who was tested
PREFERRED = ("truth", "dr", "ipw", "tested", "found")  # targets of a comparison, most telling first
# Fitted to the tested alone: gains are counted from the better of them.
SIMPLE_RIVALS = {
    "tested-only:boost": "boosted trees",
    "tested-only:linear": "logistic regression",
}
NETWORK_OF_TESTED = "tested-only"
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
    everybody: bool = True,
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
    everybody
        Whether methods were ranked for everybody, rather than among the tested alone.
    """
    default = DEFAULT if record else WITHOUT_RECORD
    if best is None:
        where = "" if record else " where nobody recorded who was tested"
        why = f"it is the default{where}, and no comparison of this table says otherwise"
        return Choice(default, why)
    if best == default:
        clearly = " clearly" if len(compared) > 1 and not level_with else ""
        care = ", though others may be as good" if level_with else ""
        among = "" if everybody else " among the tested alone"  # of the others it says nothing
        why = f"it{clearly} ranks best{among} in the comparison of this table{care}"
        return Choice(default, why)
    if not everybody:
        why = "it is the default; the comparison of this table ranks methods among the tested alone"
        return Choice(default, why)
    if default in level_with:
        why = f"no method is clearly better in the comparison of this table, though {best} is ahead"
        return Choice(default, why)
    if default not in compared:
        why = (
            f"it is the default; the comparison of this table, in which {best} ranks best, did not "
            "include it"
        )
        return Choice(default, why)
    if obstacle := _obstacle(best):
        ahead = f"{best}, clearly better in the comparison of this table, {obstacle}"
        return Choice(default, f"it is the default; {ahead}")
    return Choice(best, "it is clearly better than the default in the comparison of this table")


def _obstacle(name: str) -> str:
    """Why a method cannot be taken, as a clause that begins with a verb; nothing if it can."""
    if entry_of(name).kind == "grouped":
        return "needs a person's group to score them"
    return "" if works_here(name) else "needs torch, which is not installed"


def choose_from(
    comparison: Any, sha256: str, roles: Mapping[str, str], *, record: bool = True
) -> Choice | None:
    """The same from a saved comparison (`comparison.json`); None if it is of another table.

    A table with other `roles` (in words) is another: its outcome may be, or who counts as tested.
    """
    try:
        of_file = ("file", "SHA-256", "rows", "columns")
        compared_as = {
            name: text for name, text in comparison["data"].items() if name not in of_file
        }
        if comparison["data"]["SHA-256"] != sha256 or compared_as != roles:
            return None
        compared = [method["name"] for method in comparison["methods"]]
        standings = comparison["standings"]
        target = next(target for target in PREFERRED if target in standings)
        best, level_with = str(standings[target]["best"]), list(standings[target]["level_with"])
        if best not in METHODS or (target == "found") != (not record):
            return None  # of another version, or compared as another kind of table
        # with found positives and stated rates, those are the tested who are everybody
        everybody = target != "tested" or "positives only" in roles
        return choose(best, level_with, compared, record=record, everybody=everybody)
    except (AttributeError, KeyError, TypeError, StopIteration):
        return None
