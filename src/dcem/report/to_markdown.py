"""A document as Markdown: the page without its pictures, for those who paste it elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch

from dcem.report import document as doc
from dcem.report.words import in_field_words


def to_markdown(document: doc.Document, words: str = "general") -> str:
    """The whole document, in the words of a field (`dcem.report.words`)."""
    document = in_field_words(document, words)
    lines = [f"# {_safe(document.title)}", ""]
    lines += [_safe(document.lead), ""] if document.lead else []
    if document.opening is not None:
        lines += _opening(document.opening)
    if document.findings is not None and document.findings.items:
        lines += ["## Findings", "", *block(document.findings)]
    for section in document.sections:
        lines += block(section)
    lines += [_safe(document.footer), ""] if document.footer else []
    text = "\n".join(lines).rstrip() + "\n"
    return re.sub(r"\n{3,}", "\n\n", text)


def cell(content: doc.Cell) -> str:
    """What stands inside a cell of a table."""
    if isinstance(content, doc.Code):
        tag = f" ({_safe(content.tag)})" if content.tag else ""
        return f"`{content.name}`{tag}" + (f": {_safe(content.about)}" if content.about else "")
    return _safe(doc.on_one_line(content))


def _safe(text: str) -> str:
    """Names from a user's table can neither end a cell, nor open a tag, nor begin a new line."""
    flat = re.sub(r"\s*[\r\n]+\s*", " ", text)
    return re.sub(r"<(?=[a-zA-Z/!?])", r"\\<", flat.replace("|", r"\|"))


def _opening(opening: doc.Opening) -> Iterator[str]:
    verdict = opening.verdict
    if worst := verdict.worst:
        yield from (f"**{worst.severity}:** {_safe(worst.headline)}.", "")
    yield from (f"## {_safe(verdict.answer)}", "")
    for sentence in verdict.sentences:
        yield from (_safe(sentence), "")
    yield from (f"**How sure?** {_safe(verdict.certainty)}", "")
    if opening.limits:
        yield from ("**What not to conclude**", "")
        yield from (f"- {_safe(limit)}" for limit in opening.limits)
        yield ""
    if opening.numbers:
        yield from ("**In numbers**", "")
        yield from (f"- **{cell(one.cell)}**: {_safe(one.label)}" for one in opening.numbers)
        yield ""
    if opening.picture is not None:
        yield from block(opening.picture)


def _grid(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(map(_safe, columns)) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


@singledispatch
def block(what: object) -> Iterator[str]:
    """A block as lines of Markdown."""
    raise TypeError(f"not a block: {what!r}")


@block.register
def _(what: doc.Section) -> Iterator[str]:
    yield from (f"## {_safe(what.title)}", "")
    for inside in what.blocks:
        yield from block(inside)


@block.register
def _(what: doc.Findings) -> Iterator[str]:
    for item in what.items:
        remedy = f" *What to do:* {_safe(item.remedy)}" if item.remedy else ""
        yield f"- **{item.severity}: {_safe(item.headline)}.** {_safe(item.text)}{remedy}"
    yield ""


@block.register
def _(what: doc.Table) -> Iterator[str]:
    if what.caption:
        yield from (f"**{_safe(what.caption)}**", "")
    yield from _grid(what.columns, (list(map(cell, row)) for row in what.rows))
    if what.note:
        yield from (_safe(what.note), "")


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
    yield from (f"**{_safe(what.title)}**", "")
    yield from _grid(columns, rows)
    bold = f" Bold: {what.marked}." if what.marked else ""
    yield from (_safe(what.caption + bold), "")


@block.register
def _(what: doc.Figure) -> Iterator[str]:
    return iter(())


@block.register
def _(what: doc.Text) -> Iterator[str]:
    for paragraph in what.paragraphs:
        yield f"- {_safe(paragraph)}" if what.bullets else f"{_safe(paragraph)}\n"
    yield ""


@block.register
def _(what: doc.Terms) -> Iterator[str]:
    yield from (f"- {cell(name)}: {_safe(text)}" for name, text in what.items)
    yield ""


@block.register
def _(what: doc.Fold) -> Iterator[str]:
    lines = [line for inside in what.blocks for line in block(inside)]
    if lines:  # figures have no text of their own
        yield from (f"### {_safe(what.summary)}", "", *lines)


@block.register
def _(what: doc.Views) -> Iterator[str]:
    for view in what.views:
        for inside in view.blocks:
            yield from block(inside)


@block.register
def _(what: doc.Facts) -> Iterator[str]:
    yield from (f"- {_safe(key)}: {_safe(value)}" for key, value in what.items.items())
    yield ""
