"""The records of goldens, one file for each test file; and how to write them anew."""

from pathlib import Path

import pytest
from keeping import Golden


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="write the goldens that run anew")
    parser.addoption("--values-to", help="write the values of the goldens that run to this folder")


@pytest.fixture(scope="module")
def golden(request: pytest.FixtureRequest) -> Golden:
    """The record of this test file."""
    path = Path(str(request.path))
    name = f"{path.stem.removeprefix('test_')}.json"
    # a plain run of everything has not read the options of this folder
    elsewhere = request.config.getoption("--values-to", None)
    if elsewhere:
        return Golden(Path(elsewhere) / name, compares=False, digits=17)
    return Golden(
        path.parent / "recorded" / name, record=request.config.getoption("--record", False)
    )
