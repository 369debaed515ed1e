"""Recorded values: kept as JSON that a reviewer can read line by line, compared or written anew.

    python -m pytest tests/golden/methods --record      # one process; then read `git diff`

Each golden belongs to a class, which its record says:

exact
    Must not change. Scores are compared to an absolute 1e-6 unless the case says otherwise: fits
    are in float64, and another processor or BLAS rounds each step in the sixteenth digit. While
    recording, every case is computed again from features that differ in the thirteenth digit and
    must stay within a third of its tolerance, so that no case hangs on how a number was rounded.
statistical
    May move by at most as much as the record allows, in units of its own spread.
announced
    Changes by design, once that is announced; then it is recorded again. (While recording, it has
    to stay within its tolerance: trees see a difference in the thirteenth digit.)
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

CLASSES = ("exact", "statistical", "announced")
NUDGE = 1e-13  # relative change of the features while recording
DIGITS = 10  # significant, of what is written


class Golden:
    """The recorded cases of one test file."""

    def __init__(
        self, path: Path, *, record: bool = False, compares: bool = True, digits: int = DIGITS
    ):
        """A file to compare with, or to write: to `record`, or only for values (`compares`)."""
        self.path, self.record, self.compares, self.digits = path, record, compares, digits
        self.cases = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def check(
        self,
        case: str,
        compute: Callable[[float], Mapping[str, Any]],
        *,
        kind: str = "exact",
        tolerance: float = 1e-6,
    ) -> None:
        """Compare what `compute(nudge)` gives with the record of a case, or write the record."""
        assert kind in CLASSES, kind
        values = self._plain(compute(0.0))
        if not self.compares:
            self.write(case, kind, tolerance, values)
            return
        if self.record:
            moved = self._plain(compute(NUDGE))
            differences = compared(values, moved, tolerance / (3 if kind == "exact" else 1))
            assert not differences, f"{case} hangs on rounding: {differences}"
            self.write(case, kind, tolerance, values)
            return
        assert case in self.cases, f"{case!r} is not in {self.path.name}: record it with --record"
        recorded = self.cases[case]
        assert recorded["class"] == kind, f"{case} is recorded as {recorded['class']}"
        differences = compared(recorded["values"], values, recorded["tolerance"])
        assert not differences, f"{case} ({kind}): {'; '.join(differences)}"

    def write(self, case: str, kind: str, tolerance: float, values: Mapping[str, Any]) -> None:
        """Put a case into the file."""
        content = self._plain(values)
        self.cases[case] = {"class": kind, "tolerance": tolerance, "values": content}
        lines = []
        for name, content in sorted(self.cases.items()):
            head = ", ".join(
                f'"{key}": {json.dumps(content[key])}' for key in ("class", "tolerance")
            )
            body = ",\n".join(
                f"    {json.dumps(key)}: {json.dumps(value)}"
                for key, value in content["values"].items()
            )
            lines.append(f'  {json.dumps(name)}: {{{head}, "values": {{\n{body}\n  }}}}')
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

    def _plain(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: plain(value, self.digits) for name, value in values.items()}


def plain(value: Any, digits: int = DIGITS) -> Any:
    """A value as JSON keeps it: numbers to some digits, arrays and tuples as lists."""
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(item, digits) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if np.isfinite(value) else str(value)
    return value


def compared(recorded: Mapping[str, Any], values: Mapping[str, Any], tolerance: float) -> list[str]:
    """Differences in words; whole numbers, text and truth values have to be the same."""
    if set(recorded) != set(values):
        return [f"recorded are {sorted(recorded)}, but there are {sorted(values)}"]
    out = []
    for name, before in recorded.items():
        after = values[name]
        if _are_numbers(before) and _are_numbers(after) and np.shape(before) == np.shape(after):
            gap = float(np.abs(np.subtract(before, after)).max())
            if not gap <= tolerance:
                out.append(f"{name} moved by {gap:.3g}, and {tolerance:g} is allowed")
        elif before != after:
            out.append(f"{name} was {_short(before)} and is {_short(after)}")
    return out


def _are_numbers(value: Any) -> bool:
    """Whether a value holds fractions: those have a tolerance."""
    items = np.asarray(value, dtype=object).ravel().tolist()
    return any(isinstance(item, float) for item in items) and all(
        isinstance(item, float | int) and not isinstance(item, bool) for item in items
    )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 80 else f"{text[:77]}..."
