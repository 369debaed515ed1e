"""`dcem app`: the same in a browser, on this machine alone."""

from pathlib import Path
from typing import Annotated

import typer


def app(
    folder: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders whose tables the pages may read. Default: this one."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder for what is computed. Default: dcem-app in the (first) folder.",
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
) -> None:
    """Work in the browser: a table, its columns, audit, comparison, model, scores.

    The pages are served to this machine alone, at an address that works once; nothing is sent
    anywhere. They run the commands that you would type, and show them. Tables stay where they are;
    what you drop on the page lies in a private folder that is removed at the end.
    """
    from dcem.app.server import serve

    folders = folder or [Path.cwd()]
    serve(folders, out or folders[0] / "dcem-app", browser=browser, say=typer.echo)
