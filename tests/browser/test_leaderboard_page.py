"""The filters of the leaderboard: what is chosen is what the table shows."""

import pandas as pd

from dcem.benchmark import published
from dcem.benchmark.leaderboard import write_leaderboard


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
    choices.nth(2).select_option("0.5")
    assert page.locator("#setting option").all_inner_texts() == ["q_y 1, k 2, q_t 0.5"]
    assert page.locator("#head th").all_inner_texts()[2] == "Median"
    assert page.locator("#truth").is_visible()
    assert page.evaluate(sideways) == 0
