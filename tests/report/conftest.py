"""Comparisons with made-up numbers: the report must show them and invent none."""

import pytest
from made_up import made_up_comparison

from dcem.compare.results import TableComparison


@pytest.fixture(scope="session")
def table_comparison() -> TableComparison:
    return made_up_comparison()
