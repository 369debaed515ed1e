"""A stage runs again exactly when something it depends on has changed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest

from dcem.table.checks import InputError
from dcem.tasks.sepsis import stages as stages_module
from dcem.tasks.sepsis.cohort import build_cohort
from dcem.tasks.sepsis.stages import QUESTIONS, query, question


def ran(folder: Path, out: Path, **options: str) -> list[str]:
    """The tables that were computed, not kept."""
    done: list[str] = []
    names = list(QUESTIONS.values())
    build_cohort(
        folder,
        out,
        progress=lambda p: done.append(names[p.number]) if p.state == "done" else None,
        **options,  # type: ignore[arg-type]
    )
    return done


@pytest.fixture
def tables(rules_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(rules_folder, tmp_path / "tables"))


def test_everything_runs_once_and_then_nothing(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "cohort.parquet"
    assert ran(tables, out) == list(QUESTIONS.values())
    first = out.read_bytes()
    assert ran(tables, out) == []
    assert out.read_bytes() == first


def test_an_option_touches_what_depends_on_it(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "cohort.parquet"
    ran(tables, out)
    assert ran(tables, out, suspicion="v2018") == ["exclusions", "sepsis", "study"]
    assert ran(tables, out, suspicion="v2018", features="cleaned") == ["features", "study"]


def test_a_changed_file_touches_what_reads_it(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "cohort.parquet"
    ran(tables, out)
    stat = (tables / "OUTPUTEVENTS.csv.gz").stat()
    os.utime(tables / "OUTPUTEVENTS.csv.gz", ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert ran(tables, out) == ["row_counts", "urine", "sofa", "sepsis", "study"]


def test_a_damaged_stage_is_made_again(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "cohort.parquet"
    ran(tables, out)
    (tmp_path / "cohort.work" / "gases.parquet").write_bytes(b"")
    (tmp_path / "cohort.work" / "first_charttimes.parquet").unlink()
    again = ran(tables, out)
    assert "gases" in again
    assert "charted" in again  # the scan that also brings the first times


def test_an_unreadable_manifest_means_starting_over(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "cohort.parquet"
    ran(tables, out)
    (tmp_path / "cohort.work" / "manifest.json").write_text("{ half a")
    assert ran(tables, out) == list(QUESTIONS.values())


def test_an_interrupted_build_goes_on(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "cohort.parquet"

    def interrupt(progress: stages_module.Progress) -> None:
        if progress.number == 9 and progress.state == "running":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_cohort(tables, out, progress=interrupt)
    assert not out.exists()
    assert ran(tables, out) == list(QUESTIONS.values())[9:]


def test_memory_too_small_is_said_and_stages_are_kept(cohort_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "cohort.parquet"
    with pytest.raises(InputError, match="`memory_limit` of 1MB"):
        build_cohort(cohort_folder, out, memory_limit="1MB")
    build_cohort(cohort_folder, out, memory_limit="1GB")
    assert out.exists()


def test_rows_of_the_large_table_are_counted_in_the_one_scan(tables: Path, tmp_path: Path) -> None:
    build_cohort(tables, tmp_path / "cohort.parquet")
    manifest = json.loads((tmp_path / "cohort.work" / "manifest.json").read_text())
    assert manifest["charted"]["rows_read"] == len(pd.read_csv(tables / "CHARTEVENTS.csv.gz"))


def test_small_batches_give_the_same(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_cohort(tables, tmp_path / "a.parquet", stays=tmp_path / "a.csv")
    monkeypatch.setattr(stages_module, "_BATCH_ROWS", 100)
    build_cohort(tables, tmp_path / "b.parquet", stays=tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_every_query_asks_one_question() -> None:
    folder = Path(stages_module.__file__).parent / "sql"
    assert sorted(path.stem for path in folder.glob("*.sql")) == sorted(QUESTIONS)
    for file in QUESTIONS:
        assert question(query(file)).endswith("?")


def test_nothing_is_left_unfinished(tables: Path, tmp_path: Path) -> None:
    build_cohort(tables, tmp_path / "cohort.parquet", stays=tmp_path / "stays.csv")
    assert not list(tmp_path.rglob("*.part"))
