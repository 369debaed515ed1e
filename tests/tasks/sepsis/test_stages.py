"""A stage runs again exactly when something it depends on has changed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest

from dcem.table.messages import InputError
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


@pytest.fixture(scope="module")
def finished(rules_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole build, its tables beside it; files keep their times when copied."""
    folder = tmp_path_factory.mktemp("finished")
    tables = Path(shutil.copytree(rules_folder, folder / "tables"))
    whole = ran(tables, folder / "cohort.parquet", stays=str(folder / "stays.csv"))
    assert whole == list(QUESTIONS.values())
    return folder


@pytest.fixture
def built(finished: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Tables and output of a build that was finished before."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path / "tables", tmp_path / "cohort.parquet"


def test_what_has_run_does_not_run_again(built: tuple[Path, Path]) -> None:
    first = built[1].read_bytes()
    assert ran(*built) == []
    assert built[1].read_bytes() == first


def test_an_option_touches_what_depends_on_it(built: tuple[Path, Path]) -> None:
    tables, out = built
    assert ran(tables, out, suspicion="v2018") == ["exclusions", "sepsis", "study"]
    assert ran(tables, out, suspicion="v2018", features="cleaned") == ["features", "study"]


def test_a_changed_file_touches_what_reads_it(built: tuple[Path, Path]) -> None:
    tables, out = built
    stat = (tables / "OUTPUTEVENTS.csv.gz").stat()
    os.utime(tables / "OUTPUTEVENTS.csv.gz", ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert ran(tables, out) == ["row_counts", "urine", "sofa", "sepsis", "study"]


def test_a_damaged_stage_is_made_again(built: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "cohort.work" / "gases.parquet").write_bytes(b"")
    (tmp_path / "cohort.work" / "first_charttimes.parquet").unlink()
    labs = tmp_path / "cohort.work" / "labs.parquet"
    labs.write_bytes(bytes(labs.stat().st_size))  # as long as before
    again = ran(*built)
    assert {"gases", "labs"} <= set(again)
    assert "charted" in again  # the scan that also brings the first times


def test_an_unreadable_manifest_means_starting_over(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    manifest = tmp_path / "cohort.work" / "manifest.json"
    manifest.write_text("{ half a")
    assert ran(*built) == list(QUESTIONS.values())
    manifest.write_text(json.dumps({"row_counts": 1} | {key: {} for key in QUESTIONS.values()}))
    assert ran(*built) == list(QUESTIONS.values())


def test_an_interrupted_build_goes_on(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "cohort.parquet"

    def interrupt(progress: stages_module.StageProgress) -> None:
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


def test_rows_of_the_large_table_are_counted_in_the_one_scan(finished: Path) -> None:
    manifest = json.loads((finished / "cohort.work" / "manifest.json").read_text())
    charted = pd.read_csv(finished / "tables" / "CHARTEVENTS.csv.gz")
    assert manifest["charted"]["rows_read"] == len(charted)


def test_small_batches_give_the_same(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages_module, "_BATCH_ROWS", 100)
    build_cohort(finished / "tables", tmp_path / "b.parquet", stays=tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_bytes() == (finished / "stays.csv").read_bytes()


def test_every_query_asks_one_question() -> None:
    folder = Path(stages_module.__file__).parent / "sql"
    assert sorted(path.stem for path in folder.glob("*.sql")) == sorted(QUESTIONS)
    for file in QUESTIONS:
        assert question(query(file)).endswith("?")


def test_nothing_is_left_unfinished(finished: Path) -> None:
    assert not list(finished.rglob("*.partial"))
