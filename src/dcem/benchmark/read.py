"""Read a store: where a run stands, and its results as a table. Nothing here trains or claims."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcem.benchmark import database
from dcem.files import whole_file
from dcem.table.messages import InputError, notice

if TYPE_CHECKING:
    import pandas as pd

# Columns that every exported table has, in this order: these, the metrics, those below; then other
# parameters of its tasks.
WHAT = (
    *("benchmark", "label", "task", "q_y", "k", "q_t", "phase", "beta", "stream", "seed"),
    *("method", "variant", "schedule", "params", "fit_seed"),
)
HOW = ("seconds", "memory_mb", "fleet_size", "device", "versions", "finished", "cell")
WITHIN = ("phase", "beta", "stream", "seed", "fit_seed")  # over which a setting is averaged


def setting_columns(frame: pd.DataFrame) -> list[str]:
    """Columns that tell two settings apart: parameters that any kind of task has, files aside."""
    from dcem.tasks.registry import KINDS

    known = dict.fromkeys(
        p for kind in KINDS.values() for p in kind.parameters if p not in (*kind.files, *WITHIN)
    )
    return [name for name in ("task", *known) if name in frame and frame[name].notna().any()]


@dataclass(frozen=True)
class MethodStatus:
    """How far one method of a benchmark is."""

    benchmark: str
    label: str
    done: int
    running: int
    pending: int
    failed: int
    error: str  # the last line of one failure, or ""


def status(path: Path) -> list[MethodStatus]:
    """How far every method of every benchmark in the store is, as planned.

    Cells of workers that are gone, and damaged results, count as pending: a run computes them.
    """
    with database.reading(path) as (file, db):
        database.refuse_damage(file, db)
        counts = db.execute(
            "WITH gone AS (SELECT value FROM json_each(?1)), "
            "damaged AS (SELECT value FROM json_each(?2)) "
            "SELECT benchmark, label, "
            "sum(status = 'done' AND id NOT IN damaged), "
            "sum(status = 'running' AND owner NOT IN gone), "
            "sum(status = 'pending' OR (status = 'running' AND owner IN gone) OR id IN damaged), "
            "sum(status = 'failed'), sum(id IN damaged), max(error) "
            "FROM plan JOIN cells ON plan.cell = cells.id "
            "GROUP BY benchmark, label ORDER BY benchmark, min(position)",
            (json.dumps(database.gone(db)), json.dumps(database.damaged(db))),
        ).fetchall()
    found = []
    for name, label, done, running, pending, failed, wrong, error in counts:
        last = (error or "").strip().rpartition("\n")[2]
        if wrong and not failed:
            last = f"{wrong} results are damaged: the next run computes them again"
        found.append(MethodStatus(name, label, done, running, pending, failed, last))
    return found


def is_exported_table(path: Path) -> bool:
    """Whether this is an exported table rather than a store: it knows no plan, only results."""
    return Path(path).name.endswith((".csv", ".csv.gz", ".parquet"))


def missing(path: Path, benchmark: str | None = None) -> list[str]:
    """What a store's plan holds without a result, in words; a table does not know."""
    lines = []
    for row in [] if is_exported_table(path) else status(path):
        waiting = row.pending + row.running
        if (waiting or row.failed) and benchmark in (None, row.benchmark):
            parts = [f"{n} {what}" for n, what in ((waiting, "to do"), (row.failed, "failed")) if n]
            lines.append(f"{row.benchmark}, {row.label}: {', '.join(parts)}")
    return lines


def purposes(path: Path) -> dict[str, str]:
    """What each benchmark of a store is for, in its own words; a table does not know."""
    if is_exported_table(path):
        return {}
    with database.reading(path) as (_, db):
        return dict(db.execute("SELECT name, coalesce(about, '') FROM benchmarks").fetchall())


def results(path: Path, benchmark: str | None = None, *, unfinished: bool = False) -> pd.DataFrame:
    """Every finished cell as a row: what it was, its metrics, and how it was computed.

    `path` is a store, its folder, or a table that `export` wrote (CSV or Parquet). A cell that two
    benchmarks share has a row in each; `benchmark` picks one. With `unfinished`, the cells of a
    store that were planned and have no result are rows too, without metrics. Results that are
    damaged are left out, with a warning.
    """
    import pandas as pd

    path = Path(path)
    if not is_exported_table(path):
        frame = _from_store(path, unfinished)
    elif path.suffix == ".parquet":
        frame = pd.read_parquet(path)
    else:
        absent: Any = {"keep_default_na": False, "na_values": ["", "nan"]}  # "None" may be a label
        frame = pd.read_csv(path, dtype={"label": str}, **absent)
    if benchmark is not None:
        if "benchmark" not in frame or benchmark not in set(frame["benchmark"]):
            known = ", ".join(sorted(set(frame.get("benchmark", [])))) or "none"
            raise InputError(f"{path} has no results of benchmark {benchmark!r}. It has: {known}.")
        frame = frame[frame["benchmark"] == benchmark].reset_index(drop=True)
    return frame


