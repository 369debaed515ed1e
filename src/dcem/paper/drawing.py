"""Exhibits as pictures: what one is, how it looks, and drawing many into a folder.

An exhibit becomes a picture, the numbers in it, and the words that go with them. What was not there
to be drawn is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dcem.files import whole_file, write_text
from dcem.paper.published import METHOD_STYLES
from dcem.paper.sources import Found, Need, ResultSource
from dcem.report.style import RC, WARN, group_colour
from dcem.table.messages import require_one_of

DPI = 170
FORMATS = ("png", "svg", "pdf")
WATERMARK = "ours: artificial patients"  # never "artificial" alone: the paper's points are real


@dataclass(frozen=True)
class Picture:
    """A figure and its numbers. `numbers` maps the end of a file name ("" for the main table)."""

    figure: Any  # matplotlib.figure.Figure; None if there is nothing to draw on either side
    numbers: Mapping[str, pd.DataFrame]
    caption: str
    notes: tuple[str, ...] = ()  # what is missing, what differs from the paper


@dataclass(frozen=True)
class Exhibit:
    """One figure or table."""

    id: str  # by its number in the paper: figure2, table1
    name: str  # by what it shows: k1-qt2, overlap; a third is 0.333
    title: str
    needs: tuple[Need, ...]
    draw: Callable[..., Picture]  # takes one `Found` for each need
    family: str = ""  # simulation, sepsis, tables: ids that a user may ask for at once

    @property
    def stem(self) -> str:
        """The name of its files."""
        return self.id if self.id == self.name else f"{self.id}-{self.name}"

    def picture(self, found: Sequence[Found]) -> Picture:
        """Drawn in the style of all pictures, whatever the user's own settings are."""
        import matplotlib

        with matplotlib.rc_context(RC):
            return self.draw(*found)


def tick(value: float, _: Any = None) -> str:
    """A number at an axis: .175, -.1, 0, 1; no more digits than it has."""
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text in ("0", "-0", "") else text.replace("0.", ".", 1)


def style_of(method: str) -> tuple[str, str]:
    """Colour and marker of a method."""
    code, marker = METHOD_STYLES[method].look
    return group_colour(code), marker


def heading(figure: Any, title: str, size: float | str = 12.5) -> None:
    """The title of a picture, above its left edge."""
    figure.suptitle(title, x=0.01, ha="left", fontsize=size, fontweight="bold")


def watermark(ax: Any, x: float = 0.5, size: float = 22) -> None:
    """Large letters across a panel that nobody can overlook or crop away, centred at `x`."""
    ax.text(
        x, 0.5, WATERMARK, ha="center", va="center", rotation=28, fontsize=size, fontweight="bold",
        color=WARN, alpha=0.16, zorder=0, transform=ax.transAxes,
    )  # fmt: skip


def write_picture(picture: Picture, folder: Path, stem: str, formats: Sequence[str]) -> list[Path]:
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


@dataclass(frozen=True)
class Drawn:
    """An exhibit that was drawn."""

    exhibit: Exhibit
    files: tuple[Path, ...]
    caption: str
    notes: tuple[str, ...]
    origins: tuple[str, ...]  # tables or stores that ours came from; empty: published side only


def reproduce(
    exhibits: Sequence[Exhibit],
    source: ResultSource,
    out: Path,
    *,
    formats: Sequence[str] = ("png",),
    drawn: Callable[[Drawn], None] | None = None,
) -> list[Drawn]:
    """Draw exhibits into a folder, with their numbers beside them and a page over all.

    Parameters
    ----------
    source
        `Recorded(folder)` for results that are there, `Runs(folder)` to compute them.
    formats
        Of the pictures: "png", "svg", "pdf".
    drawn
        Called after each exhibit.
    """
    for ending in formats:
        require_one_of("formats", ending, FORMATS)
    results = []
    for exhibit in exhibits:
        found = [source.rows(need) for need in exhibit.needs]
        picture = exhibit.picture(found)
        files = write_picture(picture, Path(out), exhibit.stem, formats)
        origins = tuple(dict.fromkeys(one.origin for one in found if one.origin))
        notes = tuple(dict.fromkeys(picture.notes))
        results.append(Drawn(exhibit, tuple(files), picture.caption, notes, origins))
        if drawn is not None:
            drawn(results[-1])
    write_text(Path(out) / "README.md", page(results))
    return results


def reservations(results: Sequence[Drawn]) -> dict[str, list[str]]:
    """Every note once, with the exhibits it is about."""
    found: dict[str, list[str]] = {}
    for one in results:
        for note in one.notes:
            found.setdefault(note, []).append(one.exhibit.id)
    return found


def page(results: Sequence[Drawn]) -> str:
    """One Markdown page with every picture, its caption, its numbers and its reservations."""
    lines = ["# Reproduction", ""]
    for one in results:
        picture = next((f.name for f in one.files if f.suffix in (".png", ".svg")), None)
        tables = [f"[{f.name}]({f.name})" for f in one.files if f.suffix == ".csv"]
        lines += [f"## {one.exhibit.id}: {one.exhibit.title}", ""]
        lines += [f"![{one.exhibit.title}]({picture})", ""] if picture else []
        lines += [one.caption, ""]
        lines += [*(f"- {note}" for note in one.notes), ""] if one.notes else []
        ours = ", ".join(one.origins) or "nothing"
        lines += [f"Ours from: {ours}. Numbers: {', '.join(tables) or 'none'}.", ""]
    return "\n".join(lines)
