"""One look for every figure, readable on white paper and on a dark screen.

Figures are drawn with the light palette. `inline_svg` then replaces each palette colour by a CSS
variable with that colour as its fallback, so that the same picture follows the page into dark mode
and still stands alone. Text stays text: it can be searched, read aloud, and scales with the page.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from html import escape
from typing import Any, NamedTuple, ParamSpec, TypeVar


class Ink(NamedTuple):
    """One colour of the palette: for light and for dark surroundings."""

    light: str
    dark: str


# Chosen for a contrast of at least 4.5 (text, lines) against the page, and to stay apart for
# colour-blind readers: blue and orange for two groups, then teal, violet, ochre, grey, pink, olive.
PALETTE = {
    "ink": Ink("#1c2330", "#e8ebf0"),
    "muted": Ink("#5b6675", "#a3adba"),
    "faint": Ink("#c3cad3", "#4b5563"),
    "grid": Ink("#e5e8ec", "#2c3440"),
    "paper": Ink("#fefefe", "#151a21"),
    "marked": Ink("#e8f1ef", "#1b2a2c"),
    "accent": Ink("#0b6e5f", "#4fd1b8"),
    "warn": Ink("#b3261e", "#ff8f85"),
    "caution": Ink("#8a5300", "#eab04e"),
    "group-0": Ink("#1f5fa8", "#74b4f7"),
    "group-1": Ink("#b85008", "#f6a04d"),
    "group-2": Ink("#0f766f", "#5fd0c5"),
    "group-3": Ink("#6d3fc0", "#b79cf5"),
    "group-4": Ink("#7a6000", "#d9bf4e"),
    "group-5": Ink("#5a5f69", "#b4bac4"),
    "group-6": Ink("#a8246f", "#f58cc4"),
    "group-7": Ink("#44690f", "#a3cf62"),
}
COLOURS = 8  # of groups
INK, MUTED, FAINT, GRID, PAPER, ACCENT, WARN, CAUTION = (
    PALETTE[name].light
    for name in ("ink", "muted", "faint", "grid", "paper", "accent", "warn", "caution")
)

RC: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10.5,
    "text.color": INK,
    "axes.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": False,  # as in the text, and so that numbers can be pasted
    "axes.linewidth": 0.8,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "figure.facecolor": "none",
    "legend.frameon": False,
}
PLAIN = {**RC, "text.parse_math": False}  # for names from a user's table: a $ is a $


def group_key(code: int) -> str:
    """The palette's name for the colour of a group, by its place; beyond eight they repeat."""
    return f"group-{code % COLOURS}"


def group_colour(code: int) -> str:
    """The colour of a group, by its place among the groups: the same on every page."""
    return PALETTE[group_key(code)].light


def css_variables(dark: bool) -> str:
    """The palette as CSS custom properties."""
    return " ".join(f"--{name}: {ink[dark]};" for name, ink in PALETTE.items())


@dataclass(frozen=True)
class Drawing:
    """A figure with the words that go with it."""

    figure: Any  # matplotlib.figure.Figure
    name: str  # unique in a page: ids are made from it
    title: str
    description: str  # what a reader who cannot see it needs to know
    caption: str  # how to read it

    def in_words(self, say: Callable[[str], str]) -> Drawing:
        """The same drawing in the words of a field, those inside the picture too."""
        from matplotlib.text import Text

        for text in self.figure.findobj(Text):
            text.set_text(say(text.get_text()))
        for artist in self.figure.findobj(lambda one: (one.get_gid() or "").startswith(TELL)):
            artist.set_gid(TELL + say(artist.get_gid().removeprefix(TELL)))
        return replace(
            self,
            title=say(self.title),
            description=say(self.description),
            caption=say(self.caption),
        )


P = ParamSpec("P")
T = TypeVar("T")


def in_style(make: Callable[P, T]) -> Callable[P, T]:
    """Run a drawing function in the style of all figures, in which a `$` is a `$`."""

    @wraps(make)
    def styled(*args: P.args, **kwargs: P.kwargs) -> T:
        import matplotlib

        with matplotlib.rc_context(PLAIN):
            return make(*args, **kwargs)

    return styled


