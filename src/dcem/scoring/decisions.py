"""Whom to act on: scores become decisions by a threshold, or by how many one can act on.

A threshold is applied row by row. A capacity is known only when everybody has a score, so scored
rows wait in a file of their own and are written when the last has come; memory holds four bytes
for each. A capacity is never exceeded: of rows that tie at the end, the first in the table are
taken, and the number of ties is told. Where risks have limits, a decision holds if both lie on its
side of the threshold (or of the lowest score acted on); otherwise it is "cannot say".
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from dcem.estimation.bounds import ACT, LEAVE, OPEN, decide
from dcem.scoring.bounds import HIGH, LOW
from dcem.table.disclosure import Shown, hide_groups
from dcem.table.messages import InputError

FLAGGED, DECISION = "flagged", "decision"
MEMORY = 64 << 20  # bytes of rows that wait before a file takes them


@dataclass(frozen=True)
class Rule:
    """A threshold of the score, or a capacity: a share of the rows up to 1, a number beyond."""

    threshold: float | None = None
    capacity: float | None = None

    def __post_init__(self) -> None:
        if (self.threshold is None) == (self.capacity is None):
            raise InputError("Give either a `threshold` or a `capacity`.")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise InputError(f"A `threshold` of {self.threshold:g}: give one from 0 to 1.")
        if self.capacity is not None and not (0 < self.capacity < math.inf):
            raise InputError(f"A `capacity` of {self.capacity:g}: give more than 0.")
        if self.capacity is not None and self.capacity > 1 and self.capacity % 1:
            raise InputError(
                f"A `capacity` of {self.capacity:g} is neither a share, up to 1, nor a number of "
                "rows, which is whole."
            )

    def most(self, rows: int) -> int:
        """How many of `rows` may be flagged."""
        assert self.capacity is not None
        share = self.capacity <= 1
        return min(rows, math.floor(self.capacity * rows + 1e-9) if share else int(self.capacity))


@dataclass(frozen=True)
class Decisions:
    """What a rule came to.

    Attributes
    ----------
    threshold
        The lowest score that is acted on; infinite where nobody is.
    rows, flagged
        Of the table, and of those one acts on.
    by_group
        Rows and flagged rows of each group; empty where the table does not say the group.
    tied
        Rows with the lowest score acted on that are *not* flagged, since there was no more room.
    undecided, undecided_by_group
        Rows whose limits of the risk lie on both sides of the threshold; None without limits.
    certain
        Rows whose limits both reach the threshold, so that one acts; None without limits. All
        rows but these and the undecided are not acted on.
    """

    threshold: float
    rows: int
    flagged: int
    by_group: dict[str, tuple[int, int]]
    tied: int = 0
    undecided: int | None = None
    undecided_by_group: dict[str, tuple[int, int]] = field(default_factory=dict)
    certain: int | None = None

    def to_plain(self) -> dict[str, Any]:
        """All of it as JSON knows it, small counts hidden."""
        return {
            "threshold": None if math.isinf(self.threshold) else float(f"{self.threshold:.6g}"),
            "rows": self.rows,
            "flagged": self.flagged,
            "tied": self.tied,
            "by_group": self.shown(),
        } | ({} if self.undecided is None else {"cannot_say": self.undecided})

    def shown(self) -> dict[str, dict[str, Shown | float | None]]:
        """Rows, flagged rows and their share by group; counts under ten are hidden.

        With limits of the risk also those of whom nothing can be said, and their share.
        """
        found: dict[str, dict[str, Shown | float | None]] = {}
        for group, (rows, flagged, share) in _split(self.by_group).items():
            found[group] = {"rows": rows, "flagged": flagged, "share": share}
        if self.undecided is not None:
            for group, (_, part, share) in _split(self.undecided_by_group).items():
                known = share is not None and isinstance(found[group]["rows"], int)
                found[group] |= {"cannot_say": part, "share_cannot_say": share if known else None}
        return found


def _split(by_group: dict[str, tuple[int, int]]) -> dict[str, tuple[Shown, Shown, float | None]]:
    """Rows, those of a part and their share, by group; all together are told elsewhere.

    The part is hidden as the tested are in other tables.
    """
    counts = [{"rows": rows, "tested": part} for rows, part in by_group.values()]
    found: dict[str, tuple[Shown, Shown, float | None]] = {}
    for group, seen in zip(by_group, hide_groups(counts) if counts else (), strict=False):
        rows, part = seen["rows"], seen["tested"]
        known = isinstance(rows, int) and isinstance(part, int)
        found[group] = (rows, part, int(part) / int(rows) if known else None)
    return found


class Decider:
    """Adds `flagged`, and `decision` where risks have limits, before batches are written."""

    def __init__(self, rule: Rule, score: str, write: Callable[[pa.RecordBatch], None]) -> None:
        self.rule, self.score, self.write = rule, score, write
        self.scores: list[np.ndarray] = []
        self.limits: list[np.ndarray] = []  # [2, rows] each, where risks have limits
        self.groups: list[tuple[np.ndarray, tuple[str, ...]] | None] = []
        self.kept = tempfile.SpooledTemporaryFile(MEMORY)  # noqa: SIM115 (it outlives the call)
        self.spool: Any = None

    def __call__(
        self, batch: pa.RecordBatch, groups: tuple[np.ndarray, tuple[str, ...]] | None
    ) -> None:
        """Take the next batch, and the group codes and names of its rows."""
        column = batch.column(self.score).to_numpy(zero_copy_only=False)
        self.scores.append(column.astype(np.float32))  # NaN where there is no score: never flagged
        self.groups.append(groups)
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
        found = Decisions(cut, len(scores), int(flagged.sum()), self._count(flagged), tied)
        if not self.limits:
            return found
        low, high = np.concatenate(self.limits, axis=1)
        decided = decide(low, high, cut)
        return replace(
            found,
            undecided=int((decided == 0).sum()),
            undecided_by_group=self._count(decided == 0),
            certain=int((decided == 1).sum()),
        )

    def _count(self, flagged: np.ndarray) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        start = 0
        for groups, scores in zip(self.groups, self.scores, strict=True):
            mine = flagged[start : start + len(scores)]
            start += len(scores)
            if groups is None:
                return {}
            codes, names = groups
            rows = np.bincount(codes, minlength=len(names)).tolist()
            acted = np.bincount(codes[mine], minlength=len(names)).tolist()
            for name, n, k in zip(names, rows, acted, strict=True):
                if n:
                    before = found.get(name, (0, 0))
                    found[name] = (before[0] + n, before[1] + k)
        return dict(sorted(found.items()))


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
