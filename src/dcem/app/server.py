"""All of it on a port of this machine, from the start to the end."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from dcem.app.guard import Guard, Keys
from dcem.app.pages import Pages
from dcem.app.runs import runs
from dcem.app.workspace import Work, private_folder
from dcem.files import real_place, require_folder_place
from dcem.table.messages import InputError

ADDRESS = "127.0.0.1"
NOT_HERE = "There is nothing at this address. A table may have been moved since."


def application(work: Work, keys: Keys, port: int) -> Guard:
    """The pages behind their guard."""
    pages = Pages(work, keys)

    def problem(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        message = NOT_HERE if error.status_code == 404 else error.detail
        return pages.problem(message, error.status_code)

    def fault(request: Request, error: Exception) -> Response:
        message = "A fault in these pages. See the terminal in which `dcem app` runs."
        return pages.problem(message, 500)

    answered = {HTTPException: problem, Exception: fault}
    inner = Starlette(routes=pages.routes(), exception_handlers=answered)
    return Guard(inner, keys=keys, port=port)


def serve(
    folders: Sequence[Path], out: Path, *, browser: bool = True, say: Callable[[str], None] = print
) -> None:
    """Serve the pages until they are ended; then end what they started and remove uploads.

    Parameters
    ----------
    folders
        Whose tables may be read; commands run in the first.
    out
        Folder for what is computed.
    browser
        Whether to open the page, besides saying its address.
    say
        Called with what a person at the terminal should read.
    """
    places = tuple(map(real_place, folders))
    for folder in places:
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder.")
    require_folder_place(out)
    keys = Keys()
    with (
        private_folder() as uploads,
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening,
    ):
        listening.bind((ADDRESS, 0))  # any port that is free
        number = listening.getsockname()[1]
        work = Work(places, real_place(out), uploads)
        address = f"http://{ADDRESS}:{number}/?token={keys.address}"
        say(f"dcem, on this machine only: {address}")
        say(f"Reads tables in {', '.join(map(str, places))}; writes results to {work.out}.")
        say("Ctrl-C ends it and the runs that are going on.")
        if browser:
            webbrowser.open(address)
        settings = uvicorn.Config(
            application(work, keys, number),
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        try:
            uvicorn.Server(settings).run(sockets=[listening])
        finally:
            going = [
                run for s in work.studies() for run in runs(s.folder) if run.state == "running"
            ]
            for run in going:
                run.cancel()
            if going:
                say(f"Ended: {', '.join(run.name for run in going)}.")
