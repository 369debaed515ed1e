"""What must hold for every page: nothing fetched, nothing broken, everything visible, legible."""

import re
from itertools import pairwise

import pytest
from choices import some
from legible import contrast

from dcem.report import document as doc
from dcem.report.to_html import to_html

SHELLED = ["comparison", "audit", "cohort", "demo", "comparison-no-overlap", "comparison-truth"]
REPORTS = some(SHELLED, SHELLED[:5])  # the demo knows the truth, too
PAGES = [*REPORTS, "leaderboard"]
# What the shell and its blocks do is the same on every page: a plain run tries it on these.
SHELL = some(SHELLED, SHELLED[:3])
DECORATION = {"artificial"}  # written across figures, faint on purpose

# Every figure and table: its box on the page, whether it is on the screen, what it says of itself.
BOXES = """() =>
  [...document.querySelectorAll("figure, figure svg, .picture, table, .wide, .scroll")]
  .filter(e => !e.closest(".view") || getComputedStyle(e.closest(".view")).display !== "none")
  .filter(e => !e.closest("details:not([open])"))
  .map(e => { const b = e.getBoundingClientRect();
    const scrolls = e.parentElement.closest(".picture, .wide, .scroll");
    return { what: e.tagName + "." + e.getAttribute("class"), left: b.left, right: b.right,
             width: b.width, height: b.height, scrolls: scrolls !== null }; })"""


@pytest.mark.parametrize("name", PAGES, scope="module")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_page_opens_quietly_and_asks_for_nothing(name, dark, look) -> None:
    opened = look(dark=dark)
    assert opened.complaints == []
    assert opened.requests == []
    assert opened.page.title()


@pytest.mark.parametrize("name", PAGES, scope="module")
@pytest.mark.parametrize("width", [1280, 390])
def test_everything_is_inside_the_page(name, width, look) -> None:
    page = look(width=width).page
    boxes = page.evaluate(BOXES)
    assert boxes
    for box in boxes:
        assert box["width"] > 0, box
        assert box["height"] > 0, box
        if not box["scrolls"]:  # what is wider scrolls inside a box that is not
            assert box["left"] >= 0, box
            assert box["right"] <= width, box
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", REPORTS)
def test_figures_and_tables_fit_a_wide_screen_whole(name, pages, show) -> None:
    """Nothing that is folded or behind a switch has to be scrolled, and no letter is cut off."""
    page = show(pages(name)).page
    hidden = page.evaluate(
        """() => {
             document.querySelectorAll("details").forEach(e => e.open = true);
             document.querySelectorAll(".view").forEach(e => e.style.display = "block");
             return [...document.querySelectorAll(".picture, .wide")]
               .filter(e => e.scrollWidth > e.clientWidth + 1
                 || (e.scrollHeight > e.clientHeight && getComputedStyle(e).overflowY !== "hidden"))
               .map(e => e.getAttribute("aria-label") + e.textContent.slice(0, 60)); }"""
    )
    assert hidden == []
    cut = page.evaluate(
        """() => [...document.querySelectorAll("figure svg")].flatMap(svg => {
             const frame = svg.getBoundingClientRect();
             return [...svg.querySelectorAll("text")].filter(text => {
               const b = text.getBoundingClientRect();
               return b.left < frame.left - 3 || b.right > frame.right + 3 ||
                      b.top < frame.top - 3 || b.bottom > frame.bottom + 3;
             }).map(text => svg.querySelector("title").textContent + ": " + text.textContent);
           })"""
    )
    assert cut == []


@pytest.mark.parametrize("name", PAGES, scope="module")
def test_headings_and_names_for_those_who_listen(name, look) -> None:
    page = look().page
    levels = [
        int(tag[1])
        for tag in page.eval_on_selector_all("h1,h2,h3,h4", "all => all.map(e => e.tagName)")
    ]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    if name == "leaderboard":
        page.select_option("#setting", "0")  # a single setting is drawn, all together are not
    named = page.eval_on_selector_all(
        "svg",
        """all => all.map(e => [e.getAttribute("role"), e.getAttribute("aria-label") ||
             (e.getAttribute("aria-labelledby") || "").split(" ")
               .map(id => document.getElementById(id)?.textContent).join(" ")])""",
    )
    assert named
    for role, said in named:
        assert role == "img"
        assert len(said.strip()) > 10
    repeated = page.evaluate(
        """() => { const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
             return ids.filter((id, i) => ids.indexOf(id) !== i); }"""
    )
    assert repeated == []
    assert page.get_attribute("html", "lang") == "en"


@pytest.mark.parametrize("name", PAGES, scope="module")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_is_legible(name, dark, look) -> None:
    """WCAG AA, 4.5 to 1, for every letter on the page, those in figures included."""
    page = look(dark=dark).page
    texts = contrast(page)
    assert len(texts) > 20
    faint = [t for t in texts if t["ratio"] < 4.5 and t["text"] not in DECORATION]
    assert faint == []


