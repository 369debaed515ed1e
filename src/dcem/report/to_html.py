"""A document as one page: one file that opens by double click, prints, and reads aloud.

Style, script and figures are inside the file; a content policy in its head forbids the browser to
fetch anything else. Light and dark follow the reader's system, or the button; without script
everything is still there. On paper the first sheet is for the committee: the answer, its numbers,
its picture and the findings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, singledispatch
from html import escape
from importlib import resources

from dcem.report import document as doc
from dcem.report.dots import dots_table
from dcem.report.style import css_variables
from dcem.report.svg import inline_svg
from dcem.report.words import in_field_words

SIGNS = {"serious": "▲", "caution": "◆", "note": "●", "fine": "✓"}
NOTEBOOK_HEIGHT = "44rem"
FITTING = 4  # columns of a table that a phone has room for


def to_html(document: doc.Document, words: str = "general") -> str:
    """The whole document as one HTML page, in the words of a field (`dcem.report.words`)."""
    document = in_field_words(document, words)
    return shell(document.title, _body(document), document.lead, document.footer)


def for_notebook(document: doc.Document) -> str:
    """The answer and the findings, in a frame of their own: a notebook keeps its style."""
    page = escape(to_html(replace(document, sections=())), quote=True)
    style = f"width:100%;height:{NOTEBOOK_HEIGHT};border:0"
    return f'<iframe title="{escape(document.title)}" style="{style}" srcdoc="{page}"></iframe>'


def shell(title: str, body: str, lead: str = "", footer: str = "", script: str = "") -> str:
    """Any body as a page in the common look."""
    parts = {
        "TITLE": escape(title),
        "STYLE": style_sheet(),
        "LEAD": f'<p class="lead">{prose(lead)}</p>' if lead else "",
        "BODY": body,
        "FOOTER": prose(footer),
        "SCRIPT": template("page.js") + script,
    }
    return re.sub(r"__([A-Z]+)__", lambda found: parts[found[1]], template("page.html"))


@cache
def style_sheet() -> str:
    """The look of all pages, light and dark."""
    sheet = template("report.css")
    return sheet.replace("__LIGHT__", css_variables(dark=False)).replace(
        "__DARK__", css_variables(dark=True)
    )


@cache
def template(name: str) -> str:
    """A file that pages are made of."""
    return (resources.files("dcem.report") / "templates" / name).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """A sentence: names in backticks are set as code, a number stays on the line of its sign."""
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", marked)


def cell(content: doc.Cell) -> str:
    """What stands inside a cell of a table."""
    if isinstance(content, str):
        return prose(content)
    if isinstance(content, doc.Code):
        tag = f'<span class="tag">{prose(content.tag)}</span>' if content.tag else ""
        about = f' <span class="beside">{prose(content.about)}</span>' if content.about else ""
        return f"<code>{escape(content.name)}</code>{tag}{about}"
    if isinstance(content, doc.Name):
        return escape(content.name)
    shown = doc.pieces_of(content)
    if shown.absent:
        return f'<span class="absent">{prose(shown.main)}</span>'
    quiet = f' <span class="interval">{prose(shown.quiet)}</span>' if shown.quiet else ""
    beside = f' <span class="beside">{prose(shown.beside)}</span>' if shown.beside else ""
    return prose(shown.main) + quiet + beside


def badge(severity: str) -> str:
    """How serious: told by word and shape, not by colour alone."""
    sign = f'<span aria-hidden="true">{SIGNS[severity]}</span>'
    return f'<span class="badge {severity}">{sign} {severity}</span>'


def _body(document: doc.Document) -> str:
    pieces = []
    if document.opening is not None:
        pieces.append(_opening(document.opening))
    if document.findings is not None and document.findings.items:
        pieces.append(
            '<section class="sheet" aria-labelledby="findings"><h2 id="findings">Findings</h2>\n'
            f"{block(document.findings)}</section>"
        )
    if document.sections:
        links = [f'<li><a href="#{s.key}">{prose(s.title)}</a></li>' for s in document.sections]
        listed = "\n".join(links)
        pieces.append(f'<nav class="contents" aria-label="Details"><ul>\n{listed}\n</ul></nav>')
    pieces += map(block, document.sections)
    return "\n".join(pieces)


def _opening(opening: doc.Opening) -> str:
    verdict = opening.verdict
    said = "\n".join(f"<p>{prose(sentence)}</p>" for sentence in verdict.sentences)
    above = ""
    if worst := verdict.worst:
        above = f"<p>{badge(worst.severity)} <strong>{prose(worst.headline)}.</strong></p>\n"
    numbers = "\n".join(
        f"<div><dt>{prose(number.label)}</dt><dd>{cell(number.cell)}</dd></div>"
        for number in opening.numbers
    )
    limits = "\n".join(f"<li>{prose(limit)}</li>" for limit in opening.limits)
    if limits:
        limits = f'\n<div class="limits"><h3>What not to conclude</h3>\n<ul>\n{limits}\n</ul></div>'
    picture = f'\n<div class="shown">\n{block(opening.picture)}\n</div>' if opening.picture else ""
    numbers = f'\n<dl class="numbers">\n{numbers}\n</dl>' if numbers else ""
    return f"""<section class="opening sheet" aria-labelledby="answer">
