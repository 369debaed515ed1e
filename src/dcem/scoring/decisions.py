"""Whom to act on: scores become decisions by a threshold, or by how many one can act on.

A threshold is applied row by row. A capacity is known only when everybody has a score, so scored
rows wait in a file of their own and are written when the last has come; memory holds four bytes
for each. A capacity is never exceeded: of rows that tie at the end, the first in the table are
taken, and the number of ties is told.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dcem.table.disclosure import Shown, Sum, hide_small
from dcem.table.messages import InputError

FLAGGED = "flagged"
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
    """

    threshold: float
    rows: int
    flagged: int
    by_group: dict[str, tuple[int, int]]
    tied: int = 0

    def to_plain(self) -> dict[str, Any]:
        """All of it as JSON knows it, small counts hidden."""
        return {
            "threshold": None if math.isinf(self.threshold) else float(f"{self.threshold:.6g}"),
            "rows": self.rows,
            "flagged": self.flagged,
            "tied": self.tied,
            "by_group": self.shown(),
        }

    def shown(self) -> dict[str, dict[str, Shown | float | None]]:
        """Rows, flagged rows and their share by group; counts under ten are hidden."""
        counts = {"rows": self.rows, "flagged": self.flagged, "others": self.rows - self.flagged}
        sums: list[Sum] = [("rows", ("flagged", "others"))]
        for place, (rows, flagged) in enumerate(self.by_group.values()):
            mine = {"rows": rows, "flagged": flagged, "others": rows - flagged}
            counts |= {f"{place}:{name}": value for name, value in mine.items()}
            sums.append((f"{place}:rows", (f"{place}:flagged", f"{place}:others")))
        for name in ("rows", "flagged", "others"):
            sums.append((name, tuple(f"{place}:{name}" for place in range(len(self.by_group)))))
        seen = hide_small(counts, sums if self.by_group else sums[:1])
        found: dict[str, dict[str, Shown | float | None]] = {}
        for place, group in enumerate(self.by_group):
            whole, part = seen[f"{place}:rows"], seen[f"{place}:flagged"]
            known = isinstance(whole, int) and isinstance(part, int)
            share = int(part) / int(whole) if known else None
            found[group] = {"rows": whole, "flagged": part, "share": share}
        return found


class Decider:
    """Adds the column `flagged` to scored batches on their way to `write`."""

    def __init__(self, rule: Rule, score: str, write: Callable[[pa.RecordBatch], None]) -> None:
        self.rule, self.score, self.write = rule, score, write
        self.scores: list[np.ndarray] = []
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
        if self.rule.threshold is not None:
            self.write(_with_flag(batch, self.scores[-1] >= np.float32(self.rule.threshold)))
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
                    self.write(_with_flag(batch, flagged[start : start + batch.num_rows]))
                    start += batch.num_rows
        self.kept.close()
        tied = int(((scores == np.float32(cut)) & ~flagged).sum()) if self.rule.capacity else 0
        return Decisions(cut, len(scores), int(flagged.sum()), self._count(flagged), tied)

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


def _with_flag(batch: pa.RecordBatch, flagged: np.ndarray) -> pa.RecordBatch:
    columns = [*batch.columns, pa.array(flagged)]
    return pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, FLAGGED])
