from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("duckdb", reason="the sepsis extra is not installed")

from dcem.tasks.sepsis.artificial import write_artificial
from dcem.tasks.sepsis.cohort import CohortBuild, build_cohort


@pytest.fixture(scope="session")
def demo(shared: Path) -> Path:
    """The real MIMIC-III demo."""
    folder = shared / "mimic-iii-demo"
    if not folder.is_dir():
        pytest.skip("the MIMIC-III demo is not here: expected 'shared/mimic-iii-demo'")
    return folder


@pytest.fixture(scope="session")
def second(demo: Path) -> Any:
    """The demo behind a second, plain rendering of the logic (`plain.py`)."""
    path = Path(__file__).with_name("plain.py")
    spec = importlib.util.spec_from_file_location("sepsis_plain", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sepsis_plain"] = module
    spec.loader.exec_module(module)
    return module.Demo(demo)


class Built:
    """A build with its outputs read back."""

    def __init__(self, build: CohortBuild) -> None:
        assert build.stays is not None
        self.build, self.flow, self.quality = build, build.flow, build.quality
        self.stays = pd.read_csv(build.stays, dtype=str, keep_default_na=False).set_index(
            "icustay_id"
        )
        self.cohort = pd.read_parquet(build.out)


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the demo is built; its stages, in `work`, are made once."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="session")
def demo_shared(demo: Path, demo_folder: Path) -> CohortBuild:
    """The demo as a hospital would share it: small counts withheld."""
    out, work = demo_folder / "shared.parquet", demo_folder / "work"
    return build_cohort(demo, out, work=work, release="demo")


@pytest.fixture(scope="session")
def demo_builds(demo: Path, demo_folder: Path) -> dict[str, Built]:
    """The demo under every rule, and with cleaned features."""
    folder = demo_folder
    builds = {}
    for options in ("corr24 published", "v2018 published", "head2019 published", "corr24 cleaned"):
        suspicion, features = options.split()
        builds[options] = Built(
            build_cohort(
                demo,
                folder / f"{suspicion}-{features}.parquet",
                stays=folder / f"{suspicion}-{features}.csv",
                suspicion=suspicion,
                features=features,
                work=folder / "work",
                show_small_cells=True,
            )
        )
    return builds


@pytest.fixture(scope="session")
def rules_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One invented patient for each side of each rule."""
    return write_artificial(tmp_path_factory.mktemp("rules") / "tables", "rules")


@pytest.fixture(scope="session")
def cohort_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small invented cohort, as Parquet."""
    folder = tmp_path_factory.mktemp("cohort") / "tables"
    return write_artificial(folder, "cohort", stays=1_500, layout="parquet")


@pytest.fixture(scope="session")
def cohort_build(cohort_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> CohortBuild:
    return build_cohort(cohort_folder, tmp_path_factory.mktemp("built") / "cohort.parquet")
