"""One self-contained page: opens by double click, needs no network, prints, reads aloud.

Style, script and figures are inside the file; a content policy in its head forbids the browser to
fetch anything else. Light and dark follow the reader's system, or the button.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dcem.report import tables, words
from dcem.report.figures import draw_all
from dcem.report.results import Comparison
from dcem.report.style import Drawing, css_variables, inline_svg


def render(comparison: Comparison, about_data: Sequence[Drawing] = ()) -> str:
    """The comparison as one HTML document; `about_data` are drawings of who is tested."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    def prose(text: str) -> Markup:
        # Names stand in backticks in our sentences, as they would in Markdown.
        return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))

    environment = Environment(
        loader=PackageLoader("dcem.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = prose
    drawings = {drawing.name: drawing for drawing in about_data} | draw_all(comparison)
    return environment.get_template("comparison.html").render(
        comparison=comparison,
        conclusions=words.conclusions(comparison),
        columns=tables.COLUMNS,
        rows=tables.rows(comparison),
        interval_note=tables.interval_note(comparison),
        group_columns=tables.GROUP_COLUMNS,
        group_rows=tables.group_rows(comparison),
        about_data=[drawing.name for drawing in about_data],
        drawings=drawings,
        svg={name: Markup(inline_svg(drawing)) for name, drawing in drawings.items()},
        light=Markup(css_variables(dark=False)),
        dark=Markup(css_variables(dark=True)),
    )
