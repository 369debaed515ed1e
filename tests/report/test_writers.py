"""Four writers, one document: the same numbers everywhere, names as they are, nothing fetched."""

import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from math import nan

import pytest
from document_cells import cells
from made_up import made_up_comparison
from markdown_it import MarkdownIt
from rich.console import Console

from dcem.metrics.estimate import Estimate
from dcem.report import document as doc
from dcem.report.compare import compare_document
from dcem.report.document import pieces_of
from dcem.report.to_html import cell as html_cell
from dcem.report.to_html import to_html
from dcem.report.to_json import to_json
from dcem.report.to_markdown import to_markdown
from dcem.report.to_terminal import to_terminal

NASTY = "[/b] <i>$x_1$</i> a|b `c` _d_"
VOID = {"meta", "link", "br", "hr", "img", "input"}


def small() -> doc.Document:
    """Every kind of block and cell, and a name that no writer may take for markup."""
    number = doc.Number(Estimate(-0.00004, -0.021, 0.0333), "gain")
    rows = (
        (doc.Name(NASTY), number, doc.Count(1234, 5000), doc.Missing("too few"), "a `word`"),
        (doc.Code("dcem", "given the truth"), doc.Number(Estimate(0.5), beside="by chance"),
         doc.WITHHELD, doc.NOTHING, "plain"),
    )  # fmt: skip
    table = doc.Table("Numbers", ("name", "gain", "count", "none", "word"), rows, "A note.", (4,))
    steps = doc.table("Steps", ("at", "is"), [(doc.estimate(0.1, "percent"), "low")], start=0)
    dots = doc.Dots(
        "Points",
        ("share",),
        (
            doc.DotRow(doc.Name(NASTY), (doc.Number(Estimate(0.2, 0.1, 0.3), "percent"),),
                       (doc.Number(Estimate(0.25), "percent"),), "group-1", True),
            doc.DotRow(doc.Name("none"), (doc.Missing("nobody"),)),
        ),
        "How to read it.",
        "the others",
        marked="unlike the others",
    )  # fmt: skip
    finding = doc.Finding("tested-less", "serious", "testing", headline=f"{NASTY} is tested less",
                          text="Text.", remedy="Look.")  # fmt: skip
    return doc.Document(
        title="A <title>",
        lead="What it is.",
        opening=doc.Opening(
            doc.Verdict("caution", "Yes", ("Because.",), "Quite.", finding),
            (doc.KeyNumber(doc.Number(Estimate(-0.1, -0.2, -0.05), "points"), "difference"),),
            dots,
            ("That all is well.",),
        ),
        findings=doc.Findings((finding,)),
        sections=(
            doc.Section(
                "one",
                "One",
                (
                    table,
                    steps,
                    doc.Text(("A point.",), bullets=True),
                    doc.Terms(((doc.Code("dcem"), "does it"),)),
                    doc.Fold("More", (doc.table("Inside", ("a", "b"), [("c", doc.Count(77))]),)),
                    doc.Views("v", "Show", (doc.View("V1", (doc.Text(("x",)),)),
                                            doc.View("V2", (doc.Text(("y",)),)))),
                ),
            ),
            doc.Section("made", "Made", (doc.Facts({"file": NASTY}),)),
        ),
        names=frozenset([NASTY]),
        data={"some": Estimate(nan, reason="no")},
    )  # fmt: skip


def terminal(document: doc.Document, width: int = 110, folded: bool = True) -> str:
    stream = io.StringIO()
    to_terminal(document, Console(file=stream, width=width), folded=folded)
    return stream.getvalue()


def page(document: doc.Document) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", to_html(document))).replace("\u00a0", " ")


def markdown(document: doc.Document) -> str:
    return to_markdown(document).replace("\\", "")


