"""The leaderboard: one file, honest about what is missing, nothing from elsewhere."""

import json
import re

import pandas as pd
import pytest

from dcem.benchmark.read import export, results
from dcem.benchmark.run import run
from dcem.benchmark.toml_file import load_benchmark
from dcem.report.leaderboard import _board, leaderboard, write_leaderboard


@pytest.fixture
def out(plain, tmp_path):
    run(load_benchmark(plain).only(["y-obs"]), tmp_path / "out", device="cpu")
    run(
        load_benchmark(plain), tmp_path / "out", device="cpu", max_seconds=0
    )  # plans the rest, does nothing
    return tmp_path / "out"


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_holds_the_results(out):
    data = data_of(leaderboard(out))
    (board,) = data["boards"]
    (row,) = board["settings"][0]["rows"]
    frame = results(out)
    assert row["method"] == "y-obs"
    assert row["n"] == 6
    expected = [frame["auc"].median(), frame["auc"].min(), frame["auc"].max()]
    assert row["auc"] == pytest.approx(expected, abs=1e-6)


def test_missing_cells_are_told(out):
    assert data_of(leaderboard(out))["missing"] == ["plain, tested-only: 6 to do"]


def test_a_table_gives_the_same_page_but_for_what_the_benchmark_is_for(out, tmp_path):
    export(out, tmp_path / "a.csv")
    (table,), (store,) = (data_of(leaderboard(p))["boards"] for p in (tmp_path / "a.csv", out))
    assert store.pop("about") == "Small enough for a test."
    assert table.pop("about") == ""
    assert table == store


def test_methods_that_were_given_the_truth_are_marked():
    frame = pd.DataFrame(
        [("y-model", "published"), ("sar-em", "published"), ("sar-em", "corrected")],
        columns=["method", "variant"],
    )
    frame = frame.assign(label=["oracle", "as published", "repaired"], auc=0.5, auc_difference=0.0)
    rows = _board("some", "", frame)["settings"][0]["rows"]
    marked = {row["method"]: row.get("truth", False) for row in rows}
    assert marked == {"oracle": True, "as published": True, "repaired": False}


def test_rows_say_what_sets_them_apart_from_most():
    frame = pd.DataFrame(
        [
            ("tested-only", "tested-only", "published", "published", ""),
            ("as published", "dcem", "published", "published", '{"start": "tested-only"}'),
            ("dcem", "dcem", "corrected", "fast", '{"variant": "corrected", "temperature": 0.1}'),
        ],
        columns=["label", "method", "variant", "schedule", "params"],
    )
    board = _board("some", "", frame.assign(auc=0.5, auc_difference=0.0))
    assert board["ways"] == "variant published, schedule published"
    assert {row["method"]: row["how"] for row in board["settings"][0]["rows"]} == {
        "tested-only": "",
        "as published": "dcem, start tested-only",
        "dcem": "variant corrected, schedule fast, temperature 0.1",
    }


def test_two_outcomes_of_a_survey_are_two_settings():
    frame = pd.DataFrame({"outcome": ["diabetes", "prediabetes"], "auc": [0.7, 0.9]})
    frame = frame.assign(task="nhanes", method="y-obs", auc_difference=0.0)
    settings = _board("some", "", frame)["settings"]
    assert {one["name"]: one["rows"][0]["auc"][0] for one in settings} == {
        "outcome diabetes": 0.7, "outcome prediabetes": 0.9
    }  # fmt: skip


def test_settings_are_written_as_in_the_paper():
    frame = pd.DataFrame({"k": [1 / 3, 0.3333, 0.1, 0.25, 4 / 3], "method": "dcem"})
    board = _board("some", "", frame.assign(auc=0.5, auc_difference=0.0))
    assert {one["name"] for one in board["settings"]} == {"k 1/3", "k 0.1", "k 1/4", "k 4/3"}


def test_nothing_is_loaded_from_elsewhere(out, tmp_path):
    write_leaderboard(out, tmp_path / "board.html")
    page = (tmp_path / "board.html").read_text(encoding="utf-8")
    links = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", page)
    assert set(links) == {"data:,", "#main"}
    assert "fetch(" not in page
    assert set(re.findall(r"https?://[^\s\"']+", page)) == {"http://www.w3.org/2000/svg"}


def test_names_cannot_break_out_of_the_page(plain, tmp_path):
    nasty = "</script><b>x"
    plain.write_text(plain.read_text().replace('name = ["y-obs", "tested-only"]', 'name = "y-obs"'))
    plain.write_text(plain.read_text() + f'label = "{nasty}"\n')
    run(load_benchmark(plain), tmp_path / "out", device="cpu")
    page = leaderboard(tmp_path / "out")
    assert nasty not in page
    assert data_of(page)["boards"][0]["settings"][0]["rows"][0]["method"] == nasty