@pytest.mark.parametrize("name", SHELL, scope="module")
def test_the_theme_button_changes_the_colours_of_text_and_figures(name, pages, show, look) -> None:
    page = show(pages(name)).page

    def colours() -> list[str]:
        return page.evaluate(
            """() => [getComputedStyle(document.body).backgroundColor,
                      getComputedStyle(document.body).color,
                      getComputedStyle(document.querySelector("figure svg text")).fill]"""
        )

    light = colours()
    page.click("#theme")
    dark = colours()
    assert all(a != b for a, b in zip(light, dark, strict=True))
    background = "getComputedStyle(document.body).backgroundColor"
    assert look(dark=True).page.evaluate(background) == dark[0]
    page.click("#theme")
    assert colours() == light


@pytest.mark.parametrize("name", SHELL)
def test_nothing_is_lost_without_javascript(name, pages, show) -> None:
    page = show(pages(name), script=False).page
    assert not page.is_visible("#theme")
    for part in page.query_selector_all("details"):
        inside = part.query_selector(".folded")
        assert not inside.is_visible()
        part.query_selector("summary").click()
        assert inside.is_visible()
    for views in page.query_selector_all(".views"):
        labels, shown = views.query_selector_all(":scope > label"), None
        for place, label in enumerate(labels):
            label.click()
            shown = [view.is_visible() for view in views.query_selector_all(":scope > .view")]
            assert shown == [other == place for other in range(len(labels))]


@pytest.mark.parametrize("name", [*SHELL, "leaderboard"])
def test_paper_shows_everything_and_no_buttons(name, pages, show) -> None:
    page = show(pages(name), dark=True).page
    page.emulate_media(media="print")
    lost = page.evaluate(
        """() => [...document.querySelectorAll("h1, h2, h3, figure, table, figcaption")]
             .filter(e => e.getBoundingClientRect().height === 0)
             .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert lost == []
    for control in ("#theme", ".views > label", ".skip", "form"):
        assert not any(e.is_visible() for e in page.query_selector_all(control)), control
    cut = page.evaluate(
        """() => [...document.querySelectorAll(".picture")]
             .filter(e => e.scrollWidth > e.clientWidth + 1).length"""
    )
    assert cut == 0
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert min(int(n) for n in re.findall(r"\d+", paper)[:3]) > 240
    assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("name", SHELL)
def test_keys_reach_the_content_and_the_switches(name, pages, show) -> None:
    page = show(pages(name)).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("document.activeElement.getBoundingClientRect().top") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.focus("#theme")
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("name", ["audit", "comparison"])
def test_one_sheet_for_the_committee(name, pages, show) -> None:
    page = show(pages(name)).page
    assert page.is_visible("#sheet")
    sheet_only = "document.documentElement.dataset.print = 'sheet'"
    page.evaluate(sheet_only)
    printed = page.pdf(format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    assert page.evaluate("document.documentElement.dataset.print") is None  # once
    page.evaluate(sheet_only)
    page.emulate_media(media="print")
    assert page.is_visible("#answer")
    assert page.is_visible(".limits")
    assert not page.is_visible("#made")


def test_a_slider_moves_through_the_steps_of_its_table(pages, show) -> None:
    """Every step is in the table under it, so that nothing is lost without the script."""
    page = show(pages("audit")).page
    place = page.locator(".steps").first
    rows = place.evaluate(
        "e => [...e.nextElementSibling.querySelectorAll('tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.textContent))"
    )
    slider = place.locator("input")
    assert place.locator("dd").all_inner_texts() == rows[0]
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert place.locator("dd").all_inner_texts() == rows[1]
    page.keyboard.press("End")
    assert place.locator("dd").all_inner_texts() == rows[-1]
    assert rows[-1][0] in slider.get_attribute("aria-valuetext")


def test_every_view_can_be_shown_however_many_there_are(tmp_path, show) -> None:
    """A comparison of twelve methods has as many."""
    views = tuple(doc.View(f"by {i}", (doc.Text((f"view {i}",)),)) for i in range(12))
    section = doc.Section("s", "S", (doc.Views("v", "Show", views),))
    path = tmp_path / "views.html"
    path.write_text(to_html(doc.Document("T", "", None, None, (section,))))
    page = show(path, width=390).page
    for i in range(12):
        page.click(f'label[for="v-{i + 1}"]')
        assert page.locator(".view:visible").all_inner_texts() == [f"view {i}"]


@pytest.mark.parametrize(("name", "limit"), [("audit", 400_000), ("comparison", 1_000_000)])
def test_pages_are_small(name, limit, pages) -> None:
    assert pages(name).stat().st_size < limit


@pytest.mark.parametrize("name", ["audit", "comparison"], scope="module")
def test_the_answer_is_on_the_first_screen(name, look) -> None:
    """Verdict, how sure, the picture, the three numbers and what not to conclude."""
    page = look().page  # 1280 by 900
    for part in ("#answer", ".certainty", "table.dots", ".opening dl.numbers", ".limits"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= 900, part
