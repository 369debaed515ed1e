"""`dcem app`: the same in a browser, on this machine alone."""

from pathlib import Path
from typing import Annotated

import typer


def app(
    folder: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders whose tables the pages may read. Default: this folder."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder for the results. Default: dcem-app in the (first) folder.",
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
) -> None:
    """Use dcem in the browser: audit, compare, fit and score without typing commands.

    The pages are served to this machine only, at an address that works once; nothing is sent
    anywhere. They run the commands that you would type, and show them. Tables stay where they are;
    a table that you drop on the page is kept in a private folder, which is removed at the end.
    """
    from dcem.app.server import serve

    folders = folder or [Path.cwd()]
    serve(folders, out or folders[0] / "dcem-app", browser=browser, say=typer.echo)
