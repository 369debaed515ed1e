"""Bad input gets a message that names the file, costs no earlier output and leaks no value."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from dcem.table.messages import DataWarning, InputError
from dcem.tasks.sepsis.cohort import build_cohort


@pytest.fixture
def tables(rules_folder: Path, tmp_path: Path) -> Path:
    """A copy of the artificial tables that a test may damage."""
    return Path(shutil.copytree(rules_folder, tmp_path / "tables"))


@pytest.fixture(scope="module")
def earlier(rules_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a build that went well."""
    folder = tmp_path_factory.mktemp("earlier")
    build_cohort(rules_folder, folder / "cohort.parquet", stays=folder / "stays.csv")
    return folder


@pytest.fixture
def out(earlier: Path, tmp_path: Path) -> Path:
    """An earlier output, which no failure may touch."""
    shutil.copytree(earlier, tmp_path, dirs_exist_ok=True)
    return tmp_path / "cohort.parquet"


def outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def edit(path: Path, change: Callable[[str], str]) -> None:
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()).decode()).encode()))


def missing(tables: Path) -> None:
    (tables / "CHARTEVENTS.csv.gz").unlink()


def truncated(tables: Path) -> None:
    path = tables / "LABEVENTS.csv.gz"
    path.write_bytes(path.read_bytes()[:-200])


def truncated_large(tables: Path) -> None:
    path = tables / "CHARTEVENTS.csv.gz"
    path.write_bytes(path.read_bytes()[:-200])


def cut_in_the_header(tables: Path) -> None:
    path = tables / "CHARTEVENTS.csv.gz"
    path.write_bytes(path.read_bytes()[:30])


def not_gzip(tables: Path) -> None:
    (tables / "PATIENTS.csv.gz").write_text("row_id,subject_id\n1,2\n")


def wrong_column(tables: Path) -> None:
    edit(tables / "CHARTEVENTS.csv.gz", lambda text: text.replace('"VALUENUM"', '"VALUE_NUM"', 1))


def renamed_column(tables: Path) -> None:
    edit(tables / "LABEVENTS.csv.gz", lambda text: text.replace('"VALUENUM"', '"VALUE_NUMBER"', 1))


def empty(tables: Path) -> None:
    edit(tables / "PRESCRIPTIONS.csv.gz", lambda text: text.partition("\n")[0] + "\n")


def nothing_at_all(tables: Path) -> None:
    (tables / "SERVICES.csv.gz").write_bytes(gzip.compress(b""))


def text_for_a_number(tables: Path) -> None:
    def spoil(text: str) -> str:
        lines = text.split("\n")
        cells = lines[5].split(",")
        cells[3] = "SECRETVALUE"
        lines[5] = ",".join(cells)
        return "\n".join(lines)

    edit(tables / "ICUSTAYS.csv.gz", spoil)


def short_line(tables: Path) -> None:
    edit(tables / "MICROBIOLOGYEVENTS.csv.gz", lambda text: text + "1,SECRETVALUE\n")


def unknown_admissions(tables: Path) -> None:
    edit(tables / "ADMISSIONS.csv.gz", lambda text: "\n".join(text.split("\n")[:20]) + "\n")


def doubled_patients(tables: Path) -> None:
    def double(text: str) -> str:
        return text + text.split("\n")[1] + "\n"

    edit(tables / "PATIENTS.csv.gz", double)


CASES = [
    (missing, ["CHARTEVENTS"]),
    (truncated, ["LABEVENTS.csv.gz", "cut short"]),
    (truncated_large, ["CHARTEVENTS.csv.gz", "cut short"]),
    (cut_in_the_header, ["CHARTEVENTS.csv.gz", "damaged"]),
    (not_gzip, ["PATIENTS.csv.gz", "damaged"]),
    (wrong_column, ["CHARTEVENTS.csv.gz", "'valuenum'", "'value_num'"]),
    (renamed_column, ["LABEVENTS.csv.gz", "'valuenum'", "'value_number'"]),  # not 'valueuom'
    (empty, ["PRESCRIPTIONS.csv.gz", "no rows"]),
    (nothing_at_all, ["SERVICES.csv.gz", "empty"]),
    (text_for_a_number, ["ICUSTAYS.csv.gz", "icustay_id"]),
    (short_line, ["MICROBIOLOGYEVENTS.csv.gz", "line "]),
    (unknown_admissions, ["ICUSTAYS.csv.gz", "ADMISSIONS"]),
    (doubled_patients, ["ICUSTAYS.csv.gz", "more than once"]),
]


@pytest.mark.parametrize(("damage", "words"), CASES, ids=[case[0].__name__ for case in CASES])
def test_damage(
    damage: Callable[[Path], None], words: list[str], tables: Path, out: Path, tmp_path: Path
) -> None:
    before = outputs(tmp_path)
    damage(tables)
    with pytest.raises(InputError) as failure:
        build_cohort(tables, out, stays=tmp_path / "stays.csv")
    message = str(failure.value)
    for word in words:
        assert word in message
    assert "SECRETVALUE" not in message
    assert failure.value.__cause__ is None
    assert outputs(tmp_path) == before


