"""The leaderboard: one file, honest about what is missing, nothing from elsewhere."""

import json
import re
import shutil

import pytest

from dcem.benchmark import published
from dcem.benchmark.files import load
from dcem.benchmark.leaderboard import leaderboard, write_leaderboard
from dcem.benchmark.reading import export, results
from dcem.benchmark.runner import run


@pytest.fixture
def out(plain, tmp_path):
    run(load(plain).only(["y-obs"]), tmp_path / "out", device="cpu")
    run(load(plain), tmp_path / "out", device="cpu", max_seconds=0)  # plans the rest, does nothing
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


def test_a_table_gives_the_same_page(out, tmp_path):
    export(out, tmp_path / "a.csv")
    assert data_of(leaderboard(tmp_path / "a.csv"))["boards"] == data_of(leaderboard(out))["boards"]


def test_nothing_is_loaded_from_elsewhere(out, tmp_path):
    write_leaderboard(out, tmp_path / "board.html")
    page = (tmp_path / "board.html").read_text(encoding="utf-8")
    links = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", page)
    assert links == ["data:,"]
    assert "fetch(" not in page
    assert set(re.findall(r"https?://[^\s\"']+", page)) == {"http://www.w3.org/2000/svg"}


def test_names_cannot_break_out_of_the_page(plain, tmp_path):
    nasty = "</script><b>x"
    plain.write_text(plain.read_text().replace('name = ["y-obs", "tested-only"]', 'name = "y-obs"'))
    plain.write_text(plain.read_text() + f'label = "{nasty}"\n')
    run(load(plain), tmp_path / "out", device="cpu")
    page = leaderboard(tmp_path / "out")
    assert nasty not in page
    assert data_of(page)["boards"][0]["settings"][0]["rows"][0]["method"] == nasty


@pytest.mark.slow
def test_in_a_browser_the_table_follows_the_choices(tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium here")
    frame = published.figures().pivot(
        index=["q_y", "k", "q_t", "method"], columns="metric", values="median"
    )
    frame = frame.reset_index().assign(auc_difference=0.0, roc_gap_grid=0.0, xauc_difference=0.0)
    frame.to_csv(tmp_path / "a.csv", index=False)
    write_leaderboard(tmp_path / "a.csv", tmp_path / "board.html")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        errors, asked = [], []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "board.html").as_uri())
        assert page.locator("#body tr").count() == 14
        page.select_option("#setting", label="k 1, q_t 2")
        page.select_option("#metric", "roc_gap")
        shown = page.locator("#body th").all_inner_texts()
        page.select_option("#metric", "auc")
        by_auc = page.locator("#body th").all_inner_texts()
        browser.close()
    here = frame[(frame["k"] == 1) & (frame["q_t"] == 2)].set_index("method")
    assert len(shown) == 14
    assert here["roc_gap"][shown].is_monotonic_increasing  # two are equal: either may come first
    assert here["auc"][by_auc].is_monotonic_decreasing
    assert by_auc[0] == "y-model"
    assert by_auc[-1] == "truncated-lq"
    assert not errors
    assert len(asked) == 1
