"""The recorded coverage experiment: what it says, and that two parts of a run make the whole."""

import importlib.util
import sys
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS, RESULTS = ROOT / "experiments", ROOT / "results"


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    sys.path.insert(0, str(EXPERIMENTS))
    try:
        spec = importlib.util.spec_from_file_location(
            "coverage_record", EXPERIMENTS / "coverage.py"
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["coverage_record"] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(EXPERIMENTS))
    return module


def test_two_parts_of_a_run_are_the_whole(coverage: ModuleType) -> None:
    rng = np.random.default_rng(0)
    rows = []
    for cell in coverage.CELLS[:3]:
        for repetition in range(20):
            for target in ("dr", "truth"):
                refused = target == "dr" and rng.random() < 0.2
                rows.append(
                    {
                        **asdict(cell), "repetition": repetition, "target": target,
                        "metric": "auc", "truth": 0.5 + 0.01 * repetition, "reach": rng.random(),
                        "estimate": np.nan if refused else rng.normal(0.5, 0.1),
                        "width": np.nan if refused else rng.random(),
                        "covered": not refused and rng.random() < 0.9,
                    }
                )  # fmt: skip
    table = pd.DataFrame(rows)
    whole = coverage.summarise(table)
    first, second = (table[table["repetition"] < 12], table[table["repetition"] >= 12])
    both = coverage.together(coverage.summarise(first), coverage.summarise(second))
    pd.testing.assert_frame_equal(whole, both[whole.columns], check_dtype=False)


def test_recorded_intervals_hold_where_there_is_overlap() -> None:
    table = pd.read_csv(RESULTS / "coverage.csv")
    judged = table[table["target"].isin(["dr", "ipw"]) & (table["overlap"] == "yes")]
    assert set(judged["metric"]) == {"auc", "auc_difference"}
    assert (judged["repetitions"] == 200).all()
    assert (judged["not_estimable"] == 0).all()
    assert judged["coverage"].between(0.90, 0.98).all()
    assert (judged[judged["target"] == "dr"]["times_full_truth"] <= 2.5).all()


def test_recorded_cells_without_overlap_are_refused_or_about_some() -> None:
    table = pd.read_csv(RESULTS / "coverage.csv")
    part = table[table["target"].isin(["ipw", "dr"]) & (table["overlap"] == "no")]
    refused = part["not_estimable"] == part["repetitions"]
    steep = part["table"].eq("simulated")
    assert refused[steep & part["metric"].eq("auc_difference")].all()
    assert (part["reach"] < 0.7).all()
    assert (part["coverage"][~refused] >= 0.92).all()  # of those within reach
