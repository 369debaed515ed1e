"""What monitoring found: plain objects with numbers in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pandas as pd

from dcem.estimation.findings import Finding
from dcem.estimation.periods import LateResults
from dcem.estimation.results import EVERYBODY
from dcem.hooks import ShowsItself
from dcem.metrics.estimate import Estimate


@dataclass(frozen=True)
class ColumnChange:
    """How the people of a new table differ in one column."""

    column: str
    # population stability index: 0 none, .1 some, .25 much; in tens of people if a bin is small
    index: float
    # of no change, corrected for the number of columns (Holm); NaN if a bin is small
    p_value: float
    bin: str  # the bin whose share changed most
    then: float  # its share of people; NaN if it would show a count under ten
    now: float  # likewise
    clear: bool  # beyond chance, and large enough to matter
    said: tuple[str, str] = ("", "")  # in place of a share that is NaN, then and now


@dataclass(frozen=True)
class Change:
    """A number then and now, of everybody or of one group."""

    about: str  # "tested", "prevalence", "auc", "calibration" or "slope"
    of: str
    then: Estimate
    now: Estimate
    difference: Estimate
    p_value: float  # of no change, corrected for all numbers of its question (Holm)
    clear: bool


@dataclass(frozen=True, repr=False)
class Monitoring(ShowsItself):
    """Everything that changed since a model was fitted, and whether it still holds."""

    _document: ClassVar[str] = "monitor_document"

    answer: str  # "holds", "recalibrate", "refit" or "cannot tell"
    columns: tuple[ColumnChange, ...]  # who arrives; the most changed first
    changes: tuple[Change, ...]  # the other three questions
    positive: Mapping[str, tuple[Estimate, Estimate]]  # positive of tested, then and now
    target: str  # whom the last question is about, in words
    assumption: str
    late: LateResults | None
    rows: int
    people: int
    rows_judged: int  # without those whose results may not be in yet
    fitted_rows: int
    findings: tuple[Finding, ...]
    configuration: Mapping[str, str]
    data: Mapping[str, str] = field(default_factory=dict)
    # mean predicted risk minus share of positives now, of each attribute, where they are crossed
    by_attribute: Mapping[str, Estimate] = field(default_factory=dict)
    # why how good it is now, for everybody, cannot be compared with how good it was
    not_comparable: str = ""

    def about(self, question: str) -> tuple[Change, ...]:
        """The changes of one number."""
        return tuple(one for one in self.changes if one.about == question)

    @property
    def ranks_by_chance(self) -> bool:
        """Whether it is not shown to rank everybody better than a coin would.

        Of part of the people nothing is said: among those who are alike, any model ranks worse.
        """
        now = next(one.now for one in self.about("auc") if one.of == EVERYBODY)
        return now.estimable and now.low <= 0.5 and not self.not_comparable

    def to_frame(self) -> pd.DataFrame:
        """One row for each number: about, of, then, now, difference, its interval, p-value."""
        rows: list[tuple[Any, ...]] = [
            ("column", one.column, one.then, one.now, one.index, None, None, one.p_value, one.clear)
            for one in self.columns
        ]
        rows += [
            (
                one.about,
                one.of,
                one.then.value,
                one.now.value,
                one.difference.value,
                one.difference.low,
                one.difference.high,
                one.p_value,
                one.clear,
            )
            for one in self.changes
        ]
        heads = ["about", "of", "then", "now", "difference", "low", "high", "p_value", "clear"]
        return pd.DataFrame(rows, columns=heads)
