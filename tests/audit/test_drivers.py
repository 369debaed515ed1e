"""How a pattern of encoded columns is told, and how many tests are missing."""

import numpy as np
import pytest

from dcem.audit.drivers import _pattern
from dcem.audit.results import Needed


@pytest.mark.parametrize(
    ("values", "labels", "told"),
    [
        ([1, 0], ["payer=public", "payer=private"], "public"),
        ([0, 0], ["payer=public", "payer=private"], "none of these"),
        ([1, 1], ["payer=public", "payer=private"], "public and private"),
        ([1], ["payer=public"], "public"),
        ([0], ["payer=public"], "not public"),
        ([2.5], ["payer"], "2.5"),
        ([np.nan], ["payer"], "missing"),
    ],
)
def test_a_pattern_is_told_as_the_value_it_stands_for(values, labels, told) -> None:
    assert _pattern(np.array(values, float), labels, "payer") == told


@pytest.mark.parametrize(("tests", "needed", "more"), [(40, 100, 60), (100, 40, 0), (-1, 40, 0)])
def test_tests_that_are_missing(tests, needed, more) -> None:
    assert Needed("a", 0.03, tests, needed).more == more  # -1: hidden, so nothing is told
