"""Run the numbered queries one after the other, and never run one again without need.

A stage is one SQL file that answers one question; its answer is a Parquet file in a work folder.
The query itself says what the stage depends on: `mimic.x` is a table of the release, `built.x` the
answer of an earlier stage, `getvariable('x')` an option. A stage's key is a hash over its query and
all of these, so a changed file, query or option makes exactly the stages behind it run again.
A stage writes to a temporary name and renames: whatever kills it, the finished stages remain. One
whose file is no longer what was written runs again.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from dcem.files import whole_file, write_text
from dcem.table.messages import InputError
from dcem.table.read import file_hash
from dcem.tasks.sepsis.sources import Mimic, readable_failure, sql_text

# Query file -> the table it answers with. `charted` brings `first_charttimes` from the same scan.
QUESTIONS: dict[str, str] = {
    "00_how_many_rows_are_there": "row_counts",
    "01_which_stays_are_there": "stays",
    "02_which_drugs_are_antibiotics": "antibiotics",
    "03_when_was_infection_suspected": "suspicion",
    "04_when_was_the_first_culture": "cultures",
    "05_which_stays_are_excluded": "exclusions",
    "06_which_chart_items_matter": "items",
    "07_what_was_charted": "charted",
    "08_which_labs_were_drawn": "labs",
    "09_when_were_they_ventilated": "ventilation",
    "10_which_gases_are_arterial": "gases",
    "11_what_was_the_lowest_gcs": "gcs",
    "12_which_vasopressors_ran": "vasopressors",
    "13_how_much_urine_came": "urine",
    "14_what_is_the_first_day_sofa": "sofa",
    "15_who_has_sepsis_and_since_when": "sepsis",
    "16_which_values_feed_the_features": "measurements",
    "17_what_are_the_features": "features",
    "18_who_is_in_the_study": "study",
}
_SCAN, _SCAN_ALSO = "charted", "first_charttimes"
_BATCH_ROWS = 500_000


@dataclass(frozen=True)
class StageProgress:
    """What is told about a stage: counts and seconds, never a value of a patient."""

    number: int
    of: int
    question: str
    state: str  # "running", "done", or "kept" from an earlier run
    rows: int | None = None
    seconds: float | None = None


def query(file: str) -> str:
    """The text of one numbered query."""
    return (resources.files(__package__) / "sql" / f"{file}.sql").read_text("utf-8")


def question(sql: str) -> str:
    """The question a query answers: its first line."""
    return sql.partition("\n")[0].removeprefix("-- ")


class Stages:
    """The work folder: finished stages, the manifest that vouches for them, and the connection."""

    def __init__(
        self,
        mimic: Mimic,
        work: Path,
        options: dict[str, str],
        memory_limit: str,
        threads: int | None,
    ) -> None:
        import duckdb

        work.mkdir(parents=True, exist_ok=True)
        self.mimic, self.work, self.options = mimic, work, options
        self._manifest_path = work / "manifest.json"
        self.manifest: dict[str, dict[str, Any]] = self._read_manifest()
        self.memory_limit = memory_limit
        self.connection = duckdb.connect()
        self.connection.execute(f"SET memory_limit = '{_share_of(memory_limit)}B'")
        self.connection.execute(f"SET temp_directory = {sql_text(work / 'spill')}")
        self.connection.execute("SET preserve_insertion_order = false")
        self.connection.execute("SET enable_progress_bar = false")  # it would write to stdout
        if threads is not None:
            self.connection.execute(f"SET threads = {threads}")
        for name, value in options.items():
            self.connection.execute(f"SET VARIABLE {name} = {sql_text(value)}")
        self.connection.execute("CREATE SCHEMA built")
        mimic.attach(self.connection)

    def __enter__(self) -> Stages:
        return self

    def __exit__(self, *exception: object) -> None:
        self.connection.close()

    def run(self, tell: Callable[[StageProgress], None]) -> Iterator[str]:
        """Answer every question in turn, yielding the name of each table once it is there."""
        keys: dict[str, str] = {}
        for number, (file, name) in enumerate(QUESTIONS.items()):
            sql = query(file)
            key = self._stage_key(sql, keys)
            keys[name] = key
            if name == _SCAN:
                keys[_SCAN_ALSO] = key
            about = (number, len(QUESTIONS) - 1, question(sql))
            if self._is_done(name, key):
                tell(StageProgress(*about, "kept", self.manifest[name]["rows"]))
            else:
                tell(StageProgress(*about, "running"))
                started = time.perf_counter()
                entry = self._answer(name, sql)
                seconds = round(time.perf_counter() - started, 3)
                self.manifest[name] = {"key": key, **entry, "seconds": seconds}
                write_text(self._manifest_path, json.dumps(self.manifest, indent=1))
                tell(StageProgress(*about, "done", entry["rows"], seconds))
            for output in self.manifest[name]["files"]:
                table = output.removesuffix(".parquet")
                source = sql_text(self.work / output)
                self.connection.execute(
                    f"CREATE OR REPLACE VIEW built.{table} AS SELECT * FROM read_parquet({source})"
                )
            yield name

    def frame(self, sql: str) -> Any:
        """The answer to a query over the built tables, as a pandas frame."""
        return self.connection.execute(sql).df()

    def _stage_key(self, sql: str, keys: dict[str, str]) -> str:
        import duckdb

        parts = [
            sql,
            duckdb.__version__,
            {t: self.mimic.sources[t].fingerprint for t in _names_in(r"mimic\.(\w+)", sql)},
            {t: keys[t] for t in _names_in(r"built\.(\w+)", sql)},
            {o: self.options[o] for o in _names_in(r"getvariable\('(\w+)'\)", sql)},
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _is_done(self, name: str, key: str) -> bool:
        entry = self.manifest.get(name)
        return (
            isinstance(entry, dict)
            and entry.get("key") == key
            and all(
                (self.work / file).is_file() and file_hash(self.work / file) == known
                for file, known in entry["files"].items()
            )
        )

    def _answer(self, name: str, sql: str) -> dict[str, Any]:
        import duckdb

        try:
            if name == _SCAN:
                return self._scan(sql)
            path = self.work / f"{name}.parquet"
            with whole_file(path) as unfinished:
                self.connection.execute(
                    f"COPY ({sql}) TO {sql_text(unfinished)} (FORMAT parquet, COMPRESSION zstd)"
                )
            counted = f"SELECT count(*) FROM read_parquet({sql_text(path)})"
            rows = self.connection.execute(counted).fetchall()[0][0]
            return {"rows": rows, "files": {path.name: file_hash(path)}}
        except duckdb.OutOfMemoryException:
            raise InputError(
                f"{question(sql)} needs more than the `memory_limit` of {self.memory_limit}. Raise "
                "it and start again: the finished stages are kept."
            ) from None
        except duckdb.Error as error:
            raise readable_failure(error, self.mimic, _names_in(r"mimic\.(\w+)", sql)) from None

    def _scan(self, sql: str) -> dict[str, Any]:
        """One pass over CHARTEVENTS: store the kept rows, and the first time of every stay."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        paths = [self.work / f"{name}.parquet" for name in (_SCAN, _SCAN_ALSO)]
        reader = self.connection.sql(sql).to_arrow_reader(_BATCH_ROWS)
        stored = pa.schema([field for field in reader.schema if field.name != "kept"])
        read = kept = 0
        firsts: pa.Table | None = None
        with whole_file(paths[0]) as kept_part, whole_file(paths[1]) as first_part:
            with pq.ParquetWriter(kept_part, stored, compression="zstd") as writer:
                for batch in reader:
                    rows = pa.Table.from_batches([batch])
                    read += rows.num_rows
                    times = rows.select(["icustay_id", "charttime"])
                    firsts = _earliest(
                        times if firsts is None else pa.concat_tables([firsts, times])
                    )
                    wanted = rows.filter(rows["kept"]).select(stored.names)
                    kept += wanted.num_rows
                    writer.write_table(wanted)
            if firsts is None:
                name = self.mimic.sources["chartevents"].path.name
                raise InputError(f"{name} has no rows. Load the table again.")
            pq.write_table(firsts.rename_columns(["icustay_id", "first_charttime"]), first_part)
        files = {path.name: file_hash(path) for path in paths}
        return {"rows": kept, "rows_read": read, "files": files}

    def _read_manifest(self) -> dict[str, dict[str, Any]]:
        try:
            found = json.loads(self._manifest_path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def _earliest(rows: Any) -> Any:
    """The earliest charttime per stay; rows without a stay or a time say nothing."""
    by_stay = rows.drop_null().group_by("icustay_id", use_threads=False)
    firsts = by_stay.aggregate([("charttime", "min")]).select(["icustay_id", "charttime_min"])
    return firsts.rename_columns(["icustay_id", "charttime"])


def _names_in(pattern: str, sql: str) -> list[str]:
    code = re.sub(r"--[^\n]*", "", sql)  # a comment may name what the query does not read
    return sorted(set(re.findall(pattern, code)))


def _share_of(limit: str) -> int:
    """DuckDB's part of the memory limit, in bytes; the rest is for Python and Arrow buffers."""
    match = re.fullmatch(r"\s*(\d+\.?\d*)\s*([KMGT])(i?)B?\s*", limit, re.IGNORECASE)
    if match is None or float(match.group(1)) <= 0:
        raise InputError(f"`memory_limit` must be a size such as 4GiB or 800MB, got {limit!r}.")
    step = 1024 if match.group(3) else 1000
    size = float(match.group(1)) * step ** " KMGT".index(match.group(2).upper())
    return int(0.7 * size)