def first_views(thing):
    """What Markdown has of a document: of several views of one thing, the first."""
    if isinstance(thing, tuple):
        return tuple(map(first_views, thing))
    if isinstance(thing, doc.Views):
        thing = replace(thing, views=thing.views[:1])
    if not isinstance(thing, doc.Document | doc.Section | doc.Fold | doc.Views | doc.View):
        return thing
    inside = [name for name in ("sections", "blocks", "views") if hasattr(thing, name)]
    return replace(thing, **{name: first_views(getattr(thing, name)) for name in inside})


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_in_short_the_answer_and_what_to_do_are_left() -> None:
    """What a terminal shows beside a page: no explanation, no note, no table but the first."""
    whole = small()
    note = doc.Finding("overlap", "note", "overlap", headline="By the way", text="A note.")
    document = replace(whole, findings=doc.Findings((*whole.findings.items, note)))
    text = terminal(document.in_short())
    assert text.strip().splitlines()[0] == whole.title  # the question, before its answer
    for said in ("Yes", "Quite.", "That all is well.", "is tested less", "What to do: Look."):
        assert said in text
    for left_out in ("Text.", "By the way", "Numbers"):
        assert left_out in terminal(document)
        assert left_out not in text


@pytest.mark.parametrize("write", [page, markdown, terminal], ids=lambda f: f.__name__)
@pytest.mark.parametrize("make", [small, lambda: compare_document(made_up_comparison(n_methods=2))])
def test_every_value_is_in_every_output(make, write) -> None:
    document = make()
    text = squeezed(write(document))
    shown = first_views(document) if write is markdown else document
    values = [cell for cell in cells(shown) if isinstance(cell, doc.Number | doc.Count)]
    assert len(values) > 5
    for cell in values:
        shown = pieces_of(cell)
        for piece in (shown.main, shown.quiet):
            assert piece in text, (cell, piece)


def test_a_terminal_leaves_out_what_a_page_folds() -> None:
    assert "77" in terminal(small())
    assert "77" not in terminal(small(), folded=False)


def test_an_interval_and_what_stands_beside_it_are_apart_on_a_phone() -> None:
    shown = html_cell(doc.Number(Estimate(0.183, 0.177, 0.189), "percent", "3,510 of 19,210"))
    assert '</span> <span class="beside">3,510 of 19,210' in shown


@pytest.mark.parametrize("write", [page, markdown, terminal], ids=lambda f: f.__name__)
def test_each_mark_stands_beside_what_it_is_of(write) -> None:
    """And the most severe first."""
    first = squeezed(write(small()).split("How sure?")[0])
    assert re.search(r"serious\W+/b.*is tested less\..*Yes Because\.", first)
    assert write is markdown or re.search(r"caution\W+Yes", first)


def test_in_a_narrow_window_what_has_nothing_beside_it_has_no_second_column() -> None:
    """AUC has no limit of chance; the gap has."""
    number = doc.estimate(Estimate(0.5, 0.4, 0.6))
    row = doc.DotRow("a method", (number, number), (doc.NOTHING, doc.estimate(0.07)))
    picture = doc.Dots("Picture", ("AUC", "gap"), (row,), "", "limit of chance")
    section = doc.Section("one", "One", (picture,))
    shown = terminal(doc.Document("Title", "", None, None, (section,)), 50)
    assert (shown.count("AUC"), shown.count("gap"), shown.count(".070")) == (1, 2, 1)


@pytest.mark.parametrize("limit", [0.07, nan])
def test_the_key_of_a_mark_stands_where_there_is_one(limit) -> None:
    row = doc.DotRow("a method", (doc.estimate(Estimate(0.5)),), (doc.estimate(limit),))
    picture = doc.Dots("Picture", ("gap",), (row,), "", "limit of chance")
    shown = page(doc.Document("Title", "", None, None, (doc.Section("one", "One", (picture,)),)))
    assert ("limit of chance" in shown) == (limit == 0.07)


def test_a_reason_is_told_once_in_a_section() -> None:
    lacking = doc.table("", ("group", "AUC"), [("a", doc.Missing("too few")), ("b", "1")])
    made = [doc.Section(key, key, (lacking, lacking)) for key in ("one", "two")]
    shown = terminal(doc.Document("Title", "", None, None, tuple(made)))
    assert shown.count("too few") == 2


def test_json_says_how_serious_the_first_line_is() -> None:
    verdict = json.loads(to_json(small()))["verdict"]
    assert (verdict["severity"], verdict["most_severe"]) == ("caution", "serious")


@pytest.mark.parametrize("width", [30, 110])
def test_a_terminal_says_which_rows_a_page_shades(width) -> None:
    assert "Unlike the others: [/b]" in squeezed(terminal(small(), width))


