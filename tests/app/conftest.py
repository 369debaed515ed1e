"""The app for a client without a browser, and for Chromium."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if not (find_spec("starlette") and find_spec("httpx")):  # the extra, and the client of the tests
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Any]:
    from running_app import running_app

    with running_app(tmp_path) as running:
        yield running


@pytest.fixture
def tab(app: Any, browser: Any) -> Iterator[Callable[..., Any]]:
    """A tab of one browser that has entered: `tab()`, and again for another one.

    Whatever is done in it: nothing breaks, and nothing is asked of anybody else.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    complaints: list[str] = []

    def complain_of(asked: Any) -> None:
        if not asked.url.startswith((app.address, "data:")):
            complaints.append(f"asks {asked.url}")

    def open_tab(address: str = "/") -> Any:
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", complain_of)
        page.goto(f"{app.address}{address}")
        return page

    context.request.get(f"{app.address}/?token={app.token}")
    yield open_tab
    context.close()
    assert complaints == []
