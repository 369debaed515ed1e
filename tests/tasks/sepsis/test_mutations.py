"""The rule cases bite: `speed/sepsis_mutations.py` changes a query, and a case notices."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from dcem.tasks.sepsis import stages


@pytest.fixture(scope="module")
def script() -> Any:
    path = Path(__file__).parents[3] / "speed" / "sepsis_mutations.py"
    spec = importlib.util.spec_from_file_location("sepsis_mutations", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sepsis_mutations"] = module
    spec.loader.exec_module(module)
    return module


def test_changes_are_single_and_leave_comments_alone(script: Any) -> None:
    for file in stages.QUESTIONS:
        text = stages.query(file)
        comments = [line for line in text.split("\n") if line.startswith("--")]
        for one in script.mutations(file):
            assert one.text != text
            assert [line for line in one.text.split("\n") if line.startswith("--")] == comments


def test_a_case_notices(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = script.Cases(tmp_path)
    assert cases.noticed() is None
    original = stages.query
    wanted = {"15": "sofa >= 2", "18": "onset_hours <= 11", "13": "227488", "14": "urine < 500"}
    for number, line in wanted.items():
        (file,) = (name for name in stages.QUESTIONS if name.startswith(number))
        one = next(one for one in script.mutations(file) if line in one.line)
        monkeypatch.setattr(
            stages, "query", lambda name, one=one: one.text if name == one.query else original(name)
        )
        assert cases.noticed() is not None, one.what
