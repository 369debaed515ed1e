"""Whom to act on: scores become decisions by a threshold, or by how many one can act on.

A threshold is applied row by row. A capacity is known only when everybody has a score, so scored
rows wait in a file of their own and are written when the last has come; memory holds a few bytes
for each. A capacity is never exceeded: of rows that tie at the end, the first in the table are
taken, and ties are counted. Where risks have limits, a decision holds if both lie on its
side of the threshold (or of the lowest score acted on); otherwise it is "cannot say".
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dcem.estimation.bounds import ACT, LEAVE, OPEN, decide
from dcem.scoring.bounds import HIGH, LOW
from dcem.table.disclosure import WITHHELD, Shown, few_among, hide_groups
from dcem.table.groups import in_order
from dcem.table.messages import InputError

FLAGGED, DECISION = "flagged", "decision"
DECIDED = ACT, LEAVE, OPEN  # by the limits of the risk
MEMORY = 64 << 20  # bytes of rows that wait before a file takes them
Few = Sequence[frozenset[str]] | None


@dataclass(frozen=True)
class Rule:
    """A threshold of the score, or a capacity: a share of the rows up to 1, a number beyond."""

    threshold: float | None = None
    capacity: float | None = None

    def __post_init__(self) -> None:
        if (self.threshold is None) == (self.capacity is None):
            raise InputError("Give either a `threshold` or a `capacity`.")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise InputError(f"`threshold` is {self.threshold:g}; it must be from 0 to 1.")
        if self.capacity is not None and not (0 < self.capacity < math.inf):
            raise InputError(f"`capacity` is {self.capacity:g}; it must be more than 0.")
        if self.capacity is not None and self.capacity > 1 and self.capacity % 1:
            raise InputError(
                f"`capacity` is {self.capacity:g}; it must be a share up to 1, or a whole number "
                "of rows."
            )

    def most(self, rows: int) -> int:
        """How many of `rows` may be flagged."""
        assert self.capacity is not None
        share = self.capacity <= 1
        return min(rows, math.floor(self.capacity * rows + 1e-9) if share else int(self.capacity))


@dataclass(frozen=True)
class Decisions:
    """The result of a rule: who is flagged.

    Attributes
    ----------
    threshold
        The lowest score that is acted on; infinite where nobody is.
    rows, flagged
        Number of rows in the table, and of flagged rows.
    by_group
        Rows and flagged rows of each group; empty if the table does not contain the group.
    tied
        Rows with the lowest flagged score that are *not* flagged, because they exceed the capacity.
    decided, decided_by_group
        Rows with each of `DECIDED`, by the limits of the risk; None and empty without limits.
    withheld
        Groups whose size the card of the model withholds: nothing is counted of them here either.
    few
        The counts behind which fewer than ten people stand, where the table says who they are:
        of each group, and last of all together (`dcem.table.disclosure.few_among`).
    """

    threshold: float
    rows: int
    flagged: int
    by_group: dict[str, tuple[int, int]]
    tied: int = 0
    decided: tuple[int, ...] | None = None
    decided_by_group: dict[str, tuple[int, ...]] = field(default_factory=dict)
    withheld: frozenset[str] = frozenset()
    few: Few = None

    def to_plain(self) -> dict[str, Any]:
        """All of it as JSON knows it, small counts hidden."""
        return {
            "threshold": None if math.isinf(self.threshold) else float(f"{self.threshold:.6g}"),
            "rows": self.rows,
            "flagged": self.shown_flagged(),
            "tied": self.tied,
            **self.totals(),
            "by_group": self.shown(),
        }

    def shown_flagged(self) -> Shown:
        """All flagged rows; withheld where they would give away those of a group."""
        if self.decided is not None or not self.by_group:  # no group's are shown
            return self.flagged
        return _hidden_counts(self._rows_and_flagged(), self.few)[-1]["tested"]

    def totals(self) -> dict[str, Shown | float | None]:
        """With limits of the risk, rows with each decision and their shares; else nothing."""
        if self.decided is None:
            return {}
        counts, few = [*self.decided_by_group.values()], self.few
        *_, together = _by_decision(counts, few) if counts else _by_decision([self.decided], None)
        return {name: count for name, count in together.items() if name != "rows"}

    def shown(self) -> dict[str, dict[str, Shown | float | None]]:
        """Rows and flagged rows by group, or rows with each decision; counts under ten are hidden.

        Each with its share of the group's rows.
        """
        if self.decided is not None:
            parts = _by_decision([*self.decided_by_group.values()], self.few)
            found = dict(zip(self.decided_by_group, parts, strict=False))
        else:
            found = {
                group: {
                    "rows": seen["rows"],
                    "flagged": seen["tested"],
                    "share": _share(seen["tested"], seen["rows"]),
                }
                for group, seen in zip(
                    self.by_group, _hidden_counts(self._rows_and_flagged(), self.few), strict=False
                )
            }
        for group in self.withheld & found.keys():
            found[group] = {
                key: None if key.startswith("share") else WITHHELD for key in found[group]
            }
        return found

    def _rows_and_flagged(self) -> list[dict[str, int]]:
        return [{"rows": rows, "tested": part} for rows, part in self.by_group.values()]


def _by_decision(
    counts: Sequence[tuple[int, ...]], few: Few
) -> list[dict[str, Shown | float | None]]:
    """Rows with each of `DECIDED`, and shares, of each group and last of all together."""
    # hidden as in other tables: of the rows some are decided, of these some are acted on
    counted = []
    for seen in _hidden_counts(
        [{"rows": sum(one), "tested": one[0] + one[1], "positive": one[0]} for one in counts], few
    ):
        rows, decided, act = seen["rows"], seen["tested"], seen["positive"]
        parts = (act, _rest(decided, act), _rest(rows, decided))
        found: dict[str, Shown | float | None] = {"rows": rows}
        for name, part in zip(DECIDED, parts, strict=True):
            key = name.replace(" ", "_")
            found |= {key: part, f"share_{key}": _share(part, rows)}
        counted.append(found)
    return counted


def _hidden_counts(counts: list[dict[str, int]], few: Few) -> list[dict[str, Shown]]:
    """Counts of groups, the small ones hidden as in other tables; last all together."""
    return hide_groups(counts, few) if counts else []


def _rest(whole: Shown, part: Shown) -> Shown:
    return whole - part if isinstance(whole, int) and isinstance(part, int) else WITHHELD


def _share(part: Shown, rows: Shown) -> float | None:
    return part / rows if isinstance(part, int) and isinstance(rows, int) else None


class Decider:
    """Adds `flagged`, and `decision` where risks have limits, before batches are written."""

    def __init__(
        self,
        rule: Rule,
        score: str,
        write: Callable[[pa.RecordBatch], None],
        withheld: frozenset[str] = frozenset(),
    ) -> None:
        self.rule, self.score, self.write, self.withheld = rule, score, write, withheld
        self.scores: list[np.ndarray] = []
        self.limits: list[np.ndarray] = []  # [2, rows] each, where risks have limits
        self.groups: list[tuple[np.ndarray, tuple[str, ...]] | None] = []
        self.people: list[np.ndarray] = []  # who is behind each row, where the table says so
        self.kept = tempfile.SpooledTemporaryFile(MEMORY)  # noqa: SIM115 (it outlives the call)
        self.spool: Any = None

    def __call__(
        self,
        batch: pa.RecordBatch,
        groups: tuple[np.ndarray, tuple[str, ...]] | None,
        person: np.ndarray | None = None,
    ) -> None:
        """Take the next batch, the group codes and names of its rows, and who is behind each."""
        column = batch.column(self.score).to_numpy(zero_copy_only=False)
        self.scores.append(column.astype(np.float32))  # NaN where there is no score: never flagged
        self.groups.append(groups)
        if person is not None:  # a number each: equal ones are taken for one person
            self.people.append(pd.util.hash_array(person).astype(np.uint32))
        if LOW in batch.schema.names:
            self.limits.append(np.stack([batch.column(name) for name in (LOW, HIGH)]))
        if self.rule.threshold is not None:
            flagged = self.scores[-1] >= np.float32(self.rule.threshold)
            self.write(_with_flag(batch, flagged, self.rule.threshold))
            return
        if self.spool is None:
            self.spool = pa.ipc.new_stream(self.kept, batch.schema)
        self.spool.write_batch(batch)

    def finish(self) -> Decisions:
        """Decide what waited for the last row, and count."""
        scores = np.concatenate(self.scores) if self.scores else np.empty(0, np.float32)
        if self.rule.threshold is not None:
            flagged, cut = scores >= np.float32(self.rule.threshold), self.rule.threshold
        else:
            flagged, cut = _highest(scores, self.rule.most(len(scores)))
            if self.spool is not None:
                self.spool.close()
                self.kept.seek(0)
                start = 0
                for batch in pa.ipc.open_stream(self.kept):
                    here = slice(start, start + batch.num_rows)
                    self.write(_with_flag(batch, flagged[here], cut))
                    start += batch.num_rows
        self.kept.close()
        tied = int(((scores == np.float32(cut)) & ~flagged).sum()) if self.rule.capacity else 0
        code, names = self._group_of_rows()

        def count(rows: np.ndarray) -> list[int]:
            return np.bincount(code[rows], minlength=len(names)).tolist() if names else []

        def few(cells: Mapping[str, np.ndarray]) -> Few:
            if not (self.people and names):
                return None
            every = {"rows": np.ones(len(scores), bool), **cells}
            return few_among(every, code, len(names), np.concatenate(self.people))

        sizes = count(np.ones(len(scores), bool))
        found = Decisions(
            *(cut, len(scores), int(flagged.sum())),
            by_group=dict(zip(names, zip(sizes, count(flagged), strict=True), strict=True)),
            tied=tied,
            withheld=self.withheld,
            few=few({"tested": flagged, "untested": ~flagged}),
        )
        if not self.limits:
            return found
        low, high = np.concatenate(self.limits, axis=1)
        decided = np.array([OPEN, ACT, LEAVE])[decide(low, high, cut)]
        act, leave, open_ = by = [decided == name for name in DECIDED]
        counts = zip(*map(count, by), strict=True)
        cells = {"tested": act | leave, "untested": open_, "positive": act, "negative": leave}
        return replace(
            found,
            decided=tuple(int(rows.sum()) for rows in by),
            decided_by_group=dict(zip(names, counts, strict=True)),
            few=few(cells),
        )

    def _group_of_rows(self) -> tuple[np.ndarray, list[str]]:
        """The group of each row, as a code [n], and the names; no names where nobody says it."""
        known = [groups for groups in self.groups if groups is not None]
        names = in_order({of[code] for codes, of in known for code in np.unique(codes)})
        place = {name: number for number, name in enumerate(names)}
        parts = [np.array([place.get(name, -1) for name in of])[codes] for codes, of in known]
        return np.concatenate([np.empty(0, np.int64), *parts]), names


def _highest(scores: np.ndarray, most: int) -> tuple[np.ndarray, float]:
    """The `most` rows of highest score [n], the first of equals, and the lowest score of them."""
    flagged = np.zeros(len(scores), bool)
    order = np.argsort(-scores, kind="stable")[:most]  # NaN comes last
    order = order[~np.isnan(scores[order])]
    flagged[order] = True
    return flagged, float(scores[order].min()) if len(order) else math.inf


def _with_flag(batch: pa.RecordBatch, flagged: np.ndarray, cut: float) -> pa.RecordBatch:
    columns, names = [*batch.columns, pa.array(flagged)], [*batch.schema.names, FLAGGED]
    if LOW in names:
        low, high = (np.asarray(batch.column(name)) for name in (LOW, HIGH))
        columns.append(pa.array(np.array([OPEN, ACT, LEAVE])[decide(low, high, cut)]))
        names.append(DECISION)
    return pa.RecordBatch.from_arrays(columns, names=names)
