"""What a command writes: places are refused before the work, files written and listed after it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dcem.report.document import Document


MADE = b"Made with dcem"  # at the end of each page
OWN_KEYS = {"title", "words", "made"}, {"fitted to", "rule", "flagged"}  # of results, as JSON
OWN_COLUMNS = (  # of scores, of lists of tests, of comparisons
    {"distance", "like_tested"},
    {"distance", "probability", "reason"},
    {"method", "target", "metric"},
)
LONGEST = 1 << 26  # bytes of a page


def written_with(place: Path) -> list[Path]:
    """The files that a command writes where it is asked to write `place`."""
    if place.is_dir():
        scored = next(place.rglob("*.parquet"), None)
        of_compare = [place / f"comparison.{ending}" for ending in ("csv", "md", "json")]
        return [*of_compare, *([scored] if scored else [])]
    if place.suffix.lower() in (".html", ".htm"):
        return [place, place.with_suffix(".md")]
    return [place, place.with_name(f"{place.name}.decisions.json")]


def is_own(file: Path) -> bool:
    """Whether a file is one that dcem wrote, by what is in it."""
    import json

    from dcem.files import read_bytes
    from dcem.table import read_header

    suffix = file.suffix.lower()
    try:
        if suffix in (".html", ".htm", ".md"):
            return MADE in read_bytes(file, LONGEST)
        if suffix == ".json":
            keys = {*json.loads(read_bytes(file, LONGEST))}
            return any(own <= keys for own in OWN_KEYS)
        return file.is_file() and any(own <= {*read_header(file)} for own in OWN_COLUMNS)
    except (OSError, ValueError, TypeError, RecursionError):
        return False


class Outputs:
    """The files that a command was asked for; made before the work, so that it can refuse them.

    `files` are places (None: not asked for) with what each is to hold, "html", "md" or "json";
    `source` is what the command reads, which none of them may overwrite.
    """

    def __init__(
        self, files: Sequence[tuple[Path | None, str]], source: Path, words: str = "general"
    ) -> None:
        from dcem.extras import MissingExtra, is_installed, is_missing
        from dcem.files import real_place, require_file_place
        from dcem.report.words import speak
        from dcem.table.messages import InputError

        speak(words)  # refuses words it does not know
        self.source, self.words, self.begun = source, words, time.perf_counter()
        self.files = {path: kind for path, kind in files if path is not None}
        taken = {real_place(source): "read"}
        for path, kind in files:
            if path is None:
                continue
            if kind == "html" and path.suffix.lower() == ".md":
                raise InputError(
                    f"{path}: the report is an HTML page, and its Markdown version is written "
                    f"beside it. Name the page {path.with_suffix('.html').name}."
                )
            if kind == "html" and not is_installed("matplotlib"):
                raise MissingExtra(is_missing(path.name, "matplotlib"))
            require_file_place(path)
            if (other := taken.setdefault(real_place(path), kind)) != kind:
                what = "the input file" if other == "read" else "also named for another output"
                raise InputError(f"{path} is {what}. Write to another file.")

    @classmethod
    def of_report(
        cls, report: Path | None, markdown: Path | None, json: Path | None, source: Path, words: str
    ) -> Outputs:
        """A page, its Markdown (beside the page, unless a place is given) and its numbers."""
        if report is not None and not report.is_dir():
            markdown = markdown or report.with_suffix(".md")
        return cls([(report, "html"), (markdown, "md"), (json, "json")], source, words)

    def write(
        self,
        document: Document,
        console: Any,
        more: Mapping[Path, str] | None = None,
        *,
        brief: bool = False,
        then: Sequence[str] = (),
    ) -> None:
        """Print the document, write every file whole, `more` texts too, and say where they are.

        Beside a page the document is printed in short: the page has the rest. `brief`: the answer
        alone is printed. `then`: the command that comes next on the same table, and its options.
        """
        from dcem.files import write_text
        from dcem.report.to_html import to_html
        from dcem.report.to_json import to_json
        from dcem.report.to_markdown import to_markdown
        from dcem.report.to_terminal import roles_as_options, to_terminal
        from dcem.table.remote import as_named
        from dcem.text import duration

        has_page = {"html", "md"} & {*self.files.values()}
        writers = {"html": to_html, "md": to_markdown, "json": to_json}
        page = roles_as_options(document)
        texts = {
            path: writers[kind](document if kind == "json" else page, self.words)
            for path, kind in self.files.items()
        }
        for path, text in (texts | dict(more or {})).items():  # first: nobody may read the rest
            write_text(path, text)
        shown = document.answer() if brief else document.in_short() if has_page else document
        to_terminal(shown, console, self.words)
        rest = " Full report:" if has_page else ""
        console.print(f"\nDone in {duration(time.perf_counter() - self.begun)}.{rest}")
        for path in texts | dict(more or {}):
            console.print(f"  {path}", style="bold", soft_wrap=True)
        if then:
            command = shlex.join(["dcem", then[0], as_named(self.source), *then[1:]])
            console.print(f"Next: {command}", markup=False, soft_wrap=True)
