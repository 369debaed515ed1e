"""Build the sepsis cohort: one call from the raw tables to a Parquet file and its account.

The definition is Sepsis-3 after Johnson et al. (2018), with the suspicion rule the DCEM paper
describes, on MetaVision stays of MIMIC-III v1.4. Each criterion is one query in `sql/`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcem.files import whole_file
from dcem.table.messages import InputError, notice, require_one_of
from dcem.tasks.sepsis.account import EXCLUSIONS, account
from dcem.tasks.sepsis.features import FEATURE_NAMES
from dcem.tasks.sepsis.sources import Mimic, check_rows, find_tables, recognise, sql_text
from dcem.tasks.sepsis.stages import StageProgress, Stages

SUSPICION = ("corr24", "v2018", "head2019")
FEATURES_AS = ("published", "cleaned")
RELEASES = ("auto", "full", "demo")

STAY_COLUMNS: tuple[str, ...] = (
    "icustay_id", "in_cohort", *(f"exclusion_{name}" for name in EXCLUSIONS),
    "suspicion_time", "sofa", "respiration", "coagulation", "liver", "cardiovascular", "cns",
    "renal", "sepsis3", "onset_time", "first_charttime", *FEATURE_NAMES,
)  # fmt: skip
COHORT_COLUMNS: tuple[str, ...] = (
    "icustay_id", "subject_id", "a", "y", "onset_hours", "cultured", "age", *FEATURE_NAMES,
)  # fmt: skip


@dataclass(frozen=True)
class CohortBuild:
    """What was built: the file, and the account of it that may be shown to others."""

    out: Path
    stays: Path | None
    release: str
    flow: dict[str, Any]
    quality: dict[str, Any]


def build_cohort(
    mimic: str | Path,
    out: str | Path,
    *,
    stays: str | Path | None = None,
    suspicion: str = "corr24",
    features: str = "published",
    release: str = "auto",
    work: str | Path | None = None,
    memory_limit: str = "4GiB",
    threads: int | None = None,
    show_small_cells: bool = False,
    progress: Callable[[StageProgress], None] = lambda _: None,
) -> CohortBuild:
    """Build the cohort from a folder of MIMIC-III tables, or a DuckDB file that holds them.

    Nothing at `out`, `stays` or beside them is touched until everything succeeded.

    Parameters
    ----------
    mimic
        The folder (CSV, CSV.gz or Parquet, either case of names and headers) or the file.
    out
        The cohort, a Parquet file with one row per stay of the study, sorted by stay; beside it the
        flow and the quality of the data as JSON.
    stays
        If given, a CSV file with one row for every ICU stay, in or out of the cohort.
    suspicion
        The rule for suspected infection, "corr24" (as the paper describes it), "v2018" (Johnson's
        numbers) or "head2019" (the queries as they stand today, with a slip).
    features
        "published" or "cleaned", see `features`.
    release
        "full" or "demo" to insist on the row counts of that release; "auto" builds from whatever is
        there and warns where a known release has other counts.
    work
        Folder of the finished stages, by default beside `out`. Running again with it reuses every
        stage whose inputs and options are unchanged.
    memory_limit
        Such as "4GiB"; beyond it, work spills into the work folder.
    threads
        Number of threads, by default all.
    show_small_cells
        Show counts under ten in the flow and the quality page. For open data such as the demo only.
    progress
        Called at the beginning and the end of every stage.
    """
    require_one_of("suspicion", suspicion, SUSPICION)
    require_one_of("features", features, FEATURES_AS)
    require_one_of("release", release, RELEASES)
    out, listed = Path(out), None if stays is None else Path(stays)
    for path in filter(None, (out, listed)):
        if path.is_dir() or not path.parent.is_dir():
            raise InputError(f"{path} cannot be written: it is a folder, or its folder is missing.")
    if listed is not None and out.resolve() == listed.resolve():
        raise InputError(f"The cohort and the list of all stays cannot both be {out}.")
    if threads is not None and threads < 1:
        raise InputError(f"`threads` must be at least 1, got {threads}.")
    tables = find_tables(mimic)
    folder = Path(work) if work is not None else out.with_name(out.stem + ".work")
    options = {"suspicion": suspicion, "features": features}
    with Stages(tables, folder, options, memory_limit, threads) as stages:
        found, claimed = release, release != "auto"
        for name in stages.run(progress):
            if name == "row_counts":
                rows = _row_counts(stages, tables)
                found = release if claimed else recognise(rows, tables.artificial)
                check_rows(found, rows, tables, claimed=claimed)
            if name == "stays":
                _check_stays(stages, tables)
            if name == "charted":
                read = stages.manifest["charted"]["rows_read"]
                check_rows(found, {"chartevents": read}, tables, claimed=claimed)
        study = stages.frame("SELECT * FROM built.study ORDER BY icustay_id")
        if study["left_out_because"].notna().all():
            notice(f"No stay of {tables.root} is left in the study: the cohort has no rows.")
        verdicts = stages.frame(
            "SELECT measure, verdict, count(*) AS n FROM built.measurements "
            "JOIN built.study USING (icustay_id) WHERE left_out_because IS NULL "
            "GROUP BY measure, verdict"
        )
        about = {
            **options,
            "release": found,
            "artificial": tables.artificial,
            "small_cells": "shown" if show_small_cells else "hidden",
        }
        flow, quality = account(study, verdicts, about, show_all=show_small_cells)
        _write_all(stages, out, listed, about, flow, quality)
    return CohortBuild(out, listed, found, flow, quality)


def _write_all(
    stages: Stages,
    out: Path,
    listed: Path | None,
    about: dict[str, Any],
    flow: dict[str, Any],
    quality: dict[str, Any],
) -> None:
    """Write everything beside its place; all appear at the end, or none: nothing old is lost."""
    copies = {
        out: (
            f"SELECT {', '.join(COHORT_COLUMNS)} FROM (SELECT *, sepsis3::INT AS y, "
            "blood_culture_time IS NOT NULL AS cultured FROM built.study) "
            "WHERE left_out_because IS NULL",
            f"FORMAT parquet, KV_METADATA {{dcem_sepsis: {sql_text(json.dumps(about))}}}",
        )
    }
    if listed is not None:
        flags = ("in_cohort", "sepsis3", "exclusion_")
        columns = (f"{c}::INT AS {c}" if c.startswith(flags) else c for c in STAY_COLUMNS)
        copies[listed] = (
            f"SELECT {', '.join(columns)} FROM built.study",
            "FORMAT csv, HEADER, NULLSTR '', TIMESTAMPFORMAT '%Y-%m-%d %H:%M:%S'",
        )
    texts = {out.with_suffix(".flow.json"): flow, out.with_suffix(".quality.json"): quality}
    with ExitStack() as places:
        for path, content in texts.items():
            unfinished = places.enter_context(whole_file(path))
            unfinished.write_text(json.dumps(content, indent=2), encoding="utf-8")
        for path, (sql, how) in copies.items():
            unfinished = places.enter_context(whole_file(path))
            stages.connection.execute(
                f"COPY ({sql} ORDER BY icustay_id) TO {sql_text(unfinished)} ({how})"
            )


def _row_counts(stages: Stages, tables: Mimic) -> dict[str, int]:
    counted = stages.connection.execute("SELECT name, rows FROM built.row_counts")
    rows: dict[str, int] = dict(counted.fetchall())
    for table, count in rows.items():
        if count == 0:
            path = tables.sources[table].path.name
            raise InputError(f"{path}: table {table.upper()} has no rows. Load it again.")
    return rows


def _check_stays(stages: Stages, tables: Mimic) -> None:
    """Every stay must be there once: a lost or doubled one would move every count after it."""
    there, distinct, listed = stages.connection.execute(
        "SELECT count(*), count(DISTINCT icustay_id), "
        "(SELECT rows FROM built.row_counts WHERE name = 'icustays') FROM built.stays"
    ).fetchall()[0]
    path = tables.sources["icustays"].path.name
    if there != distinct:
        raise InputError(
            f"{path}: {there - distinct:,} ICU stays appear more than once after joining their "
            "admission and patient. ICUSTAYS, ADMISSIONS and PATIENTS must each list an id once."
        )
    if there < listed:
        raise InputError(
            f"{path}: {listed - there:,} of {listed:,} ICU stays have no row in ADMISSIONS or "
            "PATIENTS. The files belong to different releases, or one is cut short."
        )
