import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from math import nan

import pytest

from dcem.metrics.estimate import Estimate
from dcem.report.figures.comparison import draw_all
from dcem.report.html import render
from dcem.report.style import PALETTE, inline_svg

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Collects what a browser would load, and checks that tags close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.ids, self.fetches, self.headings = [], [], [], []
        self.feed(text)
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in {"src", "href", "xlink:href", "data"}:
                self.fetches.append(value)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def text(comparison) -> str:
    return render(comparison)


def test_page_needs_nothing_from_outside(text) -> None:
    page = Page(text)
    assert all(url.startswith("#") or url == "data:," for url in page.fetches), page.fetches
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert "default-src 'none'" in text


def test_page_is_well_formed_and_accessible(text) -> None:
    page = Page(text)
    assert len(page.ids) == len(set(page.ids)), "ids repeat"
    assert page.headings[0] == "h1"
    assert page.headings.count("h1") == 1
    assert set(page.headings) <= {"h1", "h2"}
    assert '<html lang="en">' in text
    svgs = re.findall(r"<svg [^>]*>", text)
    assert len(svgs) == 3
    for svg in svgs:
        assert 'role="img"' in svg
        for name in re.search(r'aria-labelledby="([^"]*)"', svg)[1].split():
            assert f'id="{name}"' in text
    for anchor in re.findall(r'href="#([^"]+)"', text):
        assert anchor in page.ids


def test_what_users_wrote_is_escaped(text) -> None:
    assert "A &lt;comparison&gt; of methods" in text
    assert "What dcem does &amp; why." in text
    assert "<comparison>" not in text


def test_page_shows_the_numbers(text, comparison) -> None:
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text))
    for expected in (".846 [.836, .856]", "≤ .020", "1,234 resamples", "300 (30 %)", "0.0.test"):
        assert expected in plain
    assert "<code>dcem</code> ranks people better than <code>y-obs</code>" in text
    assert text.count("given the truth") >= 1


def test_same_comparison_same_page(comparison) -> None:
    assert render(comparison) == render(comparison)


def test_not_estimable_is_shown_not_drawn(comparison) -> None:
    first, *rest = comparison.methods
    lost = replace(
        first,
        roc_gap=Estimate(nan, reason="group white has no positives"),
        gap_by_chance=nan,
        curves={"Black": first.curves["Black"]},
    )
    text = render(replace(comparison, methods=(lost, *rest)))
    assert "not estimable: group white has no positives" in text
    assert "nan" not in re.sub(r"<[^>]+>", "", text).lower().split()


def test_figures_follow_the_theme_and_are_valid_xml(comparison) -> None:
    for drawing in draw_all(comparison).values():
        svg = inline_svg(drawing)
        root = ElementTree.fromstring(svg)
        assert root.find("{*}title").text == drawing.title
        assert root.find("{*}desc").text
        colours = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", svg))
        assert not colours, f"{drawing.name}: colours outside the palette {colours}"
        assert "font-family" not in svg


def contrast(first: str, second: str) -> float:
    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", [n for n in PALETTE if n not in {"paper", "grid", "faint"}])
@pytest.mark.parametrize("dark", [False, True])
def test_text_and_lines_have_enough_contrast(name, dark) -> None:
    """WCAG AA for text, 4.5 to 1, on the page of each theme."""
    assert contrast(PALETTE[name][dark], PALETTE["paper"][dark]) >= 4.5


def test_palette_colours_are_distinct() -> None:
    """Each is replaced by its own CSS variable, so no two may share a light colour."""
    assert len({ink.light for ink in PALETTE.values()}) == len(PALETTE)
