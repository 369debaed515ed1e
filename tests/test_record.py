"""What experiments share: a command line that follows from options, and means over repetitions."""

import importlib.util
import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


@pytest.fixture(scope="module")
def shared():
    spec = importlib.util.spec_from_file_location("shared_record", EXPERIMENTS / "_record.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_options_follow_from_their_defaults(shared, monkeypatch, tmp_path):
    words = ["x.py", "run", "--most-rows", "7", "--resume", "--only", "a", "--only", "b"]
    monkeypatch.setattr(sys, "argv", [*words, "--data", "d.csv", "--out", str(tmp_path)])
    ran, shown = [], []
    options = {"most_rows": 1, "resume": False, "only": [], "data": None, "seconds": 2.0}
    shared.command("Doc.", lambda **given: ran.append(given), shown.append, **options)
    told = {"most_rows": 7, "resume": True, "only": ["a", "b"], "data": Path("d.csv")}
    assert ran == [told | {"seconds": 2.0, "out": tmp_path}]
    assert shown == [tmp_path]


def test_means_are_of_what_there_is_and_in_order(shared):
    rows = [
        {"world": "z", "holds": True},
        {"world": "a", "holds": True, "error": 0.5},
        {"world": "z", "holds": False, "error": 2.0},
    ]
    found = shared.means(rows, ("world", "method"), ["z", "a"])
    assert [row["world"] for row in found] == ["z", "a"]
    assert found[0] == {"world": "z", "repetitions": 2, "holds": 0.5, "error": 2.0}
    assert [row["world"] for row in shared.means(rows, ["world"])] == ["a", "z"]


def test_recorded_rows_are_gone_on_from(shared, tmp_path):
    rows = [{"model": "fast", "auc": 0.5}, {"model": "slow", "auc": 0.25}]
    shared.record("run", rows, tmp_path, 1.0)
    assert shared.recorded("run", tmp_path) == rows
    assert shared.kept("run", tmp_path, ["fast"]) == rows[1:]
    assert shared.kept("run", tmp_path, []) == shared.recorded("other", tmp_path) == []
