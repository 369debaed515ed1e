"""Shared switches of the test suite: long tests run on request, CUDA tests where a card is.

Where torch is not installed, tests that come upon networks are skipped, except in the rooms that
must do without: there, needing torch is a failure.
"""

import gc
import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from small_benchmark import PLAIN

gc.disable()  # until everything is loaded
# Two workers share two cores: a second thread each would only wait for the other (before torch).
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A first call may compile or load something: that is no failure of what is tested.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

NO_NETWORKS = ("audit", "estimation", "learners", "metrics", "table")
SHARED = Path(__file__).resolve().parents[2] / "shared"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the long tests too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="long: run with --slow"))
    if any("cuda" in item.keywords for item in items):
        import torch

        if not torch.cuda.is_available():
            for item in items:
                if "cuda" in item.keywords:
                    item.add_marker(pytest.mark.skip(reason="no CUDA device here"))


def pytest_collection_finish() -> None:
    """What is loaded by now stays: looking through it for garbage again and again takes time."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()


def _skipped_for_torch(path: Path, report: Any, said: str) -> Any:
    """The report, as a skip if torch is what was missing, and may be."""
    needs = "No module named 'torch'" in said or "dcem[networks]" in said
    must_do = any(room in path.parts for room in NO_NETWORKS)
    if report.failed and needs and not must_do and find_spec("torch") is None:
        report.outcome, report.longrepr = "skipped", (str(path), 0, "Skipped: needs torch")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[Any]:
    report = yield
    return _skipped_for_torch(collector.path, report, str(report.longrepr))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[Any]:
    report = yield
    said = str(call.excinfo.value) if call.excinfo else ""
    return _skipped_for_torch(item.path, report, said)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the checkout; tests that need it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("real data is not here: expected a folder 'shared' beside the checkout")
    return SHARED


@pytest.fixture
def linear_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is tested and what tests show is modelled by logistic regression alone.

    For tests that are about something else: trees take most of the time of an audit. What a file
    shares among its tests is made before, by models of all kinds.
    """
    # two classes are then too many for trees and splines
    monkeypatch.setattr("dcem.estimation.nuisance_learners.MOST_CLASSES", 1)


@pytest.fixture
def all_models(linear_models: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of all kinds, for a test of a file that does without."""
    monkeypatch.undo()


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """12 cells of two single-stage methods."""
    (tmp_path / "plain.toml").write_text(PLAIN)
    return tmp_path / "plain.toml"


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium of the system (`apt-get install chromium` on Debian), by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium here; on Debian: apt-get install chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A Ray cluster on this machine, without workers."""
    ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
    from ray.cluster_utils import Cluster

    one = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        yield one
    finally:
        ray.shutdown()
        one.shutdown()
