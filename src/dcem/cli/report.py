"""`dcem report`: the page of a saved result, made again."""

from pathlib import Path
from typing import Annotated

import typer

from dcem.cli import _table_options as options
from dcem.cli._outputs import Outputs

KINDS = (".html", ".md", ".json")


def report(
    result: Annotated[
        Path,
        typer.Argument(
            help="The JSON of `dcem audit`, `compare` or `monitor`, or the folder of a comparison."
        ),
    ],
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            help="File to write: .html, .md or .json. Repeat it for several. Default: an HTML page "
            "beside the result.",
        ),
    ] = None,
    words: Annotated[
        str | None, typer.Option(help=f"{options.VOCABULARY} Default: that of the result.")
    ] = None,
) -> None:
    """Write a saved audit, comparison or monitoring report again, in any format or vocabulary.

    Nothing is computed again: the numbers are those that were saved.
    """
    from dcem.cli._console import Console
    from dcem.report.from_json import as_it_was_saved, read_result, words_of
    from dcem.table.messages import InputError

    if result.is_dir():
        result = result / "comparison.json"
    places = out or [result.with_suffix(".html")]
    for path in places:
        if path.suffix.lower() not in KINDS:
            raise InputError(f"{path}: unknown file type. Allowed: {', '.join(KINDS)}.")
    document = read_result(result)
    kinds = [(path, path.suffix.lower()[1:]) for path in places]
    outputs = Outputs(kinds, result, words or words_of(result))
    with as_it_was_saved(result):
        outputs.write(document, Console(highlight=False), brief=True)
