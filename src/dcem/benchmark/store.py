"""The store of a benchmark: what workers do to it, so that several can share it and any may die.

A cell is *pending*, *running* (claimed by a worker), *done* or *failed*. A worker claims the cells
of a fleet in one transaction and keeps its lease alive while it works; each finished cell is
committed at once, and only by the worker that still holds it. A worker that dies loses its lease:
at once where its process can be seen to be gone, else after `LEASE` seconds; its cells are pending
again. So no cell is lost, and none is committed twice.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dcem.benchmark.cells import Cell, FleetOfCells, Planned
from dcem.benchmark.database import damaged, gone, open_database, refuse_damage, transaction
from dcem.benchmark.machine import birth, machine

LEASE = 60.0  # seconds that a silent worker keeps its cells
_BEAT = 15.0
_RELEASE = (
    "UPDATE cells SET status = 'pending', owner = NULL WHERE status = 'running' AND owner = ?"
)


class Store:
    """The cells of one or more benchmarks and what became of them."""

    def __init__(self, path: Path):
        self.path = Path(path)
        self._db = open_database(self.path, create=True)
        self.owner: str | None = None
        self._check()

    def close(self) -> None:
        """Close, and fold the write-ahead log into the file, so that it can be copied alone."""
        with suppress(sqlite3.OperationalError):  # another process is using it, and will do it
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self) -> None:
        """Refuse a damaged file; results whose checksum does not hold have to be computed again."""
        try:
            refuse_damage(self.path, self._db)
        except BaseException:
            self._db.close()
            raise
        with transaction(self._db) as db:
            db.executemany(
                "UPDATE cells SET status = 'pending', owner = NULL, fleet = NULL WHERE id = ?",
                ((cell,) for cell in damaged(db)),
            )

    # -- what is to be done -----------------------------------------------------------------

    def add(self, benchmark: str, about: str, metrics: Sequence[str], plan: list[Planned]) -> None:
        """Make this the plan of the benchmark for the labels that it names.

        Cells that the store knows are kept as they are. Cells that a label stood for before (under
        other parameters) stay in the store, but no longer belong to the benchmark.
        """
        with transaction(self._db) as db:
            db.execute(
                "INSERT INTO benchmarks VALUES (?, ?, ?) ON CONFLICT (name) "
                "DO UPDATE SET about = excluded.about, metrics = excluded.metrics",
                (benchmark, about, json.dumps(list(metrics))),
            )
            db.executemany(
                "DELETE FROM plan WHERE benchmark = ? AND label = ?",
                ((benchmark, label) for label in {one.label for one in plan}),
            )
            db.executemany(
                "INSERT INTO cells (id, kind, config) VALUES (?, ?, ?) ON CONFLICT (id) "
                "DO UPDATE SET config = excluded.config WHERE status != 'done'",
                ((one.cell.id, one.cell.kind, one.cell.as_json()) for one in plan),
            )
            db.executemany(
                "INSERT OR IGNORE INTO plan VALUES (?, ?, ?, ?)",
                ((benchmark, one.label, one.cell.id, place) for place, one in enumerate(plan)),
            )

    def retry_failed(self) -> int:
        """Give failed cells that are wanted another chance; how many there were."""
        changed = self._db.execute(
            "UPDATE cells SET status = 'pending', error = NULL, fleet = NULL "
            "WHERE status = 'failed' AND id IN (SELECT id FROM wanted)"
        )
        return changed.rowcount

    def want(self, cells: Iterable[str]) -> None:
        """Name the cells of this run, in the order in which they should be done."""
        db = self._db
        db.execute("CREATE TEMP TABLE IF NOT EXISTS wanted (id TEXT PRIMARY KEY, place INTEGER)")
        with transaction(db):
            db.execute("DELETE FROM wanted")
            db.executemany(
                "INSERT OR IGNORE INTO wanted VALUES (?, ?)",
                ((cell, place) for place, cell in enumerate(cells)),
            )

    def pending(self) -> dict[str, int]:
        """How many wanted cells of each kind wait, kinds in the order of the run."""
        with transaction(self._db) as db:
            self._bury_the_dead(db)
        rows = self._db.execute(
            "SELECT kind, count(*) FROM wanted JOIN cells USING (id) WHERE status = 'pending' "
            "GROUP BY kind ORDER BY min(place)"
        )
        return dict(rows.fetchall())

    def wanted_counts(self) -> dict[str, int]:
        """How many wanted cells are pending, running, done and failed."""
        rows = self._db.execute(
            "SELECT status, count(*) FROM wanted JOIN cells USING (id) GROUP BY status"
        )
        return dict(rows.fetchall())

    def example(self, kind: str) -> Cell:
        """Some cell of a kind."""
        row = self._db.execute(
            "SELECT config FROM cells WHERE kind = ? LIMIT 1", (kind,)
        ).fetchone()
        return Cell.from_json(row[0])

    # -- who does it ------------------------------------------------------------------------

    @contextmanager
    def worker(self, device: str, versions: dict[str, str]) -> Iterator[str]:
        """Be a worker: claims made inside are ours until the end, or until we fall silent."""
        self.owner = uuid.uuid4().hex
        values = (self.owner, machine(), os.getpid(), birth(os.getpid()), time.time() + LEASE)
        self._db.execute(
            "INSERT INTO workers (id, machine, pid, birth, lease, started, device, versions) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*values, time.time(), device, json.dumps(versions)),
        )
        ended = threading.Event()
        beat = threading.Thread(
            target=_keep_alive, args=(self.path, self.owner, ended), daemon=True
        )
        beat.start()
        try:
            yield self.owner
        finally:
            ended.set()
            beat.join()
            self.release()
            self._db.execute("UPDATE workers SET lease = 0 WHERE id = ?", (self.owner,))

    def claim(self, kind: str, at_most: int) -> FleetOfCells | None:
        """Claim pending cells of a kind; None where others were quicker."""
        with transaction(self._db) as db:
            rows = db.execute(
                "SELECT id, config FROM wanted JOIN cells USING (id) "
                "WHERE status = 'pending' AND kind = ? ORDER BY place LIMIT ?",
                (kind, at_most),
            ).fetchall()
            if not rows:
                return None
            fleet = uuid.uuid5(uuid.NAMESPACE_OID, " ".join(sorted(i for i, _ in rows))).hex
            self._take(db, (i for i, _ in rows), fleet)
        return FleetOfCells(fleet, tuple(Cell.from_json(config) for _, config in rows))

    def claim_fleet(self, fleet: str) -> FleetOfCells | None:
        """Claim what is open of a fleet that left a checkpoint; None where nothing is, or others
        are at it. Its finished cells come along, because the checkpoint holds all of them."""
        with transaction(self._db) as db:
            self._bury_the_dead(db)
            rows = db.execute(
                "SELECT id, config, status FROM cells WHERE fleet = ? ORDER BY fleet_place",
                (fleet,),
            ).fetchall()
            wanted = db.execute(
                "SELECT count(*) FROM wanted JOIN cells USING (id) "
                "WHERE fleet = ? AND status = 'pending'",
                (fleet,),
            ).fetchone()[0]
            if not wanted or {status for *_, status in rows} - {"pending", "done"}:
                return None
            self._take(db, (i for i, *_ in rows), fleet)
        done = frozenset(i for i, _, status in rows if status == "done")
        return FleetOfCells(fleet, tuple(Cell.from_json(config) for _, config, _ in rows), done)

    def is_finished(self, fleet: str) -> bool:
        """Whether no cell waits for this fleet, or is being trained in it."""
        row = self._db.execute(
            "SELECT count(*) FROM cells WHERE fleet = ? AND status IN ('pending', 'running')",
            (fleet,),
        ).fetchone()
        return not row[0]

    def _take(self, db: sqlite3.Connection, cells: Iterable[str], fleet: str) -> None:
        """Claim those of a fleet's cells that are pending; each keeps its place in the fleet."""
        db.executemany(
            "UPDATE cells SET status = 'running', owner = ?, fleet = ?, fleet_place = ? "
            "WHERE id = ? AND status = 'pending'",
            ((self.owner, fleet, place, cell) for place, cell in enumerate(cells)),
        )

    def release(self, cells: Iterable[str] | None = None) -> None:
        """Give back what we hold and have not finished: all of it, or these cells."""
        if cells is None:
            self._db.execute(_RELEASE, (self.owner,))
        else:
            self._db.executemany(f"{_RELEASE} AND id = ?", ((self.owner, i) for i in cells))

    def _bury_the_dead(self, db: sqlite3.Connection) -> None:
        """Cells of workers whose lease ran out, or whose process is gone, are pending again."""
        db.executemany(_RELEASE, ((worker,) for worker in gone(db)))

    # -- what came of it --------------------------------------------------------------------

    def finish(self, cell: str, metrics: dict[str, Any], about: dict[str, Any]) -> bool:
        """Commit a result; False where the cell is no longer ours (our lease had run out)."""
        changed = self._db.execute(
            "UPDATE cells SET status = 'done', metrics = ?1, about = ?2, finished = ?3, "
            "checksum = checksum_of(id, config, ?1, ?2, ?3, "
            "(SELECT versions FROM workers WHERE workers.id = owner)) "
            "WHERE id = ?4 AND status = 'running' AND owner = ?5",
            (json.dumps(metrics), json.dumps(about), time.time(), cell, self.owner),
        )
        return changed.rowcount == 1

    def fail(self, cell: str, error: str) -> bool:
        """Commit that a cell failed, and why."""
        changed = self._db.execute(
            "UPDATE cells SET status = 'failed', error = ?, finished = ?, "
            "attempts = attempts + 1 WHERE id = ? AND status = 'running' AND owner = ?",
            (error, time.time(), cell, self.owner),
        )
        return changed.rowcount == 1

    def record_speed(
        self, kind: str, device: str, cells: int, seconds: float, *, whole: bool
    ) -> None:
        """Remember how long a fleet took; `whole=False` where it was stopped before its end."""
        self._db.execute(
            "INSERT INTO speeds VALUES (?, ?, ?, ?, ?)", (kind, device, cells, seconds, whole)
        )

    def speeds(self, kind: str, device: str) -> list[tuple[int, float, bool]]:
        """Fleets of this kind that ran on such a device: (cells, seconds, ran to its end)."""
        rows = self._db.execute(
            "SELECT cells, seconds, whole FROM speeds WHERE kind = ? AND device = ?", (kind, device)
        )
        return [(cells, seconds, bool(whole)) for cells, seconds, whole in rows]


def _keep_alive(path: Path, worker: str, ended: threading.Event) -> None:
    """Renew the lease until the worker ends; a busy store is tried again at the next beat."""
    connection = open_database(path, create=False)
    while not ended.wait(_BEAT):
        try:
            connection.execute(
                "UPDATE workers SET lease = ? WHERE id = ?", (time.time() + LEASE, worker)
            )
        except sqlite3.OperationalError:
            continue
    connection.close()
