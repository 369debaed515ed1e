"""The filters of the leaderboard: what is chosen is what the table shows."""


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
