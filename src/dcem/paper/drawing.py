"""Draw exhibits one after another: find the results, draw, write, and say what was not there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dcem.files import write_text
from dcem.paper.exhibits import calibration
from dcem.paper.exhibits.catalogue import Exhibit
from dcem.paper.picture import Picture, write
from dcem.paper.sources import Found, Need, Recorded, Runs, Source
from dcem.table.checks import InputError

FORMATS = ("png", "svg", "pdf")


@dataclass(frozen=True)
class Outcome:
    """What became of one exhibit."""

    exhibit: Exhibit
    files: tuple[Path, ...]
    caption: str
    notes: tuple[str, ...]
    origins: tuple[str, ...]  # tables or stores that ours came from; empty: published side only


def reproduce(
    exhibits: Sequence[Exhibit],
    source: Source,
    out: Path,
    *,
    formats: Sequence[str] = ("png",),
    drawn: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
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
        if ending not in FORMATS:
            raise InputError(f"Pictures come as {', '.join(FORMATS)}; not as {ending!r}.")
    outcomes = []
    for exhibit in exhibits:
        found = [_rows(source, need, out) for need in exhibit.needs]
        picture: Picture = exhibit.draw(*found)
        files = write(picture, Path(out), exhibit.stem, formats)
        origins = tuple(dict.fromkeys(one.origin for one in found if one.origin))
        notes = tuple(dict.fromkeys(picture.notes))
        outcomes.append(Outcome(exhibit, tuple(files), picture.caption, notes, origins))
        if drawn is not None:
            drawn(outcomes[-1])
    write_text(Path(out) / "README.md", page(outcomes))
    return outcomes


def _rows(source: Source, need: Need, out: Path) -> Found:
    """Ask the source; calibration is no benchmark and is computed here, once."""
    if need.preset or not isinstance(source, Runs):
        return source.rows(need)
    Path(out).mkdir(parents=True, exist_ok=True)
    name = need.recorded[0]
    if Recorded(source.out).table(name) is None:
        table = calibration.curves(device=source.device)
        write_text(source.out / f"{name}.csv", table.to_csv(index=False, float_format="%.6f"))
    return Recorded(source.out).rows(need)


def reservations(outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """Every note once, with the exhibits it is about."""
    found: dict[str, list[str]] = {}
    for one in outcomes:
        for note in one.notes:
            found.setdefault(note, []).append(one.exhibit.id)
    return found


def page(outcomes: Sequence[Outcome]) -> str:
    """One Markdown page with every picture, its caption, its numbers and its reservations."""
    lines = ["# Reproduction", ""]
    for one in outcomes:
        picture = next((f.name for f in one.files if f.suffix in (".png", ".svg")), None)
        tables = [f"[{f.name}]({f.name})" for f in one.files if f.suffix == ".csv"]
        lines += [f"## {one.exhibit.id}: {one.exhibit.title}", ""]
        lines += [f"![{one.exhibit.title}]({picture})", ""] if picture else []
        lines += [one.caption, ""]
        lines += [*(f"- {note}" for note in one.notes), ""] if one.notes else []
        ours = ", ".join(one.origins) or "nothing"
        lines += [f"Ours from: {ours}. Numbers: {', '.join(tables) or 'none'}.", ""]
    return "\n".join(lines)
