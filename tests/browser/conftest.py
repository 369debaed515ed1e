"""Every page the project writes, opened in a real browser: headless Chromium, without a network.

Where there is no browser these tests are skipped and say so (`tests/conftest.py`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Opened:
    """A page on the screen, and everything it complained about or asked for."""

    page: Any
    address: str = ""
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._said)
        self.page.on("request", self._asked)

    def _said(self, said: Any) -> None:
        if said.type in ("error", "warning"):
            self.complaints.append(said.text)

    def _asked(self, asked: Any) -> None:
        if asked.url not in (self.address, "data:,"):
            self.requests.append(asked.url)

    def see(self, width: int, dark: bool) -> "Opened":
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(media="null", color_scheme="dark" if dark else "light")
        return self


@contextmanager
def opener(browser: Any) -> Iterator[Callable[..., Opened]]:
    """Open a file as a double click would: `show(path, width=390, dark=True, script=False)`.

    One page after the other in the same tab: a new tab takes longer than most tests.
    """
    tabs: dict[bool, Opened] = {}

    def open_page(
        path: Path, *, width: int = 1280, dark: bool = False, script: bool = True
    ) -> Opened:
        if script not in tabs:
            context = browser.new_context(java_script_enabled=script, offline=True)
            tabs[script] = Opened(context.new_page())
        opened = tabs[script].see(width, dark)
        opened.address = path.as_uri()
        opened.complaints.clear()
        opened.requests.clear()
        opened.page.goto(opened.address)
        return opened

    yield open_page
    for opened in tabs.values():
        opened.page.context.close()


@pytest.fixture(scope="session")
def show(browser: Any) -> Iterator[Callable[..., Opened]]:
    """A page for those who click, until the next is shown."""
    with opener(browser) as open_page:
        yield open_page


@pytest.fixture(scope="session")
def second_tab(browser: Any) -> Iterator[Callable[..., Opened]]:
    with opener(browser) as open_page:
        yield open_page


@pytest.fixture(scope="module")
def look(
    second_tab: Callable[..., Opened], pages: Callable[[str], Path], name: str
) -> Callable[..., Opened]:
    """The page of the parameter `name` for those who only look: opened once for all of them."""
    opened = second_tab(pages(name))

    def seen(*, width: int = 1280, dark: bool = False) -> Opened:
        return opened.see(width, dark)

    return seen


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a page by its name, written on first use."""
    folder = tmp_path_factory.mktemp("pages")

    def page(name: str) -> Path:
        path = folder / f"{name}.html"
        if not path.exists():
            path.write_text(WRITERS[name](folder), encoding="utf-8")
        return path

    return page


def _comparison(**options: Any) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        from made_up import made_up_comparison

        return made_up_comparison(**options).to_html()

    return write


def _demo(folder: Path) -> str:
    from made_up import made_up_comparison

    from dcem.report.compare import compare_document
    from dcem.report.document import Figure
    from dcem.report.figures.task import draw_task
    from dcem.report.to_html import to_html
    from dcem.tasks import make_sinusoid

    small = make_sinusoid(stream="independent", random_state=0, n_train=800, n_test=50)
    comparison = made_up_comparison(truth=True, n_methods=1)
    return to_html(compare_document(comparison, "A demo", "", [Figure(lambda: draw_task(small))]))


def _cohort(folder: Path) -> str:
    pytest.importorskip("duckdb", reason="the sepsis extra is not installed")
    from dcem.report.cohort import cohort_document
    from dcem.report.to_html import to_html
    from dcem.tasks.sepsis.artificial import write_artificial
    from dcem.tasks.sepsis.cohort import build_cohort

    write_artificial(folder / "tables", stays=400, random_state=0)
    built = build_cohort(folder / "tables", folder / "cohort.parquet")
    return to_html(cohort_document(built.flow, built.quality))


def _leaderboard(folder: Path) -> str:
    import numpy as np
    import pandas as pd

    from dcem.report.leaderboard import SHOWN, leaderboard

    rng = np.random.default_rng(0)
    cells = [
        {"benchmark": b, "kind": "sinusoid", "q_y": q, "k": k, "phase": p, "method": m, "seed": s}
        | dict.fromkeys(SHOWN, 0.0)
        | {"auc": 0.7 + rng.uniform(0, 0.2), "roc_gap": rng.uniform(0, 0.1), "seconds": s + 0.5}
        for b in ("figure-1", "figure-2")
        for q in (0.5, 1.0)
        for k in (2.0, 4.0)
        for p in (0.0, 1.0)
        for m in ("y-obs", "tested-only", "dcem", "a-method-with-a-rather-long-name")
        for s in range(3)
    ]
    pd.DataFrame(cells).to_csv(folder / "cells.csv", index=False)
    return leaderboard(folder / "cells.csv")


def _audit(folder: Path) -> str:
    from dcem.audit import audit_labels
    from dcem.tasks import make_sinusoid

    # A gentle rule of testing: people overlap, and the sensitivity curves are drawn.
    task = make_sinusoid(
        stream="independent", random_state=0, n_train=800, n_test=50, testing_slope=3.0
    )
    return audit_labels(task.train, random_state=0).to_html()


WRITERS: dict[str, Callable[[Path], str]] = {
    "demo": _demo,
    "comparison": _comparison(),
    "comparison-truth": _comparison(truth=True, n_methods=2),
    "comparison-no-overlap": _comparison(estimable=False, n_methods=2),
    "audit": _audit,
    "cohort": _cohort,
    "leaderboard": _leaderboard,
}
