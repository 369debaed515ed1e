"""How a page is made: templates, the look of the reports, and what the script does."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from dcem.app.roles_form import CLICKED, TYPED
from dcem.report.to_html import prose, style_sheet, template
from dcem.table.read import READ_SUFFIXES
from dcem.text import count, duration, percent


@cache
def environment() -> jinja2.Environment:
    """The templates; whatever is put into them is text, never markup."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("dcem.app"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["SUFFIXES"] = READ_SUFFIXES
    made.filters["prose"] = lambda text: Markup(prose(in_buttons(text)))
    made.filters |= {"name": column_name, "path": from_home}
    made.filters |= {"count": count, "percent": percent, "duration": duration}
    return made


def from_home(path: Path) -> str:
    """A path as people write it: `~/study`."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if home in path.parents else str(path)


def column_name(name: str) -> Markup:
    """A name that may be broken at its underscores, if it is long."""
    return escape(name or "(no name)").replace("_", Markup("_<wbr>"))


def in_buttons(text: str) -> str:
    """A sentence with its roles, such as `label`, by the names of their buttons and fields."""
    names = CLICKED | TYPED
    return re.sub(
        r"`(\w+)`", lambda found: f"“{names[found[1]]}”" if found[1] in names else found[0], text
    )


@cache
def style() -> str:
    """The look of the reports, and a few rules for forms."""
    return style_sheet() + _own("app.css")


@cache
def page_script() -> str:
    """What the reports do, and what makes waiting easier."""
    return template("page.js") + _own("app.js")


def _own(name: str) -> str:
    return (resources.files("dcem.app") / "templates" / name).read_text(encoding="utf-8")