def test_a_repaired_input_builds_from_the_stages_that_were_finished(
    tables: Path, out: Path, tmp_path: Path
) -> None:
    whole = (tables / "CHARTEVENTS.csv.gz").read_bytes()
    truncated_large(tables)
    with pytest.raises(InputError):
        build_cohort(tables, out)
    (tables / "CHARTEVENTS.csv.gz").write_bytes(whole)
    states: list[str] = []
    build_cohort(tables, out, progress=lambda p: states.append(p.state))
    assert states[:7] == ["kept"] * 7  # the stages before the large table


@pytest.mark.parametrize("claimed", ["full", "demo"])
def test_another_release_than_claimed(
    claimed: str, tables: Path, out: Path, tmp_path: Path
) -> None:
    before = outputs(tmp_path)
    with pytest.raises(InputError, match=r"ICUSTAYS\.csv\.gz has .* rows; the " + claimed):
        build_cohort(tables, out, release=claimed)
    assert outputs(tmp_path) == before


def test_the_demo_given_as_full(demo: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ICUSTAYS\.csv\.gz has 136 rows.*It is the demo"):
        build_cohort(demo, tmp_path / "cohort.parquet", release="full")
    assert not (tmp_path / "cohort.parquet").exists()


def test_an_altered_demo_is_built_with_a_warning(demo: Path, tmp_path: Path) -> None:
    altered = tmp_path / "altered"
    altered.mkdir()
    for path in demo.glob("*.csv.gz"):
        (altered / path.name).symlink_to(path)
    text = gzip.decompress((demo / "SERVICES.csv.gz").read_bytes()).decode()
    (altered / "SERVICES.csv.gz").unlink()
    (altered / "SERVICES.csv.gz").write_bytes(
        gzip.compress("\n".join(text.split("\n")[:-2]).encode() + b"\n")
    )
    with pytest.warns(DataWarning, match=r"SERVICES\.csv\.gz has 162 rows"):
        build_cohort(altered, tmp_path / "cohort.parquet")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"suspicion": "corr42"}, "Did you mean 'corr24'"),
        ({"features": "clean"}, "Did you mean 'cleaned'"),
        ({"memory_limit": "plenty"}, "`memory_limit`"),
        ({"memory_limit": "4"}, "`memory_limit`"),
        ({"memory_limit": "1.2.3GB"}, "`memory_limit`"),
        ({"stays": "nowhere/stays.csv"}, "cannot be written"),
        ({"threads": 0}, "`threads` must be at least 1"),
    ],
)
def test_options(tables: Path, tmp_path: Path, options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        build_cohort(tables, tmp_path / "cohort.parquet", **options)


def test_the_cohort_and_the_stays_are_two_files(tables: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot both be"):
        build_cohort(tables, tmp_path / "one", stays=tmp_path / "." / "one")


def test_line_ends_and_byte_order_marks_do_not_matter(tables: Path, tmp_path: Path) -> None:
    build_cohort(tables, tmp_path / "a.parquet", stays=tmp_path / "a.csv")
    for path in tables.glob("*.csv.gz"):
        text = gzip.decompress(path.read_bytes()).replace(b"\n", b"\r\n")
        path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text))
    build_cohort(tables, tmp_path / "b.parquet", stays=tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        build_cohort(tmp_path / "nowhere", tmp_path / "cohort.parquet")


def test_not_a_database(tmp_path: Path) -> None:
    (tmp_path / "mimic.duckdb").write_text("no database")
    with pytest.raises(InputError, match=r"mimic\.duckdb is not a DuckDB file"):
        build_cohort(tmp_path / "mimic.duckdb", tmp_path / "cohort.parquet")


def test_a_database_with_two_releases(tmp_path: Path) -> None:
    file = tmp_path / "mimic.duckdb"
    with duckdb.connect(str(file)) as connection:
        for schema in ("demo", "whole"):
            connection.execute(f"CREATE SCHEMA {schema}")
            connection.execute(f"CREATE TABLE {schema}.icustays (icustay_id BIGINT)")
    with pytest.raises(InputError, match="ICUSTAYS in the schemas 'demo' and 'whole'"):
        build_cohort(file, tmp_path / "cohort.parquet")


def test_parquet_cut_short(cohort_folder: Path, tmp_path: Path) -> None:
    tables = Path(shutil.copytree(cohort_folder, tmp_path / "tables"))
    path = tables / "LABEVENTS.parquet"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InputError, match=r"LABEVENTS\.parquet is not a readable Parquet file"):
        build_cohort(tables, tmp_path / "cohort.parquet")


def test_parquet_of_the_wrong_type(cohort_folder: Path, tmp_path: Path) -> None:
    tables = Path(shutil.copytree(cohort_folder, tmp_path / "tables"))
    path = tables / "SERVICES.parquet"
    frame = pd.read_parquet(path)
    frame["HADM_ID"] = frame["HADM_ID"].astype(str)
    frame.loc[3, "HADM_ID"] = "SECRETVALUE"
    frame.to_parquet(path)
    with pytest.raises(InputError, match=r"SERVICES\.parquet cannot be read") as failure:
        build_cohort(tables, tmp_path / "cohort.parquet")
    assert "SECRETVALUE" not in str(failure.value)
