"""Read a store: where a run stands, and its results as a table. Nothing here trains or claims."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcem.benchmark.schema import open_to_read, refusal
from dcem.benchmark.workers import gone

if TYPE_CHECKING:
    import pandas as pd

STORE = "store.sqlite"

# Columns that every exported table has, in this order; other task parameters come after them.
COLUMNS = (
    *("benchmark", "label", "task", "q_y", "k", "q_t", "phase", "beta", "stream", "seed"),
    *("method", "variant", "schedule", "params", "fit_seed"),
    *("auc", "roc_gap", "roc_gap_grid", "xauc_difference", "auc_difference", "n_iter"),
    *("seconds", "memory_mb", "fleet_size", "device", "versions", "finished", "cell"),
)
# Task parameters that mostly stay at their defaults; the overlap study varies one of them.
FREE_PARAMETERS = (
    *("n_train", "n_validation", "n_test", "variance", "outcome_slope", "outcome_threshold"),
    *("testing_slope", "frequency", "amplitude", "rotation", "prevalence", "group_share"),
)
SETTING = ("task", "q_y", "k", "q_t", *FREE_PARAMETERS)  # what tells two settings apart


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


def find_store(path: Path) -> Path:
    """The store file for a folder that `run` made, or for the file itself."""
    path = Path(path)
    return path / STORE if path.is_dir() else path


def status(path: Path) -> list[MethodStatus]:
    """How far every method of every benchmark in the store is."""
    connection = open_to_read(find_store(path))
    dead = json.dumps(gone(connection))
    rows = connection.execute(
        "SELECT benchmark, label, "
        "sum(status = 'done'), "
        "sum(status = 'running' AND owner NOT IN (SELECT value FROM json_each(?1))), "
        "sum(status = 'pending' OR "
        "(status = 'running' AND owner IN (SELECT value FROM json_each(?1)))), "
        "sum(status = 'failed'), max(error) "
        "FROM plan JOIN cells ON plan.cell = cells.id "
        "GROUP BY benchmark, label ORDER BY benchmark, min(position)",
        (dead,),
    ).fetchall()
    connection.close()
    return [
        MethodStatus(name, label, done, running, pending, failed, _last_line(error))
        for name, label, done, running, pending, failed, error in rows
    ]


def _last_line(error: str | None) -> str:
    return (error or "").strip().rpartition("\n")[2]


def is_table(path: Path) -> bool:
    """Whether this is an exported table rather than a store: it knows no plan, only results."""
    return Path(path).name.endswith((".csv", ".csv.gz", ".parquet"))


def missing(path: Path, benchmark: str | None = None) -> list[str]:
    """What a store's plan holds without a result, in words; a table does not know."""
    told = []
    for row in [] if is_table(path) else status(path):
        waiting = row.pending + row.running
        if (waiting or row.failed) and benchmark in (None, row.benchmark):
            parts = [f"{waiting} to do"] * bool(waiting) + [f"{row.failed} failed"] * bool(
                row.failed
            )
            told.append(f"{row.benchmark}, {row.label}: {', '.join(parts)}")
    return told


def purposes(path: Path) -> dict[str, str]:
    """What each benchmark of a store is for, in its own words; a table does not know."""
    if is_table(path):
        return {}
    connection = open_to_read(find_store(path))
    rows = connection.execute("SELECT name, about FROM benchmarks").fetchall()
    connection.close()
    return {name: about or "" for name, about in rows}


def results(path: Path, benchmark: str | None = None, *, unfinished: bool = False) -> pd.DataFrame:
    """Every finished cell as a row: what it was, its metrics, and how it was computed.

    `path` is a store, its folder, or a table that `export` wrote (CSV or Parquet). A cell that two
    benchmarks share has a row in each; `benchmark` picks one. With `unfinished`, the cells of a
    store that were planned and have no result are rows too, without metrics.
    """
    import pandas as pd

    path = Path(path)
    if not is_table(path):
        frame = _from_store(find_store(path), unfinished)
    elif path.suffix == ".parquet":
        frame = pd.read_parquet(path)
    else:
        frame = pd.read_csv(path, dtype={"label": str})
    if benchmark is not None:
        if "benchmark" not in frame or benchmark not in set(frame["benchmark"]):
            known = ", ".join(sorted(set(frame.get("benchmark", [])))) or "none"
            raise refusal(f"{path} has no results of benchmark {benchmark!r}. It has: {known}.")
        frame = frame[frame["benchmark"] == benchmark].reset_index(drop=True)
    return frame


def _from_store(path: Path, unfinished: bool) -> pd.DataFrame:
    import pandas as pd

    connection = open_to_read(path)
    rows = connection.execute(
        "SELECT benchmark, label, config, metrics, about, finished, versions, cells.id "
        "FROM plan JOIN cells ON plan.cell = cells.id "
        "LEFT JOIN workers ON workers.id = cells.owner "
        "WHERE status = 'done' OR ? ORDER BY benchmark, position",
        (unfinished,),
    ).fetchall()
    connection.close()
    frame = pd.DataFrame([_row(*row) for row in rows], columns=None if rows else list(COLUMNS))
    extra = [column for column in frame.columns if column not in COLUMNS]
    return frame.reindex(columns=[*COLUMNS, *extra])


def _row(
    benchmark: str,
    label: str,
    config: str,
    metrics: str | None,
    about: str | None,
    finished: float | None,
    versions: str | None,
    cell: str,
) -> dict[str, Any]:
    parts = json.loads(config)
    task, method = dict(parts["task"]), parts["method"]
    kind = task.pop("kind")
    if kind == "sepsis":
        task["cohort"] = Path(task.get("cohort", "")).name  # a path is nobody else's business
    row = {"benchmark": benchmark, "label": label, "task": kind}
    row |= {"stream": "published", "seed": parts["seed"]} | task
    row |= {"method": method["name"], "variant": method["variant"], "schedule": method["schedule"]}
    row |= {"params": json.dumps(method["params"]) if method["params"] else ""}
    told = {"versions": json.loads(versions or "{}")} | json.loads(about or "{}")
    told["versions"] = ", ".join(f"{name} {value}" for name, value in told["versions"].items())
    row |= {"fit_seed": parts["seed"]} | json.loads(metrics or "{}") | told
    if finished is not None:
        row["finished"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(finished))
    return row | {"cell": cell}


def export(path: Path, output: Path, benchmark: str | None = None) -> int:
    """Write the results as CSV or Parquet, by the ending of the name; how many rows."""
    from dcem.files import whole_file  # late, as pandas is: `status` should answer at once

    output = Path(output)
    if not is_table(output):
        raise refusal(f"{output}: the name must end in .csv, .csv.gz or .parquet.")
    frame = results(path, benchmark)
    with whole_file(output) as partial:
        if output.suffix == ".parquet":
            frame.to_parquet(partial, index=False)
        else:
            frame.to_csv(partial, index=False)
    return len(frame)
