"""The records of goldens, one file for each test file."""

from pathlib import Path

import pytest
from keeping import Golden


@pytest.fixture(scope="module")
def golden(request: pytest.FixtureRequest) -> Golden:
    """The record of this test file."""
    path = Path(str(request.path))
    name = path.stem.removeprefix("test_")
    return Golden(
        path.parent / "recorded" / f"{name}.json", record=bool(request.config.getoption("--record"))
    )
