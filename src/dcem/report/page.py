"""The shell of every page: one file that opens by double click, prints, and reads aloud.

Style, script and figures are inside the file; a content policy in its head forbids the browser to
fetch anything else. Light and dark follow the reader's system, or the button; without JavaScript
everything is still there. A page is a template that extends `page.html` and uses the macros of
`parts.html` (figures, tables, estimates, findings), so that all pages look and behave alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from dcem.report.style import Drawing, css_variables, inline_svg


class Shown(NamedTuple):
    """A drawing with its picture, ready for the `figure` macro."""

    drawing: Drawing
    svg: Any  # markupsafe.Markup


def render_page(template: str, drawings: Sequence[Drawing] = (), **context: Any) -> str:
    """A page from a template of this package; it sees `figures` (by name) and the context."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    def prose(text: str) -> Markup:
        # Names stand in backticks in our sentences, as they would in Markdown.
        # A number stays on the line of its sign: 20 %.
        marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
        return Markup(re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", marked))

    environment = Environment(
        loader=PackageLoader("dcem.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = prose
    environment.filters["number"] = count
    environment.filters["share"] = count_with_share
    return environment.get_template(template).render(
        figures={d.name: Shown(d, Markup(inline_svg(d))) for d in drawings},
        light=Markup(css_variables(dark=False)),
        dark=Markup(css_variables(dark=True)),
        **context,
    )


def count(value: Any) -> str:
    """A count with thousands separated; a hidden one as it was hidden; an unknown one as a dash."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else str(value)


def count_with_share(part: Any) -> str:
    """`{"count": 1200, "share": 0.031}` as `1,200 (3.1 %)`."""
    share = "" if part["share"] is None else f" ({100 * part['share']:.1f} %)"
    return count(part["count"]) + share