def _from_store(path: Path, unfinished: bool) -> pd.DataFrame:
    import pandas as pd

    from dcem.benchmark.toml_file import MEASURED

    rows = [_result_row(*cell) for done, *cell in _cells(path) if done or unfinished]
    columns = [*WHAT, *MEASURED, *HOW]
    frame = pd.DataFrame(rows, columns=None if rows else columns)
    extra = [column for column in frame.columns if column not in columns]
    return frame.reindex(columns=[*columns, *extra])


def _cells(path: Path) -> list[tuple[Any, ...]]:
    """Every planned cell that can be read; what is damaged is said.

    A row says whether there is a result, benchmark, label, and the columns of `CHECKED`.
    """
    with database.reading(path) as (file, db):
        if database.broken(db):
            notice(f"{file} is damaged: what can be read of it is used.")
            rows = _salvaged(db, file)
        else:
            rows = db.execute(
                f"SELECT status = 'done', benchmark, label, checksum, {database.CHECKED} "
                f"FROM plan JOIN cells ON plan.cell = cells.id {database.WORKER} "
                "ORDER BY benchmark, position"
            ).fetchall()
    sound = [row for row in rows if not row[0] or row[3] == database.checksum_of(*row[4:])]
    if len(sound) < len(rows):
        notice(f"{len(rows) - len(sound)} results in {file} are damaged, and left out.")
    return [row[:3] + row[4:] for row in sound]


def _salvaged(db: sqlite3.Connection, path: Path) -> list[tuple[Any, ...]]:
    """The rows of `_cells` from a file whose pages are damaged: each by its number, alone."""

    def each(table: str, columns: str) -> Iterator[tuple[Any, ...]]:
        bound = path.stat().st_size  # there cannot be more rows than bytes
        with suppress(*database.DAMAGE):
            bound = min(bound, db.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0] or 0)
        for number in range(1, bound + 1):
            with suppress(*database.DAMAGE):
                query = f"SELECT {columns} FROM {table} WHERE rowid = ?"
                yield from db.execute(query, (number,)).fetchall()

    def is_planned(benchmark: str, label: str, cell: str) -> bool:
        """Whether the index says so too: names have no checksum, but are written twice."""
        query = "SELECT 1 FROM plan WHERE benchmark = ? AND label = ? AND cell = ?"
        with suppress(*database.DAMAGE):
            return bool(db.execute(query, (benchmark, label, cell)).fetchall())
        return False

    versions = dict(each("workers", "id, versions"))
    columns = "id, config, metrics, about, finished, owner, checksum, status = 'done'"
    cells = {row[0]: row[1:] for row in each("cells", columns)}
    rows = []
    plan = list(each("plan", "benchmark, label, cell, position"))
    for benchmark, label, cell, _ in sorted(
        plan, key=lambda row: (str(row[0]), str(row[3]).zfill(12))
    ):
        if cell in cells and is_planned(benchmark, label, cell):
            *values, owner, checksum, done = cells[cell]
            rows.append((done, benchmark, label, checksum, cell, *values, versions.get(owner)))
    return rows


def _result_row(
    benchmark: str,
    label: str,
    cell: str,
    config: str,
    metrics: str | None,
    about: str | None,
    finished: float | None,
    versions: str | None,
) -> dict[str, Any]:
    from dcem.tasks.registry import KINDS

    parts = json.loads(config)
    task, method = dict(parts["task"]), parts["method"]
    kind = task.pop("kind")
    for name in set(task) & set(KINDS[kind].files if kind in KINDS else ()):
        task[name] = Path(task[name]).name  # a path is nobody else's business
    row = {"benchmark": benchmark, "label": label, "task": kind}
    row |= {"stream": "published", "seed": parts["seed"]} | task
    row |= {"method": method["name"], "variant": method["variant"], "schedule": method["schedule"]}
    row |= {"params": json.dumps(method["params"]) if method["params"] else ""}
    described = {"versions": json.loads(versions or "{}")} | json.loads(about or "{}")
    described["versions"] = ", ".join(
        f"{name} {value}" for name, value in described["versions"].items()
    )
    row |= {"fit_seed": parts["seed"]} | json.loads(metrics or "{}") | described
    if finished is not None:
        row["finished"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(finished))
    return row | {"cell": cell}


def export(path: Path, output: Path, benchmark: str | None = None) -> int:
    """Write the results as CSV or Parquet, by the ending of the name; how many rows."""
    output = Path(output)
    if not is_exported_table(output):
        raise InputError(f"{output}: the name must end in .csv, .csv.gz or .parquet.")
    frame = results(path, benchmark)
    with whole_file(output) as partial:
        if output.suffix == ".parquet":
            frame.to_parquet(partial, index=False)
        else:
            frame.to_csv(partial, index=False)
    return len(frame)
