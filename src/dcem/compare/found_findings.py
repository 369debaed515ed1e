"""What to make of a comparison by found positives, no stronger than the intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from dcem.estimation.findings import Finding, in_order
from dcem.text import listed

if TYPE_CHECKING:
    from dcem.compare.found import FoundComparison

WITHIN = (
    "positives of a group are found at one rate whatever their features: then whoever ranks the "
    "found better within groups ranks the positives better"
)


def conclude_found(comparison: FoundComparison) -> FoundComparison:
    """The comparison with its findings."""
    return replace(comparison, findings=in_order(_findings(comparison)))


def _findings(comparison: FoundComparison) -> Iterator[Finding]:
    stated = comparison.stated_rates
    if stated:
        yield Finding(
            "test-errs",
            "note",
            "found",
            headline=f"Numbers are those of the outcome, if positives are found at the stated "
            f"rates: {stated}.",
            text="Within a group, whether a positive is found must have nothing to do with the "
            "features.",
            remedy="State where the rates come from wherever these numbers are used.",
        )
    else:
        yield Finding(
            "no-record",
            "note",
            "found",
            headline="Nobody recorded who was tested: methods can be ordered, not measured.",
            text="Calibration, rates at a threshold and differences between groups in error rates "
            "need to know how common the outcome is.",
            remedy="State what share of positives is found (`test_sensitivity`) to have them.",
        )
    for standing, where, key in (
        (next(iter(comparison.standings.values()), None), "within groups", "best"),
        (comparison.across, "across groups", "best-across"),
    ):
        if standing is None:
            continue
        behind = [name for name in standing.ahead_of if name not in standing.level_with]
        best = f"`{standing.best}`"
        text = f"Right if {WITHIN}."
        if key == "best-across" and not stated:
            text += " Across groups, features must bear on the outcome alike in all of them, too."
        if not behind and standing.ahead_of:
            headline = f"No method clearly ranks better than the others {where}; {best} is ahead."
        elif standing.level_with:
            level = listed([f"`{name}`" for name in standing.level_with], most=9)
            headline = f"{best} ranks best {where}; not clearly behind: {level}."
        else:
            headline = f"{best} clearly ranks best {where}."
        yield Finding(
            key,
            "fine" if not standing.level_with else "note",
            "methods",
            values={"best": standing.best, "level_with": standing.level_with},
            headline=headline,
            text=text,
        )
