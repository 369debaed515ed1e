"""The filters of the leaderboard: what is chosen is what the table shows."""

import pandas as pd
import pytest

from dcem.benchmark.run import run
from dcem.benchmark.toml_file import load_benchmark
from dcem.paper import published
from dcem.report.leaderboard import write_leaderboard

FILE = """
[[tasks]]
n_train = 300
n_validation = 300
n_test = 300
seed = 0
[[methods]]
name = ["y-obs", "tested-only"]
params = {steps = 5}
"""


@pytest.fixture
def plain_store(tmp_path):
    """A store in which one of two methods has no result."""
    (tmp_path / "mine.toml").write_text(FILE)
    benchmark = load_benchmark(tmp_path / "mine.toml")
    run(benchmark.only(["y-obs"]), tmp_path / "out", device="cpu")
    run(benchmark, tmp_path / "out", device="cpu", max_seconds=0)
    return tmp_path / "out"


def rows(page) -> list[str]:
    return page.eval_on_selector_all("#body tr", "all => all.map(row => row.textContent)")


def test_the_metric_changes_the_rows_and_the_caption(pages, show) -> None:
    page = show(pages("leaderboard")).page
    before, caption = rows(page), page.text_content("#caption")
    page.select_option("#metric", "roc_gap")
    assert rows(page) != before
    assert page.text_content("#caption") != caption
    assert "lower is better" in page.text_content("#caption")


def test_the_setting_changes_the_rows_and_ranks_stay_in_order(pages, show) -> None:
    page = show(pages("leaderboard")).page
    options = page.eval_on_selector_all("#setting option", "all => all.map(o => o.value)")
    assert len(options) > 1
    seen = []
    for option in options:
        page.select_option("#setting", option)
        shown = rows(page)
        assert shown not in seen
        seen.append(shown)
        ranks = page.eval_on_selector_all(
            "#body tr", "all => all.map(row => Number(row.children[0].textContent))"
        )
        assert ranks == sorted(ranks)
    page.select_option("#setting", options[-1])
    assert page.is_visible("#body svg")


def test_another_benchmark_begins_with_all_its_settings(pages, show) -> None:
    page = show(pages("leaderboard")).page
    page.select_option("#setting", "1")
    page.select_option("#board", label="figure-2")
    assert page.input_value("#setting") == "all"


def test_the_table_follows_the_choices(show, tmp_path) -> None:
    frame = published.figures().pivot(
        index=["q_y", "k", "q_t", "method"], columns="metric", values="median"
    )
    frame = frame.reset_index().assign(auc_difference=0.0, roc_gap_grid=0.0, xauc_difference=0.0)
    frame.to_csv(tmp_path / "a.csv", index=False)
    write_leaderboard(tmp_path / "a.csv", tmp_path / "board.html")
    opened = show(tmp_path / "board.html")
    page = opened.page
    assert page.locator("#body tr").count() == 14
    page.select_option("#setting", label="k 1, q_t 2")
    page.select_option("#metric", "roc_gap")
    shown = page.locator("#body th").all_inner_texts()
    page.select_option("#metric", "auc")
    by_auc = page.locator("#body th").all_inner_texts()
    here = frame[(frame["k"] == 1) & (frame["q_t"] == 2)].set_index("method")
    assert len(shown) == 14
    assert here["roc_gap"][shown].is_monotonic_increasing  # two are equal: either may come first
    assert here["auc"][by_auc].is_monotonic_decreasing
    assert by_auc[0] == "y-model"
    assert by_auc[-1] == "truncated-lq"
    assert not opened.complaints
    assert not opened.requests


def test_many_settings_are_narrowed_by_parameter_and_fit_a_phone(show, tmp_path) -> None:
    rows = [
        {"q_y": q_y, "k": k, "q_t": q_t, "method": method, "auc": auc + 0.01 * k}
        | {"auc_difference": 0.0}
        for q_y in (0.5, 1.0, 2.0)
        for k in (0.5, 1.0, 2.0)
        for q_t in (0.5, 1.0, 2.0)
        for method, auc in (("no-causal-regularization", 0.7), ("y-model", 0.9))
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    write_leaderboard(tmp_path / "a.csv", tmp_path / "board.html")
    page = show(tmp_path / "board.html", width=390).page
    sideways = "(e => e.scrollWidth - e.clientWidth)(document.querySelector('.scroll'))"
    assert page.evaluate(sideways) == 0  # every number is in sight
    choices = page.locator("#filters select")
    assert choices.count() == 3
    assert page.locator("#setting option").count() == 28
    choices.nth(1).select_option("2")  # k
    assert page.locator("#setting option").count() == 10
    assert "at these 9 settings" in page.locator("#caption").inner_text()
    assert page.locator("#body tr").first.locator("td").all_inner_texts()[1] == "0.9200"
    choices.nth(0).select_option("1")
    choices.nth(2).select_option("1/2")
    assert page.locator("#setting option").all_inner_texts() == ["q_y 1, k 2, q_t 1/2"]
    assert page.locator("#head th").all_inner_texts()[2] == "Median"
    assert page.locator("#truth").is_visible()
    assert page.evaluate(sideways) == 0


def test_methods_that_were_given_the_truth_take_no_place(show, tmp_path) -> None:
    rows = [
        {"k": k, "method": method, "label": label, "auc": auc, "auc_difference": 0.0}
        | {"variant": variant, "params": params}
        for k in (1 / 3, 1.0)
        for method, label, auc, variant, params in (
            ("y-model", "y-model", 0.9, "corrected", ""),
            ("dcem", "mine", 0.8, "corrected", '{"temperature": 0.1}'),
            ("tested-only", "tested-only", 0.7, "published", ""),
        )
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    write_leaderboard(tmp_path / "a.csv", tmp_path / "board.html")
    page = show(tmp_path / "board.html", width=390).page
    shown = page.locator("#body tr")
    ranks = [row.locator("td").all_inner_texts() for row in shown.all()]
    assert [(row[0], row[3]) for row in ranks] == [("–", "–"), ("1.00", "2"), ("2.00", "0")]
    names = [name.replace("\n", " / ") for name in shown.locator("th").all_inner_texts()]
    assert names == ["y-model", "mine / dcem, temperature 0.1", "tested-only / variant published"]
    assert "variant corrected" in page.locator("#ways").inner_text()
    page.select_option("#setting", label="k 1/3")
    places = [row.locator("td").first.inner_text() for row in shown.all()]
    assert places == ["–", "1", "2"]


def test_one_method_is_not_several(show, plain_store, tmp_path) -> None:
    write_leaderboard(plain_store, tmp_path / "board.html")
    page = show(tmp_path / "board.html").page
    words = page.locator("#missing summary").inner_text()
    assert words == "Not complete: 1 method has cells without a result (mine)"
