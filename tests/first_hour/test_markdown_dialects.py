"""A name in a page as Markdown is no tag and no link, in whatever dialect the page is read."""

from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from dcem.estimation.findings import Finding
from dcem.report import document as doc
from dcem.report.to_markdown import to_markdown

NAMES = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\\<b>x", "\\\\<b>x", "<!-- x",
    "<a href=javascript:x>", "[x](javascript:alert(1))", "[x]: javascript:alert(1)", "`", "`<b>x",
    "![x](http://there/x.png)", "<http://there>", "``<b>``x`", "&lt;b&gt;", "&#60;b>", "<?php x",
    "</td><script>", "a|<b>|c", "<svg/onload=a>", "<![CDATA[x]]>", "[x]", "[x][x]", "$<b>$",
    "~~~<b>", "> <b>", "# <b>", "1. <b>", "<b", "x`<i>`y", "\\`<b>\\`", "]( <b>", "a\\", "<B >",
)  # fmt: skip
PLAIN = {"h1", "h2", "h3", "p", "ul", "ol", "li", "strong", "em", "table", "thead", "tbody", "tr",
         "th", "td", "code", "pre", "hr", "br", "blockquote"}  # fmt: skip


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.live: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        named = [name for name, _ in attrs if name in ("href", "src") or name.startswith("on")]
        self.live += [tag] * (tag not in PLAIN) + named


def commonmark(text: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(text)


def python_markdown(text: str) -> str:
    return pytest.importorskip("markdown").markdown(text)


def python_markdown_with_tables(text: str) -> str:
    return pytest.importorskip("markdown").markdown(text, extensions=["extra"])


def page(name: str, other: str) -> str:
    blocks = (
        doc.Table(
            name, ("group", other), ((doc.Name(name), doc.Name(other)), (doc.Code(name), "x"))
        ),
        doc.Text((f"{name} comes first", other)),
        doc.Terms(((doc.Code(name), f"about {other}"), (doc.Name(name), other))),
        doc.Facts({"file": name}),
    )
    finding = Finding("k", "note", f"{name} is tested less", f"{other}; `{name}`.", remedy=name)
    sections = (doc.Section("s", name, blocks),)
    names = frozenset({name, other})
    return to_markdown(
        doc.Document(name, f"About {other}.", None, doc.Findings((finding,)), sections, names=names)
    )


@pytest.mark.parametrize(
    "render", [commonmark, python_markdown, python_markdown_with_tables], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("name", NAMES)
def test_names_stay_names(render, name):
    for other in NAMES[:8]:
        assert Tags(render(page(name, other))).live == [], other


def test_a_name_without_signs_reads_as_it_is():
    assert "| heart_rate, <65 | a & b |" in page("heart_rate, <65", "a & b")
