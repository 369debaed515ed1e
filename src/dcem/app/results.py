"""What a run found, to be read before its files are opened."""

from __future__ import annotations

import json
import re
from typing import Any

from dcem.app.commands import Recipe
from dcem.app.look import look
from dcem.app.places import Place
from dcem.app.runs import Run
from dcem.text import remaining

NUMBER = re.compile(r"-?\d*\.\d{4,}(e-?\d+)?")


def doing(run: Run) -> str:
    """What a run is doing, and how long the rest will take, if that is known."""
    told = run.progress
    return str(told["doing"]) + remaining(told.get("left"))


def recipe_of(run: Run) -> Recipe:
    """What a run did, as it was started."""
    same = run.folder / "same.py"
    python = same.read_text(encoding="utf-8") if same.is_file() else ""
    return Recipe(tuple(run.job["command"]), python.rstrip())


def verdict(run: Run | None) -> dict[str, Any] | None:
    """The answer of a report."""
    if run is None or run.result.suffix != ".json":
        return None
    found = json.loads(run.result.read_text(encoding="utf-8"))
    return found.get("verdict")


def first_rows(run: Run | None) -> tuple[list[str], list[tuple[str, ...]]] | None:
    """The first rows of a list of people."""
    if run is None or run.result.suffix != ".csv":
        return None
    seen = look(Place(run.result))
    return [column.name for column in seen.columns], [tuple(map(_short, row)) for row in seen.rows]


def _short(cell: str) -> str:
    """A number with the digits that anybody reads."""
    return f"{float(cell):.3g}" if NUMBER.fullmatch(cell) else cell


def model(run: Run | None) -> dict[str, str] | None:
    """The method of a model, and why it was taken."""
    if run is None or not (run.result / "model.json").is_file():
        return None
    told = json.loads((run.result / "model.json").read_text(encoding="utf-8"))
    return {"method": told["model"]["method"], "why": told["table"]["why"]}
