"""The script that turns a store into recorded runs keeps everything, in the table or beside it."""

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from dcem.benchmark.read import results
from dcem.benchmark.run import run
from dcem.benchmark.toml_file import load_benchmark

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.fixture
def from_store(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    import from_store

    monkeypatch.setattr(from_store, "RESULTS", tmp_path)
    yield from_store
    for name in ("from_store", "_record"):
        sys.modules.pop(name, None)


def test_what_the_table_drops_the_json_counts(from_store, plain, tmp_path):
    run(load_benchmark(plain), tmp_path / "out", device="cpu")
    frame = results(tmp_path / "out")
    from_store.write("some", frame, ("plain",))
    table = pd.read_csv(tmp_path / "some.csv")
    beside = json.loads((tmp_path / "some.json").read_text())
    whole = set(frame.dropna(axis=1, how="all").columns)
    assert whole - set(table.columns) == set(from_store.IN_JSON)
    assert {"cell", "roc_gap_grid", "memory_mb"} <= set(table.columns)
    assert set(beside["rows_by_versions"]) == set(frame["versions"])
    assert beside["rows_by_fit_seed"] == {"0": 4, "1": 4, "2": 4}
    assert sum(beside["rows_by_day_finished"].values()) == len(frame) == beside["rows"]


def test_other_records_say_the_commit(from_store):
    from _record import provenance
    from dcem.benchmark.machine import commit

    assert provenance(1.0)["commit"] == (commit() or "unknown")