@pytest.mark.parametrize(("width", "times"), [(60, 1), (200, 3)])
def test_what_a_narrow_terminal_compares_with_is_a_table_of_its_own(width, times) -> None:
    value = doc.Number(Estimate(0.2, 0.1, 0.3))
    row = doc.DotRow(doc.Name("a"), (value,) * 3, (doc.Number(Estimate(0.25)),) * 3)
    columns = ("share of the first", "share of the second", "share of the third")
    dots = doc.Dots("Points", columns, (row,), "", "by chance")
    document = replace(small(), opening=None, sections=(doc.Section("s", "S", (dots,)),))
    text = terminal(document, width)
    assert text.lower().count("by chance") == times
    assert text.count(".250") == 3


def test_a_terminal_leaves_out_columns_that_have_nothing_for_anybody() -> None:
    value, why = doc.Number(Estimate(0.2, 0.1, 0.3)), doc.Missing("too few")
    rows = (
        doc.DotRow(doc.Name("a"), (doc.NOTHING, value, why), (doc.NOTHING, value, doc.NOTHING)),
        doc.DotRow(doc.Name("b"), (doc.NOTHING, doc.NOTHING, why)),
    )
    dots = doc.Dots("Points", ("empty", "known", "refused"), rows, "", "by chance")
    document = replace(small(), opening=None, sections=(doc.Section("s", "S", (dots,)),))
    for width in (40, 200):
        text = terminal(document, width)
        assert "empty" not in text
        assert "known" in text
        assert "too few" in text  # a reason is not nothing


def test_a_comparison_says_each_finding_once() -> None:
    comparison = made_up_comparison(n_methods=2)
    text = squeezed(terminal(compare_document(comparison), 500))
    for finding in comparison.findings:
        assert text.count(squeezed(finding.headline.replace("`", ""))) == 1, finding.key


def test_a_terminal_says_whose_number_is_missing() -> None:
    lost = [("a", doc.Missing("1 %")), ("b", doc.Missing("2 %")), ("c", doc.Missing("1 %"))]
    whole = [("a", doc.Missing("nobody")), ("b", doc.Missing("nobody"))]
    tables = tuple(doc.table("", ("group", "share"), rows) for rows in (lost, whole))
    shown = terminal(doc.Document("", "", None, None, (doc.Section("s", "S", tables),), ""))
    assert "a, c: not estimable: 1 %" in shown
    assert "b: not estimable: 2 %" in shown
    assert "\nnot estimable: nobody" in shown


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_numbers_survive_a_narrow_terminal(width) -> None:
    text = squeezed(terminal(compare_document(made_up_comparison(n_methods=2)), width))
    assert "…" not in text
    assert ".700 [.680, .720]" in text


@pytest.mark.parametrize("write", [page, markdown, terminal], ids=lambda f: f.__name__)
def test_names_are_shown_as_they_are(write) -> None:
    text = write(small())
    assert "[/b]" in text
    assert "$x_1$" in text
    assert ("&lt;i>" if write is markdown else "<i>") in text


def rendered(text: str) -> list[str]:
    """What a reader sees of Markdown: the text of its paragraphs and cells."""
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    assert not re.search(r"<(em|strong|s|a|i|script|blockquote|h1|ul|ol)\b", page), page
    found = re.findall(r"<(?:p|td)>(.*?)</(?:p|td)>", page)
    return [unescape(re.sub("</?code>", "", one)) for one in found]


@pytest.mark.parametrize(
    "name",
    [
        NASTY,
        "*bold* and **more**",
        "_x_ heart_rate __init__",
        "a|b",
        "<script>",
        "<65",
        "`code`",
        "one ` tick",
        "``two``",
        r"C:\a\*b",
        "[a](http://b)",
        "&lt; ~gone~",
        "> quoted",
        "# heading",
        "1. item",
        "- item",
    ],
)
def test_markdown_shows_every_name_as_it_is(name) -> None:
    """In a sentence, as code in it, and in a cell."""
    table = doc.table("", ("group", "n"), [(doc.Name(name), doc.Count(3)), (doc.Code(name), "")])
    text = doc.Text((f"{name} is tested less.", f"`{name}` too."))
    section = doc.Section("s", "S", (table, text))
    shown = to_markdown(doc.Document("T", "", None, None, (section,), names=frozenset([name])))
    under = shown.partition("## S")[2]
    assert rendered(under) == [name, "3", name, "", f"{name} is tested less.", f"{name} too."]


