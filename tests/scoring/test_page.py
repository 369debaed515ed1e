"""The page about files is true: its Python runs."""

import re
from pathlib import Path

import numpy as np
import pytest

from .conftest import visits

PAGE = Path(__file__).resolve().parents[2] / "docs" / "table.md"


@pytest.mark.filterwarnings("ignore")
def test_the_python_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = visits(600)
    frame["cultured"] = (frame["result"] != "not ordered").astype(int)
    frame["sepsis"] = np.where(frame["cultured"], frame["result"] == "high", 0)
    frame.drop(columns="result").to_csv("visits.csv", index=False)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {}
    exec(compile(code.replace("members=5", "members=1"), str(PAGE), "exec"), names)
    assert (tmp_path / "scores.parquet").exists()
    assert names["who"]["probability"].sum() == pytest.approx(100)
