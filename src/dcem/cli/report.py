"""`dcem report`: the page of a saved result, made again."""

from pathlib import Path
from typing import Annotated

import typer

from dcem.cli import _table_options as options


def report(
    result: Annotated[
        Path,
        typer.Argument(help="The JSON of an audit or a comparison, or the folder of a comparison."),
    ],
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            help="What to write, by its ending: .html, .md or .json. Repeat it for several. "
            "Default: a page beside the result.",
            show_default=False,
        ),
    ] = None,
    words: options.Words = "general",
) -> None:
    """Make the page of a saved audit or comparison again, in any format and words.

    Nothing is computed: the numbers are those that were saved.
    """
    from rich.console import Console

    from dcem.files import require_file_place, write_text
    from dcem.report.from_json import read_result
    from dcem.report.to_html import to_html
    from dcem.report.to_json import to_json
    from dcem.report.to_markdown import to_markdown
    from dcem.report.to_terminal import to_terminal
    from dcem.report.words import speak
    from dcem.table.messages import InputError

    speak(words)
    if result.is_dir():
        result = result / "comparison.json"
    writers = {".html": to_html, ".md": to_markdown, ".json": to_json}
    places = out or [result.with_suffix(".html")]
    for path in places:
        if path.suffix.lower() not in writers:
            raise InputError(f"{path}: unknown kind of page. Allowed: {', '.join(writers)}.")
        if path.resolve() == result.resolve():
            raise InputError(f"{path} is the result itself. Write to another file.")
        require_file_place(path)
    document = read_result(result)
    console = Console(highlight=False)
    to_terminal(document, console, words)
    console.print()
    for path in places:
        write_text(path, writers[path.suffix.lower()](document, words))
        console.print(f"  {path}", style="bold", soft_wrap=True)
