"""The app on a port of this machine, inside this process."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from dcem.app.guard import Keys
from dcem.app.runs import Run, runs
from dcem.app.server import application
from dcem.app.workspace import Work


@dataclass
class App:
    """A running app: its tables are in `tables`."""

    work: Work
    keys: Keys
    port: int
    token: str

    @property
    def tables(self) -> Path:
        return self.work.start

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        return f"http://{self.host}"

    def client(self, entered: bool = True, **headers: str) -> httpx.Client:
        """A client that has the cookie, or one that knows nothing."""
        cookies = {f"dcem-{self.port}": self.keys.cookie} if entered else None
        return httpx.Client(base_url=self.address, cookies=cookies, headers=headers, timeout=60)

    def form(self, **fields: Any) -> dict[str, Any]:
        """The fields of a form of these pages."""
        return {"secret": self.keys.form, **fields}

    def runs(self) -> list[Run]:
        return [run for study in self.work.studies() for run in runs(study.folder)]


@contextmanager
def running_app(folder: Path) -> Iterator[App]:
    """Serve a folder; at the end, what was started is ended."""
    for name in ("tables", "uploads"):
        (folder / name).mkdir(exist_ok=True)
    keys, listening = Keys(), socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    work = Work(((folder / "tables").resolve(),), folder.resolve() / "out", folder / "uploads")
    server = uvicorn.Server(uvicorn.Config(application(work, keys, port), log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    wait_for(lambda: server.started)
    app = App(work, keys, port, keys.address or "")
    try:
        yield app
    finally:
        for run in app.runs():
            run.cancel()
        server.should_exit = True
        thread.join(10)


def wait_for(what: Callable[[], Any], seconds: float = 300) -> Any:
    """Until it is true; what it is."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} seconds")
