"""The real demo: the published logic's counts, and a second plain rendering stay by stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from choices import some

from dcem.tasks.sepsis.cohort import STAY_COLUMNS, build_cohort
from dcem.tasks.sepsis.features import FEATURE_NAMES
from dcem.tasks.sepsis.sources import TABLES

# After each step; suspected, SOFA >= 2, sepsis-3; negatives, positives; then the study.
COUNTS = {
    "v2018": ([136, 136, 100, 90, 44, 41, 40, 40], (25, 34, 22), (18, 2), (17, 16, 1)),
    "head2019": ([136, 136, 100, 90, 44, 41, 38, 38], (28, 32, 25), (13, 2), (12, 11, 1)),
    "corr24": ([136, 136, 100, 90, 44, 41, 40, 40], (25, 34, 22), (18, 2), (17, 16, 1)),
}


@pytest.mark.parametrize("suspicion", COUNTS)
def test_counts(demo_builds: dict, suspicion: str) -> None:
    flow = demo_builds[f"{suspicion} published"].flow
    left = [flow["all_stays"]["count"], *(step["left"]["count"] for step in flow["steps"])]
    steps, cohort, onset, study = COUNTS[suspicion]
    assert left[:8] == steps
    names = ("suspected", "sofa_2", "sepsis3")
    assert tuple(flow["cohort"][name]["count"] for name in names) == cohort
    assert left[8] == sum(onset)
    assert (left[9], left[10], flow["study"]["sepsis"]["count"]) == study


def test_every_stay_is_listed_once_with_the_agreed_columns(demo_builds: dict) -> None:
    stays = demo_builds["corr24 published"].stays
    assert ["icustay_id", *stays.columns] == list(STAY_COLUMNS)
    assert len(stays) == 136 == stays.index.nunique()
    assert set(stays["in_cohort"]) == {"0", "1"}


def test_cohort_file_is_sorted_and_consistent_with_the_stays(demo_builds: dict) -> None:
    built = demo_builds["corr24 published"]
    assert built.cohort["icustay_id"].is_monotonic_increasing
    chosen = built.stays.loc[built.cohort["icustay_id"].astype(str)]
    assert (chosen["in_cohort"] == "1").all()
    assert list(chosen["sepsis3"].astype(int)) == list(built.cohort["y"])


def test_suspicion_agrees_with_a_plain_rendering(demo_builds: dict, second: Any) -> None:
    expected_of = {stay.icustay_id: second.suspicion(stay) for stay in second.stays}
    for rule in COUNTS:
        stays = demo_builds[f"{rule} published"].stays
        for stay in second.stays:
            expected = expected_of[stay.icustay_id][rule]
            got = stays.loc[str(stay.icustay_id), "suspicion_time"]
            assert got == ("" if expected is None else str(expected)), (rule, stay.icustay_id)


def test_sofa_agrees_with_a_plain_rendering(demo_builds: dict, second: Any) -> None:
    stays = demo_builds["corr24 published"].stays
    metavision = [stay for stay in second.stays if stay.dbsource == "metavision"]
    assert len(metavision) == 77
    for stay in metavision:
        organs = second.sofa(stay)
        for organ, score in organs.items():
            got = stays.loc[str(stay.icustay_id), organ]
            assert got == ("" if score is None else str(score)), (stay.icustay_id, organ)
        total = sum(score or 0 for score in organs.values())
        assert stays.loc[str(stay.icustay_id), "sofa"] == str(total)


@pytest.mark.parametrize("kind", ["published", "cleaned"])
def test_features_agree_with_a_plain_rendering(demo_builds: dict, second: Any, kind: str) -> None:
    stays = demo_builds[f"corr24 {kind}"].stays
    compared = 0
    for stay in second.stays:
        if stay.dbsource != "metavision":
            continue
        expected = second.features(stay, cleaned=kind == "cleaned")
        for name in FEATURE_NAMES:
            got = stays.loc[str(stay.icustay_id), name]
            if expected[name] is None:
                assert got == "", (stay.icustay_id, name)
            else:
                assert float(got) == pytest.approx(expected[name], rel=1e-12), (stay, name)
                compared += 1
    assert compared > 400


def test_onset_counts_from_the_first_charting(demo_builds: dict) -> None:
    cohort = demo_builds["corr24 published"].cohort
    septic = cohort[cohort["y"] == 1]
    assert ((septic["onset_hours"] > 3) & (septic["onset_hours"] <= 11)).all()
    assert cohort.loc[cohort["y"] == 0, "onset_hours"].isna().all()


def in_another_layout(demo: Path, layout: str, folder: Path) -> Path:
    """The demo as upper-case quoted CSV, as Parquet with other types, or as a DuckDB file."""
    database = folder / "mimic.duckdb"
    (folder / "tables").mkdir()
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE SCHEMA mimiciii")
        for table in TABLES:
            path = demo / f"{table.upper()}.csv.gz"
            source = f"read_csv('{path}', all_varchar = true, header = true, quote = '\"')"
            if layout == "upper-case CSV":
                described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
                shout = ", ".join(f'"{name}" AS "{name.upper()}"' for name, *_ in described)
                place = f"{folder / 'tables' / table.upper()}.csv"
                options = "(HEADER, FORCE_QUOTE *)"
                connection.execute(f"COPY (SELECT {shout} FROM {source}) TO '{place}' {options}")
            elif layout == "Parquet":
                place = f"{folder / 'tables' / table}.parquet"
                connection.execute(f"COPY (SELECT * FROM {source}) TO '{place}'")
            else:
                connection.execute(f"CREATE TABLE mimiciii.{table} AS SELECT * FROM {source}")
    return database if layout == "DuckDB" else folder / "tables"


@pytest.mark.parametrize("layout", some(["upper-case CSV", "Parquet", "DuckDB"], ["DuckDB"]))
def test_every_layout_gives_the_same_answer(
    demo: Path, demo_builds: dict, layout: str, tmp_path: Path
) -> None:
    stays = tmp_path / "stays.csv"
    tables = in_another_layout(demo, layout, tmp_path)
    build_cohort(tables, tmp_path / "cohort.parquet", stays=stays)
    got = pd.read_csv(stays, dtype=str, keep_default_na=False).set_index("icustay_id")
    pd.testing.assert_frame_equal(got, demo_builds["corr24 published"].stays)


def test_cleaning_changes_what_the_specification_says(demo_builds: dict) -> None:
    """On the cohort, one first and three last shock indices and nothing else."""
    published, cleaned = (demo_builds[f"corr24 {kind}"].stays for kind in ("published", "cleaned"))
    chosen = published.index[published["in_cohort"] == "1"]
    before = published.loc[chosen, list(FEATURE_NAMES)].replace("", np.nan).astype(float)
    after = cleaned.loc[chosen, list(FEATURE_NAMES)].replace("", np.nan).astype(float)
    differs = ~(np.isclose(before, after) | (before.isna() & after.isna()))
    changed = pd.Series(differs.sum(axis=0), index=FEATURE_NAMES)
    assert changed[changed > 0].to_dict() == {
        "first_shock_index_age": 1,
        "last_shock_index_age": 3,
    }


def test_ventilation_spells(demo_builds: dict, demo_folder: Path) -> None:
    """80 spells with both charting systems, 49 of them in MetaVision stays."""
    assert len(pd.read_parquet(demo_folder / "work" / "ventilation.parquet")) == 49
