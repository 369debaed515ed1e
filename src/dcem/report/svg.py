"""A drawing as an `<svg>` element of a page: in the page's colours and letters, and short.

matplotlib writes groups around groups, the style of every marker, and places to a millionth of a
point. What no eye would miss is left out: a page of thirty figures is a third as long.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from html import escape

import numpy as np

from dcem.report.style import FOUND, PALETTE, PLAIN_RC, RC, TELL, Drawing

_REM_AN_INCH = 6.25  # on a wide screen; so that letters have one size in figures of any width
_UNSEEN = 2  # tenths of a point: places on a line that lie no further from it are left out

# What matplotlib writes that a page does not want: its prologue, names that are alike in every
# figure, its choice of fonts (the page has one) and their usual size (the element has it), the old
# spelling of links, what nobody sees (the ends of lines too), turns by nothing, what holds anyway.
_TIDY = [
    (r"<\?xml.*?<svg[^>]*>|<metadata>.*?</metadata>|<style.*?</style>", ""),
    (r'<g id="[^"]*"', "<g"),
    (r"<g\b[^>]*/>", ""),
    (r"font-family: [^;\"]*;? ?", ""),
    (r"xlink:href", "href"),
    (r' style="fill: #[0-9a-f]{6}; fill-opacity: 0"', ' fill-opacity="0"'),
    (r' transform="rotate\(-?0 [^)]*\)"', ""),
    (rf"font-size: {RC['font.size']}px; ", ""),
    (r'; stroke-(?:linejoin: miter|dashoffset: 0|linecap: square)(?=[;"])', ""),
    (r" text-anchor: start;", ""),
    (r'<path d="[^"]*" (?:clip-path="[^"]*" )?style="fill: none"/>', ""),
    (r"\s*\n\s*", "\n"),
    (r">\n<", "><"),
]


def inline_svg(drawing: Drawing) -> str:
    """A drawing as an accessible `<svg>` element to put into a page."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.text import Text

    stream = io.StringIO()
    for text in drawing.figure.findobj(Text):
        text.set_parse_math(False)  # a $ in a name is a $
    with (
        matplotlib.rc_context({**PLAIN_RC, "svg.hashsalt": drawing.name}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "Glyph")  # the page's letters draw it, not matplotlib's
        # `savefig` would draw it twice, the first time for the layout alone
        FigureCanvasSVG(drawing.figure).print_svg(stream, metadata={"Date": None, "Creator": None})
    svg = stream.getvalue()
    view_box = re.search(r'viewBox="[^"]+"', svg)
    assert view_box is not None  # matplotlib always writes one
    svg = _titled(svg)
    for pattern, replacement in _TIDY:
        svg = re.sub(pattern, replacement, svg, flags=re.DOTALL)
    svg = re.sub(r' d="([^"]*)"', lambda path: f' d="{_short(path[1])}"', svg)
    svg = re.sub(r"<[^>]+>", _round, svg)  # inside tags only: text is left alone
    body = _one_style_a_marker(_without_idle_groups(_plain_circles(svg)))
    body = re.sub(
        r'(?:<path d="[^"]*"([^>]*fill: none[^>]*)/>)(?:<path d="[^"]*"\1/>)+', _joined, body
    )
    for variable, ink in PALETTE.items():
        body = body.replace(ink.light, f"var(--{variable})")
    name = re.sub(r"[^\w-]", "-", drawing.name)  # an id has no spaces
    title, desc = f"{name}-title", f"{name}-desc"
    width = drawing.figure.get_figwidth() * _REM_AN_INCH
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {view_box.group()} role="img" '
        f'aria-labelledby="{title} {desc}" style="--width: {width:.4g}rem; '
        f'font-size: {RC["font.size"]}px">'
        f'<title id="{title}">{escape(drawing.title)}</title>'
        f'<desc id="{desc}">{escape(drawing.description)}</desc>{body.strip()}'
    )


def _titled(svg: str) -> str:
    """The words of `tell` as titles of the markers."""
    first, *rest = re.split(rf'(?<=<g) id="{TELL}([^"]*)"(?=>)', svg)
    pieces = [first]
    for texts, after in zip(rest[::2], rest[1::2], strict=True):
        lines = iter(texts.split("\n"))

        def title(marker: re.Match[str], lines: Iterator[str] = lines) -> str:
            text = next(lines, None)
            return marker[0] if text is None else f"<g><title>{text}</title>{marker[0]}</g>"

        pieces.append(re.sub(r"<use [^>]*/>", title, after))
    return "".join(pieces)


