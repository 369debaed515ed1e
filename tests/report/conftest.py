"""Comparisons with made-up numbers: the report must show them and invent none."""

import pytest
from made_up import made_up_comparison
from made_up_demo import made_up_demo

from dcem.compare.results import TableComparison
from dcem.compare.truth_results import Comparison


@pytest.fixture
def comparison() -> Comparison:
    return made_up_demo()


@pytest.fixture(scope="session")
def table_comparison() -> TableComparison:
    return made_up_comparison()