<div class="answer {verdict.most_severe}">
{above}<h2 id="answer">{badge(verdict.severity)} {prose(verdict.answer)}</h2>
{said}
<p class="certainty"><strong>How sure?</strong> {prose(verdict.certainty)}</p>
</div>{limits}{picture}{numbers}
</section>"""


def _all(blocks: Iterable[doc.Block]) -> str:
    return "\n".join(block(one) for one in blocks)


@singledispatch
def block(what: object) -> str:
    """A block as HTML."""
    raise TypeError(f"not a block: {what!r}")


@block.register
def _(what: doc.Section) -> str:
    return (
        f'<section aria-labelledby="{what.key}">\n<h2 id="{what.key}">{prose(what.title)}</h2>\n'
        f"{_all(what.blocks)}\n</section>"
    )


@block.register
def _(what: doc.Findings) -> str:
    urgent = [item for item in what.items if item.severity in ("serious", "caution")]
    others = [item for item in what.items if item not in urgent]
    if not urgent or len(others) < 3:
        return _findings(what.items)
    return _findings(urgent) + _folded(f"Also noted ({len(others)})", _findings(others))


def _findings(findings: Iterable[doc.Finding]) -> str:
    items = []
    for item in findings:
        remedy = (
            f'<p class="remedy"><strong>What to do:</strong> {prose(item.remedy)}</p>'
            if item.remedy
            else ""
        )
        items.append(
            f'<li class="finding {item.severity}" data-key="{escape(item.key)}">\n'
            f'<p class="headline">{badge(item.severity)} {prose(item.headline)}</p>\n'
            + (f"<p>{prose(item.text)}</p>" if item.text else "")
            + f"{remedy}\n</li>"
        )
    return '<ol class="findings">\n' + "\n".join(items) + "\n</ol>"


@block.register
def _(what: doc.Table) -> str:
    table = _table(what)
    note = f'\n<p class="note">{prose(what.note)}</p>' if what.note else ""
    if what.start is None:
        caption = f'<p class="caption">{prose(what.caption)}</p>\n' if what.caption else ""
        return caption + table + note
    return (
        f'<div class="steps" data-caption="{escape(what.caption)}" data-start="{what.start}"></div>'
        f"\n{_folded(f'{what.caption} All steps', table)}{note}"
    )


def _table(what: doc.Table) -> str:
    # On a phone a table of sentences, or of many columns, is stacked: each cell names its column.
    stacked = ' class="stack"' if what.words or len(what.columns) > FITTING else ""
    kinds = [' class="words"' * (place in what.words) for place in range(len(what.columns))]
    named = [f' data-column="{escape(column)}"' * bool(stacked) for column in what.columns]
    heads = "".join(
        f'<th scope="col"{kind}>{prose(column)}</th>'
        for kind, column in zip(kinds, what.columns, strict=True)
    )
    rows = "\n".join(
        f'<tr><th scope="row">{cell(row[0])}</th>'
        + "".join(f"<td{kinds[i]}{named[i]}>{cell(row[i])}</td>" for i in range(1, len(row)))
        + "</tr>"
        for row in what.rows
    )
    label = escape((what.caption or what.columns[0]).replace("`", ""))
    return (
        f'<div class="wide" role="group" tabindex="0" aria-label="{label}">\n<table{stacked}>\n'
        f"<thead><tr>{heads}</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


@block.register
def _(what: doc.Dots) -> str:
    return dots_table(what, cell, prose)


@block.register
def _(what: doc.Figure) -> str:
    drawing = what.draw()
    if drawing is None:
        return ""
    drawing = drawing if what.say is str else drawing.in_words(what.say)
    return (
        f'<figure>\n<div class="picture" role="group" tabindex="0" '
        f'aria-label="{escape(drawing.title)}">\n{inline_svg(drawing)}\n</div>\n'
        f"<figcaption>{prose(drawing.caption)}</figcaption>\n</figure>"
    )


@block.register
def _(what: doc.Text) -> str:
    if what.bullets:
        return "<ul>\n" + "\n".join(f"<li>{prose(p)}</li>" for p in what.paragraphs) + "\n</ul>"
    return "\n".join(f"<p>{prose(p)}</p>" for p in what.paragraphs)


@block.register
def _(what: doc.Terms) -> str:
    items = "\n".join(f"<dt>{cell(name)}</dt><dd>{prose(text)}</dd>" for name, text in what.items)
    return f'<dl class="methods">\n{items}\n</dl>'


@block.register
def _(what: doc.Fold) -> str:
    return _folded(what.summary, _all(what.blocks))


def _folded(summary: str, inside: str) -> str:
    return (
        f'<details>\n<summary>{prose(summary)}</summary>\n<div class="folded">\n{inside}\n</div>\n'
        "</details>"
    )


@block.register
def _(what: doc.Views) -> str:
    if len(what.views) == 1:
        return _all(what.views[0].blocks)
    views = []
    for place, view in enumerate(what.views, start=1):
        name, checked = f"{what.key}-{place}", " checked" * (place == 1)
        views.append(
            f'<input type="radio" name="{what.key}" id="{name}"{checked}>'
            f'<label for="{name}">{prose(view.label)}</label>\n'
            f'<div class="view">\n<p class="view-name">{prose(view.label)}</p>\n'
            f"{_all(view.blocks)}\n</div>"
        )
    return (
        f'<div class="views" role="group" aria-label="{escape(what.legend)}">\n'
        + "\n".join(views)
        + "\n</div>"
    )


@block.register
def _(what: doc.Facts) -> str:
    items = "\n".join(
        f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in what.items.items()
    )
    return f'<dl class="facts">\n{items}\n</dl>'
