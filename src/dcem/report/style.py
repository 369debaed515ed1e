"""One look for every figure, readable on white paper and on a dark screen.

Figures are drawn with the light palette. `dcem.report.svg` then replaces each palette colour by a
CSS variable of the page, so that the same picture follows it into dark mode. Text stays text: it
can be searched, read aloud, and scales with the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
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
INK, MUTED, FAINT, GRID, PAPER, ACCENT, WARN = (
    PALETTE[name].light for name in ("ink", "muted", "faint", "grid", "paper", "accent", "warn")
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
PLAIN_RC = {**RC, "text.parse_math": False}  # for names from a user's table: a $ is a $


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

        with matplotlib.rc_context(PLAIN_RC):
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
FOUND = 11.0  # points across which a pointer finds a mark that nobody sees


def tell(artist: Any, texts: Sequence[str]) -> None:
    """Give every marker of a line words that a page shows when a pointer rests on it.

    All markers must lie inside the axes: those outside are not drawn, and would shift the words.
    """
    artist.set_gid(TELL + "\n".join(text.replace("\n", " ") for text in texts))