def _short(path: str) -> str:
    """A path of straight lines, each place to a tenth of a point and counted from the last one."""
    if re.search(r"[^MLz\d\s.e-]", path):
        return re.sub(r"(\.\d)\d+", r"\1", path.replace("\n", " ").strip())
    written = []
    for line in re.findall(r"M[^M]*", path):
        numbers = np.array(re.findall(r"-?[\d.]+(?:e-?\d+)?", line), float)
        places = _thinned(np.round(10 * (numbers[::2] + 1j * numbers[1::2])))
        steps = " ".join(map(_pair, np.diff(places)))
        written += ["M", _pair(places[0]), f"l{steps}" * bool(steps), "z" * ("z" in line)]
    return "".join(written).replace(" -", "-")


def _pair(tenths: complex) -> str:
    """Two numbers of tenths: `12 -.5`."""
    return " ".join(
        re.sub(r"^(-?)0\.", r"\1.", f"{int(v) / 10:g}") for v in (tenths.real, tenths.imag)
    )


def _thinned(line: np.ndarray) -> np.ndarray:
    """The places [n] without which a line would look otherwise (Douglas and Peucker).

    They are complex numbers, across and down.
    """
    if len(line) < 3:
        return line
    along, here = line[-1] - line[0], line - line[0]
    share = np.clip((here * along.conjugate()).real / (abs(along) ** 2 or 1), 0, 1)
    away = abs(here - share * along)  # [n] from the straight line between the ends
    at = int(away.argmax())
    if away[at] <= _UNSEEN:
        return line[[0, -1]]
    return np.concatenate([_thinned(line[: at + 1])[:-1], _thinned(line[at:])])


def _joined(run: re.Match[str]) -> str:
    """Lines of one look, one after the other, as one path."""
    lines = re.findall(r' d="([^"]*)"', run[0])
    return f'<path d="{"".join(lines)}"{run[1]}/>'


def _round(tag: re.Match[str]) -> str:
    """Places to a tenth of a point, all else to a hundredth: no eye sees more."""
    coarse = re.sub(r'(?<= [xy]=")(-?\d+)(?:\.0|(\.\d))?\d*(?=")', r"\1\2", tag[0])
    return re.sub(r"(\.\d\d)\d+", r"\1", coarse)


def _without_idle_groups(svg: str) -> str:
    """Without groups that say nothing of what they hold; those with a title stay."""
    pieces = re.split(r"(<g\b[^>]*>|</g>)", svg)
    idle: list[bool] = []
    for i, piece in enumerate(pieces):
        if piece.startswith("<g"):
            idle.append(piece == "<g>" and not pieces[i + 1].startswith("<title>"))
            pieces[i] = "" if idle[-1] else piece
        elif piece == "</g>" and idle.pop():
            pieces[i] = ""
    return "".join(pieces)


def _plain_circles(svg: str) -> str:
    """Marks that nobody sees and a pointer finds, as circles; shapes that none are left of go."""
    svg = re.sub(
        r'<g>(<title>[^<]*</title>)<use href="#\w+" x="([^"]*)" y="([^"]*)" fill-opacity="0"/></g>',
        rf'<circle cx="\2" cy="\3" r="{FOUND / 2:g}">\1</circle>',
        svg,
    )
    svg = re.sub(r"<g[^>]*>(?=<circle )", '<g fill-opacity="0">', svg)
    used = {*re.findall(r'href="#(\w+)"', svg)}
    shape = r'<defs><path id="(\w+)"[^>]*/></defs>'
    return re.sub(shape, lambda path: path[0] if path[1] in used else "", svg)


def _one_style_a_marker(svg: str) -> str:
    """The style of markers that all look alike, once, where their shape is."""
    uses = re.findall(r'<use href="#(\w+)"[^>]*? style="([^"]*)"', svg)
    styles: dict[str, set[str]] = {}
    for name, style in uses:
        styles.setdefault(name, set()).add(style)
    alike = {
        name: found.pop()
        for name, found in styles.items()
        if len(found) == 1 and svg.count(f'"#{name}"') == len([u for u in uses if u[0] == name])
    }

    def shape(path: re.Match[str]) -> str:
        # what the shape itself says counts more
        rules = dict.fromkeys([*alike.get(path[1], "").split("; "), *(path[3] or "").split("; ")])
        own = {rule.split(": ")[0]: rule for rule in rules if rule}
        style = f' style="{"; ".join(own.values())}"' if own else ""
        return f'<path id="{path[1]}"{path[2]}{style}/>'

    svg = re.sub(r'<path id="(\w+)"([^>]*?)(?: style="([^"]*)")?/>', shape, svg)
    return re.sub(
        r'(<use href="#(\w+)"[^>]*?) style="[^"]*"',
        lambda use: use[1] if use[2] in alike else use[0],
        svg,
    )
