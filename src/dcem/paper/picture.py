"""What an exhibit becomes: a picture, the numbers in it, and the words that go with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

from dcem.files import whole_file, write_text
from dcem.report.style import RC, WARN, group_colour

DPI = 170
# Where methods are told apart by their looks, a method has the same in every picture: its colour
# (of the palette) and its marker. Colours recur among methods that never meet.
LOOKS = {
    "y-obs": (0, "o"),
    "tested-only": (1, "s"),
    "dcem": (3, "D"),
    "ipw": (2, "^"),
    "dr-learner": (4, "v"),
    "tested-only-plus-group": (5, "h"),
    "group-peer-loss": (2, "X"),
    "self": (4, "P"),
    "sar-em": (5, "<"),
}
WATERMARK = "ours: artificial patients"  # never "artificial" alone: the paper's points are real


@dataclass(frozen=True)
class Picture:
    """A figure and its numbers. `numbers` maps the end of a file name ("" for the main table)."""

    figure: Any  # matplotlib.figure.Figure; None if there is nothing to draw on either side
    numbers: Mapping[str, pd.DataFrame]
    caption: str
    notes: tuple[str, ...] = ()  # what is missing, what differs from the paper


def in_style(draw: Callable[[], Any]) -> Any:
    """Draw with the look of the package, whatever the user's own settings are."""
    import matplotlib

    with matplotlib.rc_context(RC):
        return draw()


def tick(value: float, _: Any = None) -> str:
    """A number at an axis: .175, -.1, 0, 1; no more digits than it has."""
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text in ("0", "-0", "") else text.replace("0.", ".", 1)


def fraction(value: float) -> str:
    """A parameter of a setting as the paper writes it: 1/3, 1/2, 3/2, 2."""
    exact = Fraction(value).limit_denominator(4)
    return str(exact) if abs(exact - value) < 1e-3 else f"{value:g}"


def look(method: str) -> tuple[str, str]:
    """Colour and marker of a method; a star for those that the paper's figures do not set apart."""
    code, marker = LOOKS.get(method, (5, "*"))
    return group_colour(code), marker


def watermark(ax: Any, x: float = 0.5, size: float = 22) -> None:
    """Large letters across a panel that nobody can overlook or crop away, centred at `x`."""
    ax.text(
        x, 0.5, WATERMARK, ha="center", va="center", rotation=28, fontsize=size, fontweight="bold",
        color=WARN, alpha=0.16, zorder=0, transform=ax.transAxes,
    )  # fmt: skip


def write(picture: Picture, folder: Path, stem: str, formats: Sequence[str]) -> list[Path]:
    """Write picture and numbers under one name, each file whole or not at all."""
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    look: dict[Any, Any] = {**RC, "svg.fonttype": "path", "svg.hashsalt": stem}
    for ending in formats if picture.figure is not None else ():
        path = folder / f"{stem}.{ending}"
        metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
        with whole_file(path) as partial, matplotlib.rc_context(look):
            picture.figure.savefig(
                partial, format=ending, dpi=DPI, facecolor="white", metadata=metadata[ending]
            )
        written.append(path)
    for tail, table in picture.numbers.items():
        path = folder / (f"{stem}-{tail}.csv" if tail else f"{stem}.csv")
        write_text(path, table.to_csv(index=False, float_format="%.6g"))
        written.append(path)
    return written
