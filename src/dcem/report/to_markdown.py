"""A document as Markdown: the page without its pictures, for those who paste it elsewhere.

Of several views of one thing it has the first, and names the others, which the page has. What users
named never becomes markup: sentences are escaped before anything is written, and bars of cells in
`_grid`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import singledispatch

from dcem.report import document as doc
from dcem.report.words import in_field_words
from dcem.text import listed, printable

# Signs of emphasis, code, mathematics, tags, links and entities, and what escapes one. Where they
# cannot be taken for that they are left, so that the text itself is readable: heart_rate, <65.
SIGNS = (
    r"[`*~$]|\\(?=[^\w\s]|$)|(?<![^\W_])_|_(?![^\W_])|<(?=[a-zA-Z/!?])|&(?=#?\w+;)"
    r"|(?<=\])\(|\[(?=[^\[\]]*\](:|$))"
)
ENTITIES = {"<": "&lt;", "&": "&amp;"}  # of which not every dialect takes a backslash

BAR = r"\|"


def to_markdown(document: doc.Document, words: str = "general") -> str:
    """The whole document, in the words of a field (`dcem.report.words`)."""
    document = in_field_words(document, words)
    document = document.in_words(_escaping(document.names))
    lines = [f"# {_as_it_is(document.title)}", ""]
    lines += [document.lead, ""] if document.lead else []
    if document.opening is not None:
        lines += _opening(document.opening)
    if document.findings is not None and document.findings.items:
        lines += ["## Findings", "", *block(document.findings)]
    for section in document.sections:
        lines += block(section)
    lines += [document.footer, ""] if document.footer else []
    text = "\n".join(lines).rstrip() + "\n"
    return printable(re.sub(r"\n{3,}", "\n\n", text))


def cell(content: doc.Cell) -> str:
    """What stands inside a cell of a table."""
    if isinstance(content, doc.Code):
        tag = f" ({content.tag})" if content.tag else ""
        return _code(content.name) + tag + (f": {content.about}" if content.about else "")
    return _as_it_is(content.name) if isinstance(content, doc.Name) else doc.on_one_line(content)


def _escaping(names: Collection[str]) -> Callable[[str], str]:
    """A function that escapes a sentence, on one line, but for the code in its backticks.

    Backticks that belong to one of the `names` are signs like any other.
    """
    ticked = [re.escape(name) for name in sorted(names, key=len, reverse=True) if "`" in name]
    spans = re.compile("|".join([*(f"`{name}`|{name}" for name in ticked), "`[^`]+`", SIGNS]))

    def written(found: re.Match[str]) -> str:
        if found[0] in names:
            return re.sub(SIGNS, lambda sign: _sign(sign[0]), found[0])
        return _code(found[0][1:-1]) if len(found[0]) > 1 else _sign(found[0])

    def escape(text: str) -> str:
        flat = spans.sub(written, re.sub(r"\s*[\r\n]+\s*", " ", text))
        # what would begin a quotation, a heading or a list
        return re.sub(r"^(\d*)(?=>|[#+-]+\s|[.)]\s)", r"\1\\", flat)

    return escape


def _sign(sign: str) -> str:
    return ENTITIES.get(sign, f"\\{sign}")


def _as_it_is(name: str) -> str:
    return _escaping([name])(name)


def _code(name: str) -> str:
    """A name set as code; one with backticks stands between more of them."""
    ticks = "`" * (1 + max(map(len, re.findall("`+", name)), default=0))
    edge = " " * ("`" in name)
    return f"{ticks}{edge}{name}{edge}{ticks}"


def _opening(opening: doc.Opening) -> Iterator[str]:
    verdict = opening.verdict
    if worst := verdict.worst:
        yield from (f"**{worst.severity}:** {worst.headline}.", "")
    yield from (f"## {verdict.answer}", "")
    for sentence in verdict.sentences:
        yield from (sentence, "")
    yield from (f"**How sure?** {verdict.certainty}", "")
    if opening.limits:
        yield from ("**What not to conclude**", "")
        yield from (f"- {limit}" for limit in opening.limits)
        yield ""
    if opening.numbers:
        yield from ("**In numbers**", "")
        yield from (f"- **{cell(one.cell)}**: {one.label}" for one in opening.numbers)
        yield ""
    if opening.picture is not None:
        yield from block(opening.picture)


def _grid(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    head, *body = [
        f"| {' | '.join(content.replace('|', BAR) for content in row)} |"
        for row in (columns, *rows)
    ]
    yield from (head, "|" + "---|" * len(columns), *body, "")


@singledispatch
def block(what: object) -> Iterator[str]:
    """A block as lines of Markdown."""
    raise TypeError(f"not a block: {what!r}")


@block.register
def _(what: doc.Section) -> Iterator[str]:
    yield from _under(f"## {what.title}", what.blocks)


def _under(heading: str, blocks: Sequence[doc.Block]) -> Iterator[str]:
    """Blocks under their heading, if they have any text: figures have none."""
    lines = [line for inside in blocks for line in block(inside)]
    if lines:
        yield from (heading, "", *lines)


@block.register
def _(what: doc.Findings) -> Iterator[str]:
    for item in what.items:
        remedy = f"*What to do:* {item.remedy}" if item.remedy else ""
        yield " ".join(
            filter(None, [f"- **{item.severity}: {item.headline}.**", item.text, remedy])
        )
    yield ""


@block.register
def _(what: doc.Table) -> Iterator[str]:
    if what.caption:
        yield from (f"**{what.caption}**", "")
    yield from _grid(what.columns, (list(map(cell, row)) for row in what.rows))
    if what.note:
        yield from (what.note, "")


@block.register
def _(what: doc.Dots) -> Iterator[str]:
    compared = what.compared
    columns = ["", *what.columns, *(f"{what.reference}, {what.columns[i]}" for i in compared)]
    rows = [
        ["**" * row.marked + cell(row.label) + "**" * row.marked]
        + [cell(content) for content in row.values]
        + [cell(row.references[place]) if row.references else "" for place in compared]
        for row in what.rows
    ]
    yield from (f"**{what.title}**", "")
    yield from _grid(columns, rows)
    bold = f" Bold: {what.marked}." if what.marked else ""
    yield from (what.caption + bold, "")


@block.register
def _(what: doc.Figure) -> Iterator[str]:
    return iter(())


@block.register
def _(what: doc.Text) -> Iterator[str]:
    for paragraph in what.paragraphs:
        yield f"- {paragraph}" if what.bullets else f"{paragraph}\n"
    yield ""


@block.register
def _(what: doc.Terms) -> Iterator[str]:
    yield from (f"- {cell(name)}: {text}" for name, text in what.items)
    yield ""


@block.register
def _(what: doc.Fold) -> Iterator[str]:
    yield from _under(f"### {what.summary}", what.blocks)


@block.register
def _(what: doc.Views) -> Iterator[str]:
    lines = [line for inside in what.views[0].blocks for line in block(inside)]
    if lines and len(what.views) > 1:
        others = listed([view.label for view in what.views[1:]], most=len(what.views))
        lines += [f"Also in the HTML report: {others}.", ""]
    yield from lines


@block.register
def _(what: doc.Facts) -> Iterator[str]:
    yield from (f"- {key}: {_as_it_is(value)}" for key, value in what.items.items())
    yield ""