def new_figure(width: float, height: float) -> Any:
    """An empty figure in this style, tied to no window and no global state."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(RC):
        return Figure(figsize=(width, height), layout="constrained")


def new_axes(width: float, height: float) -> tuple[Any, Any]:
    """The same, and its only panel."""
    figure = new_figure(width, height)
    return figure, figure.subplots()


TELL = "tell:"  # begins the name of what `tell` was given


def tell(artist: Any, texts: Sequence[str]) -> None:
    """Give every marker of a line words that a page shows when a pointer rests on it.

    All markers must lie inside the axes: those outside are not drawn, and would shift the words.
    """
    artist.set_gid(TELL + "\n".join(text.replace("\n", " ") for text in texts))


def _titled(svg: str) -> str:
    """The words of `tell` as titles of the markers."""
    first, *rest = re.split(r'(?<=<g) id="tell:([^"]*)"(?=>)', svg)
    pieces = [first]
    for texts, after in zip(rest[::2], rest[1::2], strict=True):
        lines = iter(texts.split("\n"))

        def title(marker: re.Match[str], lines: Iterator[str] = lines) -> str:
            text = next(lines, None)
            return marker[0] if text is None else f"<g><title>{text}</title>{marker[0]}</g>"

        pieces.append(re.sub(r"<use [^>]*/>", title, after))
    return "".join(pieces)


# What matplotlib writes that a page does not want: its prologue, names that are alike in every
# figure, its choice of fonts (the page has one), the old spelling of links, colours nobody sees.
_TIDY = [
    (r"<\?xml.*?<svg[^>]*>|<metadata>.*?</metadata>|<style.*?</style>", ""),
    (r'<g id="[^"]*"', "<g"),
    (r"font-family: [^;\"]*;? ?", ""),
    (r"xlink:href", "href"),
    (r"\s*\n\s*", "\n"),
    (r' style="fill: #[0-9a-f]{6}; fill-opacity: 0"', ' fill-opacity="0"'),
]


_REM_AN_INCH = 6.25  # on a wide screen; so that letters have one size in figures of any width


def _round(tag: re.Match[str]) -> str:
    """Coordinates to a tenth of a point: no eye sees more, and the file is half as long."""
    coarse = re.sub(
        r' (?:d|x|y)="[^"]*"', lambda place: re.sub(r"(\.\d)\d+", r"\1", place[0]), tag[0]
    )
    return re.sub(r"(\.\d\d)\d+", r"\1", coarse)


def _share_style(run: re.Match[str]) -> str:
    """Markers of one style say it once, on the group around them."""
    markers = re.findall(r'<use ([^>]*?) style="([^"]*)"/>', run.group())
    styles = {style for _, style in markers}
    if len(styles) != 1:
        return run.group()
    uses = "\n".join(f"<use {place}/>" for place, _ in markers)
    return f'<g style="{styles.pop()}">\n{uses}\n</g>\n'


def inline_svg(drawing: Drawing) -> str:
    """A drawing as an accessible `<svg>` element to put into a page."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.text import Text

    stream = io.StringIO()
    for text in drawing.figure.findobj(Text):
        text.set_parse_math(False)  # a $ in a name is a $
    with matplotlib.rc_context({**PLAIN, "svg.hashsalt": drawing.name}):
        # `savefig` would draw it twice, the first time for the layout alone
        FigureCanvasSVG(drawing.figure).print_svg(stream, metadata={"Date": None, "Creator": None})
    svg = stream.getvalue()
    view_box = re.search(r'viewBox="[^"]+"', svg)
    assert view_box is not None  # matplotlib always writes one
    svg = _titled(svg)
    for pattern, replacement in _TIDY:
        svg = re.sub(pattern, replacement, svg, flags=re.DOTALL)
    svg = re.sub(r"<[^>]+>", _round, svg)  # inside tags only: text is left alone
    body = re.sub(r"(?:<use [^>]*/>\s*){2,}", _share_style, svg)
    for variable, ink in PALETTE.items():
        body = body.replace(ink.light, f"var(--{variable}, {ink.light})")
    name = re.sub(r"[^\w-]", "-", drawing.name)  # an id has no spaces
    title, desc = f"{name}-title", f"{name}-desc"
    width = drawing.figure.get_figwidth() * _REM_AN_INCH
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {view_box.group()} role="img" '
        f'aria-labelledby="{title} {desc}" style="--width: {width:.4g}rem">'
        f'<title id="{title}">{escape(drawing.title)}</title>'
        f'<desc id="{desc}">{escape(drawing.description)}</desc>{body.strip()}'
    )