def test_markdown_can_be_read_as_it_is() -> None:
    """Signs that are no markup where they stand are left."""
    said = "heart_rate of group <65: .71 [.68, .74] (5 < 6) & more - as 1.5 > 1"
    section = doc.Section("s", "S", (doc.Text((said,)),))
    assert said in to_markdown(doc.Document("T", "", None, None, (section,)))


def test_markdown_names_the_views_that_it_leaves_to_the_page() -> None:
    text = to_markdown(small())
    assert "\nx\n\nAlso in the HTML report: V2.\n" in text
    assert "\ny\n" not in text


def test_markdown_has_no_heading_over_figures_alone() -> None:
    section = doc.Section("s", "Curves", (doc.Fold("Folded", (doc.Figure(lambda: None),)),))
    assert "Curves" not in to_markdown(doc.Document("T", "", None, None, (section,)))


def test_a_page_has_no_heading_over_nothing() -> None:
    opening = replace(small().opening, limits=())
    assert "What not to conclude" in page(small())
    assert "What not to conclude" not in page(replace(small(), opening=opening))


def test_a_name_of_two_lines_takes_one_in_a_terminal() -> None:
    table = doc.table("", ("group", "n"), [(doc.Name("Black or\nBlack British"), doc.Count(3))])
    shown = doc.Document("", "", None, None, (doc.Section("a", "A", (table,)),))
    assert "Black or Black British  3" in terminal(shown)


def test_zero_has_no_sign() -> None:
    for text in (page(small()), to_markdown(small()), terminal(small())):
        assert not re.search(r"-0?\.0+(?!\d)", text)


def test_json_holds_the_answer_the_findings_and_the_data() -> None:
    told = json.loads(to_json(small()))
    assert told["verdict"]["severity"] == "caution"
    assert told["key_numbers"][0]["value"] == -0.1
    assert told["findings"][0]["key"] == "tested-less"
    assert told["some"] == {"value": None, "low": None, "high": None, "reason": "no"}


def test_a_page_asks_for_nothing_and_closes_its_tags() -> None:
    class Page(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open, self.ids, self.fetches = [], [], []

        def handle_starttag(self, tag, attrs):
            if tag not in VOID:
                self.open.append(tag)
            self.ids += [value for name, value in attrs if name == "id"]
            self.fetches += [value for name, value in attrs if name in {"src", "href"}]

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    parsed = Page()
    text = to_html(small())
    parsed.feed(text)
    assert not parsed.open
    assert len(parsed.ids) == len(set(parsed.ids))
    assert all(url.startswith("#") or url == "data:," for url in parsed.fetches)
    assert {url[1:] for url in parsed.fetches if url.startswith("#")} <= set(parsed.ids)
    assert "default-src 'none'" in text
    assert not re.search(r"url\((?!#)|@import", text)


def test_prose_is_reworded_and_names_are_not() -> None:
    document = small()
    document = replace(document, lead=NASTY)
    shouted = document.in_words(str.upper)
    assert shouted.findings.items[0].text == "TEXT."
    assert shouted.findings.items[0].key == "tested-less"
    first = next(block for block in shouted.sections[0].blocks if isinstance(block, doc.Table))
    assert first.rows[0][0] == doc.Name(NASTY)
    assert first.rows[1][0].name == "dcem"
    assert shouted.sections[1].blocks == document.sections[1].blocks


def test_importing_reports_loads_neither_networks_nor_figures() -> None:
    loaded = (
        "import sys, dcem.report.audit, dcem.report.compare, dcem.report.to_html, "
        "dcem.report.to_terminal; print({'torch', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr


def test_a_reason_is_told_once_in_a_row() -> None:
    few, late = doc.Missing("too few"), doc.Missing("too late")
    table = doc.table("", ("group", "a", "b", "c"), [("x", few, few, late), ("y", few, late, few)])
    assert table.rows == (
        ("x", few, doc.Missing(), late),
        ("y", few, late, doc.Missing()),
    )


def test_a_group_that_is_a_number_is_called_a_group() -> None:
    assert [doc.whose(name) for name in ("1", "b", "north")] == [
        doc.Name("group 1"),
        doc.Name("group b"),
        doc.Name("north"),
    ]
