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
    frame = visits(400)
    frame["cultured"] = (frame["result"] != "not ordered").astype(int)
    frame["sepsis"] = np.where(frame["cultured"], frame["result"] == "high", 0)
    frame.drop(columns="result").to_csv("visits.csv", index=False)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    before, after = code.split("# with the results in the table")
    names: dict = {}
    exec(compile(before, str(PAGE), "exec"), names)
    assert (tmp_path / "scores.parquet").exists()
    who = names["who"]
    assert who["probability"].sum() == pytest.approx(100)
    drawn = who.loc[who["drawn"], "row"]
    assert len(drawn) == 100
    assert not frame.loc[drawn, "cultured"].any()
    frame.loc[drawn, "cultured"] = 1  # and every other test finds it
    frame.loc[drawn, "sepsis"] = np.arange(len(drawn)) % 2
    frame.drop(columns="result").to_csv("visits2.csv", index=False)
    exec(compile("#" + after, str(PAGE), "exec"), names)
    assert names["model2"].encoder is names["model"].encoder
